"""CuTe DSL's product, ready to be called as the ladder calls it."""

from cutlass import BFloat16, Int32, cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

from course.kernels.matmul.ladder import Multiply
from course.kernels.tiles.cute import matmul
from utils import machine


def compiled(*options: str):
    """The kernel for matrices of all sizes; needs no GPU. options: more of `cute.compile`'s."""
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)  # whichever is PyTorch's at a launch
    every = " ".join(("--gpu-arch sm_90a --enable-tvm-ffi", *options))
    matrices = [_matrix() for _ in range(3)]
    return cute.compile(matmul.matmul, *matrices, Int32(0), stream, options=every)


def _matrix():
    """Any matrix whose rows begin at multiples of 16 bytes."""
    shape = (cute.sym_int(), cute.sym_int(divisibility=8))
    return make_fake_compact_tensor(BFloat16, shape, stride_order=(1, 0), assumed_align=16)


def with_cute() -> Multiply:
    """A launcher of the product, a block an SM."""
    kernel = compiled()

    def multiply(c, a, b):
        kernel(c, a, b, machine().sms)

    return multiply
