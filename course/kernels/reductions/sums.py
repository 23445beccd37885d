"""Many values into one: `Sum` launches cuda/sum_fast.cu, `Reduction` cuda/reduce.cu.

    total = sums.Sum(n)
    total(x, out)                    # out[0] = x[0] + ... + x[n-1]
    highest = sums.Reduction("max", n)
    highest(x)                       # a tensor of one element

Each object keeps the memory that its launches need, so that a call is a launch and nothing else.
"""

from dataclasses import dataclass

import torch

from course.kernels.reductions.kernels import device, load, multiprocessors
from utils.occupancy import ceil_div


@dataclass(frozen=True)
class Shape:
    """How the fast sum is launched: what is best depends on the GPU."""

    threads: int = 512
    loads: int = 16  # of 16 bytes, that a thread asks for before it adds
    blocks: int = 2  # a multiprocessor

    def blocks_for(self, n: int) -> int:
        """Blocks that share n floats: at most as many as run at a time."""
        chunk = self.threads * self.loads * 4
        most = self.blocks * multiprocessors()
        return max(1, min(most, ceil_div(n, chunk)))


def doubles(count: int) -> torch.Tensor:
    """Room for so many float64 where kernels run."""
    return torch.empty(count, dtype=torch.float64, device=device())


def counter() -> torch.Tensor:
    """A 32-bit counter, 0."""
    zero = torch.zeros(1, dtype=torch.int32, device=device())
    return zero.view(torch.uint32)


class Sum:
    """The sum of n floats, in one launch."""

    def __init__(self, n: int, shape: Shape | None = None):
        self.n = n
        self.shape = shape or Shape()
        name = f"sum_fast<{self.shape.threads}, {self.shape.loads}>"
        self._kernel = load("sum_fast.cu")[name]
        self._blocks = self.shape.blocks_for(n)
        self._partial = doubles(self._blocks)
        self._arrived = counter()

    def __call__(self, x, out) -> None:
        """out[0] = the sum of x, an array of n float32 at a multiple of 16 bytes."""
        launch = self._kernel[self._blocks, self.shape.threads]
        launch(x, self.n, self._partial, self._arrived, out)


@dataclass(frozen=True)
class Operation:
    """One of the operations in cuda/reduce.cu."""

    name: str  # there
    result: torch.dtype
    results: int = 1
    arrays: int = 1
    empty: bool = True  # whether no elements at all have a result


OPERATIONS = {
    "sum": Operation("Sum", torch.float64),
    "sum_of_squares": Operation("SumOfSquares", torch.float64),
    "dot": Operation("Dot", torch.float64, arrays=2),
    "max": Operation("Max", torch.float32, empty=False),
    "argmax": Operation("ArgMax", torch.int64, empty=False),
    "moments": Operation("Moments", torch.float64, results=2, empty=False),
}
STATE_DOUBLES = 3  # the largest State of an operation, in doubles


class Reduction:
    """One of `OPERATIONS` on n floats, in one launch.

    NaN and infinities count as in NumPy; argmax gives the first of equal values, or the first NaN.
    Raises ValueError where no elements have no result.
    """

    def __init__(self, operation: str, n: int, shape: Shape | None = None):
        self.n = n
        self.shape = shape or Shape(512, 4, 4)
        self.operation = OPERATIONS[operation]
        if n == 0 and not self.operation.empty:
            raise ValueError(f"no elements have no {operation}")
        name = f"reduce<{self.operation.name}, {self.shape.threads}, {self.shape.loads}>"
        self._kernel = load("reduce.cu")[name]
        self._blocks = self.shape.blocks_for(n)
        self._partial = doubles(STATE_DOUBLES * self._blocks)
        self._arrived = counter()
        self._out = doubles(2)
        results = self._out.view(self.operation.result)
        self.result = results[: self.operation.results]

    def __call__(self, a, b=None):
        """The result, as a tensor that the next call overwrites.

        a, and b for a dot product: n float32 each, at multiples of 16 bytes.
        """
        launch = self._kernel[self._blocks, self.shape.threads]
        launch(a, b, self.n, self._partial, self._arrived, self._out)
        return self.result
