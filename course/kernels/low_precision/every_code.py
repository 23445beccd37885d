"""All codes of a format, and the numbers whose rounding could go wrong, against PyTorch's."""

import numpy as np
import torch

from course.kernels.low_precision import formats
from course.kernels.low_precision.formats import Format

#: format -> PyTorch's type
TYPES = {
    formats.FP16: torch.float16,
    formats.BF16: torch.bfloat16,
    formats.E5M2: torch.float8_e5m2,
    formats.E4M3: torch.float8_e4m3fn,
}
#: Bits of a code: the integers that hold it, in NumPy and in PyTorch
BITS = {
    8: (np.uint8, torch.uint8),
    16: (np.uint16, torch.uint16),
}


def decoded_by_torch(codes: np.ndarray, format: Format) -> np.ndarray:
    """The float32 numbers of codes."""
    kind, _ = BITS[format.bits]
    numbers = torch.from_numpy(codes.astype(kind)).view(TYPES[format])
    return numbers.float().numpy()


def encoded_by_torch(x: np.ndarray, format: Format) -> np.ndarray:
    """The codes of float32 numbers, to the nearest."""
    _, kind = BITS[format.bits]
    numbers = torch.from_numpy(x).to(TYPES[format])
    return numbers.view(kind).numpy().astype(np.uint32)


def telling(format: Format) -> np.ndarray:
    """Every number of a format, every midpoint of two, the floats just beside it; in range."""
    x = formats.numbers(format)
    wide = x.astype(np.float64)
    middle = ((wide[1:] + wide[:-1]) / 2).astype(np.float32)
    up = np.float32(np.inf)
    down = np.float32(-np.inf)
    above = np.nextafter(middle, up)
    below = np.nextafter(middle, down)
    return np.concatenate([x, middle, above, below])


def compare(format: Format) -> tuple[int, int]:
    """(codes, numbers) that were decoded and encoded as PyTorch does; AssertionError if one is not.

    NaN may have any of its codes.
    """
    codes = np.arange(1 << format.bits)
    ours = formats.decode(codes, format)
    theirs = decoded_by_torch(codes, format)
    equal = np.array_equal(ours, theirs, equal_nan=True)
    assert equal, f"{format.name}: decoded differently"
    known = ~np.isnan(ours)
    signs = np.signbit(ours) == np.signbit(theirs)
    assert signs[known].all(), "signs of zero"
    x = telling(format)
    same = formats.encode(x, format) == encoded_by_torch(x, format)
    assert same.all(), _first_difference(format, x[~same])
    return len(codes), len(x)


def compare_all() -> dict[Format, tuple[int, int]]:
    """{format: (codes decoded, numbers encoded)} of all formats that PyTorch has, too."""
    return {format: compare(format) for format in TYPES}


def _first_difference(format: Format, x: np.ndarray) -> str:
    """What to say of numbers that are encoded differently: the smallest of them, and how many."""
    (number,) = x[np.abs(x).argsort(kind="stable")[:1]]
    both = encode_both(number, format)
    ours, theirs = (" ".join(formats.fields(int(code), format)) for code in both)
    return (
        f"{format.name}: {len(x):,} numbers get another code than PyTorch gives them. The one "
        f"nearest to 0 is {number:g}: {ours}, and it should be {theirs}"
    )


def encode_both(number: float, format: Format) -> tuple[int, int]:
    """Our code of a number, and PyTorch's."""
    x = np.float32([number])
    (ours,) = formats.encode(x, format)
    (theirs,) = encoded_by_torch(x, format)
    return ours, theirs


def tried() -> None:
    """Say for every format whether all its codes are right. Nothing is raised."""
    for format in TYPES:
        try:
            decoded, encoded = compare(format)
        except AssertionError as mistake:
            print("✗", mistake)
            continue
        counts = f"{decoded:,} codes decoded and {encoded:,} numbers encoded"
        print(f"✓ {format.name} is right: {counts}, bit for bit")
