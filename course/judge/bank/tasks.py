"""The tasks of the bank: what was ordered, and what each candidate is judged by.

Their references compute in float64 and are as plain as they can be.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from course.judge import (
    Bound,
    Demands,
    Property,
    beyond,
    elementwise,
    exactly,
    sum_of_products,
)

MOST_COLUMNS = 90  # of a row, where a task draws them
FEW_COLUMNS = 45  # more than a warp has lanes, and few enough for engines that watch each access
WIDE = 30_000  # columns of a row whose results are all small
#: Units of 2^-24 that one power may be off: e^-d is 0 in float32 from d = 104 on, the difference d
#: is rounded, and a GPU's fast power adds as many units as d has
POWER = 250
PLACES = (0, 0, 50, -200, 3000)  # around which a row's numbers lie


@dataclass(frozen=True)
class Task:
    """An order: `judge(candidate, task.reference, task.inputs, task.demands)`."""

    name: str
    reference: Callable
    inputs: Callable
    demands: Demands


# ---- softmax of each row


def exact_softmax(x):
    """Of each row: e to the power of each number, divided by the sum of these."""
    x = np.asarray(x, np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def rows(rng, size, most=MOST_COLUMNS):
    """`size` rows of float32, each around a number of its own, which may be large.

    size: how many, with a drawn number of columns; or (rows, columns).
    """
    shape = size if isinstance(size, tuple) else (size, int(rng.integers(1, most)))
    around = rng.choice(PLACES, (shape[0], 1))
    return ((around + rng.normal(scale=3, size=shape)).astype(np.float32),)


def long_rows(rng):
    """Shapes of one row each, beyond a block, beyond 1,024, of thousands, of up to 100,000; of many
    long rows; and of more rows than 16 bits count.
    """
    square = tuple(int(one) for one in rng.integers(257, 400, 2))
    return [
        *((1, columns) for columns in beyond(rng)),
        square,
        (int(rng.integers(66_000, 70_000)), 2),
    ]


def wide_rows(rng, size):
    """A few rows, so wide that each result is small."""
    return (rng.normal(size=(min(size, 4), WIDE)).astype(np.float32),)


def on_torch(rng, size):
    """Rows as a tensor, on the GPU where there is one."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return (torch.from_numpy(rows(rng, size)[0]).to(device),)


def backwards(rng, arguments):
    """The same rows, their columns in reverse order."""
    return (np.ascontiguousarray(arguments[0][:, ::-1]),)


SOFTMAX = Task(
    "softmax",
    exact_softmax,
    rows,
    Demands(
        error=Bound(lambda x: x.shape[1] + POWER, magnitude="itself"),
        properties=(
            Property("columns reversed", backwards, lambda result, arguments: result[:, ::-1]),
        ),
        large=long_rows,
        library=("aten._softmax", "aten._log_softmax"),
        precision="float32",
    ),
)
ORDER = replace(  # what the twelve envelopes answer: few numbers, so that it takes seconds
    SOFTMAX,
    name="order",
    inputs=partial(rows, most=FEW_COLUMNS),
    demands=replace(
        SOFTMAX.demands,
        entry="softmax",
        sizes=(1, 2, 5),
        fresh=lambda rng: int(rng.integers(3, 8)),
        calls=3,
        seconds=30,
        rival=exact_softmax,
        timed_size=(1000, 200),
    ),
)
WIDE_SOFTMAX = replace(
    SOFTMAX, name="wide_softmax", inputs=wide_rows, demands=replace(SOFTMAX.demands, large=False)
)
SOFTMAX_ON_TORCH = Task(
    "softmax_torch",
    lambda x: exact_softmax(x.cpu()),
    on_torch,
    Demands(
        error=SOFTMAX.demands.error,
        large=long_rows,
        library=SOFTMAX.demands.library,
        precision="float32",
        timed_size=(4096, 4096),
    ),
)


# ---- products and sums of float32


def matrices(rng, size):
    """Two matrices that can be multiplied: rows x k and k x columns.

    size: the rows, with drawn numbers for the rest; or all three.
    """
    drawn = (size, *(int(rng.integers(1, MOST_COLUMNS)) for _ in range(2)))
    count, k, columns = size if isinstance(size, tuple) else drawn
    a = rng.normal(size=(count, k)).astype(np.float32)
    return a, rng.normal(size=(k, columns)).astype(np.float32)


