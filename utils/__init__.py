"""Shared helpers of the course: measuring, checking, explaining and running GPU kernels.

Importing this package decides, before Numba or Triton is imported, whether kernels run on a GPU or on the
CPU engines (`utils.hardware`), and gives notebooks the `%nvcc` magic. Everything heavy is imported on first use.
"""

import importlib
import sys

if "google.colab" in sys.modules:        # a machine with packages of its own: before anything of them is imported
    from utils.colab import set_up

    set_up()

from utils.hardware import choose_engine, has_gpu, machine, pick

__all__ = ["benchmark", "check", "compare", "cuda_c", "has_gpu", "machine", "pick", "plots"]

_LAZY = {
    "benchmark": ("utils.timing", "benchmark"),
    "compare": ("utils.timing", "compare"),
    "check": ("utils.check", None),
    "cuda_c": ("utils.cuda_c", None),
    "plots": ("utils.plots", None),
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'utils' has no attribute {name!r}")
    module_name, attribute = _LAZY[name]
    module = importlib.import_module(module_name)
    value = getattr(module, attribute) if attribute else module
    globals()[name] = value
    return value


choose_engine()

try:  # inside a notebook: register %nvcc
    _shell = get_ipython()  # type: ignore[name-defined]  # noqa: F821
except NameError:
    pass
else:
    from utils.nvcc import register_magic

    register_magic(_shell)
