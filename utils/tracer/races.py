"""Races: two threads, one element, a write, not both atomic, and nothing that orders them.

What orders two accesses is in README.md.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from .counts import Events, Place, elements
from .grouping import group, per_group
from .record import ATOMIC, FENCE, READ, SYNCWARP, WRITE

#: Elements looked at in detail, and with fences, which take longer; threads compared at one element
#: and line; pairs tried there to find one without order.
MAX_ELEMENTS = 20_000
MAX_ELEMENTS_WITH_FENCES = 1_000
MAX_PAIRS = 1_024
MAX_TRIES = 256


@dataclass(frozen=True)
class Race(Place):
    """Accesses at (line, operation) that race with others at (other.line, other_operation).

    threads: two that collide (numbers through the grid), at `element`.
    elements: how many elements the two lines race for.
    within_blocks, between_blocks: whether threads of one block do, and of different blocks.
    updates: whether both threads read the element and write it in the one line, as ``x[0] += 1``.
    unfenced: whether a threadfence by the second one's side, behind its atomic, would order them.
    events: the indices of the two accesses in `Trace.events`.
    """

    array: str
    operation: str
    other: Place
    other_operation: str
    threads: tuple
    element: str
    elements: int
    within_blocks: bool
    between_blocks: bool
    updates: bool
    unfenced: bool
    events: tuple


def races(events: Events) -> list[Race]:
    """All races of a launch, one entry for each pair of lines."""
    order = Order(events)
    by_line = sorted(racing_pairs(events, order).items())
    return [entry(events, order, pairs) for _, pairs in by_line]


def racing_pairs(events, order):
    """(array, two lines) -> the pairs of accesses that race there, as indices of events."""
    chosen = events.accesses("global", "shared")
    chosen, element = elements(events, chosen[~events.outside[chosen]])
    pairs_of = defaultdict(list)
    for inside in (True, False):
        for accesses in contended(events, order, chosen, element, inside):
            for a, b in collisions(events, order, accesses, inside):
                lines = lines_of(events, a, b)
                pairs_of[lines].append(in_order(events, a, b))
    return pairs_of


def contended(events, order, chosen, element, inside):
    """For each contended element its accesses, each thread's first at a place in a `phase`.

    Contended: several threads of a block (or several blocks) use it between two barriers, at least
    one writing and not all atomically.
    """
    if inside:
        stretch, _ = group(element, events.block[chosen], events.epoch[chosen])
        user = events.thread[chosen]
    else:
        stretch, _ = group(element, events.grid_epoch[chosen])
        user = events.block[chosen]
    kind = events.kind[chosen]
    plain = np.bincount(stretch, kind != ATOMIC) > 0
    changed = np.bincount(stretch, kind != READ) > 0
    several = per_group(stretch, user) > 1
    keep = (plain & changed & several)[stretch]
    chosen = chosen[keep]
    stretch = stretch[keep]
    thread = events.thread[chosen]
    site = events.site[chosen]
    kind = events.kind[chosen]
    _, first = group(stretch, thread, site, kind, order.phase[chosen])
    if not len(first):
        return []
    first = first[np.lexsort((chosen[first], stretch[first]))]
    starts = np.flatnonzero(np.diff(stretch[first], prepend=-1))
    most = MAX_ELEMENTS_WITH_FENCES if len(order.atomics) else MAX_ELEMENTS
    return np.split(chosen[first], starts[1:])[:most]


def collisions(events, order, accesses, inside):
    """Pairs among the accesses to one element that race: at most one for each pair of places."""
    places = defaultdict(list)
    for i in accesses.tolist():
        key = int(events.site[i]), int(events.kind[i])
        places[key].append(i)
    for one, other in combinations_with_replacement(places, 2):
        kinds = one[1], other[1]
        if kinds in ((READ, READ), (ATOMIC, ATOMIC)):
            continue
        pair = first_collision(events, order, places[one], places[other], inside)
        if pair:
            yield pair


def first_collision(events, order, ones, others, inside):
    """The first unordered pair of two threads of one block, or (inside=False) of two blocks."""
    a = np.array(ones[:MAX_PAIRS])
    b = np.array(others[:MAX_PAIRS])
    if inside:
        meet = events.thread[a][:, None] != events.thread[b]
        same_warp = events.warp[a][:, None] == events.warp[b]
        warp_met_between = order.warp_epoch[a][:, None] != order.warp_epoch[b]
        meet &= ~(same_warp & warp_met_between)
    else:
        meet = events.block[a][:, None] != events.block[b]
    for i, j in np.argwhere(meet)[:MAX_TRIES]:
        pair = int(a[i]), int(b[j])
        if not order.ordered(*pair) and not guesses(events, *pair):
            return pair
    return None


def guesses(events, a, b):
    """Whether one is an atomic, and the other a read that its thread checks by an atomic later.

    A loop of compare-and-swaps begins so: what it read may be old, and is then found to be.
    """
    read, atomic = (a, b) if events.kind[a] == READ else (b, a)
    if events.kind[read] != READ or events.kind[atomic] != ATOMIC:
        return False
    later = slice(read + 1, None)
    checked = events.kind[later] == ATOMIC
    for column in (events.thread, events.root, events.address):
        checked &= column[later] == column[read]
    return bool(checked.any())


class Order:
    """What puts one access before another, beside barriers of the block and the grid.

    cuda.syncwarp() orders the lanes that meet there. A cuda.threadfence() and then an atomic put
    what came before them before whatever follows another thread's later atomic on the same element
    and then a cuda.threadfence() (a lock, a flag). The second fence keeps old values from being
    read: where the first access is a read, or the second an atomic, none is needed.
    """

    def __init__(self, events):
        self.events = events
        self.warp_epoch = np.zeros(len(events), np.int64)
        # thread -> {number of a meeting of some lanes: index of its event}
        self.partial = defaultdict(dict)
        self._warp_barriers()
        self._find_atomics()
        ordering = (events.kind == SYNCWARP) | (events.kind == FENCE)
        ordering[self.atomics] = True
        # accesses of a thread between two of these are ordered alike
        self.phase = events.passed(ordering)

    def _warp_barriers(self):
        """Number the stretches between meetings of whole warps; remember meetings of some lanes."""
        events = self.events
        met = np.flatnonzero(events.kind == SYNCWARP)
        if not len(met):
            return
        columns = (events.warp, events.epoch, events.site, events.occurrence)
        numbers, _ = group(*(column[met] for column in columns))
        full = np.bincount(numbers)[numbers] == events.lanes_of(events.warp[met])
        happened = np.zeros(len(events), bool)
        happened[met[full]] = True
        self.warp_epoch = events.passed(happened)
        some = np.flatnonzero(~full)
        for i, number in zip(met[some], numbers[some], strict=True):
            thread = int(events.thread[i])
            self.partial[thread][number] = i

    def _find_atomics(self):
        """The atomics in order, each one's element, its thread's last fence before (-1: none)."""
        events = self.events
        last = {}
        self.fences = fences = np.flatnonzero(events.kind == FENCE)
        codes = (events.sites[site].code for site in events.site[fences])
        of_blocks = np.array(["threadfence_block" in code for code in codes], bool)
        self.wide_fences = fences[~of_blocks]
        self.atomics = np.flatnonzero(events.kind == ATOMIC) if len(fences) else fences
        self.element, _ = group(events.root[self.atomics], events.address[self.atomics])
        self.fence = np.full(len(self.atomics), -1)
        place = {i: n for n, i in enumerate(self.atomics.tolist())}
        for i in np.union1d(fences, self.atomics).tolist():
            thread = int(events.thread[i])
            if i in place:
                self.fence[place[i]] = last.get(thread, -1)
            else:
                last[thread] = i

    def ordered(self, a, b, without_second_fence=False):
        """Whether something puts access `a` before `b` or `b` before `a`."""
        return self._met(a, b) or any(
            self._before(*pair, without_second_fence) for pair in ((a, b), (b, a))
        )

    def _met(self, a, b):
        """Whether a meeting of some lanes lies between the two accesses."""
        thread = self.events.thread
        one = self.partial[int(thread[a])]
        other = self.partial[int(thread[b])]
        both = one.keys() & other.keys()
        return any((a < one[n]) != (b < other[n]) for n in both)

    def _precedes(self, i, j):
        """Whether event i comes before j for every schedule in a block; one of them is an array."""
        events = self.events
        same_thread = events.thread[i] == events.thread[j]
        same_block = events.block[i] == events.block[j]
        barrier_between = events.epoch[i] < events.epoch[j]
        return same_thread & (i <= j) | same_block & barrier_between

    def _before(self, a, b, without_second_fence):
        """Whether `a`, a fence, an atomic, another's later one there, a fence and `b` follow."""
        if not len(self.atomics):
            return False
        kind = self.events.kind
        released = (self.fence >= 0) & self._precedes(a, self.fence)
        if without_second_fence or kind[a] != WRITE or kind[b] == ATOMIC:
            acquired = self._precedes(self.atomics, b)
        else:
            acquired = self._fenced_before(b)
        # by element: the first atomic after `a`, and the last one before `b`
        first = np.full(len(self.atomics), np.iinfo(np.int64).max)
        last = np.full(len(self.atomics), -1)
        np.minimum.at(first, self.element[released], self.atomics[released])
        np.maximum.at(last, self.element[acquired], self.atomics[acquired])
        return bool((first < last).any())

    def _fenced_before(self, b):
        """Which atomics come before a fence that comes before access `b`, all in its block."""
        events = self.events
        fences = self.wide_fences[self._precedes(self.wide_fences, b)]
        if not len(fences):
            return np.zeros(len(self.atomics), bool)
        last = np.full(events.thread.max() + 1, -1)
        np.maximum.at(last, events.thread[fences], fences)
        same_thread = self.atomics <= last[events.thread[self.atomics]]
        past_a_barrier = events.epoch[self.atomics] < events.epoch[fences].max()
        same_block = events.block[self.atomics] == events.block[b]
        return same_block & (same_thread | past_a_barrier)


