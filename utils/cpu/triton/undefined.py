"""Values that nobody wrote, and numbers that left their type, followed through a kernel.

A load without other= leaves its masked lanes undefined, and so does one from memory that
torch.empty gave and nobody filled. That is no mistake yet: tl.where, or the mask of the store, may
drop them. It is one when such a value is stored, or used as an address.

Each TensorHandle has `undefined`, the lanes (None: none of them), and `origin`, where they came
from; every operation of the interpreter's builder hands them on. Memory from torch.empty is filled
with a NaN, or an integer, that no calculation makes, and so is known again.

int32 sums and products that wrap around are marked alike, as `wrapped`: a mistake in an address,
and only there, since hashes wrap on purpose. What is done with bits, or a remainder, ends the mark.
"""

import functools

import numpy as np

from .mistakes import here

#: What torch.empty's memory holds, by size of an element: NaNs with a fraction of their own, or
#: integers. One byte is too few to tell.
PATTERNS = {2: 0x7FB5, 4: 0x7FB5B5B5, 8: 0x7FF5B5B5B5B5B5B5}
_UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}
_SMALLEST_INTEGER = 4  # bytes: of two, one in 65,536 honest ones would look unwritten
#: Operations that only move elements: applied to the flags as they are to the data
_MOVES = (
    "create_reshape create_trans create_expand_dims create_broadcast create_splat create_unsplat "
    "create_cat create_join create_split create_gather"
).split()
#: Parts of names of operations that give no value, or one of memory's
_NOT_VALUES = ("load store atomic block_ptr descriptor advance print assert assume barrier").split()


def track_undefined(module):
    """Correct the interpreter's module."""
    import torch
    import triton.language as tl

    Handle = module.TensorHandle
    Handle.undefined = None
    Handle.origin = None
    Handle.wrapped = None
    Handle.wrapped_at = None
    Handle.base = None  # of pointers: the memory that they were taken from
    Builder = module.InterpreterBuilder
    for name in dir(Builder):
        if name.startswith("create_") and not any(word in name for word in _NOT_VALUES):
            followed = _followed(name, getattr(Builder, name), Handle, tl)
            setattr(Builder, name, _wrapping(name, followed, Handle, tl))
    _follow_reductions(module)
    _mark_fresh_memory(torch)


def _followed(name, original, Handle, tl):
    """`original`, which also hands on which lanes are undefined, and a pointer's memory."""

    @functools.wraps(original)
    def operation(builder, *operands, **options):
        result = original(builder, *operands, **options)
        handles = [operand for operand in operands if isinstance(operand, Handle)]
        if isinstance(result, Handle):
            _hand_on_base(result, handles, tl)
        if all(handle.undefined is None for handle in handles):
            return result
        origin = next(handle.origin for handle in handles if handle.undefined is not None)
        if name in _MOVES:
            _move(name, builder, original, operands, options, result, Handle, tl)
        elif isinstance(result, Handle):
            result.undefined = _combined(name, handles, result)
        for part in result if isinstance(result, tuple) else (result,):
            if isinstance(part, Handle) and part.undefined is not None:
                part.origin = origin
        return result

    return operation


def _hand_on_base(result, handles, tl):
    if isinstance(result.dtype, tl.pointer_type):
        bases = {id(handle.base): handle.base for handle in handles if handle.base is not None}
        if len(bases) == 1:
            result.base = next(iter(bases.values()))


def _flags(handle) -> np.ndarray:
    if handle.undefined is None:
        return np.zeros(np.shape(handle.data), bool)
    return handle.undefined


def _move(name, builder, original, operands, options, result, Handle, tl):
    """Apply a move to the flags."""

    def flagged(place, operand):
        is_index = name == "create_gather" and place == 1
        if is_index or not isinstance(operand, Handle):
            return operand
        return Handle(_flags(operand), tl.int1)

    flags = [flagged(place, operand) for place, operand in enumerate(operands)]
    moved = original(builder, *flags, **options)
    if isinstance(result, tuple):
        for part, flag in zip(result, moved, strict=True):
            part.undefined = flag.data.astype(bool)
    else:
        result.undefined = moved.data.astype(bool)


def _combined(name, handles, result) -> np.ndarray | None:
    """The undefined lanes of a result, by what the operation does."""
    flags = [_flags(handle) for handle in handles]
    shape = np.shape(result.data)
    if name == "create_select":
        chosen = np.where(
            handles[0].data.astype(bool),
            flags[1],
            flags[2],
        )
        combined = chosen | flags[0]
    elif name == "create_and" and handles[0].data.dtype == bool:
        # False and anything is False
        sure = [~flag & ~handle.data for flag, handle in zip(flags, handles, strict=True)]
        combined = (flags[0] | flags[1]) & ~(sure[0] | sure[1])
    elif name == "create_dot":
        rows = flags[0].any(-1, keepdims=True)
        columns = flags[1].any(-2, keepdims=True)
        combined = rows | columns | flags[2]
    else:
        try:
            combined = functools.reduce(np.logical_or, flags)
            combined = np.broadcast_to(combined, shape)
        except ValueError:  # an operation of another shape: all of it may depend on them
            combined = np.full(shape, any(flag.any() for flag in flags))
    return np.array(combined) if combined.any() else None


