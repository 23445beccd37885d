"""Integers of a kernel keep their width, and floats their promotions, where Numba's types say so.

    h * 31 + 7       ->  __signed__(h * 31 + 7)         of an int64 h, which may overflow
    a[i] - b[i]      ->  __unsigned__(a[i] - b[i])      of two uint32
    x * 2            ->  __double__(x) * 2              of a float32 x: the literal is an int64
    f(x, y)          ->  __call0__(x, y)                a device function, made for these types

Only what may differ is changed; most kernels stay as they are.
"""

import ast
import inspect
import operator
from collections.abc import Sequence
from types import CodeType

import numpy as np

from .bits import larger, smaller
from .errors import KernelError
from .expressions import TAKES_BITS, Known, Record, constant, name_of, of_argument
from .inference import Inference
from .types_of_numbers import (
    DOUBLE,
    EXACT,
    LARGEST,
    MODULUS,
    SMALLEST,
    Type,
    size_of,
    together,
    unified,
)

GROWING = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "LShift": operator.ilshift,
    "Pow": operator.ipow,
}


def wrap_signed(value):
    """An integer as int64 has it; anything else as it is."""
    if type(value) is not int or SMALLEST <= value <= LARGEST:
        return value
    value &= MODULUS - 1
    return value - MODULUS if value > LARGEST else value


def wrap_unsigned(value):
    """An integer as uint64 has it."""
    if isinstance(value, np.integer):
        value = int(value)
    if type(value) is not int:
        return value
    return value & (MODULUS - 1)


def within(value):
    """A number whose type is not known, which must not leave 64 bits."""
    if type(value) is int and not SMALLEST <= value < MODULUS:
        raise KernelError(
            "a whole number leaves its 64 bits here, and what Numba makes of it depends on its "
            "type, which the CPU engine does not see",
            "Name the type of what it is computed from: np.int64(x), or np.uint64(x).",
        )
    return value


def shifted(value, count):
    """value << count of integers, for any count: of 64 and more it is 0."""
    return value << count if count < 64 else 0


def power(value, exponent):
    """value ** exponent of integers, the last 64 bits; of a negative exponent cut off to 0."""
    if exponent < 0:
        return value ** (exponent & 1) if value in (1, -1) else 0
    return pow(value, exponent, MODULUS)


def low_bits(value, bits):
    """An integer as an unsigned type of so many bits has it."""
    return int(value) & (1 << bits) - 1


def wrap_to(value, bits):
    """An integer of a signed type of so many bits: abs of the smallest stays negative."""
    if type(value) is not int:
        return value
    has_sign = value >> (bits - 1) == 1
    return value - (1 << bits) if has_sign else value


NAMES = {
    "__signed__": wrap_signed,
    "__unsigned__": wrap_unsigned,
    "__within__": within,
    "__shifted__": shifted,
    "__power__": power,
    "__low_bits__": low_bits,
    "__wrapped__": wrap_to,
    "__double__": np.float64,
    "__min__": smaller,
    "__max__": larger,
    "__single__": np.float32,
    "__integer__": int,
    "__uint64__": np.uint64,
    **{f"__{name}__": compute for name, compute in GROWING.items()},
}


def widen(
    function: ast.FunctionDef,
    inference: Inference,
    calls: dict[str, object],
) -> bool:
    """Changes a function, given as a syntax tree, in place; whether anything was changed.

    inference: what knows the types of its arguments; calls: gets the device functions that are made
    for their arguments' types, by name.
    """
    try:
        inference.body(function.body)
    except RecursionError:
        return False
    widths = _Widths(inference, calls)
    function.body = [widths.visit(statement) for statement in function.body]
    return widths.changed


def arguments(code: CodeType, kinds: Sequence) -> dict[str, Known]:
    """The types of a function's arguments by name; None of those that are not known."""
    rest = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    every = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + rest]
    named = zip(code.co_varnames[: code.co_argcount], map(of_argument, kinds), strict=False)
    return {**dict.fromkeys(every), **dict(named)}


