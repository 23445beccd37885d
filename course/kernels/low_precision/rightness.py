"""Are the kernels of few bits right? Against float64, with outputs that were full of NaN.

Each check returns its largest error and raises AssertionError where roundings do not explain it.
"""

from collections.abc import Callable

import torch

from course.kernels.low_precision import fp8_matmul, int4
from utils import cuda_c, has_gpu, machine, pick
from utils.tools.diagnostics import LearnerError

DEVICE = "cuda" if has_gpu() else "cpu"
HALF_STEP = 2**-8  # of bfloat16, at 1
#: (m, n, k) that fill no tile, and one that is many.
FP8_SIZES = (
    (264, 136, 272),
    (1, 8, 16),
    (640, 768, 1024),
    (4104, 3080, 400),
)
FP8_BLOCK_SIZES = (
    (264, 128, 256),
    (1, 128, 128),
    (640, 768, 1024),
    (4104, 3200, 384),
)


def near(
    name: str,
    got: torch.Tensor,
    exact: torch.Tensor,
    most: float,
) -> float:
    """The largest error, as a share of the typical value."""
    typical = exact.square().mean().sqrt()
    error = (got.double() - exact).abs().max() / typical
    assert error <= most, f"{name}: error {error:.2g}, at most {most:.2g} is rounding"
    return error.item()


def check_int4(shape: int4.Shape = int4.SMALL, sizes=None) -> float:
    """For as many vectors as the shape is for, in sizes that give some warps nothing to do."""
    rows = int4.TILE_ROWS * shape.tiles
    if sizes is None:
        long = pick(gpu=16384, cpu=1280)
        most = shape.vectors
        sizes = ((rows, 128, 1), (3 * rows, 640, min(3, most)), (rows, long, most))
    errors = []
    for height, columns, vectors in sizes:
        codes, scales = int4.random_weights(height, columns)
        packed = int4.pack(codes, scales)
        x = torch.randn(vectors, columns, device=DEVICE).bfloat16()
        y = full_of_nan(vectors, height)
        int4.multiply(packed, x, y, shape)
        weights = int4.dequantize(codes, scales).double()
        exact = x.double() @ weights.T
        errors.append(near(f"int4 {height} × {columns}", y, exact, 16 * HALF_STEP))
    return max(errors)


def fp8_operands(
    m: int,
    n: int,
    k: int,
    blocks: bool = False,
) -> tuple[torch.Tensor, ...]:
    """(c full of NaN, a, b, scales of a, scales of b); rows of very different sizes."""
    sizes = 4 ** torch.randn(m, 1, device=DEVICE)
    a = torch.randn(m, k, device=DEVICE) * sizes
    b = torch.randn(n, k, device=DEVICE)
    c = full_of_nan(m, n)
    if blocks:
        a, scales_a = fp8_matmul.by_pieces(a)
        b, scales_b = fp8_matmul.by_blocks(b)
    else:
        a, scales_a = fp8_matmul.by_rows(a)
        b, scales_b = fp8_matmul.by_rows(b)
    return c, a, b, scales_a, scales_b


def full_of_nan(rows: int, columns: int) -> torch.Tensor:
    """A bfloat16 matrix in which every number that is not written shows."""
    return torch.full(
        (rows, columns),
        torch.nan,
        device=DEVICE,
        dtype=torch.bfloat16,
    )


def typical_of_rows(exact: torch.Tensor) -> torch.Tensor:
    """The root of the mean square of each row."""
    return exact.square().mean(1, keepdim=True).sqrt()


def check_fp8(shape: fp8_matmul.Shape = fp8_matmul.ROW_SCALES, sizes=None) -> float:
    """Each row against its own typical value; only a Hopper GPU can do it."""
    errors = []
    if sizes is None:
        sizes = FP8_BLOCK_SIZES if shape.blocks else FP8_SIZES
    for m, n, k in sizes:
        c, *given = fp8_operands(m, n, k, shape.blocks)
        fp8_matmul.multiply(c, *given, shape)
        exact = fp8_matmul.exact(*given, shape.blocks)
        typical = typical_of_rows(exact)
        name = f"fp8 {m} × {n} × {k}"
        error = near(name, c.double() / typical, exact / typical, 16 * HALF_STEP)
        errors.append(error)
    return max(errors)


# ---- in the chapter: is the kernel right as it stands now?

HOPPER = (9, 0)


def tried_int4() -> None:
    """Say whether the product with 4-bit weights is right, on one small matrix."""
    if not int4.available():
        print("this GPU's tensor cores know no bfloat16: from compute capability 8.0 on they do")
        return
    _tried(lambda: check_int4(sizes=((32, 256, 1),)))


def tried_fp8_blocks() -> None:
    """Say whether the product with scales of blocks is right, on one small matrix."""
    if has_gpu() and machine().gpu.compute_capability != HOPPER:
        print("this kernel needs Hopper (compute capability 9.0)")
        return
    _tried(lambda: check_fp8(fp8_matmul.BLOCK_SCALES, ((136, 128, 384),)))


def _tried(check: Callable[[], float]) -> None:
    """Without a GPU the CPU runtime's slow checks watch. Nothing is raised."""
    try:
        with cuda_c.checked():
            error = check()
    except (AssertionError, LearnerError) as mistake:
        print(mistake)
        return
    print(f"✓ right: the largest error is {error:.1e} of a typical value, as rounding explains")
