"""Compare two arrays element by element: what may be compared, how exactly, what differs.

`utils.check` is the face of this module, `utils.check.mismatch` explains what it finds.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

# Quiet NaNs whose low bits no arithmetic produces; for integers a pattern that data rarely holds.
_POISON = {
    np.dtype(np.float16): (np.uint16, 0x7EAD),
    np.dtype(np.float32): (np.uint32, 0x7FC0DEAD),
    np.dtype(np.float64): (np.uint64, 0x7FF8DEADBEEFDEAD),
    np.dtype(bool): (np.uint8, 0xAB),
}
_POISON_INT = 0xABADCAFEDEADBEAB

# Elements compared at a time: the float64 copies stay small however long the arrays are
CHUNK = 1 << 20
# about as many wrong elements of each chunk are kept, to recognise what the error looks like
_SAMPLES = 256
OK, WRONG, NAN, UNWRITTEN = range(4)

# Number of standard deviations in the probabilistic bound: 8 fails once in about 10^13 elements.
_LAMBDA = 8
_DEFAULT_OPS = 8


# ---- poison


def _poison_bits(dtype: np.dtype) -> tuple[type, int]:
    """Unsigned type of the same size as `dtype` (half of it if complex), and the pattern in it."""
    if dtype.kind == "c":
        dtype = np.dtype(f"f{dtype.itemsize // 2}")
    if dtype in _POISON:
        return _POISON[dtype]
    if dtype.kind in "iu":
        unsigned = np.dtype(f"u{dtype.itemsize}").type
        largest = np.iinfo(unsigned).max
        return unsigned, _POISON_INT & int(largest)
    raise TypeError(
        f"poison: no pattern for dtype {dtype}; known are bool, integers, floats and complex"
    )


def poison(shape: int | Sequence[int], dtype: DTypeLike = np.float32) -> np.ndarray:
    """A new array of `shape` filled with a sentinel, so that elements nobody writes show.

    Floats get a NaN whose payload arithmetic does not produce, integers a pattern that data rarely
    holds. One byte has only 256 values: an 8-bit element is called unwritten only where it is wrong
    as well.
    """
    dtype = np.dtype(dtype)
    unsigned, bits = _poison_bits(dtype)
    out = np.empty(shape, dtype)
    out.reshape(-1).view(unsigned).fill(bits)
    return out


def random_poison(
    shape: int | Sequence[int], dtype: DTypeLike, rng: np.random.Generator
) -> np.ndarray:
    """A new array of random NaNs, each with other low bits, or of random integers.

    Where `poison` marks what nobody wrote, this makes a copied element show: no two are alike.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.ones(shape, bool)
    size = int(np.prod(shape))
    bits = f"u{dtype.itemsize}"
    nbytes = size * dtype.itemsize
    # drawn in the longest words: half the time of one number an element
    words = rng.integers(0, 2**64 - 1, size=(nbytes + 7) // 8, dtype=np.uint64, endpoint=True)
    array: np.ndarray = words.view(np.uint8)[:nbytes].view(bits).reshape(shape)
    if dtype.kind == "f":
        array |= np.array(np.nan, dtype).view(bits)
    return array.view(dtype)


def _is_poison(values: np.ndarray) -> np.ndarray:
    """Mask of the elements of a contiguous 1-D array that still hold the sentinel."""
    try:
        unsigned, bits = _poison_bits(values.dtype)
    except TypeError:
        return np.zeros(values.shape, bool)
    same: np.ndarray = values.view(unsigned) == bits
    if values.dtype.kind == "c":
        same = np.logical_or.reduce(same.reshape(-1, 2), axis=1)
    return same


# ---- what may be compared


class Operand(NamedTuple):
    """One side of a comparison, on the host.

    dtype: the name it had; weak: whether it was a Python number.
    """

    values: np.ndarray
    dtype: str
    weak: bool


def operand(x: Any, role: str) -> Operand:
    """Bring `x` (array, tensor, device array, scalar, nested list) to the host as NumPy values."""
    if type(x) in (bool, int, float, complex, list, tuple):
        values = np.asarray(x)
        if values.dtype.kind in "biufc":
            return Operand(values, type(x).__name__, True)
    torch = sys.modules.get("torch")  # a tensor can only exist if torch has been imported
    if torch is not None and isinstance(x, torch.Tensor):
        name = str(x.dtype).removeprefix("torch.")
        x = x.detach().cpu().resolve_conj().resolve_neg()
        if x.dtype == torch.bfloat16:
            x = x.float()
        return Operand(x.numpy(), name, False)
    if hasattr(x, "copy_to_host"):
        x = x.copy_to_host()
    elif hasattr(x, "__cuda_array_interface__"):
        from numba import cuda

        x = cuda.as_cuda_array(x).copy_to_host()
    values = np.asarray(x)
    if values.dtype.kind not in "biufc":
        kind = "None" if x is None else f"{type(x).__name__} of dtype {values.dtype}"
        hint = " (did a function forget its return?)" if x is None else ""
        raise TypeError(
            f"check: {role} is {kind}{hint}; arrays, tensors and numbers can be compared"
        )
    return Operand(values, str(values.dtype), False)


def _unit_roundoff(*sides: Operand) -> float:
    """The coarser unit roundoff of the two: half the distance from 1 to the next number.

    Python numbers do not tell in which precision they were computed, so float32 is assumed.
    """
    single = 2.0**-24
    u = []
    for side in sides:
        dtype = side.values.dtype
        if side.dtype == "bfloat16":
            u.append(2.0**-8)
        elif dtype.kind not in "fc":
            continue
        elif side.weak:
            u.append(single)
        else:
            spacing = float(np.finfo(dtype).eps)
            u.append(spacing / 2)
    return max(u, default=single)


def _underflow(side: Operand) -> float:
    """What one operation may lose near 0, where float32 results may be flushed to 0.

    Half results are not.
    """
    if side.values.dtype == np.float16:
        return float(np.finfo(np.float16).smallest_subnormal)
    return float(np.finfo(np.float32).tiny)


def _size(side: Operand) -> int:
    """Bytes of an element."""
    if side.dtype == "bfloat16":
        return 2
    return side.values.dtype.itemsize


def wrong_dtype(actual: Operand, expected: Operand, required: DTypeLike | None) -> str | None:
    """Why the result's dtype is not acceptable, or None."""
    if required is not None:
        wanted = str(np.dtype(required))
        if actual.dtype != wanted and not actual.weak:
            return f"is {actual.dtype}, must be {wanted}"
        return None
    if actual.weak or expected.weak:
        return None
    kind = actual.values.dtype.kind
    wanted = expected.values.dtype.kind
    narrower = _size(actual) < _size(expected)
    both_whole = kind in "iu" and wanted in "iu"
    same_kind = kind == wanted or (both_whole and narrower)
    if same_kind and _size(actual) <= _size(expected):
        return None
    text = f"is {actual.dtype}, the reference is {expected.dtype}"
    if kind == "f" and wanted in "iu":
        text += f" (if the reference is right, give it as {actual.dtype})"
    return text


# ---- tolerance


class Tolerance(NamedTuple):
    """|actual - expected| may be up to absolute + relative * max(|expected|, scale)."""

    relative: float
    absolute: float
    scale: float
    text: str

    def of(self, expected: np.ndarray) -> np.ndarray:
        size = np.maximum(np.abs(expected), self.scale)
        allowed: np.ndarray = self.absolute + self.relative * size
        return allowed


EXACT = Tolerance(0.0, 0.0, 0.0, "none: values must be equal")


def rounding_bound(ops: int, unit_roundoff: float) -> float:
    """Relative error that `ops` dependent roundings may cause.

    The smaller of the certain bound gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd ed., section 3.1) and the probabilistic bound exp(lambda sqrt(n) u) -
    1 (Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci.
    Comput. 41, 2019) with lambda = 8, to leading order. Both are relative to the sum of the
    magnitudes of the terms, which a check does not know; the typical magnitude of the results
    stands in for it.
    """
    if ops < 1:
        raise ValueError(
            f"ops is the number of floating-point operations per element, at least 1, not {ops}"
        )
    nu = ops * unit_roundoff
    certain = nu / (1 - nu) if nu < 1 else math.inf
    spread = _LAMBDA * math.sqrt(ops) * unit_roundoff
    likely = math.expm1(min(spread, 100))
    return min(certain, likely)


def _typical_magnitude(values: np.ndarray) -> float:
    """Median magnitude of the finite non-zero values (of a fixed random sample of many)."""
    if values.size > 1 << 16:
        rng = np.random.default_rng(0)
        sample = rng.integers(0, values.size, 1 << 16)
        values = values[sample]
    wide = widest(values, values)
    magnitude = np.abs(values.astype(wide))
    usable = np.isfinite(magnitude) & (magnitude > 0)
    if not usable.any():
        return 0.0
    return float(np.median(magnitude[usable]))


def tolerance_of(
    actual: Operand,
    expected: Operand,
    ops: int | None,
    rtol: float | None,
    atol: float | None,
) -> Tolerance:
    """The tolerance of rtol and atol, else the one that follows from the number of operations."""
    if rtol is not None or atol is not None:
        rtol = float(rtol or 0)
        atol = float(atol or 0)
        if not (0 <= rtol < math.inf and 0 <= atol < math.inf):
            raise ValueError(
                f"rtol and atol must be finite and not negative, not {rtol} and {atol}"
            )
        if not rtol and not atol:
            return EXACT
        given = []
        if rtol:
            given.append(f"{rtol:.2g} × |expected|")
        if atol:
            given.append(f"{atol:.2g}")
        return Tolerance(rtol, atol, 0.0, " + ".join(given) + ", as given")
    kinds = {actual.values.dtype.kind, expected.values.dtype.kind}
    if kinds <= set("biu"):
        return EXACT
    n = _DEFAULT_OPS if ops is None else ops
    bound = rounding_bound(n, _unit_roundoff(actual, expected))
    if expected.weak or _size(expected) <= _size(actual):
        bound *= 2  # the reference is as coarse as the result and has rounding errors of its own
    if bound >= 0.5:
        raise ValueError(
            f"check: after {n:,} operations in {actual.dtype} rounding alone may cost more than "
            "half of the value, so this check would accept anything. Accumulate in a wider type, "
            "or give rtol= and atol=."
        )
    # Terms may cancel, so an element close to 0 is judged by the size of its neighbours, not by its
    # own.
    scale = _typical_magnitude(expected.values.reshape(-1)) if n > 1 else 0.0
    what = f"{n:,} operation{'s' * (n > 1)} an element in {actual.dtype}"
    text = f"{bound:.2g} × max(|expected|, {scale:.2g}): rounding of {what}"
    return Tolerance(bound, n * _underflow(actual), scale, text)


# ---- comparison


class Differences(NamedTuple):
    """What a pass over both arrays found. `codes` is None while nothing differs."""

    actual: np.ndarray  # flat
    expected: np.ndarray  # flat
    shape: tuple
    tolerance: Tolerance
    codes: np.ndarray | None  # flat uint8: OK, WRONG, NAN or UNWRITTEN
    wrong: int
    first: int
    worst: int
    largest: float
    samples: np.ndarray  # flat indices of some of the WRONG elements, from everywhere


def grade(a: np.ndarray, e: np.ndarray, tolerance: Tolerance) -> tuple[np.ndarray, np.ndarray]:
    """Code (OK, WRONG, NAN, UNWRITTEN) and absolute error, in float64, of a chunk's elements."""
    wide = widest(a, e)
    with np.errstate(all="ignore"):
        af: np.ndarray = a.astype(wide)
        ef: np.ndarray = e.astype(wide)
        errors = np.abs(af - ef)
        agree = a == e
        errors[agree] = 0  # also inf - inf
        if tolerance is not EXACT:
            agree |= errors <= tolerance.of(ef)
            agree &= np.isfinite(ef) | (a == e)  # a tolerance of infinity would accept anything
    codes = np.where(agree, OK, WRONG).astype(np.uint8)
    nan = np.isnan(af)
    codes[nan] = NAN
    codes[nan & np.isnan(ef)] = OK
    unwritten = _is_poison(a)
    if a.dtype.kind in "iu":
        unwritten &= ~agree  # data may hold the pattern by right
    codes[unwritten] = UNWRITTEN
    errors[nan] = np.inf
    errors[nan & (codes == OK)] = 0
    return codes, errors


def widest(a: np.ndarray, e: np.ndarray) -> type:
    """The type in which values of both arrays are compared."""
    is_complex = "c" in (a.dtype.kind, e.dtype.kind)
    return np.complex128 if is_complex else np.float64


def agreement(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float = 0.0
) -> np.ndarray:
    """Mask of the elements that agree: integers exactly, floats within a tolerance.

    rtol: allowed of max(|expected|, typical |expected|). The typical magnitude is the median, so
        that one large value hides no wrong small one.
    atol: allowed besides, for sums whose terms cancel: where there is a single element, or all are
        close to 0, the typical magnitude says nothing of the terms.
    NaN agrees with nothing, not even with NaN: what an exercise asks for is always a number.
    """
    tolerance = EXACT
    if expected.dtype.kind in "fc":
        scale = _typical_magnitude(expected.reshape(-1))
        absolute = max(atol, float(np.finfo(np.float32).tiny))
        tolerance = Tolerance(rtol, absolute, scale, f"{rtol:.2g} × max(|expected|, {scale:.2g})")
    codes, _ = grade(actual.reshape(-1), expected.reshape(-1), tolerance)
    agrees: np.ndarray = (codes == OK).reshape(expected.shape) & ~np.isnan(expected)
    return agrees


def differences(actual: Operand, expected: Operand, tolerance: Tolerance) -> Differences:
    """Compare two operands of the same shape, or one with a single number, chunk by chunk."""
    a = np.ascontiguousarray(actual.values).reshape(-1)
    e = np.ascontiguousarray(expected.values).reshape(-1)
    e = np.broadcast_to(e, a.shape)  # a single number stands for every element, without a copy
    codes = None
    samples = [np.empty(0, np.int64)]
    wrong = 0
    first = -1
    worst = -1
    worst_error = -1.0
    largest = 0.0
    for start in range(0, a.size, CHUNK):
        piece = slice(start, start + CHUNK)
        chunk, errors = grade(a[piece], e[piece], tolerance)
        largest = max(largest, float(errors.max()))
        bad = np.flatnonzero(chunk)
        if not bad.size:
            continue
        if codes is None:
            codes = np.zeros(a.size, np.uint8)
            first = start + int(bad[0])
        codes[piece] = chunk
        wrong += bad.size
        # "worst" is the largest finite error; NaN and unwritten elements are reported anyway
        is_wrong = chunk == WRONG
        finite = np.where(is_wrong & np.isfinite(errors), errors, -1.0)
        at = int(finite.argmax())
        if finite[at] > worst_error:
            worst = start + at
            worst_error = float(finite[at])
        written = np.flatnonzero(is_wrong)
        step = max(1, written.size // _SAMPLES)
        samples.append(start + written[::step])
    some = np.concatenate(samples)
    shape = actual.values.shape
    return Differences(a, e, shape, tolerance, codes, wrong, first, worst, largest, some)
