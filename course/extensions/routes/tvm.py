"""custom_op over tvm-ffi: one library for any framework that speaks DLPack, PyTorch among them."""

import functools
import os
from pathlib import Path

import torch

from course.extensions.routes import common
from course.extensions.sources import BUILD, CSRC, ROUTES, find_ninja
from utils import has_gpu
from utils.cuda_c.device_code import toolkit_headers
from utils.engine import gpu

NAMESPACE = "polynomial_tvm"


@functools.cache
def module():
    """Compiled where that has not been done yet."""
    import tvm_ffi.cpp

    find_ninja()
    torch_headers = Path(torch.__file__).parent / "include"
    sources = [ROUTES / "tvm.cpp", CSRC / "loops.cpp"]
    flags = []
    if has_gpu():
        sources.append(CSRC / "run.cu")
        flags = ["-DWITH_CUDA"]
        os.environ.setdefault("TVM_FFI_CUDA_ARCH_LIST", "{}.{}".format(*gpu().compute_capability))
    return tvm_ffi.cpp.load(
        NAMESPACE,
        cpp_files=[str(path) for path in sources if path.suffix == ".cpp"],
        cuda_files=[str(path) for path in sources if path.suffix == ".cu"] or None,
        extra_cflags=["-O2", *flags],
        extra_include_paths=[str(CSRC), str(torch_headers), *toolkit_headers()],
        build_directory=str(BUILD / "tvm"),
    )


def forward(y, x, a, b, c) -> None:
    with torch.cuda.device_of(y):
        module().forward(y, x, a, b, c)


def backward(dx, dy, x, a, b) -> None:
    with torch.cuda.device_of(dx):
        module().backward(dx, dy, x, a, b)


def define() -> str:
    module()
    return common.define(NAMESPACE, forward, backward, devices=("cpu", "cuda"))
