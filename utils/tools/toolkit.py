"""Where CUDA's toolkit is on this machine."""

import functools
import shutil


@functools.cache
def find_nvcc() -> str | None:
    """Path of nvcc: on the PATH, in CUDA_HOME, from conda, from pip's nvidia-cuda-nvcc; or None."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return shutil.which("nvcc")
    return shutil.which("nvcc") or find_nvidia_binary_utility("nvcc")
