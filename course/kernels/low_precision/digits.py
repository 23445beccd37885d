"""The digits' network with fewer bits: quantized after training, accuracy against bytes.

Weights only; sums, norms and activations stay float32. Sources: Ma et al., "The era of 1-bit LLMs:
all large language models are in 1.58 bits", 2024 (the ternary scale).
"""

import contextlib
import functools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from course.kernels.low_precision import formats
from course.kernels.mnist_cnn.pytorch import CNN, weights_of
from utils import data

BATCH = 50
EPOCHS = 4
RATE = 0.02
SEED = 1
MATRICES = ("conv1.weight", "conv2.weight", "fc1.weight", "fc2.weight")
SCALE_BITS = 16  # a scale is stored as bfloat16


@dataclass(frozen=True)
class Scheme:
    """How weights are stored. levels: magnitudes above zero; rows: a scale for each, or one."""

    name: str
    levels: int
    rows: bool

    @property
    def bits(self) -> float:
        """Of a weight: the logarithm of how many values it can have."""
        values = 2 * self.levels + 1
        if self.levels == 1:
            return math.log2(values)
        return math.log2(values + 1)


SCHEMES = (
    Scheme("int8, a scale for each row", 127, True),
    Scheme("int8, one scale", 127, False),
    Scheme("int4, a scale for each row", 7, True),
    Scheme("int4, one scale", 7, False),
    Scheme("1.58 bits, a scale for each row", 1, True),
    Scheme("1.58 bits, one scale", 1, False),
)


@functools.cache
def digits() -> tuple[torch.Tensor, ...]:
    """(training images, labels, test images, labels) of the course's small part of MNIST."""
    training = data.mnist(subset=True)
    test = data.mnist("test", subset=True)
    return tuple(torch.from_numpy(np.array(part)) for part in (*training, *test))


@contextlib.contextmanager
def one_thread():
    """PyTorch with one CPU thread: so small a network gains nothing by more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@functools.cache
def trained() -> CNN:
    """The digits' network, trained by PyTorch for four epochs on 2,000 digits, on the CPU."""
    images, labels, _, _ = digits()
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = CNN()
        optimizer = torch.optim.SGD(
            model.parameters(),
            lr=RATE,
            momentum=0.9,
        )
        for _ in range(EPOCHS):
            for some in torch.randperm(len(images)).split(BATCH):
                optimizer.zero_grad()
                logits = model(images[some])
                loss = functional.cross_entropy(logits, labels[some].long())
                loss.backward()
                optimizer.step()
    return model


def accuracy(model: CNN) -> float:
    """The share of the 500 test digits that the model gets right."""
    _, _, images, labels = digits()
    with one_thread(), torch.no_grad():
        answers = model(images).argmax(1)
    return (answers == labels).float().mean().item()


def quantized(weights: np.ndarray, scheme: Scheme) -> np.ndarray:
    """The float32 weights that a scheme keeps of these; row: an output's weights.

    The scale brings the largest magnitude to the highest level; with one level only, the mean one.
    """
    rows = weights.reshape(len(weights), -1)
    axis = 1 if scheme.rows else None
    magnitudes = np.abs(rows)
    if scheme.levels > 1:
        scale = magnitudes.max(axis, keepdims=True) / scheme.levels
    else:
        scale = magnitudes.mean(axis, keepdims=True)
    scale = formats.rounded(np.maximum(scale, 1e-12), formats.BF16)
    levels = np.rint(rows / scale)
    levels = np.clip(levels, -scheme.levels, scheme.levels)
    return (levels * scale).astype(np.float32).reshape(weights.shape)


def with_weights(change) -> CNN:
    """The trained network with change(weights) in place of each matrix's weights."""
    kept = weights_of(trained())
    model = CNN()
    for name, parameter in model.named_parameters():
        value = kept[name]
        if name in MATRICES:
            value = change(value)
        parameter.data = torch.from_numpy(np.ascontiguousarray(value))
    return model


def stored_bytes(scheme: Scheme | None) -> float:
    """Bytes of all weights; None: float32. What is no matrix stays float32."""
    total = 0.0
    for name, weights in weights_of(trained()).items():
        if scheme and name in MATRICES:
            scales = len(weights) if scheme.rows else 1
            total += (weights.size * scheme.bits + scales * SCALE_BITS) / 8
        else:
            total += weights.nbytes
    return total


def table() -> list[tuple[str, float, float]]:
    """(scheme, bytes, accuracy), float32 first."""
    rows = [("float32", stored_bytes(None), accuracy(trained()))]
    for scheme in SCHEMES:
        change = functools.partial(quantized, scheme=scheme)
        model = with_weights(change)
        rows.append((scheme.name, stored_bytes(scheme), accuracy(model)))
    return rows
