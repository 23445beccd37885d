"""Where the CUDA C of this folder lies, and its kernels, compiled once."""

import functools
from pathlib import Path

import torch

from utils import cuda_c, hardware
from utils.engine import has_gpu
from utils.tools import yours

FOLDER = Path(__file__).parent / "cuda"
DEVICE = "cuda" if has_gpu() else "cpu"


@yours.cache
def load(file: str, flags: tuple[str, ...] = ()) -> cuda_c.Module:
    """The module made of cuda/<file>. flags: macros such as "-DLOAD=__ldcg"."""
    return cuda_c.load(FOLDER / file, flags=flags)


@functools.cache
def multiprocessors() -> int:
    """How many multiprocessors the GPU has; 2 where there is none, enough to test with."""
    if not has_gpu():
        return 2
    return torch.cuda.get_device_properties(0).multi_processor_count


@functools.cache
def shared_bytes() -> int:
    """How much shared memory a block may ask for."""
    if not has_gpu():
        return cuda_c.MAX_SHARED_UNASKED
    return hardware.shared_limit()
