"""Tensor maps of a batch of matrices: where the copy engine (TMA) finds a box of one of them.

Source: CUDA Driver API, "Tensor Map Object Management": cuTensorMapEncodeTiled.
"""

import ctypes
import functools

import torch

from utils import has_gpu
from utils.cpu.cuda_c import tensor_map as cpu

#: Of <cuda.h>, by the bytes of an element: the copy engine moves bits, and zeros are zeros
KINDS = {1: 0, 2: 1, 4: 7}
SWIZZLE_128 = 3
PROMOTE_256 = 3
MAP_BYTES = 128
ALIGNED = 64


class TensorMap(ctypes.Structure):
    """The struct of this name in kernels/any_type.cuh, and the tensor that it describes."""

    _fields_ = [("opaque", ctypes.c_uint64 * (MAP_BYTES // 8))]


@functools.cache
def _driver():
    return ctypes.CDLL("libcuda.so.1")


def boxes(matrices: torch.Tensor, rows: int, columns: int):
    """A map for boxes of rows × columns, swizzled as wgmma reads them.

    matrices: (batch, rows, columns), each row from a multiple of 16 bytes on; their elements lie
        side by side. Raises ValueError for what the copy engine cannot describe.
    """
    size = matrices.element_size()
    sizes = matrices.shape[::-1]  # innermost first
    strides = [stride * size for stride in matrices.stride()[::-1][1:]]
    box = columns, rows, 1
    if has_gpu():
        described = _on_gpu(matrices, KINDS[size], sizes, strides, box)
    else:
        address = matrices.data_ptr()
        described = cpu.encode(address, KINDS[size], sizes, strides, box, swizzle=SWIZZLE_128)
    described.tensor = matrices  # lives as long as its map
    return described


def _on_gpu(matrices, kind: int, sizes, strides, box) -> TensorMap:
    raw = (ctypes.c_char * (MAP_BYTES + ALIGNED))()
    address = -(-ctypes.addressof(raw) // ALIGNED) * ALIGNED  # the driver wants it so
    failed = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(address),
        kind,
        ctypes.c_uint32(3),
        ctypes.c_void_p(matrices.data_ptr()),
        (ctypes.c_uint64 * 3)(*sizes),
        (ctypes.c_uint64 * 2)(*strides),
        (ctypes.c_uint32 * 3)(*box),
        (ctypes.c_uint32 * 3)(1, 1, 1),
        0,  # not interleaved
        SWIZZLE_128,
        PROMOTE_256,
        0,  # what lies outside is zero
    )
    if failed:
        shape = tuple(matrices.shape)
        raise ValueError(f"the copy engine refuses {shape} in boxes of {box}: error {failed}")
    return TensorMap.from_buffer_copy(ctypes.string_at(address, MAP_BYTES))
