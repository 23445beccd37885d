"""CUDA's vector types: float32x4 and its kin, also by CUDA's names (float4, int2, uchar3 ...)."""

import numpy as np

from .arrays import as_number

_BASES = {
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "longlong",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulonglong",
    "float32": "float",
    "float64": "double",
}
_MORE_ALIASES = {"int64": "long", "uint64": "ulong"}


def _make(base, count):
    dtype = np.dtype(base)
    name = f"{base}x{count}"

    def __init__(self, *parts):
        values = []
        for part in parts:
            values.extend(part) if hasattr(part, "cpu_dtype") else values.append(part)
        if len(values) != count:
            raise ValueError(f"{name} needs {count} numbers, got {len(values)}")
        for letter, value in zip("xyzw", values, strict=False):
            object.__setattr__(self, letter, as_number(value, dtype))

    def __setattr__(self, letter, value):
        raise AttributeError(f"{name} cannot be changed in place: make a new one")

    members = {
        "__slots__": tuple("xyzw"[:count]),
        "__init__": __init__,
        "__setattr__": __setattr__,
        "__iter__": lambda self: (getattr(self, letter) for letter in "xyzw"[:count]),
        "__eq__": lambda self, other: type(self) is type(other) and tuple(self) == tuple(other),
        "__hash__": lambda self: hash(tuple(self)),
        "__repr__": lambda self: f"{name}({', '.join(map(str, self))})",
        "__doc__": f"{count} values of {base}: {', '.join('xyzw'[:count])}.",
        "cpu_dtype": np.dtype([(letter, base) for letter in "xyzw"[:count]]),
    }
    return type(name, (), members)


VECTOR_TYPES = {}
for _base, _alias in _BASES.items():
    for _count in (1, 2, 3, 4):
        _made = _make(_base, _count)
        VECTOR_TYPES[f"{_base}x{_count}"] = VECTOR_TYPES[f"{_alias}{_count}"] = _made
        if _base in _MORE_ALIASES:
            VECTOR_TYPES[f"{_MORE_ALIASES[_base]}{_count}"] = _made
