"""A model by which to choose how many lanes share a row: small enough to compute in one's head.

The course's kernels choose by a list of cases and rules around it (`shapes.best_shape`), among more
ways than these. Where rows are whole accesses, the model's choice is near what its softmax takes.
"""

import random
from collections.abc import Callable
from math import exp, log, log2

from course.kernels.row_kernels.shapes import ACCESS, FLOAT, SMS

LANES = tuple(1 << power for power in range(11))  # that may share a row: 1, 2, 4 ... 1024
KEPT = 32  # values that a lane keeps in registers, at most
LONGEST = KEPT * LANES[-1]
SM_THREADS, SM_REGISTERS = 2048, 65_536  # of an SM; a register holds one float
OWN = 32  # registers of a lane besides the values that it keeps
START, READ, STEP = 4, 20, 1  # turns: to begin, for an access, for a step of an agreement
MOST_ROWS = 1 << 20
DRAWN = 200

#: (rows, columns) that the table below was made with
TUNED = (
    (1 << 20, 32),
    (1 << 15, 1024),
    (1 << 13, 4096),
    (1 << 11, 16_384),
    (64, 1024),
    (64, 16_384),
)


def fits(columns: int, lanes: int) -> bool:
    """Whether so many lanes hold a row of floats in their registers."""
    return columns <= KEPT * lanes


def turns(rows: int, columns: int, lanes: int) -> float:
    """How long the rows take, if so many lanes share a row: a model of an H200."""
    accesses = -(-columns // (lanes * ACCESS // FLOAT))  # of a lane, one after the other
    registers = OWN + accesses * ACCESS // FLOAT  # of a lane
    threads = min(SM_THREADS, SM_REGISTERS // registers)  # of an SM, at one time
    at_once = SMS * max(1, threads // lanes)  # rows; the others wait for the next round
    rounds = -(-rows // at_once)
    return rounds * (START + READ * accesses + STEP * log2(lanes))


def least(rows: int, columns: int) -> float:
    """The turns of the best choice."""
    return min(turns(rows, columns, lanes) for lanes in LANES if fits(columns, lanes))


def share(rows: int, columns: int, lanes) -> float:
    """The turns of the best choice divided by those of this one; 0 for lanes that cannot be."""
    if lanes not in LANES or not fits(columns, lanes):
        return 0.0
    return least(rows, columns) / turns(rows, columns, lanes)


def by_table(rows: int, columns: int) -> int:
    """What was best for the nearest of the `TUNED` shapes, whose rows are as long or longer."""
    able = [shape for shape in TUNED if shape[1] >= columns] or TUNED[-1:]
    nearest = min(able, key=lambda shape: _apart(shape, (rows, columns)))
    choices = [lanes for lanes in LANES if fits(nearest[1], lanes)]
    return min(choices, key=lambda lanes: turns(*nearest, lanes))


def _apart(one: tuple[int, int], other: tuple[int, int]) -> float:
    """How far two shapes are apart, on a scale of powers."""
    return sum(abs(log(a / b)) for a, b in zip(one, other, strict=True))


def drawn(seed: int, count: int = DRAWN) -> list[tuple[int, int]]:
    """Shapes that nobody tuned for."""
    draw = random.Random(seed)
    longest = TUNED[-1][1]  # so that the table has a longer row for each
    return [
        (round(MOST_ROWS ** draw.random()), round(longest ** draw.random())) for _ in range(count)
    ]


def judged(seed: int = 1, **ways: Callable[[int, int], int]) -> str:
    """Each way to choose, on the shapes of the table and on drawn ones: the geometric mean of the
    best choice's turns over the chosen one's, and the worst.

    ways: a name -> a function of rows and columns that returns lanes.
    """
    sets = {"tuned": TUNED, "drawn": drawn(seed)}
    lines = []
    for name, way in ways.items():
        told = [f"{name:<8}"]
        for label, shapes in sets.items():
            shares = {shape: share(*shape, way(*shape)) for shape in shapes}
            worst = min(shares, key=shares.get)
            told.append(f"{label}: mean {_mean(shares.values()):4.0%}, worst {shares[worst]:4.0%}")
        lines.append("  ".join(told) + " at {:,} x {:,}".format(*worst))
    return "\n".join(lines)


def _mean(shares) -> float:
    """The geometric mean; 0 if one is."""
    shares = list(shares)
    return exp(sum(map(log, shares)) / len(shares)) if all(shares) else 0.0
