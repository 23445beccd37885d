"""Load and launch the kernels that run everywhere: a block a row, any number of columns."""

from pathlib import Path

import torch

from utils import cuda_c, pick
from utils.engine import gpu, has_gpu
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
TYPES = {
    torch.float32: "float",
    torch.bfloat16: "__nv_bfloat16",
    torch.float16: "__half",
}
MOST_THREADS = 1024
WARP = 32
FLOAT = 4  # bytes
MATRICES = 16  # of one size, that a chapter may hold at a time


@yours.cache
def module(file: str):
    """The kernels of a file; their templates are asked for by name and type."""
    return cuda_c.load(KERNELS / file)


def type_name(x: torch.Tensor) -> str:
    """CUDA C's name of a tensor's element type. Raises TypeError if the kernels lack it."""
    if x.dtype not in TYPES:
        raise TypeError(f"the row kernels take {' or '.join(map(str, TYPES))}, got {x.dtype}")
    return TYPES[x.dtype]


def launcher(file: str, name: str, rows: torch.Tensor):
    """A kernel of a file, for the type of these rows, with its configuration: a block a row."""
    kernel = module(file)[f"{name}<{type_name(rows)}>"]
    return kernel[len(rows), threads_for(rows.shape[1]), 0, stream(rows)]


def stream(x: torch.Tensor) -> int:
    """The handle of torch's current stream where x lies: a CUDA graph captures what runs there."""
    return torch._C._cuda_getCurrentRawStream(x.device.index) if x.is_cuda else 0


def row_numbers(rows: torch.Tensor) -> torch.Tensor:
    """Room for a float32 number a row."""
    return torch.empty(len(rows), dtype=torch.float32, device=rows.device)


def threads_for(columns: int) -> int:
    """Threads of a block for a row: a warp at least, and no more than have something to do."""
    most = pick(gpu=MOST_THREADS, cpu=4 * WARP)
    warps = -(-columns // WARP)
    return max(WARP, min(most, warps * WARP))


def rows_for(columns: int, most: int) -> int:
    """`most` rows, or so many that `MATRICES` matrices of them fit into the GPU's memory."""
    if not has_gpu():
        return most
    return min(most, gpu().memory_bytes // (MATRICES * FLOAT * columns))


def matrix(x: torch.Tensor) -> torch.Tensor:
    """The last axis as rows, all others together: a matrix whose rows are contiguous.

    They may lie apart, as those of a part of a wider matrix do.
    """
    if x.ndim == 2:
        if x.is_contiguous() or (x.stride(1) == 1 and x.stride(0) >= x.shape[1]):
            return x
    return x.contiguous().view(-1, x.shape[-1]) if x.numel() else x.reshape(0, x.shape[-1])


def room(rows: torch.Tensor) -> torch.Tensor:
    """Room for a result like a matrix, without gaps between rows."""
    if rows.is_contiguous():
        return torch.empty_like(rows)  # at a third of what the other way costs
    return torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)


def like(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Rows that were computed, in the shape of x."""
    return out if x.ndim == 2 else out.view(x.shape)
