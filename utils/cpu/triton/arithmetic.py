"""What Triton's interpreter has otherwise than a GPU: indices of `range`, and TF32 if asked."""

import ast
import builtins
import contextlib
import contextvars

import numpy as np

#: The name under which a rewritten kernel finds `tensor_range`
_RANGE = "__tensor_range__"
TF32_DROPPED = 13  # bits of float32's fraction that TF32 has not
INT32 = 1 << 31


def correct_arithmetic(module):
    """Correct the interpreter's module."""
    import triton.language as tl

    _round_factors(module, tl)
    _yield_tensors(module, tl)


# ---- tl.dot

_rounding = contextvars.ContextVar("rounding", default=False)


@contextlib.contextmanager
def tensor_core_dots():
    """In this block `tl.dot` of float32 cuts its factors to TF32, as a GPU does by default.

    Not unless input_precision="ieee" says otherwise. Elsewhere, and in other Python threads,
    products are exact in float32, as Triton's own interpreter has them.
    """
    token = _rounding.set(True)
    try:
        yield
    finally:
        _rounding.reset(token)


def to_tf32(data: np.ndarray) -> np.ndarray:
    """The 10 bits of fraction that `tl.dot` takes of float32: the others are cut off.

    Source: triton-lang/triton, issue 4574. NaN and infinity stay.
    """
    bits = np.ascontiguousarray(data, np.float32).view(np.uint32)
    cut = bits & ~np.uint32((1 << TF32_DROPPED) - 1)
    return np.where(
        np.isfinite(data),
        cut.view(np.float32),
        data,
    )


def _round_factors(module, tl):
    Builder = module.InterpreterBuilder
    dot = Builder.create_dot

    def rounded(handle):
        if handle.dtype.scalar != tl.float32:
            return handle
        return module.TensorHandle(to_tf32(handle.data), tl.float32)

    def create_dot(self, a, b, d, input_precision, *options):
        if _rounding.get() and str(input_precision).upper().endswith("TF32"):
            a, b = rounded(a), rounded(b)
        return dot(self, a, b, d, input_precision, *options)

    Builder.create_dot = create_dot


# ---- range


def _yield_tensors(module, tl):
    def tensor_range(*bounds, **options):
        """What `range` and tl.range give in a kernel: int32 tensors."""
        start, stop, step = _bounds(bounds, options)
        for i in builtins.range(start, stop, step):
            kind = tl.int32 if -INT32 <= i < INT32 else tl.int64
            yield tl.tensor(module.TensorHandle(np.array([i], _NUMPY[kind.name]), kind), kind)

    patch = module._patch_lang_core

    def patch_lang_core(lang, scope):
        patch(lang, scope)
        scope.set_attr(lang, "range", tensor_range)

    module._patch_lang_core = patch_lang_core
    setattr(module, _RANGE, tensor_range)
    transformer = module.ASTTransformer

    def visit_For(self, node):
        self.generic_visit(node)
        call = node.iter
        named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if named and call.func.id == "range":
            call.func = ast.copy_location(ast.Name(id=_RANGE, ctx=ast.Load()), call.func)
        return node

    transformer.visit_For = visit_For


_NUMPY = {"int32": np.int32, "int64": np.int64}


def _whole(bound) -> int:
    """A bound as an int: what older Triton holds is an array of one, of which NumPy makes none."""
    handle = getattr(bound, "handle", None)
    return int(bound if handle is None else handle.data.item())


def _bounds(bounds, options) -> tuple[int, int, int]:
    """start, stop, step from the arguments of range or tl.range."""
    values = [_whole(bound) for bound in bounds]
    step = options.get("step") or options.get("_step") or (values[2] if len(values) > 2 else 1)
    start, stop = (0, values[0]) if len(values) == 1 else values[:2]
    return start, stop, int(step)
