"""Where the CUDA C of this folder lies, and its kernels, compiled once."""

import functools
import inspect
from pathlib import Path

import numpy as np
import torch
from numba import cuda

from utils import cuda_c
from utils.engine import has_gpu
from utils.tools import yours

FOLDER = Path(__file__).parent / "cuda"


@yours.cache
def load(file: str) -> cuda_c.Module:
    """The module made of cuda/<file>."""
    return cuda_c.load(FOLDER / file)


def device() -> str:
    """Where PyTorch's tensors are to lie."""
    return "cuda" if has_gpu() else "cpu"


def multiprocessors() -> int:
    """How many multiprocessors the GPU has; 2 where there is none, enough to test with."""
    if not has_gpu():
        return 2
    return torch.cuda.get_device_properties(0).multi_processor_count


@functools.cache
def scratch(name: str, count: int, dtype: str = "float32"):
    """A device array of `count` numbers, zeros at first, that is kept under its name.

    To allocate memory takes longer than many a kernel, so it is done once.
    """
    return cuda.to_device(np.zeros(count, dtype))


@cuda.jit
def clear(out):
    """Launched as clear[1, 1](out): out[0] = 0."""
    out[0] = 0


def is_yours(kernel, ours) -> bool:
    """Whether a kernel's code differs from the course's. One without source counts as changed."""
    if kernel is ours:
        return False
    try:
        return inspect.getsource(kernel.py_func).strip() != inspect.getsource(ours.py_func).strip()
    except (OSError, TypeError):
        return True
