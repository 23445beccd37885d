"""Compare a kernel's result with a reference, and say where and how it is wrong.

    out = poison(n)                       # every element starts out as "never written"
    kernel[grid, block](out, a, b)
    check.close(out, a + b)               # ✓ 1,024 values agree, largest error 0

`close` compares in float64 with a tolerance that follows from the number of operations, `equal` compares
exactly. Both take NumPy arrays, torch tensors, Numba and other device arrays, and scalars; both raise a
`CheckError` that names the first and the worst difference, shows what stands around it, and says what the
pattern looks like. `diagnose` gives the same findings as a list.

Two decisions to know:

* NaN never passes, except where the reference itself is NaN; an element that still holds the poison never
  passes, not even there. Infinity passes only where the reference is the same infinity.
* The reference may be more precise than the result (float64 for float32, int64 for int32), never less.
"""

import base64
import html
import io
import linecache
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Quiet NaNs whose low bits no arithmetic produces; for integers a pattern that data rarely holds.
_POISON = {
    np.dtype(np.float16): (np.uint16, 0x7EAD),
    np.dtype(np.float32): (np.uint32, 0x7FC0DEAD),
    np.dtype(np.float64): (np.uint64, 0x7FF8DEADBEEFDEAD),
    np.dtype(bool): (np.uint8, 0xAB),
}
_POISON_INT = 0xABADCAFEDEADBEAB

_CHUNK = 1 << 20  # elements compared at a time: the float64 copies stay small however long the arrays are
_SAMPLES = 256  # about as many wrong elements of each chunk are kept, to recognise what the error looks like
_OK, _WRONG, _NAN, _UNWRITTEN = range(4)

# Number of standard deviations in the probabilistic bound: 8 fails once in about 10^13 elements.
_LAMBDA = 8
_DEFAULT_OPS = 8


# --- poison ------------------------------------------------------------------------------------------------


def _poison_bits(dtype: np.dtype) -> tuple[type, int]:
    """Unsigned type of the same size as `dtype` (half of it if complex), and the pattern in it."""
    if dtype.kind == "c":
        dtype = np.dtype(f"f{dtype.itemsize // 2}")
    if dtype in _POISON:
        return _POISON[dtype]
    if dtype.kind in "iu":
        return np.dtype(f"u{dtype.itemsize}").type, _POISON_INT & ((1 << 8 * dtype.itemsize) - 1)
    raise TypeError(f"poison: no pattern for dtype {dtype}; known are bool, integers, floats and complex")


def poison(shape, dtype=np.float32) -> np.ndarray:
    """A new array of `shape` filled with a sentinel, so that elements nobody writes are found by the checks.

    Floats get a NaN whose payload arithmetic does not produce, integers a pattern that data rarely holds.
    One byte has only 256 values: an 8-bit element is called unwritten only where it is wrong as well.
    """
    dtype = np.dtype(dtype)
    unsigned, bits = _poison_bits(dtype)
    out = np.empty(shape, dtype)
    out.reshape(-1).view(unsigned).fill(bits)
    return out


def _is_poison(values: np.ndarray) -> np.ndarray:
    """Mask of the elements of a contiguous 1-D array that still hold the sentinel."""
    try:
        unsigned, bits = _poison_bits(values.dtype)
    except TypeError:
        return np.zeros(values.shape, bool)
    same = values.view(unsigned) == bits
    return same.reshape(-1, 2).any(axis=1) if values.dtype.kind == "c" else same


# --- what may be compared ----------------------------------------------------------------------------------


class _Operand(NamedTuple):
    """One side of a comparison, on the host. `dtype` is the name it had; `weak` marks Python numbers."""

    values: np.ndarray
    dtype: str
    weak: bool


