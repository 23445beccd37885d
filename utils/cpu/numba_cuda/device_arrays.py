"""Arrays in device memory, which is host memory here: copies are real."""

import numpy as np

from ... import sizes
from . import devices
from .elements import as_dtype, cast, fill_fresh, is_fresh

_NOT_CONTIGUOUS = (
    "Array contains non-contiguous buffer and cannot be transferred as a single memory region. "
    "Please ensure contiguous buffer with numpy .ascontiguousarray()"
)


class DeviceNDArray:
    """An array in device memory. Reading an element or slice from the host copies, as on a GPU."""

    __cuda_memory__ = True
    __cuda_ndarray__ = True

    def __init__(self, shape, strides, dtype, stream=0, gpu_data=None):
        """As in Numba: `gpu_data` of another array is its memory; None: memory of its own."""
        if gpu_data is None:
            data = empty(shape, dtype, strides, "C")
        else:
            data = np.lib.stride_tricks.as_strided(
                gpu_data.view(as_dtype(dtype)), _sizes(shape), _sizes(strides)
            )
        self._take(data, stream, None, None)

    @classmethod
    def over(cls, data, stream=0, device_id=None, made=None):
        """The array whose memory is `data`, which the host does not see otherwise.

        made: where, in words, if not all of it has been written.
        """
        array = cls.__new__(cls)
        array._take(data, stream, device_id, made)
        return array

    def _take(self, data, stream, device_id, made):
        self.data = data
        self.stream = stream
        self.made = made
        self.device_id = devices.current() if device_id is None else device_id

    gpu_data = property(lambda self: self.data)
    shape = property(lambda self: self.data.shape)
    strides = property(lambda self: self.data.strides)
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)
    nbytes = property(lambda self: self.data.nbytes)
    alloc_size = property(lambda self: self.data.nbytes)
    flags = property(
        lambda self: {
            "C_CONTIGUOUS": self.is_c_contiguous(),
            "F_CONTIGUOUS": self.is_f_contiguous(),
        }
    )
    T = property(lambda self: self.transpose())

    def is_c_contiguous(self):
        return self.data.flags.c_contiguous

    def is_f_contiguous(self):
        return self.data.flags.f_contiguous

    def _like(self, data, stream=0):
        return self.over(data, stream or self.stream, self.device_id, self.made)

    def copy_to_host(self, ary=None, stream=0):
        """The contents as a new NumPy array, or in `ary`."""
        sizes.note_copy()
        if any(stride < 0 for stride in self.strides):
            raise NotImplementedError(
                f"D->H copy not implemented for negative strides: {self.strides}"
            )
        if ary is None:
            return np.array(self.data, order="K")
        _check_compatible(self, ary)
        ary[...] = self.data
        return ary

    def copy_to_device(self, ary, stream=0):
        """Fill from a host or device array of the same shape and type."""
        sizes.note_copy()
        if ary.size == 0:
            return
        check_contiguous(self.data)
        source = host_view(ary)
        if source is None:
            source = np.asarray(ary)
        elif isinstance(ary, DeviceNDArray):
            check_contiguous(source)
        _check_compatible(self, source, strides=isinstance(ary, DeviceNDArray))
        self.data[...] = source

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("`copy=False` is not supported. A copy is always created.")
        host = self.copy_to_host()
        return host.astype(dtype) if dtype else host

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        part = self.data[index]
        if isinstance(part, np.ndarray):
            return self._like(part)
        if isinstance(part, np.void):
            return DeviceRecord.over(np.asarray(part), self.stream, self.device_id)
        return part

    def getitem(self, index, stream=0):
        return self[index]

    def __setitem__(self, index, value):
        source = host_view(value)
        source = np.asarray(value if source is None else source)
        target = self.data[index]
        if source.ndim > np.ndim(target):
            raise ValueError(f"Can't assign {source.ndim}-D array to {np.ndim(target)}-D self")
        for axis, (extent, given) in enumerate(
            zip(np.shape(target)[::-1], source.shape[::-1], strict=False)
        ):
            if given not in (1, extent):
                raise ValueError(
                    f"Can't copy sequence with size {given} to array axis "
                    f"{np.ndim(target) - 1 - axis} with dimension {extent}"
                )
        with np.errstate(all="ignore"):
            self.data[index] = source if source.ndim else cast(source[()], self.dtype)

    def setitem(self, index, value, stream=0):
        self[index] = value

    def reshape(self, *shape, order="C"):
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        return self._like(_no_copy(self.data, self.data.reshape(shape, order=order)))

    def ravel(self, order="C", stream=0):
        return self._like(_no_copy(self.data, self.data.ravel(order=order)), stream)

    def view(self, dtype):
        return self._like(self.data.view(as_dtype(dtype)))

    def squeeze(self, axis=None, stream=0):
        return self._like(self.data.squeeze(axis), stream)

    def transpose(self, axes=None):
        if axes and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise NotImplementedError("transposing a non-2D DeviceNDArray isn't supported")
        if axes is not None and set(axes) != set(range(self.ndim)):
            raise ValueError(f"invalid axes list {axes!r}")
        return self._like(np.ascontiguousarray(self.data.T))

    def split(self, section, stream=0):
        """Consecutive parts of `section` elements; the last may be smaller."""
        if self.ndim != 1:
            raise ValueError("only support 1d array")
        if self.strides[0] != self.dtype.itemsize:
            raise ValueError("only support unit stride")
        for begin in range(0, self.size, section):
            yield self._like(self.data[begin : begin + section], stream)

    def bind(self, stream=0):
        return self.over(self.data, stream, self.device_id, self.made)

    def written(self):
        """Which elements something has written since the array was made; None: all of them."""
        if self.made is None:
            return None
        unwritten = is_fresh(self.data)
        if unwritten.any():
            return ~unwritten
        self.made = None
        return None

    def __repr__(self):
        return f"<DeviceNDArray {self.shape} {self.dtype} on the CPU engine>"


