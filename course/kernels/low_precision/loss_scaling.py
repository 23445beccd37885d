"""Training with 8-bit gradients that breaks, and what mends it: a small autoencoder of digits.

Its loss is a mean over batch and pixels, so gradients are divided by 392,000 at the very beginning,
and are smaller than the smallest number of e5m2, the 8-bit format for gradients.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from utils import data

HIDDEN = 32
BATCH = 500
SEED = 3
RATE = 4.0  # the gradients of a mean are small


@dataclass
class Run:
    """The loss before each step, the share of gradients that became zero, and skipped steps."""

    losses: list = field(default_factory=list)
    vanished: list = field(default_factory=list)
    skipped: int = 0


def pixels() -> np.ndarray:
    """500 digits, float32 [500, 784], 0 to 1."""
    images, _ = data.mnist("test", subset=True)
    rows = images.reshape(len(images), -1)
    return (rows / 255).astype(np.float32)


def weights() -> list[np.ndarray]:
    """Random weights of both matrices, float32."""
    rng = np.random.default_rng(SEED)
    shapes = ((784, HIDDEN), (HIDDEN, 784))
    matrices = []
    for shape in shapes:
        matrix = rng.normal(size=shape) / shape[0] ** 0.5
        matrices.append(matrix.astype(np.float32))
    return matrices


def as_e5m2(x: np.ndarray) -> np.ndarray:
    """What 8 bits keep of float32 numbers: 5 of exponent, 2 of mantissa."""
    return torch.from_numpy(x).to(torch.float8_e5m2).float().numpy()


def as_float32(x: np.ndarray) -> np.ndarray:
    """Everything is kept."""
    return x


def train(steps: int, *, keep=as_e5m2, scale: float = 1.0) -> Run:
    """Train by plain SGD; weights and sums stay float32.

    keep: how gradients are stored. scale: what the loss is multiplied with before the backward
    pass, and gradients divided by after it. A step with infinite gradients or NaN is skipped.
    """
    run = Run()
    first, second = weights()
    rng = np.random.default_rng(SEED)
    digits = pixels()
    for _ in range(steps):
        some = rng.integers(len(digits), size=BATCH)
        x = digits[some]
        hidden = np.tanh(x @ first)
        error = hidden @ second - x
        run.losses.append(float(np.mean(error**2)))
        of_mean = np.float32(scale * 2 / error.size)
        slope = keep(of_mean * error)
        became_zero = slope[error != 0] == 0
        run.vanished.append(float(np.mean(became_zero)))
        if not np.isfinite(slope).all():
            run.skipped += 1
            continue
        back = keep(slope @ second.T) * (1 - hidden**2)
        if not np.isfinite(back).all():
            run.skipped += 1
            continue
        first -= RATE / scale * (x.T @ back)
        second -= RATE / scale * (hidden.T @ slope)
    return run