def _operand(x, role: str) -> _Operand:
    """Bring `x` (array, tensor, device array, scalar, nested list) to the host as NumPy values."""
    if type(x) in (bool, int, float, complex, list, tuple):
        values = np.asarray(x)
        if values.dtype.kind in "biufc":
            return _Operand(values, type(x).__name__, True)
    torch = sys.modules.get("torch")  # a tensor can only exist if torch has been imported
    if torch is not None and isinstance(x, torch.Tensor):
        name = str(x.dtype).removeprefix("torch.")
        x = x.detach().cpu().resolve_conj().resolve_neg()
        return _Operand((x.float() if x.dtype == torch.bfloat16 else x).numpy(), name, False)
    if hasattr(x, "copy_to_host"):
        x = x.copy_to_host()
    elif hasattr(x, "__cuda_array_interface__"):
        from numba import cuda

        x = cuda.as_cuda_array(x).copy_to_host()
    values = np.asarray(x)
    if values.dtype.kind not in "biufc":
        kind = "None" if x is None else f"{type(x).__name__} of dtype {values.dtype}"
        hint = " (did a function forget its return?)" if x is None else ""
        raise TypeError(f"check: {role} is {kind}{hint}; arrays, tensors and numbers can be compared")
    return _Operand(values, str(values.dtype), False)


def _unit_roundoff(*sides: _Operand) -> float:
    """The coarser unit roundoff of the two: half the distance from 1 to the next number.

    Python numbers do not tell in which precision they were computed, so float32 is assumed.
    """
    u = []
    for side in sides:
        if side.dtype == "bfloat16":
            u.append(2.0**-8)
        elif side.weak and side.values.dtype.kind in "fc":
            u.append(2.0**-24)
        elif side.values.dtype.kind in "fc":
            u.append(float(np.finfo(side.values.dtype).eps) / 2)
    return max(u, default=2.0**-24)


def _underflow(side: _Operand) -> float:
    """What one operation may lose near 0, where float32 results may be flushed to 0 and half ones are not."""
    half = side.values.dtype == np.float16
    return float(np.finfo(np.float16).smallest_subnormal if half else np.finfo(np.float32).tiny)


def _size(side: _Operand) -> int:
    return 2 if side.dtype == "bfloat16" else side.values.dtype.itemsize


def _wrong_dtype(actual: _Operand, expected: _Operand, required) -> str | None:
    """Why the result's dtype is not acceptable, or None."""
    if required is not None:
        wanted = str(np.dtype(required))
        if actual.dtype != wanted and not actual.weak:
            return f"is {actual.dtype}, must be {wanted}"
        return None
    if actual.weak or expected.weak:
        return None
    kind, wanted = actual.values.dtype.kind, expected.values.dtype.kind
    same_kind = kind == wanted or (kind in "iu" and wanted in "iu" and _size(actual) < _size(expected))
    if same_kind and _size(actual) <= _size(expected):
        return None
    text = f"is {actual.dtype}, the reference is {expected.dtype}"
    if kind == "f" and wanted in "iu":
        text += f" (if the reference is right, give it as {actual.dtype})"
    return text


# --- tolerance ---------------------------------------------------------------------------------------------


class _Tolerance(NamedTuple):
    """|actual - expected| may be up to absolute + relative * max(|expected|, scale)."""

    relative: float
    absolute: float
    scale: float
    text: str

    def of(self, expected: np.ndarray) -> np.ndarray:
        return self.absolute + self.relative * np.maximum(np.abs(expected), self.scale)


_EXACT = _Tolerance(0.0, 0.0, 0.0, "none: values must be equal")


def rounding_bound(ops: int, unit_roundoff: float) -> float:
    """Relative error that `ops` dependent roundings may cause.

    The smaller of the certain bound gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
    Algorithms, 2nd ed., section 3.1) and the probabilistic bound exp(lambda sqrt(n) u) - 1 (Higham and Mary,
    A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019) with lambda = 8,
    to leading order. Both are relative to the sum of the magnitudes of the terms.
    """
    if ops < 1:
        raise ValueError(f"ops is the number of floating-point operations per element, at least 1, not {ops}")
    nu = ops * unit_roundoff
    certain = nu / (1 - nu) if nu < 1 else math.inf
    likely = math.expm1(min(_LAMBDA * math.sqrt(ops) * unit_roundoff, 100))
    return min(certain, likely)


