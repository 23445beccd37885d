"""A film of a launch: its steps one after the other, in an order in which a GPU may take them.

A step is one instruction of one warp, as README.md takes them together: what its lanes read, write,
change or wait for. The warps of the blocks that are shown take turns; a barrier holds them as it
holds threads. Where threads race, the two that do come in the order in which they came in the run:
the one that was first runs ahead, as nothing forbids.

`player.py` makes of this what one can watch.
"""

from collections import defaultdict
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..cpu.numba_cuda import BarrierError
from ..occupancy import ceil_div
from . import counts, races
from .counts import SECTOR
from .film_data import FilmData
from .film_order import BARRIERS, STUCK, Step, Turns, one_by_one
from .film_words import described
from .record import (
    ACCESSES,
    ATOMIC,
    BARRIER,
    FLIGHTS,
    GRID_BARRIER,
    LINE,
    MEETING,
    SYNCWARP,
    TraceError,
)

#: Steps of a film, and warps of several blocks, unless the caller says otherwise
MOST_STEPS = 2_000
MOST_WARPS = 4
#: Of a film that is too long, the share of its steps that is kept from the beginning on
AT_FIRST = 0.6
KINDS = (*ACCESSES, *FLIGHTS, LINE, BARRIER, GRID_BARRIER, SYNCWARP, MEETING)


