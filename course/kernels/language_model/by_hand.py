"""The parts of a layer in NumPy, to be read: a text's rows [rows, width], in float64."""

import numpy as np

from course.kernels.language_model.problem import SMALL
from course.kernels.language_model.reference import STACKED


def norm(x, weight, eps: float = SMALL.eps) -> np.ndarray:
    """x over the root of its mean square, times weight; along the last axis."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def turned(x, theta: float = SMALL.theta) -> np.ndarray:
    """A head's rows, each pair (i, i + size / 2) turned by the row's position, as a hand is."""
    left, right = np.split(x, 2, axis=-1)
    pairs = left.shape[-1]
    speeds = theta ** -(np.arange(pairs) / pairs)
    hands = (left + 1j * right) * np.exp(1j * np.arange(len(x))[:, None] * speeds)
    return np.concatenate([hands.real, hands.imag], axis=-1)


def attend(q, k, v) -> np.ndarray:
    """A head's rows: each looks at itself and at those before it. q, k, v: [rows, size]."""
    scores = np.exp(q @ k.T / np.sqrt(k.shape[-1])) * np.tri(len(q))
    return scores / scores.sum(-1, keepdims=True) @ v


def taken(model, begins: str) -> tuple[np.ndarray, list[dict[str, np.ndarray]]]:
    """(a text's rows before the first layer, each layer's weights by name)."""
    config, weights, known = model
    own = {name: weight.double().cpu().numpy() for name, weight in weights.items()}
    layers = [{name: own[name][i] for name in STACKED} for i in range(config.layers)]
    return own["embedding"][known.encode(begins)], layers


def head(model) -> tuple[np.ndarray, np.ndarray]:
    """(the last norm's weight, the table of all tokens' rows, which is the head, too)."""
    weights = model[1]
    return weights["norm"].double().cpu().numpy(), weights["embedding"].double().cpu().numpy()
