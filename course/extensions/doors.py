"""Who takes an activation: six things that all of PyTorch's own stand, tried on any function.

`tried(function, formula)` compares a function of one tensor with its formula in PyTorch's own
operations, and says what came of each.
"""

import torch

from utils import pick

DEVICE = pick(gpu="cuda", cpu="cpu")
#: Without a GPU: all of the compiler but the code generator
BACKEND = pick(gpu="inductor", cpu="aot_eager")
#: What becomes of a try
RIGHT, ERROR, WRONG = "right", "an error", "wrong, silently"
DOORS = {}


def door(name):
    """Add a function (function, formula) to DOORS; it raises where it is not let in."""

    def add(what_is_tried):
        DOORS[name] = what_is_tried
        return what_is_tried

    return add


@door("a call")
def a_call(function, formula):
    same(function(numbers(1000)), formula(numbers(1000)))


@door("backward()")
def backward(function, formula):
    same_gradient(function, formula, numbers(1000))


@door("torch.compile")
def compiled(function, formula):
    torch._dynamo.reset()
    x = numbers(1000)
    program = torch.compile(lambda x: function(x) + 1, fullgraph=True, backend=BACKEND)
    try:
        same(program(x), formula(x) + 1)
    finally:
        torch._dynamo.reset()


@door("torch.export")
def exported(function, formula):
    x = numbers(1000)
    program = torch.export.export(Layer(function), (x,))
    same(program.module()(x), formula(x))


@door("a view")
def a_view(function, formula):
    for view in (numbers(60, 80)[:, ::2], numbers(60, 80).t()[:, ::2]):
        y = function(view)
        same(y, formula(view))
        if function(view.requires_grad_()).requires_grad:
            same_gradient(function, formula, view)


@door("its layout")
def layout(function, formula):
    x = numbers(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = function(x)
    same(y, formula(x))
    if y.stride() != x.stride():
        raise AssertionError("the result lies in memory in another order than x")
    dx = gradient_of(function, x)
    if dx is not None and dx.stride() != x.stride():
        raise AssertionError("the gradient lies in memory in another order than x")


class Layer(torch.nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def numbers(*shape):
    """Random numbers, the same for each call of a shape."""
    random = torch.Generator().manual_seed(3)
    return torch.randn(shape, generator=random).to(DEVICE)


def same(y, right):
    """AssertionError unless two tensors agree."""
    torch.testing.assert_close(y, right)


def same_gradient(function, formula, x):
    """AssertionError unless the gradients with respect to x agree."""
    x = x.detach().requires_grad_()
    y = function(x)
    dy = torch.randn_like(y)
    (dx,) = torch.autograd.grad(y, x, dy)
    (right,) = torch.autograd.grad(formula(x), x, dy)
    same(dx, right)


def gradient_of(function, x):
    """dx of a dy in the order of x, or None where there is none: another door says so."""
    x = x.detach().requires_grad_()
    try:
        y = function(x)
        (dx,) = torch.autograd.grad(y, x, torch.randn_like(y))
    except RuntimeError:
        return None
    return dx


def outcome(name, function, formula) -> str:
    """What becomes of one door's try: RIGHT, ERROR or WRONG."""
    try:
        DOORS[name](function, formula)
    except AssertionError:
        return WRONG
    except Exception:
        return ERROR
    return RIGHT


def tried(function, formula) -> dict[str, str]:
    """Door -> what became of it. function, formula: of one tensor; the formula is PyTorch's own."""
    return {name: outcome(name, function, formula) for name in DOORS}
