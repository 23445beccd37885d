"""All-reduces as schedules: who sends which part to whom in which step, for any number of ranks.

A schedule can be run on NumPy arrays, so that one sees that it is right, and its cost counted:
steps, and bytes through the busiest link. kernels/all_reduce.cuh does the same on GPUs.

    schedule = ring(4)
    run(schedule, arrays)                      # every rank's array becomes the sum
    seconds(schedule, bytes, trip, beta)       # trip a step, beta bytes a second of a link
"""

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
    there = tuple(Send(rank, 0, 0, adds=True) for rank in range(1, n))
    back = tuple(Send(0, rank, 0, adds=False) for rank in range(1, n))
    return Schedule(n, 1, (there, back))


def tree(n: int) -> Schedule:
    """Pairs, then pairs of pairs: the sum is at rank 0 after log2(n) steps, and goes back the same
    way.
    """
    up, distance = [], 1
    while distance < n:
        senders = range(distance, n, 2 * distance)
        up.append(tuple(Send(rank, rank - distance, 0, adds=True) for rank in senders))
        distance *= 2
    down = [tuple(Send(s.target, s.source, 0, adds=False) for s in step) for step in reversed(up)]
    return Schedule(n, 1, (*up, *down))


def one_shot(n: int) -> Schedule:
    """Everyone sends everything to everyone, and adds up."""
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    return Schedule(n, 1, (tuple(Send(a, b, 0, adds=True) for a, b in pairs),))


def two_shot(n: int) -> Schedule:
    """Part r of everyone goes to rank r, which adds up and sends the sum to everyone."""
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    scatter = tuple(Send(a, b, b, adds=True) for a, b in pairs)
    gather = tuple(Send(a, b, a, adds=False) for a, b in pairs)
    return Schedule(n, n, (scatter, gather))


def ring(n: int) -> Schedule:
    """Everyone sends to the next one: n - 1 steps that add, n - 1 that hand the sums round."""
    steps = []
    for step in range(2 * n - 2):
        adds = step < n - 1
        # The part that rank r has just added to, and that is complete after step n - 2 at rank r +
        # 1.
        steps.append(
            tuple(Send(rank, (rank + 1) % n, (rank - step) % n, adds) for rank in range(n))
        )
    return Schedule(n, n, tuple(steps))


SCHEDULES = {f.__name__: f for f in (naive, tree, one_shot, two_shot, ring)}


def run(schedule: Schedule, arrays: list[np.ndarray]) -> None:
    """Carry a schedule out, in place. Sends of one step happen at once: they read what was there
    before.
    """
    parts = [np.array_split(array, schedule.parts) for array in arrays]
    for step in schedule.steps:
        sent = [(send, parts[send.source][send.part].copy()) for send in step]
        for send, numbers in sent:
            target = parts[send.target][send.part]
            target[...] = target + numbers if send.adds else numbers


def bytes_of_busiest(schedule: Schedule, bytes: float) -> list[float]:
    """For each step what the busiest rank sends or receives, for a message of so many bytes."""
    busiest = []
    for step in schedule.steps:
        out, into = np.zeros(schedule.ranks), np.zeros(schedule.ranks)
        for send in step:
            out[send.source] += bytes / schedule.parts
            into[send.target] += bytes / schedule.parts
        busiest.append(float(max(out.max(), into.max())))
    return busiest


def seconds(
    schedule: Schedule, bytes: float, trip: float, beta: float, launch: float = 0.0
) -> float:
    """Time by the model: a launch, and for each step a trip and the busiest link's bytes."""
    return launch + sum(trip + most / beta for most in bytes_of_busiest(schedule, bytes))
