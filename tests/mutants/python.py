"""Mutants of a Python function or Numba kernel: one small change each, in its syntax tree."""

import ast
import copy
import textwrap

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
ARITHMETIC = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.FloorDiv),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv, ast.Add),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,),
    ast.Pow: (ast.Mult,),
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "syncthreads": "syncwarp"}
AXES = {"x": "y", "y": "x"}
SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)


def mutants(source):
    """(what was changed, the whole source with that change), for each mutant of a function."""
    tree = ast.parse(textwrap.dedent(source))
    seen = {ast.unparse(tree)}
    for number, node in enumerate(ast.walk(tree)):
        for says, change in changes(node):
            mutant = copy.deepcopy(tree)
            twin = next(t for n, t in enumerate(ast.walk(mutant)) if n == number)
            before = ast.unparse(twin)
            change(twin)
            text = ast.unparse(ast.fix_missing_locations(mutant))
            if text not in seen:
                seen.add(text)
                yield f"line {getattr(node, 'lineno', 0)}: {says}: {before.splitlines()[0]}", text


def changes(node):
    """(name, what to do with a copy of the node) for each way to change one node."""
    if isinstance(node, ast.Compare):
        yield from operators(node, "ops", COMPARISONS)
    if isinstance(node, ast.BinOp | ast.AugAssign):
        for kind in ARITHMETIC.get(type(node.op), ()):
            yield kind.__name__, lambda twin, kind=kind: setattr(twin, "op", kind())
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield other.__name__, lambda twin: setattr(twin, "op", other())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        for step in (1, -1):
            yield f"{step:+}", lambda twin, step=step: setattr(twin, "value", twin.value + step)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        if not isinstance(node, ast.While):
            yield "always", lambda twin: setattr(twin, "test", ast.Constant(True))
        yield "never", lambda twin: setattr(twin, "test", ast.Constant(False))
    if isinstance(node, ast.Name) and node.id in NAMES:
        yield "other name", lambda twin: setattr(twin, "id", NAMES[twin.id])
    if isinstance(node, ast.Attribute):
        other = {**NAMES, **AXES}.get(node.attr)
        if other:
            yield other, lambda twin: setattr(twin, "attr", other)
    yield from statements(node)


def operators(node, field, others):
    """One operator of a comparison exchanged."""
    for place, operator in enumerate(getattr(node, field)):
        for kind in others.get(type(operator), ()):
            yield (
                kind.__name__,
                lambda twin, place=place, kind=kind: getattr(twin, field).__setitem__(
                    place, kind()
                ),
            )


def statements(node):
    """A statement left out, and two that follow one another exchanged."""
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if not isinstance(body, list):
            continue
        for place, statement in enumerate(body):
            if isinstance(statement, SIMPLE):
                yield (
                    f"without {ast.unparse(statement)!r} of",
                    lambda twin, f=field, p=place: getattr(twin, f).__setitem__(p, ast.Pass()),
                )
            if place and depend(body[place - 1], statement):
                yield (
                    f"{ast.unparse(statement)!r} earlier in",
                    lambda twin, f=field, p=place: exchange(getattr(twin, f), p),
                )


def depend(first, second):
    """Whether the order of two simple statements can matter."""
    if not isinstance(first, SIMPLE) or not isinstance(second, SIMPLE):
        return False
    if isinstance(first, ast.Expr) or isinstance(second, ast.Expr):
        return True  # barriers, atomics
    one, other = names_of(first), names_of(second)
    return bool(one[0] & (other[0] | other[1]) or one[1] & other[0])


def names_of(statement):
    """(names that a statement changes, names that it uses); of `a[i] = x` it changes a."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    changed = {base_of(part) for target in targets for part in parts_of(target)}
    return changed, {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def parts_of(target):
    return target.elts if isinstance(target, ast.Tuple) else [target]


def base_of(target):
    while not isinstance(target, ast.Name):
        target = target.value
    return target.id


def exchange(body, place):
    body[place - 1], body[place] = body[place], body[place - 1]
