"""Numba CUDA kernels on the CPU, in place of `numba.cuda` without a GPU. README.md explains it."""

from typing import TYPE_CHECKING, Any

from .errors import BarrierError, KernelError, KernelIndexError, KernelTimeout, UninitializedError
from .install import install
from .observe import Observer, observe
from .settings import IN_STEP, allow_unwritten, lanes_apart, schedule, time_limit

if TYPE_CHECKING:
    from .dispatcher import Kernel

__all__ = [
    "IN_STEP",
    "BarrierError",
    "KernelError",
    "KernelIndexError",
    "KernelTimeout",
    "Observer",
    "UninitializedError",
    "allow_unwritten",
    "cpu_jit",
    "install",
    "lanes_apart",
    "observe",
    "schedule",
    "time_limit",
]


def cpu_jit(function: Any, **options: Any) -> "Kernel":
    """A kernel of this engine from a Python function or from a kernel of numba.cuda (its source).

    Usable on a machine with a GPU too, beside the real numba.cuda: `kernel[grid,
    block](*numpy_arrays)`.
    """
    from .dispatcher import Kernel

    device = getattr(function, "targetoptions", {}).get("device") or getattr(
        function, "device", False
    )
    return Kernel(getattr(function, "py_func", function), device=bool(device), **options)
