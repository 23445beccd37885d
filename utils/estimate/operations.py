"""What each statement of a Numba kernel costs in instructions, read from its source.

The source is always there, a compiler is not. The rules are facts of the code that Numba makes,
looked up in listings of machine code, not in times:

- integers are 64 bits wide: an addition or a comparison is two instructions, a product four;
- an index may be negative, so each access first turns it round: INDEX instructions a dimension;
- what does not change in a loop is computed before it, and what was computed once is not again;
- loops over numbers that the compiler knows are unrolled: they count and compare nothing;
- a remainder or quotient of a number that the compiler does not know calls a sequence, DIVISION;
- int with float32 gives float64, as Numba types it.
"""

import ast
import functools
import inspect
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from .model import Amounts

#: The type of a value as the rules know it, or (space, type of an element) of an array
Kind = str | tuple[str, str]
#: (type, cycles from its operands to its result)
Cost = tuple[Kind, float]
#: Classes of instructions, by the unit that runs them
CLASSES = ("integer", "multiply", "fp32", "fp64", "special", "convert", "shuffle", "access", "jump")
INDEX = 7  # of a global element: mask, add, shift, each in two halves
SHARED_INDEX = 3  # shared addresses have 32 bits
KNOWN_DIVISION = 8  # by a number that the compiler knows
STRIDES = 4  # of a global element with several indices: 64-bit products
DIVISION = 30  # 64-bit quotient whose operands fit in 32 bits: convert, reciprocal, correct
FLOAT_DIVISION = 18  # rounded as IEEE wants it
SPECIAL = {"sqrt": 8, "rsqrt": 3, "exp": 6, "exp2": 2, "log": 12, "sin": 20, "cos": 20, "tanh": 14}
LATENCY = {"integer": 8, "multiply": 12, "fp32": 4, "fp64": 8, "special": 20, "division": 120}
LOOP = 8  # of 64-bit numbers: count, compare, choose, in two halves each
SHORT_LOOP = 3  # of 32-bit ones
BLOCK_OF_FOUR = 0.25  # jumps of an iteration: loops are unrolled by four
DEEPEST = 4  # device functions in one another
DIVIDES = (ast.Div, ast.Mod, ast.FloorDiv, ast.Pow)
POSITION = {"grid": 5, "gridsize": 3}
FREE = ("float32", "float64", "int32", "int64", "uint32", "range", "len", "array", "array_like")


@dataclass
class Statement:
    """One statement of the source, as it runs once in one warp.

    classes: instructions by class, without those that loads and stores need of themselves.
    latency: cycles from its operands to its result. uses, sets: names. indices: names that say
    where it loads. adds_up: it only adds to a name of its own, so that loads of later iterations
    need not wait for it. decides: a jump waits for it. repeats: it is a while's test, run once more
    than its body. gathers: arrays whose index was read from memory.
    """

    place: tuple
    classes: Amounts = field(default_factory=Counter)
    latency: float = 0.0
    uses: frozenset = frozenset()
    sets: frozenset = frozenset()
    indices: frozenset = frozenset()
    adds_up: bool = False
    decides: bool = False
    repeats: bool = False
    gathers: frozenset = frozenset()


#: (file, line) -> its statement
Statements = dict[tuple, Statement]


