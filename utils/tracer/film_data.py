"""A film (film.py) as data for the player: numbers and words, as JSON can hold them."""

from functools import cached_property

import numpy as np

from .counts import WARP
from .film_order import BARRIERS
from .film_words import described, shortened, warp_name
from .record import (
    ACCESSES,
    ARRIVED,
    BARRIER,
    BEGUN,
    FLIGHTS,
    GRID_BARRIER,
    LINE,
    MEETING,
    SYNCWARP,
    WORDS,
)

NAMES = {
    **WORDS,
    LINE: "line",
    BARRIER: "barrier",
    GRID_BARRIER: "barrier",
    SYNCWARP: "meet",
    MEETING: "meet",
    BEGUN: "begun",
    ARRIVED: "arrived",
}


NO_MISTAKE = "No race and no wrong access in this run."


class FilmData:
    """All that the player draws of a Film. `player.js` says what the fields mean."""

    def __init__(self, film):
        self.film = film
        self.events = film.events

    def whole(self):
        """All of it."""
        steps = self.film.all_steps
        shown = []
        before = {"statements": 0, "sectors": 0, "fewest": 0, "passes": 0, "smooth": 0}
        totals = dict(before)
        kept = set(self.film.numbers)
        for number, step in enumerate(steps):
            totals["statements"] += step.statements
            totals["sectors"] += step.sectors
            totals["passes"] += step.passes
            totals["fewest" if step.sectors else "smooth"] += step.fewest
            if number in kept:
                shown.append(self._row_of_data(number, step, list(totals.values())))
        return {
            "title": self.film.trace.title,
            "leftOut": self.film.left_out,
            "verdict": "" if self.film.trace.problems else NO_MISTAKE,
            "source": [[line, text] for _, line, text in self.film.trace.source],
            "warps": [
                [
                    warp_name(self.film, warp),
                    self.film.blocks.index(self.film.block_of(warp)),
                    int(self.events.lanes_of(np.array([warp]))[0]),
                    warp % self.events.warps_a_block * WARP,
                ]
                for warp in self.film.warps
            ],
            "blocks": [
                self.film.trace.point(block, self.film.trace.grid) for block in self.film.blocks
            ],
            "block": list(self.film.trace.block),
            "unit": self.film.trace.unit,
            "arrays": [self._array(number) for number in self._arrays],
            "barriers": any(step.kind in BARRIERS for step in steps),
            "total": len(steps),
            "stop": None if self.film.stop is None else self.film.numbers.index(self.film.stop),
            "wrong": self._marks(),
            "steps": shown,
        }

    @cached_property
    def _arrays(self):
        """The arrays that are accessed, each as the number of a memory that shows it."""
        events = self.events
        first = {}
        for step in self.film.all_steps:
            if step.kind in (*ACCESSES, *FLIGHTS):
                for i in step.events:
                    first.setdefault(self._key(events.memory_of(i)), int(events.memory[i]))
        return list(first.values())

    @staticmethod
    def _key(memory):
        return memory.root, memory.start, memory.shape, memory.dtype.str

    @cached_property
    def _array_of(self):
        """For each memory that is used, the number of its array."""
        memories = self.events.memories
        return {self._key(memories[number]): n for n, number in enumerate(self._arrays)}

    @cached_property
    def _units(self):
        """For each array the bytes in which offsets into it are told: all are multiples of them."""
        events = self.events
        units = [0] * len(self._arrays)
        for number, memory in enumerate(events.memories):
            array = self._array_of.get(self._key(memory))
            if array is not None:
                offsets = events.offset[events.memory == number]
                units[array] = int(np.gcd.reduce([units[array], memory.dtype.itemsize, *offsets]))
        return [max(1, unit) for unit in units]

    def _array(self, number):
        memory = self.events.memories[number]
        users = self.events.block[self.events.memory == number]
        block = int(users[0]) if memory.space == "shared" and len(users) else None
        return {
            "name": memory.name,
            "space": memory.space,
            "shape": [int(n) for n in memory.shape],
            "strides": [int(n) for n in memory.strides],
            "size": int(memory.dtype.itemsize),
            "start": int(memory.start),
            "unit": self._units[self._array_of[self._key(memory)]],
            "block": self.film.blocks.index(block) if block in self.film.blocks else None,
        }

    def _row_of_data(self, number, step, totals):
        events = self.events
        own = list(step.events)
        lanes = events.lane[own].tolist()
        row = {
            "k": NAMES.get(step.kind, step.kind),
            "w": self.film.warps.index(step.warp),
            "r": self.film.row_of(step),
            "m": sum({1 << lane for lane in lanes}),
            "c": totals,
            "t": described(self.film, step, number),
        }
        if len(self.film.numbers) < len(self.film.all_steps):
            row["n"] = number
        if step.opens:
            row["o"] = 1
        if step.kind in FLIGHTS:
            row["g"] = self._array_of[self._key(events.memory_of(own[0]))]
            row["p"] = packed((events.offset[own] // self._units[row["g"]]).tolist())
            row["z"] = int(events.size[own[0]])
        if step.kind in ACCESSES:
            row["a"] = self._array_of[self._key(events.memory_of(own[0]))]
            row["p"] = packed((events.offset[own] // self._units[row["a"]]).tolist())
            row["z"] = int(events.size[own[0]])
            row["f"] = [step.sectors or step.passes, step.fewest, step.queue]
            if any(
                (int(events.root[i]), int(events.address[i])) in self.film.contested for i in own
            ):
                row["q"] = 1
            values = [shortened(v) for v in events.value[own].tolist()]
            if any(value is not None for value in values):
                row["v"] = packed(values)
        return row

    def _marks(self):
        """What is marked where it goes wrong: the array, the byte, the lanes as [warp, lane]."""
        if not self.film.wrong:
            return None
        events = self.events
        own = list(self.film.wrong)
        who = [[self.film.warps.index(int(events.warp[i])), int(events.lane[i])] for i in own]
        array = self._array_of[self._key(events.memory_of(own[0]))]
        return {"a": array, "p": int(events.offset[own[0]]), "who": who}


def packed(numbers):
    """Numbers as a list, or, where they go up evenly, as {"from", "by"}."""
    if len(numbers) > 2 and all(isinstance(n, int) for n in numbers):
        by = numbers[1] - numbers[0]
        if (
            numbers == list(range(numbers[0], numbers[0] + by * len(numbers), by))
            if by
            else len(set(numbers)) == 1
        ):
            return {"from": numbers[0], "by": by}
    return numbers


def unpacked(numbers, count):
    """What `packed` was given, of so many numbers."""
    if isinstance(numbers, dict):
        return [numbers["from"] + numbers["by"] * n for n in range(count)]
    return numbers
