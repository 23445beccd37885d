"""dropout(gelu(x + bias)) as one operator: forward and backward pass, a kernel each."""

import functools

import torch

from course.extensions.sources import FUSED
from utils import cuda_c, has_gpu, pick
from utils.occupancy import ceil_div
from utils.tools import yours

NUMBERS = {
    torch.float32: "float",
    torch.float64: "double",
    torch.bfloat16: "__nv_bfloat16",
}
CHUNK = 8
ALIGNED = 16  # bytes: a thread's load at its widest
THREADS = pick(gpu=128, cpu=32)
#: Blocks to start for each SM; fewer in the backward pass, where each leaves a row of sums
BLOCKS = 64
BLOCKS_BACKWARD = 8
#: Of the kernel add_parts
COLUMNS_OF_A_BLOCK = 32
WARPS = 8
MOST_BLOCKS_DOWN = 65535


def bias_gelu_dropout(
    x,
    bias,
    p: float = 0.1,
    training: bool = True,
) -> torch.Tensor:
    """dropout(gelu(x + bias), p) over the last axis, in one pass over memory.

    x: [..., columns], float32, bfloat16 or float64. bias: [columns], of the same type.
    The mask comes from PyTorch's generator: `torch.manual_seed` repeats it. gelu is the exact one,
    in float32 to 1.5e-7 |x + bias|; p is taken to a 65,536th.
    """
    seed = torch.randint(1 << 62, (1,), device=x.device)
    dropped = p if training else 0.0
    return torch.ops.course_fused.bias_gelu_dropout(x, bias, seed, dropped)


@torch.library.custom_op("course_fused::bias_gelu_dropout", mutates_args=())
def forward(
    x: torch.Tensor,
    bias: torch.Tensor,
    seed: torch.Tensor,
    p: float,
) -> torch.Tensor:
    check(x, bias, p)
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        grid, columns, chunk = deal(BLOCKS, x, y, bias)
        kernel = kernel_for("bias_gelu_dropout", x, chunk, grid, THREADS)
        kernel(y, x, bias, seed, p, *columns)
    return y


@torch.library.custom_op("course_fused::bias_gelu_dropout_backward", mutates_args=())
def backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    bias: torch.Tensor,
    seed: torch.Tensor,
    p: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    check(x, bias, p)
    x = x.contiguous()
    dy = dy.contiguous()
    dx = torch.empty_like(x)
    dbias = torch.zeros_like(bias)
    if x.numel():
        grid, sizes, chunk = deal(BLOCKS_BACKWARD, x, dy, dx, bias)
        _, parts = grid
        _, columns = sizes
        real = torch.float64 if x.dtype == torch.float64 else torch.float32
        sums = x.new_empty(parts, columns, dtype=real)
        kernel = kernel_for("bias_gelu_dropout_backward", x, chunk, grid, THREADS)
        kernel(dx, sums, dy, x, bias, seed, p, *sizes)
        blocks = ceil_div(columns, COLUMNS_OF_A_BLOCK)
        block = (COLUMNS_OF_A_BLOCK, WARPS)
        add = kernel_for("add_parts", x, chunk, blocks, block)
        add(dbias, sums, parts, columns)
    return dx, dbias


@forward.register_fake
def _(x, bias, seed, p):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@backward.register_fake
def _(dy, x, bias, seed, p):
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    return dx, torch.empty_like(bias)


def keep(ctx, inputs, output):
    x, bias, seed, ctx.p = inputs
    ctx.save_for_backward(x, bias, seed)


def gradients(ctx, dy):
    operator = torch.ops.course_fused.bias_gelu_dropout_backward
    dx, dbias = operator(dy, *ctx.saved_tensors, ctx.p)
    return dx, dbias, None, None


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
    aligned = all(t.data_ptr() % ALIGNED == 0 for t in (x, *tensors))
    chunk = CHUNK if aligned and columns % CHUNK == 0 else 1
    across = ceil_div(columns, chunk * THREADS)
    wanted = max(1, blocks * processors() // across)
    parts = min(rows, wanted, MOST_BLOCKS_DOWN)
    return (across, parts), (rows, columns), chunk


@functools.cache
def processors() -> int:
    """The GPU's SMs."""
    if not has_gpu():
        return 1
    return torch.cuda.get_device_properties(0).multi_processor_count


@yours.cache
def module(dtype: torch.dtype, chunk: int, flags: tuple = ()):
    """The kernels for a type, compiled once."""
    macros = (f"-DNUMBER={NUMBERS[dtype]}", f"-DCHUNK={chunk}")
    return cuda_c.load(FUSED, flags=(*macros, *flags))


def kernel_for(name: str, x, chunk: int, grid, block):
    """A kernel to be launched on PyTorch's stream, of the tensor's device."""
    kernel = getattr(module(x.dtype, chunk), name)

    def launch(*arguments):
        with torch.cuda.device_of(x):
            stream = torch.cuda.current_stream() if x.is_cuda else 0
            kernel[grid, block, 0, stream](*arguments)

    return launch
