"""dropout(gelu(x + bias)) as one operator: forward and backward pass, a kernel each."""

import functools

import torch

from course.extensions.sources import FUSED
from utils import cuda_c, has_gpu, pick

NUMBERS = {torch.float32: "float", torch.float64: "double", torch.bfloat16: "__nv_bfloat16"}
CHUNK = 8
ALIGNED = 16  # bytes: a thread's load at its widest
THREADS = pick(gpu=128, cpu=32)
#: Blocks to start for each SM; fewer in the backward pass, where each leaves a row of sums
BLOCKS, BLOCKS_BACKWARD = 64, 8
COLUMNS_OF_A_BLOCK, WARPS = 32, 8  # of the kernel add_parts


def bias_gelu_dropout(x, bias, p: float = 0.1, training: bool = True) -> torch.Tensor:
    """dropout(gelu(x + bias), p) over the last axis, in one pass over memory.

    x: [..., columns], float32, bfloat16 or float64. bias: [columns], of the same type.
    The mask comes from PyTorch's generator: `torch.manual_seed` repeats it. gelu is the exact one,
    in float32 to 1.5e-7 |x + bias|; p is taken to a 65,536th.
    """
    seed = torch.randint(1 << 62, (1,), device=x.device)
    return torch.ops.course_fused.bias_gelu_dropout(x, bias, seed, p if training else 0.0)


@torch.library.custom_op("course_fused::bias_gelu_dropout", mutates_args=())
def forward(x: torch.Tensor, bias: torch.Tensor, seed: torch.Tensor, p: float) -> torch.Tensor:
    check(x, bias, p)
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        grid, columns, chunk = deal(BLOCKS, x, y, bias)
        launch("bias_gelu_dropout", x, chunk, grid, THREADS, y, x, bias, seed, p, *columns)
    return y


@torch.library.custom_op("course_fused::bias_gelu_dropout_backward", mutates_args=())
def backward(
    dy: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, seed: torch.Tensor, p: float
) -> tuple[torch.Tensor, torch.Tensor]:
    check(x, bias, p)
    x, dy = x.contiguous(), dy.contiguous()
    dx, dbias = torch.empty_like(x), torch.zeros_like(bias)
    if x.numel():
        grid, columns, chunk = deal(BLOCKS_BACKWARD, x, dy, dx, bias)
        real = torch.float64 if x.dtype == torch.float64 else torch.float32
        sums = x.new_empty(grid[1], columns[1], dtype=real)
        pointers = dx, sums, dy, x, bias, seed
        launch("bias_gelu_dropout_backward", x, chunk, grid, THREADS, *pointers, p, *columns)
        blocks = -(-columns[1] // COLUMNS_OF_A_BLOCK)
        block = COLUMNS_OF_A_BLOCK, WARPS
        launch("add_parts", x, chunk, blocks, block, dbias, sums, grid[1], columns[1])
    return dx, dbias


@forward.register_fake
def _(x, bias, seed, p):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@backward.register_fake
def _(dy, x, bias, seed, p):
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(bias)


def keep(ctx, inputs, output):
    x, bias, seed, ctx.p = inputs
    ctx.save_for_backward(x, bias, seed)


def gradients(ctx, dy):
    return (
        *torch.ops.course_fused.bias_gelu_dropout_backward(dy, *ctx.saved_tensors, ctx.p),
        None,
        None,
    )


torch.library.register_autograd("course_fused::bias_gelu_dropout", gradients, setup_context=keep)


# ---- launches


def check(x, bias, p) -> None:
    """Raises TypeError or ValueError for what the kernels cannot do."""
    if x.dtype not in NUMBERS or bias.dtype != x.dtype:
        raise TypeError(f"x and bias must both be one of {', '.join(map(str, NUMBERS))}")
    if not x.ndim or bias.shape != x.shape[-1:] or not bias.is_contiguous():
        raise ValueError("bias must have the shape of x's last axis, a number after the other")
    if not 0 <= p <= 1:
        raise ValueError(f"p is a probability, not {p}")


def deal(blocks, x, *tensors):
    """(grid, (rows, columns), chunk): blocks along the columns, and so many for each SM."""
    columns = x.shape[-1]
    rows = x.numel() // columns
    wide = columns % CHUNK == 0 and all(t.data_ptr() % ALIGNED == 0 for t in (x, *tensors))
    chunk = CHUNK if wide else 1
    across = -(-columns // (chunk * THREADS))
    parts = min(rows, max(1, blocks * processors() // across), 65535)
    return (across, parts), (rows, columns), chunk


@functools.cache
def processors() -> int:
    """The GPU's SMs."""
    return torch.cuda.get_device_properties(0).multi_processor_count if has_gpu() else 1


@functools.cache
def module(dtype: torch.dtype, chunk: int, flags: tuple = ()):
    """The kernels for a type, compiled once."""
    return cuda_c.load(FUSED, flags=(f"-DNUMBER={NUMBERS[dtype]}", f"-DCHUNK={chunk}", *flags))


def launch(name, x, chunk, grid, block, *arguments) -> None:
    """Launch a kernel on PyTorch's stream, of the tensor's device."""
    with torch.cuda.device_of(x):
        stream = torch.cuda.current_stream() if x.is_cuda else 0
        getattr(module(x.dtype, chunk), name)[grid, block, 0, stream](*arguments)
