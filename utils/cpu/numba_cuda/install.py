"""Puts the engine in the place of `numba.cuda`, and of its successor's module of that name."""

import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types

from . import without_numba

SUCCESSOR = "numba_cuda_mlir"  # Numba-CUDA-MLIR: the same kernels, without a simulator
PLACES = ("numba.cuda", f"{SUCCESSOR}.cuda")
#: Numba's own modules above kernels and arrays, which need no GPU: they run on the engine's
NUMBAS_OWN = ("numba.cuda.deviceufunc", "numba.cuda.vectorizers", "numba.cuda.kernels.transpose")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import numba.cuda` with the engine's module; nothing heavy is imported before."""

    def find_spec(self, name, path=None, target=None):
        if name in PLACES:
            return importlib.util.spec_from_loader(name, self, is_package=True)
        if name in NUMBAS_OWN:
            return _numbas_own(name)
        if name.startswith(tuple(f"{place}." for place in PLACES)):
            raise ModuleNotFoundError(f"the CPU engine has no {name}", name=name)
        if name == SUCCESSOR and importlib.machinery.PathFinder.find_spec(name) is None:
            return importlib.util.spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec):
        if spec.name == SUCCESSOR:  # it is not installed: a package with this one module
            return types.ModuleType(spec.name)
        from . import cuda

        return cuda

    def exec_module(self, module):
        if module.__name__ == SUCCESSOR:
            return
        for name, part in module.SUBMODULES.items():
            sys.modules[f"{module.__spec__.name}.{name}"] = part


def _numbas_own(name):
    """Numba's file of this name; numba-cuda has the same one, but not on every system."""
    (folder,) = importlib.util.find_spec("numba").submodule_search_locations
    path = pathlib.Path(folder, *name.split(".")[1:]).with_suffix(".py")
    return importlib.util.spec_from_file_location(name, path) if path.exists() else None


def install():
    """Make `from numba import cuda` (and `import numba.cuda.random` and so on) give this engine.

    `from numba_cuda_mlir import cuda`, too.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if importlib.machinery.PathFinder.find_spec("numba") is None:  # a web page
        sys.modules.update(without_numba.modules())
    sys.meta_path.insert(0, _Finder())
    for place in PLACES:
        package = place.partition(".")[0]
        for name in [n for n in sys.modules if n == place or n.startswith(f"{place}.")]:
            del sys.modules[name]
        if "cuda" in vars(sys.modules.get(package, sys)):
            del sys.modules[package].cuda
