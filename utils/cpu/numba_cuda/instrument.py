"""For observers: rebuilds a kernel so that it reports each statement and each branch it takes."""

import ast
import functools
import inspect
import textwrap
import types

import numpy as np

from .engine import Site
from .state import now

_LINE, _BRANCH = "__line__", "__branch__"
#: What `state.LEFT` is called in a kernel
LEFT_NAME = "__left__"
_NUMBERS = int, float, complex, np.generic
_AROUND = "<free variables>"  # no kernel can be called so


class _Reporter(ast.NodeTransformer):
    """Puts `__line__(n)` before every statement and `__branch__(n, test)` around every test."""

    def _body(self, statements):
        out = []
        for statement in statements:
            out.append(ast.copy_location(ast.Expr(_call(_LINE, statement)), statement))
            out.append(self.visit(statement))
        return out

    def generic_visit(self, node):
        if isinstance(node, ast.expr):
            return super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, self._body(getattr(node, field)))
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, field, self.visit(value))
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                setattr(node, field, [self.visit(part) for part in value])
        if isinstance(node, (ast.If, ast.While)):
            node.test = _call(_BRANCH, node.test, node.test)
        return node

    def visit_IfExp(self, node):
        node = super().generic_visit(node)
        node.test = _call(_BRANCH, node.test, node.test)
        return node


def _call(name, place, *arguments):
    call = ast.Call(
        ast.Name(name, ast.Load()),
        [ast.Constant(place.lineno), *arguments],
        [],
    )
    return ast.copy_location(call, place)


def report(function):
    """Makes a function, given as a syntax tree, report; True."""
    function.body = _Reporter()._body(function.body)
    return True


@functools.lru_cache(maxsize=256)
def _source(code):
    """(lines of a function's source, the first one's number); None where there is none."""
    try:
        return inspect.getsourcelines(code)
    except (OSError, TypeError):
        return None


class _Leaver(ast.NodeTransformer):
    """Makes every `return` a `return __left__`."""

    def __init__(self):
        self.found = False

    def visit_Return(self, node):
        if node.value is None:
            self.found = True
            node.value = ast.copy_location(ast.Name(LEFT_NAME, ast.Load()), node)
        return node


class _Identities(ast.NodeTransformer):
    """Makes `x is y` a `__same__(x, y)`."""

    def __init__(self):
        self.found = False

    def visit_Compare(self, node):
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or len(sides) > 2:
            return node
        if any(isinstance(side, ast.Constant) for side in sides):  # None, True
            return node
        self.found = True
        same = ast.Call(ast.Name("__same__", ast.Load()), sides, [])
        if isinstance(node.ops[0], ast.IsNot):
            same = ast.UnaryOp(ast.Not(), same)
        return ast.copy_location(same, node)


def compare_identities(function):
    """Makes a function, given as a syntax tree, ask Numba's `is`; whether it has any."""
    identities = _Identities()
    identities.visit(function)
    return identities.found


def same(x, y):
    """Numba's `x is y`: numbers of one type have no identity, so they are compared."""
    return x is y or (type(x) is type(y) and isinstance(x, _NUMBERS) and bool(x == y))


def leaves(function):
    """Makes a kernel, given as a syntax tree, say where it ends early; whether it ever does.

    A thread that leaves on purpose is one for which barriers do not wait (since Volta).
    """
    leaver = _Leaver()
    leaver.visit(function)
    return leaver.found


def rebuilt(code, change):
    """`code` of a function after `change(function)` has changed its syntax tree in place.

    The same code if `change` gives False, or if the source cannot be found.
    """
    tree = syntax_tree(code)
    if tree is None or not change(tree.body[0]):
        return code
    function = tree.body[0]
    function.decorator_list = []
    function.args.defaults = [
        ast.copy_location(ast.Constant(None), old) for old in function.args.defaults
    ]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    if code.co_freevars:  # the function must see the same names as free variables
        arguments = [ast.arg(name) for name in code.co_freevars]
        parameters = ast.arguments([], arguments, None, [], [], None, [])
        outer = ast.FunctionDef(_AROUND, parameters, [function], [])
        if "type_params" in ast.FunctionDef._fields:
            outer.type_params = []
        tree.body = [ast.copy_location(outer, function)]
    made = compile(ast.fix_missing_locations(tree), code.co_filename, "exec", dont_inherit=True)
    while made.co_name != code.co_name:
        made = next(part for part in made.co_consts if isinstance(part, types.CodeType))
    return made


def syntax_tree(code):
    """The syntax tree of a function, its places those in its file; None if there is no source."""
    source = _source(code)
    if source is None:
        return None
    lines, first = source
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:
        return None
    if not isinstance(tree.body[0], ast.FunctionDef):
        return None
    ast.increment_lineno(tree, max(first, 1) - 1)
    indent = len(lines[0]) - len(lines[0].lstrip())
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            node.col_offset += indent
            node.end_col_offset += indent
    return tree


def reporters(code):
    """The functions that instrumented code calls, by name."""

    site = functools.cache(functools.partial(Site, code.co_filename, instruction=0))

    def line(number):
        now.observer.line(now.rank, now.block.linear, site(number))

    def branch(number, taken):
        now.observer.branch(bool(taken), now.rank, now.block.linear, site(number))
        return taken

    return {_LINE: line, _BRANCH: branch}
