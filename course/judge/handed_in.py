"""What was handed in: a function, a file, a text, a kernel; and how it gets to its own process."""

import importlib
import inspect
import io
import linecache
import os
import re
import sys
import textwrap
import types
from dataclasses import dataclass, field
from pathlib import Path

from course.judge import demands as asked
from utils import has_gpu

#: Modules that every candidate's process has imported; others by what its text speaks of
ALWAYS = ("numpy", "utils")
OFTEN = {
    "torch": ("torch", "torch.nn.functional"),
    "triton": ("torch", "torch.nn.functional", "triton", "triton.language"),
    "cuda": ("numba.cuda", "utils.tracer"),
    "numba": ("numba.cuda", "utils.tracer"),
    "__global__": ("numba.cuda", "utils.cuda_c"),
}
KERNELS = ("triton", "cuda", "__global__")


class NotAKernel(TypeError):
    """What was handed in cannot be judged; the text says what can."""


@dataclass(frozen=True)
class HandedIn:
    """A candidate on its way to its own process.

    kind: "python" (a module's text), "cuda_c" (a kernel's text) or "pickle" (a function of this
        process, with what it uses). source: the text, "" where there is none. function: the object,
        where it is one.
    """

    name: str
    kind: str
    source: str = ""
    blob: bytes = b""
    filename: str = ""
    function: object = None
    modules: tuple = field(default=ALWAYS)
    speaks_of_kernels: bool = False  # whether any language of kernels is named in it
    hidden: tuple = ()  # folders from which it must import nothing: the reference lies there

    @property
    def speaks_of_cuda_c(self):
        """Whether it is CUDA C, or may load some."""
        return self.kind == "cuda_c" or "cuda_c" in self.source


def of(candidate, demands) -> HandedIn:
    """A candidate as it is sent. Raises NotAKernel, FileNotFoundError."""
    if isinstance(candidate, os.PathLike):
        return of_text(Path(candidate).read_text(), Path(candidate).name)
    if isinstance(candidate, str):
        if "\n" in candidate:
            return of_text(candidate, "submission")
        return of_text(Path(candidate).read_text(), Path(candidate).name)
    if not callable(candidate) and not hasattr(candidate, "fn"):
        raise NotAKernel(
            f"judge() got {type(candidate).__name__}: it takes a function, a kernel, a path of a"
            " .py or .cu file, or the text of one."
        )
    return of_function(candidate)


def of_text(source, name):
    """A submission's text: CUDA C where it holds a kernel and is no Python."""
    is_cuda = name.endswith((".cu", ".cuh")) or "__global__" in source and not is_python(source)
    kind = "cuda_c" if is_cuda else "python"
    filename = f"/submission/{name if name.endswith(('.py', '.cu')) else name + '.py'}"
    return HandedIn(
        name,
        kind,
        source,
        filename=filename,
        modules=modules_for(source),
        speaks_of_kernels=speaks_of_kernels(source),
    )


