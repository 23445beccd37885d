"""Explain a wrong result: what the error looks like, what stands around it, where it is."""

import html
import linecache
import math
import sys
from pathlib import Path

import numpy as np

from utils.check.comparison import (
    CHUNK,
    EXACT,
    NAN,
    OK,
    UNWRITTEN,
    WRONG,
    Differences,
    grade,
)

# ---- what the error looks like


class Reason(str):
    """A sentence about an error, with a machine-readable `key`."""

    key: str

    def __new__(cls, key: str, sentence: str):
        self = super().__new__(cls, sentence)
        self.key = key
        return self


_AXES = {
    1: ("element",),
    2: ("row", "column"),
    3: ("layer", "row", "column"),
}


def _axis_name(shape, axis: int) -> str:
    return _AXES.get(len(shape), ())[axis] if len(shape) in _AXES else f"slice of axis {axis}"


def _others(mask: np.ndarray, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(mask.ndim) if i != axis)


def _region(mask: np.ndarray) -> tuple[str, str]:
    """(key, words) for where a boolean mask of the result's shape is set."""
    shape = mask.shape
    total = mask.size
    count = int(np.count_nonzero(mask))
    if count == total:
        return "all", "every element"
    if count == 1:
        return "one", f"only element {_index(int(mask.argmax()), shape)}"
    return (
        _border(mask, count)
        or _slices(mask, count)
        or _tail(mask, count)
        or _every_nth(mask, count)
        or _block(mask, count)
    )


def _border(mask: np.ndarray, count: int) -> tuple[str, str] | None:
    """Whole slabs at the low and the high end of each axis: a missing tail, edge or border."""
    shape = mask.shape
    total = mask.size
    low = []
    high = []
    for axis in range(mask.ndim):
        full = mask.all(axis=_others(mask, axis))
        low.append(int(full.argmin()))
        high.append(int(full[::-1].argmin()))
    inner = math.prod(n - i - j for n, i, j in zip(shape, low, high, strict=True))
    if count != total - inner:
        return None
    if mask.ndim == 1 and not low[0]:
        return "tail", f"every element from index {total - high[0]:,} on"
    words = []
    for side, runs in (("first", low), ("last", high)):
        for axis, run in enumerate(runs):
            name = _axis_name(shape, axis)
            if run:
                words.append(f"the {side} {name}" if run == 1 else f"the {side} {run:,} {name}s")
    key = "head" if any(low) else "edge"
    if any(low) and any(high):
        key = "border"
    *others, last = words
    return key, f"{', '.join(others)} and {last}" if others else last


