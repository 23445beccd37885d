"""Every layer of the network in NumPy: the reference that all kernels are held to.

Written to be read, in any precision: float64 in gives float64 out. A forward pass returns its
result (and, where the backward pass needs more than the input, that too); a backward pass takes dy,
the gradient of the loss with respect to the layer's output, and returns that with respect to its
input and weights. Arrays are NCHW: batch, channel, row, column.
"""

import numpy as np

from course.mnist_cnn import EPS, MEAN, STD


def scale_pixels(images, dtype=np.float64):
    """Pixels uint8 [B, 28, 28] to numbers [B, 1, 28, 28] of mean 0 and deviation 1 over MNIST."""
    return ((images.astype(dtype) / 255 - MEAN) / STD)[:, None]


def conv2d(x, weight):
    """x [B, C, H, W], weight [K, C, 3, 3] to [B, K, H, W]: 3×3, padding 1, no bias (a
    cross-correlation, as everywhere).
    """
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.zeros((x.shape[0], weight.shape[0], height, width), x.dtype)
    for r in range(3):
        for s in range(3):
            y += np.einsum(
                "bchw,kc->bkhw",
                padded[:, :, r : r + height, s : s + width],
                weight[:, :, r, s],
                optimize=True,
            )
    return y


def conv2d_backward(dy, x, weight):
    """dy [B, K, H, W] to (dx, dweight)."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    dpadded, dweight = np.zeros_like(padded), np.zeros_like(weight)
    for r in range(3):
        for s in range(3):
            seen = np.s_[:, :, r : r + height, s : s + width]  # what tap (r, s) saw
            dpadded[seen] += np.einsum("bkhw,kc->bchw", dy, weight[:, :, r, s], optimize=True)
            dweight[:, :, r, s] = np.einsum("bkhw,bchw->kc", dy, padded[seen], optimize=True)
    return dpadded[:, :, 1:-1, 1:-1], dweight


def batchnorm2d(x, gamma, beta):
    """Each channel to mean beta and deviation gamma, over batch, rows and columns. Returns (y, mean
    [C], invstd [C]).
    """
    mean = x.mean((0, 2, 3))
    invstd = 1 / np.sqrt(x.var((0, 2, 3)) + EPS)
    return (x - _channels(mean)) * _channels(invstd * gamma) + _channels(beta), mean, invstd


def batchnorm2d_backward(dy, x, gamma, mean, invstd):
    """dy to (dx, dgamma, dbeta). The mean and the deviation depend on every x, which gives the two
    subtracted terms.
    """
    n = x.shape[0] * x.shape[2] * x.shape[3]
    normal = (x - _channels(mean)) * _channels(invstd)
    dbeta, dgamma = dy.sum((0, 2, 3)), (dy * normal).sum((0, 2, 3))
    dx = (dy - _channels(dbeta / n) - normal * _channels(dgamma / n)) * _channels(gamma * invstd)
    return dx, dgamma, dbeta


def _channels(values):
    """[C] as [1, C, 1, 1]."""
    return values[None, :, None, None]


def relu(x):
    """Negative numbers become 0."""
    return np.maximum(x, 0)


def relu_backward(dy, y):
    """`y` is the output: where it is 0, nothing flows back (at 0 itself neither, as in PyTorch)."""
    return dy * (y > 0)


def maxpool2x2(x):
    """Largest of each 2×2 window, [B, C, H, W] to [B, C, H // 2, W // 2]; which of the four it was,
    0 to 3, comes along.

    Of equal ones the first in reading order wins, as in PyTorch. An odd last row or column is left
    out.
    """
    batch, channels, height, width = x.shape
    windows = x[:, :, : height // 2 * 2, : width // 2 * 2].reshape(
        batch, channels, height // 2, 2, width // 2, 2
    )
    windows = windows.transpose(0, 1, 2, 4, 3, 5).reshape(
        batch, channels, height // 2, width // 2, 4
    )
    return windows.max(-1), windows.argmax(-1)


def maxpool2x2_backward(dy, winner, shape):
    """All of the gradient goes to the winner. `shape`: of the input."""
    dx = np.zeros(shape, dy.dtype)
    for k in range(4):
        dx[:, :, k // 2 : shape[2] // 2 * 2 : 2, k % 2 : shape[3] // 2 * 2 : 2] = dy * (winner == k)
    return dx


def linear(x, weight, bias):
    """x [B, K], weight [N, K], bias [N] to [B, N]."""
    return x @ weight.T + bias


def linear_backward(dy, x, weight):
    """dy [B, N] to (dx, dweight, dbias)."""
    return dy @ weight, dy.T @ x, dy.sum(0)


def cross_entropy(logits, labels):
    """Mean of -log softmax(logits)[label] over the batch, and the softmax [B, 10] itself."""
    shifted = logits - logits.max(
        1, keepdims=True
    )  # exp of a large number would overflow; the quotient is the same
    logsum = np.log(np.exp(shifted).sum(1, keepdims=True))
    rows = np.arange(len(labels))
    return (logsum[:, 0] - shifted[rows, labels]).mean(), np.exp(shifted - logsum)


def cross_entropy_backward(softmax, labels):
    """Gradient with respect to the logits: softmax minus one at the label, over the batch size."""
    dlogits = softmax.copy()
    dlogits[np.arange(len(labels)), labels] -= 1
    return dlogits / len(labels)


def forward(weights, images):
    """Pixels uint8 [B, 28, 28] to logits [B, 10] and everything that the backward pass needs, by
    name.
    """
    w = weights
    x = scale_pixels(images, w["fc1.weight"].dtype)
    y1 = conv2d(x, w["conv1.weight"])
    n1, mean1, invstd1 = batchnorm2d(y1, w["bn1.weight"], w["bn1.bias"])
    p1, winner1 = maxpool2x2(relu(n1))
    y2 = conv2d(p1, w["conv2.weight"])
    n2, mean2, invstd2 = batchnorm2d(y2, w["bn2.weight"], w["bn2.bias"])
    p2, winner2 = maxpool2x2(relu(n2))
    flat = p2.reshape(len(images), -1)
    h = relu(linear(flat, w["fc1.weight"], w["fc1.bias"]))
    logits = linear(h, w["fc2.weight"], w["fc2.bias"])
    kept = dict(
        x=x,
        y1=y1,
        n1=n1,
        mean1=mean1,
        invstd1=invstd1,
        winner1=winner1,
        p1=p1,
        y2=y2,
        n2=n2,
        mean2=mean2,
        invstd2=invstd2,
        winner2=winner2,
        p2=p2,
        flat=flat,
        h=h,
    )
    return logits, kept


def backward(weights, kept, dlogits):
    """The gradients of all weights, by name."""
    w, k, g = weights, kept, {}
    dh, g["fc2.weight"], g["fc2.bias"] = linear_backward(dlogits, k["h"], w["fc2.weight"])
    dflat, g["fc1.weight"], g["fc1.bias"] = linear_backward(
        relu_backward(dh, k["h"]), k["flat"], w["fc1.weight"]
    )
    dn2 = relu_backward(
        maxpool2x2_backward(dflat.reshape(k["p2"].shape), k["winner2"], k["n2"].shape), k["n2"]
    )
    dy2, g["bn2.weight"], g["bn2.bias"] = batchnorm2d_backward(
        dn2, k["y2"], w["bn2.weight"], k["mean2"], k["invstd2"]
    )
    dp1, g["conv2.weight"] = conv2d_backward(dy2, k["p1"], w["conv2.weight"])
    dn1 = relu_backward(maxpool2x2_backward(dp1, k["winner1"], k["n1"].shape), k["n1"])
    dy1, g["bn1.weight"], g["bn1.bias"] = batchnorm2d_backward(
        dn1, k["y1"], w["bn1.weight"], k["mean1"], k["invstd1"]
    )
    _, g["conv1.weight"] = conv2d_backward(dy1, k["x"], w["conv1.weight"])
    return g


def loss_and_gradients(weights, images, labels):
    """One forward and backward pass: the loss, the logits and the gradients by name."""
    logits, kept = forward(weights, images)
    loss, softmax = cross_entropy(logits, labels)
    return loss, logits, backward(weights, kept, cross_entropy_backward(softmax, labels))
