"""Is a result the expected one? How wrong it is, and what the wrong values look like."""

import math

import numpy as np

from course.judge import cases, sandbox
from course.judge.demands import InOut, Out
from course.judge.errors import UNIT_ROUNDOFF, Bound
from course.judge.report import Reason
from course.judge.sandbox import Array, Opaque
from course.judge.values import arguments_of, as_array, name_of, plain_of, plain_result, wide
from utils import check

#: The operations behind an element where nothing is said
FEW = 8
#: A share of the values: what is off by less is imprecise rather than wrong
NEAR = 2.0**-6
TINY = 1e-300
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028235e38}


class Comparison:
    """Of the results of one task: what its reference expects, and what a call gave."""

    def __init__(self, reference, demands):
        self.reference, self.demands = reference, demands
        self.listed = False  # whether the reference returns a tuple or list
        self.by_tensor = False  # whether it returns a tensor

    def expected(self, arguments):
        """The reference's result in the widest types, as NumPy arrays and plain values."""
        result = self.reference(*self.given(arguments))
        self.listed = isinstance(result, tuple | list)
        self.by_tensor = sandbox.is_tensor(result)
        return plain_result(result)

    def given(self, arguments):
        """Copies of a call's arguments as the reference takes them."""
        widened = wide if self.demands.widen else cases.copied
        return tuple(map(widened, arguments_of(arguments)))

    def of(self, tried):
        """The reason why a call's result is wrong, or None."""
        return self.difference(tried.got, tried.expected, tried)

    def difference(self, got, expected, tried, exact=False, part=None):
        """The reason why `got` is not `expected`, or None; results in tuples part by part.

        part: the number of the result that it belongs to, where there are several.
        """
        if isinstance(expected, tuple):
            if not isinstance(got, tuple) or len(got) != len(expected):
                count = len(got) if isinstance(got, tuple) else 1
                says = f"{where(tried)}: {count} result(s), and {len(expected)} are expected."
                return Reason.of("wrong_shape", says)
            reasons = (
                self.difference(g, e, tried, exact, number if part is None else part)
                for number, (g, e) in enumerate(zip(got, expected, strict=True))
            )
            return next(filter(None, reasons), None)
        if isinstance(got, tuple) and isinstance(expected, np.ndarray):
            if not self.listed:
                says = f"{where(tried)}: it returned a list or tuple in place of an array."
                return Reason.of("no_result", says)
            got = as_array(got)
        if got is None or isinstance(got, Opaque):
            says = f"{where(tried)}: it returned {got}."
            return Reason.of("no_result", says)
        if isinstance(expected, str) or expected is None:
            same = got == expected
            return None if same else wrong(tried, f"{expected!r} is expected, and {got!r} came.")
        return self.unlike(got, np.asarray(expected), tried, exact, part)

    def unlike(self, got, expected, tried, exact, part):
        """The reason why an array or a number is wrong, or None."""
        values = got.values if isinstance(got, Array) else np.asarray(got)
        dtype = got.dtype if isinstance(got, Array) else None
        wanted = self.dtype_of(tried, expected, part)
        if values.shape != expected.shape:
            says = f"{where(tried)}: {values.shape}, and {expected.shape} is expected."
            return Reason.of("wrong_shape", says)
        if dtype and wanted and dtype != wanted:
            says = f"{where(tried)}: {dtype}, and {wanted} is expected."
            return Reason.of("wrong_dtype", says)
        if self.by_tensor and isinstance(got, Array) and not got.is_tensor:
            says = f"{where(tried)}: an array of NumPy, and a tensor is expected."
            return Reason.of("wrong_dtype", says)
        if values.dtype.kind not in "biufc":
            return wrong(tried, f"{values!r:.60} came, and a number is expected.")
        return self.values_differ(values, expected, tried, dtype or wanted or "float32", exact)

    def dtype_of(self, tried, expected, part=None):
        """The name of the type that a result must have, or None where anything serves."""
        demands = self.demands
        if demands.dtype is not None:
            named = demands.dtype
            return named(*map(plain_of, tried.arguments)) if callable(named) else named
        written = [one for one in tried.arguments if isinstance(one, Out | InOut)]
        if written and (part is not None or len(written) == 1):
            one = written[part or 0]
            return np.dtype(one.dtype).name if isinstance(one, Out) else name_of(one.array)
        if expected.dtype.kind == "f":
            floats = [name_of(plain_of(one)) for one in tried.arguments]
            floats = [name for name in floats if name and "float" in name]
            return floats[0] if len(set(floats)) == 1 else None
        return None

    def values_differ(self, got, expected, tried, dtype, exact):
        """The reason for values that are further off than the bound, or None."""
        bound = self.demands.error or Bound(FEW, dtype if dtype in UNIT_ROUNDOFF else "float32")
        kind = expected.dtype.kind
        if kind in "biu" or bound.exact or exact:
            same = (got == expected) | (isnan(got) & isnan(expected))
            if bound.exact and kind == "f" and self.demands.special == "any":
                same &= ~self.other_zeros(got, expected, tried)
            if np.all(same):
                return None
            return self.told(got, expected, ~same, np.zeros(expected.shape), tried)
        arguments = tuple(map(wide, arguments_of(tried.arguments)))
        allowed = np.asarray(bound.of(expected, arguments, self.magnitudes))
        largest = LARGEST.get(dtype, math.inf)
        with np.errstate(all="ignore"):
            off = np.abs(got.astype(np.complex128 if kind == "c" else np.float64) - expected)
            good = off <= allowed
            good |= (got == expected) | (isnan(got) & isnan(expected))
            # what the type cannot hold may be infinite
            good |= (
                np.isinf(got)
                & (np.abs(expected) + allowed > largest)
                & (np.sign(got) == np.sign(expected))
            )
        if np.all(good):
            return None
        return self.told(got, expected, ~good, allowed, tried)

    def other_zeros(self, got, expected, tried):
        """Where +0 came for -0 or the other way, and the reference leaves no choice.

        It leaves none where a tiny number of the same sign, in place of each zero that is given,
        makes its result a number of that sign, and one of the other sign the other: max(-0, 0) may
        be either, and so may what comes first when both are sorted.
        """
        apart = (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
        if np.any(apart):
            for sign in (1, -1):
                given = [without_zeros(one, sign) for one in self.given(tried.arguments)]
                near = np.asarray(plain_result(self.reference(*given)))
                if near.shape != expected.shape or near.dtype.kind != "f":
                    return np.zeros_like(apart)
                apart &= np.sign(near) == np.where(np.signbit(expected), -sign, sign)
        return apart

    def magnitudes(self, *arguments):
        """The reference's result for magnitudes, as one array."""
        return plain_result(self.reference(*arguments))

    def told(self, got, expected, bad, allowed, tried):
        """The reason for wrong values: how many, how far off, what it looks like."""
        place = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
        count = int(bad.sum())
        first = f"{number(got[place])} where {number(expected[place])} is expected"
        at = f" at index {place if len(place) != 1 else place[0]}" if place else ""
        says = f"{where(tried)}: {count} of {bad.size} values, the first{at}: {first}."
        with np.errstate(all="ignore"):
            off = (
                np.abs(got.astype(np.float64) - expected)[bad]
                if got.dtype.kind != "c"
                else np.array([np.inf])
            )
            room = np.broadcast_to(allowed, bad.shape)[bad]
            size = np.maximum(np.abs(expected[bad]), np.abs(expected).max(initial=0))
            near = np.all(np.isfinite(off)) and np.all(off <= NEAR * size) and np.all(room > 0)
        evidence = {"wrong": count, "of": int(bad.size), "index": list(place)}
        if near:
            times = float(np.max(off / room))
            says += f" The largest error is {times:.3g} times what rounding explains."
            evidence["times_the_bound"] = times
            return Reason.of("imprecise", says, evidence)
        says += pattern(got, expected)
        key = "unwritten" if "never written" in says else "wrong_value"
        return Reason.of(key, says, evidence)


def pattern(got, expected):
    """What wrong values look like, in the words of `utils.check`, or nothing."""
    if got.dtype.kind == "c" or got.ndim == 0:
        return ""
    try:
        found = check.diagnose(
            got, expected.astype(np.float64 if got.dtype.kind == "f" else got.dtype)
        )
    except Exception:
        return ""
    if not found:
        return ""
    sentence = found[-1].removesuffix(".")
    return f" {sentence[0].upper()}{sentence[1:]}."


def without_zeros(argument, sign=1):
    """An array or tensor of float64 with a tiny number of the same sign for each zero, or of the
    other sign.
    """
    if isinstance(argument, np.ndarray) and argument.dtype == np.float64:
        return np.where(argument == 0, sign * np.copysign(TINY, argument), argument)
    if sandbox.is_tensor(argument) and argument.is_floating_point():
        given = argument.numpy()
        return argument.new_tensor(without_zeros(given, sign))
    return argument


def wrong(tried, says):
    """A reason of wrong values in these words."""
    return Reason.of("wrong_value", f"{where(tried)}: {says}")


def where(tried):
    """Which call it was."""
    return f"In the call with {tried.label}" if tried.label else f"For size {tried.size}"


def number(value):
    """A number in a few characters."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def isnan(values):
    """Where a value is no number."""
    return np.isnan(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)
