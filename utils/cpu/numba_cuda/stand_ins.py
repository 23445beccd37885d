"""What kernels have in the place of `math`, `np`, `print`, `int` and the types of numbers."""

import builtins
import math
import sys
import types

import numpy as np

from .elements import as_number, cast
from .errors import KernelError
from .state import Dim3
from .types_of_numbers import EXACT, MODULUS, SMALLEST


class Cast:
    """A type in a kernel: converts a number as a GPU does, and serves where a dtype is wanted."""

    def __init__(self, dtype):
        self.dtype = self.cpu_dtype = dtype

    def __call__(self, value=0):
        if self.dtype.kind != "f":
            return as_number(value, self.dtype)
        if type(value) is int and value.bit_length() > EXACT:
            value = _of_64_bits(value)
        return self.dtype.type(value)

    def __eq__(self, other):
        return self.dtype == other

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return str(self.dtype)


def _of_64_bits(value):
    """A large integer as NumPy's, of which a float32 is rounded once; Python's goes by a double."""
    if SMALLEST <= value < 0:
        return np.int64(value)
    return np.uint64(value) if 0 <= value < MODULUS else value


# ---- math: float32 in, float32 out, and no exceptions, as on a GPU


def _quiet(function, fallback):
    def call(*values):
        kind = type(values[0])
        if len(values) == 2 and kind is not np.float64 and type(values[1]) is not kind:
            kind = np.result_type(
                *(v if isinstance(v, np.floating) else np.float64 for v in values)
            ).type
        try:
            result = function(*values)
        except (ValueError, OverflowError):
            result = fallback(*(np.float64(value) for value in values))
        if kind is np.float32 or kind is np.float16:
            return kind(result)
        return np.float64(result)

    call.__name__ = function.__name__
    return call


_NUMPY_NAMES = {
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "acosh": "arccosh",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "pow": "power",
    "atan2": "arctan2",
}
_MATH = (
    "acos acosh asin asinh atan atan2 atanh copysign cos cosh degrees erf erfc exp exp2 expm1 "
    "fabs fmod "
    "gamma hypot lgamma log log10 log1p log2 pow radians remainder sin sinh sqrt tan tanh"
).split()


def _rounded(function):
    """floor, ceil and trunc: an integer.

    NaN and infinities, which Python refuses, become 0 or the limit.
    """

    def call(value):
        try:
            return function(value if isinstance(value, int) else float(value))
        except (ValueError, OverflowError):
            return int(cast(np.float64(value), np.dtype(np.int64)))

    return call


def _nan(*values):
    return np.float64("nan")


def _infinite(*values):
    return np.float64("inf")


def _make_math():
    module = types.ModuleType("math")
    module.__dict__.update({k: v for k, v in vars(math).items() if not k.startswith("__")})
    for name in _MATH:
        if hasattr(math, name):
            fallback = getattr(
                np, _NUMPY_NAMES.get(name, name), _infinite if name in ("gamma", "lgamma") else _nan
            )
            setattr(module, name, _quiet(getattr(math, name), fallback))
    for name in ("floor", "ceil", "trunc"):
        setattr(module, name, _rounded(getattr(math, name)))
    for name in ("pi", "e", "tau", "inf", "nan"):
        setattr(module, name, np.float64(getattr(math, name)))
    return module


def _make_numpy():
    module = types.ModuleType("numpy")
    module.__dict__.update({k: v for k, v in vars(np).items() if not k.startswith("__")})
    for name in (
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp uintp float16 float32 float64 "
        "complex64 complex128 bool_ int_ uint single double"
    ).split():
        if hasattr(np, name):
            setattr(module, name, Cast(np.dtype(getattr(np, name))))
    for name in (
        "zeros ones empty full array asarray arange linspace zeros_like ones_like empty_like "
        "concatenate dot matmul sum mean sort argsort where stack vstack hstack reshape einsum"
    ).split():
        setattr(module, name, _refuse_numpy(name))
    for name in ("pi", "e", "inf", "nan"):
        setattr(module, name, np.float64(getattr(np, name)))
    return module


def _refuse_numpy(name):
    def call(*args, **kwargs):
        raise KernelError(
            f"np.{name} is not available in kernels: they cannot make or transform whole arrays",
            "Loop over elements; for scratch space use cuda.local.array or cuda.shared.array.",
        )

    return call


def gpu_print(*values, sep=" ", end="\n"):
    """print as kernels have it: floats with six decimals."""
    sys.stdout.write(" ".join(_printed(value) for value in values) + "\n")


def _printed(value):
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value):f}"
    if isinstance(value, Dim3):
        return f"({value.x}, {value.y}, {value.z})"
    if isinstance(value, tuple):
        parts = ", ".join(map(_printed, value))
        comma = "," if len(value) == 1 else ""
        return f"({parts}{comma})"
    return str(value)


def _to_float(value=0.0):
    return np.float64(value)


def _to_int(value=0):
    return (
        int(cast(value, np.dtype(np.int64)))
        if isinstance(value, (float, np.floating))
        else int(value)
    )


def _round(value, digits=None):
    """round: to an integer, or to so many decimals in the number's own type."""
    if digits is None:
        return _rounded(round)(value)
    kind = type(value) if isinstance(value, np.floating) else np.float64
    return kind(round(float(value), digits)) if math.isfinite(value) else value


math_in_kernels = _make_math()
numpy_in_kernels = _make_numpy()
BUILTINS = dict(
    vars(builtins),
    print=gpu_print,
    float=_to_float,
    int=_to_int,
    round=_round,
)
FUNCTIONS = {
    getattr(math, name): getattr(math_in_kernels, name)
    for name in (*_MATH, "floor", "ceil", "trunc")
    if hasattr(math, name)
}