def _slices(mask: np.ndarray, count: int) -> tuple[str, str] | None:
    """A few whole rows, columns or layers."""
    for axis in range(mask.ndim if mask.ndim > 1 else 0):
        full = np.flatnonzero(mask.all(axis=_others(mask, axis)))
        if 0 < full.size <= 4 and full.size * (mask.size // mask.shape[axis]) == count:
            name = _axis_name(mask.shape, axis) + "s" * (full.size > 1)
            return "slice", f"{name} {' and '.join(str(i) for i in full)}"
    return None


def _tail(mask: np.ndarray, count: int) -> tuple[str, str] | None:
    """All from one element on."""
    first = int(mask.reshape(-1).argmax())
    if count != mask.size - first:
        return None
    return "tail", f"every element from {_index(first, mask.shape)} on"


def _every_nth(mask: np.ndarray, count: int) -> tuple[str, str] | None:
    """Elements at a constant distance."""
    flat = mask.reshape(-1)
    first = int(flat.argmax())
    where = np.flatnonzero(flat[: first + CHUNK])
    step = int(np.gcd.reduce(np.diff(where))) if where.size > 2 else 1
    if step == 1 or np.count_nonzero(flat[first % step :: step]) != count:
        return None
    density = "only every" if count > 0.9 * (mask.size // step) else "only some of every"
    return "every", f"{density} {_ordinal(step)} element ({step} i + {first % step})"


def _block(mask: np.ndarray, count: int) -> tuple[str, str]:
    """A full block, or some elements of one."""
    words, volume = [], 1
    for axis, n in enumerate(mask.shape):
        used = np.flatnonzero(mask.any(axis=_others(mask, axis)))
        a = int(used[0])
        b = int(used[-1])
        volume *= b - a + 1
        if b - a + 1 < n:
            extent = f"s {a:,} to {b:,}" if a < b else f" {a:,}"
            words.append(_axis_name(mask.shape, axis) + extent)
    if count == volume:
        return "block", f"the block of {', '.join(words)}"
    within = f" within {', '.join(words)}" if volume <= mask.size // 4 else ""
    return "some", f"{count:,} elements{within}"


def _singular(where: str) -> bool:
    """Does this subject take "differs" rather than "differ"?"""
    several = where.endswith("s") or " and " in where or "s within" in where
    return where.startswith(("every", "only", "the block")) or not several


def _ordinal(n: int) -> str:
    if n % 100 in (11, 12, 13):
        return f"{n}th"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _moved(d: Differences, at: np.ndarray):
    """Reasons that say the right values stand in the wrong place."""
    shape = d.shape

    def matches(source, valid):
        """Do the wrong elements hold what the reference has at `source`?"""
        if np.count_nonzero(valid) < 3:
            return False
        got = d.actual[at[valid]]
        want = d.expected[source[valid]]
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.complex128) - want)
            same = (got == want) | (error <= d.tolerance.of(want))
        return bool(same.all()) and np.unique(want).size > 1

    reason = (
        _transposed(shape, at, matches)
        or _shifted(shape, at, matches)
        or _reversed(shape, at, matches)
        or _permuted(d)
    )
    return [reason] if reason else []


def _transposed(shape, at, matches) -> Reason | None:
    everywhere = np.ones(at.size, bool)
    for p in range(len(shape)):
        for q in range(p + 1, len(shape)):
            swapped = list(shape)
            swapped[p], swapped[q] = shape[q], shape[p]
            where = list(np.unravel_index(at, swapped))
            where[p], where[q] = where[q], where[p]
            if matches(np.ravel_multi_index(where, shape), everywhere):
                axes = "rows and columns" if len(shape) == 2 else f"axes {p} and {q}"
                return Reason("transposed", f"the result is transposed: {axes} are swapped")
    return None


def _elsewhere(shape, at, axis, index):
    """Flat indices of the elements `at`, with another index along one axis."""
    where = list(np.unravel_index(at, shape))
    where[axis] = index
    return np.ravel_multi_index(where, shape)


def _shifted(shape, at, matches) -> Reason | None:
    where = np.unravel_index(at, shape)
    for axis, n in enumerate(shape):
        for step, side in ((-1, "before"), (1, "after")):
            moved = where[axis] + step
            valid = (moved >= 0) & (moved < n)
            source = _elsewhere(shape, at, axis, moved.clip(0, n - 1))
            if matches(source, valid):
                name = _axis_name(shape, axis)
                words = f"shifted by one: each {name} holds the value of the {name} {side} it"
                return Reason("shifted", words)
    return None


def _reversed(shape, at, matches) -> Reason | None:
    where = np.unravel_index(at, shape)
    everywhere = np.ones(at.size, bool)
    for axis, n in enumerate(shape):
        source = _elsewhere(shape, at, axis, n - 1 - where[axis])
        if matches(source, everywhere):
            name = _axis_name(shape, axis)
            return Reason("reversed", f"the order of the {name}s is reversed")
    return None


def _permuted(d: Differences) -> Reason | None:
    if d.wrong <= 2 or d.actual.size > CHUNK:
        return None
    got = np.sort(d.actual)
    want = np.sort(d.expected)
    with np.errstate(all="ignore"):
        codes, _ = grade(got, want, d.tolerance)
    if (codes == OK).all():
        return Reason("permuted", "all the right values, in the wrong order")
    return None