class _Widths(ast.NodeTransformer):
    def __init__(self, inference: Inference, calls: dict[str, object]):
        self.inference = inference
        self.types = inference.types
        self.local = set(inference.names)
        self.calls = calls
        self.changed = False

    def kind(self, node: ast.expr) -> Type | None:
        kind = self.types.get(node)
        return kind if isinstance(kind, Type) else None

    def call(
        self,
        name: str,
        node: ast.expr,
        *more: int,
    ) -> ast.expr:
        constants = [ast.copy_location(ast.Constant(n), node) for n in more]
        return self.named(name, node, node, *constants)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if _is_uint64(self.kind(node)) and node.id not in self.local:
            return self.call("__integer__", node)  # a constant of NumPy's
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        kind = self.kind(node)
        is_field = isinstance(self.types.get(node.value), Record)
        self.generic_visit(node)
        numpys = _is_uint64(kind) or is_field and kind is not None and kind.kind in "iu"
        return self.call("__integer__", node) if numpys and isinstance(node.ctx, ast.Load) else node

    visit_Attribute = visit_Subscript

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        kind = self.kind(node)
        a = self.kind(node.left)
        b = self.kind(node.right)
        self.generic_visit(node)
        if kind and a and b:
            node.left = self.operand(node.left, kind, a, b, node.op)
            node.right = self.operand(node.right, kind, b, a, node.op)
            return self.result(node, kind, a, b, node.op)
        return self.unknown(node, a, b)

    def unknown(self, node: ast.BinOp, a: Type | None, b: Type | None) -> ast.expr:
        """An operation on what has no type: whole numbers must stay within 64 bits."""
        return self.call("__within__", node) if _may_grow(node.op, a, b) else node

    def unknown_assigned(self, node: ast.AugAssign, a: Type | None, b: Type | None) -> ast.stmt:
        """The same of `x += y`, which may change an array in its place."""
        if not _may_grow(node.op, a, b):
            return node
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = self.named(f"__{type(node.op).__name__}__", node, left, node.value)
        checked = ast.Assign([node.target], self.call("__within__", value))
        return ast.copy_location(checked, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        a = self.kind(node.target)
        b = self.kind(node.value)
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        if not a or not b:
            return self.unknown_assigned(node, a, b)
        plain = ast.BinOp(
            ast.Name(node.target.id, ast.Load()),
            node.op,
            node.value,
        )
        ast.copy_location(plain, node)
        ast.copy_location(plain.left, node.target)
        self.types[plain.left] = a
        self.types[node.value] = b
        before = self.changed
        self.changed = False
        kind = self.inference.operation(node.op, a, b, node.value)
        if not isinstance(kind, Type):
            self.changed = before
            return node
        plain.left = self.operand(plain.left, kind, a, b, node.op)
        plain.right = self.operand(plain.right, kind, b, a, node.op)
        value = self.result(plain, kind, a, b, node.op)
        if not self.changed:
            self.changed = before
            return node
        return ast.copy_location(ast.Assign([node.target], value), node)

    def operand(
        self,
        node,
        kind: Type,
        mine: Type,
        other: Type,
        sign: ast.operator,
    ) -> ast.expr:
        """One side of an operation, converted to its type where Python would not."""
        name = type(sign).__name__
        if kind.is_float and mine.is_float:
            before_integer = mine.size and not other.is_float  # `s = np.float32(0)`, then `s += n`
            narrow = mine.bits < 64 or before_integer
            if kind.bits == 64 and narrow and other != DOUBLE:
                return self.call("__double__", node)
            half = mine.bits == 16 and (other.bits == 16 or not other.is_float or name == "Pow")
            maybe_integer = mine.size and (other.size or not other.is_float)
            if kind.bits == 32 and (half or maybe_integer):
                return self.call("__single__", node)
        elif name == "Div" and not mine.is_float:
            largest = max(mine.size, other.size)
            return self.call("__double__", node) if largest > EXACT else node
        elif name in ("FloorDiv", "Mod") and kind.kind == "i":
            too_large = mine.kind == "u" and mine.size > 63
            return self.call("__signed__", node) if too_large else node
        return node

    def result(
        self,
        node: ast.expr,
        kind: Type,
        a: Type,
        b: Type,
        sign: ast.operator,
    ) -> ast.expr:
        name = type(sign).__name__
        if not kind.is_float and name == "Pow":
            node = self.named("__power__", node, node.left, node.right)
        elif name == "LShift" and constant(node.right) is None:
            node = self.named("__shifted__", node, node.left, node.right)
        if kind.kind == "i" and kind.bits == 64:
            leaves = self.leaves(name, a, b, node)
            return self.call("__signed__", node) if leaves else node
        if _is_uint64(kind):
            leaves = name == "Sub" or self.leaves(name, a, b, node)
            return self.call("__unsigned__", node) if leaves else node
        of_integers = not a.is_float and not b.is_float
        if name == "Div" and of_integers and max(a.size, b.size) <= EXACT:
            node.left = self.call("__double__", node.left)  # by 0 it is infinite, or NaN
        return node

    def leaves(
        self,
        name: str,
        a: Type,
        b: Type,
        node: ast.BinOp,
    ) -> bool:
        """Whether an integer may leave its 64 bits (63 with a sign)."""
        if name in ("RShift", "Mod"):
            return False
        if name == "Pow":
            return True
        shifts_left = name == "LShift"
        is_unsigned = a.kind == "u" and (b.kind == "u" or shifts_left)
        if name in ("BitAnd", "BitOr", "BitXor"):
            mixed = "u" in (a.kind, b.kind) and not is_unsigned
            return mixed and max(a.size, b.size) > 63
        divisor = constant(node.right) if isinstance(node, ast.BinOp) else None
        if name == "FloorDiv":  # the smallest integer divided by -1
            may_be_negative = divisor is None or divisor < 0
            return not is_unsigned and a.size > 62 and may_be_negative
        limit = 64 if is_unsigned else 63
        return size_of(name, a, b, divisor) > limit

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        kind = self.kind(node)
        operand = self.kind(node.operand)
        self.generic_visit(node)
        if not kind or not operand or kind.is_float:
            return node
        if isinstance(node.op, (ast.Not, ast.UAdd)):
            return node
        # In the operand's own width; only then it becomes 64 bits wide.
        if operand.kind == "u":
            return self.call("__low_bits__", node, operand.bits)
        if isinstance(node.op, ast.USub) and operand.size >= operand.bits:
            return self.call("__wrapped__", node, operand.bits)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        kinds = [self.kind(operand) for operand in operands]
        self.generic_visit(node)
        if len(operands) != 2 or not all(kinds):
            return node
        a, b = kinds
        right = node.comparators[0]
        if DOUBLE.same(together(a, b)) and a.is_float != b.is_float:
            node.left = self.to_double(node.left, a)
            node.comparators[0] = self.to_double(right, b)
        return node

    def to_double(self, node: ast.expr, kind: Type) -> ast.expr:
        narrow = kind.is_float and kind.bits < 64
        return self.call("__double__", node) if narrow else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        kind = self.kind(node)
        a = self.kind(node.body)
        b = self.kind(node.orelse)
        self.generic_visit(node)
        if not kind or not a or not b:
            return node
        if not a.same(b) and kind.is_float and kind.bits > 16:
            return self.call("__double__" if DOUBLE.same(kind) else "__single__", node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        kind = self.kind(node)
        given = [self.kind(argument) for argument in node.args]
        name = name_of(node.func)
        called = self.inference.calls.get(node)
        self.generic_visit(node)
        if called is not None:
            return self.device_call(node, called, kind)
        if kind is None:  # it may be NumPy's, so that what is not looked into wraps
            for i, its_kind in enumerate(given):
                if _is_uint64(its_kind):
                    node.args[i] = self.call("__uint64__", node.args[i])
        if not kind or not all(given) or not given:
            return node
        if name in TAKES_BITS:
            self.changed = True
            bits = ast.copy_location(ast.Constant(given[0].bits), node)
            node.args.append(bits)
        elif name in ("min", "max") and kind.is_float:
            return self.extreme(node, name, *given)
        elif name == "abs" and kind.kind == "i" and kind.size >= kind.bits:
            return self.call("__wrapped__", node, kind.bits)
        elif name == "float" and given[0].is_float and given[0].bits < 64:
            self.changed = True
            return node.args[0]
        elif _is_uint64(kind):
            return self.call("__integer__", node)
        return node

    def extreme(self, node: ast.Call, name: str, a: Type, b: Type) -> ast.expr:
        """min or max, of numbers that are compared as floats."""
        common = unified(a, b)
        if not a.same(b) and common.bits > 16:
            function = "__double__" if DOUBLE.same(common) else "__single__"
            node.args = [self.call(function, argument) for argument in node.args]
        both_float = a.is_float and b.is_float and common.bits > 16
        return self.named(f"__{name}__", node, *node.args) if both_float else node

    def device_call(self, node: ast.Call, called: tuple, kind: Type | None) -> ast.expr:
        self.changed = True
        name = f"__call{len(self.calls)}__"
        self.calls[name] = called
        node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
        return self.call("__integer__", node) if _is_uint64(kind) else node

    def named(self, name: str, node: ast.AST, *operands: ast.expr) -> ast.Call:
        """An operation as a call of a function of ours."""
        self.changed = True
        function = ast.copy_location(ast.Name(name, ast.Load()), node)
        return ast.copy_location(ast.Call(function, [*operands], []), node)


def _may_grow(sign: ast.operator, a: Type | None, b: Type | None) -> bool:
    """Whether an operation may take a whole number out of its type."""
    is_float = any(kind and kind.is_float for kind in (a, b))
    return type(sign).__name__ in GROWING and not is_float


def _is_uint64(kind: Type | None) -> bool:
    return kind is not None and (kind.kind, kind.bits) == ("u", 64)
