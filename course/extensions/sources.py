"""Where the operator's sources are."""

import os
import shutil
from pathlib import Path

from utils.files import ROOT

HERE = Path(__file__).parent
PACKAGE = HERE / "package"
CSRC = PACKAGE / "csrc"
ROUTES = HERE / "routes"
#: The same kernels under plain names, for compilers of kernels alone
KERNELS = HERE / "kernels" / "polynomial.cu"
#: dropout(gelu(x + bias)), forward and backward
FUSED = HERE / "kernels" / "bias_gelu_dropout.cu"
#: The operators of our micrograd
ARRAYS = HERE / "kernels" / "arrays.cu"
#: Where libraries are built, and kept
BUILD = ROOT / "build" / "extensions"


def find_ninja() -> None:
    """Let PyTorch and tvm-ffi find the build program, which pip may have put beside Python."""
    if shutil.which("ninja") is None:
        import ninja

        os.environ["PATH"] += os.pathsep + ninja.BIN_DIR
