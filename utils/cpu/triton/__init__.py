"""Triton kernels on the CPU, through Triton's own interpreter, with what it gets wrong put right.

- bfloat16 (`bfloat16`): the interpreter computes with its bits as if they were integers.
- The index of a `range` is a tensor, as it is on a GPU. `tl.dot` of float32 is exact, or, inside
  `tensor_core_dots()`, cuts its factors to TF32 as a GPU does by default (`arithmetic`).
- What a GPU would do wrong without a word is an error here that names the line and the program
  (`mistakes`): loads and stores outside of the tensor whose pointer was taken; values that nobody
  wrote, from a masked load without other= or from torch.empty, that are stored or used as an
  address (`undefined`); two programs that write the same element, or one that reads what another
  writes, without an order between them (`races`). Inside `taking_turns(seed)` programs do not run
  one after another, but come between one another's loads and atomic operations (`turns`).
- `triton.testing.do_bench` runs the function once and returns NaN: a CPU's time is no measurement
  of a GPU. `triton.autotune` runs every configuration once and keeps the first (`driver`).

README.md beside this file tells how.
"""

import importlib.abc
import importlib.machinery
import os
import sys

from .arithmetic import correct_arithmetic, tensor_core_dots, to_tf32
from .bfloat16 import correct_bfloat16
from .driver import correct_driver, correct_testing
from .libdevice import bind_functions, correct_libdevice
from .mistakes import KernelMistake
from .turns import IN_STEP, taking_turns
from .undefined import track_undefined
from .watch import watch_launches

__all__ = ["IN_STEP", "KernelMistake", "install", "taking_turns", "tensor_core_dots", "to_tf32"]

_MISSING = (
    "Triton is not installed: it exists for Linux only. Run the Triton cells on Linux or in Colab; "
    "everything else of the course runs here."
)


def install():
    """Make `import triton` give the corrected interpreter. Call it before that import."""
    os.environ["TRITON_INTERPRET"] = "1"
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name, correct in _CORRECTIONS.items():
        if name in sys.modules:
            correct(sys.modules[name])


class _Finder(importlib.abc.MetaPathFinder):
    """Corrects a few of Triton's modules right after their import; none is imported early."""

    def find_spec(self, name, path=None, target=None):
        if name == "triton" or name in _CORRECTIONS:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is None and sys._getframe(2).f_code.co_name == "_find_and_load_unlocked":
                raise ModuleNotFoundError(_MISSING, name=name)  # others only ask
            if spec is not None and name in _CORRECTIONS:
                spec.loader = _Loader(spec.loader, _CORRECTIONS[name])
            return spec
        return None


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, correct):
        self.loader = loader
        self.correct = correct

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.correct(module)

    def __getattr__(self, name):  # get_source and the like, for tracebacks
        return getattr(self.loader, name)


def _correct_interpreter(module):
    correct_bfloat16(module)
    correct_arithmetic(module)
    correct_libdevice(module)
    track_undefined(module)
    watch_launches(module)


_CORRECTIONS = {
    "triton.runtime.driver": correct_driver,
    "triton.runtime.interpreter": _correct_interpreter,
    "triton.language.extra.libdevice": bind_functions,
    "triton.language.extra.cuda.libdevice": bind_functions,
    "triton.testing": correct_testing,
}