# ---- integers that wrap around

_EXACT = {"create_add": np.add, "create_sub": np.subtract, "create_mul": np.multiply}
#: Operations that hand the mark on: sums, products, and what only moves or casts
_CARRIES = (*_EXACT, "create_addptr", "create_int_cast", "create_select", *_MOVES)


def _wrapping(name, original, Handle, tl):
    """`original`, which also marks the lanes of a sum or a product that left int32."""
    if name not in _CARRIES:
        return original

    @functools.wraps(original)
    def operation(builder, *operands, **options):
        result = original(builder, *operands, **options)
        handles = [operand for operand in operands if isinstance(operand, Handle)]
        if not isinstance(result, Handle):
            return result
        marked = [handle for handle in handles if handle.wrapped is not None]
        if marked:
            _carry(
                name,
                builder,
                original,
                operands,
                options,
                result,
                marked[0],
                Handle,
                tl,
            )
        if name in _EXACT and result.data.dtype == np.int32:
            exact = _EXACT[name](*(handle.data.astype(np.int64) for handle in handles))
            wrapped = exact != result.data
            if wrapped.any():
                result.wrapped = wrapped
                result.wrapped_at = here()
        return result

    return operation


def _carry(
    name,
    builder,
    original,
    operands,
    options,
    result,
    marked,
    Handle,
    tl,
) -> None:
    """Hand the mark on: through a move as the data goes, else lane by lane."""
    lanes = marked.wrapped
    if name in _MOVES and len(operands) <= 2:
        flags = [Handle(lanes, tl.int1) if one is marked else one for one in operands]
        lanes = original(builder, *flags, **options).data.astype(bool)
    shape = np.shape(result.data)
    result.wrapped = np.broadcast_to(lanes, shape) if lanes.size <= result.data.size else None
    result.wrapped_at = marked.wrapped_at


# ---- reductions and scans


def _follow_reductions(module):
    Interface = module.ReduceScanOpInterface
    apply = Interface.apply

    def followed(self, tensors):
        if not isinstance(tensors, tuple):
            return followed(self, (tensors,))[0]
        results = apply(self, tensors)
        handles = [tensor.handle for tensor in tensors]
        marked = [handle for handle in handles if handle.undefined is not None]
        if marked:
            flags = functools.reduce(np.logical_or, map(_flags, handles))
            reached = _reach(self, flags)
            for result in results:
                result.handle.undefined = reached.reshape(np.shape(result.handle.data))
                result.handle.origin = marked[0].origin
        return results

    Interface.apply = followed


def _reach(operation, flags: np.ndarray) -> np.ndarray:
    """The lanes of a reduction's or scan's result that undefined ones reach."""
    axis = operation.axis
    if not hasattr(operation, "reverse"):
        return np.asarray(flags.any(axis=axis))
    if operation.reverse:
        return np.flip(np.logical_or.accumulate(np.flip(flags, axis), axis), axis)
    return np.logical_or.accumulate(flags, axis)


# ---- memory


def unwritten(data: np.ndarray, is_float: bool) -> np.ndarray | None:
    """The elements that hold what torch.empty's memory was filled with; None: none of them."""
    size = data.dtype.itemsize
    if size not in PATTERNS or (not is_float and size < _SMALLEST_INTEGER):
        return None
    found = np.ascontiguousarray(data).view(_UNSIGNED[size]) == PATTERNS[size]
    found = found.reshape(data.shape)
    return found if found.any() else None


def _mark_fresh_memory(torch):
    """torch.empty and its like fill what they give with the pattern."""
    for owner, name in (
        (torch, "empty"),
        (torch, "empty_like"),
        (torch, "empty_strided"),
        (torch.Tensor, "new_empty"),
    ):
        setattr(owner, name, _marking(getattr(owner, name), torch))


def _marking(original, torch):
    @functools.wraps(original)
    def fresh(*sizes, **options):
        tensor = original(*sizes, **options)
        if torch.compiler.is_compiling() or type(tensor) is not torch.Tensor:
            return tensor  # a compiler's stand-in has no memory
        if tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.numel():
            _fill(tensor, torch)
        return tensor

    return fresh


def _fill(tensor, torch):
    size = tensor.element_size()
    if tensor.dtype.is_complex or size not in PATTERNS:
        return
    signed = {2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    with torch.no_grad():
        tensor.view(signed).fill_(PATTERNS[size])
