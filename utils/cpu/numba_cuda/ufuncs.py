"""`@vectorize([...], target="cuda")`: element-wise functions over broadcast arrays."""

import numpy as np

from .arguments import argument
from .arrays import as_dtype, as_number
from .engine import one_at_a_time
from .memory import DeviceNDArray, host_view
from .namespace import specialize


class CUDAVectorize:
    """What Numba's vectorize decorator fills with signatures and then builds."""

    def __init__(
        self,
        py_func,
        identity=None,
        cache=False,
        targetoptions=None,
        writable_args=(),
    ):
        self.py_func = py_func
        self.signatures = []

    def add(self, sig=None):
        from numba.core import sigutils

        types, returned = sigutils.normalize_signature(sig)
        self.signatures.append(([as_dtype(t) for t in types], as_dtype(returned)))

    def disable_compile(self):
        """All signatures are known."""

    def build_ufunc(self):
        return Ufunc(self.py_func, self.signatures)


class Ufunc:
    """Call it on arrays and numbers; the result is in device memory if an argument is."""

    def __init__(self, py_func, signatures):
        self.py_func = py_func
        self.signatures = signatures
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__

    def __call__(self, *args, out=None, stream=0):
        hosts = [np.asarray(arg if (view := host_view(arg)) is None else view) for arg in args]
        given = [host.dtype for host in hosts]
        fitting = [
            s
            for s in self.signatures
            if len(s[0]) == len(given) and all(map(np.can_cast, given, s[0]))
        ]
        if not fitting:
            raise TypeError(f"{self.__name__} has no signature for {', '.join(map(str, given))}")
        types, returned = fitting[0]
        function = specialize(self.py_func)
        result = np.empty(np.broadcast_shapes(*(h.shape for h in hosts)), returned)
        with one_at_a_time(), np.errstate(all="ignore"):
            for i, values in enumerate(np.broadcast(*hosts)):
                numbers = (as_number(v, t) for v, t in zip(values, types, strict=True))
                result.flat[i] = as_number(
                    function(*(argument(n, None, []) for n in numbers)), returned
                )
        if out is not None:
            (out.data if isinstance(out, DeviceNDArray) else out)[...] = result
            return out
        return DeviceNDArray(result) if any(isinstance(a, DeviceNDArray) for a in args) else result


class CUDAGUFuncVectorize:
    """Generalised ufuncs are not provided."""

    def __init__(self, *args, **options):
        raise NotImplementedError(
            "guvectorize(target='cuda') is not available on the CPU engine: write a kernel"
        )
