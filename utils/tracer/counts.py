"""Counting: from events to sectors, bank conflicts, active lanes and barriers, by source line.

README.md states the model: which accesses are taken as simultaneous, and how hardware counts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..occupancy import ceil_div
from . import record
from .grouping import group, per_group, rank_among
from .loops import iterations
from .record import ACCESSES, ATOMIC, BARRIER, FIELDS, GRID_BARRIER, LINE, NOT_TAKEN, TAKEN, WORDS

WARP = 32
SECTOR = 32
CACHE_LINE = 128
BANKS = 32
BANK_BYTES = 4


class Events:
    """The events of a recording as columns, with what follows from them.

    epoch: how many block-wide barriers the thread has passed.
    occurrence: which iterations of its loops this is, and how often the thread has been at this
        place in them. Events of a warp's lanes at one place that agree in epoch and occurrence are
        taken as one instruction.
    step: the event's place among those of its thread and epoch.
    """

    def __init__(self, recording):
        recorder = recording.recorder
        table = np.frombuffer(recorder.events, np.int64).reshape(-1, FIELDS)
        columns = table.T.copy()
        self.kind, self.thread, self.site, self.memory, self.offset, self.size = columns[:-1]
        self.value = columns[-1].view(np.float64)
        self.sites = recorder.sites
        self.memories = recorder.memories
        self.outside = np.zeros(len(table), bool)
        missed = [one.event for one in recorder.outside if one.event is not None]
        self.outside[missed] = True
        threads = int(np.prod(recording.block))
        self.block, rank = np.divmod(self.thread, threads)
        self.lane = rank % WARP
        self.threads_a_block = threads
        self.warps_a_block = ceil_div(threads, WARP)
        self.warp = self.block * self.warps_a_block + rank // WARP
        self.by_thread = np.argsort(self.thread, kind="stable")
        self.epoch = self.passed((self.kind == BARRIER) | (self.kind == GRID_BARRIER))
        if recorder.stages is not None:
            self.epoch = np.array(recorder.stages, np.int64)
        self.grid_epoch = self.passed(self.kind == GRID_BARRIER)
        self.function = recording.function
        self.spaces = np.array([m.space for m in self.memories], dtype=object)
        starts = [m.start for m in self.memories] or [0]
        self.address = self.offset + np.array(starts, np.int64)[self.memory]
        roots = list(dict.fromkeys(m.root for m in self.memories))
        numbers = {root: number for number, root in enumerate(roots)}
        root_of_memory = [numbers[m.root] for m in self.memories] or [0]
        self.root = np.array(root_of_memory, np.int64)[self.memory]

    @cached_property
    def occurrence(self):
        iteration = iterations(self, self.function)
        kind = np.where(self.kind == NOT_TAKEN, TAKEN, self.kind)
        return group(iteration, rank_among(self.thread, self.epoch, iteration, kind, self.site))[0]

    @cached_property
    def step(self):
        return rank_among(self.thread, self.epoch)

    def site_of(self, event):
        """Where in the source an event happened."""
        return self.sites[self.site[event]]

    def memory_of(self, event):
        """The array that an event accessed."""
        return self.memories[self.memory[event]]

    def operation_of(self, event):
        """What an event did to it: "read", "write" or "atomic"."""
        return WORDS[int(self.kind[event])]

    def element_of(self, event):
        """The element that an event accessed, as a learner would write it."""
        offset = int(self.offset[event])
        return self.memory_of(event).element(offset)

    def __len__(self):
        return len(self.kind)

    def lanes_of(self, warps):
        """How many threads each of these warps has."""
        return np.minimum(WARP, self.threads_a_block - warps % self.warps_a_block * WARP)

    def passed(self, happened):
        """How many of `happened` the same thread has had before each event."""
        if not happened.any():
            return np.zeros(len(self), np.int64)
        order = self.by_thread
        counted = np.cumsum(happened[order]) - happened[order]
        thread = self.thread[order]
        starts = np.flatnonzero(np.diff(thread, prepend=-1))
        base = np.repeat(counted[starts], np.diff(starts, append=len(thread)))
        passed = np.empty(len(order), np.int64)
        passed[order] = counted - base
        return passed

    def accesses(self, *spaces):
        """Indices of the accesses to memory in these spaces."""
        accesses = np.flatnonzero(np.isin(self.kind, ACCESSES))
        chosen = np.isin(self.spaces, spaces)
        return accesses[chosen[self.memory[accesses]]]

    @cached_property
    def line_of_site(self):
        """For each site number, the number of its (file, line), and those places in order."""
        places = sorted({(s.filename, s.line) for s in self.sites})
        numbers = {place: i for i, place in enumerate(places)}
        lines = [numbers[s.filename, s.line] for s in self.sites]
        return np.array(lines or [0]), places

    @cached_property
    def name_of_memory(self):
        names = list(dict.fromkeys(m.name for m in self.memories))
        numbers = [names.index(m.name) for m in self.memories]
        return np.array(numbers or [0]), names


@dataclass(frozen=True)
class Place:
    """A source line: `line` in `filename`, whose text is `code`."""

    filename: str
    line: int
    code: str


@dataclass(frozen=True)
class Coalescing(Place):
    """Global accesses of one source line to one array. A request is one instruction of one warp.

    sectors: 32-byte sectors that the requests touch; fewest: sectors that the same bytes would
        fill, packed.
    cache_lines: 128-byte lines they touch. accesses: elements, of all threads.
    """

    array: str
    operation: str
    requests: int
    accesses: int
    sectors: int
    fewest: int
    cache_lines: int

    @property
    def efficiency(self):
        """Percent: fewest / sectors."""
        return 100 * self.fewest / self.sectors

    @property
    def sectors_per_request(self):
        return self.sectors / self.requests


@dataclass(frozen=True)
class Banks(Place):
    """Shared accesses of one source line to one array.

    ways: the most distinct words that one bank must serve in one pass, in the worst request (1: no
        conflict).
    wavefronts: passes that all requests take; fewest: passes without conflicts.
    """

    array: str
    operation: str
    requests: int
    accesses: int
    ways: int
    wavefronts: int
    fewest: int

    @property
    def conflicts(self):
        """Passes that conflicts add."""
        return self.wavefronts - self.fewest


@dataclass(frozen=True)
class Contention(Place):
    """Atomics of one line on one array: the most lanes of a warp that meet on one element."""

    array: str
    space: str
    requests: int
    accesses: int
    lanes: int


@dataclass(frozen=True)
class Activity(Place):
    """How often warps ran a line, and how many of the 32 lanes were active on average."""

    runs: int
    active: float

    @property
    def percent(self):
        return 100 * self.active / WARP


@dataclass(frozen=True)
class Branch(Place):
    """A branch: in how many of its runs the lanes of a warp disagreed."""

    runs: int
    diverged: int
    taken: int
    not_taken: int


def requests(events, chosen):
    """(request of each chosen access, index of each request's first access among all events)."""
    columns = (events.warp, events.epoch, events.site, events.occurrence, events.kind)
    numbers, first = group(*(column[chosen] for column in columns))
    return numbers, chosen[first]


def rows_of(events, first):
    """(row of each request, places, arrays and operations of the rows).

    Rows are grouped by line, array and operation.
    """
    line, places = events.line_of_site
    name, names = events.name_of_memory
    lines = line[events.site[first]]
    arrays = name[events.memory[first]]
    kinds = events.kind[first]
    rows, index = group(lines, arrays, kinds)
    labels = []
    for i in index:
        array = names[arrays[i]]
        operation = WORDS[int(kinds[i])]
        labels.append((place(*places[lines[i]]), array, operation))
    return rows, labels


def sums(rows, weights=None):
    """For each row, the sum of the weights of what belongs to it, or how much that is."""
    return np.bincount(rows, weights).astype(int).tolist()


def largest(rows, values, count):
    """For each of `count` rows, the largest value of what belongs to it."""
    most = np.zeros(count, np.int64)
    np.maximum.at(most, rows, values)
    return most


def spaces_of(events, first, rows, count):
    """For each of `count` rows, the memory space of its requests."""
    spaces = np.empty(count, object)
    spaces[rows] = events.spaces[events.memory[first]]
    return spaces


def place(filename, line):
    """What a Place is made of."""
    return filename, line, record.Site(filename, line, 0).code


def pieces(events, chosen, numbers, size):
    """(request, root, piece) of every `size`-byte piece of memory that an access touches."""
    low, count = extents(events, chosen, size)
    before = np.cumsum(count) - count
    within = np.arange(count.sum()) - np.repeat(before, count)
    root = np.repeat(events.root[chosen], count)
    return np.repeat(numbers, count), root, np.repeat(low, count) + within


def extents(events, chosen, size):
    """(the first, how many) of the `size`-byte pieces of memory that each access touches."""
    address = events.address[chosen]
    low = address // size
    high = (address + np.maximum(events.size[chosen], 1) - 1) // size
    return low, high - low + 1


def unique_bytes(events, chosen, numbers):
    """How many different bytes each request asks for."""
    _, first = group(numbers, events.root[chosen], events.address[chosen])
    sizes = events.size[chosen[first]]
    return np.bincount(numbers[first], sizes).astype(np.int64)


def sectors(events, chosen, numbers, size=SECTOR):
    """How many `size`-byte sectors each request touches."""
    return per_group(*pieces(events, chosen, numbers, size))


def coalescing(events: Events) -> list[Coalescing]:
    chosen = events.accesses("global")
    numbers, first = requests(events, chosen)
    accesses = np.bincount(numbers)
    touched = sectors(events, chosen, numbers)
    fewest = ceil_div(unique_bytes(events, chosen, numbers), SECTOR)
    lines = sectors(events, chosen, numbers, CACHE_LINE)
    rows, labels = rows_of(events, first)
    totals = [sums(rows, weights) for weights in (None, accesses, touched, fewest, lines)]
    return [
        Coalescing(*where, array, operation, *counted)
        for (where, array, operation), *counted in zip(labels, *totals, strict=True)
    ]


def passes(events, chosen, numbers):
    """(ways, wavefronts, fewest) of each request to shared memory.

    A pass serves one 4-byte word of each of the 32 banks. Accesses of 4 bytes or less: the warp at
    once; 8 bytes: half a warp at a time; 16 bytes: a quarter. Lanes that read one word share it;
    atomics do not.
    """
    size = np.maximum(events.size[chosen], BANK_BYTES)
    lane = events.lane[chosen]
    lanes_a_phase = np.maximum(1, WARP * BANK_BYTES // size)
    numbers_of_words, root, word = pieces(events, chosen, numbers, BANK_BYTES)
    _, count = extents(events, chosen, BANK_BYTES)
    phase = np.repeat(lane // lanes_a_phase, count)
    alone = np.where(events.kind[chosen] == ATOMIC, lane, -1)
    _, words = group(numbers_of_words, phase, root, word, np.repeat(alone, count))
    request = numbers_of_words[words]
    phase = phase[words]
    in_bank, bank = group(request, phase, word[words] % BANKS)
    degree = np.bincount(in_bank)
    in_phase, first = group(request[bank], phase[bank])
    worst = largest(in_phase, degree, len(first))
    request = request[bank[first]]
    ways = largest(request, worst, numbers.max(initial=-1) + 1)
    return ways, np.bincount(request, worst).astype(int), np.bincount(request)


def banks(events: Events) -> list[Banks]:
    chosen = events.accesses("shared")
    numbers, first = requests(events, chosen)
    ways, wavefronts, fewest = passes(events, chosen, numbers)
    rows, labels = rows_of(events, first)
    columns = [
        sums(rows),
        sums(rows, np.bincount(numbers)),
        largest(rows, ways, len(labels)).tolist(),
        sums(rows, wavefronts),
        sums(rows, fewest),
    ]
    return [
        Banks(*where, array, operation, *counted)
        for (where, array, operation), *counted in zip(labels, *columns, strict=True)
    ]


def contention(events: Events) -> list[Contention]:
    chosen = events.accesses("global", "shared")
    chosen = chosen[events.kind[chosen] == ATOMIC]
    numbers, first = requests(events, chosen)
    element, index = group(numbers, events.root[chosen], events.address[chosen])
    most = largest(numbers[index], np.bincount(element), len(first))
    rows, labels = rows_of(events, first)
    columns = [
        spaces_of(events, first, rows, len(labels)),
        sums(rows),
        sums(rows, np.bincount(numbers)),
        largest(rows, most, len(labels)).tolist(),
    ]
    return [
        Contention(*where, array, *facts)
        for (where, array, _), *facts in zip(labels, *columns, strict=True)
    ]


def activity(events: Events) -> list[Activity]:
    chosen = np.flatnonzero(events.kind == LINE)
    numbers, first = requests(events, chosen)
    line, places = events.line_of_site
    lines = line[events.site[first]]
    rows, index = group(lines)
    lanes = sums(rows, np.bincount(numbers))
    return [
        Activity(*place(*places[lines[i]]), runs, active / runs)
        for i, runs, active in zip(index, sums(rows), lanes, strict=True)
    ]


def branches(events: Events) -> list[Branch]:
    chosen = np.flatnonzero((events.kind == TAKEN) | (events.kind == NOT_TAKEN))
    columns = (events.warp, events.epoch, events.site, events.occurrence)
    numbers, first = group(*(column[chosen] for column in columns))
    taken = np.bincount(numbers, events.kind[chosen] == TAKEN)
    lanes = np.bincount(numbers)
    diverged = (taken > 0) & (taken < lanes)
    line, places = events.line_of_site
    lines = line[events.site[chosen[first]]]
    rows, index = group(lines)
    totals = [sums(rows, weights) for weights in (None, diverged, taken, lanes - taken)]
    return [
        Branch(*place(*places[lines[i]]), *counted)
        for i, *counted in zip(index, *totals, strict=True)
    ]


@dataclass(frozen=True)
class Barrier(Place):
    """A block-wide barrier: how often each thread reached it.

    reached: [block, rank]. skipped: the threads (numbered through the grid) that reached it less
    often than others of their block.
    """

    what: str
    reached: np.ndarray
    skipped: tuple


def barriers(events: Events, blocks: int, threads: int) -> list[Barrier]:
    chosen = np.flatnonzero((events.kind == BARRIER) | (events.kind == GRID_BARRIER))
    line, places = events.line_of_site
    rows = []
    lines = line[events.site[chosen]]
    for number in np.unique(lines):
        arrivals = chosen[lines == number]
        reached = np.bincount(events.thread[arrivals], minlength=blocks * threads)
        reached = reached.reshape(blocks, threads)
        skipped = np.flatnonzero(reached < reached.max(axis=1, keepdims=True))
        what = "syncthreads()"
        if events.kind[arrivals[0]] == GRID_BARRIER:
            what = "grid.sync()"
        where = place(*places[number])
        rows.append(Barrier(*where, what, reached, tuple(skipped.tolist())))
    return rows


@dataclass(frozen=True)
class Mistake(Place):
    """Wrong accesses of one line to one array: "outside", "negative" or "uninitialised".

    threads: numbers through the grid, one for each access; indices: the index of each.
    """

    what: str
    array: str
    operation: str
    threads: tuple
    indices: tuple


def mistakes(events: Events, outside: list) -> list[Mistake]:
    """Accesses outside arrays, and reads of shared or local elements not yet written."""
    accesses = {}  # what they have in common -> thread and index of each

    def note(site, what, memory, kind, thread, index):
        key = site.filename, site.line, site.code, what, memory.name, WORDS[kind]
        accesses.setdefault(key, []).append((thread, index))

    for one in outside:
        what = "negative" if min(one.index) < 0 else "outside"
        site = events.sites[one.site]
        memory = events.memories[one.memory]
        note(site, what, memory, one.kind, one.thread, one.index)
    for i in unwritten(events):
        memory = events.memory_of(i)
        index = memory.index(int(events.offset[i]))
        if index is not None:
            thread = int(events.thread[i])
            kind = int(events.kind[i])
            note(events.site_of(i), "uninitialised", memory, kind, thread, index)
    rows = []
    for key, pairs in sorted(accesses.items()):
        threads, indices = zip(*pairs, strict=True)
        rows.append(Mistake(*key, threads, indices))
    return rows


def elements(events, chosen):
    """(index of the event, number of the piece of memory) for every piece that an access touches.

    Pieces are as large as the smallest access allows, so that accesses of different sizes meet.
    """
    sizes = np.concatenate([events.size[chosen], events.address[chosen]])
    unit = max(1, int(np.gcd.reduce(sizes)))
    numbers, root, piece = pieces(events, chosen, np.arange(len(chosen)), unit)
    element, _ = group(root, piece)
    return chosen[numbers], element


def unwritten(events):
    """Reads (and atomics) of shared and local elements before their first write: their indices."""
    chosen = events.accesses("shared", "local")
    chosen, element = elements(events, chosen[~events.outside[chosen]])
    kind = events.kind[chosen]
    writes = kind != record.READ
    written = np.full(element.max(initial=-1) + 1, len(events), np.int64)
    np.minimum.at(written, element[writes], chosen[writes])
    early = (chosen <= written[element]) & (kind != record.WRITE)
    return np.array(
        [i for i in np.unique(chosen[early]).tolist() if not has_arrived(events, i)], int
    )


def has_arrived(events, access):
    """Whether an asynchronous copy has brought what a read of shared memory reads."""
    before = np.flatnonzero(events.kind[:access] == record.ARRIVED)
    after = events.address[access] - events.address[before]
    here = (events.root[before] == events.root[access]) & (after >= 0)
    return bool((here & (after < events.size[before])).any())


@dataclass(frozen=True)
class Other(Place):
    """Accesses to local or constant memory. words: different addresses of a request, on average."""

    array: str
    space: str
    operation: str
    requests: int
    accesses: int
    words: float


def others(events: Events) -> list[Other]:
    chosen = events.accesses("local", "constant")
    numbers, first = requests(events, chosen)
    words = per_group(numbers, events.root[chosen], events.address[chosen])
    rows, labels = rows_of(events, first)
    columns = [
        spaces_of(events, first, rows, len(labels)),
        sums(rows),
        sums(rows, np.bincount(numbers)),
        (np.bincount(rows, words) / np.bincount(rows)).tolist(),
    ]
    return [
        Other(*where, array, space, operation, *counted)
        for (where, array, operation), space, *counted in zip(labels, *columns, strict=True)
    ]
