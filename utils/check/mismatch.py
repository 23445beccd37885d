"""Explain a wrong result: what the error looks like, what stands around it, where it is."""

import html
import linecache
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from utils.check.comparison import (
    CHUNK,
    EXACT,
    NAN,
    OK,
    UNWRITTEN,
    WRONG,
    Differences,
    Tolerance,
    grade,
    widest,
)

Shape = tuple[int, ...]
#: Do the wrong elements hold what the reference has at these places, where these are valid?
Matches = Callable[[np.ndarray, np.ndarray], bool]

# ---- what the error looks like


class Reason(str):
    """A sentence about an error, with a machine-readable `key`."""

    key: str

    def __new__(cls, key: str, sentence: str) -> Self:
        self = super().__new__(cls, sentence)
        self.key = key
        return self


_AXES = {
    1: ("element",),
    2: ("row", "column"),
    3: ("layer", "row", "column"),
}


def _axis_name(shape: Shape, axis: int) -> str:
    names = _AXES.get(len(shape))
    if names is None:
        return f"slice of axis {axis}"
    return names[axis]


def _others(mask: np.ndarray, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(mask.ndim) if i != axis)


def _region(mask: np.ndarray) -> tuple[str, str]:
    """(key, words) for where a boolean mask of the result's shape is set."""
    count = int(np.count_nonzero(mask))
    if count == mask.size:
        return "all", "every element"
    if count == 1:
        only = int(mask.argmax())
        return "one", f"only element {_index(only, mask.shape)}"
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
    low = []
    high = []
    inner = 1
    for axis, size in enumerate(shape):
        full = np.logical_and.reduce(mask, axis=_others(mask, axis))
        first = int(full.argmin())
        final = int(full[::-1].argmin())
        low.append(first)
        high.append(final)
        inner *= size - first - final
    if count != mask.size - inner:
        return None
    if mask.ndim == 1 and not low[0]:
        return "tail", f"every element from index {mask.size - high[0]:,} on"
    *others, last = [*_slabs("first", low, shape), *_slabs("last", high, shape)]
    key = "head" if any(low) else "edge"
    if any(low) and any(high):
        key = "border"
    if not others:
        return key, last
    return key, f"{', '.join(others)} and {last}"


def _slabs(side: str, sizes: list[int], shape: Shape) -> Iterator[str]:
    """In words the slabs at one end of each axis: "the first row", "the last 3 columns"."""
    for axis, size in enumerate(sizes):
        name = _axis_name(shape, axis)
        if size == 1:
            yield f"the {side} {name}"
        elif size:
            yield f"the {side} {size:,} {name}s"


