"""NVIDIA's cuFFT, called without anything between: the rival of the kernels in this folder."""

import ctypes
import functools

import torch

COMPLEX = 0x29  # cufftType: CUFFT_C2C
REAL = 0x2A  # CUFFT_R2C
FORWARD = -1
INVERSE = 1


@functools.cache
def library() -> ctypes.CDLL:
    """cuFFT's shared library, wherever it is installed. Raises an error if it is not."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    found = load_nvidia_dynamic_lib("cufft")
    return ctypes.CDLL(found.abs_path)


class Plan:
    """Transforms of the last axes of x into out, from float32 or complex64 to complex64.

    x, out: tensors on the GPU, contiguous; axes: how many of the last axes are transformed.
    The inverse does not divide. Raises RuntimeError with cuFFT's error code.
    """

    def __init__(
        self,
        x: torch.Tensor,
        out: torch.Tensor,
        axes: int = 1,
    ):
        lengths = x.shape[-axes:]
        self._x = x
        self._out = out
        self._handle = ctypes.c_int()
        self._has_direction = x.is_complex()
        error = library().cufftPlanMany(
            ctypes.byref(self._handle),
            axes,
            (ctypes.c_int * axes)(*lengths),
            None,
            1,
            lengths.numel(),
            None,
            1,
            out.shape[-axes:].numel(),
            COMPLEX if self._has_direction else REAL,
            x.numel() // lengths.numel(),
        )
        self._check(error)
        self._execute = library().cufftExecR2C
        arguments = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        if self._has_direction:
            self._execute = library().cufftExecC2C
            arguments.append(ctypes.c_int)
        self._execute.argtypes = arguments

    def __call__(self, direction: int = FORWARD) -> None:
        """Runs on the default stream."""
        arguments = [self._handle, self._x.data_ptr(), self._out.data_ptr()]
        if self._has_direction:
            arguments.append(direction)
        self._check(self._execute(*arguments))

    def close(self) -> None:
        """Gives the plan's memory back."""
        self._check(library().cufftDestroy(self._handle))

    @staticmethod
    def _check(error: int) -> None:
        if error:
            raise RuntimeError(f"cuFFT failed with its error {error}")
