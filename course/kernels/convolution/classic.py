"""Launch classic.cu: a picture and one filter, from a thread a pixel to sums in registers.

picture and out: (h, w) float32, C-contiguous, NumPy or torch; filter: (side, side), side odd.
"""

import ctypes
import functools
from pathlib import Path

import numpy as np

from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
ACROSS = 32
DOWN = 8
#: Of the rung `registers`
COLUMN = 128
ROWS = 16


@yours.cache
def module(side: int):
    return cuda_c.load(KERNELS / "classic.cu", flags=(f"-DSIDE={side}", f"-DROWS={ROWS}"))


@functools.cache
def _filter_type(side: int):
    fields = [("at", ctypes.c_float * side**2)]
    return type("Filter", (ctypes.Structure,), {"_fields_": fields})


def by_value(taps) -> ctypes.Structure:
    """A filter as the struct of classic.cu."""
    taps = np.ascontiguousarray(taps, np.float32)
    numbers = (ctypes.c_float * taps.size)(*taps.ravel().tolist())
    return _filter_type(len(taps))(numbers)


def _tiles(picture) -> tuple[int, int]:
    """Blocks of 32 × 8 threads along x and y."""
    h, w = picture.shape
    return ceil_div(w, ACROSS), ceil_div(h, DOWN)


def naive(out, picture, taps) -> None:
    """taps: an array where the kernel runs."""
    launch = _tiles(picture), (ACROSS, DOWN)
    module(taps.shape[0]).naive[launch](out, picture, taps, *picture.shape)


def constant(out, picture, taps) -> None:
    """taps: what `by_value` made; for the rungs below too."""
    launch = _tiles(picture), (ACROSS, DOWN)
    module(side_of(taps)).constant[launch](out, picture, taps, *picture.shape)


def tiled(out, picture, taps) -> None:
    launch = _tiles(picture), (ACROSS, DOWN)
    module(side_of(taps)).tiled[launch](out, picture, taps, *picture.shape)


def registers(out, picture, taps) -> None:
    h, w = picture.shape
    grid = ceil_div(w, COLUMN), ceil_div(h, ROWS)
    module(side_of(taps)).registers[grid, COLUMN](out, picture, taps, h, w)


def side_of(taps: ctypes.Structure) -> int:
    return round(len(taps.at) ** 0.5)


RUNGS = {
    "naive": naive,
    "constant": constant,
    "tiled": tiled,
    "registers": registers,
}
