"""Ten tasks that a library does: in CUDA C by a program of ``cuda/``, in Python by PyTorch.

The Python functions take and return PyTorch's tensors; which of NVIDIA's libraries stands behind
each is said beside it.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

from utils.engine import has_gpu

DEVICE = "cuda" if has_gpu() else "cpu"


def gemm(a, b):
    return a @ b


def batched(a, b):
    return torch.bmm(a, b)


def convolution(x, w):
    return torch.nn.functional.conv2d(x, w, padding=1)


def transform(x):
    return torch.fft.rfft(x)


def sort(keys):
    return torch.sort(keys).values


def total(x):
    return x.sum()


def running_sums(x):
    return torch.cumsum(x, 0)


def random_numbers(n):
    return torch.rand(n, device=DEVICE)


def sparse_product(a, x):
    return a @ x


@contextlib.contextmanager
def exactly():
    """float32 products and convolutions without TF32, and as it was again afterwards."""
    switches = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = False
    try:
        yield
    finally:
        for switch, allowed in zip(switches, before, strict=True):
            switch.allow_tf32 = allowed


@dataclass(frozen=True)
class Task:
    """One task of the table.

    library: who does it. program, c_function: the CUDA C file, and its part that calls the
    library. arguments: sizes for the program on a GPU. timed: the name under which it prints its
    time, or "" where it races beside our own kernel in that kernel's bench. amount: floating-point
    operations or bytes (as `roof` says) that the work needs. cuda_c, ours, in_python: the names of
    recorded times where the table does not take those of this folder's bench. alone: the time of
    the same call in a run of its own, where that differs from its time in the race.
    """

    key: str
    title: str
    library: str
    program: str
    c_function: str
    python: Callable
    arguments: tuple
    timed: str
    amount: float
    roof: str  # "copy" for bytes, "fp32" or "tensor" for operations
    cuda_c: str = ""
    ours: str = ""
    in_python: str = ""
    alone: str = ""


SMALL, LARGE = 256, 8192
MATRICES, SIDE = 16384, 32
IMAGES, CHANNELS, PIXELS = 32, 64, 56
SAMPLES, ROWS = 4096, 65536
NUMBERS = 1 << 28
SPARSE_ROWS, EACH = 1 << 20, 32
NONZEROS = SPARSE_ROWS * EACH * 4 // 5  # every fifth row is empty

NOT_RACED = "-"  # a column that has no time from the run of the others

TASKS = (
    Task(
        "gemm_small",
        f"product, {SMALL} × {SMALL}, float32",
        "cuBLAS",
        "gemm",
        "multiply",
        gemm,
        (SMALL, SMALL, SMALL),
        "gemm",
        2 * SMALL**3,
        "fp32",
        ours="matmul/fp32/256/tile/time",
    ),
    Task(
        "gemm_large",
        f"product, {LARGE} × {LARGE}, bf16",
        "cuBLAS",
        "gemm_bf16",
        "multiply_bf16",
        gemm,
        (LARGE,),
        "gemm_bf16",
        2 * LARGE**3,
        "tensor",
        cuda_c="languages/matmul/bf16/8192/cublas/time",
        ours="languages/matmul/bf16/8192/cuda_c/time",
        in_python=NOT_RACED,
        alone="library/gemm_large/cuda_c/time",
    ),
    Task(
        "gemm_batched",
        f"{MATRICES:,} products, {SIDE} × {SIDE}",
        "cuBLAS",
        "batched",
        "multiply_all",
        batched,
        (MATRICES,),
        "batched",
        3 * 4 * SIDE**2 * MATRICES,
        "copy",
    ),
    Task(
        "convolution",
        f"3 × 3 convolution, {CHANNELS} channels",
        "cuDNN",
        "conv",
        "Convolution",
        convolution,
        (IMAGES, CHANNELS, PIXELS),
        "conv",
        2 * 9 * IMAGES * CHANNELS**2 * PIXELS**2,
        "fp32",
    ),
    Task(
        "fft",
        f"{ROWS:,} real transforms of {SAMPLES:,}",
        "cuFFT",
        "fft",
        "Transform",
        transform,
        (),
        "",
        (4 * SAMPLES + 8 * (SAMPLES // 2 + 1)) * ROWS,
        "copy",
        cuda_c="rfft/2^12/cufft/time",
        ours="rfft/2^12/ours/time",
        in_python=NOT_RACED,
    ),
    Task(
        "sort",
        "sort, 2²⁸ keys of 32 bits",
        "CUB",
        "cub",
        "sort",
        sort,
        (),
        "",
        2 * 4 * NUMBERS,
        "copy",
        cuda_c="sort/2^28/cub/time",
        ours="sort/2^28/ours/time",
    ),
    Task(
        "sum",
        "sum, 2²⁸ floats",
        "CUB",
        "cub",
        "sum",
        total,
        (),
        "",
        4 * NUMBERS,
        "copy",
        cuda_c="reduce/sum/2^28/cub/time",
        ours="reduce/sum/2^28/ours/time",
        in_python="reduce/sum/2^28/torch/time",
    ),
    Task(
        "scan",
        "running sums, 2²⁸ floats",
        "CUB",
        "cub",
        "running_sums",
        running_sums,
        (),
        "",
        2 * 4 * NUMBERS,
        "copy",
        cuda_c="scan/2^28/cub/time",
        ours="scan/2^28/ring/time",
        in_python="scan/2^28/torch/time",
    ),
    Task(
        "random",
        "2²⁸ uniform numbers",
        "cuRAND",
        "random_host",
        "philox",
        random_numbers,
        (NUMBERS,),
        "uniform",
        4 * NUMBERS,
        "copy",
    ),
    Task(
        "spmv",
        f"sparse matrix × vector, {NONZEROS / 1e6:.0f} M elements",
        "cuSPARSE",
        "spmv",
        "SparseProduct",
        sparse_product,
        (SPARSE_ROWS, EACH),
        "spmv",
        8 * NONZEROS + 12 * SPARSE_ROWS,
        "copy",
        ours="library/spmv/ours/time",
    ),
)


def inputs_of(key: str):
    """Random arguments for a task's Python function, in the task's size, on the GPU."""
    generator = torch.Generator(DEVICE).manual_seed(1)

    def numbers(*shape, dtype=torch.float32):
        made = torch.rand(*shape, device=DEVICE, generator=generator) * 2 - 1
        return made.to(dtype)

    if key == "gemm_small":
        return numbers(SMALL, SMALL), numbers(SMALL, SMALL)
    if key == "gemm_large":
        return tuple(numbers(LARGE, LARGE, dtype=torch.bfloat16) for _ in range(2))
    if key == "gemm_batched":
        return numbers(MATRICES, SIDE, SIDE), numbers(MATRICES, SIDE, SIDE)
    if key == "convolution":
        return numbers(IMAGES, CHANNELS, PIXELS, PIXELS), numbers(CHANNELS, CHANNELS, 3, 3)
    if key == "fft":
        return (numbers(ROWS, SAMPLES),)
    if key == "sort":
        size = {"size": (NUMBERS,), "dtype": torch.int32, "device": DEVICE}
        return (torch.randint(-(1 << 31), 1 << 31, generator=generator, **size),)
    if key in ("sum", "scan"):
        return (numbers(NUMBERS),)
    if key == "random":
        return (NUMBERS,)
    return _sparse(numbers, generator)


def _sparse(numbers, generator):
    """(matrix in CSR, vector): SPARSE_ROWS rows of EACH random elements, every fifth empty."""
    counts = torch.full((SPARSE_ROWS,), EACH, device=DEVICE)
    counts[4::5] = 0
    zero = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    offsets = torch.cat((zero, counts.cumsum(0))).int()
    size = (int(offsets[-1]),)
    columns = torch.randint(SPARSE_ROWS, size, device=DEVICE, generator=generator).int()
    shape = (SPARSE_ROWS, SPARSE_ROWS)
    matrix = torch.sparse_csr_tensor(
        offsets, columns, numbers(*size), shape, check_invariants=False
    )
    return matrix, numbers(SPARSE_ROWS)