def _distorted(d: Differences, at: np.ndarray):
    """Reasons that say how the wrong values follow from the right ones."""
    got = d.actual[at]
    want = d.expected[at]
    if not np.any(got):
        return [Reason("zeros", "every wrong element is 0")]
    wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
    got = got.astype(wide)
    want = want.astype(wide)
    usable = np.isfinite(got) & np.isfinite(want)
    got = got[usable]
    want = want[usable]
    if got.size < 3 or np.unique(want).size < 2:
        return []
    if np.all(want != 0):
        ratio = got / want
        factor = np.median(ratio.real)
        if factor and np.all(np.abs(ratio - factor) <= 1e-3 * abs(factor)):
            if abs(factor + 1) < 1e-3:
                return [Reason("negated", "the sign is wrong: got -1 × expected")]
            if abs(factor - 1) > 2e-3:
                words = f"off by a constant factor: got {_number(factor)} × expected"
                return [Reason("scaled", words)]
    gap = got - want
    constant = np.median(gap.real)
    if constant and np.all(np.abs(gap - constant) <= 1e-3 * abs(constant)):
        sign = "-" if constant < 0 else "+"
        words = f"off by a constant: got expected {sign} {_number(abs(constant))}"
        return [Reason("offset", words)]
    size = np.maximum(np.abs(want), d.tolerance.scale)
    if np.all(np.abs(gap) <= 1e-2 * size):
        share = float(np.max(np.abs(gap) / np.where(size, size, 1)))
        words = (
            f"close, but not close enough: errors up to {share:.1g} of the value, as from "
            "lost precision"
        )
        return [Reason("imprecise", words)]
    return []


def reasons_for(d: Differences) -> list[Reason]:
    """What the differences look like, most telling first."""
    if not d.wrong:
        return []
    codes = d.codes.reshape(d.shape or (1,))
    reasons = []
    for code, key, words in ((UNWRITTEN, "unwritten", "never written"), (NAN, "nan", "NaN")):
        mask = codes == code
        if mask.any():
            region, where = _region(mask)
            sentence = f"{where} {'was' if _singular(where) else 'were'} {words}"
            if code == UNWRITTEN and region in ("tail", "edge"):
                sentence += " (too few threads, or a guard that is too strict?)"
            reasons.append(Reason(f"{key}-{region}", sentence))
    mask = codes == WRONG
    if mask.any():
        shaped = d._replace(shape=d.shape or (1,))
        reasons += _moved(shaped, d.samples) or _distorted(d, d.samples)
        region, where = _region(mask)
        reasons.append(
            Reason(f"wrong-{region}", f"{where} {'differs' if _singular(where) else 'differ'}")
        )
    return reasons


# ---- showing it


def _number(x, digits: int = 5) -> str:
    """A value as a learner reads it: integers in full, floats with a few significant digits."""
    if isinstance(x, (bool, np.bool_)):
        return str(bool(x))
    if isinstance(x, (int, np.integer)):
        return f"{int(x):,}"
    if isinstance(x, (complex, np.complexfloating)):
        sign = "" if math.copysign(1, x.imag) < 0 else "+"
        return f"{_number(x.real, digits)}{sign}{_number(x.imag, digits)}j"
    return f"{float(x):.{digits}g}"


def _digits(d: Differences) -> int:
    """How many significant digits show the first and the worst difference."""
    pairs = [(d.actual[i], d.expected[i]) for i in (d.first, d.worst) if i >= 0]
    for digits in (5, 7, 9, 12):
        if all(_number(got, digits) != _number(want, digits) for got, want in pairs):
            return digits
    return 17


def _index(flat: int, shape) -> str:
    if not shape:
        return "[]"
    numbers = ", ".join(str(int(i)) for i in np.unravel_index(flat, shape))
    return f"[{numbers}]"


def _got(d: Differences, flat: int, digits: int) -> str:
    return "unwritten" if d.codes[flat] == UNWRITTEN else _number(d.actual[flat], digits)


