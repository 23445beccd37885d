"""Shared helpers of the course: measuring, checking, explaining and running GPU kernels.

Importing this package decides, before Numba or Triton is imported, whether kernels run on a GPU or
on the CPU engines (`utils.engine`), and gives notebooks the magics `%nvcc` and `%%cuda`. Everything
heavy is imported on first use.
"""

import importlib
import sys
from typing import Any

# Colab has packages of its own: set up before any of them is imported
if "google.colab" in sys.modules:
    from utils.setup.colab import set_up

    set_up()

from utils.engine import choose_engine, has_gpu, pick

__all__ = [
    "benchmark",
    "check",
    "compare",
    "cuda",
    "cuda_c",
    "has_gpu",
    "machine",
    "np",
    "pick",
    "plots",
]

_LAZY = {
    "benchmark": ("utils.timing", "benchmark"),
    "compare": ("utils.timing", "compare"),
    "check": ("utils.check", None),
    "cuda_c": ("utils.cuda_c", None),
    "machine": ("utils.hardware", "machine"),
    "plots": ("utils.plots", None),
    "machine_code": ("utils.tools.machine_code", None),
    "nvcc": ("utils.tools.nvcc", None),
    "process": ("utils.tools.process", None),
    "profilers": ("utils.tools.profilers", None),
    "source": ("utils.tools.source", None),
    "yours": ("utils.tools.yours", None),
    # what every notebook uses; in this place they cannot come before the engine is chosen
    "cuda": ("numba.cuda", None),
    "np": ("numpy", None),
}


def __getattr__(name: str) -> Any:
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
    from utils.tools import nvcc as _nvcc
    from utils.tools import yours as _yours

    _nvcc.register_magic(_shell)
    _yours.register_magic(_shell)
