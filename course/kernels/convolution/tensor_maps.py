"""Tensor maps of pictures: how the copy engine (TMA) walks through tensors of four dimensions.

Source: CUDA Driver API, "Tensor Map Object Management": cuTensorMapEncodeTiled and
cuTensorMapEncodeIm2col.
"""

import ctypes
import functools

import torch

from utils import has_gpu
from utils.cpu.cuda_c import tensor_map as cpu

#: As <cuda.h> numbers them
BFLOAT16 = 9
SWIZZLE_128 = 3
PROMOTE_256 = 3
MAP_BYTES = 128
ALIGNED = 64
BYTES = 2  # of an element


class TensorMap(ctypes.Structure):
    """The struct of this name in kernels/instructions.cuh, and the tensor that it describes."""

    _fields_ = [("opaque", ctypes.c_uint64 * (MAP_BYTES // 8))]


@functools.cache
def _driver():
    return ctypes.CDLL("libcuda.so.1")


def _numbers(kind, values):
    values = list(values)
    return (kind * len(values))(*values)


def _encode(
    name: str,
    tensor: torch.Tensor,
    *particular,
    steps=None,
    swizzled=True,
) -> TensorMap:
    """Call the driver. particular: what differs between the two modes, as ctypes values."""
    if not has_gpu():
        return _on_cpu(tensor, particular, steps, swizzled)
    raw = (ctypes.c_char * (MAP_BYTES + ALIGNED))()
    address = -(-ctypes.addressof(raw) // ALIGNED) * ALIGNED  # the driver wants it so
    sizes = tensor.shape[::-1]  # innermost first
    strides = [stride * BYTES for stride in tensor.stride()[::-1][1:]]
    failed = getattr(_driver(), name)(
        ctypes.c_void_p(address),
        BFLOAT16,
        ctypes.c_uint32(tensor.dim()),
        ctypes.c_void_p(tensor.data_ptr()),
        _numbers(ctypes.c_uint64, sizes),
        _numbers(ctypes.c_uint64, strides),
        *particular,
        _numbers(ctypes.c_uint32, steps or [1] * tensor.dim()),
        0,  # not interleaved
        SWIZZLE_128 if swizzled else 0,
        PROMOTE_256,
        0,  # what lies outside is zero
    )
    if failed:
        shape = tuple(tensor.shape)
        raise ValueError(f"{name} refuses a tensor of shape {shape}: CUDA error {failed}")
    described = TensorMap.from_buffer_copy(ctypes.string_at(address, MAP_BYTES))
    described.tensor = tensor  # lives as long as its map
    return described


def _on_cpu(tensor: torch.Tensor, particular, steps, swizzled: bool):
    """The same for the CPU runtime's copy engine."""
    pixels = None
    box = tuple(particular[0])
    if len(particular) > 1:
        lower, upper, channels, count = particular
        pixels = tuple(lower), tuple(upper), channels.value
        box = (1, count.value)
    described = cpu.encode(
        tensor.data_ptr(),
        BFLOAT16,
        tensor.shape[::-1],
        [stride * BYTES for stride in tensor.stride()[::-1][1:]],
        box,
        steps=steps or (),
        swizzle=SWIZZLE_128 if swizzled else 0,
        pixels=pixels,
    )
    described.tensor = tensor  # lives as long as its map
    return described


def boxes(
    tensor: torch.Tensor,
    box: tuple[int, ...],
    swizzled: bool = True,
) -> TensorMap:
    """A map for boxes of this shape, the tensor's dimensions in their order.

    swizzled: as wgmma reads them; else a box lies as it is.
    """
    return _encode(
        "cuTensorMapEncodeTiled",
        tensor,
        _numbers(ctypes.c_uint32, box[::-1]),
        swizzled=swizzled,
    )


def pixels(
    tensor: torch.Tensor,
    count: int,
    corners,
    stride: int = 1,
) -> TensorMap:
    """A map for `count` pixels of 64 channels, walked through in im2col order.

    tensor: (n, h, w, c). corners: ((top, left), (bottom, right)) of the box of places that a
    filter's first tap visits: where it begins, and how far it ends beyond the picture.
    """
    (top, left), (bottom, right) = corners
    return _encode(
        "cuTensorMapEncodeIm2col",
        tensor,
        _numbers(ctypes.c_int, (left, top)),
        _numbers(ctypes.c_int, (right, bottom)),
        ctypes.c_uint32(64),
        ctypes.c_uint32(count),
        steps=[1, stride, stride, 1],
    )
