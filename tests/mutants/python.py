"""Mutants of a Python function or Numba kernel: one small change each, in its syntax tree."""

import ast
import collections
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
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "maximum": "minimum",
    "minimum": "maximum",
    "syncthreads": "syncwarp",
    "threadfence": "threadfence_block",
    "shfl_down_sync": "shfl_up_sync",
    "shfl_up_sync": "shfl_down_sync",
    "shfl_xor_sync": "shfl_down_sync",
}
#: Of `cuda.threadIdx.x`, `cuda.shared.array`, `np.float32` ...
ATTRIBUTES = {
    **NAMES,
    "x": "y",
    "y": "x",
    "threadIdx": "blockIdx",
    "blockIdx": "threadIdx",
    "blockDim": "gridDim",
    "gridDim": "blockDim",
    "shared": "local",
    "add": "sub",
    "float64": "float32",
    "float32": "int32",
    "int64": "int32",
    "int32": "int8",
    "uint32": "uint8",
    "uint8": "int8",
    "bool_": "int8",
}
ALIKE = {*NAMES, "fmax", "fmin", "isclose"}  # calls whose arguments may change places
LARGE = 0xFFFF  # numbers above it are masks
SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)
LEAVING = (ast.Return, ast.Break, ast.Continue)


def mutants(source):
    """(what was changed, the whole source with that change), for each mutant of a function."""
    tree = ast.parse(textwrap.dedent(source))
    seen, names = {ast.unparse(tree)}, collections.Counter()
    for number, node in enumerate(ast.walk(tree)):
        for says, change in changes(node):
            mutant = copy.deepcopy(tree)
            twin = next(t for n, t in enumerate(ast.walk(mutant)) if n == number)
            before = ast.unparse(twin)
            change(twin)
            text = ast.unparse(ast.fix_missing_locations(mutant))
            if text not in seen:
                seen.add(text)
                name = f"line {getattr(node, 'lineno', 0)}: {says}: {before.splitlines()[0]}"
                names[name] += 1
                yield name if names[name] == 1 else f"{name} #{names[name]}", text


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
    if isinstance(node, ast.Constant):
        yield from constants(node)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        if not isinstance(node, ast.While):
            yield "always", lambda twin: setattr(twin, "test", ast.Constant(True))
        yield "never", lambda twin: setattr(twin, "test", ast.Constant(False))
    if isinstance(node, ast.UnaryOp):
        yield "without its sign", lambda twin: become(twin, twin.operand)
    if isinstance(node, ast.Name) and node.id in NAMES:
        yield "other name", lambda twin: setattr(twin, "id", NAMES[twin.id])
    if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
        other = ATTRIBUTES[node.attr]
        yield other, lambda twin: setattr(twin, "attr", other)
    yield from parts(node)
    yield from statements(node)


def constants(node):
    """A number one larger and one smaller; half of a mask; another fraction."""
    if type(node.value) is int:
        for step in (1, -1):
            yield f"{step:+}", lambda twin, step=step: setattr(twin, "value", twin.value + step)
    if type(node.value) is int and node.value > LARGE:
        yield "half of", lambda twin: setattr(twin, "value", twin.value & LARGE)
    if type(node.value) is float:
        yield "+0.5", lambda twin: setattr(twin, "value", twin.value + 0.5)


def parts(node):
    """Of a call a keyword left out, or two arguments exchanged; of a tuple two elements."""
    if isinstance(node, ast.Call):
        for place, keyword in enumerate(node.keywords):
            yield f"without {keyword.arg} of", lambda twin, p=place: twin.keywords.pop(p)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        for place in range(1, 0 if name in ALIKE else len(node.args)):
            yield f"argument {place} earlier in", lambda twin, p=place: exchange(twin.args, p)
    if isinstance(node, ast.Tuple | ast.List):
        for place in range(1, len(node.elts)):
            yield f"element {place} earlier in", lambda twin, p=place: exchange(twin.elts, p)
        for place, element in enumerate(node.elts):
            if isinstance(element, ast.Constant) and isinstance(node.ctx, ast.Load):
                yield f"without element {place} of", lambda twin, p=place: twin.elts.pop(p)


def become(twin, other):
    """Make a node of a tree another one, in its place."""
    twin.__class__ = other.__class__
    twin.__dict__ = other.__dict__


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
    """A statement left out, made a plain one, or exchanged with the one before it."""
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if not isinstance(body, list):
            continue
        for place, statement in enumerate(body):
            for says, instead in replacements(statement):
                yield (
                    f"{says} {ast.unparse(statement)!r} of",
                    lambda twin, f=field, p=place, new=instead: put(getattr(twin, f), p, new),
                )
            if place and depend(body[place - 1], statement):
                yield (
                    f"{ast.unparse(statement)!r} earlier in",
                    lambda twin, f=field, p=place: exchange(getattr(twin, f), p),
                )


def replacements(statement):
    """(word, what may stand instead of a statement)."""
    leaves = isinstance(statement, LEAVING) and not getattr(statement, "value", None)
    if isinstance(statement, SIMPLE) or leaves:
        yield "without", ast.Pass()
    if isinstance(statement, ast.AugAssign):
        yield "= for", ast.Assign([statement.target], statement.value)
    call = getattr(statement, "value", None)
    if isinstance(call, ast.Call):
        form = FORMS.get(ast.unparse(call.func))
        if form:
            plain = form.format(*map(ast.unparse, call.args))
            yield "no atomic for", ast.parse(plain).body[0]


#: Of `cuda.atomic.add(array, index, value)` the same as reading, changing and writing.
FORMS = {
    "cuda.atomic.add": "{0}[{1}] += {2}",
    "cuda.atomic.sub": "{0}[{1}] -= {2}",
    "cuda.atomic.max": "{0}[{1}] = max({0}[{1}], {2})",
    "cuda.atomic.min": "{0}[{1}] = min({0}[{1}], {2})",
    "tl.atomic_add": "tl.store({0}, tl.load({0}) + {1})",
}


def put(body, place, statement):
    body[place] = statement


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