def _typical_magnitude(values: np.ndarray) -> float:
    """Median magnitude of the finite non-zero values (of a fixed random sample where there are many)."""
    if values.size > 1 << 16:
        values = values[np.random.default_rng(0).integers(0, values.size, 1 << 16)]
    magnitude = np.abs(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64))
    magnitude = magnitude[np.isfinite(magnitude) & (magnitude > 0)]
    return float(np.median(magnitude)) if magnitude.size else 0.0


def _tolerance(actual: _Operand, expected: _Operand, ops, rtol, atol) -> _Tolerance:
    if rtol is not None or atol is not None:
        rtol, atol = float(rtol or 0), float(atol or 0)
        if not (0 <= rtol < math.inf and 0 <= atol < math.inf):
            raise ValueError(f"rtol and atol must be finite and not negative, not {rtol} and {atol}")
        given = [f"{rtol:.2g} × |expected|"] * (rtol > 0) + [f"{atol:.2g}"] * (atol > 0)
        return _Tolerance(rtol, atol, 0.0, (" + ".join(given) or "0") + ", as given")
    if actual.values.dtype.kind in "biu" and expected.values.dtype.kind in "biu":
        return _EXACT
    n = _DEFAULT_OPS if ops is None else ops
    u = _unit_roundoff(actual, expected)
    bound = rounding_bound(n, u)
    if expected.weak or _size(expected) <= _size(actual):
        bound *= 2  # the reference is as coarse as the result and has rounding errors of its own
    if bound >= 0.5:
        raise ValueError(
            f"check: after {n:,} operations in {actual.dtype} rounding alone may cost more than half of the "
            "value, so this check would accept anything. Accumulate in a wider type, or give rtol= and atol=."
        )
    # Terms may cancel, so an element close to 0 is judged by the size of its neighbours, not by its own.
    scale = _typical_magnitude(expected.values.reshape(-1)) if n > 1 else 0.0
    what = f"{n:,} operation{'s' * (n > 1)} an element in {actual.dtype}"
    text = f"{bound:.2g} × max(|expected|, {scale:.2g}): rounding of {what}"
    return _Tolerance(bound, n * _underflow(actual), scale, text)


# --- comparison --------------------------------------------------------------------------------------------


class _Differences(NamedTuple):
    """What a pass over both arrays found. `codes` is None while nothing differs."""

    actual: np.ndarray  # flat
    expected: np.ndarray  # flat; one element if the reference is a scalar
    shape: tuple
    tolerance: _Tolerance
    codes: np.ndarray | None  # flat uint8: _OK, _WRONG, _NAN or _UNWRITTEN
    wrong: int
    first: int
    worst: int
    largest: float
    samples: np.ndarray  # flat indices of some of the _WRONG elements, from everywhere

    def want(self, index):
        return self.expected[index if self.expected.size > 1 or self.actual.size == 1 else index * 0]


