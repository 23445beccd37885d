"""The shapes on which the row kernels must hold: some to tune with, some drawn to judge by."""

import random
from dataclasses import dataclass

LONGEST = 262_144  # columns
MANY = 1 << 25  # elements of a matrix of many rows
MOST_ROWS = 1 << 23
HELD_OUT = 20


@dataclass(frozen=True)
class GridShape:
    """A matrix. gap: elements between its rows. before: elements from a multiple of 16 bytes to
    the first one.
    """

    rows: int
    columns: int
    gap: int = 0
    before: int = 0

    def __str__(self):
        gap = f", {self.gap} apart" if self.gap else ""
        before = f", {self.before} in" if self.before else ""
        return f"{self.rows} x {self.columns}{gap}{before}"


def many(columns: int, gap: int = 0, before: int = 0) -> GridShape:
    """So many rows that memory is what takes time."""
    return GridShape(min(MOST_ROWS, MANY // columns), columns, gap, before)


#: The shapes that the kernels' deals may be chosen by
TUNING = (
    *(many(columns) for columns in (1, 3, 8, 17, 32, 33, 64, 100, 127, 128)),
    *(many(columns) for columns in (255, 256, 500, 513, 768, 1000, 1024, 2047, 2048)),
    *(many(columns) for columns in (4096, 8191, 16_384, 32_768, 50_257, 65_536, 128_256)),
    many(LONGEST),
    many(1000, gap=1),
    many(100, gap=28),
    many(4096, gap=8),
    many(8191, gap=1),
    many(1023, before=1),
    GridShape(1, 50_257),
    GridShape(1, LONGEST),
    GridShape(4, 131_072),
    GridShape(8, 4096),
    GridShape(16, 1000),
    GridShape(64, 12_288),
    GridShape(64, 33),
    GridShape(1000, 2050),
)


def drawn(seed: int, count: int = HELD_OUT) -> tuple[GridShape, ...]:
    """Shapes of the same kinds, drawn by chance: nobody tuned for them."""
    draw = random.Random(seed)
    shapes = {}
    while len(shapes) < count:
        shape = _one(draw)
        if shape not in TUNING:
            shapes[shape] = None
    return tuple(shapes)


def _one(draw: random.Random) -> GridShape:
    """Columns are even on a scale of powers, and every third length is a multiple of 8."""
    columns = round(LONGEST ** draw.random())
    if draw.random() < 1 / 3:
        columns = -(-columns // 8) * 8
    elements = MANY
    kind = draw.random()
    if kind < 0.2:  # few rows
        elements = columns * draw.randint(1, 100)
    elif kind < 0.35:  # not quite enough to fill the GPU
        elements = MANY >> draw.randint(2, 6)
    gap = draw.choice((1, 3, 8, 28)) if draw.random() < 0.15 else 0
    before = draw.choice((1, 4)) if draw.random() < 0.1 else 0
    rows = max(1, min(MOST_ROWS, min(elements, MANY) // columns))
    return GridShape(rows, columns, gap, before)
