"""custom_op over cuda-core: NVIDIA's own way to compile and launch from Python, a cubin for later.

Without a GPU cuda-core has nothing to launch on; the CPU runtime takes the same source.
"""

import functools

import numpy as np
import torch

from course.extensions.routes import common, nvrtc
from course.extensions.sources import KERNELS
from utils import has_gpu
from utils.cuda_c.device_code import toolkit_headers

if has_gpu():
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream
    from cuda.core import launch as start

NAMESPACE = "polynomial_core"
THREADS = 256
MOST_BLOCKS = 1 << 16


@functools.cache
def kernel(name: str, index: int):
    """A kernel for one device: compiled for its architecture, loaded into its context."""
    Device(index).set_current()
    major, minor = Device(index).compute_capability
    return cubin(f"sm_{major}{minor}").get_kernel(name)


@functools.cache
def cubin(arch: str):
    """All kernels, for one architecture."""
    folders = [str(KERNELS.parent), *toolkit_headers()]
    options = ProgramOptions(arch=arch, std="c++17", include_path=folders)
    types = [str(dtype).removeprefix("torch.") for dtype in common.TYPES]
    names = [f"{name}_{kind}" for name in ("polynomial", "polynomial_backward") for kind in types]
    return Program(KERNELS.read_text(), "c++", options).compile("cubin", name_expressions=names)


def launch(name: str, out, inputs, coefficients) -> None:
    """Launch a kernel on the stream that PyTorch is using, of the tensor's own device."""
    real = np.float64 if out.dtype == torch.float64 else np.float32
    n = out.numel()
    config = LaunchConfig(grid=min(MOST_BLOCKS, -(-n // THREADS)), block=THREADS)
    addresses = [tensor.data_ptr() for tensor in (out, *inputs)]
    with torch.cuda.device_of(out):
        stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
        compiled = kernel(common.kernel_for(name, out), out.device.index)
        start(stream, config, compiled, *addresses, *map(real, coefficients), np.int64(n))


run = launch if has_gpu() else nvrtc.launch


def forward(y, x, a, b, c) -> None:
    run("polynomial", y, (x,), (a, b, c))


def backward(dx, dy, x, a, b) -> None:
    run("polynomial_backward", dx, (dy, x), (a, b))


def define() -> str:
    return common.define(NAMESPACE, forward, backward)