class Reader(ast.NodeVisitor):
    """Goes through a function once, keeps the type of each name, makes a Statement per line.

    Device functions that it calls are read where they are called. statements: (file, line) ->
    Statement.
    """

    def __init__(
        self,
        function: FunctionType,
        types: Mapping[str, Kind],
        statements: Statements | None = None,
        depth: int = 0,
    ) -> None:
        self.function = function
        self.file = function.__code__.co_filename
        self.types = dict(types)
        self.statements = {} if statements is None else statements
        self.depth = depth
        self.now = Statement((self.file, 0))
        #: names that the loop around changes; None outside loops
        self.changing: set[str] | None = None
        self.from_memory: set[str] = set()  # names whose value was read from a global array
        #: indices that are in a register, each with its names
        self.computed: set[tuple[str, frozenset[str]]] = set()
        self.returned: Kind = "integer"

    # ---- statements

    def body(self, statements: Sequence[ast.stmt], counted: int = 0) -> None:
        for number, statement in enumerate(statements):
            made = Statement((self.file, statement.lineno))
            if number == 0 and counted:
                made.classes["integer"] += counted
                made.classes["jump"] += BLOCK_OF_FOUR
            self.statement(statement, made)

    def statement(self, node: ast.stmt, made: Statement) -> None:
        before, self.now = self.now, made
        if isinstance(node, ast.Assign):
            self.assign(node.targets, node.value)
        elif isinstance(node, ast.AugAssign):
            self.augmented(node)
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                made.latency = self.cost(node.value)[1]
        elif isinstance(node, ast.If):
            made.latency = self.cost(node.test)[1]
            made.classes["jump"] += 1
            made.decides = True
        elif isinstance(node, ast.While):
            self.changes(node)
            known, made.latency = self.cost(node.test)
            made.classes["jump"] += known != "known"
            made.decides = known != "known"
            made.repeats = True
        elif isinstance(node, ast.For):
            known, made.latency = self.cost(node.iter)
            made.decides = known != "known"
            for name in names_of(node.target):
                self.types[name] = "known" if known == "known" else "integer"
        elif isinstance(node, ast.Return) and node.value is not None:
            self.returned, made.latency = self.cost(node.value)
            made.decides = True
        self.keep(made, node)
        self.now = before
        if isinstance(node, ast.For | ast.While):
            around = self.changing
            unrolled = not made.decides
            if not unrolled:
                self.changing = stored_in(node)

            turns = self.turns(node.iter) if isinstance(node, ast.For) and not unrolled else 0
            self.body(node.body, turns)
            self.changing = around
        elif isinstance(node, ast.If):
            self.body(node.body)
            self.body(node.orelse)

    def turns(self, over: ast.expr) -> int:
        """Instructions that one turn of a for needs of itself."""
        numbers = over.args if isinstance(over, ast.Call) else []
        short = len(numbers) == 1 and self.cost_of(numbers[0]) == "int32"
        return SHORT_LOOP if short else LOOP

    def changes(self, node: ast.AST) -> None:
        """A while over a name that it changes by what is not known is no known number of turns."""
        for one in ast.walk(node):
            if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                if self.cost_of(one.value) != "known":
                    self.types[one.target.id] = joined(self.types.get(one.target.id), "integer")
            if isinstance(one, ast.Assign):
                for target in one.targets:
                    for name in names_of(target):
                        if self.types.get(name) == "known" and not is_number(one.value):
                            self.types[name] = "integer"

    def cost_of(self, node: ast.expr) -> Kind:
        """The type of an expression, without counting it."""
        before, self.now = self.now, Statement((self.file, 0))
        kind = self.cost(node)[0]
        self.now = before
        return kind

    def keep(self, made: Statement, node: ast.stmt) -> None:
        head = node.test if isinstance(node, (ast.If, ast.While)) else node
        head = node.iter if isinstance(node, ast.For) else head
        made.uses = frozenset(loaded(head))
        made.indices = frozenset(indices_of(head))
        if made.place in self.statements and self.depth == 0:  # several on a line: together
            old = self.statements[made.place]
            old.classes += made.classes
            old.latency += made.latency
            old.uses |= made.uses
            old.sets |= made.sets
            old.indices |= made.indices
            return
        self.statements[made.place] = made

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        kind, self.now.latency = self.cost(value)
        names = set()
        for target in targets:
            for name in names_of(target):
                self.types[name] = kind
                self.forget(name)
                if reads_array(value):
                    self.from_memory.add(name)
                names.add(name)
            if isinstance(target, ast.Subscript):
                self.cost(target)
        self.now.sets = frozenset(names)

    def augmented(self, node: ast.AugAssign) -> None:
        right, latency = self.cost(node.value)
        left, _ = self.cost(node.target)
        kind = joined(left, right)
        if kind != "known":
            self.operate(node.op, kind, right)
            self.now.latency = latency + self.wait(node.op, kind, right)
        if not isinstance(node.target, ast.Name):
            self.cost(node.target)
            return
        name = node.target.id
        self.types[name] = kind
        self.forget(name)
        self.now.sets = frozenset([name])
        self.now.adds_up = name not in loaded(node.value)

    def forget(self, name: str) -> None:
        """Indices with this name have to be computed anew."""
        self.computed = {index for index in self.computed if name not in index[1]}

    # ---- expressions: (type, latency), and what they cost goes to the statement

    def cost(self, node: ast.expr) -> Cost:
        method = getattr(self, f"of_{type(node).__name__.lower()}", None)
        if method is not None:
            found: Cost = method(node)
            return found
        latency = 0.0
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                latency = max(latency, self.cost(child)[1])
        return "integer", latency

    def of_constant(self, node: ast.Constant) -> Cost:
        return ("fp64" if isinstance(node.value, float) else "known"), 0

    def of_name(self, node: ast.Name) -> Cost:
        if node.id in self.types:
            return self.types[node.id], 0
        return type_of_value(global_of(self.function, node.id)), 0

    def of_attribute(self, node: ast.Attribute) -> Cost:
        return "integer", 0

    def of_binop(self, node: ast.BinOp) -> Cost:
        left, one = self.cost(node.left)
        right, other = self.cost(node.right)
        kind = joined(left, right)
        if kind == "known" and not isinstance(node.op, ast.Div):
            return kind, 0
        if is_number(node.left) and is_number(node.right):  # a compiler does it
            return kind if kind != "known" else "fp64", 0
        if isinstance(node.op, ast.Div) and kind != "fp32":
            kind = "fp64"
        fused = isinstance(node.op, (ast.Add, ast.Sub)) and kind in ("fp32", "fp64")
        fused = fused and any(is_product(side) for side in (node.left, node.right))
        if not fused:  # the product's instruction is the sum's, too
            self.operate(node.op, kind, right)
        return kind, max(one, other) + (0 if fused else self.wait(node.op, kind, right))

    def of_unaryop(self, node: ast.UnaryOp) -> Cost:
        kind, latency = self.cost(node.operand)
        return kind, latency

    def of_compare(self, node: ast.Compare) -> Cost:
        kinds = [self.cost(side) for side in (node.left, *node.comparators)]
        kind = functools.reduce(joined, [one for one, _ in kinds])
        if kind == "known":
            return kind, 0
        if kind in ("fp32", "fp64"):
            self.now.classes[kind] += len(node.ops)
        else:
            self.now.classes["integer"] += 2 * len(node.ops)
        return "integer", max(latency for _, latency in kinds) + LATENCY["integer"]

    def of_ifexp(self, node: ast.IfExp) -> Cost:
        latency = self.cost(node.test)[1]
        body, one = self.cost(node.body)
        other, two = self.cost(node.orelse)
        self.now.classes["integer"] += 1
        return joined(body, other), latency + max(one, two)

    def of_subscript(self, node: ast.Subscript) -> Cost:
        if not isinstance(node.value, ast.Name):  # a.shape[0]
            return "integer", 0
        name = node.value.id
        space, kind = array_type(self.of_name(node.value)[0])
        if space == "local":
            return kind, 0
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        latency = 0.0
        for axis, part in enumerate(parts):
            used = frozenset(loaded(part))
            if space == "global" and (used & self.from_memory or reads_array(part)):
                self.now.gathers |= {name}
            index = (f"{name} {axis} {ast.unparse(part)}", used)
            if index in self.computed:
                continue
            self.computed.add(index)
            if self.changing is not None and not used & self.changing:
                continue  # computed before the loop
            known, wait = self.cost(part)
            if known != "known":
                self.now.classes["integer"] += INDEX if space == "global" else SHARED_INDEX
                latency = max(latency, wait + LATENCY["integer"])
        if len(parts) > 1 and space == "global":
            self.now.classes["multiply"] += STRIDES
        return kind, latency

    def of_call(self, node: ast.Call) -> Cost:
        name = called(node.func)
        values = [self.cost(argument) for argument in node.args]
        latency = max([one for _, one in values], default=0)
        kind = functools.reduce(joined, [one for one, _ in values], "known")
        inner = device_function(self.function, node.func)
        if inner is not None:
            return self.called_function(inner, [one for one, _ in values]), latency
        if name in ("float32", "float64"):
            kind = "fp32" if name == "float32" else "fp64"
            if values and values[0][0] == "integer":
                self.now.classes["convert"] += 1
            return kind, latency
        if name.startswith(("uint", "int")) and values:
            return ("known" if values[0][0] == "known" else "integer"), latency
        if name in POSITION:
            self.now.classes["integer"] += POSITION[name]
            return "integer", 30  # the special register's
        if name in SPECIAL:
            kind = kind if kind == "fp32" else "fp64"
            self.now.classes[kind] += SPECIAL[name] * (1 if kind == "fp32" else 3)
            self.now.classes["special"] += 1
            return kind, latency + LATENCY["special"] + 4 * SPECIAL[name]
        if name.startswith("shfl"):
            self.now.classes["shuffle"] += 1
            value = values[1][0] if len(values) > 1 else "integer"
            return value, latency + 24
        if name in ("min", "max"):
            self.now.classes["integer" if kind in ("integer", "known") else kind] += 2
            return kind, latency + LATENCY["integer"]
        if name == "array":
            return shared_type(node), 0
        if name.startswith("sync"):
            self.now.classes["jump"] += 1
            return "known", 0
        if name in FREE:  # a range of known numbers is known, too
            return kind, latency
        self.now.classes["integer"] += 2
        return kind, latency + LATENCY["integer"]

    def called_function(self, function: FunctionType, kinds: Iterable[Kind]) -> Kind:
        """The type that a device function gives; its statements are read, with these arguments."""
        if self.depth >= DEEPEST:
            return "integer"
        names = function.__code__.co_varnames
        types = dict(
            zip(names, ("integer" if one == "known" else one for one in kinds), strict=False)
        )
        inner = Reader(function, types, self.statements, self.depth + 1)
        inner.body(tree_of(function).body)
        return inner.returned

    def operate(self, operation: ast.operator, kind: Kind, right: Kind) -> None:
        """Count one operation of a type. right: the type of its right operand."""
        classes = self.now.classes
        if kind in ("fp32", "fp64"):
            if isinstance(operation, DIVIDES):
                classes[kind] += FLOAT_DIVISION
                classes["special"] += 1
            else:
                classes[kind] += 1
        elif isinstance(operation, (ast.Mod, ast.FloorDiv)):
            if right == "known":
                classes["integer"] += KNOWN_DIVISION
            else:
                classes["integer"] += DIVISION - 4
                classes["convert"] += 3
                classes["special"] += 1
        elif isinstance(operation, ast.Mult):
            classes["multiply"] += 1 if right == "known" else 4
        elif kind != "known":
            classes["integer"] += 2

    def wait(self, operation: ast.operator, kind: Kind, right: Kind) -> float:
        """Cycles of one operation, from its operands to its result."""
        if isinstance(operation, DIVIDES) and right != "known":
            return LATENCY["division"]
        if kind in ("fp32", "fp64"):
            return LATENCY[kind]
        return LATENCY["multiply" if isinstance(operation, ast.Mult) else "integer"]


