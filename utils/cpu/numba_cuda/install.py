"""Puts the engine in the place of `numba.cuda`."""

import importlib.abc
import importlib.util
import sys


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import numba.cuda` with the engine's module; nothing heavy is imported before."""

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "numba.cuda" else None

    def create_module(self, spec):
        from . import cuda

        return cuda

    def exec_module(self, module):
        for name, part in module.SUBMODULES.items():
            sys.modules[f"numba.cuda.{name}"] = part


def install():
    """Make `from numba import cuda` (and `import numba.cuda.random` and so on) give this engine."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name in [n for n in sys.modules if n == "numba.cuda" or n.startswith("numba.cuda.")]:
        del sys.modules[name]
    if "cuda" in vars(sys.modules.get("numba", sys)):
        del sys.modules["numba"].cuda
