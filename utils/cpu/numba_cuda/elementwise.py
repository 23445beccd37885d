"""NumPy's ufuncs on whole arrays in a kernel, as in `np.sin(x, out)`: element after element."""

import numpy as np

from .errors import KernelError


def apply(ufunc, method: str, inputs: tuple, outputs: tuple, options: dict) -> None:
    """Each element of the arrays `outputs` from `inputs`, arrays and numbers, by NumPy's rules.

    options: what else the call named, such as `where`.
    Raises KernelError for what a kernel has no memory for, and for shapes that do not fit.
    """
    name = f"np.{ufunc.__name__}"
    if method != "__call__":
        of_whole = f"NumPy goes over a whole array with {name}.{method}"
        raise KernelError(f"{of_whole}: that is not available in kernels", "Loop over elements.")
    if options:
        raise KernelError(f"{name} in a kernel takes arrays alone, not {', '.join(options)}=")
    if len(outputs) != ufunc.nout:
        raise KernelError(
            f"{name} of an array would make a new array, for which a kernel has no memory",
            f"Name the array for the result, {name}(x, out), or loop over elements.",
        )
    shape = outputs[0].shape
    try:
        fits = np.broadcast_shapes(shape, *map(_shape, inputs)) == shape
    except ValueError:
        fits = False
    if not fits:
        shapes = " and ".join(str(_shape(one)) for one in inputs)
        raise KernelError(f"{name}: {shapes} do not fit into the shape {shape}")
    for index in np.ndindex(shape):
        results = ufunc(*(_element(one, index) for one in inputs))
        results = results if isinstance(results, tuple) else (results,)
        for array, result in zip(outputs, results, strict=True):
            array[index] = result


def _is_array(one) -> bool:
    return hasattr(one, "space")


def _shape(one) -> tuple:
    return one.shape if _is_array(one) else ()


def _element(one, index: tuple):
    """The element that meets the one at `index`; a number meets them all."""
    if isinstance(one, int):
        return np.int64(one) if -(2**63) <= one < 2**63 else np.uint64(one)
    if not _is_array(one):
        return one
    inner = index[len(index) - one.ndim :]
    place = tuple(0 if side == 1 else i for i, side in zip(inner, one.shape, strict=True))
    return one.dtype.type(one[place])