def device_function(function: FunctionType, called_as: ast.expr) -> FunctionType | None:
    """The Python function of a device function that a kernel calls by name; None of others."""
    if not isinstance(called_as, ast.Name):
        return None
    value = global_of(function, called_as.id)
    inner = getattr(value, "py_func", None)
    return inner if inner is not None and hasattr(inner, "__code__") else None


def global_of(function: FunctionType, name: str) -> Any:
    """What a name outside a function stands for: of its module or of the function around it."""
    names = function.__code__.co_freevars
    if name in names and function.__closure__:
        return function.__closure__[names.index(name)].cell_contents
    return function.__globals__.get(name)


def type_of_value(value: object) -> str:
    """The type of a number that a kernel finds outside itself."""
    if isinstance(value, np.floating):
        return "fp32" if value.dtype == np.float32 else "fp64"
    if isinstance(value, (bool, int, np.integer)):
        return "known"
    return "fp64" if isinstance(value, float) else "integer"


def joined(one: Kind | None, other: Kind | None) -> str:
    """The type of an operation on two, as Numba has it; a literal number takes the other's."""
    one, other = array_type(one)[1], array_type(other)[1]
    if one == other:
        return one
    if one == "known":
        return "integer" if other == "int32" else other
    if other == "known":
        return "integer" if one == "int32" else one
    if {one, other} <= {"int32", "integer"}:
        return "integer"
    return "fp64"  # int with float32, too


