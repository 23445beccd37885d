"""The files through which notebooks and the CUDA C trainer talk: digits, weights, the order of the
batches.
"""

from pathlib import Path

import numpy as np

from course.mnist_cnn import SHAPES
from course.mnist_cnn.loader import Loader, check_digits
from course.mnist_cnn.pytorch import check_weights
from utils.files import write_whole

MAGIC = (
    b"DIGITCNN"  # the first bytes of a weights file; float32 tensors follow in the order of SHAPES
)


def write_digits(folder: str | Path, name: str, images: np.ndarray, labels: np.ndarray) -> None:
    """Write digits as MNIST's IDX files: ``<name>-images-idx3-ubyte`` and
    ``<name>-labels-idx1-ubyte``.
    """
    check_digits(images, labels)
    for kind, array in (("images", images), ("labels", labels.astype(np.uint8))):
        header = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
        write_whole(Path(folder) / f"{name}-{kind}-idx{array.ndim}-ubyte", header + array.tobytes())


def write_order(path: str | Path, loader: Loader, epochs: int) -> None:
    """Write in which order the digits are used, int32: for each epoch all of them, those of a
    dropped last batch too.
    """
    shuffled = [loader.shuffled(epoch) for epoch in range(epochs)]
    write_whole(path, np.concatenate(shuffled).astype(np.int32).tobytes())


def save_weights(path: str | Path, weights: dict[str, np.ndarray]) -> None:
    """Write weights as a checkpoint that the CUDA C trainer reads."""
    check_weights(weights)
    write_whole(path, MAGIC + b"".join(weights[name].astype("<f4").tobytes() for name in SHAPES))


def load_weights(path: str | Path) -> dict[str, np.ndarray]:
    """Weights by name from a checkpoint. Raises ValueError for a file that is no checkpoint, or not
    all of one.
    """
    content = Path(path).read_bytes()
    sizes = [int(np.prod(shape)) for shape in SHAPES.values()]
    if not content.startswith(MAGIC) or len(content) != len(MAGIC) + 4 * sum(sizes):
        raise ValueError(
            f"{path} is no checkpoint of this network, or not all of one ({len(content):,} bytes)"
        )
    values = np.split(
        np.frombuffer(content, "<f4", offset=len(MAGIC)).astype(np.float32), np.cumsum(sizes)[:-1]
    )
    weights = {name: part.reshape(SHAPES[name]) for name, part in zip(SHAPES, values, strict=True)}
    check_weights(weights)
    return weights
