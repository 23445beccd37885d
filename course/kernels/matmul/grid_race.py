"""One product of the grid: ours proved against float64, and timed in turn with cuBLAS.

What is timed is a CUDA graph's replay: no rival pays for its launches from Python. Copies that a
form needs, because rows do not begin at multiples of 16 bytes, are part of it.
"""

import contextlib
import math
from collections.abc import Callable
from functools import partial

import torch

from course.kernels.matmul import any_size
from course.kernels.matmul.forms import RESULTS, TYPES, Choice
from course.kernels.matmul.grid_shapes import GridShape
from course.kernels.matmul.ladder import DEVICE, bound
from utils import has_gpu

LIBRARIES = "cublas", "cublaslt"
ROWS_PROVED = 128  # of the first matrix and of the last
#: Of 8-bit floats the largest error, as a share of a typical element: Hopper adds up their products
#: with fewer bits than float32 has
FP8_BOUND = 0.1


class Operands:
    """Random numbers for a product: c is full of NaN, and 8-bit floats have factors of rows."""

    def __init__(self, kind: str, shape: GridShape):
        self.kind, self.shape = kind, shape
        generator = torch.Generator(DEVICE).manual_seed(shape.m + shape.n + shape.k)
        batch = (shape.batch,) if shape.batch > 1 else ()
        b_sizes = (shape.n, shape.k) if shape.problem(kind).along_k else (shape.k, shape.n)

        def normal(*sizes):
            numbers = torch.randn(*sizes, generator=generator, device=DEVICE)
            return numbers.to(TYPES[kind])

        self.a = normal(*batch, shape.m, shape.k)
        b = normal(*batch, *b_sizes)
        self.b = b.transpose(-1, -2) if shape.problem(kind).along_k else b
        sizes = *batch, shape.m, shape.n
        self.c = torch.full(sizes, torch.nan, dtype=RESULTS[kind], device=DEVICE)
        self.scales = None, None
        if kind == "fp8":
            self.scales = tuple(
                torch.rand(shape.batch * side, generator=generator, device=DEVICE) + 0.5
                for side in (shape.m, shape.n)
            )

    def ours(self, choice: Choice | None = None) -> None:
        """The product by our function; choice: instead of the model's."""
        with tf32_allowed(self.kind == "tf32"):
            any_size.multiply(self.c, self.a, self.b, self.scales, choice)

    def rivals(self) -> dict[str, Callable[[], object]]:
        """cuBLAS in its modes, through torch."""
        if self.kind == "fp8":
            return self._scaled_mm()
        product = torch.bmm if self.shape.batch > 1 else torch.mm
        out = torch.empty_like(self.c)
        run = partial(product, self.a, self.b, out=out)
        allowed = self.kind == "tf32"
        return {name: partial(_with_library, name, allowed, run) for name in LIBRARIES}

    def _scaled_mm(self) -> dict[str, Callable[[], object]]:
        one = torch.ones((), device=DEVICE)
        rows = self.scales[0][:, None].contiguous(), self.scales[1][None].contiguous()

        def run(first, second):
            fast = dict(out_dtype=torch.bfloat16, use_fast_accum=True)
            return torch._scaled_mm(self.a, self.b, first, second, **fast)

        return {"scaled_mm": partial(run, one, one), "scaled_mm rows": partial(run, *rows)}

    def prove(self) -> float:
        """The largest error of c, as a share of a typical element; AssertionError where roundings
        do not explain it.
        """
        error = 0.0
        matrices = (self.a, self.b, self.c)
        if self.shape.batch == 1:
            matrices = [each[None] for each in matrices]
        a, b, c = matrices
        for i in {0, self.shape.batch - 1}:
            rows = sorted({*range(ROWS_PROVED), *range(self.shape.m - ROWS_PROVED, self.shape.m)})
            rows = torch.tensor([row for row in rows if 0 <= row < self.shape.m], device=DEVICE)
            exact = a[i, rows].double() @ b[i].double()
            found = c[i, rows].double()
            if self.kind == "fp8":
                of_rows = self.scales[0].view(self.shape.batch, -1)[i, rows, None]
                found = found / of_rows / self.scales[1].view(self.shape.batch, -1)[i]
            error = max(error, (found - exact).abs().max().item() / self.shape.k**0.5)
            if not torch.isfinite(found).all():
                error = math.nan
        most = FP8_BOUND if self.kind == "fp8" else bound(self.kind, self.shape.k)
        assert error == error, f"{self.shape}: some elements are NaN, as where nothing was written"
        assert error <= most, f"{self.shape}: error {error:.2g}, at most {most:.2g} is rounding"
        return error


@contextlib.contextmanager
def tf32_allowed(allowed: bool):
    """In this block torch multiplies float32 as TF32, or does not."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = allowed
    try:
        yield
    finally:
        settings.allow_tf32 = before


def _with_library(name: str, allowed: bool, run: Callable[[], object]) -> object:
    """Run a product with one of torch's libraries for it. allowed: as TF32."""
    if not has_gpu():
        return run()
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library(name)
    try:
        with tf32_allowed(allowed):
            return run()
    finally:
        torch.backends.cuda.preferred_blas_library(before)