def array_type(kind: Kind | None) -> tuple[str, str]:
    """(space, type of an element) of what a name stands for."""
    if isinstance(kind, tuple):
        return kind
    return "global", kind or "integer"


def shared_type(node: ast.Call) -> tuple[str, str]:
    """What cuda.shared.array or cuda.local.array gives."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    outer = owner.attr if isinstance(owner, ast.Attribute) else "shared"
    text = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
    text += "".join(ast.unparse(word.value) for word in node.keywords if word.arg == "dtype")
    return outer, type_of_name(text)


def type_of_name(text: str) -> str:
    if "float64" in text or "complex128" in text:
        return "fp64"
    return "fp32" if "float" in text or "complex" in text else "integer"


def type_of_argument(argument: object) -> Kind:
    """The type of a kernel's argument, as Reader has it."""
    dtype = getattr(argument, "dtype", None)
    if dtype is None:
        return "fp64" if isinstance(argument, float) else "integer"
    if np.dtype(dtype) == np.int32 and not getattr(argument, "shape", ()):
        return "int32"
    kind = {"f": "fp32", "c": "fp32"}.get(np.dtype(dtype).kind, "integer")
    if np.dtype(dtype) in (np.float64, np.complex128):
        kind = "fp64"
    return ("global", kind) if getattr(argument, "shape", ()) else kind


