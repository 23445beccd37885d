"""Numba's types of a kernel's expressions: what each statement makes of the names.

The names' types are followed through assignments, branches and loops; what an expression is, says
`expressions.py`.
"""

import ast
import functools
from collections.abc import Callable

from .expressions import Expressions, Known, is_integer, is_tuple, joined, name_of
from .types_of_numbers import Type, signed, unsigned

LOOPS = 4  # times that a loop is walked until its types do not change


class Inference(Expressions, ast.NodeVisitor):
    """Notes the type of each expression of a function in `types`, and what it gives back."""

    def __init__(self, *given):
        super().__init__(*given)
        self.given_back: list[Known] = []
        self.line = 0  # of the statement that is looked at

    def visit(self, node: ast.AST) -> None:
        self.line = getattr(node, "lineno", self.line)  # an operator has none
        super().visit(node)

    @property
    def result(self) -> Known:
        """The type of what the function gives back."""
        return functools.reduce(joined, self.given_back) if self.given_back else None

    # ---- statements
    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        kind = self.of(node.value)
        for target in node.targets:
            self.assign(target, kind)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.of(node.value))

    def assign(self, target: ast.expr, kind: Known) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = kind
        elif isinstance(target, ast.Tuple):
            unknown = (None,) * len(target.elts)
            fits = is_tuple(kind) and len(kind) == len(target.elts)
            parts = kind if fits else unknown
            for part, its_kind in zip(target.elts, parts, strict=True):
                self.assign(part, its_kind)
        else:
            self.of(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        left = self.of(node.target)
        right = self.of(node.value)
        if isinstance(node.target, ast.Name):
            kind = self.operation(node.op, left, right, node.value)
            self.types[node.target] = left
            self.names[node.target.id] = kind

    def visit_If(self, node: ast.If) -> None:
        self.of(node.test)
        before = dict(self.names)
        self.body(node.body)
        after = self.names
        self.names = before
        self.body(node.orelse)
        self.merge(after)

    def merge(self, other: dict[str, Known]) -> None:
        for name in {*self.names, *other}:
            mine = self.names.get(name, other.get(name))
            self.names[name] = joined(mine, other.get(name, mine))

    def visit_While(self, node: ast.While) -> None:
        self.loop(node.body, lambda: self.of(node.test))
        self.body(node.orelse)

    def visit_For(self, node: ast.For) -> None:
        def begin():
            self.assign(node.target, self.counter(node.iter))

        self.loop(node.body, begin)
        self.body(node.orelse)

    def loop(self, statements: list[ast.stmt], begin: Callable[[], object]) -> None:
        for turn in range(LOOPS):
            before = dict(self.names)
            begin()
            self.body(statements)
            self.merge(before)
            self.widen(before, at_once=turn > 0)
            if self.names == before:
                break
        begin()

    def widen(self, before: dict[str, Known], at_once: bool) -> None:
        """A number that a loop makes larger may become as large as its type allows."""
        for name, kind in self.names.items():
            old = before.get(name)
            if not at_once or not isinstance(kind, Type):
                continue
            if isinstance(old, Type) and kind.size > old.size:
                self.names[name] = kind._replace(size=kind.bits)

    def counter(self, iterated: ast.expr) -> Known:
        """What a loop over range(...) counts with."""
        self.of(iterated)
        if not isinstance(iterated, ast.Call):
            return None
        if name_of(iterated.func) not in ("range", "prange"):
            return None
        kinds = [self.types.get(argument) for argument in iterated.args]
        if not all(is_integer(kind) for kind in kinds):
            return None
        largest = max(kind.size for kind in kinds)
        if all(kind.kind == "u" for kind in kinds):
            return unsigned(largest)
        return signed(largest)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.given_back.append(self.of(node.value))

    def visit_Expr(self, node: ast.Expr) -> None:
        self.of(node.value)
