"""Start a compiled kernel at little cost to the processor.

A launch from Python is mostly Python: each argument becomes an object, and an object is made of
those. A `Launcher` writes all that a launch says into one buffer, whose address the driver takes.
"""

import ctypes
import functools
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .signature import Parameter

BFLOAT16 = ("__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162", "nv_bfloat162")
#: `struct`'s code of an argument, by the NumPy dtype of the parameter
CODES = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
POINTER = "Q"
SLOT = 8  # bytes for each argument in the buffer: enough for any, and aligned for all
#: CUlaunchConfig: grid, block, bytes of shared memory; stream; attributes, and how many
CONFIG = "7I4xQQI4x"
ARGUMENTS_AT = struct.calcsize("@" + CONFIG)


class Launcher:
    """A kernel, and how its arguments are laid out.

    handle: the driver's, of a CUfunction or CUkernel. codes: `struct`'s code of each argument.
    driver: cuLaunchKernelEx, unless a test plays it.
    """

    def __init__(self, handle: int, codes: Sequence[str], driver: Callable | None = None) -> None:
        slots = [f"{code}{SLOT - struct.calcsize(code)}x" for code in codes]
        head, tail = struct.Struct("@" + CONFIG), struct.Struct("@" + "".join(slots))
        self._buffer = ctypes.create_string_buffer(ARGUMENTS_AT + tail.size)
        start = ctypes.addressof(self._buffer)
        places = [start + ARGUMENTS_AT + SLOT * n for n in range(len(codes))]
        self._places = (ctypes.c_void_p * len(places))(*places)
        self._pack_config = functools.partial(head.pack_into, self._buffer, 0)
        self._pack_values = functools.partial(tail.pack_into, self._buffer, ARGUMENTS_AT)
        self._start = functools.partial(
            driver or _driver(), start, handle, ctypes.addressof(self._places), None
        )
        self._config: tuple | None = None  # what the buffer has now
        self._busy = threading.Lock()  # one buffer: a launch at a time

    def __call__(self, config: tuple, values: Sequence) -> int:
        """Launch, and return the driver's error code, 0 for none.

        config: what `configuration` made; one tuple used again costs nothing. values: an int or
        float for each argument, of a pointer the address. Raises struct.error or OverflowError for
        one that does not fit.
        """
        with self._busy:
            if config is not self._config:
                self._pack_config(*config)
                self._config = config
            self._pack_values(*values)
            code: int = self._start()
            return code


def configuration(
    grid: Sequence[int], block: Sequence[int], shared_bytes: int, stream: int
) -> tuple:
    """A launch's configuration as a `Launcher` takes it: grid, block of three ints, a handle."""
    return (*grid, *block, shared_bytes, stream, 0, 0)


@functools.cache
def _driver() -> Callable:
    """cuLaunchKernelEx(config, kernel, arguments, extra)."""
    if sys.platform == "win32":
        library = ctypes.WinDLL("nvcuda")
    else:
        library = ctypes.CDLL("libcuda.so.1")
    function = library.cuLaunchKernelEx
    function.argtypes = [ctypes.c_void_p] * 4
    return function


class Arguments:
    """The usual arguments of a kernel, turned into what a `Launcher` takes, and nothing else.

    parameters: of a `signature.Signature`. Usual are numbers that fit, None, and arrays of the
    right type that lie on the GPU, one element beside the other.
    """

    def __init__(self, parameters: Sequence[Parameter]):
        self.codes = [_code(each) for each in parameters]
        self._numbers = [n for n, each in enumerate(parameters) if not each.pointer]
        self._names = {n: _element(each) for n, each in enumerate(parameters) if each.pointer}
        self._dtypes = {n: _numpy_dtype(name) for n, name in self._names.items()}
        self._pointers = [(n, None) for n in self._names]  # and the torch dtype, once there is one
        self._tensor = None

    @property
    def known(self) -> bool:
        """Whether the kernel's parameters are all of a type that can be laid out here."""
        return None not in self.codes and None not in self._names.values()

    def values(self, arguments: Sequence) -> list | None:
        """A number for each argument; None where one is unusual and has to be looked at."""
        if self._tensor is None and "torch" in sys.modules:
            self._meet_torch()
        values = list(arguments)
        if len(values) != len(self.codes):
            return None
        for n in self._numbers:
            if values[n].__class__ not in (int, float):
                return None
        tensor = self._tensor
        for n, dtype in self._pointers:
            value = values[n]
            if tensor and isinstance(value, tensor):
                if value.dtype is not dtype or not value.is_cuda or not value.is_contiguous():
                    return None
                values[n] = value.data_ptr()
            elif value is None:
                values[n] = 0
            else:
                values[n] = _numba_address(value, self._dtypes[n])
                if values[n] is None:
                    return None
        return values

    def _meet_torch(self) -> None:
        torch = sys.modules["torch"]
        self._tensor = torch.Tensor
        names = self._names.items()
        self._pointers = [(n, getattr(torch, name, None) if name else None) for n, name in names]


def _element(parameter: Parameter) -> str | None:
    """The name of the type that a pointer points to, as torch and NumPy have it."""
    if parameter.type in BFLOAT16:
        return "bfloat16"
    return parameter.dtype.name if parameter.dtype else None


def _code(parameter: Parameter) -> str | None:
    if parameter.pointer:
        return POINTER
    return CODES.get(parameter.dtype.name) if parameter.dtype else None


def _numpy_dtype(name: str | None) -> np.dtype | None:
    return None if name in (None, "bfloat16") else np.dtype(name)


def _numba_address(value: Any, dtype: np.dtype | None) -> int | None:
    """Where an array of numba-cuda lies on the GPU; None for all else, another type, or gaps."""
    if value.__class__.__name__ != "DeviceNDArray" or dtype is None or value.dtype != dtype:
        return None
    return (value.device_ctypes_pointer.value or 0) if value.is_c_contiguous() else None
