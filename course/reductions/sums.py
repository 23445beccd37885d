"""The sum of a whole array: `Sum` launches kernels/sum_fast.cu.

total = sums.Sum(n)
total(x, out)                    # out[0] = x[0] + ... + x[n-1]
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from utils import cuda_c
from utils.engine import has_gpu

KERNELS = Path(__file__).parent / "kernels"


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
        self._kernel = cuda_c.load(KERNELS / "sum_fast.cu")[name]
        device = "cuda" if has_gpu() else "cpu"
        chunk = self.shape.threads * self.shape.loads * 4
        self._blocks = max(1, min(self.shape.blocks * multiprocessors(), -(-n // chunk)))
        self._partial = torch.empty(self._blocks, dtype=torch.float64, device=device)
        self._arrived = torch.zeros(1, dtype=torch.int32, device=device).view(torch.uint32)

    def __call__(self, x, out) -> None:
        """out[0] = the sum of x, an array of n float32 at a multiple of 16 bytes."""
        launch = self._kernel[self._blocks, self.shape.threads]
        launch(x, self.n, self._partial, self._arrived, out)


def multiprocessors() -> int:
    """How many multiprocessors the GPU has; 2 where there is none, enough to test with."""
    if not has_gpu():
        return 2
    return torch.cuda.get_device_properties(0).multi_processor_count
