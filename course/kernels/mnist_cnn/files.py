"""The files through which notebooks and the CUDA C trainer talk: digits, weights, the order of the
batches.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from course.kernels.mnist_cnn import SHAPES, check_digits, check_weights
from utils.files import write_whole

if TYPE_CHECKING:  # it brings torch, which writing files does not need
    from course.kernels.mnist_cnn.loader import Loader

#: The first bytes of a weights file; float32 tensors follow in the order of SHAPES.
MAGIC = b"DIGITCNN"


def write_digits(
    folder: str | Path,
    name: str,
    images: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Write digits as MNIST's IDX files.

    They are ``<name>-images-idx3-ubyte`` and ``<name>-labels-idx1-ubyte``.
    """
    check_digits(images, labels)
    folder = Path(folder)
    write_whole(folder / f"{name}-images-idx3-ubyte", _idx(images))
    write_whole(folder / f"{name}-labels-idx1-ubyte", _idx(labels.astype(np.uint8)))


def _idx(array: np.ndarray) -> bytes:
    """An array of bytes as an IDX file: kind, dimensions, each size in four bytes, the numbers."""
    kind = bytes((0, 0, 8, array.ndim))  # 8: unsigned bytes
    sizes = np.array(array.shape, ">u4")
    return kind + sizes.tobytes() + array.tobytes()


def cut(folder: str | Path, to: str | Path, size: int = 5000) -> None:
    """Copies of a folder's files of which only the first bytes are there."""
    for file in Path(folder).iterdir():
        write_whole(Path(to) / file.name, file.read_bytes()[:size])


def write_order(path: str | Path, loader: Loader, epochs: int) -> None:
    """Write in which order the digits are used, int32.

    For each epoch all of them, those of a dropped last batch too.
    """
    shuffled = [loader.shuffled(epoch) for epoch in range(epochs)]
    order = np.concatenate(shuffled).astype(np.int32)
    write_whole(path, order.tobytes())


def save_weights(path: str | Path, weights: dict[str, np.ndarray]) -> None:
    """Write weights as a checkpoint that the CUDA C trainer reads."""
    check_weights(weights)
    tensors = [weights[name].astype("<f4") for name in SHAPES]
    write_whole(path, MAGIC + b"".join(tensor.tobytes() for tensor in tensors))


def load_weights(path: str | Path) -> dict[str, np.ndarray]:
    """Weights by name from a checkpoint.

    Raises ValueError for a file that is no checkpoint, or not all of one.
    """
    content = Path(path).read_bytes()
    sizes = [int(np.prod(shape)) for shape in SHAPES.values()]
    expected = len(MAGIC) + 4 * sum(sizes)
    if not content.startswith(MAGIC) or len(content) != expected:
        raise ValueError(
            f"{path} is no checkpoint of this network, or not all of one ({len(content):,} bytes)"
        )
    values = np.frombuffer(content, "<f4", offset=len(MAGIC)).astype(np.float32)
    parts = np.split(values, np.cumsum(sizes)[:-1])
    weights = {}
    for (name, shape), part in zip(SHAPES.items(), parts, strict=True):
        weights[name] = part.reshape(shape)
    check_weights(weights)
    return weights
