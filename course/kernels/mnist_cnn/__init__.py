"""The network that reads digits: NumPy reference, PyTorch model, loader, trainers.

Every version is the same network, with PyTorch's names and shapes for its weights:

    pixels (x / 255 - MEAN) / STD            [B, 1, 28, 28]
    conv1 3×3 -> bn1 -> ReLU -> max-pool     [B, 32, 14, 14]
    conv2 3×3 -> bn2 -> ReLU -> max-pool     [B, 64, 7, 7]
    flatten -> fc1 -> ReLU                   [B, 128]
    fc2                                      [B, 10], the logits; the loss is their mean
    cross-entropy

The convolutions have padding 1 and no bias: the batch norm that follows would subtract it again.
The batch norms use the batch's own statistics, in training and in testing.
"""

import numpy as np

#: Of MNIST's training pixels, over 255
MEAN = 0.1307
STD = 0.3081
EPS = 1e-5  # of both batch norms

#: Name and shape of every weight, in the order in which every version keeps them.
SHAPES = {
    "conv1.weight": (32, 1, 3, 3),
    "bn1.weight": (32,),
    "bn1.bias": (32,),
    "conv2.weight": (64, 32, 3, 3),
    "bn2.weight": (64,),
    "bn2.bias": (64,),
    "fc1.weight": (128, 3136),
    "fc1.bias": (128,),
    "fc2.weight": (10, 128),
    "fc2.bias": (10,),
}


def check_weights(weights: dict[str, np.ndarray]) -> None:
    """Raises ValueError when these are not the weights of this network: names, shapes, numbers."""
    if set(weights) != set(SHAPES):
        raise ValueError(
            f"the network's weights are {', '.join(SHAPES)}; these are {', '.join(weights)}"
        )
    for name, shape in SHAPES.items():
        if weights[name].shape != shape:
            raise ValueError(f"{name} must have shape {shape}, not {weights[name].shape}")
        if not np.isfinite(weights[name]).all():
            raise ValueError(f"{name} holds numbers that are not finite")


def check_digits(images: np.ndarray, labels: np.ndarray) -> None:
    """Raises ValueError when there are no digits, or these are not digits with their labels."""
    if len(images) == 0:
        raise ValueError("there are no digits to train on: 0 images")
    if images.dtype != np.uint8 or images.shape[1:] != (28, 28):
        raise ValueError(
            f"digits are uint8 [n, 28, 28]; these are {images.dtype} {list(images.shape)}"
        )
    if labels.shape != (len(images),):
        raise ValueError(
            f"{len(images):,} digits need as many labels; there are {list(labels.shape)}"
        )
    if labels.min() < 0 or labels.max() > 9:
        wrong = int(np.flatnonzero((labels < 0) | (labels > 9))[0])
        raise ValueError(
            f"label {wrong} is {labels[wrong]}: labels are 0 to 9, so this data is corrupt"
        )
