"""Builds the operators' library. With nvcc and PyTorch for CUDA also its kernels."""

import os
from pathlib import Path

import torch
from setuptools import setup
from torch.utils import cpp_extension

HERE = Path(__file__).parent
HAS_CUDA = torch.version.cuda is not None and cpp_extension.CUDA_HOME is not None
#: Use nothing that is newer than PyTorch 2.10: the library then runs with that one and all later.
OLDEST_TORCH = "-DTORCH_TARGET_VERSION=0x020a000000000000"
FLAGS = ["-O2", OLDEST_TORCH]


def extension():
    sources = ["csrc/operator.cpp", "csrc/loops.cpp"]
    if HAS_CUDA:
        return cpp_extension.CUDAExtension(
            "polynomial_op._C",
            [*sources, "csrc/run.cu"],
            extra_compile_args={"cxx": [*FLAGS, "-DUSE_CUDA"], "nvcc": ["-O2"]},
            py_limited_api=True,
        )
    return cpp_extension.CppExtension(
        "polynomial_op._C", sources, extra_compile_args={"cxx": FLAGS}, py_limited_api=True
    )


os.chdir(HERE)
setup(
    ext_modules=[extension()],
    cmdclass={"build_ext": cpp_extension.BuildExtension.with_options(no_python_abi_suffix=True)},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
