"""The seven routes to one operator."""

import functools
import importlib
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from course.extensions import rules
from course.extensions.sources import CSRC, PACKAGE, ROUTES
from utils import pick


@dataclass(frozen=True)
class Route:
    """A way to make PyTorch know two kernels.

    name: of its module in `routes`, which has define(). files: what one writes for it, besides the
    formula, the kernels and the rules, which all routes share.
    """

    name: str
    label: str
    files: tuple[Path, ...]
    needs: str = ""  # a Python package without which there is no such route

    @property
    def lines(self) -> int:
        """Lines of code in its files: no blank lines, no comments."""
        return sum(lines_of_code(path.read_text()) for path in self.files)

    @property
    def available(self) -> bool:
        """Whether what it needs is installed."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None


HOST = (CSRC / "run.cu", CSRC / "loops.cpp", CSRC / "run.h")
COMMON = ROUTES / "common.py"
ROUTES_BY_NAME = {
    route.name: route
    for route in (
        Route("inline", "load_inline", (*HOST, ROUTES / "inline.cpp", ROUTES / "inline.py")),
        Route(
            "packaged",
            "package, stable ABI",
            (*HOST, CSRC / "operator.cpp", PACKAGE / "setup.py", PACKAGE / "pyproject.toml"),
        ),
        Route("nvrtc", "custom_op, NVRTC", (ROUTES / "nvrtc.py", COMMON)),
        Route("in_triton", "triton_op", (ROUTES / "in_triton.py", COMMON), "triton"),
        Route("in_numba", "Numba", (ROUTES / "in_numba.py", COMMON)),
        Route("core", "cuda-core", (ROUTES / "core.py", COMMON)),
        Route("tvm", "tvm-ffi", (*HOST, ROUTES / "tvm.cpp", ROUTES / "tvm.py", COMMON), "tvm_ffi"),
    )
}


@dataclass(frozen=True)
class Operators:
    """A route that has been taken: its operators, and the seconds from nothing to a gradient."""

    route: Route
    namespace: str
    seconds: float


@functools.cache
def take(name: str) -> Operators:
    """Build a route's operators and tell PyTorch everything about them; once a process."""
    route = ROUTES_BY_NAME[name]
    module = importlib.import_module(f"course.extensions.routes.{name}")
    start = time.perf_counter()
    namespace = module.define()
    if name != "packaged":  # a package brings its rules
        rules.complete(namespace)
    first_call(namespace)
    return Operators(route, namespace, time.perf_counter() - start)


def first_call(namespace: str) -> None:
    """Forward and backward once: what compiles late, compiles here."""
    x = torch.ones(
        3,
        device=pick(
            gpu="cuda",
            cpu="cpu",
        ),
        requires_grad=True,
    )
    getattr(torch.ops, namespace).polynomial(x, 1.0, 0.0, 0.0).sum().backward()


def lines_of_code(text: str) -> int:
    """Lines that are neither blank nor a comment."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(("//", "#", '"""')) for line in lines)
