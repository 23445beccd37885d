"""Tensor maps: how a kernel's bulk copies (TMA, Hopper and later) find their way in a matrix.

A kernel takes one as ``const __grid_constant__ CUtensorMap map`` and asks with it for boxes of the
matrix by their row and column; the copy engine computes the addresses, fills with zeros what lies
outside, and swizzles the rows.
Source: CUDA Driver API, "Tensor Map Object Management" (cuTensorMapEncodeTiled).
"""

from typing import Any

import numpy as np

from ..engine import gpu, has_gpu
from ..tools.diagnostics import LearnerError

#: Bytes of a row of the box, at most, that a swizzle exchanges 16-byte pieces within.
SWIZZLES = (0, 32, 64, 128)
LARGEST_BOX = 256  # elements a side


class TensorMapError(LearnerError):
    """The copy engine cannot describe this array or this box."""


def tensor_map(tensor: Any, box: tuple[int, int], *, swizzle: int = 128) -> Any:
    """Describe a row-major matrix on the GPU for the copy engine.

    tensor: a torch tensor or an array with __cuda_array_interface__, (rows, columns), contiguous; 2
        or 4 bytes an element (bfloat16, float16, float32 ...); without a GPU a tensor or NumPy
        array in this computer's memory. It must live as long as the map is used.
    box: (rows, columns) that one copy brings, at most 256 each; with a swizzle a row of the box has
        at most that many bytes.
    swizzle: 128, 64, 32 or 0 (none): 16-byte piece p of a row r lies at p XOR r % 8 (for 128
        bytes), so that a column of pieces lies in different banks.
    Returns an object to pass to a ``CUtensorMap`` parameter. Raises TensorMapError with what is
    wrong and what to do.
    """
    _check(tensor, box, swizzle)
    if not has_gpu():
        return _on_cpu(tensor, box, swizzle)
    from cuda.core import TensorMapDescriptorOptions
    from cuda.core.utils import StridedMemoryView

    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        tensor = tensor.view(torch.uint16)  # the copy engine moves bits; zeros are zeros
    view = StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    # cuda-core exports the options but not the types of their values, so these are asked for theirs
    options = TensorMapDescriptorOptions(box_dim=tuple(box))
    swizzles = type(options.swizzle)
    promotions = type(options.l2_promotion)
    name = f"SWIZZLE_{swizzle}B" if swizzle else "NONE"
    return view.as_tensor_map(
        tuple(box), swizzle=swizzles[name], l2_promotion=promotions["L2_128B"]
    )


def _on_cpu(tensor: Any, box: tuple[int, int], swizzle: int) -> Any:
    """The same for the CPU runtime's copy engine."""
    from ..cpu.cuda_c import tensor_map as cpu

    size = _element_bytes(tensor)
    rows, columns = tensor.shape
    described = cpu.encode(
        tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.data_ptr(),
        {2: cpu.ELEMENT_BYTES.index(2), 4: cpu.ELEMENT_BYTES.index(4)}[size],
        (columns, rows),
        (columns * size,),
        box[::-1],
        swizzle=SWIZZLES.index(swizzle),
    )
    described.tensor = tensor  # lives as long as its map
    return described


def _check(tensor: Any, box: tuple[int, int], swizzle: int) -> None:
    """Raise TensorMapError with what is wrong and what to do."""
    _check_gpu()
    _check_matrix(tensor)
    _check_box(tensor, box, swizzle)


def _check_gpu() -> None:
    this_gpu = gpu()
    if this_gpu is None:
        return  # the CPU runtime has a copy engine
    if this_gpu.compute_capability < (9, 0):
        capability = "{}.{}".format(*this_gpu.compute_capability)
        raise TensorMapError(
            f"{this_gpu.name} has compute capability {capability}; the copy engine (TMA) came "
            "with 9.0 (Hopper)"
        )


def _check_matrix(tensor: Any) -> None:
    on_gpu = hasattr(tensor, "__cuda_array_interface__") or getattr(tensor, "is_cuda", False)
    if gpu() is not None and not on_gpu:
        raise TensorMapError(
            f"a tensor map needs an array on the GPU, got {type(tensor).__name__}: move it there "
            "first"
        )
    if len(tensor.shape) != 2 or not all(tensor.shape):
        raise TensorMapError(
            f"a tensor map here describes a matrix, got the shape {tuple(tensor.shape)}"
        )
    if hasattr(tensor, "is_contiguous"):
        contiguous = tensor.is_contiguous()
    elif isinstance(tensor, np.ndarray):
        contiguous = tensor.flags.c_contiguous
    else:
        contiguous = tensor.__cuda_array_interface__.get("strides") is None
    if not contiguous:
        raise TensorMapError(
            "the matrix is not contiguous (a transposed or strided view?): pass a.contiguous()"
        )
    size = _element_bytes(tensor)
    pitch = tensor.shape[1] * size
    if size not in (2, 4):
        raise TensorMapError(
            f"elements of {size} bytes: this course's kernels copy 2 or 4 (bfloat16, float16, "
            "float32)"
        )
    if pitch % 16:
        raise TensorMapError(
            f"a row has {tensor.shape[1]:,} elements, {pitch:,} bytes; the copy engine takes "
            f"multiples of 16 bytes only. Pad the rows to a multiple of {16 // size} elements"
        )


def _element_bytes(tensor: Any) -> int:
    is_torch = hasattr(tensor, "element_size")
    size: int = tensor.element_size() if is_torch else tensor.dtype.itemsize
    return size


def _check_box(tensor: Any, box: tuple[int, int], swizzle: int) -> None:
    if len(box) != 2 or not all(1 <= side <= LARGEST_BOX for side in box):
        raise TensorMapError(
            f"box {tuple(box)}: two sides of 1 to {LARGEST_BOX} elements are possible"
        )
    if swizzle not in SWIZZLES:
        raise TensorMapError(
            f"swizzle {swizzle}: one of {', '.join(map(str, SWIZZLES))} bytes is possible"
        )
    width = box[1] * _element_bytes(tensor)
    if width % 16 or swizzle and width > swizzle:
        most = f" and, with a swizzle of {swizzle} bytes, at most {swizzle}" if swizzle else ""
        raise TensorMapError(
            f"a row of the box has {width} bytes; it must be a multiple of 16{most}"
        )
