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
    instance,
    kernel,
    padded,
)
from utils.occupancy import ceil_div

#: Of real rows, by length; found on an H200. A thread has 16 points at most.
REAL_DEALS = {
    1024: Deal(16, 4, 6),
    4096: Deal(16, 1, 6),
    8192: Deal(16, 1, 3),
}


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
            shape = self.deal.launch(self.n // 2, rows)
            kernel(self.code)[shape](x, floats(out), rows)


def real_code(n: int, deal: Deal):
    """The kernel of `Real`."""
    values = (n // 2, deal.radix, deal.together, deal.blocks)
    return "real.cu", deal.flags, instance("fft_real_rows", values)


class AnyLength:
    """The transforms of rows of n points, any n up to half the longest of `plans.Rows`.

    Its tables are computed in float64. Source: Bluestein, 1970.
    """

    def __init__(self, n: int, inverse: bool = False):
        self.n = n
        sign = 1 if inverse else -1
        points = max(2, next_power_of_two(2 * n - 1))
        radix = min(16, points)
        squares = np.arange(n) ** 2 % (2 * n)  # whole turns left out while numbers are whole
        chirp = np.exp(sign * 1j * np.pi * squares / n)
        against = np.zeros(points, np.complex128)
        against[:n] = chirp.conj()
        against[points - n + 1 :] = chirp.conj()[:0:-1]
        self._chirp = to_device(chirp)
        self._spectrum = to_device(np.fft.fft(against))
        self._threads = points // radix
        self._bytes = padded(points, radix) * COMPLEX_BYTES
        template = instance("fft_any_rows", (points, radix, sign))
        self.code = ("any_length.cu", (), template)

    def __call__(self, x, out) -> None:
        """out[r] = the transform of x[r]."""
        rows = count(x) // self.n
        if rows:
            shape = (rows, self._threads, self._bytes)
            tables = (floats(self._chirp), floats(self._spectrum))
            kernel(self.code)[shape](floats(x), floats(out), self.n, *tables)


def next_power_of_two(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << (n - 1).bit_length()


def to_device(table: np.ndarray) -> torch.Tensor:
    """Complex numbers in float32 where the kernels run."""
    return torch.from_numpy(table.astype(np.complex64)).to(DEVICE)


FILTER_ROWS = Deal(16, 4, 3)
FILTER_COLUMNS = Deal(32, 8, 2)


class Filter:
    """Pictures filtered through the Fourier transform, three passes over memory.

    side: of the pictures, a power of two; taps: float32 [K, K]. Their number must be even: two go
    through one transform. The picture counts as periodic, so of what torch's conv2d gives without
    padding, out[:, : side - K + 1, : side - K + 1] is the same.
    """

    def __init__(
        self,
        side: int,
        taps,
        rows: Deal = FILTER_ROWS,
        columns: Deal = FILTER_COLUMNS,
    ):
        self.side = side
        self.rows = rows
        self.columns = columns
        padded_taps = complex_zeros(1, side, side)
        height, width = taps.shape
        padded_taps[0, :height, :width] = taps
        spectrum = torch.empty_like(padded_taps)
        Pictures(side)(padded_taps, spectrum)
        self._filter = spectrum.conj().resolve_conj().contiguous()  # correlation
        self.codes = filter_codes(side, rows, columns)
        self._between = None

    def __call__(self, x, out) -> None:
        """x, out: float32 [pictures, side, side]."""
        pairs = x.shape[0] // 2
        if self._between is None or len(self._between) != pairs:
            self._between = complex_zeros(pairs, self.side, self.side)
        there, middle, back = map(kernel, self.codes)
        rows = self.rows.launch(self.side, pairs * self.side)
        columns = self.columns.launch(self.side, pairs * self.side)
        points = floats(self._between)
        there[rows](x, points)
        middle[columns](points, floats(self._filter))
        back[rows](points, out)


def complex_zeros(*shape: int) -> torch.Tensor:
    """Zeros of complex64 where the kernels run."""
    return torch.zeros(shape, dtype=torch.complex64, device=DEVICE)


def filter_codes(side: int, rows: Deal, columns: Deal):
    """The kernels of `Filter`: rows, columns there and back, rows back."""
    deals = {
        "pairs_rows": rows,
        "filter_columns": columns,
        "rows_pairs": rows,
    }
    codes = []
    for name, deal in deals.items():
        values = (side, deal.radix, deal.together, deal.blocks)
        codes.append(("convolve.cu", deal.flags, instance(name, values)))
    return codes


class Direct:
    """The same filter directly: every result is a sum of K * K products.

    taps: float32 [K, K], K odd up to 31.
    """

    def __init__(self, side: int, taps, rows: int = 16):
        self.side = side
        size = taps.shape[0]
        self._taps = taps_argument(taps)
        self._threads = TILE * TILE // rows
        tiles = ceil_div(side - size + 1, TILE)
        self._grid = (tiles, tiles)
        self.code = direct_code(size, rows)

    def __call__(self, x, out) -> None:
        """x, out: float32 [pictures, side, side]."""
        grid = (*self._grid, len(x))
        launch = kernel(self.code)[grid, self._threads]
        launch(x, out, self.side, self._taps)


TILE = 64  # as in direct.cu


def taps_argument(taps) -> ctypes.Structure:
    flat = taps.flatten().tolist()
    values = ctypes.c_float * len(flat)

    class Taps(ctypes.Structure):
        _fields_ = (("at", values),)

    return Taps(values(*flat))


def direct_code(size: int, rows: int):
    """The kernel of `Direct`."""
    return "direct.cu", (), f"filter_directly<{size}, {rows}>"