def names_of(target: ast.expr) -> list[str]:
    """Names that an assignment's target sets."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for part in target.elts for name in names_of(part)]
    return []


def loaded(node: ast.AST) -> set[str]:
    """Names whose values an expression or statement needs."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    if isinstance(node, ast.Assign):
        stored = {one.id for t in node.targets for one in ast.walk(t) if isinstance(one, ast.Name)}
        only = {name for target in node.targets for name in names_of(target)}
        needed = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
        return needed | (stored - only)
    return names


def indices_of(node: ast.AST) -> set[str]:
    """Names in the subscripts of what is read or written."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Subscript):
            found |= {name.id for name in ast.walk(one.slice) if isinstance(name, ast.Name)}
    return found


def reads_array(node: ast.AST) -> bool:
    """Whether an expression has an element in it."""
    for one in ast.walk(node):
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name):
            return True
    return False


def called(function: ast.expr) -> str:
    """The last part of what is called: cuda.atomic.add is add."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def stored_in(node: ast.stmt) -> set[str]:
    """Names that a loop changes, its own among them."""
    names = set(names_of(node.target)) if isinstance(node, ast.For) else set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            names.add(one.id)
    return names


@functools.lru_cache(maxsize=64)
def tree_of(function: FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, its lines those of its file. TypeError of a lambda."""
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    made = tree.body[0]
    if not isinstance(made, ast.FunctionDef):
        raise TypeError(f"{function.__name__} is no function that is defined by itself")
    return made


def statements_of(function: FunctionType, types: Mapping[str, Kind]) -> Statements:
    """(file, line) -> Statement of a kernel and its device functions. types: of its arguments."""
    reader = Reader(function, types)
    reader.body(tree_of(function).body)
    return reader.statements