class DeviceRecord(DeviceNDArray):
    """One record (structured scalar) in device memory."""

    def __init__(self, dtype, stream=0, gpu_data=None):
        super().__init__((), (), dtype, stream, gpu_data)

    def __getitem__(self, field):
        return self.data[field][()]

    def __setitem__(self, field, value):
        self.data[field] = value


class MappedNDArray(np.ndarray):
    """A host array that kernels use in place (pinned and mapped)."""

    __cuda_memory__ = __cuda_ndarray__ = True

    def copy_to_host(self, ary=None, stream=0):
        if ary is None:
            return np.array(self)
        ary[...] = self
        return ary

    def copy_to_device(self, ary, stream=0):
        self[...] = np.asarray(ary)


class ManagedNDArray(MappedNDArray):
    """A host array that host and kernels share (unified memory)."""


def host_view(value):
    """The NumPy array that shares memory with a device or mapped array or tensor; else None."""
    if isinstance(value, DeviceNDArray):
        return value.data
    if isinstance(value, MappedNDArray):
        return value.view(np.ndarray)
    if type(value).__module__.startswith("torch") and hasattr(value, "detach"):
        if value.device.type != "cpu":
            raise TypeError(f"the CPU engine takes CPU tensors; this one is on {value.device}")
        if value.requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. "
                "If gradients aren't required, use var.detach()."
            )
        try:
            return value.numpy()
        except TypeError:
            raise TypeError(
                f"NumPy has no {value.dtype}, so the CPU engine cannot take this tensor: "
                "convert it, .float() say"
            ) from None
    return None


def _no_copy(before, after):
    if after.size and not np.shares_memory(before, after):
        raise NotImplementedError("operation requires copying")
    return after


def check_contiguous(data):
    core = data
    if data.size:  # without the axes along which it is broadcast
        core = data[tuple(slice(None) if stride else 0 for stride in data.strides)]
    if not (core.flags.c_contiguous or core.flags.f_contiguous):
        raise ValueError(_NOT_CONTIGUOUS)


def _check_compatible(one, other, strides=True):
    if one.dtype != other.dtype:
        raise TypeError(f"incompatible dtype: {one.dtype} vs. {other.dtype}")
    if one.shape != other.shape:
        raise ValueError(f"incompatible shape: {one.shape} vs. {other.shape}")
    if strides and one.size and one.strides != other.strides:
        raise ValueError(f"incompatible strides: {one.strides} vs. {other.strides}")


def _sizes(numbers):
    """A shape or strides, of which one may be given as a number."""
    return numbers if isinstance(numbers, (tuple, list)) else (numbers,)


def empty(shape, dtype, strides, order):
    shape = _sizes(shape)
    for size in shape:
        if not isinstance(size, (int, np.integer)):
            raise TypeError(f"shape elements must be integers, got {type(size).__name__}")
    shape = tuple(int(size) for size in shape)
    dtype = as_dtype(dtype)
    if any(size < 0 for size in shape):
        raise ValueError("negative dimensions are not allowed")
    if strides is None:
        data = np.empty(shape, dtype, order)
    else:
        strides = tuple(_sizes(strides))
        if len(strides) != len(shape):
            raise ValueError("strides not match ndim")
        axes = zip(shape, strides, strict=True)
        extent = sum((size - 1) * abs(stride) for size, stride in axes)
        room = np.empty(extent + dtype.itemsize, np.uint8)
        data = np.ndarray(shape, dtype, room, 0, strides)
    if dtype.names is None:
        fill_fresh(data) if data.dtype.kind in "fc" or data.flags.c_contiguous else None
    return data
