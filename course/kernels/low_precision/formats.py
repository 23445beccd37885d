"""Number formats, bit by bit: encoded and decoded by kernels/formats.cu on any machine."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
SPECIALS = {
    "infinities": 0,
    "one NaN": 1,
    "numbers": 2,
}
ROUNDING = {
    "nearest": 0,
    "toward zero": 1,
    "stochastic": 2,
}
THREADS = 128
#: Numbers that share a scale
MX_BLOCK = 32
NVFP4_BLOCK = 16
E8M0_BIAS = 127


@dataclass(frozen=True)
class Format:
    """A float format: bits of its exponent and mantissa, and what its largest exponent means.

    specials: a key of SPECIALS.
    """

    name: str
    exponent: int
    mantissa: int
    specials: str = "infinities"

    @property
    def bits(self) -> int:
        """With the sign."""
        return 1 + self.exponent + self.mantissa

    @property
    def arguments(self) -> tuple[int, int, int]:
        """As kernels take it."""
        return self.exponent, self.mantissa, SPECIALS[self.specials]

    @property
    def largest(self) -> float:
        """The largest finite number."""
        sign = 1 << self.bits - 1
        above = {
            "infinities": (1 << self.mantissa) + 1,
            "one NaN": 2,
            "numbers": 1,
        }
        code = sign - above[self.specials]
        (number,) = decode([code], self)
        return float(number)

    @property
    def smallest_normal(self) -> float:
        """Below it steps no longer shrink."""
        exponent = 2 - 2 ** (self.exponent - 1)
        return 2.0**exponent

    @property
    def smallest(self) -> float:
        """The smallest number above zero: the step between subnormals."""
        return self.smallest_normal * 2.0**-self.mantissa


FP32 = Format("fp32", 8, 23)
TF32 = Format("TF32", 8, 10)
FP16 = Format("fp16", 5, 10)
BF16 = Format("bf16", 8, 7)
E5M2 = Format("e5m2", 5, 2)
E4M3 = Format("e4m3", 4, 3, "one NaN")
E2M1 = Format("e2m1", 2, 1, "numbers")
FORMATS = (
    FP32,
    TF32,
    FP16,
    BF16,
    E5M2,
    E4M3,
    E2M1,
)


@yours.cache
def _module():
    return cuda_c.load(KERNELS / "formats.cu")


def _launch(name: str, count: int):
    """A kernel of formats.cu, a thread for each of `count`."""
    blocks = max(1, ceil_div(count, THREADS))
    return _module()[name][blocks, THREADS]


def _unwritten(shape) -> np.ndarray:
    """Room for codes, full of what no kernel writes."""
    return np.full(shape, 0xDEADBEEF, np.uint32)


def decode(codes, format: Format) -> np.ndarray:
    """The float32 numbers of codes (whole numbers, any shape)."""
    codes = np.ascontiguousarray(codes, np.uint32)
    x = np.full(codes.shape, np.nan, np.float32)
    if codes.size:
        launch = _launch("decode_all", codes.size)
        launch(x, codes, codes.size, *format.arguments)
    return x


def encode(
    x,
    format: Format,
    rounding: str = "nearest",
    *,
    saturate=False,
    seed: int = 0,
):
    """The codes, uint32, of float32 numbers of any shape.

    rounding: a key of ROUNDING. saturate: what is too large becomes the largest number, not
    infinity or NaN. seed: of stochastic rounding.
    """
    x = np.ascontiguousarray(x, np.float32)
    codes = _unwritten(x.shape)
    how = (ROUNDING[rounding], int(saturate), seed)
    if x.size:
        launch = _launch("encode_all", x.size)
        launch(codes, x, x.size, *format.arguments, *how)
    return codes


def rounded(
    x,
    format: Format,
    rounding: str = "nearest",
    **how,
) -> np.ndarray:
    """Float32 numbers as a format keeps them."""
    return decode(encode(x, format, rounding, **how), format)


def numbers(format: Format) -> np.ndarray:
    """All finite numbers of a format of at most 16 bits, in order, each once."""
    every = decode(np.arange(1 << format.bits), format)
    return np.unique(every[np.isfinite(every)])


def spacing(x: float, format: Format) -> float:
    """The distance from |x| to the next larger number of the format."""
    octave = np.log2(format.smallest_normal)
    if x:
        octave = max(octave, np.floor(np.log2(abs(x))))
    return float(2.0 ** (octave - format.mantissa))


def fields(code: int, format: Format) -> tuple[str, str, str]:
    """(sign, exponent, mantissa) of a code, as zeros and ones."""
    bits = f"{code:0{format.bits}b}"
    mantissa = 1 + format.exponent
    return bits[0], bits[1:mantissa], bits[mantissa:]


# ---- blocks that share a scale


def to_mx(x, format: Format = E4M3) -> tuple[np.ndarray, np.ndarray]:
    """(codes, scales) of MXFP8 (or with e2m1 MXFP4): 32 neighbours share a power of two.

    x: a multiple of 32 numbers. scales: e8m0 codes, 2^(code - 127).
    """
    x = np.ascontiguousarray(x, np.float32)
    codes = _unwritten(x.shape)
    scales = _unwritten(x.size // MX_BLOCK)
    launch = _launch("encode_mx", scales.size)
    launch(codes, scales, x, scales.size, *format.arguments)
    return codes, scales


def from_mx(codes, scales, format: Format = E4M3) -> np.ndarray:
    """What the codes and scales of `to_mx` stand for, float32."""
    powers = np.ldexp(np.float32(1), scales.astype(int) - E8M0_BIAS)
    values = decode(codes, format).reshape(-1, MX_BLOCK)
    return (values * powers[:, None]).reshape(codes.shape)


def to_nvfp4(x) -> tuple[np.ndarray, np.ndarray, np.float32]:
    """(codes, scales, tensor scale) of NVFP4: 16 neighbours share an e4m3, all of them a float32.

    x: a multiple of 16 numbers. The tensor's scale makes its largest block's scale e4m3's largest.
    """
    x = np.ascontiguousarray(x, np.float32)
    largest = np.float32(np.abs(x).max(initial=0))
    tensor_scale = np.float32(1)
    if largest:
        tensor_scale = np.float32(largest / (6 * 448))
    codes = _unwritten(x.shape)
    scales = _unwritten(x.size // NVFP4_BLOCK)
    launch = _launch("encode_nvfp4", scales.size)
    launch(codes, scales, x, scales.size, float(tensor_scale))
    return codes, scales, tensor_scale


def from_nvfp4(codes, scales, tensor_scale) -> np.ndarray:
    """What the result of `to_nvfp4` stands for, float32."""
    of_blocks = decode(scales, E4M3) * tensor_scale
    values = decode(codes, E2M1).reshape(-1, NVFP4_BLOCK)
    return (values * of_blocks[:, None]).reshape(codes.shape)
