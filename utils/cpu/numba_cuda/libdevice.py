"""numba.cuda.libdevice: NVIDIA's math functions by their C names (last bits may differ)."""

import numpy as np

_NAMES = {
    "fabs": "abs",
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "atan2": "arctan2",
    "acosh": "arccosh",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "pow": "power",
    "fmod": "fmod",
    "fmin": "fmin",
    "fmax": "fmax",
    "nearbyint": "rint",
    "log1p": "log1p",
    "exp10": None,
    "rsqrt": None,
    "rcbrt": None,
    "saturate": None,
    "fma": None,
    "sincos": None,
}
_OWN = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp10": lambda x: np.power(type(x)(10), x),
    "saturate": lambda x: np.fmin(np.fmax(x, type(x)(0)), type(x)(1)),
    "sincos": lambda x: (np.sin(x), np.cos(x)),
    "powi": lambda x, n: np.power(x, type(x)(n)),
    "fdivide": lambda x, y: x / y,
    "fma": lambda x, y, z: x * y + z,
}


def __getattr__(name):
    plain = name.removeprefix("fast_")
    for stem, kind in (
        (plain, np.float64),
        (plain[:-1] if plain.endswith("f") else None, np.float32),
    ):
        if stem is None:
            continue
        function = _OWN.get(stem) or getattr(np, _NAMES.get(stem) or stem, None)
        if function is not None and not stem.startswith("_") and callable(function):
            return _of(function, kind)
    raise AttributeError(f"libdevice has no {name!r} on the CPU engine")


def _of(function, kind):
    def call(*values):
        result = function(
            *(kind(value) if isinstance(value, (float, np.floating)) else value for value in values)
        )
        return tuple(map(kind, result)) if isinstance(result, tuple) else kind(result)

    return call