def _around(d: Differences, digits: int) -> list[str]:
    """Lines that show result and reference around the first difference."""
    if len(d.shape) < 2:
        first = max(d.first - 2, 0)
        last = min(d.first + 5, d.actual.size)
        rows = [("index", "got", "expected", "")]
        for i in range(first, last):
            mark = "←" if d.codes[i] else ""
            rows.append(
                (
                    f"{i:,}",
                    _got(d, i, digits),
                    _number(d.expected[i], digits),
                    mark,
                )
            )
        return _columns(rows)
    # the last two axes as a table, the others held where the first difference is
    *lead, r, c = (int(i) for i in np.unravel_index(d.first, d.shape))
    top = max(r - 1, 0)
    left = max(c - 1, 0)
    rows = range(top, min(top + 4, d.shape[-2]))
    columns = range(left, min(left + 4, d.shape[-1]))
    prefix = "".join(f"{i}, " for i in lead)
    lines = []
    for title in ("got", "expected"):
        table = [(title, *(f"[{prefix}:, {j}] " for j in columns))]
        for i in rows:
            flat = [int(np.ravel_multi_index((*lead, i, j), d.shape)) for j in columns]
            if title == "got":
                cells = [_got(d, k, digits) + ("←" if d.codes[k] else " ") for k in flat]
            else:
                cells = [_number(d.expected[k], digits) + " " for k in flat]
            table.append((f"[{prefix}{i}, :]", *cells))
        lines += _columns(table)
    return lines


def _columns(rows) -> list[str]:
    columns = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in rows:
        cells = map(str.rjust, row, widths)
        lines.append("   ".join(cells).rstrip())
    return lines


def message(name: str, d: Differences, reasons) -> str:
    total = d.actual.size
    digits = _digits(d)
    lines = [
        f"✗ {name}: {d.wrong:,} of {total:,} values differ" if total > 1 else f"✗ {name} differs"
    ]

    def place(what, flat):
        want = d.expected[flat]
        at = f" at {_index(flat, d.shape)}" if d.shape else ""
        text = f"  {what}{at}: got {_got(d, flat, digits)}, expected {_number(want, digits)}"
        if d.codes[flat] == WRONG:
            one = slice(flat, flat + 1)
            _, errors = grade(
                d.actual[one],
                d.expected[one],
                d.tolerance,
            )
            text += f", error {errors[0]:.2g}"
            if d.tolerance is not EXACT:
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

    In a notebook only the message and the line that called the check are shown, not a traceback,
    and below them a small map of where the result is wrong.
    """

    def __init__(
        self,
        message: str,
        reasons=(),
        differences: Differences | None = None,
    ):
        super().__init__(message)
        self.reasons = list(reasons)
        self._differences = differences
        self._shown = False

    def figure(self):
        """A figure of where the result is right, wrong, NaN or unwritten; None without a map."""
        d = self._differences
        if d is None or d.actual.size < 4:
            return None
        from utils.check.error_map import error_map  # matplotlib: only once a map is drawn

        return error_map(d.codes.reshape(d.shape))

    def show(self) -> None:
        """Show the map in a notebook; print the message in a terminal."""
        if not (_in_notebook() and self._display_map()):
            print(self)

    def _display_map(self) -> bool:
        figure = self.figure()
        if figure is not None:
            from IPython.display import display

            display(figure)
        return figure is not None

    def _repr_html_(self) -> str:
        figure = self.figure()
        picture = ""
        if figure is not None:
            picture = figure._repr_mimebundle_()["text/html"]
        return f"<pre>{html.escape(str(self))}</pre>{picture}"

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the line that asked, and the message."""
        if _in_notebook() and not self._shown:  # IPython asks more than once
            self._shown = self._display_map()
        line = _calling_line(self.__traceback__)
        title = f"\x1b[31m{type(self).__name__}\x1b[0m" + (f" in {line}" if line else "")
        return [title, *str(self).split("\n")]


def _in_notebook() -> bool:
    """Is there a front end that can show a picture?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def _calling_line(traceback) -> str | None:
    """The last line of the learner's own code in a traceback."""
    line = None
    ours = str(Path(__file__).parent)
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        number = traceback.tb_lineno
        source = linecache.getline(file, number, traceback.tb_frame.f_globals).strip()
        if source and not file.startswith(ours) and "site-packages" not in file:
            line = f"line {number}: {source}"
        traceback = traceback.tb_next
    return line