class Film:
    """The steps of some blocks of a Trace.

    blocks: which are shown, by number; None: those of a race if there is one, else the first few.
    most: steps; of a longer film some are left out, and it says so.
    """

    def __init__(self, trace, blocks=None, most=MOST_STEPS):
        self.trace = trace
        self.events = trace.events
        self.most = most
        self.blocks = self._blocks(blocks)

    def _blocks(self, asked):
        if asked is not None:
            blocks = [asked] if isinstance(asked, int) else list(asked)
            wrong = [block for block in blocks if not 0 <= block < self.trace.blocks]
            if wrong or not blocks:
                raise TraceError(f"there are {self.trace.blocks:,} blocks, from 0; not {asked}")
            return sorted(set(blocks))
        number = max(1, MOST_WARPS // self.events.warps_a_block)
        blocks = list(range(min(number, self.trace.blocks)))
        wrong = self.trace.races[0].events if self.trace.races else self._mistakes[:1]
        involved = {int(self.events.block[i]) for i in wrong}
        return blocks if involved <= set(blocks) else sorted(involved)

    @cached_property
    def _mistakes(self):
        """Accesses outside their arrays, and reads of what nothing has written, as events."""
        wrong = np.flatnonzero(self.events.outside).tolist()
        return sorted({*wrong, *counts.unwritten(self.events).tolist()})

    @cached_property
    def warps(self):
        """The warps that are shown, by their number through the grid."""
        a_block = self.events.warps_a_block
        return [block * a_block + warp for block in self.blocks for warp in range(a_block)]

    @cached_property
    def row(self):
        """For each place in the source, the number of its row in `Trace.source`."""
        rows = {(name, line): n for n, (name, line, _) in enumerate(self.trace.source)}
        return [rows[site.filename, site.line] for site in self.events.sites]

    # ---- the steps

    @cached_property
    def _groups(self):
        """warp -> its Steps in order."""
        events = self.events
        is_access = np.isin(events.kind, ACCESSES)
        is_seen = np.isin(events.kind, KINDS) & np.isin(events.warp, self.warps)
        if len(events.memories):
            is_seen &= ~is_access | np.isin(events.spaces[events.memory], ("global", "shared"))
        chosen = np.flatnonzero(is_seen)
        if not len(chosen):
            return {}
        numbers, first = counts.requests(events, chosen)
        order = np.argsort(numbers, kind="stable")
        members = np.split(chosen[order], np.flatnonzero(np.diff(numbers[order])) + 1)
        costs = self._costs(chosen, numbers, len(first))
        of_warp = defaultdict(list)
        for own, cost in zip(members, costs, strict=True):
            own = own[np.argsort(events.lane[own], kind="stable")]
            step = Step(
                int(events.kind[own[0]]), int(events.warp[own[0]]), tuple(own.tolist()), **cost
            )
            of_warp[step.warp].append(step)
        return {
            warp: self._folded(one_by_one(self.events, self.row_of, steps))
            for warp, steps in of_warp.items()
        }

    def _costs(self, chosen, numbers, count):
        """For each request, what it costs: fields of a Step."""
        events = self.events
        costs = [{} for _ in range(count)]
        is_access = np.isin(events.kind[chosen], ACCESSES)
        spaces = events.spaces[events.memory[chosen]] if len(events.memories) else is_access
        for space in ("global", "shared"):
            mine = is_access & (spaces == space)
            if not mine.any():
                continue
            groups, again = np.unique(numbers[mine], return_inverse=True)
            if space == "global":
                touched = counts.sectors(events, chosen[mine], again)
                asked = counts.unique_bytes(events, chosen[mine], again)
                for number, one, bytes_ in zip(groups, touched, asked, strict=True):
                    costs[number] = {"sectors": int(one), "fewest": int(ceil_div(bytes_, SECTOR))}
            else:
                _, passes, fewest = counts.passes(events, chosen[mine], again)
                for number, one, least in zip(groups, passes, fewest, strict=True):
                    costs[number] = {"passes": int(one), "fewest": int(least)}
        atomic = events.kind[chosen] == ATOMIC
        for number in np.unique(numbers[atomic]).tolist():
            own = chosen[numbers == number]
            places = np.stack([events.root[own], events.address[own]])
            costs[number]["queue"] = int(np.unique(places, axis=1, return_counts=True)[1].max())
        return costs

    def _folded(self, steps):
        """The steps without statements that are seen by the access that they begin with."""
        kept = []
        for step in steps:
            if kept and kept[-1].kind == LINE != step.kind and self._is_same_place(kept[-1], step):
                step = replace(step, statements=kept.pop().statements)
            elif step.kind == LINE:
                step = replace(step, statements=1)
            kept.append(step)
        return kept

    def _is_same_place(self, one, other):
        events = self.events
        here = self.row_of(one) == self.row_of(other)
        return here and np.array_equal(
            events.lane[list(one.events)], events.lane[list(other.events)]
        )

    def row_of(self, step):
        """The row of the source at which a step is."""
        return self.row[self.events.site[step.events[0]]]

    @cached_property
    def race(self):
        """The two accesses that the film shows racing, in the order of the run; None if none do.

        If there is a choice, the earliest two that come in another order than they would if all
        went in step: before them no other race has spoilt a value.
        """
        if not self.trace.races:
            return None
        place = {}
        for number, step in enumerate(self._turns.steps(self._groups)):
            place |= dict.fromkeys(step.events, number)
        pairs = [pair for pair in self._pairs if pair[0] in place and pair[1] in place]
        surprising = [(a, b) for a, b in pairs if place[a] > place[b]]
        return min(surprising or pairs, key=lambda pair: pair[::-1], default=None)

    @cached_property
    def _pairs(self):
        """All pairs of accesses that race, each in the order of the run."""
        by_line = {}
        if self.trace.races:
            by_line = races.racing_pairs(self.events, races.Order(self.events))
        return [tuple(sorted(pair)) for pairs in by_line.values() for pair in pairs]

    @cached_property
    def contested(self):
        """The elements that are raced for, as (root, address)."""
        events = self.events
        return {(int(events.root[i]), int(events.address[i])) for pair in self._pairs for i in pair}

    @cached_property
    def all_steps(self):
        """Every step, in order."""
        groups = self._groups
        leader = None
        if self.race is not None:
            first, second = self.race
            warp, other = (int(self.events.warp[i]) for i in self.race)
            if warp == other:
                groups = {**groups, warp: self._ahead(groups[warp], first)}
            else:
                leader = first, second
        steps = list(self._turns.steps(groups, leader))
        if isinstance(self.trace.error, BarrierError):
            last = next((s for s in reversed(steps) if s.kind in BARRIERS and not s.opens), None)
            if last is not None:
                steps.append(Step(STUCK, last.warp, last.events))
        return steps

    def _ahead(self, steps, first):
        """A warp's steps; where need be, the thread of access `first` on its own up to there."""
        events = self.events
        thread, epoch = events.thread[first], events.epoch[first]
        place = {i: n for n, step in enumerate(steps) for i in step.events}
        second = self.race[1]
        if place[second] > place[first] or place[second] == place[first]:
            return steps
        alone, rest = [], []
        start = None
        for number, step in enumerate(steps):
            own = [i for i in step.events if events.thread[i] == thread]
            if events.epoch[step.events[0]] != epoch or number > place[first] or not own:
                rest.append(step)
                continue
            if start is None:
                start = len(rest)
            alone.append(self._part(step, own))
            others = [i for i in step.events if events.thread[i] != thread]
            if others:
                rest.append(self._part(step, others))
        return rest[:start] + alone + rest[start:]

    def _part(self, step, own):
        """A step of some of its lanes, with what it costs then."""
        chosen = np.array(own)
        cost = self._costs(chosen, np.zeros(len(own), np.int64), 1)[0]
        return Step(step.kind, step.warp, tuple(own), step.statements, **cost)

    def block_of(self, warp):
        return warp // self.events.warps_a_block

    # ---- what is shown of them

    @cached_property
    def numbers(self):
        """The steps that are kept, as numbers among all."""
        total = len(self.all_steps)
        if total <= self.most:
            return list(range(total))
        first = int(self.most * AT_FIRST)
        later = np.linspace(first, total - 1, self.most - first).astype(int).tolist()
        kept = {*range(first), *later}
        if self.stop is not None and self.stop not in kept:
            kept.discard(max(kept - {self.stop, total - 1} - set(range(first))))
            kept.add(self.stop)
        return sorted(kept)

    @cached_property
    def stop(self):
        """The step, among all, at which it goes wrong: a race, or a barrier that never opens."""
        steps = self.all_steps
        if steps and steps[-1].kind == STUCK:
            return len(steps) - 1
        if self.race is not None:
            moments = {self.race[0] if self.is_too_early else self.race[1]}
        else:
            moments = set(self._mistakes)
        places = (n for n, step in enumerate(steps) if moments.intersection(step.events))
        return next(places, None)

    @cached_property
    def wrong(self):
        """The accesses of the step at which it goes wrong that are shown to do so."""
        if self.race is not None:
            return self.race
        if self.stop is None or self.all_steps[self.stop].kind == STUCK:
            return ()
        step = self.all_steps[self.stop]
        return tuple(sorted(set(self._mistakes).intersection(step.events))[:1])

    @cached_property
    def is_too_early(self):
        """Whether the race's first access reads what nothing has written yet."""
        return self.race is not None and self.race[0] in self._mistakes

    @property
    def left_out(self):
        """What of the launch the film does not show, in a sentence; "" if nothing."""
        parts = []
        if len(self.blocks) < self.trace.blocks:
            shown = ", ".join(self.trace.point(block, self.trace.grid) for block in self.blocks)
            many = "s" * (len(self.blocks) > 1)
            parts.append(f"{self.trace.unit}{many} {shown} of {self.trace.blocks:,}")
        total = len(self.all_steps)
        if total > len(self.numbers):
            every = (total - self.most * AT_FIRST) / (self.most * (1 - AT_FIRST))
            parts.append(
                f"{len(self.numbers):,} of {total:,} steps: the first "
                f"{int(self.most * AT_FIRST):,}, then one in {every:.3g}"
            )
        return f"Shown: {'; '.join(parts)}." if parts else ""

    def __len__(self):
        return len(self.numbers)

    def describe(self, number):
        """A step that is shown, from 0, in words."""
        number = self.numbers[number]
        return described(self, self.all_steps[number], number)

    @cached_property
    def data(self):
        """All that the player draws, as JSON can hold it."""
        return FilmData(self).whole()

    @cached_property
    def _turns(self):
        return Turns(self.events, self.warps, self.blocks)