def is_python(source):
    """Whether a text is Python."""
    try:
        compile(source, "submission", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def modules_for(source):
    """What to import beforehand for a candidate of this text.

    On a GPU that is everything, as PyTorch, whose events are the clock, takes most of the time: one
    nursery for all candidates has to import it once.
    """
    found = dict.fromkeys(ALWAYS)
    for word, modules in OFTEN.items():
        if has_gpu() or word in source:
            found |= dict.fromkeys(modules)
    return tuple(found) + ("numba.cloudpickle",) * has_gpu()


def speaks_of_kernels(source):
    """Whether a text names any language of kernels: others run nothing that an engine could."""
    return any(word in source for word in KERNELS)


def of_function(function):
    """A function or kernel of this process, written down with all that it uses by value."""
    inner = getattr(function, "py_func", getattr(function, "fn", function))
    inner = getattr(inner, "forward", inner) if not inspect.isroutine(inner) else inner
    try:
        source = textwrap.dedent(inspect.getsource(inner))
    except (OSError, TypeError):
        source = ""
    code = getattr(inner, "__code__", None)
    own = getattr(inspect.unwrap(inner), "__code__", None)
    if own is not None and not is_text_of(source, own):
        source = ""
    name = getattr(function, "__name__", type(function).__name__)
    loaded = set(sys.modules)
    text = source + " ".join(names_of(code))
    modules = (*modules_for(text), "numba.cloudpickle")
    if "torch" in loaded and has_tensors(inner):
        modules = (*modules, *OFTEN["torch"])
    modules = tuple(dict.fromkeys(modules))
    blob = by_value(function)
    filename = code.co_filename if code else "function"
    # a function's globals may hold kernels of any name
    return HandedIn(name, "pickle", source, blob, filename, function, modules, True)


def is_text_of(source, code):
    """Whether a text is a function's own. In the lines of a file that was changed since it was
    loaded may stand another function, of whose deeds this one would be accused."""
    if code.co_name == "<lambda>":
        return "lambda" in source
    return re.search(rf"\bdef {code.co_name}\b", source) is not None


def names_of(code):
    """Names that a function uses, and those inside it."""
    if code is None:
        return
    yield from code.co_names
    for part in code.co_consts:
        if hasattr(part, "co_names"):
            yield from names_of(part)


def has_tensors(function):
    """Whether a function's globals hold PyTorch under some name."""
    return "torch" in getattr(function, "__globals__", {})


def by_value(function):
    """The bytes of a function with the functions of its own module, so that no module is imported
    on the other side that may know the reference."""
    from numba import cloudpickle

    stream = io.BytesIO()
    own = getattr(inspect.getmodule(getattr(function, "py_func", function)), "__name__", "__main__")

    class Writer(cloudpickle.CloudPickler):
        def reducer_override(self, value):
            if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is value:
                return importlib.import_module, (value.__name__,)
            py_func = getattr(value, "py_func", None)
            if type(value).__module__ == "utils.cpu.numba_cuda.dispatcher" and py_func:
                return kernel_again, (py_func, value.device)
            if type(value).__module__ == "triton.runtime.jit" and hasattr(value, "raw_src"):
                if value.fn.__module__.startswith("triton."):
                    return getattr, (sys.modules[value.fn.__module__], value.fn.__name__)
                lines = linecache.getlines(value.fn.__code__.co_filename)
                return triton_kernel_again, (value.fn, lines)
            return super().reducer_override(value)

    module = sys.modules.get(own)
    by_hand = own != "__main__" and module is not None and not own.startswith(("torch", "numpy"))
    if by_hand:
        cloudpickle.register_pickle_by_value(module)
    try:
        Writer(stream).dump(function)
    except Exception as error:
        raise NotAKernel(
            f"{getattr(function, '__name__', function)!r} cannot be sent to a process of its own"
            f" ({type(error).__name__}: {error}). Hand in its file, or its text."
        ) from None
    finally:
        if by_hand:
            cloudpickle.unregister_pickle_by_value(module)
    return stream.getvalue()


def kernel_again(py_func, device):
    """A kernel of the CPU engine, on the other side."""
    from numba import cuda

    return cuda.jit(py_func, device=True) if device else cuda.jit(py_func)


def triton_kernel_again(function, lines):
    """A Triton kernel on the other side, whose compiler asks for the lines of its file."""
    import triton

    name = function.__code__.co_filename
    linecache.cache.setdefault(name, (sum(map(len, lines)), None, lines, name))
    return triton.jit(function)


def message(handed_in, demands):
    """The worker's message to load a candidate."""
    return {
        "kind": handed_in.kind,
        "source": handed_in.source,
        "blob": handed_in.blob,
        "filename": handed_in.filename,
        "entry": demands.entry,
        "hidden": handed_in.hidden,
        "entries": asked.ENTRIES,
        "check": demands.race_free,
        "init": demands.init or {"arguments": (), "seed": 0},
    }
