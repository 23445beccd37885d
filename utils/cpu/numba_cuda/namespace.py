"""The names a kernel sees.

Its function is rebuilt with globals of its own, in which `cuda`, `math`, `np`, casts, `print` and
device functions are the engine's, whatever the kernel's module calls them. Nothing of the user's
changes.
"""

import builtins
import dis
import functools
import linecache
import math
import os
import sys
import types

import numpy as np

from .arrays import as_dtype, as_number, cast, view
from .engine import Dim3, now
from .errors import KernelError

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TRACER = os.path.normpath(_HERE + "../../tracer") + os.sep
_NOT_USERS = (_HERE, _TRACER)  # whose functions a kernel calls without knowing


def is_users(code):
    """Whether code is the user's: not the engine's, not a library's."""
    name = code.co_filename
    return (
        not name.startswith(_NOT_USERS)
        and "site-packages" not in name
        and not name.startswith("<frozen")
    )


class Cast:
    """A type in a kernel: converts a number as a GPU does, and serves where a dtype is wanted."""

    def __init__(self, dtype):
        self.dtype = self.cpu_dtype = dtype

    def __call__(self, value=0):
        return self.dtype.type(value) if self.dtype.kind == "f" else as_number(value, self.dtype)

    def __eq__(self, other):
        return self.dtype == other

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return str(self.dtype)


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
_BUILTINS = dict(
    vars(builtins),
    print=gpu_print,
    float=_to_float,
    int=_to_int,
    round=_round,
)
_FUNCTIONS = {
    getattr(math, name): getattr(math_in_kernels, name)
    for name in (*_MATH, "floor", "ceil", "trunc")
    if hasattr(math, name)
}


