"""Inside the candidate's process: the arrays that it is given, and what it returns, as bytes."""

import contextlib
import hashlib
import sys
import weakref

import numpy as np

try:  # a file beside this one, in a process that knows no `course`
    import keeping
except ModuleNotFoundError:
    from course.judge import keeping

ALIGNMENT = 256


def argument_of(packed):
    """(value, its bytes' array) of what the judge packed: see `sandbox.pack`."""
    kind, value = packed[0], packed[1]
    if kind == "numpy":
        return aligned(value)
    if kind == "torch":
        import torch

        _, raw, dtype, shape, device = packed
        if device == "cpu" or not torch.cuda.is_available():
            if not raw.size:
                return torch.empty(shape, dtype=getattr(torch, dtype))
            return torch.from_numpy(aligned(raw)).view(getattr(torch, dtype)).view(shape)
        tensor = torch.empty(shape, dtype=getattr(torch, dtype))
        if raw.size:
            flat = tensor.view(-1) if tensor.dim() else tensor.reshape(1)
            flat.view(torch.uint8).copy_(torch.from_numpy(raw))
        return tensor.to(device)
    return value


#: Address of an array that `aligned` made -> the memory in which it lies
AROUND = weakref.WeakValueDictionary()
BESIDE = 0xFF  # each byte on both sides: of floats these are NaN


def aligned(array):
    """A copy that begins where an allocation on a device could, with NaN on both sides."""
    raw = np.full(array.nbytes + 3 * ALIGNMENT, BESIDE, np.uint8)
    start = ALIGNMENT + -raw.ctypes.data % ALIGNMENT
    place = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    AROUND[place.ctypes.data] = raw
    return place


def is_overrun(value):
    """Whether something was written beside an array that `aligned` made."""
    first, last = memory_of(value) or (0, 0)
    raw = AROUND.get(first)
    if raw is None:
        return False
    begin = raw.ctypes.data
    sides = raw[: first - begin], raw[last - begin :]
    return any(np.any(side != BESIDE) for side in sides)


def is_tensor(value):
    """Whether a value is a torch tensor, of whichever class."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def bytes_of(value):
    """The bytes of an array or tensor, in order; None for what is neither."""
    if is_tensor(value):
        import torch

        whole = torch.Tensor.contiguous(torch.Tensor.cpu(torch.Tensor.detach(value)))
        whole = torch.Tensor.resolve_conj(torch.Tensor.resolve_neg(whole))  # else no view of bytes
        flat = whole.reshape(-1) if whole.dim() else whole.reshape(1)
        return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    if isinstance(value, np.ndarray):
        return np.ndarray.tobytes(value)
    return None


def digest(value):
    """A digest of an array's bytes, by which the judge sees whether it was changed."""
    data = bytes_of(value)
    return None if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()


def packed(value, buffers, depth=0):
    """A result as JSON that names buffers, which are added to the list."""
    if is_tensor(value):
        buffers.append(bytes_of(value))
        name = str(value.dtype).removeprefix("torch.")
        return {"tensor": len(buffers) - 1, "dtype": name, "shape": list(value.shape)}
    if type(value) in device_arrays():
        value = value.copy_to_host()
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
        if value.dtype.kind not in "biufc":
            return {"other": f"array of {value.dtype}"}
        buffers.append(np.ndarray.tobytes(value))
        return {"array": len(buffers) - 1, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, bool | int | float | str | type(None)):
        return {"plain": value if type(value) in (bool, str, type(None)) else _number(value)}
    if isinstance(value, tuple | list) and depth < 4 and len(value) < 100_000:
        return {"many": [packed(one, buffers, depth + 1) for one in value]}
    return {"other": type(value).__name__}


def _number(value):
    return int(value) if isinstance(value, int) else float(value)


