"""The types of a kernel's expressions on a GPU, as far as they are needed: numbers.

From the types of the arguments on, through assignments, branches and loops, the way the kernel is
written. What is not understood (a record's field) has no type, and no rule is applied to it but
that it may not leave 64 bits.
"""

import ast
import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .types_of_numbers import (
    BOOL,
    DOUBLE,
    SINGLE,
    Type,
    literal,
    of_dtype,
    rounded,
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
TAKES_BITS = {*COUNTS_BITS, "brev"}
#: What these give, whatever they are given: a mask of lanes has a sign
GIVES = {
    **dict.fromkeys(("ballot_sync", "match_any_sync"), Type("i", 32, 32)),
    **dict.fromkeys(("syncthreads_count", "syncthreads_and", "syncthreads_or"), Type("i", 32, 11)),
    **dict.fromkeys(("activemask", "lanemask_lt"), Type("u", 32, 32)),
    **dict.fromkeys(("any_sync", "all_sync", "eq_sync"), BOOL),
    "match_all_sync": (Type("i", 32, 32), BOOL),
    "ffs": Type("u", 32, 7),
}
OF_FLOATS = set("sqrt sin cos tan exp log log2 log10 fabs tanh".split())
INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
MOST_FOLDED = 128  # bits: what is larger, Python computes only when it runs
#: What Python computes of two numbers that are written there, before Numba sees them
FOLDED = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "USub": operator.neg,
    "UAdd": operator.pos,
    "Invert": operator.invert,
}


class Array:
    """An array's element and number of dimensions."""

    def __init__(self, element: "Known", ndim: int):
        self.element = element
        self.ndim = ndim

    def __eq__(self, other):
        return isinstance(other, Array) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.element, self.ndim))


class Record(NamedTuple):
    """A record: its fields' types."""

    dtype: np.dtype

    def field(self, name: str | None) -> "Known":
        fields = self.dtype.fields or {}
        return of_element(fields[name][0]) if name in fields else None


Known = Type | Array | Record | tuple | None


def of_element(dtype: np.dtype) -> Known:
    """The type of an array's element, or of a record's field; None: not known."""
    if dtype.subdtype is not None:
        return None
    return Record(dtype) if dtype.names else of_dtype(dtype)


def of_argument(kind) -> Known:
    """What `arguments.kind_of` says of an argument, as a type; a Type is one."""
    if isinstance(kind, (Type, Array, Record)):
        return kind
    if isinstance(kind, np.dtype):
        return of_element(kind)
    if isinstance(kind, tuple):
        is_array = len(kind) == 2 and isinstance(kind[0], np.dtype)
        return Array(of_element(kind[0]), kind[1]) if is_array else tuple(map(of_argument, kind))
    if kind is bool:
        return BOOL
    if isinstance(kind, type) and issubclass(kind, np.floating):
        return of_dtype(np.dtype(kind))
    return None


def joined(a: Known, b: Known) -> Known:
    """What a name is that is one or the other."""
    if a == b:
        return a
    if isinstance(a, Type) and isinstance(b, Type):
        return unified(a, b)
    if is_tuple(a) and is_tuple(b) and len(a) == len(b):
        return tuple(map(joined, a, b))
    return None


def as_given(kind: Known) -> Known:
    """The type of what is handed to a device function."""
    if is_tuple(kind):
        return tuple(map(as_given, kind))
    return rounded(kind) if isinstance(kind, Type) else kind


