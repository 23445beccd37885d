"""triton_op: PyTorch's compiler sees through it to the kernel. Without a GPU: the interpreter."""

import threading

import torch
import triton
import triton.language as tl

from course.extensions.routes import common
from utils import has_gpu, pick

NAMESPACE = "polynomial_triton"
BLOCK = pick(gpu=1024, cpu=4096)
#: The interpreter runs one kernel at a time
interpreter = threading.Lock()


@triton.jit
def polynomial(
    y,
    x,
    a: tl.float64,
    b: tl.float64,
    c: tl.float64,
    n,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(REAL)
    rise = tl.full((), a, REAL) * value + tl.full((), b, REAL)
    tl.store(y + i, rise * value + tl.full((), c, REAL), mask=i < n)


@triton.jit
def polynomial_backward(
    dx, dy, x, a: tl.float64, b: tl.float64, n, REAL: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(REAL)
    slope = 2 * tl.full((), a, REAL) * value + tl.full((), b, REAL)
    of_y = tl.load(dy + i, mask=i < n).to(REAL)
    tl.store(dx + i, of_y * slope, mask=i < n)


def launch(kernel, out, inputs, coefficients) -> None:
    n = out.numel()
    grid = (-(-n // BLOCK),)
    real = tl.float64 if out.dtype == torch.float64 else tl.float32
    arguments = (out, *inputs, *coefficients, n, real, BLOCK)
    if has_gpu():
        torch.library.wrap_triton(kernel)[grid](*arguments)
        return
    with interpreter:
        kernel[grid](*arguments)


def forward(y, x, a, b, c) -> None:
    launch(polynomial, y, (x,), (a, b, c))


def backward(dx, dy, x, a, b) -> None:
    launch(polynomial_backward, dx, (dy, x), (a, b))


def define() -> str:
    by = torch.library.triton_op if has_gpu() else torch.library.custom_op
    return common.define(NAMESPACE, forward, backward, by=by)
