"""The process that asks numba-cuda's own compiler whether a GPU could run a kernel.

It reads requests from stdin, JSON, one a line, and answers each with a line: null or [message,
line]; null with null. Numba's compiler needs no GPU up to LLVM's code, and stops there.
numba-cuda is imported in functions only: elsewhere the CPU engine stands in its place.
"""

import base64
import collections
import enum
import functools
import importlib
import json
import pickle
import re
import sys
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

#: By key: (name, source, file, the globals that it uses as (kind, value)) of each function
Functions = dict[str, tuple[str, str, str, dict[str, tuple[str, Any]]]]
COMPUTE_CAPABILITY = (7, 5)


class Typed(Exception):
    """All of a kernel's types are known."""


def typing_only() -> type:
    """numba-cuda's compiler up to and with type inference; device functions are compiled whole."""
    from numba.cuda import compiler
    from numba.cuda.core.compiler_machinery import FunctionPass, PassManager, register_pass

    whole = compiler.CUDACompiler

    @register_pass(mutates_CFG=False, analysis_only=True)
    class Stop(FunctionPass):  # type: ignore[misc]  # numba-cuda has no types
        _name = "stop_after_typing"

        def __init__(self) -> None:
            FunctionPass.__init__(self)

        def run_pass(self, state: object) -> bool:
            raise Typed

    class TypingOnly(compiler.CUDACompiler):  # type: ignore[misc]  # as above
        def define_pipelines(self) -> list:
            compiler.CUDACompiler = whole
            passes = PassManager("typing")
            for one, says in super().define_pipelines()[0].passes:
                if one.__name__ == "AnnotateTypes":  # the first behind typing
                    break
                passes.add_pass(one, says)
            passes.add_pass(Stop, "stop")
            passes.finalize()
            return [passes]

    return TypingOnly


def for_no_gpu() -> None:
    """What is compiled on the way (device functions, NumPy's) asks which GPU it is for."""
    from numba.cuda import api, compiler, dispatcher

    for module in (api, compiler, dispatcher):
        module.get_current_device = lambda: SimpleNamespace(compute_capability=COMPUTE_CAPABILITY)


def numba_type(kind: list) -> Any:
    """The type of an argument: ["float32"], or with a number of dimensions that of an array."""
    from numba.cuda import types

    name, *ndim = kind
    scalar = type_named(name)
    return types.Array(scalar, ndim[0], "C") if ndim else scalar


def value_of(kind: str, given: Any, functions: Functions) -> Any:
    """A global of the kernel as the compiler shall see it."""
    if kind in ("device", "function"):
        return build(given, functions, device=kind == "device")
    if kind == "tuple":
        parts, fields = given
        parts = [value_of(one, value, functions) for one, value in parts]
        return named_tuple(fields[0], tuple(fields[1]))(*parts) if fields else tuple(parts)
    if kind == "fields":
        return named_tuple(given[0], tuple(given[1]))
    if kind == "enum":
        return enumeration(json.dumps(given), functions)
    if kind == "member":
        return value_of("enum", given[0], functions)[given[1]]
    if kind == "class":
        return type(given, (), {})
    if kind == "object":  # Numba names its class, and knows no such class
        module, name = given
        return type(name, (), {"__module__": module, "__qualname__": name})()
    return PLAIN_VALUES[kind](given)


def named(given: tuple[str, str]) -> Any:
    """What a module has by this name, such as "atomic.add"."""
    module, name = given
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def on_device(given: tuple[str, list[int]]) -> SimpleNamespace:
    """What says of itself that it is an array in device memory; nobody reads it."""
    typestr, shape = given
    said = {"shape": tuple(shape), "typestr": typestr, "data": (1 << 12, False), "version": 3}
    return SimpleNamespace(__cuda_array_interface__=said)


def type_named(name: str) -> Any:
    """A number's type of Numba."""
    from numba.cuda import types

    return types.boolean if name == "bool" else getattr(types, name)


PLAIN_VALUES: dict[str, Callable[[Any], Any]] = {
    "plain": lambda given: given,
    "data": lambda given: pickle.loads(base64.b64decode(given)),
    "module": importlib.import_module,
    "named": named,
    "on_device": on_device,
    "type": type_named,
}
named_tuple = functools.cache(collections.namedtuple)  # the same fields, the same class
enumerations: dict[str, Any] = {}


def enumeration(given: str, functions: Functions) -> Any:
    """The Enum of this base, name and members (JSON); the same one for the same."""
    if given not in enumerations:
        base, name, members = json.loads(given)
        members = [(one, value_of(kind, value, functions)) for one, (kind, value) in members]
        enumerations[given] = getattr(enum, base)(name, members)
    return enumerations[given]


def build(key: str, functions: Functions, device: bool = False) -> Any:
    """The Python function of a request, with its globals; device: as a device function."""
    from numba import cuda

    name, source, filename, names = functions[key]
    namespace = {one: value_of(kind, given, functions) for one, (kind, given) in names.items()}
    exec(compile(source, filename, "exec"), namespace)
    function = namespace[name]
    return cuda.jit(device=True)(function) if device else function


#: What numba-cuda says of Python that it does not know -> what that is
UNKNOWN = {
    "(UNPACK_EX)": "a `*` on the left of an assignment",
    "(LOAD_BUILD_CLASS)": "a class of its own",
    "(IMPORT_NAME)": "an `import` of its own",
    "(MATCH_": "a `match` that takes a value apart",
    "build_set": "a set",
    "set_try_status": "`try`",
    "<ufunc": "this function of NumPy (`math` may have it)",
}


def refused(request: dict, typing: type) -> tuple[str, int | None] | None:
    """None, or (message, line) of the first thing that numba-cuda cannot compile.

    typing: the compiler that stops there, for requests that do not ask for the whole.
    """
    from numba.core.errors import NumbaError
    from numba.cuda.core.errors import NumbaError as CudaError

    function = build(request["key"], request["functions"])
    signature = tuple(map(numba_type, request["types"]))
    try:
        compiled(function, signature, None if request["whole"] else typing)
    except Typed:
        return None
    except (NumbaError, CudaError) as error:
        loc = getattr(error, "loc", None)
        written = re.search(r'File ".*", line (\d+)', str(error))  # an untyped global's has no loc
        return str(error), getattr(loc, "line", written and int(written[1]))
    except Exception as error:  # of many kinds: it came upon what nobody had thought of
        compiled(nothing, ())  # raises where it is not the kernel's fault
        return in_words(error), line_of(error)
    return None


def compiled(function: Any, signature: tuple, typing: type | None = None) -> None:
    """Compile a kernel up to LLVM's code, or as far as the compiler `typing` goes."""
    from numba.cuda import compiler, types

    before = compiler.CUDACompiler
    compiler.CUDACompiler = typing or before
    try:
        compiler.compile_cuda(function, types.void, signature, cc=COMPUTE_CAPABILITY)
    finally:
        compiler.CUDACompiler = before


def nothing() -> None:
    """The kernel that every compiler takes."""


def in_words(error: Exception) -> str:
    """What a kernel cannot have."""
    for name, words in UNKNOWN.items():
        if name in str(error):
            return f"A kernel cannot have {words}."
    return f"{type(error).__name__}: {error}"


def line_of(error: Exception) -> int | None:
    """The line of the instruction at which lowering stopped, or None."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        loc = getattr(frame.f_locals.get("inst"), "loc", None)
        if loc:
            line: int = loc.line
            return line
    return None


def main() -> None:
    for_no_gpu()
    typing = typing_only()
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = refused(request, typing) if request else None
        except Exception as error:
            answer = None
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