class Desk:
    """The arrays that a candidate is given, in places that stay where the judge says so."""

    def __init__(self):
        self.slots = {}
        self.earlier = []  # results of earlier calls, with their digests
        self.last, self.numbers = [], {}

    def kept(self, roots):
        """What the candidate keeps: what counts, and a copy of the last result."""
        before, self.numbers = self.numbers, keeping.numbers(roots)
        return {
            "counts": keeping.changed(before, self.numbers),
            "grown": keeping.grown(before, self.numbers),
            **keeping.of_launches(roots),
            "copy": next((path for path, *_ in keeping.copies(roots, self.last, overlap)), ""),
        }

    def remember(self, results, spoilt, arguments):
        """Keep results, of which a later call must leave the bytes as they are.

        spoilt: they are overwritten now, by the judge.
        """
        if spoilt:
            self.earlier = [
                one for one in self.earlier if not any(overlap(one[0], mine) for mine in results)
            ]
            spoil(results, arguments)
        else:
            self.earlier += [(one, digest(one)) for one in results if bytes_in(one) <= MOST_KEPT]
            del self.earlier[:-MOST_EARLIER]

    def arguments(self, given, slot, strided, same):
        """Arguments at fresh addresses, or, with a slot, at those of its last ones.

        same: the numbers of two, for which one array is given.
        """
        values = [argument_of(one) for one in given]
        if same:
            values[same[1]] = values[same[0]]
        if strided:
            return list(map(LYING[strided], values))
        if slot is None:
            return values
        kept = self.slots.get(slot)
        if kept is None or any(not alike(a, b) for a, b in zip(kept, values, strict=True)):
            self.slots[slot] = values
            return values
        for old, new in zip(kept, values, strict=True):
            if is_tensor(old):
                old.copy_(new)
            elif isinstance(old, np.ndarray):
                old[...] = new
        return [old if is_array(old) else new for old, new in zip(kept, values, strict=True)]


def is_array(value):
    """Whether a value is an array or a tensor."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def on_device(arguments):
    """The same arguments with arrays as Numba's on the GPU, as bare kernels take them."""
    from numba import cuda

    there = {id(one): cuda.to_device(one) for one in arguments if isinstance(one, np.ndarray)}
    return [there.get(id(one), one) for one in arguments]


def elsewhere(value):
    """The same values at another address, where they were: what is on a GPU does not leave it."""
    if is_tensor(value):
        return value.clone()
    if type(value) in device_arrays():
        from numba import cuda

        copy = cuda.device_array_like(value)
        copy.copy_to_device(value)
        return copy
    return aligned(value) if isinstance(value, np.ndarray) else value


LATE_CYCLES = 20_000_000  # some 10 ms of a GPU


def come_late(arguments):
    """Let tensors on a GPU have their values in a while, as if a kernel before still wrote them.

    Until then they are zeros. Work that does not wait for the current stream reads those.
    """
    torch = sys.modules.get("torch")
    late = [one for one in arguments if is_tensor(one) and one.is_cuda]
    values = [torch.Tensor.clone(one) for one in late]
    for one in late:
        torch.Tensor.zero_(one)
    if late:
        torch.cuda.synchronize()
        torch.cuda._sleep(LATE_CYCLES)
    for one, value in zip(late, values, strict=True):
        torch.Tensor.copy_(one, value)


def alike(a, b):
    """Whether one array's values fit into the other's place."""
    if is_array(a) and is_array(b):
        return type(a) is type(b) and a.shape == b.shape and a.dtype == b.dtype
    return not is_array(a) and not is_array(b)


def within_larger(value):
    """The same values in a view of a larger array, from its second element on: with gaps, where
    there are two axes or more.
    """
    if not is_array(value) or not value.ndim or 0 in value.shape:
        return value
    step = min(value.ndim, 2)
    shape = (*value.shape[:-1], step * value.shape[-1] + 1)
    wide = value.new_zeros(shape) if is_tensor(value) else np.zeros(shape, value.dtype)
    view = wide[..., 1::step]
    view[...] = value
    return view


def transposed(value):
    """The same values in a view of an array whose axes lie in memory in the other order."""
    return in_order(value, range(value.ndim)[::-1]) if is_array(value) else value