def in_order(events, a, b):
    """Two accesses, the one to name first first: the writer, then the earlier in the source."""
    rank = {WRITE: 0, ATOMIC: 1, READ: 2}

    def key(event):
        return rank[int(events.kind[event])], events.site_of(event).line, event

    return sorted((a, b), key=key)


def lines_of(events, a, b):
    """What races are summed up by: the array and the two lines, whichever of them writes."""
    sites = events.site_of(a), events.site_of(b)
    lines = sorted((site.filename, site.line) for site in sites)
    return events.memory_of(a).name, *lines


def both_update(events, *pair):
    """Whether the threads of both accesses read the element and write it, all in one line."""
    line = events.line_of_site[0][events.site]
    here = line == line[pair[0]]
    for column in (events.root, events.address):
        here &= column == column[pair[0]]
    return all(
        {READ, WRITE} <= set(events.kind[here & (events.thread == events.thread[i])]) for i in pair
    )


def entry(events, order, pairs):
    """The Race that these pairs of accesses, all of the same two lines, are."""
    a, b = pairs[0]
    one = events.site_of(a)
    other = events.site_of(b)
    between = [events.block[i] != events.block[j] for i, j in pairs]
    elements = {(events.root[i], events.address[i]) for i, _ in pairs}
    threads = int(events.thread[a]), int(events.thread[b])
    return Race(
        one.filename,
        one.line,
        one.code,
        events.memory_of(a).name,
        events.operation_of(a),
        Place(other.filename, other.line, other.code),
        events.operation_of(b),
        threads,
        events.element_of(a),
        len(elements),
        not all(between),
        any(between),
        both_update(events, a, b),
        order.ordered(a, b, without_second_fence=True),
        (a, b),
    )
