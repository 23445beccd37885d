"""Makes a kernel that can be put aside without a stack of its own: a generator that yields.

    cuda.syncthreads()      ->  (yield cuda.syncthreads())
    x = device(a, i)        ->  x = (yield from __finished__(device(a, i)))

of device functions that wait, too, and of names that are not known before the kernel runs;

and where threads are interrupted between a read and a write (`settings.schedule`):

    a[i] = b[i] + 1         ->  a[i] = (yield b[i]) + 1
    a[i] += 1               ->  array = a; index = i; value = (yield array[index]); value += 1; ...

What is yielded goes to `fibres.Generators`, which sends what is to stand in its place.
"""

import ast
import builtins
import itertools
from types import GeneratorType

from .atomics import atomic
from .expressions import name_of

#: What makes a thread wait, by the names of numba.cuda
WAITS = frozenset(
    """syncthreads syncthreads_and syncthreads_count syncthreads_or sync syncwarp
    shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync all_sync any_sync eq_sync ballot_sync
    match_any_sync match_all_sync activemask""".split()
)
PLAIN, WAITING, UNKNOWN = "plain", "waiting", "unknown"
_OURS = "__"  # what the engine's own names in a rebuilt kernel begin with


def finished(value):
    """What a call gives, after the wait that it may ask for."""
    from .engine import Waiter

    if isinstance(value, Waiter):
        return (yield value)
    if isinstance(value, GeneratorType):
        return (yield from value)
    return value


NAMES = {"__finished__": finished}


class Calls:
    """What the calls of a function are: whether a thread may wait in them.

    value: gives what an expression of global names is, or None; callee: the device function that a
    value is, or None; waits: whether a device function may wait; made: those that were made for
    their arguments' types, by name.
    """

    def __init__(self, value, callee, waits, made):
        self.value, self.callee, self.waits, self.made = value, callee, waits, made

    def kind(self, call):
        """PLAIN; WAITING: a barrier; UNKNOWN: a thread may wait in it, or it gives a barrier."""
        name = name_of(call.func)
        made = self.made.get(name)
        if made is not None:
            return UNKNOWN if self.waits(made[0]) else PLAIN
        if name.startswith(_OURS):
            return PLAIN
        value = self.value(call.func)
        if value is None:
            is_local = isinstance(call.func, ast.Name) and not hasattr(builtins, name)
            return UNKNOWN if is_local or name in WAITS else PLAIN
        callee = self.callee(value)
        if callee is not None:
            return UNKNOWN if self.waits(callee) else PLAIN
        return WAITING if {name, getattr(value, "__name__", "")} & WAITS else PLAIN

    def is_atomic(self, call):
        """Whether it changes an element, and others may run before what is made of its result."""
        value = self.value(call.func)
        return value is not None and name_of(call.func) in vars(atomic)


def suspend(function, calls, interrupted):
    """Makes a function, given as a syntax tree, yield where it may wait; whether it does.

    interrupted: also where it has read an element.
    """
    suspending = _Suspending(calls, interrupted)
    function.body = suspending.statements(function.body)
    return suspending.found


class _Suspending(ast.NodeTransformer):
    def __init__(self, calls, interrupted):
        self.calls, self.interrupted = calls, interrupted
        self.numbers = itertools.count()
        self.found = False

    def statements(self, body):
        out = []
        for statement in body:
            done = self.visit(statement)
            out += done if isinstance(done, list) else [done]
        return out

    def yielding(self, node, kind=ast.Yield):
        self.found = True
        return ast.copy_location(kind(node), node)

    def visit_Call(self, node):
        kind = self.calls.kind(node)
        is_atomic = self.interrupted and self.calls.is_atomic(node)
        self.generic_visit(node)
        if kind is WAITING or is_atomic:
            return self.yielding(node)
        if kind is UNKNOWN:
            name = ast.copy_location(ast.Name("__finished__", ast.Load()), node)
            done = ast.copy_location(ast.Call(name, [node], []), node)
            return self.yielding(done, ast.YieldFrom)
        return node

    def visit_Subscript(self, node):
        self.generic_visit(node)
        reads = self.interrupted and isinstance(node.ctx, ast.Load)
        return self.yielding(node) if reads else node

    def visit_AugAssign(self, node):
        """`a[i] += 1` reads and writes: the two in turn, each part worked out once."""
        target = node.target
        in_turn = self.interrupted and isinstance(target, ast.Subscript)
        if not in_turn or any(isinstance(part, ast.Slice) for part in ast.walk(target.slice)):
            return self.generic_visit(node)
        number = next(self.numbers)
        array, index, value = (f"__{name}{number}__" for name in ("array", "index", "value"))

        def name(text, context=ast.Load):
            return ast.Name(text, context())

        def element(context):
            return ast.copy_location(ast.Subscript(name(array), name(index), context()), target)

        steps = [
            ast.Assign([name(array, ast.Store)], self.visit(target.value)),
            ast.Assign([name(index, ast.Store)], self.visit(target.slice)),
            ast.Assign([name(value, ast.Store)], self.yielding(element(ast.Load))),
            ast.AugAssign(name(value, ast.Store), node.op, self.visit(node.value)),
            ast.Assign([element(ast.Store)], name(value)),
        ]
        return [ast.copy_location(step, node) for step in steps]

    def visit_FunctionDef(self, node):
        node.body = self.statements(node.body)  # its defaults are worked out elsewhere
        return node

    def _left_as_it_is(self, node):
        return node

    # No kernel has them, or, in a comprehension, Python has no `yield`
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _left_as_it_is
    visit_AsyncFunctionDef = visit_ClassDef = _left_as_it_is