def exchanged(value):
    """The same with the first two axes alone in the other order."""
    if not is_array(value) or value.ndim < 2:
        return value
    return in_order(value, (1, 0, *range(2, value.ndim)))


def in_order(value, order):
    """The same values in a view of an array whose axes lie in memory in this order, which says the
    same of how to undo it.
    """
    order = tuple(order)
    if is_tensor(value):
        return value.permute(order).contiguous().permute(order)
    return np.ascontiguousarray(value.transpose(order)).transpose(order)


def backwards(value):
    """The same values in a view of an array in which they lie in reverse; PyTorch knows none."""
    if isinstance(value, np.ndarray) and value.ndim:
        return np.ascontiguousarray(np.flip(value))[(slice(None, None, -1),) * value.ndim]
    return value


def one_later(value):
    """The same values in an array of NumPy that begins one element later than an allocation."""
    if not isinstance(value, np.ndarray):
        return value
    wide = aligned(np.append(np.zeros(1, value.dtype), value.reshape(-1)))
    return wide[1:].reshape(value.shape)


def of_its_own(value):
    """A copy as anybody makes it: an array of NumPy that is no view."""
    return value.copy() if isinstance(value, np.ndarray) else value


def bytes_in(value):
    """How many bytes an array has."""
    return value.nbytes if is_array(value) else 0


#: How arrays lie that are not all of their memory, in order
VIEWS = {
    "views of larger arrays": within_larger,
    "transposed arrays": transposed,
    "arrays whose first axes are exchanged": exchanged,
    "arrays that lie backwards": backwards,
}
#: Where they lie, as far as no kernel counts on an allocation's address
PLACES = {
    "arrays that begin one element later": one_later,
    "arrays that own their memory": of_its_own,
}
LYING = VIEWS | PLACES
#: Results of earlier calls that are looked at, and bytes of such a result
MOST_EARLIER, MOST_KEPT = 12, 1 << 20


def memory_of(value):
    """(first address, one past the last) of an array's elements; None for what is no array."""
    if is_tensor(value):
        import torch

        storage = torch.Tensor.untyped_storage(value)
        return (
            (storage.data_ptr(), storage.data_ptr() + storage.nbytes())
            if storage.nbytes()
            else None
        )
    if isinstance(value, np.ndarray) and value.size:
        first, last = np.lib.array_utils.byte_bounds(value)
        return first, last
    return None


def overlap(a, b):
    """Whether two arrays share memory."""
    one, other = memory_of(a), memory_of(b)
    return bool(one and other and one[0] < other[1] and other[0] < one[1])


def parts(value):
    """The arrays in a result, flat."""
    if isinstance(value, tuple | list):
        return [part for one in value for part in parts(one)]
    return [value]


def class_of(value):
    """The name of a value's class; of an array's or tensor's own class just "array"."""
    torch = sys.modules.get("torch")
    plain = (np.ndarray, int, float, bool, str, type(None), tuple, list)
    if torch is not None:
        plain = (*plain, torch.Tensor, torch.nn.Parameter)
        if type(value) is torch.Tensor and value.is_leaf and value.requires_grad:
            return "a tensor that asks for gradients"
    if type(value) in plain or isinstance(value, np.generic):
        return "array"
    if type(value) in device_arrays():
        return "array"
    return f"{type(value).__module__}.{type(value).__qualname__}"


def device_arrays():
    """Classes of arrays on a device that are none of the candidate's."""
    found = []
    for module in ("utils.cpu.numba_cuda.device_arrays", "numba.cuda.cudadrv.devicearray"):
        cls = getattr(sys.modules.get(module), "DeviceNDArray", None)
        found += [cls] if cls else []
    return found


def spoil(results, arguments):
    """Overwrite what was returned: an answer that is kept and returned again is wrong then."""
    for one in results:
        if any(overlap(one, argument) for argument in arguments):
            continue
        with contextlib.suppress(Exception):
            if is_tensor(one):
                one.detach().fill_(93)
            elif one.flags.writeable:
                one.fill(93)
