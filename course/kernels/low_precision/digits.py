"""A small network that reads digits, and what is left of it with fewer bits for each weight.

1,024 pixels (32 × 32: the digits with a margin, as in LeNet-5), 64 neurons, 10 answers. Only
weights get fewer bits; sums, biases and pixels stay float32. Sources: LeCun et al.,
"Gradient-based learning applied to document recognition", 1998 (the margin); Ma et al., "The era of
1-bit LLMs: all large language models are in 1.58 bits", 2024 (the ternary scale).
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from course.kernels.low_precision import formats
from utils import data
from utils.tools.torch_threads import one_thread

SIDE = 32  # pixels of a picture's line, and lines
MARGIN = 2  # around MNIST's 28 × 28
NEURONS = 64
CLASSES = 10
BATCH = 50
EPOCHS = 20
RATE = 0.1
MOMENTUM = 0.9
DECAY = 1e-3  # of weights that no digit needs
FIRST_SIZE = 0.01  # of the first matrix before training: small, so that what is learnt can be seen
SEED = 1
SCALE_BITS = 16  # a scale is stored as bfloat16


class Network(NamedTuple):
    """Weights and biases, float32: first [64, 1024], second [10, 64]."""

    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray


@dataclass(frozen=True)
class Scheme:
    """How weights are stored. levels: magnitudes above zero; share: neighbours of one scale, or 0
    for a scale of the whole matrix.
    """

    name: str
    levels: int
    share: int = 0

    @property
    def bits(self) -> float:
        """Of a weight: the logarithm of how many values it can have."""
        values = 2 * self.levels + 1
        if self.levels == 1:
            return math.log2(values)
        return math.log2(values + 1)


SCHEMES = tuple(
    Scheme(f"{bits}, {words}", levels, share)
    for bits, levels in (("int8", 127), ("int4", 7), ("1.58 bits", 1))
    for words, share in (("a scale for every 32", 32), ("one scale", 0))
)


@functools.cache
def _pictures(which: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = data.mnist(which, subset=True)
    around = ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN))
    pixels = np.pad(np.float32(images) / 255, around)
    return pixels.reshape(len(pixels), -1), np.asarray(labels)


def training() -> tuple[np.ndarray, np.ndarray]:
    """(pixels, float32 [2000, 1024] from 0 to 1, labels) to learn from."""
    return _pictures("train")


def test() -> tuple[np.ndarray, np.ndarray]:
    """(pixels, float32 [500, 1024] from 0 to 1, labels) of digits that the network has not seen."""
    return _pictures("test")


def written(number: str) -> tuple[np.ndarray, list[int]]:
    """(pixels [n, 1024], labels) of test digits that spell a number; what is no digit is left out.

    Each time a digit comes again it is another picture of it.
    """
    pixels, labels = test()
    spelt = [int(character) for character in number if character in "0123456789"]
    met = dict.fromkeys(range(CLASSES), 0)
    places = []
    for digit in spelt:
        (all_of_it,) = np.nonzero(labels == digit)
        places.append(all_of_it[met[digit] % len(all_of_it)])
        met[digit] += 1
    return pixels[places], spelt


@functools.cache
def trained() -> Network:
    """The network after 20 rounds through 2,000 digits, on the CPU: a second or two.

    Its neurons are in order, those with the largest weights first.
    """
    pixels, labels = (torch.from_numpy(part) for part in training())
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        weights = [
            FIRST_SIZE * torch.randn(NEURONS, SIDE * SIDE),
            torch.zeros(NEURONS),
            torch.randn(CLASSES, NEURONS) / NEURONS**0.5,
            torch.zeros(CLASSES),
        ]
        for each in weights:
            each.requires_grad_()
        optimizer = torch.optim.SGD(weights, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
        for _ in range(EPOCHS):
            for some in torch.randperm(len(pixels)).split(BATCH):
                optimizer.zero_grad()
                logits = forward(pixels[some], *weights)
                functional.cross_entropy(logits, labels[some].long()).backward()
                optimizer.step()
    first, first_bias, second, second_bias = (each.detach().numpy() for each in weights)
    order = np.argsort(-np.linalg.norm(first, axis=1))
    return Network(first[order], first_bias[order], second[:, order].copy(), second_bias)


def forward(pixels, first, first_bias, second, second_bias):
    """A number for each of ten answers, [n, 10], from PyTorch's tensors."""
    neurons = torch.relu(pixels @ first.T + first_bias)
    return neurons @ second.T + second_bias


def accuracy(network: Network) -> float:
    """The share of the 500 test digits that a network gets right."""
    pixels, labels = test()
    with one_thread():
        logits = forward(*(torch.from_numpy(part) for part in (pixels, *network)))
    return float(np.mean(logits.argmax(1).numpy() == labels))


def quantized(weights: np.ndarray, scheme: Scheme) -> np.ndarray:
    """The float32 weights that a scheme keeps of these.

    The scale brings the largest magnitude to the highest level; with one level only, the mean one.
    """
    parts = weights.reshape(-1, scheme.share or weights.size)
    magnitudes = np.abs(parts)
    if scheme.levels > 1:
        scale = magnitudes.max(1, keepdims=True) / scheme.levels
    else:
        scale = magnitudes.mean(1, keepdims=True)
    scale = formats.rounded(np.maximum(scale, 1e-12), formats.BF16)
    levels = np.rint(parts / scale)
    levels = np.clip(levels, -scheme.levels, scheme.levels)
    return (levels * scale).astype(np.float32).reshape(weights.shape)


def with_weights(change) -> Network:
    """The trained network with change(weights) in place of each matrix."""
    network = trained()
    return network._replace(first=change(network.first), second=change(network.second))


def stored_bytes(scheme: Scheme | None) -> float:
    """Bytes of all weights; None: float32. Biases stay float32."""
    network = trained()
    if scheme is None:
        return sum(part.nbytes for part in network)
    total = float(network.first_bias.nbytes + network.second_bias.nbytes)
    for weights in (network.first, network.second):
        scales = weights.size // (scheme.share or weights.size)
        total += (weights.size * scheme.bits + scales * SCALE_BITS) / 8
    return total


def table() -> list[tuple[str, float, float]]:
    """(scheme, bytes, accuracy), float32 first."""
    rows = [("float32", stored_bytes(None), accuracy(trained()))]
    for scheme in SCHEMES:
        change = functools.partial(quantized, scheme=scheme)
        rows.append((scheme.name, stored_bytes(scheme), accuracy(with_weights(change))))
    return rows
