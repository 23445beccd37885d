"""The names a kernel sees.

Its function is rebuilt with globals of its own, in which `cuda`, `math`, `np`, casts, `print` and
device functions are the engine's, whatever the kernel's module calls them. Nothing of the user's
changes.
"""

import ast
import contextlib
import functools
import math
import os
import types

import numpy as np

from ...sizes import Size
from . import fibres, settings, suspending, widths
from .arrays import view
from .elements import as_dtype
from .errors import KernelError, placed
from .inference import Inference
from .instrument import (
    LEFT_NAME,
    compare_identities,
    leaves,
    rebuilt,
    report,
    reporters,
    same,
    syntax_tree,
)
from .shapes import refuse_computed_shapes
from .stand_ins import BUILTINS, FUNCTIONS, Cast, math_in_kernels, numpy_in_kernels
from .state import LEFT, now
from .types_of_numbers import signed
from .unsupported import refuse_unsupported

GUESSES = 3  # of what a function gives back that calls itself
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


def specialize(function, done=None, kinds=(), *, kernel=False):
    """`function` with the engine's globals, closure and float constants.

    kinds: the types of its arguments, where they are known; then integers have Numba's widths.
    kernel: gives LEFT back where it ends at a `return`.
    """
    done = {} if done is None else done
    if (function, kinds) in done:
        return done[function, kinds]
    calls = {}
    names = {"__builtins__": BUILTINS}  # a function takes its builtins from here when it is made
    code = function.__code__
    refuse_unsupported(code)
    code = rebuilt(code, lambda tree: _changed(tree, function, kinds, calls, done, kernel))
    if code is not function.__code__:
        names.update(widths.NAMES)
        names.update(suspending.NAMES)
        names.update({LEFT_NAME: LEFT, "__same__": same})
    if now.observer is not None:
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
    done[function, kinds] = (
        made  # known before its names are filled in: a device function may call itself
    )
    for name, (callee, its_kinds) in calls.items():
        names[name] = callee.for_types(its_kinds, done)
    for name in global_names(code):
        if name in function.__globals__:
            names[name] = convert(function.__globals__[name], name, done)
    for name, mine in zip(code.co_freevars, made.__closure__ or (), strict=True):
        try:
            mine.cell_contents = convert(cells[name].cell_contents, name, done)
        except ValueError:
            pass  # not assigned yet: reading it is the user's NameError
    return made


def _changed(tree, function, kinds, calls, done, kernel):
    """Changes the syntax tree of a function as its types and an observer ask; whether anything."""
    refuse_computed_shapes(tree, function.__code__)
    inference = _inference(function, kinds, done)
    with _placing(function, inference):
        changed = widths.widen(tree, inference, calls)
    changed = compare_identities(tree) or changed
    if kernel:
        changed = leaves(tree) or changed
    if fibres.are_generators():
        seen = _calls(function, calls, done)
        changed = suspending.suspend(tree, seen, settings.shuffled()) or changed
    return report(tree) if now.observer is not None else changed


def _calls(function, made, done):
    """What the calls of a function are: see `suspending.Calls`."""

    def waits(callee):
        key = callee.py_func, "waits"
        if key not in done:
            done[key] = False  # of a function that calls itself: what else it calls decides
            tree = syntax_tree(callee.py_func.__code__)
            inner = _calls(callee.py_func, {}, done)
            interrupted = settings.shuffled()
            done[key] = tree is not None and suspending.suspend(tree.body[0], inner, interrupted)
        return done[key]

    return suspending.Calls(lambda node: _value(node, function), _device_function, waits, made)


def _inference(function, kinds, done):
    """What works out the types of a function's expressions."""

    def called(value, given, named):
        callee = _device_function(value)
        if callee is None:
            return None, None
        its_kinds = callee.bound(given, named)
        return (callee, its_kinds), callee.result(its_kinds, done)

    names = widths.arguments(function.__code__, kinds)
    return Inference(names, lambda node: _value(node, function), called)


@contextlib.contextmanager
def _placing(function, inference):
    """Tells a mistake with the line that inference has come to."""
    try:
        yield
    except KernelError as error:
        if error.lineno is None:
            placed(error, function.__code__, inference.line)
        raise


def _device_function(value):
    """A device function, or one that @njit made, which kernels may call; None of anything else."""
    from .dispatcher import Kernel

    if isinstance(value, Kernel):
        return value if value.device else None
    return Kernel(value.py_func, device=True) if hasattr(value, "py_func") else None


def result_of(function, kinds, done):
    """The type of what a function gives back for arguments of these types; None: not known."""
    key = function, kinds, "result"
    if key in done:
        return done[key]
    tree = syntax_tree(function.__code__)
    result = None if tree is None else signed(64)  # a guess, for a function that calls itself
    for _ in range(GUESSES):
        done[key] = result
        if tree is not None:
            inference = _inference(function, kinds, done)
            with _placing(function, inference):
                inference.body(tree.body[0].body)
            result = inference.result
        if result == done[key]:
            return result
    done[key] = None
    return None


def _value(node, function):
    """What an expression of global names is, as `cuda.float32`; None where it is none."""
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, function), node.attr, None)
    if not isinstance(node, ast.Name):
        return getattr(node, "value", None)
    if node.id in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(node.id)]
        try:
            return cell.cell_contents
        except ValueError:  # not assigned yet
            return None
    return function.__globals__.get(node.id)


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
        return value.in_kernels(done) if value.device else value
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
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and value in FUNCTIONS:
        return FUNCTIONS[value]
    if isinstance(value, np.ndarray):
        constant = np.array(value)
        constant.flags.writeable = False
        return view(constant, name, "constant")
    if type(value) is float:
        return np.float64(value)
    if isinstance(value, Size):
        return int(value)
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
