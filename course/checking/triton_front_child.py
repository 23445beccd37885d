"""The process that asks Triton's own front end whether it takes a kernel: Python to TTIR.

It reads requests from stdin, JSON, one a line, and answers each with a line: null or [message,
line]; null with null. No GPU, no driver and no folder for compiled kernels is needed. It does not
import utils, which would put Triton on the CPU engine.
"""

import contextlib
import importlib
import json
import linecache
import signal
import sys
from collections.abc import Collection
from typing import Any

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError
from triton.errors import TritonError
from triton.runtime.jit import MockTensor, create_function_from_signature

TARGET = GPUTarget("cuda", 90, 32)  # Hopper: it has the 8-bit floats, too
SECONDS = 20  # of CPU time, for one request: tl.static_range can have any length


class Other:
    """What stands for a global that is no part of the language."""


def value_of(kind: str, given: Any) -> Any:
    """A global of a kernel, from its description."""
    match kind:
        case "module":
            return importlib.import_module(given)
        case "plain":
            return given
        case "constexpr":
            return tl.constexpr(value_of(*given))
        case "dtype":
            return tl.dtype(given)
        case "theirs":
            return getattr(importlib.import_module(given[0]), given[1])
    return Other()


def kernels_of(functions: dict[str, tuple]) -> dict[str, Any]:
    """The kernels of a request, each with its globals, by their keys."""
    kernels, scopes = {}, {}
    for key, (name, source, file, names) in functions.items():
        scope = {n: value_of(*given) for n, given in names.items() if given[0] != "kernel"}
        scope["__name__"] = "kernels"  # Triton asks for a module's name
        linecache.cache[file] = len(source), None, source.splitlines(True), file
        exec(compile(source, file, "exec"), scope)
        kernels[key] = scope[name] = triton.jit(scope[name])
        scopes[key] = scope
    for key, (_, _, _, names) in functions.items():  # they may call one another
        kernel_names = {n: kernels[given] for n, (kind, given) in names.items() if kind == "kernel"}
        scopes[key].update(kernel_names)
    return kernels


def refused(request: dict) -> list | None:
    """None, or [message, line] of the first thing that Triton does not take."""
    kernels = kernels_of(request["functions"])
    kernel = kernels[request["kernel"]]
    arguments = [
        MockTensor(value) if kind == "tensor" else value for kind, value in request["arguments"]
    ]
    backend = make_backend(TARGET)
    bind = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, special, options = bind(*arguments)
    options, types, constants, facts = kernel._pack_args(backend, {}, bound, special, options)
    source = ASTSource(kernel, types, constants, facts)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    made_by = backend.get_codegen_implementation(options), backend.get_module_map(), context
    try:
        source.make_ir(TARGET, options, *made_by)
    except (TritonError, RuntimeError) as error:
        return told(error, kernels.values())
    return None


def told(error: BaseException | None, kernels: Collection) -> list:
    """[message, line]: of the innermost error, and where in the learner's kernels it is."""
    message, line = str(error), None
    while isinstance(error, CompilationError):
        message = message_of(error) or message
        for kernel in kernels:
            if kernel.src == error.src and hasattr(error.node, "lineno"):
                line = kernel.starting_line_number + error.node.lineno - 1
        error = error.__cause__
    return [message, line]


def message_of(error: Any) -> str | None:
    """What an error says, without the source around it: Triton writes others' with repr."""
    inner = error.__context__
    if inner is not None and error.error_message == repr(inner):
        return str(inner)
    said: str | None = error.error_message
    return said


def main() -> None:
    """Answer requests until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr  # a kernel may print while it is compiled
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # it ends this process
        try:
            request = json.loads(line)
            answer = refused(request) if request else None
        except Exception as error:
            answer = None
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main()
