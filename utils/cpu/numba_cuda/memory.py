"""What the host calls for memory: device, pinned, mapped and managed arrays, copies to a device."""

import contextlib
import sys

import numpy as np

from . import devices
from .device_arrays import (
    DeviceNDArray,
    DeviceRecord,
    ManagedNDArray,
    MappedNDArray,
    check_contiguous,
    empty,
    host_view,
)


def _strides_like(ary):
    """Contiguous strides in the order of `ary`'s, for arrays neither C nor F contiguous."""
    if ary.flags["C_CONTIGUOUS"] or ary.flags["F_CONTIGUOUS"] or ary.ndim <= 1:
        return None
    strides = [0] * ary.ndim
    step = ary.dtype.itemsize
    for axis in sorted(range(ary.ndim), key=lambda axis: ary.strides[axis]):
        strides[axis] = step
        step *= ary.shape[axis]
    return tuple(strides)


def _order_like(ary):
    return "F" if ary.flags["F_CONTIGUOUS"] and not ary.flags["C_CONTIGUOUS"] else "C"


def _caller():
    """The line of a program that asks this engine for memory, in words."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__package__") == __package__ and frame.f_back:
        frame = frame.f_back
    return f"cuda.device_array in line {frame.f_lineno}"


def device_array(
    shape,
    dtype=np.float64,
    strides=None,
    order="C",
    stream=0,
):
    """An uninitialised device array: floats are NaN here, so that nobody relies on zeros."""
    return DeviceNDArray.over(empty(shape, dtype, strides, order), stream, made=_caller())


def device_array_like(ary, stream=0):
    return device_array(
        ary.shape,
        ary.dtype,
        _strides_like(ary),
        _order_like(ary),
        stream,
    )


def from_array_like(ary, stream=0, gpu_data=None):
    """A device array of the shape, strides and type of `ary`; over `gpu_data` if given."""
    return DeviceNDArray(ary.shape, ary.strides, ary.dtype, stream, gpu_data)


def pinned_array(shape, dtype=np.float64, strides=None, order="C"):
    return empty(shape, dtype, strides, order)


def pinned_array_like(ary):
    return pinned_array(ary.shape, ary.dtype, _strides_like(ary), _order_like(ary))


def mapped_array(
    shape,
    dtype=np.float64,
    strides=None,
    order="C",
    stream=0,
    portable=False,
    wc=False,
):
    return empty(shape, dtype, strides, order).view(MappedNDArray)


def mapped_array_like(ary, stream=0, portable=False, wc=False):
    return mapped_array(ary.shape, ary.dtype, _strides_like(ary), _order_like(ary))


def managed_array(
    shape,
    dtype=np.float64,
    strides=None,
    order="C",
    stream=0,
    attach_global=True,
):
    return empty(shape, dtype, strides, order).view(ManagedNDArray)


def to_device(obj, stream=0, copy=True, to=None):
    """Copy `obj` to a new device array, or into `to`.

    What is in device memory already is returned as it is.
    """
    if to is not None:
        if copy:
            to.copy_to_device(obj, stream=stream)
        return to
    if isinstance(obj, (DeviceNDArray, MappedNDArray)):
        return obj
    shared = host_view(obj)
    if shared is not None:
        return DeviceNDArray.over(shared, stream, devices.EVERYWHERE)
    if isinstance(obj, np.void):
        return DeviceRecord.over(np.array(obj), stream)
    obj = np.asarray(obj)
    check_contiguous(obj)
    if obj.dtype == object:
        raise TypeError("arrays of Python objects have no place on a device")
    device = device_array_like(obj, stream)
    if copy:
        device.data[...] = obj
        device.made = None
    return device


def as_cuda_array(obj, sync=True):
    """A device array over the memory of a torch tensor or another device array, without a copy."""
    if isinstance(obj, DeviceNDArray):
        return DeviceNDArray.over(obj.data, obj.stream, obj.device_id)
    shared = host_view(obj)
    if shared is None:
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    return DeviceNDArray.over(shared, device_id=devices.EVERYWHERE)


def is_cuda_array(obj):
    return isinstance(obj, (DeviceNDArray, MappedNDArray)) or (
        type(obj).__module__.startswith("torch") and hasattr(obj, "detach")
    )


def from_cuda_array_interface(desc, owner=None, sync=True):
    raise NotImplementedError(
        "there is no GPU memory here: hand over NumPy arrays, torch CPU tensors or device arrays"
    )


@contextlib.contextmanager
def pinned(*arrays):
    """Page-lock host arrays: nothing to do here."""
    yield


@contextlib.contextmanager
def mapped(*arrays, stream=0):
    """Host arrays as device arrays that share their memory."""
    views = [DeviceNDArray.over(array, stream, devices.EVERYWHERE) for array in arrays]
    yield views[0] if len(views) == 1 else views
