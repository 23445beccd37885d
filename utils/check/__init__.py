"""Compare a kernel's result with a reference, and say where and how it is wrong.

    out = poison(n)                       # every element starts out as "never written"
    kernel[grid, block](out, a, b)
    check.close(out, a + b)               # ✓ 1,024 values agree, largest error 0

`close` compares in float64 with a tolerance that follows from the number of operations, `equal`
compares exactly. Both take NumPy arrays, torch tensors, Numba and other device arrays, and scalars;
both raise a `CheckError` that names the first and the worst difference, shows what stands around
it, and says what the pattern looks like. `diagnose` gives the same findings as a list.

Two decisions to know:

* NaN never passes, except where the reference itself is NaN; an element that still holds the poison
  never passes, not even there. Infinity passes only where the reference is the same infinity.
* The reference may be more precise than the result (float64 for float32, int64 for int32), never
  less.
"""

from typing import Any

from numpy.typing import DTypeLike

from utils.check.comparison import (
    EXACT,
    Differences,
    differences,
    operand,
    poison,
    rounding_bound,
    tolerance_of,
    wrong_dtype,
)
from utils.check.mismatch import CheckError, Reason, message, reasons_for

__all__ = ["CheckError", "Reason", "close", "diagnose", "equal", "poison", "rounding_bound"]


def _compare(
    actual: Any,
    expected: Any,
    *,
    exact: bool,
    ops: int | None,
    rtol: float | None,
    atol: float | None,
    dtype: DTypeLike | None,
) -> tuple[Differences | None, list[Reason]]:
    got = operand(actual, "the result")
    want = operand(expected, "the reference")
    scalar = want.values.ndim == 0
    if got.values.shape != want.values.shape and not scalar:
        shape = got.values.shape
        wanted = want.values.shape
        text = f"has shape {shape}, expected {wanted}"
        if sorted(shape) == sorted(wanted):
            text += " (axes swapped)"
        elif got.values.size == want.values.size:
            text += " (as many elements, arranged differently)"
        return None, [Reason("shape", text)]
    problem = wrong_dtype(got, want, dtype)
    if problem:
        return None, [Reason("dtype", problem)]
    a = got.values
    e = want.values
    same = a is e or (
        a.size > 0 and a.ndim and a.ctypes.data == e.ctypes.data and a.strides == e.strides
    )
    if same and a.ndim:
        return None, [
            Reason("itself", "is compared with itself; compare with an independent reference")
        ]
    tolerance = EXACT if exact else tolerance_of(got, want, ops, rtol, atol)
    d = differences(got, want, tolerance)
    return d, reasons_for(d)


def _report(name: str, d: Differences | None, reasons: list[Reason], quiet: bool) -> None:
    if reasons:
        raise CheckError(message(name, d, reasons) if d else f"✗ {name} {reasons[0]}", reasons, d)
    if quiet or d is None:
        return
    n = d.actual.size
    subject = "" if name == "result" else f"{name}: "
    if n == 0:
        print(f"✓ {subject}nothing to compare, both are empty")
        return
    error = f"largest error {d.largest:.2g}" if d.largest else "largest error 0"
    print(f"✓ {subject}{n:,} value{'s' * (n > 1)} agree{'s' * (n == 1)}, {error}")


def close(
    actual: Any,
    expected: Any,
    *,
    ops: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: DTypeLike | None = None,
    name: str = "result",
    quiet: bool = False,
) -> None:
    """Check that `actual` is `expected` up to rounding; print one line or raise `CheckError`.

    actual, expected: arrays of the same shape (NumPy, torch, Numba or other device arrays) or
        numbers; a single number as `expected` stands for every element. Compared in float64;
        integers exactly.
    ops: floating-point operations behind one element, such as K for a dot product of length K.
        Gives the tolerance `rounding_bound(ops, u)` times max(|expected|, typical |expected|),
        twice that if the reference is no more precise than the result. Without it 8 operations are
        assumed.
    rtol, atol: allow atol + rtol * |expected| instead.
    dtype: the dtype the result must have. Without it the result may be narrower than the reference,
        but not wider.

    Raises CheckError for wrong values, NaN, unwritten (poisoned) elements, wrong shape or dtype;
    TypeError for what cannot be compared; ValueError for a tolerance that would accept anything.
    """
    d, reasons = _compare(
        actual,
        expected,
        exact=False,
        ops=ops,
        rtol=rtol,
        atol=atol,
        dtype=dtype,
    )
    _report(name, d, reasons, quiet)


def equal(
    actual: Any,
    expected: Any,
    *,
    dtype: DTypeLike | None = None,
    name: str = "result",
    quiet: bool = False,
) -> None:
    """Check that `actual` equals `expected` exactly, element by element. Otherwise like `close`."""
    d, reasons = _compare(
        actual,
        expected,
        exact=True,
        ops=None,
        rtol=None,
        atol=None,
        dtype=dtype,
    )
    _report(name, d, reasons, quiet)


def diagnose(
    actual: Any,
    expected: Any,
    *,
    exact: bool = False,
    ops: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: DTypeLike | None = None,
) -> list[Reason]:
    """What is wrong with `actual`, most telling first; an empty list if nothing is.

    Each entry is a sentence (a str) with a `key`: "shape", "dtype", "itself"; "unwritten-…" and
    "nan-…" and "wrong-…" with the place (all, one, head, tail, edge, border, slice, block, every,
    some); and, where the wrong values show a pattern, one of "transposed", "shifted", "reversed",
    "permuted", "zeros", "scaled", "negated", "offset", "imprecise".
    """
    return _compare(
        actual,
        expected,
        exact=exact,
        ops=ops,
        rtol=rtol,
        atol=atol,
        dtype=dtype,
    )[1]
