"""NVIDIA's cuFFT, called without anything between: the rival of the kernels in this folder."""

import ctypes
import functools

import torch

COMPLEX, REAL = 0x29, 0x2A  # cufftType: CUFFT_C2C, CUFFT_R2C
FORWARD, INVERSE = -1, 1


@functools.cache
def library() -> ctypes.CDLL:
    """cuFFT's shared library, wherever it is installed. Raises an error if it is not."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return ctypes.CDLL(load_nvidia_dynamic_lib("cufft").abs_path)


class Plan:
    """Transforms of the last axes of x into out, from float32 or complex64 to complex64.

    x, out: tensors on the GPU, contiguous; axes: how many of the last axes are transformed.
    The inverse does not divide. Raises RuntimeError with cuFFT's error code.
    """

    def __init__(self, x: torch.Tensor, out: torch.Tensor, axes: int = 1):
        lengths = x.shape[-axes:]
        kind = COMPLEX if x.is_complex() else REAL
        self._x, self._out = x, out
        self._handle = ctypes.c_int()
        n = (ctypes.c_int * axes)(*lengths)
        batch = x.numel() // lengths.numel()
        shape = axes, n, None, 1, lengths.numel(), None, 1, out.shape[-axes:].numel(), kind, batch
        self._check(library().cufftPlanMany(ctypes.byref(self._handle), *shape))
        self._execute = library().cufftExecC2C if kind == COMPLEX else library().cufftExecR2C
        arguments = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self._execute.argtypes = arguments + [ctypes.c_int] * (kind == COMPLEX)
        self._has_direction = kind == COMPLEX

    def __call__(self, direction: int = FORWARD) -> None:
        """Runs on the default stream."""
        more = (direction,) if self._has_direction else ()
        self._check(self._execute(self._handle, self._x.data_ptr(), self._out.data_ptr(), *more))

    def close(self) -> None:
        """Gives the plan's memory back."""
        self._check(library().cufftDestroy(self._handle))

    @staticmethod
    def _check(error: int) -> None:
        if error:
            raise RuntimeError(f"cuFFT failed with its error {error}")