def _slices(mask: np.ndarray, count: int) -> tuple[str, str] | None:
    """A few whole rows, columns or layers."""
    if mask.ndim < 2:
        return None
    for axis, size in enumerate(mask.shape):
        full = np.flatnonzero(mask.all(axis=_others(mask, axis)))
        covered = full.size * (mask.size // size)
        if 0 < full.size <= 4 and covered == count:
            name = _axis_name(mask.shape, axis) + "s" * (full.size > 1)
            numbers = " and ".join(map(str, full))
            return "slice", f"{name} {numbers}"
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
    if where.size < 3:
        return None
    step = int(np.gcd.reduce(np.diff(where)))
    start = first % step
    if step == 1 or np.count_nonzero(flat[start::step]) != count:
        return None
    density = "only some of every"
    if count > 0.9 * (mask.size // step):
        density = "only every"
    return "every", f"{density} {_ordinal(step)} element ({step} i + {start})"


def _block(mask: np.ndarray, count: int) -> tuple[str, str]:
    """A full block, or some elements of one."""
    words = []
    volume = 1
    for axis, size in enumerate(mask.shape):
        used = np.flatnonzero(mask.any(axis=_others(mask, axis)))
        first = int(used[0])
        last = int(used[-1])
        extent = last - first + 1
        volume *= extent
        name = _axis_name(mask.shape, axis)
        if extent == 1 < size:
            words.append(f"{name} {first:,}")
        elif extent < size:
            words.append(f"{name}s {first:,} to {last:,}")
    where = ", ".join(words)
    if count == volume:
        return "block", f"the block of {where}"
    within = f" within {where}" if volume <= mask.size // 4 else ""
    return "some", f"{count:,} elements{within}"


def _with_verb(where: str, singular: str, plural: str) -> str:
    """A subject and its verb: "only element [3] differs", "the last 2 rows differ"."""
    is_one = where.startswith(("every", "only", "the block"))
    several = where.endswith("s") or " and " in where or "s within" in where
    if is_one or not several:
        return f"{where} {singular}"
    return f"{where} {plural}"


_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def _ordinal(n: int) -> str:
    if n % 100 in (11, 12, 13):
        return f"{n}th"
    ending = _ENDINGS.get(n % 10, "th")
    return f"{n}{ending}"


def _moved(d: Differences, at: np.ndarray) -> list[Reason]:
    """Reasons that say the right values stand in the wrong place."""
    shape = d.shape

    def matches(source: np.ndarray, valid: np.ndarray) -> bool:
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


def _transposed(shape: Shape, at: np.ndarray, matches: Matches) -> Reason | None:
    everywhere = np.ones(at.size, bool)
    for p, q in combinations(range(len(shape)), 2):
        swapped = list(shape)
        swapped[p], swapped[q] = shape[q], shape[p]
        where = list(np.unravel_index(at, swapped))
        where[p], where[q] = where[q], where[p]
        if matches(np.ravel_multi_index(where, shape), everywhere):
            axes = "rows and columns" if len(shape) == 2 else f"axes {p} and {q}"
            return Reason("transposed", f"the result is transposed: {axes} are swapped")
    return None


def _elsewhere(shape: Shape, at: np.ndarray, axis: int, index: np.ndarray) -> np.ndarray:
    """Flat indices of the elements `at`, with another index along one axis."""
    where = list(np.unravel_index(at, shape))
    where[axis] = index
    return np.ravel_multi_index(where, shape)


def _shifted(shape: Shape, at: np.ndarray, matches: Matches) -> Reason | None:
    where = np.unravel_index(at, shape)
    for axis, n in enumerate(shape):
        for step, side in ((-1, "before"), (1, "after")):
            moved = where[axis] + step
            kept = moved.clip(0, n - 1)
            valid = moved == kept
            source = _elsewhere(shape, at, axis, kept)
            if matches(source, valid):
                name = _axis_name(shape, axis)
                words = f"shifted by one: each {name} holds the value of the {name} {side} it"
                return Reason("shifted", words)
    return None


def _reversed(shape: Shape, at: np.ndarray, matches: Matches) -> Reason | None:
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


def _distorted(d: Differences, at: np.ndarray) -> list[Reason]:
    """Reasons that say how the wrong values follow from the right ones."""
    got = d.actual[at]
    want = d.expected[at]
    if not np.any(got):
        others = d.codes is not None and np.isin(d.codes, (NAN, UNWRITTEN)).any()
        which = "every other wrong element" if others else "every wrong element"
        return [Reason("zeros", f"{which} is 0")]
    wide = widest(got, want)
    got = got.astype(wide)
    want = want.astype(wide)
    usable = np.isfinite(got) & np.isfinite(want)
    got = got[usable]
    want = want[usable]
    if got.size < 3 or np.unique(want).size < 2:
        return []
    reason = _scaled(got, want) or _offset(got, want) or _imprecise(got, want, d.tolerance)
    return [reason] if reason else []


def _constant(values: np.ndarray) -> float:
    """The one real number that all of these are, nearly; else 0."""
    middle = float(np.median(values.real))
    apart = np.abs(values - middle)
    if np.all(apart <= 1e-3 * abs(middle)):
        return middle
    return 0


def _scaled(got: np.ndarray, want: np.ndarray) -> Reason | None:
    if not np.all(want):
        return None
    factor = _constant(got / want)
    if not factor or abs(factor - 1) <= 2e-3:
        return None
    if abs(factor + 1) < 1e-3:
        return Reason("negated", "the sign is wrong: got -1 × expected")
    return Reason("scaled", f"off by a constant factor: got {_number(factor)} × expected")


def _offset(got: np.ndarray, want: np.ndarray) -> Reason | None:
    constant = _constant(got - want)
    if not constant:
        return None
    sign = "-" if constant < 0 else "+"
    words = f"off by a constant: got expected {sign} {_number(abs(constant))}"
    return Reason("offset", words)


def _imprecise(got: np.ndarray, want: np.ndarray, tolerance: Tolerance) -> Reason | None:
    gap = np.abs(got - want)
    size = np.maximum(np.abs(want), tolerance.scale)
    if np.any(gap > 1e-2 * size):
        return None
    size[size == 0] = 1
    share = float(np.max(gap / size))
    words = f"close, but not close enough: errors up to {share:.1g} of the value"
    return Reason("imprecise", f"{words}, as from lost precision")


def reasons_for(d: Differences) -> list[Reason]:
    """What the differences look like, most telling first."""
    if d.codes is None:
        return []
    shape = d.shape or (1,)
    codes = d.codes.reshape(shape)
    reasons = []
    if (codes == UNWRITTEN).any():
        region, where = _region(codes == UNWRITTEN)
        sentence = _with_verb(where, "was", "were") + " never written"
        if region in ("tail", "edge"):
            sentence += " (too few threads, or a guard that is too strict?)"
        reasons.append(Reason(f"unwritten-{region}", sentence))
    if (codes == NAN).any():
        region, where = _region(codes == NAN)
        sentence = _with_verb(where, "was", "were") + " NaN"
        reasons.append(Reason(f"nan-{region}", sentence))
    if (codes == WRONG).any():
        shaped = d._replace(shape=shape)
        reasons += _moved(shaped, d.samples) or _distorted(d, d.samples)
        region, where = _region(codes == WRONG)
        sentence = _with_verb(where, "differs", "differ")
        reasons.append(Reason(f"wrong-{region}", sentence))
    return reasons


# ---- showing it


def _number(x: Any, digits: int = 5) -> str:
    """A value as a learner reads it: integers in full, floats with a few significant digits."""
    if isinstance(x, (bool, np.bool_)):
        return str(bool(x))
    if isinstance(x, (int, np.integer)):
        return f"{int(x):,}"
    if isinstance(x, (complex, np.complexfloating)):
        is_negative = np.signbit(x.imag)
        sign = "" if is_negative else "+"
        return f"{_number(x.real, digits)}{sign}{_number(x.imag, digits)}j"
    return f"{float(x):.{digits}g}"


def _digits(d: Differences) -> int:
    """How many significant digits show the first and the worst difference."""
    places = [i for i in (d.first, d.worst) if i >= 0]
    for digits in (5, 7, 9, 12):
        got = [_number(d.actual[i], digits) for i in places]
        want = [_number(d.expected[i], digits) for i in places]
        if not any(map(operator.eq, got, want)):
            return digits
    return 17


def _index(flat: int, shape: Shape) -> str:
    index = np.unravel_index(flat, shape)
    numbers = ", ".join(map(str, index))
    return f"[{numbers}]"


def _code(d: Differences, flat: int) -> int:
    """What is wrong with an element; OK while nothing is with any."""
    return OK if d.codes is None else int(d.codes[flat])


def _got(d: Differences, flat: int, digits: int) -> str:
    if _code(d, flat) == UNWRITTEN:
        return "unwritten"
    return _number(d.actual[flat], digits)


def _around(d: Differences, digits: int) -> list[str]:
    """Lines that show result and reference around the first difference."""
    if len(d.shape) > 1:
        return _around_in_table(d, digits)
    first = max(d.first - 2, 0)
    last = min(d.first + 5, d.actual.size)
    rows = [("index", "got", "expected", "")]
    for i in range(first, last):
        got = _got(d, i, digits)
        want = _number(d.expected[i], digits)
        mark = "←" if _code(d, i) else ""
        rows.append((f"{i:,}", got, want, mark))
    return _columns(rows)


def _around_in_table(d: Differences, digits: int) -> list[str]:
    """The last two axes as a table, the others held where the first difference is."""
    *lead, row, column = map(int, np.unravel_index(d.first, d.shape))
    height, width = d.shape[-2:]
    prefix = "".join(f"{i}, " for i in lead)
    columns = _window(column, width)
    heads = [f"[{prefix}:, {j}] " for j in columns]
    got = [("got", *heads)]
    expected = [("expected", *heads)]
    for i in _window(row, height):
        name = f"[{prefix}{i}, :]"
        start = int(np.ravel_multi_index((*lead, i, 0), d.shape))
        places = [start + j for j in columns]
        marks = ["←" if _code(d, k) else " " for k in places]
        values = [_got(d, k, digits) for k in places]
        got.append((name, *map(operator.add, values, marks)))
        expected.append((name, *(_number(d.expected[k], digits) + " " for k in places)))
    return _columns(got) + _columns(expected)


def _window(i: int, size: int) -> range:
    """Four numbers below `size`, or all, from the one before `i` on."""
    first = max(i - 1, 0)
    return range(first, min(first + 4, size))


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    columns = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in rows:
        cells = map(str.rjust, row, widths)
        lines.append("   ".join(cells).rstrip())
    return lines


def message(name: str, d: Differences, reasons: Sequence[str]) -> str:
    total = d.actual.size
    digits = _digits(d)
    if total == 1:
        lines = [f"✗ {name} differs", _place("value", d, d.first, digits)]
    else:
        lines = [f"✗ {name}: {d.wrong:,} of {total:,} values differ"]
        lines.append(_place("first", d, d.first, digits))
    if d.worst not in (-1, d.first):
        lines.append(_place("worst", d, d.worst, digits))
    if total > 1:
        lines.append("  looks like: " + "; ".join(reasons))
        lines += ["    " + line for line in _around(d, digits)]
    lines.append(f"  tolerance: {d.tolerance.text}")
    return "\n".join(lines)


def _place(what: str, d: Differences, flat: int, digits: int) -> str:
    """A line about one element."""
    want = d.expected[flat]
    at = f" at {_index(flat, d.shape)}" if d.shape else ""
    text = f"  {what}{at}: got {_got(d, flat, digits)}, expected {_number(want, digits)}"
    if _code(d, flat) != WRONG:
        return text
    one = slice(flat, flat + 1)
    _, errors = grade(d.actual[one], d.expected[one], d.tolerance)
    text += f", error {errors[0]:.2g}"
    if d.tolerance is EXACT:
        return text
    return text + f" (allowed {float(d.tolerance.of(want)):.2g})"


class CheckError(AssertionError):
    """A result that is not what it should be. `reasons` lists what it looks like, with keys.

    In a notebook only the message and the line that called the check are shown, not a traceback,
    and below them a small map of where the result is wrong.
    """

    def __init__(
        self,
        message: str,
        reasons: Sequence[Reason] = (),
        differences: Differences | None = None,
    ):
        super().__init__(message)
        self.reasons = list(reasons)
        self._differences = differences
        self._shown = False

    def figure(self) -> Any:
        """A figure of where the result is right, wrong, NaN or unwritten; None without a map."""
        d = self._differences
        if d is None or d.codes is None or d.actual.size < 4:
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


def _calling_line(traceback: TracebackType | None) -> str | None:
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
