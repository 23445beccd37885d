"""What a wrapper owes PyTorch, broken on purpose, point by point: which test notices?

Each function here is a forward pass with one thing forgotten; everything else about its operator
is right.
"""

import functools
import itertools
import warnings

import torch

from course.extensions import features, rules
from course.extensions.routes import common, nvrtc
from utils import pick

DEVICE = pick(gpu="cuda", cpu="cpu")
#: Features that take a compiler, and say nothing here that others do not
SLOW = {"full_graph", "export"}
buffers = {}
numbers = itertools.count()  # each wrapper gets operators of its own


def right(x, a, b, c):
    common.check(x, (DEVICE,))
    y = torch.empty_like(x)
    if x.numel():
        nvrtc.forward(y, common.laid_out(x, y), a, b, c)
    return y


def ignores_strides(x, a, b, c):
    common.check(x, (DEVICE,))
    y = torch.empty_like(x)
    if x.numel():
        nvrtc.forward(y, x, a, b, c)  # x as it lies in memory, whatever its strides say
    return y


def loses_memory_format(x, a, b, c):
    return right(x.contiguous(), a, b, c)


def answers_in_float32(x, a, b, c):
    common.check(x, (DEVICE,))
    return right(x.float(), a, b, c)


def takes_integers(x, a, b, c):
    return right(x if x.is_floating_point() else x.float(), a, b, c)


def forgets_empty(x, a, b, c):
    common.check(x, (DEVICE,))
    y = torch.empty_like(x)
    nvrtc.forward(y, common.laid_out(x, y), a, b, c)
    return y


def keeps_a_buffer(x, a, b, c):
    y = right(x, a, b, c)
    kept = buffers.setdefault((x.shape, x.stride(), x.dtype), y)
    return kept.copy_(y)


def default_stream(x, a, b, c):
    if not x.is_cuda:
        return right(x, a, b, c)
    common.check(x, (DEVICE,))
    y = torch.empty_like(x)
    if x.numel():
        kernel = getattr(nvrtc.module(), common.kernel_for("polynomial", x))
        tensors = common.in_a_row(y), common.in_a_row(common.laid_out(x, y))
        kernel[-(-x.numel() // nvrtc.THREADS), nvrtc.THREADS](*tensors, a, b, c, x.numel())
    return y


BREAKS = {
    function.__name__: function
    for function in (
        ignores_strides,
        loses_memory_format,
        answers_in_float32,
        takes_integers,
        forgets_empty,
        keeps_a_buffer,
        default_stream,
    )
}


@functools.cache
def operators(forward):
    """The two operators of a wrapper's forward pass, with everything else that is owed."""
    namespace = f"contract_{forward.__name__}_{next(numbers)}"

    def backward(dy, x, a, b):
        common.check_slopes(dy, x)
        dx = torch.empty_like(x)
        if x.numel():
            nvrtc.backward(dx, common.laid_out(dy, dx), common.laid_out(x, dx), a, b)
        return dx

    for operator, function, schema in (
        ("polynomial", forward, common.FORWARD),
        ("polynomial_backward", backward, common.BACKWARD),
    ):
        full_name = f"{namespace}::{operator}"
        torch.library.custom_op(full_name, function, mutates_args=(), schema=schema)
    rules.complete(namespace)
    return getattr(torch.ops, namespace)


def caught_by(forward) -> dict[str, str]:
    """Feature -> what its test says, for all that notice what is broken in a forward pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gradcheck's, of types with too few digits
        return _caught_by(forward)


def _caught_by(forward) -> dict[str, str]:
    outcomes = {}
    expected = {"func_grad"}  # that one PyTorch itself lacks
    for feature in features.FEATURES:
        if feature in SLOW or feature in expected or feature in features.ON_GPU_ONLY:
            continue
        outcome = features.attempt(feature, operators(forward), DEVICE)
        if outcome != features.WORKS:
            outcomes[feature] = outcome.removeprefix("no: ")
    if DEVICE == "cuda":
        outcome = features.attempt("stream", operators(forward), DEVICE)
        if outcome != features.WORKS:
            outcomes["stream"] = outcome.removeprefix("no: ")
    return outcomes
