"""The sum of a whole array: `Sum` launches cuda/sum_fast.cu.

total = sums.Sum(n)
total(x, out)                    # out[0] = x[0] + ... + x[n-1]
"""

from dataclasses import dataclass

import torch

from course.reductions.kernels import device, load, multiprocessors


@dataclass(frozen=True)
class Shape:
    """How the fast sum is launched: what is best depends on the GPU."""

    threads: int = 512
    loads: int = 8  # of 16 bytes, that a thread asks for before it adds
    blocks: int = 4  # a multiprocessor


class Sum:
    """The sum of n floats, in one launch."""

    def __init__(self, n: int, shape: Shape | None = None):
        self.n, self.shape = n, shape or Shape()
        name = f"sum_fast<{self.shape.threads}, {self.shape.loads}>"
        self._kernel = load("sum_fast.cu")[name]
        chunk = self.shape.threads * self.shape.loads * 4
        self._blocks = max(1, min(self.shape.blocks * multiprocessors(), -(-n // chunk)))
        self._partial = torch.empty(self._blocks, dtype=torch.float64, device=device())
        self._arrived = torch.zeros(1, dtype=torch.int32, device=device()).view(torch.uint32)

    def __call__(self, x, out) -> None:
        """out[0] = the sum of x, an array of n float32 at a multiple of 16 bytes."""
        launch = self._kernel[self._blocks, self.shape.threads]
        launch(x, self.n, self._partial, self._arrived, out)
