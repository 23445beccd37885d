"""What kernels are told of an attention, and what they are given: checked, allocated, described."""

import ctypes
import math

import torch

from utils import has_gpu


class Problem(ctypes.Structure):
    """As kernels/problem.cuh has it."""

    _fields_ = [
        ("queries", ctypes.c_int),
        ("keys", ctypes.c_int),
        ("group", ctypes.c_int),
        ("heads", ctypes.c_int),
        ("first", ctypes.c_int),
        ("scale", ctypes.c_float),
        ("lse_rows", ctypes.c_int),
        ("lse_first", ctypes.c_int),
    ]


class Strides(ctypes.Structure):
    """As kernels/problem.cuh has it."""

    _fields_ = [
        ("batch", ctypes.c_longlong),
        ("row", ctypes.c_longlong),
        ("head", ctypes.c_longlong),
    ]


def stream() -> int:
    """The handle of PyTorch's current stream: a CUDA graph captures what is queued there."""
    return torch.cuda.current_stream().cuda_stream if has_gpu() else 0


def problem_of(q, k, causal: bool) -> Problem:
    """Of q [batch, queries, heads, dim] and k [batch, keys, key heads, dim]."""
    _, queries, heads, dim = q.shape
    keys, key_heads = k.shape[1:3]
    first = keys - queries + 1 if causal else keys
    scale = dim**-0.5 * math.log2(math.e)
    return Problem(queries, keys, heads // key_heads, heads, first, scale, queries, 0)


def strides_of(tensor) -> Strides:
    """Of [batch, length, heads, dim]."""
    return Strides(*tensor.stride()[:3])


def flat(tensor) -> torch.Tensor:
    """The memory from a tensor's first number to its last, in one dimension, as kernels take it."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    extent = 1 + sum((size - 1) * stride for size, stride in steps)
    return tensor.as_strided((extent,), (1,))


def results_for(q, out=None, lse=None) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse): those given, or new ones. lse: float32 [batch, heads, queries]."""
    batch, queries, heads, _ = q.shape
    if out is None:
        out = torch.empty_like(q)
    if lse is None:
        lse = torch.empty(batch, heads, queries, device=q.device)
    return out, lse


def check(q, k, v, dtype: torch.dtype, dims: tuple[int, ...], *, first: str = "q") -> None:
    """Raise ValueError with what does not fit: types, heads, shapes, rows in pieces.

    Copies of 16 bytes want addresses and strides that are multiples of 16 bytes. first: how
    messages call the first tensor.
    """
    for name, tensor in {first: q, "k": k, "v": v}.items():
        if tensor.dtype != dtype or tensor.dim() != 4:
            raise ValueError(f"{name} must be {dtype} [batch, length, heads, dim]")
        if tensor.shape[-1] not in dims:
            raise ValueError(f"{name} has heads of {tensor.shape[-1]}; the kernel takes {dims}")
        in_bytes = [stride * tensor.element_size() for stride in tensor.stride()[:3]]
        in_bytes.append(tensor.data_ptr())
        if tensor.stride(-1) != 1 or any(number % 16 for number in in_bytes):
            raise ValueError(f"{name}'s rows must be whole, and begin at multiples of 16 bytes")
    if k.shape != v.shape or k.shape[0] != q.shape[0] or q.shape[2] % k.shape[2]:
        shapes = f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        raise ValueError(f"{first}, k and v do not fit together: {shapes}")
    if 0 in q.shape or 0 in k.shape:
        raise ValueError("there must be a query and a key")
