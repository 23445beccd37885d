"""What kernels name of Numba where Numba is not installed, as in a web page: types, signatures.

The CPU engine runs kernels as Python, so it needs no compiler; of Numba it needs what programs
write: `float32`, `float32[:, :]`, `void(float32[:], int32)`, and the errors that may be caught.
`install` serves these modules by Numba's names where `import numba` would find nothing.
"""

import types as pytypes

import numpy as np

_NAMES = "numba.core.types"


class NumbaError(Exception):
    """What Numba's compiler raises."""


class Type:
    """A type, named as Numba names it."""

    __module__ = _NAMES

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        return isinstance(other, Type) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __getitem__(self, axes):
        """`float32[:]`: an array of this type; `[::1]` where its last axis is contiguous."""
        axes = axes if isinstance(axes, tuple) else (axes,)
        return Array(self, len(axes), _layout(axes))

    def __call__(self, *arguments):
        """A signature that gives this type back, or a number as this type."""
        if all(isinstance(argument, Type) for argument in arguments):
            return Signature(self, arguments)
        (number,) = arguments
        value = self.dtype.type(number)
        return int(value) if self.dtype.kind in "iu" else value

    @property
    def dtype(self):
        """NumPy's type. NotImplementedError where there is none, as of `void`."""
        raise NotImplementedError(f"{self.name} is no type for array elements")


class Number(Type):
    """A number, or a truth value."""

    __module__ = _NAMES

    def __init__(self, name):
        super().__init__(name)
        self.bitwidth = 8 * self.dtype.itemsize

    @property
    def dtype(self):
        return np.dtype(self.name)


class Array(Type):
    """An array; layout: C or F where it is contiguous, else A."""

    __module__ = _NAMES

    def __init__(self, element, ndim, layout):
        super().__init__(f"array({element.name}, {ndim}d, {layout})")
        self.element, self.ndim, self.layout = element, ndim, layout

    @property
    def dtype(self):
        return self.element


def _layout(axes):
    if axes[-1].step == 1:
        return "C"
    return "F" if axes[0].step == 1 else "A"


class Signature(Type):
    """What a function gives back for arguments of these types."""

    __module__ = _NAMES

    def __init__(self, return_type, args):
        super().__init__(f"{tuple(args)} -> {return_type}")
        self.return_type, self.args = return_type, tuple(args)


def normalize_signature(signature):
    """(arguments, what is given back or None) of `void(int32)`, as text, too, or of `(int32,)`."""
    if isinstance(signature, str):
        signature = eval(signature, {"__builtins__": {}}, TYPES)
    if isinstance(signature, Signature):
        return signature.args, signature.return_type
    if isinstance(signature, tuple):
        return signature, None
    raise TypeError(f"a signature is `void(int32)` or `(int32,)`, not {signature!r}")


def as_dtype(numba_type):
    """NumPy's type of the same elements."""
    return np.dtype(numba_type.dtype)


def from_dtype(dtype):
    """The type of an array's elements."""
    dtype = np.dtype(dtype)
    return NUMBERS.get(dtype.name) or Record(dtype)


class Record(Type):
    """An element with named fields."""

    __module__ = _NAMES

    def __init__(self, dtype):
        super().__init__(f"Record({dtype})")
        self._dtype = dtype

    @property
    def dtype(self):
        return self._dtype


def njit(function=None, **options):
    """A function that kernels may call; here it stays as it is."""
    if function is None:
        return lambda function: njit(function)
    function.py_func = function
    return function


_NUMBERS = """int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    complex64 complex128 bool"""
NUMBERS = {name: Number(name) for name in _NUMBERS.split()}
TYPES = {
    **NUMBERS,
    "boolean": NUMBERS["bool"],
    "bool_": NUMBERS["bool"],
    "intp": NUMBERS["int64"],
    "uintp": NUMBERS["uint64"],
    "void": Type("none"),
    "none": Type("none"),
}


def _module(name, **members):
    module = pytypes.ModuleType(name, f"{name}: {__doc__}")
    module.__path__ = []  # a package: `import numba.cuda` looks within it
    vars(module).update(members)
    return module


def modules():
    """The modules by their names."""
    types = _module("numba.types", **TYPES)
    types.__all__ = list(TYPES)
    errors = _module("numba.core.errors", NumbaError=NumbaError)
    sigutils = _module("numba.core.sigutils", normalize_signature=normalize_signature)
    core_types = _module(_NAMES, __all__=list(TYPES), **TYPES)
    core = _module("numba.core", errors=errors, sigutils=sigutils, types=core_types)
    support = _module("numba.np.numpy_support", as_dtype=as_dtype, from_dtype=from_dtype)
    numpys = _module("numba.np", numpy_support=support)
    numba = _module("numba", **TYPES, types=types, core=core, np=numpys, njit=njit, prange=range)
    made = numba, types, core, core_types, errors, sigutils, numpys, support
    return {module.__name__: module for module in made}
