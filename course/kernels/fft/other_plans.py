"""Launch the kernels that are built on the transform: real input, any length, convolution.

other_plans.Real(4096)(x, out)           # as numpy.fft.rfft
other_plans.AnyLength(1009)(x, out)      # as numpy.fft.fft
other_plans.Filter(1024, taps)(x, out)   # as torch's conv2d, of pictures of 1024 * 1024
"""

import ctypes

import numpy as np
import torch

from course.kernels.fft.kernels import DEVICE
from course.kernels.fft.plans import (
    COMPLEX_BYTES,
    Deal,
    Pictures,
    count,
    deal_for,
    floats,
    kernel,
    padded,
)

#: Of real rows, by length; found on an H200. A thread has 16 points at most.
REAL_DEALS = {1024: Deal(16, 4, 6), 4096: Deal(16, 1, 6), 8192: Deal(16, 1, 3)}


class Real:
    """The transforms of rows of n real numbers: float32 [..., n] to complex64 [..., n / 2 + 1].

    n: a power of two from 4 to 8,192.
    """

    def __init__(self, n: int, deal: Deal | None = None):
        self.n = n
        self.deal = deal or REAL_DEALS.get(n) or deal_for(n // 2)
        self.code = real_code(n, self.deal)

    def __call__(self, x, out) -> None:
        """out[r] = the first n / 2 + 1 values of the transform of x[r]."""
        rows = count(x) // self.n
        if rows:
            launch = kernel(self.code)[self.deal.launch(self.n // 2, rows)]
            launch(x, floats(out), rows)


def real_code(n: int, deal: Deal):
    """The kernel of `Real`."""
    template = f"fft_real_rows<{n // 2}, {deal.radix}, {deal.together}, {deal.blocks}>"
    return "real.cu", deal.flags, template


class AnyLength:
    """The transforms of rows of n points, any n up to half the longest of `plans.Rows`.

    Its tables are computed in float64. Source: Bluestein, 1970.
    """

    def __init__(self, n: int, inverse: bool = False):
        self.n, sign = n, 1 if inverse else -1
        points = max(2, 1 << (2 * n - 2).bit_length())
        radix = min(16, points)
        squares = np.arange(n) ** 2 % (2 * n)  # whole turns left out while numbers are whole
        chirp = np.exp(sign * 1j * np.pi * squares / n)
        filter_ = np.zeros(points, np.complex128)
        filter_[:n] = chirp.conj()
        filter_[points - n + 1 :] = chirp.conj()[:0:-1]
        tables = chirp, np.fft.fft(filter_)
        self._tables = [torch.from_numpy(t.astype(np.complex64)).to(DEVICE) for t in tables]
        self._shape = points // radix, padded(points, radix) * COMPLEX_BYTES
        self.code = "any_length.cu", (), f"fft_any_rows<{points}, {radix}, {sign}>"

    def __call__(self, x, out) -> None:
        """out[r] = the transform of x[r]."""
        rows = count(x) // self.n
        if rows:
            shape = rows, *self._shape
            kernel(self.code)[shape](floats(x), floats(out), self.n, *map(floats, self._tables))


FILTER_ROWS = Deal(16, 4, 3)
FILTER_COLUMNS = Deal(32, 8, 2)


class Filter:
    """Pictures filtered through the Fourier transform, three passes over memory.

    side: of the pictures, a power of two; taps: float32 [K, K]. Their number must be even: two go
    through one transform. The picture counts as periodic, so of what torch's conv2d gives without
    padding, out[:, : side - K + 1, : side - K + 1] is the same.
    """

    def __init__(self, side: int, taps, rows: Deal = FILTER_ROWS, columns: Deal = FILTER_COLUMNS):
        self.side, self.rows, self.columns = side, rows, columns
        padded_taps = torch.zeros(1, side, side, dtype=torch.complex64, device=DEVICE)
        height, width = taps.shape
        padded_taps[0, :height, :width] = taps
        self._filter = torch.empty_like(padded_taps)
        Pictures(side)(padded_taps, self._filter)
        self._filter = self._filter.conj().resolve_conj().contiguous()  # correlation
        self.codes = filter_codes(side, rows, columns)
        self._between = None

    def __call__(self, x, out) -> None:
        """x, out: float32 [pictures, side, side]."""
        pairs = x.shape[0] // 2
        if self._between is None or self._between.shape[0] != pairs:
            shape = pairs, self.side, self.side
            self._between = torch.empty(shape, dtype=torch.complex64, device=DEVICE)
        there, middle, back = map(kernel, self.codes)
        rows = self.rows.launch(self.side, pairs * self.side)
        columns = self.columns.launch(self.side, pairs * self.side)
        points = floats(self._between)
        there[rows](x, points)
        middle[columns](points, floats(self._filter))
        back[rows](points, out)


def filter_codes(side: int, rows: Deal, columns: Deal):
    """The kernels of `Filter`: rows, columns there and back, rows back."""
    codes = []
    for name, deal in (("pairs_rows", rows), ("filter_columns", columns), ("rows_pairs", rows)):
        template = f"{name}<{side}, {deal.radix}, {deal.together}, {deal.blocks}>"
        codes.append(("convolve.cu", deal.flags, template))
    return codes


class Direct:
    """The same filter directly: every result is a sum of K * K products.

    taps: float32 [K, K], K odd up to 31.
    """

    def __init__(self, side: int, taps, rows: int = 16):
        self.side, size = side, taps.shape[0]
        self._taps = taps_argument(taps)
        self._threads = TILE * TILE // rows
        tiles = -(-(side - size + 1) // TILE)
        self._grid = tiles, tiles
        self.code = direct_code(size, rows)

    def __call__(self, x, out) -> None:
        """x, out: float32 [pictures, side, side]."""
        grid = (*self._grid, x.shape[0])
        kernel(self.code)[grid, self._threads](x, out, self.side, self._taps)


TILE = 64  # as in direct.cu


def taps_argument(taps) -> ctypes.Structure:
    """The struct Taps of direct.cu."""
    values = ctypes.c_float * taps.numel()

    class Taps(ctypes.Structure):
        _fields_ = (("at", values),)

    return Taps(values(*taps.flatten().tolist()))


def direct_code(size: int, rows: int):
    """The kernel of `Direct`."""
    return "direct.cu", (), f"filter_directly<{size}, {rows}>"
