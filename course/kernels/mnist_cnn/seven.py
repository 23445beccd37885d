"""A drawn seven, and what a network makes of it, in NumPy and float64."""

from collections.abc import Mapping

import numpy as np

from course.kernels.mnist_cnn import drawing, layers
from utils import data

IMAGE = drawing.examples()[0]  # uint8 [28, 28]
COMPANY = 99  # test digits that go through beside it, since batch norm asks all of a batch


def probabilities(weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """What the network thinks of the seven: ten probabilities.

    weights: by name, as `pytorch.initial_weights` gives them. The company is that of the small test
    set, so that the answer is the same on every machine.
    """
    images, _ = _batch()
    logits, _ = layers.forward(_exact(weights), images)
    votes = np.exp(logits[0])
    return votes / votes.sum()


def after_a_step(weights: Mapping[str, np.ndarray], lr: float) -> dict[str, np.ndarray]:
    """The weights after one step of SGD on the seven and its company, each with its right answer.

    lr: the learning rate.
    """
    exact = _exact(weights)
    _, _, gradients = layers.loss_and_gradients(exact, *_batch())
    return {name: weight - lr * gradients[name] for name, weight in exact.items()}


def _batch():
    """The seven and its company, uint8 [100, 28, 28], and their labels."""
    others, labels = data.mnist("test", subset=True)
    return np.stack([IMAGE, *others[:COMPANY]]), np.array([7, *labels[:COMPANY]])


def _exact(weights):
    return {name: weight.astype(np.float64) for name, weight in weights.items()}
