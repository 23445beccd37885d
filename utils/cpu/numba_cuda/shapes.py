"""Shapes of shared and local arrays: what numba-cuda takes for a constant, found before a launch.

A GPU's compiler must know how large these arrays are. numba-cuda takes numbers, names from outside
the kernel, tuples of these and one of a tuple's numbers; whatever the kernel computes it refuses,
`2 * N` of a constant N too ("No implementation of function shared.array ... array(int64, ...)").
"""

import ast
from types import CodeType

from .errors import KernelError, placed

_KINDS = ("shared", "local")
_WRITTEN = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
_OF_THREADS = ("blockDim", "gridDim", "threadIdx", "blockIdx")


def refuse_computed_shapes(function: ast.FunctionDef, code: CodeType) -> None:
    """Raise a KernelError for the first array whose shape the kernel computes.

    code: the function's, for its place.
    """
    shapes = _Shapes(function)
    for node in ast.walk(function):
        kind, shape = _asked_for(node)
        computed = shape is not None and shapes.computed(shape)
        if not computed:
            continue
        written = computed if isinstance(shape, ast.Tuple) else ast.unparse(shape)
        size = "32" if computed.isidentifier() else computed
        error = KernelError(
            f"the shape of a {kind} array must be a number, or a name from outside the kernel; "
            f"`{written}` is known only when it runs, and numba-cuda refuses that",
            f"Give the size a name before the kernel, SIZE = {size} say, and write "
            f"cuda.{kind}.array(SIZE, ...).",
        )
        raise placed(error, code, node.lineno)


def _asked_for(node: ast.AST) -> tuple[str, ast.expr | None]:
    """("shared" or "local", the shape) of a call that makes such an array; else ("", None)."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return "", None
    where = node.func.value
    kind = getattr(where, "attr", getattr(where, "id", ""))
    if node.func.attr != "array" or kind not in _KINDS:
        return "", None
    named = [keyword.value for keyword in node.keywords if keyword.arg == "shape"]
    return kind, next(iter([*node.args[:1], *named]), None)


class _Shapes:
    """Which expressions of a kernel are computed in it."""

    def __init__(self, function: ast.FunctionDef):
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.arguments = {argument.arg for argument in every}
        self.assigned: dict[str, list[ast.expr | None]] = {}
        for node in ast.walk(function):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        """Remember what a statement gives to a name; None: not one value that is written there."""
        if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
            for target in node.targets:
                self.assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, (ast.AugAssign, ast.For)) and isinstance(node.target, ast.Name):
            self.assigned.setdefault(node.target.id, []).append(None)

    def computed(self, node: ast.expr, seen: frozenset = frozenset()) -> str:
        """The expression that a kernel would have to compute for this shape; "" if there is none.

        What is not understood counts as a constant.
        """
        match node:
            case ast.Tuple(elts=parts):
                return next(filter(None, (self.computed(part, seen) for part in parts)), "")
            case ast.Name(id=name):
                return self._of_name(name, seen)
            case ast.Call():
                return ast.unparse(node)
            case ast.BinOp() | ast.UnaryOp():
                whole = all(isinstance(part, _WRITTEN) for part in ast.walk(node))
                return "" if whole else ast.unparse(node)
            case ast.Attribute() | ast.Subscript(value=ast.Attribute()):
                return self._of_attribute(node)
        return ""

    def _of_name(self, name: str, seen: frozenset) -> str:
        if name in self.arguments:
            return name
        if name in seen:
            return ""
        values = self.assigned.get(name, [])
        if None in values:
            return name
        return next(filter(None, (self.computed(v, seen | {name}) for v in values)), "")

    def _of_attribute(self, node: ast.expr) -> str:
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        own = names & (self.arguments | set(self.assigned))
        return ast.unparse(node) if own or attributes & set(_OF_THREADS) else ""
