"""Inclusive sums of whole arrays: `Scan` launches one of the kernels in cuda/scan_*.cu.

    scan = scans.Scan(n, "float32", scans.fastest())
    scan(x, out)                     # out[i] = x[0] + ... + x[i]

A `Scan` keeps the words by which its blocks tell one another of their tiles.
"""

from dataclasses import dataclass

import torch

from course.kernels.reductions.kernels import device, load, multiprocessors
from utils import compare
from utils.engine import gpu, has_gpu
from utils.hardware import shared_limit

C_TYPES = {"float32": "float", "int32": "int"}
WARP = 32


@dataclass(frozen=True)
class Lookback:
    """One block a tile; each looks back at those before it. Runs on every GPU."""

    threads: int = 256
    rows: int = 8

    file = "scan_lookback.cu"
    words = 1  # of its state, beside one for each tile
    starts_from_zeros = True

    @property
    def tile(self) -> int:
        return self.threads * self.rows * 4

    @property
    def shared_bytes(self) -> int:
        return 0

    def expression(self, c_type: str) -> str:
        return f"scan_lookback<{c_type}, {self.threads}, {self.rows}>"

    def grid(self, tiles: int) -> int:
        return tiles


@dataclass(frozen=True)
class Persistent:
    """As many blocks as fit at once, each with many tiles. Runs on every GPU."""

    threads: int = 256
    rows: int = 8
    blocks: int = 2  # a multiprocessor

    file = "scan_persistent.cu"
    words = 2
    starts_from_zeros = False

    @property
    def tile(self) -> int:
        return self.threads * self.rows * 4

    @property
    def shared_bytes(self) -> int:
        return 0

    def expression(self, c_type: str) -> str:
        return f"scan_persistent<{c_type}, {self.threads}, {self.rows}, {self.blocks}>"

    def grid(self, tiles: int) -> int:
        return min(tiles, self.blocks * multiprocessors())


@dataclass(frozen=True)
class Ring:
    """Tiles in a ring in shared memory, moved by the copy engine: where `has_ring` says so."""

    warps: int = 16
    tile: int = 8192
    stages: int = 7
    lag: int = 3
    blocks: int = 1  # a multiprocessor

    file = "scan_ring.cu"
    words = 2
    starts_from_zeros = False

    @property
    def threads(self) -> int:
        return (self.warps + 3) * WARP

    @property
    def shared_bytes(self) -> int:
        return self.stages * self.tile * 4

    def expression(self, c_type: str) -> str:
        return f"scan_ring<{c_type}, {self.warps}, {self.tile}, {self.stages}, {self.lag}>"

    def grid(self, tiles: int) -> int:
        return min(tiles, self.blocks * multiprocessors())


class Scan:
    """The inclusive sum of arrays of n elements.

    n: how many elements; dtype: "float32" or "int32"; method: a `Lookback`, `Persistent` or `Ring`.
    """

    def __init__(self, n: int, dtype: str = "float32", method=None):
        self.n = n
        self.method = method or Lookback()
        self._tiles = -(-n // self.method.tile)
        module = load(self.method.file)
        self._kernel = module[self.method.expression(C_TYPES[dtype])]
        words = self.method.words + self._tiles
        self._zeros = torch.zeros(
            words,
            dtype=torch.int64,
            device=device(),
        )
        self._state = self._zeros.view(torch.uint64)

    def __call__(self, x, out) -> None:
        """out[i] = x[0] + ... + x[i]. x, out: arrays of n elements at multiples of 16 bytes."""
        if self.n == 0:
            return
        if self.method.starts_from_zeros:
            self._zeros.zero_()
        grid = self.method.grid(self._tiles)
        launch = self._kernel[grid, self.method.threads, self.method.shared_bytes]
        launch(x, out, self.n, self._state)


def has_ring() -> bool:
    """Whether this GPU runs the `Ring`: it has bulk copies, and blocks with room for the stages.

    Compute capability 12.x has the copies (9.0 on), but less than half of the shared memory.
    """
    if not has_gpu() or gpu().compute_capability < (9, 0):
        return False
    return shared_limit() >= Ring().shared_bytes


def fastest():
    """The method that is fastest here: the ring where it runs, else look-back."""
    return Ring() if has_ring() else Lookback()


def race(x):
    """Look-back, the ring and torch scan x (float32) in one race, each checked before.

    Without a GPU a small ring runs once, and what is shown was recorded.
    """
    ways = {"look-back": Scan(len(x), "float32", Lookback())}
    if has_ring() or not has_gpu():
        ways["ring"] = Scan(len(x), "float32", Ring() if has_gpu() else Ring(2, 512, 3, 1))
    out = torch.empty_like(x)
    right = x.double().cumsum(0)
    rivals = {}
    for name, way in ways.items():
        way(x, out)
        torch.testing.assert_close(out.double(), right, rtol=1e-5, atol=0)
        rivals[name] = lambda way=way: way(x, out)
    rivals["torch"] = lambda: torch.cumsum(x, 0, out=out)
    return compare(rivals, bytes=2 * x.nbytes, name="scan/fast")