class Expressions:
    """Notes the type of each expression of a function in `types`.

    value: what a global or constant expression is, None where it is none; called: what a device
    function is for arguments of these types, and the type of what it gives; else (None, None).
    """

    def __init__(
        self,
        names: dict[str, Known],
        value: Callable[[ast.expr], object],
        called: Callable[[object, tuple[Known, ...], dict[str, Known]], tuple],
    ):
        self.names = names
        self.value = value
        self.called = called
        self.types: dict[ast.expr, Known] = {}
        self.calls: dict[ast.expr, tuple] = {}  # of device functions: which, and for what types

    def of(self, node: ast.expr) -> Known:
        """The type of an expression; those of its parts are noted, too."""
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and (value := constant(node)) is not None:
            self.types[node] = literal(value)
            return self.types[node]
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
            return literal(node.value)
        return DOUBLE if isinstance(node.value, float) else None

    def of_Name(self, node: ast.Name) -> Known:
        if node.id in self.names:
            return self.names[node.id]
        value = self.value(node)
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, int):
            return literal(value)
        if isinstance(value, np.generic):
            return of_dtype(value.dtype)
        if isinstance(value, np.ndarray):
            return Array(of_element(value.dtype), value.ndim)
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
        if isinstance(base, Record):
            return base.field(node.attr)
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
        if isinstance(base, Record):
            return base.field(getattr(node.slice, "value", None))
        if isinstance(base, Array):
            written_out = isinstance(node.slice, ast.Tuple)
            parts = node.slice.elts if written_out else [node.slice]
            if is_tuple(index) and not written_out:
                return None
            sliced = sum(isinstance(part, ast.Slice) for part in parts)
            left = base.ndim - len(parts) + sliced
            plain = all(
                isinstance(part, ast.Slice) or is_integer(self.types[part]) for part in parts
            )
            if left:
                return Array(base.element, left) if left > 0 and plain else None
            return base.element
        if is_tuple(base):
            at = constant(node.slice)
            if at is None:
                return functools.reduce(joined, base) if base else None
            inside = -len(base) <= at < len(base)
            return base[at] if inside else None
        return None

    # ---- calls
    def of_Call(self, node: ast.Call) -> Known:
        kinds = [self.of(argument) for argument in node.args]
        named = {keyword.arg: self.of(keyword.value) for keyword in node.keywords}
        name = name_of(node.func)
        numbers = [kind for kind in kinds if isinstance(kind, Type)]
        method = getattr(self, f"call_{name}", None)
        if method is not None:
            return method(node, kinds)
        if root_of(node.func) in self.names:
            return None
        if not any(isinstance(part, ast.Starred) for part in node.args):
            given = tuple(map(as_given, kinds))
            by_name = {key: as_given(kind) for key, kind in named.items()}
            call, kind = self.called(self.value(node.func), given, by_name)
            if call is not None:
                self.calls[node] = call
                return kind
        if name in COUNTS_BITS and len(numbers) == 1:
            counted = numbers[0]
            return None if counted.is_float else counted._replace(size=7)
        if name == "brev" and len(numbers) == 1:
            bits = max(numbers[0].bits, 32)
            return None if numbers[0].is_float else Type("u", bits, bits)
        if name in GIVES:
            return GIVES[name]
        if name in KEEPS_TYPE and len(kinds) > 1:
            return kinds[1]
        if name == "selp" and len(kinds) == 3:
            return kinds[1]
        if name == "fma" and len(numbers) == len(kinds) == 3:
            return functools.reduce(together, numbers) if any(n.is_float for n in numbers) else None
        of_module = name_of(getattr(node.func, "value", node))
        if of_module == "atomic" and kinds and isinstance(kinds[0], Array):
            return kinds[0].element
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
        if len(node.args) != 1 or node.keywords:
            return None
        kind = as_type(self.value(node.func))
        if kind is None or kind.is_float:
            return kind
        if not numbers or numbers[0].is_float:
            return kind._replace(size=kind.bits)
        number = numbers[0]
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
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        given = {**dict(zip(("shape", "dtype"), node.args, strict=False)), **named}
        if not {"shape", "dtype"} <= set(given):
            return None
        sides, dtype = given["shape"], given["dtype"]
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
    return type(kind) is tuple


def is_integer(kind: Known) -> bool:
    """Whether it is a number that is no float."""
    return isinstance(kind, Type) and not kind.is_float


def name_of(node: ast.expr) -> str:
    """The name of `f` and of `module.f`; "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return getattr(node, "attr", "")


def root_of(node: ast.expr) -> str:
    """The name that `f` and `module.f` begin with; "" of anything else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", "")


def constant(node: ast.expr) -> int | None:
    """An integer that is written there, or what Python makes of several."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    match node:
        case ast.UnaryOp(op=sign, operand=operand):
            parts = [constant(operand)]
        case ast.BinOp(left=left, op=sign, right=right):
            parts = [constant(left), constant(right)]
        case _:
            return None
    compute = FOLDED.get(type(sign).__name__)
    if compute is None or None in parts:
        return None
    if isinstance(sign, (ast.LShift, ast.Pow)) and abs(parts[1]) > MOST_FOLDED:
        return None
    try:
        value = compute(*parts)
    except (ArithmeticError, ValueError):
        return None
    return value if type(value) is int else None


def _power(a: Type, b: Type) -> Known:
    if a.is_float and not b.is_float:
        return SINGLE if a.bits == 16 else a
    if a.is_float or b.is_float:
        common = together(a, b)
        return SINGLE if common.bits == 16 else common
    both_unsigned = a.kind == b.kind == "u"
    sign = "u" if both_unsigned else "i"
    return Type(sign, 64, 64)
