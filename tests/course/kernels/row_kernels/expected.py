"""What the row kernels must give, by PyTorch in float64."""

import torch
import torch.nn.functional as F

from course.kernels.row_kernels import norms

INF, NAN = float("inf"), float("nan")
ROW = [0.5, -1.0, 2.0, 88.0, -88.0] * 20
#: Rows of 100 numbers on which a softmax may stumble
SPECIAL = [
    ROW,
    [*ROW[:-1], INF],
    [*ROW[:-1], -INF],
    [-INF] * 99 + [1.0],
    [-INF] * 100,
    [NAN, *ROW[1:]],
    [*ROW[:50], NAN, *ROW[51:]],
]


def with_gradients(function, inputs, dy):
    """(What a function of these tensors gives, its gradients for each of them)."""
    leaves = [tensor.double().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    return result, torch.autograd.grad(result, leaves, dy.double())


def layer_norm(x, gamma, beta):
    return F.layer_norm(x, x.shape[1:], gamma, beta, norms.EPSILON)


def rms_norm(x, gamma):
    return F.rms_norm(x, x.shape[1:], gamma, norms.EPSILON)


def losses(x, targets, weights):
    """(The cross-entropy of each row, the gradient for the logits)."""
    result, (gradient,) = with_gradients(
        lambda logits: F.cross_entropy(logits, targets, reduction="none"), [x], weights
    )
    return result, gradient
