"""Products of 8-bit floats (e4m3) on Hopper, with scales for rows or for blocks.

Source of the block scales: DeepSeek-V3 technical report, 2024, section 3.3.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import torch

from course.kernels.low_precision.operands import expect
from utils import cuda_c, machine
from utils.cuda_c.tensor_map import tensor_map
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
BLOCK = 128  # numbers that share a scale
ROWS = 128  # of a block's tile
STEP = 128  # of k
THREADS = 384
BOX = 64 * 64 * 2  # bytes of results that leave together
LARGEST = 448.0  # of e4m3
CPU_SMS = 4  # on the CPU runtime: a block takes several tiles, and there is more than one
E4M3 = torch.float8_e4m3fn


@dataclass(frozen=True)
class Shape:
    """How the kernel is compiled (what for: kernels/fp8_matmul.cu).

    blocks: scales of blocks. turns: each warp group has tiles of its own (kernels/fp8_turns.cu),
    and with split the last few tiles are cut along k.
    """

    blocks: bool = False
    width: int = 256
    stages: int = 4
    cluster: int = 2
    high: int = 8
    turns: bool = False
    split: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for it."""
        named = {
            "STAGES": self.stages,
            "CLUSTER": self.cluster,
            "HIGH": self.high,
            "WIDTH": self.width,
        }
        if self.turns:
            named["SPLIT_LAST"] = int(self.split)
        else:
            named["BLOCK_SCALES"] = int(self.blocks)
        return tuple(f"-D{name}={value}" for name, value in named.items())

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory a block (kernels/fp8_tiles.cuh, Ring)."""
        boxes = 1 if self.width == 192 else 2
        results = 2 * boxes * BOX
        scales = 2 * self.width * 4
        stage = (ROWS + self.width) * STEP
        barriers = 16 * self.stages + 2 * 8  # two more: whose turn it is
        last = 2 * 4
        return self.stages * stage + results + scales + barriers + last


ROW_SCALES = Shape()
BLOCK_SCALES = Shape(blocks=True, width=128, stages=6)


@yours.cache
def kernel(shape: Shape):
    """The compiled kernel; only a Hopper GPU and the CPU runtime have its instructions."""
    if shape.turns and shape.blocks:
        raise ValueError("fp8_turns.cu knows no scales of blocks")
    file = "fp8_turns.cu" if shape.turns else "fp8_matmul.cu"
    return cuda_c.load(KERNELS / file, flags=shape.flags).fp8_matmul


@functools.lru_cache(maxsize=16)
def _map(matrix: torch.Tensor, rows: int):
    """The tensor map of a matrix, in boxes of `rows` × 128 bytes; made once, not at each launch."""
    if matrix.dtype == E4M3:
        matrix = matrix.view(torch.uint16)  # pairs
    return tensor_map(matrix, (rows, 64))


def multiply(c, a, b, scales_a, scales_b, shape: Shape = ROW_SCALES) -> None:
    """c = (a scales_a) (b scales_b)ᵀ: a e4m3 [m, k], b e4m3 [n, k], c bfloat16 [m, n].

    scales_a: float32 [m], or [k / 128, m] of blocks. scales_b: [n], or [n / 128, k / 128].
    k must be a multiple of 16 (with blocks, of 128), n of 8. Raises ValueError where sizes or types
    do not fit.
    """
    m, k = a.shape
    n = len(b)
    rows_of_b, columns_of_b = (BLOCK, BLOCK) if shape.blocks else (8, 16)
    if k % columns_of_b or n % rows_of_b:
        raise ValueError(f"n = {n}, k = {k}: pad them with zeros")
    of_blocks = (k // BLOCK, m), (n // BLOCK, k // BLOCK)
    of_a, of_b = of_blocks if shape.blocks else ((m,), (n,))
    expect(
        a.device,
        a=(a, E4M3, m, k),
        b=(b, E4M3, n, k),
        c=(c, torch.bfloat16, m, n),
        scales_a=(scales_a, torch.float32, *of_a),
        scales_b=(scales_b, torch.float32, *of_b),
    )
    down = ceil_div(m, ROWS * shape.cluster)
    across = ceil_div(n, shape.width)
    clusters = min(down * across, (machine().sms or CPU_SMS) // shape.cluster)
    launch = kernel(shape)[clusters * shape.cluster, THREADS, shape.shared]
    launch(
        _map(c, 64),
        _map(a, ROWS),
        _map(b, shape.width // shape.cluster),
        scales_a,
        scales_b,
        m,
        n,
        k,
    )


# ---- scales


def scales_of(largest: torch.Tensor) -> torch.Tensor:
    """The scales with which the largest magnitudes become 448."""
    return largest.clamp(min=1e-12) / LARGEST


def by_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(e4m3, float32 [rows]): each row's largest magnitude becomes 448."""
    x = x.float()
    scales = scales_of(x.abs().amax(1))
    codes = x / scales[:, None]
    return codes.to(E4M3), scales


def by_pieces(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(e4m3, float32 [columns / 128, rows]): a scale for every 128 numbers of a row."""
    pieces = x.float().unflatten(1, (-1, BLOCK))
    scales = scales_of(pieces.abs().amax(-1))
    codes = pieces / scales[..., None]
    return codes.to(E4M3).reshape(x.shape), scales.T.contiguous()


def by_blocks(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(e4m3, float32 [rows / 128, columns / 128]): a scale for every 128 × 128."""
    rows, columns = x.shape
    blocks = x.float().reshape(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
    scales = scales_of(blocks.abs().amax((1, 3)))
    codes = blocks / scales[:, None, :, None]
    return codes.to(E4M3).reshape(x.shape), scales.contiguous()


def exact(a, b, scales_a, scales_b, blocks: bool = False) -> torch.Tensor:
    """The product in float64."""
    a = a.double()
    b = b.double()
    if blocks:
        of_a = scales_a.T.repeat_interleave(BLOCK, 1)
        of_b = scales_b.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        return (a * of_a) @ (b * of_b).T
    of_rows = scales_a.double()[:, None]
    return of_rows * (a @ b.T) * scales_b.double()