def long_products(rng):
    """Sizes of which one is long, and the others few; each of the three is long once."""
    longest = beyond(rng)
    sizes = [(longest[0],) * 3]
    for number, axis in enumerate(rng.permutation(3)):
        few = [int(n) for n in rng.integers(1, 4, 3)]
        few[axis] = longest[number + 1]
        sizes.append(tuple(few))
    return sizes


PRODUCT = Task(
    "product",
    lambda a, b: a @ b,
    matrices,
    Demands(
        error=sum_of_products(lambda a, b: a.shape[1]), large=long_products, precision="float32"
    ),
)


def layer(rng, size):
    """Inputs, weights and a bias of a linear layer."""
    x, weights = matrices(rng, size)
    return x, weights, rng.normal(size=weights.shape[1]).astype(np.float32)


LINEAR = Task(
    "linear",
    lambda x, weights, bias: x @ weights + bias,
    layer,
    Demands(
        error=sum_of_products(lambda x, weights, bias: x.shape[1] + 1),
        large=long_products,
        precision="float32",
    ),
)


def pairs(rng, size):
    """Two arrays of the same length, at least one number in each."""
    drawn = rng.normal(size=(2, max(1, size))) * rng.uniform(0.2, 5, (2, 1))
    return tuple(drawn.astype(np.float32))


MEAN_SQUARE = Task(
    "mean_square",
    lambda x, y: np.array([np.mean((x - y) ** 2)]),
    pairs,
    Demands(error=elementwise(lambda x, y: x.size + 8), library=(), precision="float32"),
)


# ---- what strangers' right answers solve besides


def some_numbers(rng, n):
    """n numbers of float32."""
    return (rng.normal(size=n).astype(np.float32),)


PREFIX_SUM = Task(
    "prefix_sum",
    lambda x: np.cumsum(x.astype(np.float64)),
    some_numbers,
    Demands(
        error=Bound(
            lambda x: x.size + 8, magnitude=lambda x: np.cumsum(np.abs(x.astype(np.float64)))
        )
    ),
)
BINS = 64
SQUARE_PRODUCT = replace(
    PRODUCT,
    name="square_product",
    inputs=lambda rng, n: matrices(rng, (n, n, n)),
    demands=replace(
        PRODUCT.demands,
        sizes=(0, 1, 7, 33),
        fresh=lambda rng: int(rng.integers(2, 70)),
        large=False,
    ),
)
HISTOGRAM = Task(
    "histogram",
    lambda x: np.bincount(x, minlength=BINS)[:BINS].astype(np.int64),
    lambda rng, n: (rng.integers(0, BINS, size=n).astype(np.int32),),
    Demands(error=exactly),
)


def exact_layer_norm(x, weights, bias):
    """Of each row: less its mean, by its deviation, times the weights, plus the bias."""
    off = x - x.mean(axis=1, keepdims=True)
    return off / np.sqrt((off**2).mean(axis=1, keepdims=True) + 1e-5) * weights + bias


def terms_of_layer_norm(x, weights, bias):
    """The magnitudes of what is added in each element."""
    terms = np.abs(x) + np.abs(x).mean(axis=1, keepdims=True)
    return terms / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * np.abs(weights) + np.abs(bias)


def rows_to_norm(rng, n):
    """n rows of n + 3 numbers, weights and a bias."""
    shapes = (n, n + 3), (n + 3,), (n + 3,)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


LAYER_NORM = Task(
    "layer_norm",
    exact_layer_norm,
    rows_to_norm,
    Demands(error=Bound(lambda x, *_: x.shape[1] + 20, magnitude=terms_of_layer_norm)),
)

TASKS = {
    task.name: task
    for task in (
        SOFTMAX,
        ORDER,
        WIDE_SOFTMAX,
        SOFTMAX_ON_TORCH,
        PRODUCT,
        LINEAR,
        MEAN_SQUARE,
        SQUARE_PRODUCT,
        PREFIX_SUM,
        HISTOGRAM,
        LAYER_NORM,
    )
}
