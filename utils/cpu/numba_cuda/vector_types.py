"""CUDA's vector types: float32x4 and its kin, also by CUDA's names (float4, int2, uchar3 ...)."""

import numpy as np
from numba.core import types

from .elements import as_number

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
        "name": name,
        "base_type": getattr(types, base),
        "num_elements": count,
        "attr_names": tuple("xyzw"[:count]),
        "cpu_dtype": np.dtype([(letter, base) for letter in "xyzw"[:count]]),
    }
    return type(name, (), members)


def _all():
    """The types by numba-cuda's names; `aliases` of each are CUDA's."""
    made = {}
    for base, alias in _BASES.items():
        more = _MORE_ALIASES.get(base)
        for count in (1, 2, 3, 4):
            vector = _make(base, count)
            vector.user_facing_object = vector
            vector.aliases = tuple(f"{name}{count}" for name in (alias, more) if name)
            made[vector.name] = vector
    return made


vector_types = _all()  # its name in numba-cuda