def specialize(function, done=None):
    """`function` with the engine's globals, closure and float constants."""
    done = {} if done is None else done
    if function in done:
        return done[function]
    names = {"__builtins__": _BUILTINS}  # a function takes its builtins from here when it is made
    code = function.__code__
    refuse_unsupported(code)
    if now.observer is not None:
        from .instrument import instrument, reporters

        code = instrument(code)
        names.update(reporters(code))
    code = convert_code(code)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    made = types.FunctionType(
        code,
        names,
        function.__name__,
        function.__defaults__,
        tuple(types.CellType() for _ in code.co_freevars) or None,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    done[function] = made  # known before its names are filled in: a device function may call itself
    for name in global_names(code):
        if name in function.__globals__:
            names[name] = convert(function.__globals__[name], name, done)
    for name, mine in zip(code.co_freevars, made.__closure__ or (), strict=True):
        try:
            mine.cell_contents = convert(cells[name].cell_contents, name, done)
        except ValueError:
            pass  # not assigned yet: reading it is the user's NameError
    return made


_UNSUPPORTED = {
    "lists": ("BUILD_LIST", "LIST_APPEND", "LIST_EXTEND"),
    "dictionaries": ("BUILD_MAP", "BUILD_CONST_KEY_MAP", "MAP_ADD"),
    "sets": ("BUILD_SET", "SET_ADD"),
    "f-strings": ("FORMAT_VALUE", "FORMAT_SIMPLE", "BUILD_STRING"),
    "imports": ("IMPORT_NAME",),
    "generators": ("YIELD_VALUE",),
    "assignments to global names": ("STORE_GLOBAL",),
    "try and with": ("CHECK_EXC_MATCH", "POP_EXCEPT", "BEFORE_WITH", "RERAISE"),
}
_REFUSED = {opname: what for what, opnames in _UNSUPPORTED.items() for opname in opnames}


@functools.cache
def refuse_unsupported(code):
    """Raise a KernelError for what runs in Python but not in kernels on a GPU."""
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno or line
        if what := _REFUSED.get(instruction.opname):
            error = KernelError(
                f"kernels have no {what}",
                "They have numbers, tuples, arrays, and cuda.local.array for scratch space.",
            )
            error.kernel = code.co_name
            error.filename = code.co_filename
            error.lineno = line
            error.code = linecache.getline(code.co_filename, line).strip()
            raise error
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            refuse_unsupported(constant)


def global_names(code):
    """All global names that code and the functions within it mention."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= global_names(constant)
    return names


@functools.cache
def convert_code(code):
    """Float literals become np.float64: `float32 * 2.0` is float64 as in Numba."""
    return code.replace(co_consts=tuple(convert_constant(constant) for constant in code.co_consts))


def convert_constant(constant):
    if type(constant) is float:
        return np.float64(constant)
    if type(constant) is complex:
        return np.complex128(constant)
    if type(constant) is tuple:
        return tuple(convert_constant(part) for part in constant)
    if isinstance(constant, types.CodeType):
        return convert_code(constant)
    return constant


def convert(value, name, done):
    """What global or closure variable `name` is for the kernel."""
    from .dispatcher import Kernel

    if isinstance(value, Kernel):
        if value.device:
            return specialize(value.py_func, done)
        return value
    if value is math:
        return math_in_kernels
    if value is np:
        return numpy_in_kernels
    if isinstance(value, types.ModuleType):
        if value.__name__ == "numba" or value.__name__.startswith(("numba.cuda", "numba_cuda")):
            return replace_module(value)
        return value
    if isinstance(value, type) and issubclass(value, np.generic):
        return Cast(np.dtype(value))
    if isinstance(value, np.dtype):
        return value
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and value in _FUNCTIONS:
        return _FUNCTIONS[value]
    if isinstance(value, np.ndarray):
        constant = np.array(value)
        constant.flags.writeable = False
        return view(constant, name, "constant")
    if type(value) is float:
        return np.float64(value)
    if type(value) is tuple:
        return tuple(convert(part, name, done) for part in value)
    module = getattr(type(value), "__module__", "") or ""
    own_module = getattr(value, "__module__", "") or ""
    if module.startswith(("numba", "numba_cuda")) or own_module.startswith(
        ("numba.cuda", "numba_cuda")
    ):
        return replace_numba(value, name, done)
    if isinstance(value, types.FunctionType) and is_users(value.__code__):
        return _undecorated(value)
    return value


def _undecorated(function):
    def call(*args, **kwargs):
        raise KernelError(
            f"a kernel cannot call {function.__name__}: it is an ordinary Python function",
            "Decorate it with @cuda.jit(device=True).",
        )

    return call


def replace_module(module):
    """The engine's counterpart of a module of Numba."""
    from . import cuda

    if module.__name__ == "numba":
        stand_in = types.ModuleType("numba")
        for name in (
            "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp uintp "
            "boolean complex64 complex128 void"
        ).split():
            if hasattr(module, name):
                setattr(stand_in, name, _type(getattr(module, name)))
        stand_in.cuda = cuda
        for name in ("prange", "literal_unroll"):
            if hasattr(module, name):
                setattr(stand_in, name, range if name == "prange" else tuple)
        return stand_in
    part = module.__name__.removeprefix("numba_cuda.").removeprefix("numba.cuda").strip(".")
    counterpart = cuda
    for name in part.split(".") if part else ():
        counterpart = getattr(counterpart, name, None)
        if counterpart is None:
            raise KernelError(f"{module.__name__} is not available on the CPU engine")
    return counterpart


def _type(numba_type):
    try:
        return Cast(as_dtype(numba_type))
    except TypeError:  # void, say
        return numba_type


def replace_numba(value, name, done):
    """An object of Numba's (a type, a stub, a compiled function) as the engine's."""
    from . import cuda

    if hasattr(value, "py_func"):  # njit or a real cuda.jit function
        return specialize(value.py_func, done)
    if hasattr(value, "bitwidth") or str(value) in ("bool", "boolean", "complex64", "complex128"):
        return _type(value)
    name_there = getattr(value, "__name__", None) or type(value).__name__
    if isinstance(value, type) or callable(value):
        for place in (cuda, cuda.atomic, cuda.fp16, cuda.libdevice):
            if hasattr(place, name_there):
                return getattr(place, name_there)
    return value
