"""Are the kernels of few bits right? Against float64, with outputs that were full of NaN.

Each check returns its largest error and raises AssertionError where roundings do not explain it.
"""

import torch

from course.kernels.low_precision import fp8_matmul, int4
from utils import has_gpu, pick

DEVICE = "cuda" if has_gpu() else "cpu"
HALF_STEP = 2**-8  # of bfloat16, at 1
#: (m, n, k) that fill no tile, and one that is many.
FP8_SIZES = ((264, 136, 272), (1, 8, 16), (640, 768, 1024), (4104, 3080, 400))
FP8_BLOCK_SIZES = ((264, 128, 256), (1, 128, 128), (640, 768, 1024), (4104, 3200, 384))


def near(name: str, got: torch.Tensor, exact: torch.Tensor, most: float) -> float:
    """The largest error, as a share of the typical value."""
    typical = exact.square().mean().sqrt()
    error = (got.double() - exact).abs().max() / typical
    assert error <= most, f"{name}: error {error:.2g}, at most {most:.2g} is rounding"
    return error.item()


def check_int4(shape: int4.Shape = int4.FASTEST, sizes=None) -> float:
    """For one, some and all vectors, in sizes that give some warps nothing to do."""
    rows = int4.TILE_ROWS * shape.tiles
    sizes = sizes or ((rows, 128, 1), (3 * rows, 640, 3), (rows, pick(gpu=16384, cpu=1280), 8))
    errors = []
    for height, columns, vectors in sizes:
        codes, scales = int4.random_weights(height, columns)
        x = torch.randn(vectors, columns, device=DEVICE).bfloat16()
        y = torch.full((vectors, height), torch.nan, device=DEVICE, dtype=torch.bfloat16)
        int4.multiply(int4.pack(codes, scales), x, y, shape)
        exact = x.double() @ int4.dequantize(codes, scales).double().T
        errors.append(near(f"int4 {height} × {columns}", y, exact, 16 * HALF_STEP))
    return max(errors)


def fp8_operands(m: int, n: int, k: int, blocks: bool = False) -> tuple[torch.Tensor, ...]:
    """(c full of NaN, a, b, scales of a, scales of b); rows of very different sizes."""
    sizes = 4 ** torch.randn(m, 1, device=DEVICE)
    a = torch.randn(m, k, device=DEVICE) * sizes
    b = torch.randn(n, k, device=DEVICE)
    c = torch.full((m, n), torch.nan, device=DEVICE, dtype=torch.bfloat16)
    of_a = fp8_matmul.by_pieces(a) if blocks else fp8_matmul.by_rows(a)
    of_b = fp8_matmul.by_blocks(b) if blocks else fp8_matmul.by_rows(b)
    return c, of_a[0], of_b[0], of_a[1], of_b[1]


def check_fp8(shape: fp8_matmul.Shape = fp8_matmul.ROW_SCALES, sizes=None) -> float:
    """Each row against its own typical value; only a Hopper GPU can do it."""
    errors = []
    for size in sizes or (FP8_BLOCK_SIZES if shape.blocks else FP8_SIZES):
        c, *given = fp8_operands(*size, shape.blocks)
        fp8_matmul.multiply(c, *given, shape)
        exact = fp8_matmul.exact(*given, shape.blocks)
        typical = exact.square().mean(1, keepdim=True).sqrt()
        name = "fp8 {} × {} × {}".format(*size)
        errors.append(near(name, c.double() / typical, exact / typical, 16 * HALF_STEP))
    return max(errors)
