"""Autograd in a screenful: a list of steps, and the rule of each. After Karpathy's micrograd.

A `Value` holds a tensor. Each operator computes it and appends to it how its gradient goes back;
`backward` walks the list in reverse. The arithmetic is done by the kernels of course.extensions.
"""

import torch

from course.extensions import array_kernels as kernels


class Value:
    """A tensor that remembers what it was made of."""

    def __init__(
        self,
        data: torch.Tensor,
        made_of=(),
        rule=None,
        name="",
    ):
        self.data = data
        self.grad = None
        self.made_of = made_of
        self.rule = rule  # gradient of the result -> gradients of what it was made of
        self.name = name

    def __add__(self, other):
        total = kernels.add(self.data, other.data)
        return Value(total, (self, other), lambda grad: (grad, grad), "+")

    def __mul__(self, other):
        def rule(grad):
            return kernels.multiply(grad, other.data), kernels.multiply(grad, self.data)

        return Value(kernels.multiply(self.data, other.data), (self, other), rule, "·")

    def __matmul__(self, other):
        def rule(grad):
            by_self = kernels.matmul(grad, other.data.T)
            return by_self, kernels.matmul(self.data.T, grad)

        return Value(kernels.matmul(self.data, other.data), (self, other), rule, "@")

    def relu(self):
        out = kernels.relu(self.data)
        return Value(out, (self,), lambda grad: (kernels.relu_backward(grad, out),), "relu")

    def mean(self):
        def rule(grad):
            share = torch.full_like(self.data, 1 / self.data.numel())
            return (kernels.multiply(grad.expand_as(share), share),)

        return Value(self.data.mean(), (self,), rule, "mean")

    def backward(self):
        """Gradients of this one number by everything that it was made of."""
        self.grad = torch.ones_like(self.data)
        for value in reversed(in_order(self)):
            if value.rule is None:
                continue
            for source, grad in zip(value.made_of, value.rule(value.grad), strict=True):
                source.grad = grad if source.grad is None else kernels.add(source.grad, grad)


def in_order(value: Value) -> list[Value]:
    """All values that one was made of, each after those that it was made of itself."""
    order = []
    seen = set()

    def visit(value):
        if id(value) in seen:
            return
        seen.add(id(value))
        for source in value.made_of:
            visit(source)
        order.append(value)

    visit(value)
    return order
