"""The products on which one function must hold: some to tune with, some drawn to judge by."""

import random
from dataclasses import dataclass

from course.kernels.matmul.any_size import ALONG_K
from course.kernels.matmul.forms import Problem

HELD_OUT = 16
MOST = 2 * 8192**3  # FLOP of a product that is drawn


@dataclass(frozen=True)
class GridShape:
    """(m, k) times (k, n), so many times.

    linear: the second is stored as (n, k), as for TF32 and 8-bit floats always, for float32 never.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    linear: bool = False

    def problem(self, kind: str) -> Problem:
        """The product of numbers of this kind."""
        along_k = kind != "fp32" and (self.linear or kind in ALONG_K)
        return Problem(kind, self.m, self.n, self.k, self.batch, along_k)

    def __str__(self):
        batch = f"{self.batch} x " if self.batch > 1 else ""
        linear = " linear" if self.linear else ""
        return f"{batch}{self.m} x {self.n} x {self.k}{linear}"


SQUARES = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
#: The shapes that the model may be fitted by: squares, then a transformer's products
TUNING = (
    *(GridShape(n, n, n) for n in SQUARES),
    GridShape(1000, 1000, 1000),
    GridShape(3000, 1500, 2200),
    GridShape(16, 4096, 4096, linear=True),  # tokens, features out, features in
    GridShape(128, 11_008, 4096, linear=True),
    GridShape(512, 4096, 11_008, linear=True),
    GridShape(2048, 12_288, 4096, linear=True),
    GridShape(4096, 4096, 14_336, linear=True),
    GridShape(16_384, 1024, 1024, linear=True),
    GridShape(1024, 50_304, 768, linear=True),
    GridShape(768, 3072, 16_384),  # gradients of weights: k is long
    GridShape(512, 512, 16_384),
    GridShape(4096, 4096, 128),
    GridShape(8192, 64, 8192),
    GridShape(1024, 1024, 64, batch=96, linear=True),  # attention: scores, then values
    GridShape(1024, 64, 1024, batch=96),
    GridShape(64, 64, 64, batch=512),
    GridShape(256, 256, 256, batch=32),
)
#: A model's width, of which layers are multiples
WIDTHS = (512, 768, 1024, 1536, 2048, 2560, 3072, 4096, 5120)


def drawn(seed: int, count: int = HELD_OUT) -> tuple[GridShape, ...]:
    """Shapes of the same kinds, drawn by chance: nobody tuned for them."""
    draw = random.Random(seed)
    shapes = {}
    while len(shapes) < count:
        shape = _one(draw)
        flops = 2 * shape.m * shape.n * shape.k * shape.batch
        if shape not in TUNING and flops <= MOST:
            shapes[shape] = None
    return tuple(shapes)


def _side(draw: random.Random, least: int, most: int, step: int = 16) -> int:
    """A size, even on a scale of powers."""
    size = least * (most / least) ** draw.random()
    return max(1, round(size / step)) * step


def _one(draw: random.Random) -> GridShape:
    kind = draw.choice(("square", "layer", "layer", "gradient", "any", "batch"))
    if kind == "square":
        n = _side(draw, 128, 8192, 64)
        return GridShape(n, n, n)
    if kind == "layer":
        width = draw.choice(WIDTHS)
        wide = width * draw.choice((1, 3, 4))
        sides = draw.choice(((width, wide), (wide, width)))
        return GridShape(_side(draw, 16, 16_384), *sides, linear=True)
    if kind == "gradient":
        width = draw.choice(WIDTHS)
        return GridShape(width, width * draw.choice((1, 3, 4)), _side(draw, 1024, 32_768))
    if kind == "any":
        return GridShape(*(_side(draw, 64, 8192) for _ in "mnk"))
    length = _side(draw, 64, 2048)
    heads = draw.choice((8, 16, 32, 64, 128))
    features = draw.choice((64, 128))
    if draw.random() < 0.5:
        return GridShape(length, length, features, heads, linear=True)
    return GridShape(length, features, length, heads)