def _errors(a: np.ndarray, e: np.ndarray, tolerance: _Tolerance):
    """(codes, absolute errors in float64) of one chunk."""
    exact = tolerance is _EXACT
    wide = np.complex128 if "c" in (a.dtype.kind, e.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        af, ef = a.astype(wide), e.astype(wide)
        errors = np.abs(af - ef)
        agree = a == e
        errors[agree] = 0  # also inf - inf
        if not exact:
            agree |= errors <= tolerance.of(ef)
            agree &= np.isfinite(ef) | (a == e)  # a tolerance of infinity would accept anything
    codes = np.where(agree, _OK, _WRONG).astype(np.uint8)
    nan = np.isnan(af)
    codes[nan] = np.where(np.isnan(np.broadcast_to(ef, af.shape)[nan]), _OK, _NAN)
    unwritten = _is_poison(a)
    if a.dtype.kind in "iu":
        unwritten &= ~agree  # data may hold the pattern by right
    codes[unwritten] = _UNWRITTEN
    errors[nan] = np.where(codes[nan] == _OK, 0, np.inf)
    return codes, errors


def _differences(actual: _Operand, expected: _Operand, tolerance: _Tolerance) -> _Differences:
    a = np.ascontiguousarray(actual.values).reshape(-1)
    e = np.ascontiguousarray(expected.values).reshape(-1)
    codes, samples, wrong, first, worst = None, [], 0, -1, -1
    largest, worst_error = 0.0, -1.0
    for start in range(0, a.size, _CHUNK):
        here = slice(start, start + _CHUNK)
        chunk, errors = _errors(a[here], e[here] if e.size == a.size else e, tolerance)
        largest = max(largest, float(errors.max()))
        bad = np.flatnonzero(chunk)
        if not bad.size:
            continue
        if codes is None:
            codes, first = np.zeros(a.size, np.uint8), start + int(bad[0])
        codes[here] = chunk
        wrong += bad.size
        # "worst" is the largest finite error; NaN and unwritten elements are reported as such anyway
        finite = np.where((chunk == _WRONG) & np.isfinite(errors), errors, -1.0)
        at = int(finite.argmax())
        if finite[at] > worst_error:
            worst, worst_error = start + at, float(finite[at])
        written = np.flatnonzero(chunk == _WRONG)
        samples.append(start + written[:: max(1, written.size // _SAMPLES)])
    found = np.concatenate(samples) if samples else np.empty(0, np.int64)
    return _Differences(a, e, actual.values.shape, tolerance, codes, wrong, first, worst, largest, found)


# --- what the error looks like -----------------------------------------------------------------------------


class Reason(str):
    """A sentence about an error, with a machine-readable `key`."""

    key: str

    def __new__(cls, key: str, sentence: str):
        self = super().__new__(cls, sentence)
        self.key = key
        return self


_AXES = {1: ("element",), 2: ("row", "column"), 3: ("layer", "row", "column")}


def _axis_name(shape, axis: int) -> str:
    return _AXES.get(len(shape), ())[axis] if len(shape) in _AXES else f"slice of axis {axis}"


def _region(mask: np.ndarray) -> tuple[str, str]:
    """(key, words) for where a boolean mask of the result's shape is set."""
    shape, total, count = mask.shape, mask.size, int(np.count_nonzero(mask))
    if count == total:
        return "all", "every element"
    if count == 1:
        return "one", f"only element {_index(int(mask.argmax()), shape)}"
    # whole slabs at the low and the high end of each axis: a missing tail, edge or border
    low, high = [], []
    for axis in range(mask.ndim):
        full = mask.all(axis=tuple(i for i in range(mask.ndim) if i != axis))
        run = int(full.argmin())
        low.append(run)
        high.append(int(full[::-1].argmin()))
    inner = math.prod(n - i - j for n, i, j in zip(shape, low, high, strict=True))
    if count == total - inner:
        words = []
        for side, runs in (("first", low), ("last", high)):
            for axis, run in enumerate(runs):
                if run:
                    name = _axis_name(shape, axis)
                    words.append(f"the {side} {name}" if run == 1 else f"the {side} {run:,} {name}s")
        if mask.ndim == 1 and not low[0]:
            return "tail", f"every element from index {total - high[0]:,} on"
        key = "border" if any(low) and any(high) else "head" if any(low) else "edge"
        return key, ", ".join(words[:-1]) + " and " * (len(words) > 1) + words[-1]
    for axis in range(mask.ndim if mask.ndim > 1 else 0):
        full = np.flatnonzero(mask.all(axis=tuple(i for i in range(mask.ndim) if i != axis)))
        if 0 < full.size <= 4 and full.size * (total // shape[axis]) == count:
            name = _axis_name(shape, axis) + "s" * (full.size > 1)
            return "slice", f"{name} {' and '.join(str(i) for i in full)}"
    flat = mask.reshape(-1)
    first = int(flat.argmax())
    if count == total - first:
        return "tail", f"every element from {_index(first, shape)} on"
    where = np.flatnonzero(flat[: first + _CHUNK])
    step = int(np.gcd.reduce(np.diff(where))) if where.size > 2 else 1
    if step > 1 and np.count_nonzero(flat[first % step :: step]) == count:
        density = "only every" if count > 0.9 * (total // step) else "only some of every"
        return "every", f"{density} {_ordinal(step)} element ({step} i + {first % step})"
    return "some", f"{count:,} elements"


def _singular(where: str) -> bool:
    """Does this subject take "differs" rather than "differ"?"""
    several = where.endswith("s") or " and " in where or ", " in where
    return where.startswith(("every", "only")) or not several


def _ordinal(n: int) -> str:
    if n % 100 in (11, 12, 13):
        return f"{n}th"
    return f"{n}{({1: 'st', 2: 'nd', 3: 'rd'}).get(n % 10, 'th')}"


def _moved(d: _Differences, at: np.ndarray):
    """Reasons that say the right values stand in the wrong place."""
    shape, total = d.shape, d.actual.size

    def matches(source, valid):
        """Do the wrong elements hold what the reference has at `source`?"""
        if np.count_nonzero(valid) < 3:
            return False
        got, want = d.actual[at[valid]], d.want(source[valid])
        with np.errstate(all="ignore"):
            same = (got == want) | (np.abs(got.astype(np.complex128) - want) <= d.tolerance.of(want))
        return bool(same.all()) and np.unique(want).size > 1

    everywhere = np.ones(at.size, bool)
    for p in range(len(shape)):
        for q in range(p + 1, len(shape)):
            swapped = list(shape)
            swapped[p], swapped[q] = shape[q], shape[p]
            where = list(np.unravel_index(at, swapped))
            where[p], where[q] = where[q], where[p]
            if matches(np.ravel_multi_index(where, shape), everywhere):
                axes = "rows and columns" if len(shape) == 2 else f"axes {p} and {q}"
                return [Reason("transposed", f"the result is transposed: {axes} are swapped")]
    where = np.unravel_index(at, shape)
    for axis, n in enumerate(shape):
        for step in (-1, 1):
            moved = where[axis] + step
            valid = (moved >= 0) & (moved < n)
            source = np.ravel_multi_index([*where[:axis], moved.clip(0, n - 1), *where[axis + 1 :]], shape)
            if matches(source, valid):
                name = _axis_name(shape, axis)
                side = "before" if step < 0 else "after"
                words = f"shifted by one: each {name} holds the value of the {name} {side} it"
                return [Reason("shifted", words)]
    for axis, n in enumerate(shape):
        source = np.ravel_multi_index([*where[:axis], n - 1 - where[axis], *where[axis + 1 :]], shape)
        if matches(source, everywhere):
            return [Reason("reversed", f"the order of the {_axis_name(shape, axis)}s is reversed")]
    if d.wrong > 2 and total <= _CHUNK and d.expected.size > 1:
        got, want = np.sort(d.actual), np.sort(d.expected)
        with np.errstate(all="ignore"):
            if bool((_errors(got, want, d.tolerance)[0] == _OK).all()):
                return [Reason("permuted", "all the right values, in the wrong order")]
    return []


def _distorted(d: _Differences, at: np.ndarray):
    """Reasons that say how the wrong values follow from the right ones."""
    got, want = d.actual[at], d.want(at)
    if not np.any(got):
        return [Reason("zeros", "every wrong element is 0")]
    wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
    got, want = got.astype(wide), want.astype(wide)
    usable = np.isfinite(got) & np.isfinite(want)
    got, want = got[usable], want[usable]
    if got.size < 3 or np.unique(want).size < 2:
        return []
    if np.all(want != 0):
        ratio = got / want
        factor = np.median(ratio.real)
        if factor and np.all(np.abs(ratio - factor) <= 1e-3 * abs(factor)):
            if abs(factor + 1) < 1e-3:
                return [Reason("negated", "the sign is wrong: got -1 × expected")]
            if abs(factor - 1) > 2e-3:
                return [Reason("scaled", f"off by a constant factor: got {_number(factor)} × expected")]
    gap = got - want
    constant = np.median(gap.real)
    if constant and np.all(np.abs(gap - constant) <= 1e-3 * abs(constant)):
        sign = "-" if constant < 0 else "+"
        return [Reason("offset", f"off by a constant: got expected {sign} {_number(abs(constant))}")]
    size = np.maximum(np.abs(want), d.tolerance.scale)
    if np.all(np.abs(gap) <= 1e-2 * size):
        share = float(np.max(np.abs(gap) / np.where(size, size, 1)))
        words = f"close, but not close enough: errors up to {share:.1g} of the value, as from lost precision"
        return [Reason("imprecise", words)]
    return []


def _reasons(d: _Differences) -> list[Reason]:
    """What the differences look like, most telling first."""
    if not d.wrong:
        return []
    codes, found = d.codes.reshape(d.shape or (1,)), []
    for code, key, words in ((_UNWRITTEN, "unwritten", "never written"), (_NAN, "nan", "NaN")):
        mask = codes == code
        if mask.any():
            region, where = _region(mask)
            verb = "was" if _singular(where) else "were"
            found.append(Reason(f"{key}-{region}", f"{where} {verb} {words}"))
    mask = codes == _WRONG
    if mask.any():
        shaped = d._replace(shape=d.shape or (1,))
        found += _moved(shaped, d.samples) or _distorted(d, d.samples)
        region, where = _region(mask)
        found.append(Reason(f"wrong-{region}", f"{where} {'differs' if _singular(where) else 'differ'}"))
    return found


# --- showing it --------------------------------------------------------------------------------------------


def _number(x, digits: int = 5) -> str:
    """A value as a learner wants to read it: integers in full, floats with a few significant digits."""
    if isinstance(x, (bool, np.bool_)):
        return str(bool(x))
    if isinstance(x, (int, np.integer)):
        return f"{int(x):,}"
    if isinstance(x, (complex, np.complexfloating)):
        sign = "" if math.copysign(1, x.imag) < 0 else "+"
        return f"{_number(x.real, digits)}{sign}{_number(x.imag, digits)}j"
    return f"{float(x):.{digits}g}"


def _digits(d: _Differences) -> int:
    """How many significant digits show the first and the worst difference."""
    pairs = [(d.actual[i], d.want(np.int64(i))) for i in (d.first, d.worst) if i >= 0]
    for digits in (5, 7, 9, 12):
        if all(_number(got, digits) != _number(want, digits) for got, want in pairs):
            return digits
    return 17


def _index(flat: int, shape) -> str:
    return "[" + ", ".join(str(int(i)) for i in np.unravel_index(flat, shape)) + "]" if shape else "[]"


def _got(d: _Differences, flat: int, digits: int) -> str:
    return "unwritten" if d.codes[flat] == _UNWRITTEN else _number(d.actual[flat], digits)


def _around(d: _Differences, digits: int) -> list[str]:
    """Lines that show result and reference around the first difference."""
    if len(d.shape) < 2:
        first, last = max(d.first - 2, 0), min(d.first + 5, d.actual.size)
        rows = [("index", "got", "expected", "")]
        for i in range(first, last):
            mark = "←" if d.codes[i] else ""
            rows.append((f"{i:,}", _got(d, i, digits), _number(d.want(np.int64(i)), digits), mark))
        return _columns(rows)
    # the last two axes as a table, the others held where the first difference is
    *lead, r, c = (int(i) for i in np.unravel_index(d.first, d.shape))
    top, left = max(r - 1, 0), max(c - 1, 0)
    rows, columns = range(top, min(top + 4, d.shape[-2])), range(left, min(left + 4, d.shape[-1]))
    prefix = "".join(f"{i}, " for i in lead)
    lines = []
    for title in ("got", "expected"):
        table = [(title, *(f"[{prefix}:, {j}] " for j in columns))]
        for i in rows:
            flat = [int(np.ravel_multi_index((*lead, i, j), d.shape)) for j in columns]
            if title == "got":
                cells = [_got(d, k, digits) + ("←" if d.codes[k] else " ") for k in flat]
            else:
                cells = [_number(d.want(np.int64(k)), digits) + " " for k in flat]
            table.append((f"[{prefix}{i}, :]", *cells))
        lines += _columns(table)
    return lines


def _columns(rows) -> list[str]:
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["   ".join(cell.rjust(w) for cell, w in zip(row, width, strict=True)).rstrip() for row in rows]


def _message(name: str, d: _Differences, reasons) -> str:
    total, digits = d.actual.size, _digits(d)
    lines = [f"✗ {name}: {d.wrong:,} of {total:,} values differ" if total > 1 else f"✗ {name} differs"]

    def place(what, flat):
        want = d.want(np.int64(flat))
        at = f" at {_index(flat, d.shape)}" if d.shape else ""
        text = f"  {what}{at}: got {_got(d, flat, digits)}, expected {_number(want, digits)}"
        if d.codes[flat] == _WRONG:
            error = _errors(d.actual[flat : flat + 1], np.atleast_1d(want), d.tolerance)[1][0]
            text += f", error {error:.2g}"
            if d.tolerance is not _EXACT:
                text += f" (allowed {float(d.tolerance.of(want)):.2g})"
        return text

    lines.append(place("first" if total > 1 else "value", d.first))
    if d.worst not in (-1, d.first):
        lines.append(place("worst", d.worst))
    if total > 1:
        lines.append("  looks like: " + "; ".join(reasons))
        lines += ["    " + line for line in _around(d, digits)]
    lines.append(f"  tolerance: {d.tolerance.text}")
    return "\n".join(lines)


class CheckError(AssertionError):
    """A result that is not what it should be. `reasons` lists what it looks like, with keys.

    In a notebook only the message and the line that called the check are shown, not a traceback, and below
    them a small map of where the result is wrong.
    """

    def __init__(self, message: str, reasons=(), differences: _Differences | None = None):
        super().__init__(message)
        self.reasons = list(reasons)
        self._differences = differences

    def figure(self):
        """A matplotlib figure of where the result is right, wrong, NaN or unwritten; None without a map."""
        d = self._differences
        if d is None or d.actual.size < 4:
            return None
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        codes = d.codes.reshape(d.shape)
        codes = codes.reshape(-1, d.shape[-1]) if codes.ndim > 1 else codes.reshape(1, -1)
        for axis, most in ((0, 96), (1, 192)):  # a cell shows the worst of the elements it stands for
            edges = np.unique(np.linspace(0, codes.shape[axis], min(most, codes.shape[axis]) + 1).astype(int))
            codes = np.maximum.reduceat(codes, edges[:-1], axis=axis)
        names = ("right", "wrong", "NaN", "never written")
        colours = ("#d9ead3", "#d62728", "#9467bd", "#404040")
        height = 0.9 if codes.shape[0] == 1 else min(1 + 5 * codes.shape[0] / codes.shape[1], 4.5)
        figure = Figure(figsize=(6, height), layout="constrained")
        axes = figure.subplots()
        rows, columns = math.prod(d.shape[:-1]), d.shape[-1]
        aspect = "auto" if len(d.shape) == 1 else "equal" if codes.shape == (rows, columns) else "auto"
        axes.imshow(codes, cmap=ListedColormap(colours), vmin=0, vmax=3, interpolation="nearest",
                    aspect=aspect, extent=(-0.5, columns - 0.5, rows - 0.5, -0.5))
        if rows == 1:
            axes.set_yticks([])
        seen = [Patch(color=colours[i], label=names[i]) for i in np.unique(codes)]
        figure.legend(handles=seen, loc="outside upper left", ncols=4, frameon=False, fontsize=8)
        return figure

    def show(self) -> None:
        """Show the map in a notebook; print the message in a terminal."""
        figure = self.figure()
        if figure is None or not _in_notebook():
            print(self)
            return
        from IPython.display import Image, display

        display(Image(_png(figure)))

    def _repr_html_(self) -> str:
        figure = self.figure()
        picture = ""
        if figure is not None:
            data = base64.b64encode(_png(figure)).decode()
            picture = f'<img alt="map of the differences" src="data:image/png;base64,{data}">'
        return f"<pre>{html.escape(str(self))}</pre>{picture}"

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the line that asked, and the message."""
        if _in_notebook() and self._differences is not None:
            self.show()
        line = _calling_line(self.__traceback__)
        title = f"\x1b[31m{type(self).__name__}\x1b[0m" + (f" in {line}" if line else "")
        return [title, *str(self).split("\n")]


def _in_notebook() -> bool:
    """Is there a front end that can show a picture?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def _png(figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()


def _calling_line(traceback) -> str | None:
    """The last line of the learner's own code in a traceback."""
    line, ours = None, str(Path(__file__).parent)
    while traceback is not None:
        file, number = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        source = linecache.getline(file, number, traceback.tb_frame.f_globals).strip()
        if source and not file.startswith(ours) and "site-packages" not in file:
            line = f"line {number}: {source}"
        traceback = traceback.tb_next
    return line


# --- the checks --------------------------------------------------------------------------------------------


def _compare(actual, expected, *, exact, ops, rtol, atol, dtype) -> tuple[_Differences | None, list[Reason]]:
    got, want = _operand(actual, "the result"), _operand(expected, "the reference")
    scalar = want.values.ndim == 0
    if got.values.shape != want.values.shape and not scalar:
        shape, wanted = got.values.shape, want.values.shape
        text = f"has shape {shape}, expected {wanted}"
        if sorted(shape) == sorted(wanted):
            text += " (axes swapped)"
        elif got.values.size == want.values.size:
            text += " (as many elements, arranged differently)"
        return None, [Reason("shape", text)]
    problem = _wrong_dtype(got, want, dtype)
    if problem:
        return None, [Reason("dtype", problem)]
    a, e = got.values, want.values
    same = a is e or (a.size > 0 and a.ndim and a.ctypes.data == e.ctypes.data and a.strides == e.strides)
    if same and a.ndim:
        return None, [Reason("itself", "is compared with itself; compare with an independent reference")]
    tolerance = _EXACT if exact else _tolerance(got, want, ops, rtol, atol)
    d = _differences(got, want, tolerance)
    return d, _reasons(d)


def _report(name, d, reasons, quiet):
    if reasons:
        raise CheckError(_message(name, d, reasons) if d else f"✗ {name} {reasons[0]}", reasons, d)
    if quiet:
        return
    n = d.actual.size
    subject = "" if name == "result" else f"{name}: "
    if n == 0:
        print(f"✓ {subject}nothing to compare, both are empty")
        return
    error = f"largest error {d.largest:.2g}" if d.largest else "largest error 0"
    print(f"✓ {subject}{n:,} value{'s' * (n > 1)} agree{'s' * (n == 1)}, {error}")


def close(
    actual, expected, *, ops=None, rtol=None, atol=None, dtype=None, name="result", quiet=False
) -> None:
    """Check that `actual` agrees with `expected` up to rounding; print one line, or raise `CheckError`.

    actual, expected: arrays of the same shape (NumPy, torch, Numba or other device arrays) or numbers; a
        single number as `expected` stands for every element. Compared in float64; integers exactly.
    ops: floating-point operations behind one element, such as K for a dot product of length K. Gives the
        tolerance `rounding_bound(ops, u)` times max(|expected|, typical |expected|), twice that if the
        reference is no more precise than the result. Without it 8 operations are assumed.
    rtol, atol: allow atol + rtol * |expected| instead.
    dtype: the dtype the result must have. Without it the result may be narrower than the reference, but
        not wider.

    Raises CheckError for wrong values, NaN, unwritten (poisoned) elements, wrong shape or wrong dtype;
    TypeError for what cannot be compared; ValueError for a tolerance that would accept anything.
    """
    d, reasons = _compare(actual, expected, exact=False, ops=ops, rtol=rtol, atol=atol, dtype=dtype)
    _report(name, d, reasons, quiet)


def equal(actual, expected, *, dtype=None, name="result", quiet=False) -> None:
    """Check that `actual` equals `expected` exactly, element by element. Otherwise like `close`."""
    d, reasons = _compare(actual, expected, exact=True, ops=None, rtol=None, atol=None, dtype=dtype)
    _report(name, d, reasons, quiet)


def diagnose(actual, expected, *, exact=False, ops=None, rtol=None, atol=None, dtype=None) -> list[Reason]:
    """What is wrong with `actual`, most telling first; an empty list if nothing is.

    Each entry is a sentence (a str) with a `key`: "shape", "dtype", "itself"; "unwritten-…" and "nan-…" and
    "wrong-…" with the place (all, one, head, tail, edge, border, slice, every, some); and, where the wrong
    values show a pattern, one of "transposed", "shifted", "reversed", "permuted", "zeros", "scaled",
    "negated", "offset", "imprecise".
    """
    return _compare(actual, expected, exact=exact, ops=ops, rtol=rtol, atol=atol, dtype=dtype)[1]
