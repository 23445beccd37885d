"""Every layer of the network in NumPy: the reference that all kernels are held to.

Written to be read, in any precision: float64 in gives float64 out. A forward pass returns its
result (and, where the backward pass needs more than the input, that too); a backward pass takes dy,
the gradient of the loss with respect to the layer's output, and returns that with respect to its
input and weights. Arrays are NCHW: batch, channel, row, column.
"""

import numpy as np

from course.kernels.mnist_cnn import EPS, MEAN, STD


def scale_pixels(images, dtype=np.float64):
    """Pixels uint8 [B, 28, 28] to numbers [B, 1, 28, 28] of mean 0 and deviation 1 over MNIST."""
    return ((images.astype(dtype) / 255 - MEAN) / STD)[:, None]


def conv2d(x, weight):
    """x [B, C, H, W], weight [K, C, 3, 3] to [B, K, H, W]: 3×3, padding 1, no bias.

    (A cross-correlation, as everywhere.)
    """
    height, width = x.shape[2:]
    padded = _pad(x)
    y = np.zeros((x.shape[0], weight.shape[0], height, width), x.dtype)
    for r in range(3):
        for s in range(3):
            window = padded[:, :, r : r + height, s : s + width]
            tap = weight[:, :, r, s]
            y += np.einsum("bchw,kc->bkhw", window, tap, optimize=True)
    return y


def conv2d_backward(dy, x, weight):
    """dy [B, K, H, W] to (dx, dweight)."""
    height, width = x.shape[2:]
    padded = _pad(x)
    dpadded = np.zeros_like(padded)
    dweight = np.zeros_like(weight)
    for r in range(3):
        for s in range(3):
            window = np.s_[:, :, r : r + height, s : s + width]  # what tap (r, s) saw
            tap = weight[:, :, r, s]
            dpadded[window] += np.einsum("bkhw,kc->bchw", dy, tap, optimize=True)
            dweight[:, :, r, s] = np.einsum("bkhw,bchw->kc", dy, padded[window], optimize=True)
    return dpadded[:, :, 1:-1, 1:-1], dweight


def _pad(x):
    """A border of zeros around each picture."""
    return np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))


def batchnorm2d(x, gamma, beta):
    """Each channel to mean beta and deviation gamma, over batch, rows and columns.

    Returns (y, mean [C], invstd [C]).
    """
    mean = x.mean((0, 2, 3))
    variance = x.var((0, 2, 3))
    invstd = 1 / np.sqrt(variance + EPS)
    y = (x - _channels(mean)) * _channels(invstd * gamma) + _channels(beta)
    return y, mean, invstd


def batchnorm2d_backward(dy, x, gamma, mean, invstd):
    """dy to (dx, dgamma, dbeta).

    The mean and the deviation depend on every x, which gives the two subtracted terms.
    """
    n = x.shape[0] * x.shape[2] * x.shape[3]
    normal = (x - _channels(mean)) * _channels(invstd)
    dbeta = dy.sum((0, 2, 3))
    dgamma = (dy * normal).sum((0, 2, 3))
    left = dy - _channels(dbeta / n) - normal * _channels(dgamma / n)
    dx = left * _channels(gamma * invstd)
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
    """Largest of each 2×2 window, [B, C, H, W] to [B, C, H // 2, W // 2]; and which of the four.

    Of equal ones the first in reading order wins, as in PyTorch. An odd last row or column is left
    out.
    """
    B, C, H, W = x.shape
    h = H // 2
    w = W // 2
    even = x[:, :, : h * 2, : w * 2]
    windows = even.reshape(B, C, h, 2, w, 2)
    four = windows.transpose(0, 1, 2, 4, 3, 5).reshape(B, C, h, w, 4)
    return four.max(-1), four.argmax(-1)


def maxpool2x2_backward(dy, winner, shape):
    """All of the gradient goes to the winner. `shape`: of the input."""
    dx = np.zeros(shape, dy.dtype)
    h = shape[2] // 2
    w = shape[3] // 2
    for k in range(4):
        row = k // 2
        column = k % 2
        dx[:, :, row : h * 2 : 2, column : w * 2 : 2] = dy * (winner == k)
    return dx


