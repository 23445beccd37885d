"""The order of a film's steps: within a warp that of its lanes, between warps in turns."""

from collections import defaultdict
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from .record import BARRIER, FLIGHTS, GRID_BARRIER

BARRIERS = BARRIER, GRID_BARRIER
STUCK = "stuck"  # the kind of the step at which a barrier does not open


@dataclass(frozen=True)
class Step:
    """One instruction of one warp.

    kind: of its events, as `record` numbers them. warp: its number through the grid.
    events: their indices in `Trace.events`, by lane. statements: that it begins.
    sectors, fewest, passes, queue: of an access: 32-byte sectors of global memory and how few would
        do; passes over the banks of shared memory; the most lanes at one element of an atomic.
    opens: with it all threads of the block are at a barrier.
    """

    kind: object
    warp: int
    events: tuple
    statements: int = 0
    sectors: int = 0
    fewest: int = 0
    passes: int = 0
    queue: int = 0
    opens: bool = False


def one_by_one(events, row_of, steps):
    """A warp's steps in an order that is that of each of its lanes.

    A step comes once all its lanes have come to it; of two sides of a branch, which could both
    come now, the one that stands first in the source.
    """
    of_lane = defaultdict(list)
    for number, step in enumerate(steps):
        for i in step.events:
            of_lane[int(events.lane[i])].append((i, number))
    queues = [[n for _, n in sorted(queue, reverse=True)] for queue in of_lane.values()]
    missing = [len(step.events) for step in steps]
    ready, done, ordered = [], set(), []

    def arrive(queue):
        while queue and queue[-1] in done:
            queue.pop()
        if queue:
            missing[queue[-1]] -= 1
            if missing[queue[-1]] == 0:
                heappush(ready, (source_order(events, row_of, steps[queue[-1]]), queue[-1]))

    for queue in queues:
        arrive(queue)
    while len(ordered) < len(steps):
        if ready:
            number = heappop(ready)[1]
        else:  # lanes in an order that the rule of what is simultaneous did not foresee
            heads = {queue[-1] for queue in queues if queue}
            number = min(heads, key=lambda n: steps[n].events)
        done.add(number)
        ordered.append(steps[number])
        for queue in queues:
            if queue and queue[-1] == number:
                queue.pop()
                arrive(queue)
    return ordered


def source_order(events, row_of, step):
    """Where a step is in the source, after the barriers before it."""
    return int(events.epoch[step.events[0]]), row_of(step), step.events[0]


class Turns:
    """The warps of some blocks take turns."""

    def __init__(self, events, warps, blocks):
        self.in_run_order = bool(np.isin(events.kind, FLIGHTS).any())  # whose waits are not seen
        self.events = events
        self.warps = warps
        self.blocks = blocks

    def steps(self, groups, leader=None):
        """The warps' steps, in turns; a warp at a barrier waits until its block is there.

        leader: two accesses of different warps: the first one's warp, or block, runs ahead until it
        has made it.
        """
        events = self.events
        left = {warp: list(reversed(groups.get(warp, []))) for warp in self.warps}
        epoch = dict.fromkeys(self.blocks, 0)
        ahead = set()
        if leader:
            is_one_block = events.block[leader[0]] == events.block[leader[1]]
            who = events.warp if is_one_block else events.block
            of = {warp: int(warp if is_one_block else self.block_of(warp)) for warp in self.warps}
            ahead = {warp for warp in self.warps if of[warp] == int(who[leader[0]])}

        def ready(warp):
            steps = left[warp]
            return steps and events.epoch[steps[-1].events[0]] <= epoch[self.block_of(warp)]

        while any(left.values()):
            able = [warp for warp in self.warps if ready(warp)]
            if self.in_run_order:
                able = [min(able, key=lambda warp: max(left[warp][-1].events))]
            for warp in [w for w in able if w in ahead] or able:
                step = left[warp].pop()
                if step.kind in BARRIERS:
                    step = replace(step, opens=self._is_last(left, epoch, warp))
                yield step
                if leader and leader[0] in step.events:
                    ahead = set()
            for block in self.blocks:
                mine = [warp for warp in self.warps if self.block_of(warp) == block]
                if not any(ready(warp) for warp in mine):
                    if not self._waits_for_grid(left, epoch, mine):
                        epoch[block] += 1

    def _waits_for_grid(self, left, epoch, mine):
        """Whether a block has come to a barrier of the grid and other blocks have not."""
        if not (self.events.kind == GRID_BARRIER).any():
            return False

        def stage(warp):
            steps = left[warp]
            return int(self.events.grid_epoch[steps[-1].events[0]]) if steps else 1 << 60

        return min(map(stage, mine)) > min(map(stage, self.warps))

    def _is_last(self, left, epoch, warp):
        """Whether with this warp's arrival all threads of its block are at the barrier."""
        block = self.block_of(warp)
        now = epoch[block]
        mine = [w for w in self.warps if self.block_of(w) == block]
        still = [w for w in mine if left[w] and self.events.epoch[left[w][-1].events[0]] <= now]
        return not still and any(left[w] for w in mine)

    def block_of(self, warp):
        return warp // self.events.warps_a_block
