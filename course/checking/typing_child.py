"""The process that asks numba-cuda's own compiler whether a GPU could run a kernel: its typing.

It reads requests from stdin, JSON, one a line, and answers each with a line: null or [message,
line]; null with null. Numba's compiler needs no GPU up to the point where machine code is made, and
stops there.
numba-cuda is imported in functions only: elsewhere the CPU engine stands in its place.
"""

import importlib
import json
import sys
from types import SimpleNamespace

import numpy as np

COMPUTE_CAPABILITY = (7, 5)


class Typed(Exception):
    """All of a kernel's types are known."""


def typing_only():
    """numba-cuda's compiler up to and with type inference; device functions are compiled whole."""
    from numba.cuda import compiler
    from numba.cuda.core.compiler_machinery import FunctionPass, PassManager, register_pass

    whole = compiler.CUDACompiler

    @register_pass(mutates_CFG=False, analysis_only=True)
    class Stop(FunctionPass):
        _name = "stop_after_typing"

        def __init__(self):
            FunctionPass.__init__(self)

        def run_pass(self, state):
            raise Typed

    class TypingOnly(whole):
        def define_pipelines(self):
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


def for_no_gpu():
    """What is compiled on the way (device functions, NumPy's) asks which GPU it is for."""
    from numba.cuda import api, compiler, dispatcher

    for module in (api, compiler, dispatcher):
        module.get_current_device = lambda: SimpleNamespace(compute_capability=COMPUTE_CAPABILITY)


def numba_type(kind):
    """The type of an argument: ["float32"], or with a number of dimensions that of an array."""
    from numba.cuda import types

    name, *ndim = kind
    scalar = types.boolean if name == "bool" else getattr(types, name)
    return types.Array(scalar, ndim[0], "C") if ndim else scalar


def value_of(kind, given, functions):
    """A global of the kernel as the compiler shall see it."""
    if kind == "module":
        return importlib.import_module(given)
    if kind == "numpy":
        return getattr(np, given)
    if kind in ("device", "function"):
        return build(given, functions, device=kind == "device")
    return tuple(given) if kind == "tuple" else given


def build(name, functions, device=False):
    """The Python function of a request, with its globals; device: as a device function."""
    from numba import cuda

    source, filename, names = functions[name]
    namespace = {key: value_of(kind, given, functions) for key, (kind, given) in names.items()}
    exec(compile(source, filename, "exec"), namespace)
    function = namespace[name]
    return cuda.jit(device=True)(function) if device else function


def refused(request, typing):
    """None, or (message, line) of the first thing that numba-cuda cannot compile."""
    from numba.core.errors import NumbaError
    from numba.cuda import compiler, types
    from numba.cuda.core.errors import NumbaError as CudaError

    function = build(request["name"], request["functions"])
    signature = tuple(map(numba_type, request["types"]))
    before, compiler.CUDACompiler = compiler.CUDACompiler, typing
    try:
        compiler.compile_cuda(function, types.void, signature, cc=COMPUTE_CAPABILITY)
    except Typed:
        return None
    except (NumbaError, CudaError) as error:
        loc = getattr(error, "loc", None)
        return str(error), getattr(loc, "line", None)
    finally:
        compiler.CUDACompiler = before
    return None


def main():
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
