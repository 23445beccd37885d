"""cuda.reduce: a reduction from a function of two arguments."""

import numpy as np

from . import namespace
from .arrays import cast
from .memory import host_view


class Reduce:
    """`total = cuda.reduce(lambda a, b: a + b)`, then `total(array)`; elements meet as a tree."""

    def __init__(self, functor):
        self.functor = getattr(functor, "py_func", functor)
        self._run = namespace.specialize(self.functor)

    def __call__(
        self,
        arr,
        size=None,
        res=None,
        init=0,
        stream=0,
    ):
        """Reduce the first `size` elements; the result, or None if put in `res[0]`."""
        data = host_view(arr)
        data = np.asarray(arr if data is None else data)
        if data.ndim != 1:
            raise TypeError("only support 1D array")
        if size is not None and size > data.size:
            raise ValueError("size > array size")
        values = list(data[:size])
        with np.errstate(all="ignore"):
            while len(values) > 1:
                half = (len(values) + 1) // 2
                values = [
                    cast(self._run(values[i], values[i + half]), data.dtype)
                    if i + half < len(values)
                    else values[i]
                    for i in range(half)
                ]
            total = (
                cast(self._run(values[0], cast(init, data.dtype)), data.dtype)
                if values
                else cast(init, data.dtype)
            )
        if res is None:
            return total
        res[0] = total
