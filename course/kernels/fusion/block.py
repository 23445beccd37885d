"""bias + GELU + dropout + residual + layer norm as one kernel, forward and backward."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch.nn import functional

from utils import cuda_c, hardware, has_gpu, machine
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
EPSILON = 1e-5
SIXTEEN_BITS = 1 << 16
PACK = 8  # numbers of one access
PHILOX_ROUNDS = 7
INPUTS = 4  # of the backward pass: dy, dout, hidden, x
ACCESS = 16  # bytes


@dataclass(frozen=True)
class Shape:
    """Threads of a block, blocks of an SM at a time, rows in the backward pass's ring."""

    threads: int = 256
    blocks: int = 4
    stages: int = 1


FORWARD = Shape(threads=256, blocks=4)
BACKWARD = Shape(threads=512, blocks=2, stages=2)


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs: x, hidden, a mean and 1 / deviation a row, and the dropout."""

    x: torch.Tensor
    hidden: torch.Tensor
    statistics: torch.Tensor
    seed: int
    threshold: int


@yours.cache
def _module(name: str, columns: int, shape: Shape):
    macros = {
        "COLUMNS": columns,
        "THREADS": shape.threads,
        "BLOCKS": shape.blocks,
        "STAGES": shape.stages,
    }
    flags = tuple(f"-D{name}={value}" for name, value in macros.items())
    return cuda_c.load(KERNELS / f"block_{name}.cu", flags=flags)


def forward(
    x,
    residual,
    bias,
    gamma,
    beta,
    p: float = 0.1,
    seed: int = 0,
    shape: Shape = FORWARD,
) -> tuple[torch.Tensor, torch.Tensor, Saved]:
    """(y, hidden, what `backward` needs): y = layer_norm(hidden).

    hidden = residual + dropout(gelu(x + bias)). All bfloat16; x and residual [rows, columns],
    columns a multiple of 8. p: the share dropped, in steps of 1/65536.
    """
    rows, columns = x.shape
    y = torch.empty_like(x)
    hidden = torch.empty_like(x)
    statistics = _floats(x, rows, 2)
    threshold = round(p * SIXTEEN_BITS)
    kernel = _module("forward", columns, shape).block_forward
    kernel[rows, shape.threads](
        y,
        hidden,
        statistics,
        x,
        residual,
        bias,
        gamma,
        beta,
        seed,
        threshold,
        EPSILON,
    )
    return y, hidden, Saved(x, hidden, statistics, seed, threshold)


def _floats(x: torch.Tensor, *shape: int) -> torch.Tensor:
    """Room for float32 numbers where x lies."""
    return torch.empty(shape, dtype=torch.float32, device=x.device)


def backward(
    dy,
    dout,
    saved: Saved,
    bias,
    gamma,
    shape: Shape = BACKWARD,
) -> tuple[torch.Tensor, ...]:
    """(dx, dresidual, dgamma, dbeta, dbias); the last three float32.

    dy: gradient of y; dout: of hidden as the next block's residual.
    """
    rows, columns = dy.shape
    if has_gpu():
        shape = fitting(shape, columns, hardware.shared_limit())
    dx = torch.empty_like(dy)
    dresidual = torch.empty_like(dy)
    sms = machine().sms if has_gpu() else 1
    blocks = min(rows, sms * shape.blocks)
    partial = _floats(dy, 3, blocks, columns)
    sums = _floats(dy, 3, columns)
    module = _module("backward", columns, shape)
    shared = shape.stages * stage_bytes(shape, columns)
    module.block_backward[blocks, shape.threads, shared](
        dx,
        dresidual,
        partial,
        dy,
        dout,
        saved.hidden,
        saved.x,
        saved.statistics,
        bias,
        gamma,
        rows,
        saved.seed,
        saved.threshold,
    )
    add = module.add_blocks[(ceil_div(columns, 32), 3), (32, 8)]
    add(sums, partial, blocks)
    return dx, dresidual, *sums


def stage_bytes(shape: Shape, columns: int) -> int:
    """Shared memory of one row in the backward pass's ring."""
    packs = ceil_div(columns, PACK * shape.threads)
    return INPUTS * packs * shape.threads * ACCESS


def fitting(shape: Shape, columns: int, room: int) -> Shape:
    """The shape with as many rows in its ring, up to its own, as a block's `room` bytes hold.

    Compute capability 7.5 has 64 KB a block, and the kernel keeps its warps' sums there, too.
    """
    sums = 2 * 8 * (shape.threads // 32)  # two places, two floats a warp
    most = (room - sums) // stage_bytes(shape, columns)
    return replace(shape, stages=max(1, min(shape.stages, most)))


# ---- the reference


def kept(
    rows: int,
    columns: int,
    seed: int,
    threshold: int,
    device="cpu",
) -> torch.Tensor:
    """Dropout's factors as the kernels draw them: 0 or 1 / (1 - p), float64 [rows, columns]."""
    packs = rows * columns // PACK
    words = philox(torch.arange(packs, device=device), seed)
    sixteen = torch.stack([words & 0xFFFF, words >> 16], -1)  # [packs, 4, 2]
    factor = SIXTEEN_BITS / (SIXTEEN_BITS - threshold)
    stays = sixteen.reshape(rows, columns) >= threshold
    return stays.double() * factor


def philox(counters: torch.Tensor, seed: int) -> torch.Tensor:
    """Philox4x32-7's four words for each counter, int64 [counters, 4]; as kernels/random.cuh."""
    low = 0xFFFFFFFF
    zeros = torch.zeros_like(counters)
    words = [counters & low, counters >> 32, zeros, zeros]
    key = [seed & low, seed >> 32]
    for _ in range(PHILOX_ROUNDS):
        high0, low0 = _wide(0xD2511F53, words[0])
        high1, low1 = _wide(0xCD9E8D57, words[2])
        first = high1 ^ words[1] ^ key[0]
        third = high0 ^ words[3] ^ key[1]
        words = [first, low1, third, low0]
        key[0] = key[0] + 0x9E3779B9 & low
        key[1] = key[1] + 0xBB67AE85 & low
    return torch.stack(words, -1)


def _wide(factor: int, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The upper and the lower 32 bits of a product of 32-bit numbers, without overflow."""
    upper = factor * (words >> 16)
    lower = factor * (words & 0xFFFF)
    total = (upper & 0xFFFF) + (lower >> 16)
    high = (upper >> 16) + (total >> 16)
    low = (total & 0xFFFF) << 16 | lower & 0xFFFF
    return high, low


def reference(
    x,
    residual,
    bias,
    gamma,
    beta,
    factors,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(y, hidden) by torch's own functions, in the inputs' precision; factors: as `kept`."""
    gelu = functional.gelu(x + bias, approximate="tanh")
    hidden = residual + factors * gelu
    columns = hidden.shape[-1:]
    y = functional.layer_norm(hidden, columns, gamma, beta, EPSILON)
    return y, hidden
