"""Each layer's kernels, launched and held to the reference in layers.py.

kernels: what Numba or CUDA C gives, in the order that the function says. sizes: what a CUDA C
kernel is told beside its arrays; nothing for Numba, whose arrays know it. All raise CheckError.
"""

import numpy as np
from numba import cuda

from course.kernels.mnist_cnn import EPS, layers
from course.kernels.mnist_cnn.proofs import exact, launch, single, to_gpu
from utils import check


def check_conv_input(language, kernel, x, w, dy, *sizes):
    """kernel: the gradient of the convolution's input."""
    x, w, dy = single(x, w, dy)
    dx, _ = layers.conv2d_backward(*exact(dy, x, w))
    ours = launch(kernel, dx.shape, *to_gpu(dy, w), *sizes)
    check.close(
        ours,
        dx,
        ops=20 * dy.shape[1],
        name=f"{language} dx",
    )


def check_conv_weight(language, kernels, x, w, dy, *sizes):
    """kernels: each image's share of the weights' gradient, and their sum."""
    backward_weight, sum_over_batch = kernels
    x, w, dy = single(x, w, dy)
    _, dw = layers.conv2d_backward(*exact(dy, x, w))
    B, _, H, W = dy.shape
    share = launch(backward_weight, (B, *dw.shape), *to_gpu(dy, x), *sizes)
    rows = cuda.to_device(share.reshape(B, -1))
    count = (B, dw.size) if sizes else ()
    ours = launch(sum_over_batch, dw.size, rows, *count).reshape(dw.shape)
    check.close(
        ours,
        dw,
        ops=2 * B * H * W + 8,
        name=f"{language} dw",
    )


def normalize(
    statistics,
    forward,
    sums,
    backward,
    x,
    gamma,
    beta,
    dy,
    *sizes,
):
    """y, dx, dgamma, dbeta by four kernels: a block for a channel, or a thread for an element."""
    C = x.shape[1]
    mean, invstd, dgamma, dbeta = (cuda.to_device(check.poison(C)) for _ in range(4))
    statistics[C, 256](mean, invstd, x, *sizes, np.float32(EPS))
    y = launch(forward, x.shape, x, mean, invstd, gamma, beta, *sizes)
    sums[C, 256](dgamma, dbeta, dy, x, mean, invstd, *sizes)
    dx = launch(backward, x.shape, dy, x, mean, invstd, gamma, dgamma, dbeta, *sizes)
    return y, dx, dgamma.copy_to_host(), dbeta.copy_to_host()


def check_norm(language, kernels, arrays, *sizes):
    """kernels: those of `normalize`. arrays: x [B, C, S], gamma, beta, dy."""
    x, gamma, beta, dy = exact(*arrays)
    B, _, S = x.shape
    ops = 2 * B * S + 20
    x, dy = x[..., None], dy[..., None]  # [B, C, S, 1]
    y, mean, invstd = layers.batchnorm2d(x, gamma, beta)
    dx, dgamma, dbeta = layers.batchnorm2d_backward(dy, x, gamma, mean, invstd)
    expected = {
        "y": y[..., 0],
        "dx": dx[..., 0],
        "dγ": dgamma,
        "dβ": dbeta,
    }
    ours = normalize(*kernels, *to_gpu(*arrays), *sizes)
    for (name, right), result in zip(expected.items(), ours, strict=True):
        what = f"{language} {name}"
        check.close(
            result,
            right,
            ops=ops,
            name=what,
            quiet=name != "dx",
        )


def check_pool(kernels, x, dy, *sizes):
    """kernels: forward, backward. x: [N, H, W]."""
    forward, backward = kernels
    N, H, W = x.shape
    y, winner = layers.maxpool2x2(x[None])
    dx = layers.maxpool2x2_backward(dy[None], winner, (1, N, H, W))[0]
    x_d, dy_d = to_gpu(x, dy)
    winner_d = cuda.to_device(check.poison(dy.shape, np.uint8))
    ours = launch(forward, dy.shape, winner_d, x_d, *sizes)
    check.equal(ours, y[0], quiet=True)
    check.equal(winner_d, winner[0].astype(np.uint8), quiet=True)
    ours = launch(backward, x.shape, dy_d, winner_d, *sizes)
    check.equal(ours, dx, name=f"max-pool backward {N} × {H} × {W}", quiet=not sizes)


def check_relu(kernels, x, dy, *sizes):
    """kernels: forward, backward. x: [n]."""
    forward, backward = kernels
    x_d, dy_d = to_gpu(x, dy)
    y = launch(forward, x.size, x_d, *sizes)
    check.equal(y, np.maximum(x, 0), quiet=True)
    dx = launch(backward, x.size, dy_d, cuda.to_device(y), *sizes)
    check.equal(
        dx,
        np.where(y > 0, dy, 0),
        name="ReLU",
        quiet=not sizes,
    )


def check_linear(language, kernels, arrays, *sizes):
    """kernels: forward, gradient of the input, gradient of the weights. arrays: x, w, bias, dy."""
    forward, backward_input, backward_weight = kernels
    x, w, bias, dy = exact(*arrays)
    B, K = x.shape
    N = bias.size
    y = layers.linear(x, w, bias)
    dx, dw, _ = layers.linear_backward(dy, x, w)
    x_d, w_d, bias_d, dy_d = to_gpu(*arrays)
    ours = launch(forward, y.shape, x_d, w_d, bias_d, *sizes)
    check.close(ours, y, ops=2 * K + 8, quiet=True)
    ours = launch(backward_input, dx.shape, dy_d, w_d, *sizes)
    check.close(ours, dx, ops=2 * N + 8, quiet=True)
    ours = launch(backward_weight, dw.shape, dy_d, x_d, *sizes)
    check.close(ours, dw, ops=2 * B + 8, name=f"{language} dw")


def check_loss(language, kernel, z, labels, *sizes):
    """kernel: each image's share of the loss, and the gradient. z: logits [B, 10]."""
    B = len(labels)
    loss, p = layers.cross_entropy(z.astype(float), labels)
    gradient = layers.cross_entropy_backward(p, labels)
    dlogits = cuda.to_device(check.poison((B, 10)))
    z_d = cuda.to_device(z)
    labels_d = cuda.to_device(labels)
    share = launch(kernel, B, dlogits, z_d, labels_d, *sizes)
    check.close(
        share.sum(dtype=float),
        loss,
        rtol=1e-5,
        quiet=True,
    )
    name = f"{language} gradient of {B}"
    check.close(
        dlogits,
        gradient,
        rtol=1e-5,
        atol=1e-6 / B,
        name=name,
    )
