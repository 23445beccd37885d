"""All-reduces as schedules: who sends which part to whom in which step, for any number of ranks.

A schedule can be run on NumPy arrays, so that one sees that it is right, and its cost counted:
steps, and bytes through the busiest link. kernels/all_reduce.cuh does the same on GPUs.

    schedule = ring(4)
    run(schedule, arrays)                      # every rank's array becomes the sum
    seconds(schedule, bytes, trip, beta)       # trip a step, beta bytes a second of a link
"""

import itertools
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Send:
    """One message: part number `part` of `parts` goes from a rank to another, and is added or
    copied.
    """

    source: int
    target: int
    part: int
    adds: bool


@dataclass(frozen=True)
class Schedule:
    """steps: what is sent at the same time. A message has `parts` parts of the same size."""

    ranks: int
    parts: int
    steps: tuple[tuple[Send, ...], ...]


def naive(n: int) -> Schedule:
    """Everyone sends everything to rank 0, which adds up and sends the sum to everyone."""
    others = range(1, n)
    there = tuple(Send(rank, 0, 0, adds=True) for rank in others)
    back = tuple(Send(0, rank, 0, adds=False) for rank in others)
    return Schedule(n, 1, (there, back))


def tree(n: int) -> Schedule:
    """Pairs, then pairs of pairs: the sum is at rank 0 after log2(n) steps, and goes back the same
    way.
    """
    up, distance = [], 1
    while distance < n:
        senders = range(distance, n, 2 * distance)
        step = [Send(rank, rank - distance, 0, adds=True) for rank in senders]
        up.append(tuple(step))
        distance *= 2
    down = [tuple(map(returned, step)) for step in reversed(up)]
    return Schedule(n, 1, (*up, *down))


def returned(send: Send) -> Send:
    """The same part the other way, complete."""
    return Send(
        send.target,
        send.source,
        send.part,
        adds=False,
    )


def pairs(n: int) -> list[tuple[int, int]]:
    """(source, target) of everyone to everyone else."""
    return list(itertools.permutations(range(n), 2))


def one_shot(n: int) -> Schedule:
    """Everyone sends everything to everyone, and adds up."""
    step = tuple(Send(a, b, 0, adds=True) for a, b in pairs(n))
    return Schedule(n, 1, (step,))


def two_shot(n: int) -> Schedule:
    """Part r of everyone goes to rank r, which adds up and sends the sum to everyone."""
    scatter = tuple(Send(a, b, b, adds=True) for a, b in pairs(n))
    gather = tuple(Send(a, b, a, adds=False) for a, b in pairs(n))
    return Schedule(n, n, (scatter, gather))


def ring(n: int) -> Schedule:
    """Everyone sends to the next one: n - 1 steps that add, n - 1 that hand the sums round."""
    steps = []
    for step in range(2 * n - 2):
        adds = step < n - 1
        sends = []
        for rank in range(n):
            # What it has just added to, or got complete.
            part = (rank - step) % n
            sends.append(Send(rank, (rank + 1) % n, part, adds))
        steps.append(tuple(sends))
    return Schedule(n, n, tuple(steps))


SCHEDULES = {
    "naive": naive,
    "tree": tree,
    "one_shot": one_shot,
    "two_shot": two_shot,
    "ring": ring,
}


def run(schedule: Schedule, arrays: list[np.ndarray]) -> None:
    """Carry a schedule out, in place. Sends of one step happen at once: they read what was there
    before.
    """
    parts = [np.array_split(array, schedule.parts) for array in arrays]
    for step in schedule.steps:
        sent = [parts[send.source][send.part].copy() for send in step]
        for send, numbers in zip(step, sent, strict=True):
            target = parts[send.target][send.part]
            if send.adds:
                numbers = target + numbers
            target[...] = numbers


def bytes_of_busiest(schedule: Schedule, bytes: float) -> list[float]:
    """For each step what the busiest rank sends or receives, for a message of so many bytes."""
    busiest = []
    for step in schedule.steps:
        out = np.zeros(schedule.ranks)
        into = np.zeros(schedule.ranks)
        for send in step:
            out[send.source] += bytes / schedule.parts
            into[send.target] += bytes / schedule.parts
        most = max(out.max(), into.max())
        busiest.append(float(most))
    return busiest


def seconds(
    schedule: Schedule, bytes: float, trip: float, beta: float, launch: float = 0.0
) -> float:
    """Time by the model: a launch, and for each step a trip and the busiest link's bytes."""
    busiest = bytes_of_busiest(schedule, bytes)
    return launch + sum(trip + most / beta for most in busiest)
