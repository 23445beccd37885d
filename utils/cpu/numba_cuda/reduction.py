"""cuda.reduce: a reduction from a function of two arguments."""

import numpy as np

from . import namespace
from .device_arrays import host_view
from .elements import cast
from .state import one_at_a_time


class Reduce:
    """`total = cuda.reduce(lambda a, b: a + b)`, then `total(array)`; elements meet as a tree."""

    def __init__(self, functor):
        self.functor = getattr(functor, "py_func", functor)
        self._run = None

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
        with one_at_a_time(watched=False), np.errstate(all="ignore"):
            self._run = self._run or namespace.specialize(self.functor)
            total = self._reduced(list(data[:size]), data.dtype, init)
        if res is None:
            return total
        res[0] = total
        return None

    def _reduced(self, values, dtype, init):
        """All values and `init` as one."""
        while len(values) > 1:
            half = (len(values) + 1) // 2
            pairs = zip(values, values[half:], strict=False)
            met = [cast(self._run(a, b), dtype) for a, b in pairs]
            values = met + values[len(met) : half]
        init = cast(init, dtype)
        return cast(self._run(values[0], init), dtype) if values else init
