"""Tensor maps for the CPU runtime: the bytes of a CUtensorMap as its copy engine reads them.

The layout is that of `include/detail/ptx/tensor_map.h`. Source of the rules: CUDA Driver API,
"Tensor Map Object Management".
"""

import ctypes
from collections.abc import Sequence

MARK = 0x50414D54  # "TMAP"
MAP_BYTES = 128
MOST_DIMENSIONS = 5
#: Bytes of an element, by its number in CUtensorMapDataType
ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)


class TensorMap(ctypes.Structure):
    """A CUtensorMap. `value` is the address of the tensor, `buffer` its (address, bytes, name)."""

    _fields_ = [
        ("mark", ctypes.c_uint32),
        ("type", ctypes.c_uint8),
        ("rank", ctypes.c_uint8),
        ("swizzle", ctypes.c_uint8),
        ("interleave", ctypes.c_uint8),
        ("nan_fill", ctypes.c_uint8),
        ("pixels", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 2),
        ("elements", ctypes.c_uint32),
        ("value", ctypes.c_uint64),
        ("strides", ctypes.c_uint64 * 4),
        ("sizes", ctypes.c_uint32 * MOST_DIMENSIONS),
        ("box", ctypes.c_uint16 * MOST_DIMENSIONS),
        ("steps", ctypes.c_uint8 * MOST_DIMENSIONS),
        ("reserved_too", ctypes.c_uint8),
        ("lower", ctypes.c_int16 * 3),
        ("upper", ctypes.c_int16 * 3),
        ("rest", ctypes.c_uint8 * (MAP_BYTES - 104)),
    ]


assert ctypes.sizeof(TensorMap) == MAP_BYTES


def encode(
    address: int,
    kind: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    *,
    steps: Sequence[int] = (),
    swizzle: int = 0,
    nan_fill: bool = False,
    pixels: tuple[Sequence[int], Sequence[int], int] | None = None,
) -> TensorMap:
    """A map of a tensor, all dimensions innermost first.

    kind: the number of the element's type in CUtensorMapDataType.
    sizes: elements of each dimension. strides: bytes, of the dimensions from the second on.
    box: elements a side; with `pixels` (1, number of pixels).
    swizzle: 0 to 3, for none, 32, 64 and 128 bytes.
    pixels: for im2col mode (lower corner, upper corner, channels of a pixel).
    Raises ValueError for what the copy engine cannot describe.
    """
    described = TensorMap(mark=MARK, type=kind, rank=len(sizes), swizzle=swizzle, value=address)
    described.nan_fill = nan_fill
    for field, values in (("sizes", sizes), ("strides", strides), ("box", box)):
        for i, value in enumerate(values):
            getattr(described, field)[i] = value
    for i in range(len(sizes)):
        described.steps[i] = steps[i] if steps else 1
    if pixels:
        described.pixels = 1
        described.elements = pixels[2]
        for i, (lower, upper) in enumerate(zip(*pixels[:2], strict=True)):
            described.lower[i] = lower
            described.upper[i] = upper
    problem = _problem(described)
    if problem:
        raise ValueError(f"the copy engine cannot describe this tensor: {problem}")
    last = sum((size - 1) * stride for size, stride in zip(sizes[1:], strides, strict=True))
    extent = sizes[0] * ELEMENT_BYTES[kind] + last
    described.buffer = (address, extent, "tensor map")
    return described


def _problem(described: TensorMap) -> str:
    """What the driver would refuse, or "": as tensor_map_valid of tensor_map.h."""
    rank = described.rank
    if not (3 if described.pixels else 1) <= rank <= MOST_DIMENSIONS:
        return f"{rank} dimensions"
    if described.value % 16 or any(described.strides[i] % 16 for i in range(rank - 1)):
        return "the address and all strides must be multiples of 16 bytes"
    channels = described.elements if described.pixels else described.box[0]
    row = channels * ELEMENT_BYTES[described.type]
    if row % 16 or described.swizzle and row > 16 << described.swizzle:
        return f"a row of the box has {row} bytes"
    sides = [1] if described.pixels else range(rank)
    most = 1024 if described.pixels else 256
    if any(not 1 <= described.box[i] <= most for i in sides):
        return f"a box of {[described.box[i] for i in sides]}; sides of 1 to {most} are possible"
    return ""
