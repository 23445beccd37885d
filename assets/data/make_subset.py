"""Choose the digits in `assets/data/mnist/` from the full MNIST, the same ones every time.

    python assets/data/make_subset.py

200 of each digit from the 60,000 training images and 50 of each from the 10,000 test images: of all
images of a digit every k-th, so that the whole range of writers is represented, in the order of the
original files.
"""

import gzip
from pathlib import Path

import numpy as np

from utils.data import MNIST, mnist

FOLDER = Path(__file__).parent / "mnist"
PER_DIGIT = {"train": 200, "test": 50}


def chosen(labels: np.ndarray, per_digit: int) -> np.ndarray:
    """Indices of `per_digit` evenly spaced examples of each digit, in ascending order."""
    positions = [np.flatnonzero(labels == digit) for digit in range(10)]
    return np.sort(
        np.concatenate([p[np.arange(per_digit) * p.size // per_digit] for p in positions])
    )


def idx_bytes(array: np.ndarray) -> bytes:
    """An array of unsigned bytes as an IDX file."""
    header = bytes((0, 0, 8, array.ndim)) + np.asarray(array.shape, ">u4").tobytes()
    return header + np.ascontiguousarray(array, np.uint8).tobytes()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for split, per_digit in PER_DIGIT.items():
        images, labels = mnist(split)
        index = chosen(labels, per_digit)
        for file, array in zip(MNIST[split], (images[index], labels[index]), strict=True):
            path = FOLDER / f"{file.name}.gz"
            path.write_bytes(gzip.compress(idx_bytes(array), 9, mtime=0))
            print(f"{path.name}: {array.shape}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
