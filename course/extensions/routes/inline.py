"""torch.utils.cpp_extension.load_inline: C++ text, compiled while the notebook waits."""

import os

import torch
from torch.utils import cpp_extension

from course.extensions.sources import BUILD, CSRC, ROUTES, find_ninja
from utils import has_gpu
from utils.engine import gpu

NAMESPACE = "polynomial_inline"


def define() -> str:
    """Compile, which takes a while the first time, and load: C++ registers the operators."""
    on_gpu = has_gpu() and torch.version.cuda is not None
    folder = BUILD / f"inline-{torch.__version__}"
    find_ninja()
    folder.mkdir(parents=True, exist_ok=True)
    if on_gpu:
        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", gpu().torch_arch)
    cpp_extension.load_inline(
        NAMESPACE,
        cpp_sources=['#include "loops.cpp"\n' + (ROUTES / "inline.cpp").read_text()],
        cuda_sources=['#include "run.cu"\n'] if on_gpu else None,
        with_cuda=on_gpu,
        extra_cflags=["-O2", *(["-DWITH_CUDA"] if on_gpu else [])],
        extra_include_paths=[str(CSRC)],
        build_directory=str(folder),
        no_implicit_headers=True,
        is_python_module=False,
    )
    return NAMESPACE
