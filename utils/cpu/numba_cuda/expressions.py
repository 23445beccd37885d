"""The types of a kernel's expressions on a GPU, as far as they are needed: numbers.

From the types of the arguments on, through assignments, branches and loops, the way the kernel is
written. What is not understood (a device function's result, a record) has no type, and no rule is
applied to it.
"""

import ast
from collections.abc import Callable

import numpy as np

from .types_of_numbers import (
    BOOL,
    DOUBLE,
    SINGLE,
    Type,
    of_dtype,
    signed,
    size_of,
    together,
    unified,
)

#: Bits of an index of threads or blocks (this engine runs no more), and of a side of an array
INDEX = 28
SIDE = 32
KEEPS_TYPE = {"shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"}
COUNTS_BITS = {"popc", "clz"}
OF_FLOATS = set("sqrt sin cos tan exp log log2 log10 fabs tanh".split())
INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}


class Array:
    """An array's element and number of dimensions."""

    def __init__(self, element: Type | None, ndim: int):
        self.element = element
        self.ndim = ndim

    def __eq__(self, other):
        return isinstance(other, Array) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.element, self.ndim))


Known = Type | Array | tuple | None


def of_argument(kind) -> Known:
    """What `arguments.kind_of` says of an argument, as a type; a Type is one."""
    if isinstance(kind, Type):
        return kind
    if isinstance(kind, tuple) and len(kind) == 2:
        dtype, ndim = kind
        if isinstance(dtype, np.dtype):
            return Array(of_dtype(dtype), ndim)
    if kind is bool:
        return BOOL
    if isinstance(kind, int):
        return signed(kind)
    if isinstance(kind, type) and issubclass(kind, np.floating):
        return of_dtype(np.dtype(kind))
    return None


def joined(a: Known, b: Known) -> Known:
    """What a name is that is one or the other."""
    if a == b:
        return a
    if isinstance(a, Type) and isinstance(b, Type):
        return unified(a, b)
    return None