def linear(x, weight, bias):
    """x [B, K], weight [N, K], bias [N] to [B, N]."""
    return x @ weight.T + bias


def linear_backward(dy, x, weight):
    """dy [B, N] to (dx, dweight, dbias)."""
    return dy @ weight, dy.T @ x, dy.sum(0)


def cross_entropy(logits, labels):
    """Mean of -log softmax(logits)[label] over the batch, and the softmax [B, 10] itself."""
    # exp of a large number would overflow; the quotient is the same
    shifted = logits - logits.max(1, keepdims=True)
    logsum = np.log(np.exp(shifted).sum(1, keepdims=True))
    rows = np.arange(len(labels))
    losses = logsum[:, 0] - shifted[rows, labels]
    return losses.mean(), np.exp(shifted - logsum)


def cross_entropy_backward(softmax, labels):
    """Gradient with respect to the logits: softmax minus one at the label, over the batch size."""
    dlogits = softmax.copy()
    rows = np.arange(len(labels))
    dlogits[rows, labels] -= 1
    return dlogits / len(labels)


def forward(weights, images):
    """Pixels uint8 [B, 28, 28] to logits [B, 10]; and all that the backward pass needs, by name."""
    w = weights
    kept = {}
    x = scale_pixels(images, w["fc1.weight"].dtype)
    p1 = _block(w, kept, 1, x)
    p2 = _block(w, kept, 2, p1)
    kept["flat"] = flat = p2.reshape(len(images), -1)
    kept["h"] = h = relu(linear(flat, w["fc1.weight"], w["fc1.bias"]))
    return linear(h, w["fc2.weight"], w["fc2.bias"]), kept


def _block(weights, kept, number, x):
    """Convolution, batch norm, ReLU, max-pooling."""
    gamma = weights[f"bn{number}.weight"]
    beta = weights[f"bn{number}.bias"]
    y = conv2d(x, weights[f"conv{number}.weight"])
    normal, mean, invstd = batchnorm2d(y, gamma, beta)
    pooled, winner = maxpool2x2(relu(normal))
    kept[number] = x, y, mean, invstd, normal, winner
    return pooled


def backward(weights, kept, dlogits):
    """The gradients of all weights, by name."""
    w = weights
    gradients = {}
    dh, dweight, dbias = linear_backward(dlogits, kept["h"], w["fc2.weight"])
    gradients |= {"fc2.weight": dweight, "fc2.bias": dbias}
    dh = relu_backward(dh, kept["h"])
    dflat, dweight, dbias = linear_backward(dh, kept["flat"], w["fc1.weight"])
    gradients |= {"fc1.weight": dweight, "fc1.bias": dbias}
    dp1 = block_backward(w, kept, 2, dflat, gradients)
    block_backward(w, kept, 1, dp1, gradients)
    return gradients


def block_backward(weights, kept, number, dpooled, gradients):
    """Backward through max-pooling, ReLU, batch norm and convolution: the gradient of its input."""
    x, y, mean, invstd, normal, winner = kept[number]
    dpooled = dpooled.reshape(winner.shape)
    dnormal = relu_backward(maxpool2x2_backward(dpooled, winner, normal.shape), normal)
    gamma = weights[f"bn{number}.weight"]
    dy, dgamma, dbeta = batchnorm2d_backward(dnormal, y, gamma, mean, invstd)
    dx, dweight = conv2d_backward(dy, x, weights[f"conv{number}.weight"])
    gradients[f"bn{number}.weight"] = dgamma
    gradients[f"bn{number}.bias"] = dbeta
    gradients[f"conv{number}.weight"] = dweight
    return dx


def loss_and_gradients(weights, images, labels):
    """One forward and backward pass: the loss, the logits and the gradients by name."""
    logits, kept = forward(weights, images)
    loss, softmax = cross_entropy(logits, labels)
    dlogits = cross_entropy_backward(softmax, labels)
    return loss, logits, backward(weights, kept, dlogits)
