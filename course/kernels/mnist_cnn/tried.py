"""The naive trainer's kernels, one by one: as the chapter's cells left them, held to float64."""

from collections.abc import Callable

import numpy as np
from numba import cuda

from course.kernels.mnist_cnn import EPS, layers
from course.kernels.mnist_cnn.naive_trainer import TRAIN
from course.kernels.mnist_cnn.proofs import SHAPES, exact, launch, single, to_gpu
from utils import check, cuda_c
from utils.cpu.numba_cuda import KernelError
from utils.tools.diagnostics import LearnerError

#: kernel: the file in naive/ that holds it
FILES = {
    "scale_pixels": "step",
    "conv_forward": "conv",
    "conv_backward_input": "conv",
    "norm_statistics": "norm",
    "norm_forward": "norm",
    "norm_backward_sums": "norm",
    "relu_forward": "pool",
    "relu_backward": "pool",
    "pool_forward": "pool",
    "linear_forward": "linear_layer",
    "linear_backward_input": "linear_layer",
    "linear_backward_weight": "linear_layer",
    "cross_entropy": "loss",
    "sgd": "step",
}


def load(name: str):
    """A kernel of the naive trainer, as the learner left it."""
    return getattr(cuda_c.load(TRAIN.with_name(f"{FILES[name]}.cuh")), name)


def tried(name: str) -> None:
    """Say whether a kernel as it stands now is right, on awkward shapes, against float64.

    Without a GPU the CPU runtime's slow checks watch, and name a mistake with its line. Nothing is
    raised: what is wrong is printed.
    """
    rng = np.random.default_rng(16)
    try:
        with cuda_c.checked():
            on = CHECKS[name](load(name), rng)
    except (check.CheckError, LearnerError, KernelError) as error:
        print(error)
    else:
        print(f"✓ right: {name} agrees with float64 on {on}")


# ---- each kernel against its layer; what it was tried on


def _normal(rng, *shape):
    return single(rng.normal(size=shape))[0]


def _close(name, ours, expected, ops):
    check.close(ours, expected, ops=ops, name=name, quiet=True)


def _conv_forward(kernel, rng):
    for B, C, K, H, W in SHAPES:
        x, w = _normal(rng, B, C, H, W), _normal(rng, K, C, 3, 3)
        expected = layers.conv2d(*exact(x, w))
        ours = launch(kernel, expected.shape, *to_gpu(x, w), B, C, K, H, W)
        _close("y", ours, expected, 20 * C)
    return "pictures of " + _sides()


def _conv_backward_input(kernel, rng):
    for B, C, K, H, W in SHAPES:
        x, w = _normal(rng, B, C, H, W), _normal(rng, K, C, 3, 3)
        dy = _normal(rng, B, K, H, W)
        expected, _ = layers.conv2d_backward(*exact(dy, x, w))
        ours = launch(kernel, x.shape, *to_gpu(dy, w), B, C, K, H, W)
        _close("dx", ours, expected, 20 * K)
    return "pictures of " + _sides()


def _sides():
    return ", ".join(f"{shape[3]} × {shape[4]}" for shape in SHAPES)


def _norm_statistics(kernel, rng):
    for B, C, S in ((3, 5, 36), (7, 3, 149)):
        x = _normal(rng, B, C, S)
        mean, invstd = (cuda.to_device(check.poison(C)) for _ in range(2))
        kernel[C, 256](mean, invstd, *to_gpu(x), B, C, S, np.float32(EPS))
        _, right_mean, right_invstd = layers.batchnorm2d(
            *exact(x[..., None]), np.ones(C), np.zeros(C)
        )
        _close("mean", mean, right_mean, 2 * B * S)
        _close("1 / deviation", invstd, right_invstd, 4 * B * S)
    return "channels of 108 and of 1,043 numbers"


def _pool_forward(kernel, rng):
    for N, H, W in ((1, 2, 2), (3, 7, 5), (6, 14, 14)):
        x = single(rng.integers(-3, 4, (N, H, W)))[0]  # with ties
        y, winner = layers.maxpool2x2(x[None])
        winner_d = cuda.to_device(check.poison(y.shape[1:], np.uint8))
        ours = launch(kernel, y.shape[1:], winner_d, *to_gpu(x), N, H, W)
        check.equal(ours, y[0], name="y", quiet=True)
        check.equal(winner_d, winner[0].astype(np.uint8), name="winner", quiet=True)
    return "windows of which many have two largest"


def _linear_forward(kernel, rng):
    for B, K, N in ((1, 1, 1), (3, 37, 10), (33, 20, 7)):
        x, w, bias = _normal(rng, B, K), _normal(rng, N, K), _normal(rng, N)
        ours = launch(kernel, (B, N), *to_gpu(x, w, bias), B, K, N)
        _close("y", ours, layers.linear(*exact(x, w, bias)), 2 * K + 8)
    return "batches of 1, 3 and 33"


def _sgd(kernel, rng):
    w, dw = _normal(rng, 1000), _normal(rng, 1000)
    w_d, dw_d = to_gpu(w, dw)
    rate = np.float32(0.1)
    kernel[4, 256](w_d, dw_d, rate, w.size)
    _close("w", w_d, w.astype(float) - rate * dw.astype(float), 2)
    return "1,000 weights"


CHECKS: dict[str, Callable] = {
    "conv_forward": _conv_forward,
    "conv_backward_input": _conv_backward_input,
    "norm_statistics": _norm_statistics,
    "pool_forward": _pool_forward,
    "linear_forward": _linear_forward,
    "sgd": _sgd,
}