class Expressions:
    """Notes the type of each expression of a function in `types`."""

    def __init__(self, names: dict[str, Known], value: Callable[[ast.expr], object]):
        self.names = names
        self.value = value  # what a global or constant expression is; None where it is none
        self.types: dict[ast.expr, Known] = {}

    def of(self, node: ast.expr) -> Known:
        """The type of an expression; those of its parts are noted, too."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        kind = method(node) if method else self.of_parts(node)
        self.types[node] = kind
        return kind

    def of_parts(self, node: ast.expr) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.of(part)

    def of_Constant(self, node: ast.Constant) -> Known:
        if isinstance(node.value, bool):
            return BOOL
        if isinstance(node.value, int):
            return signed(max(node.value.bit_length(), 1))
        return DOUBLE if isinstance(node.value, float) else None

    def of_Name(self, node: ast.Name) -> Known:
        if node.id in self.names:
            return self.names[node.id]
        value = self.value(node)
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, int):
            return signed(max(value.bit_length(), 1))
        if isinstance(value, np.generic):
            return of_dtype(value.dtype)
        if isinstance(value, np.ndarray):
            return Array(of_dtype(value.dtype), value.ndim)
        return DOUBLE if isinstance(value, float) else None

    def of_Tuple(self, node: ast.Tuple) -> Known:
        return tuple(self.of(part) for part in node.elts)

    def of_BinOp(self, node: ast.BinOp) -> Known:
        return self.operation(
            node.op,
            self.of(node.left),
            self.of(node.right),
            node.right,
        )

    def operation(
        self,
        operator: ast.operator,
        a: Known,
        b: Known,
        right: ast.expr,
    ) -> Known:
        if not isinstance(a, Type) or not isinstance(b, Type):
            return None
        name = type(operator).__name__
        floats = a.is_float or b.is_float
        if name == "Div" and not floats:
            return DOUBLE
        if name == "Pow":
            return _power(a, b)
        both_bool = a.kind == b.kind == "b"
        if name in ("LShift", "RShift"):
            sign = "u" if a.kind == "u" else "i"
            kind = Type(sign, 64)
        elif name in ("BitAnd", "BitOr", "BitXor") and both_bool:
            return BOOL
        else:
            kind = together(a, b)
        if floats:
            divides = name in ("FloorDiv", "Mod")
            return SINGLE if divides and kind.bits == 16 else kind
        size = size_of(name, a, b, constant(right))
        if name == "Sub" and kind.kind == "u":
            size = 65  # below zero
        size = min(size, 64)
        return kind._replace(size=size)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Known:
        kind = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            return BOOL
        if not isinstance(kind, Type):
            return None
        inverts = isinstance(node.op, ast.Invert)
        if kind.is_float:
            return None if inverts else kind
        if kind.kind == "b":
            return None if inverts else signed(2)
        keeps = isinstance(node.op, ast.UAdd)
        if kind.kind == "u" and not keeps:
            return Type("u", 64, kind.bits)
        return Type(kind.kind, 64, kind.size)

    def of_Compare(self, node: ast.Compare) -> Known:
        self.of_parts(node)
        return BOOL

    def of_BoolOp(self, node: ast.BoolOp) -> Known:
        kinds = [self.of(part) for part in node.values]
        return BOOL if all(kind == BOOL for kind in kinds) else None

    def of_IfExp(self, node: ast.IfExp) -> Known:
        self.of(node.test)
        return joined(self.of(node.body), self.of(node.orelse))

    def of_Attribute(self, node: ast.Attribute) -> Known:
        base = self.of(node.value)
        if name_of(node.value) in INDICES:
            return Type("i", 32, INDEX)
        if not isinstance(base, Array):
            return None
        if node.attr == "size":
            return signed(SIDE)
        if node.attr == "shape":
            side = signed(SIDE)
            return (side,) * base.ndim
        if node.attr == "T":
            return base
        return None

    def of_Subscript(self, node: ast.Subscript) -> Known:
        base = self.of(node.value)
        index = self.of(node.slice)
        if isinstance(base, Array):
            written_out = isinstance(node.slice, ast.Tuple)
            parts = node.slice.elts if written_out else [node.slice]
            sliced = any(isinstance(part, ast.Slice) for part in parts)
            if sliced or len(parts) != base.ndim:
                return None
            if is_tuple(index) and not written_out:
                return None
            return base.element
        if is_tuple(base):
            at = constant(node.slice)
            inside = at is not None and -len(base) <= at < len(base)
            return base[at] if inside else None
        return None

    # ---- calls
    def of_Call(self, node: ast.Call) -> Known:
        kinds = [self.of(argument) for argument in node.args]
        for keyword in node.keywords:
            self.of(keyword.value)
        name = name_of(node.func)
        numbers = [kind for kind in kinds if isinstance(kind, Type)]
        method = getattr(self, f"call_{name}", None)
        if method is not None:
            return method(node, kinds)
        if isinstance(node.func, ast.Name) and node.func.id in self.names:
            return None
        if name in COUNTS_BITS and len(numbers) == 1:
            counted = numbers[0]
            return None if counted.is_float else counted._replace(size=7)
        if name in KEEPS_TYPE and len(kinds) > 1:
            return kinds[1]
        all_numbers = len(numbers) == len(kinds)
        if name in ("min", "max") and all_numbers and len(numbers) == 2:
            return unified(*numbers)
        if name in OF_FLOATS and all_numbers and numbers:
            if len(numbers) > 1:
                return None
            number = numbers[0]
            return number if number.is_float else DOUBLE
        return self.cast(node, numbers)

    def cast(self, node: ast.Call, numbers: list[Type]) -> Known:
        """np.int32(x) and its like."""
        if len(node.args) != 1 or len(numbers) != 1:
            return None
        number = numbers[0]
        kind = as_type(self.value(node.func))
        if kind is None or kind.is_float or number.is_float:
            return kind
        fits = number.kind == kind.kind and number.size <= kind.bits
        size = number.size if fits else kind.bits
        return kind._replace(size=size)

    def call_abs(self, node: ast.Call, kinds: list[Known]) -> Known:
        kind = kinds[0]
        is_number = isinstance(kind, Type) and kind.kind != "b"
        return kind if is_number else None

    def call_int(self, node: ast.Call, kinds: list[Known]) -> Known:
        if len(kinds) != 1:
            return None
        kind = kinds[0]
        if not isinstance(kind, Type):
            return None
        return kind if kind.kind in "iu" else signed(64)

    def call_float(self, node: ast.Call, kinds: list[Known]) -> Known:
        if len(kinds) != 1:
            return None
        kind = kinds[0]
        if not isinstance(kind, Type):
            return None
        return kind if kind.is_float else DOUBLE

    def call_len(self, node: ast.Call, kinds: list[Known]) -> Known:
        return signed(SIDE)

    def call_grid(self, node: ast.Call, kinds: list[Known]) -> Known:
        count = constant(node.args[0]) if node.args else None
        index = signed(INDEX)
        if count == 1:
            return index
        return (index,) * count if count in (2, 3) else None

    call_gridsize = call_grid

    def call_array(self, node: ast.Call, kinds: list[Known]) -> Known:
        """cuda.shared.array(shape, dtype) and cuda.local.array."""
        if len(node.args) != 2:
            return None
        sides, dtype = node.args
        shape = self.value(sides)
        ndim = len(shape) if isinstance(shape, tuple) else 1
        if isinstance(sides, ast.Tuple):
            ndim = len(sides.elts)
        element = as_type(self.value(dtype))
        return Array(element, ndim)


def as_type(value: object) -> Type | None:
    """A NumPy or Numba type as one of ours."""
    from .elements import as_dtype

    if value is None:
        return None
    try:
        return of_dtype(np.dtype(as_dtype(value)))
    except (TypeError, AttributeError, ValueError):
        return None


def is_tuple(kind: Known) -> bool:
    """Whether it is the types of a tuple's parts (a Type is a tuple, too)."""
    return isinstance(kind, tuple) and not isinstance(kind, Type)


def is_integer(kind: Known) -> bool:
    """Whether it is a number that is no float."""
    return isinstance(kind, Type) and not kind.is_float


def name_of(node: ast.expr) -> str:
    """The name of `f` and of `module.f`; "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return getattr(node, "attr", "")


def constant(node: ast.expr) -> int | None:
    """An integer that is written there."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant(node.operand)
        return None if inner is None else -inner
    if not isinstance(node, ast.Constant):
        return None
    return node.value if type(node.value) is int else None


def _power(a: Type, b: Type) -> Known:
    if a.is_float and not b.is_float:
        return SINGLE if a.bits == 16 else a
    if a.is_float or b.is_float:
        common = together(a, b)
        return SINGLE if common.bits == 16 else common
    both_unsigned = a.kind == b.kind == "u"
    sign = "u" if both_unsigned else "i"
    return Type(sign, 64, 64)
