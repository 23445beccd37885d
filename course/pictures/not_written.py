"""The pictures of the chapter Kernels that you did not write: the desk, tolerances, clocks."""

import html
import json
import re

import numpy as np

from course import progress
from course.checking.guesses import in_order
from course.judge import bank
from course.pictures.shapes import plain
from utils.estimate import Blank, Launch, estimate
from utils.files import ASSETS
from utils.plots import ACCENT, ALARM, INK, OTHERS, chart
from utils.plots.svg import FAINT, GREY, PAPER, Drawing, strong
from utils.timing import SAID

#: A verdict -> its colour on the stamp
STAMPS = {
    "right": ACCENT,
    "brilliant": "#2F7F5F",
    "slow": "#8A6D00",
    "wrong": ALARM,
    "cheating": "#7A2E8E",
}
USUAL = 1e-2  # the absolute tolerance of a widely used judge
LARGEST = {"float16": 65504.0, "float32": float(np.finfo(np.float32).max)}
ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11}
WIDE, TALL = 108, 66  # an envelope
CHAPTER = "not_written"


def desk(verdicts: dict | None = None, title: str = "Your desk"):
    """The twelve envelopes. verdicts: number -> the word on its stamp; the others are closed."""
    verdicts = verdicts or {}
    words = ", ".join(f"{number} {word}" for number, word in sorted(verdicts.items()))
    alt = f"Twelve envelopes, numbered from 1 to 12. {words or 'All are closed'}."
    sheet = Drawing(720, 210, alt=alt)
    sheet.heading(0, 14, title)
    for number in range(1, 13):
        x, y = (number - 1) % 6 * 120 + 4, 34 + (number - 1) // 6 * 88
        _envelope(sheet, x, y, number, verdicts.get(number))
    return sheet


def _envelope(sheet, x, y, number, word):
    """One envelope, closed or stamped."""
    sheet.box(x, y, WIDE, TALL, fill=PAPER if word else FAINT, line=GREY, rx=4)
    if not word:
        sheet.line(x, y, x + WIDE / 2, y + 34, colour=GREY)
        sheet.line(x + WIDE, y, x + WIDE / 2, y + 34, colour=GREY)
        sheet.text(x + WIDE / 2, y + 50, str(number))
        return
    colour = STAMPS.get(word, OTHERS)
    sheet.text(x + 16, y + 16, str(number))
    sheet.box(x + 10, y + 28, WIDE - 20, 26, fill=PAPER, line=strong(colour), rx=4)
    sheet.text(x + WIDE / 2, y + 41, word, colour=strong(colour))


def signatures(kept=None) -> str:
    """How many signatures were right, of those that the learner has kept.

    kept: as `progress.load()["predictions"]` has them, which is what is counted unless given.
    """
    kept = progress.load()["predictions"] if kept is None else kept
    signed = [one for _, one in in_order(kept) if _is_signature(one)][-len(bank.envelopes()) :]
    if not signed:
        return (
            "No signature is kept yet: go back to one, sign, and click on whether you had it right."
        )
    wrong = [one["guess"] for one in signed if not one["right"]]
    said = f"Signatures kept: {len(signed)}, right: {len(signed) - len(wrong)}."
    missed = ", ".join(f"{word} ({wrong.count(word)})" for word in STAMPS if word in wrong)
    return f"{said} You signed what was not so: {missed}." if missed else said


def _is_signature(one):
    """Whether what is kept is one of this chapter's signatures."""
    here = one.get("chapter") in (CHAPTER, "")
    return here and one.get("guess") in STAMPS and isinstance(one.get("right"), bool)


# ---- tolerances

LEFT, AXIS = 60, 620  # pixels: where an axis begins, how long it is
DECADES = 8  # of a logarithmic axis from 10^-8 to 1


def _place(value):
    """Where a number from 10^-8 to 1 stands on the axis."""
    return LEFT + AXIS * (max(-DECADES, np.log10(value)) + DECADES) / DECADES


def tolerance(columns: int):
    """The results of one row of softmax on an axis, with what a fixed tolerance takes for zero."""
    x = np.random.default_rng(columns).normal(size=columns)
    powers = np.exp(x - x.max())
    results = np.sort(powers / powers.sum())
    within = int((results <= USUAL).sum())
    verdict = "accepted" if within == columns else "refused"
    says = f"{within:,} of {columns:,} results lie below {USUAL}, so zeros are {verdict}"
    alt = f"The results of one row, on an axis from 10 to the power of -8 to 1: {says}"
    sheet = Drawing(720, 118, alt=alt)
    sheet.heading(0, 12, says)
    edge = _place(USUAL)
    sheet.box(LEFT, 32, edge - LEFT, 44, fill=FAINT)
    sheet.line(edge, 28, edge, 80, colour=strong(ALARM), thick=2)
    some = results[np.linspace(0, columns - 1, min(columns, 60)).astype(int)]
    sheet.dots([(_place(value), 54) for value in some], 8, colour=ACCENT)
    sheet.line(LEFT, 80, LEFT + AXIS, 80, colour=GREY)
    for power in range(-DECADES, 1, 2):
        sheet.text(_place(10.0**power), 96, f"1e{power}" if power else "1")
    return sheet


def overflow(largest: int):
    """e to the power of a row's largest number, against what float16 and float32 can hold."""
    power = largest / np.log(10)
    held = [name for name, most in LARGEST.items() if power <= np.log10(most)]
    says = f"held by {' and '.join(held)}" if held else "too large for both: infinity"
    alt = f"e to the power of {largest} is about 1e{power:.0f}: {says}"
    sheet = Drawing(720, 96, alt=alt)
    sheet.heading(0, 12, f"e to the power of {largest} is about 1e{power:.0f}: {says}")
    most = 60.0
    for row, (name, limit) in enumerate(LARGEST.items()):
        y = 34 + 26 * row
        width = AXIS * np.log10(limit) / most
        sheet.text(LEFT - 6, y + 8, name, anchor="end")
        sheet.box(LEFT, y, width, 16, fill=OTHERS)
        sheet.text_from(LEFT + width + 6, y + 8, f"up to {limit:.2g}")
    x = LEFT + AXIS * min(power, most) / most
    sheet.line(x, 28, x, 84, colour=strong(ALARM if not held else ACCENT), thick=3)
    return sheet


# ---- bounds


def summed(products, threads, dtype):
    """The sum of products as `threads` threads and a tree would round it, in a type.

    products: float64, (sums, n).
    """
    many, n = products.shape
    turns = -(-n // threads)
    padded = np.zeros((many, turns * threads))
    padded[:, :n] = products
    parts = padded.astype(dtype).reshape(many, turns, threads)
    total = parts[:, 0]
    for turn in range(1, turns):
        total = total + parts[:, turn]
    while total.shape[1] > 1:
        half = total.shape[1] // 2
        total = total[:, :half] + total[:, half:]
    return total[:, 0].astype(np.float64)


def errors(n, threads, dtype, sums=20):
    """The largest error of some random sums, as a share of the sum of their terms' magnitudes."""
    products = np.random.default_rng(n + threads).normal(size=(sums, n))
    exact, size = products.sum(axis=1), np.abs(products).sum(axis=1)
    return float(np.max(np.abs(summed(products, threads, dtype) - exact) / size))


def bounds(roundings, threads: int = 1):
    """Errors of sums in two types, and what `roundings(n, threads)` allows them."""
    sizes = [1 << power for power in range(3, 14)]
    allowed = [roundings(n, threads) * ROUNDOFF["float32"] for n in sizes]
    measured = {name: [errors(n, threads, np.dtype(name).type) for n in sizes] for name in ROUNDOFF}
    over = [sum(e > a for e, a in zip(measured[name], allowed, strict=True)) for name in ROUNDOFF]
    alt = (
        f"Errors of sums by {threads} threads, by their terms: {over[0]} of {len(sizes)} in"
        f" float32 and {over[1]} of {len(sizes)} in float16 lie above the bound of float32"
    )
    fig, axes = chart(7, 3.2, alt=alt)
    axes.plot(sizes, allowed, color=INK, label="bound for float32: roundings × 2⁻²⁴")
    for name, colour, mark in (("float32", ACCENT, "o"), ("float16", ALARM, "s")):
        axes.plot(sizes, measured[name], mark, color=colour, label=f"error in {name}")
    axes.set(xscale="log", yscale="log", xlabel="terms of the sum", ylabel="error")
    axes.legend(frameon=False, fontsize=9)
    plain(axes)
    return fig


# ---- clocks

WORK, TICKS = 9, 22  # ticks of a kernel; of the picture
WAITS = ("never", "after the call", "before and after it")


def clocked(waits: str):
    """What a clock on the host sees of a kernel that is launched while other work is under way.

    waits: when the host waits for the GPU, one of WAITS.
    """
    before = 5  # ticks of other work, which was launched at 0
    begin = before if waits == WAITS[2] else 1
    start = before
    end = start + WORK if waits != WAITS[0] else begin + 1
    seen = end - begin
    alt = f"The host waits {waits}. The kernel takes {WORK} ticks, and the clock says {seen}."
    sheet = Drawing(720, 136, alt=alt)
    sheet.heading(0, 12, f"The host waits {waits}: the clock says {seen}, the kernel takes {WORK}")
    unit = AXIS / TICKS
    for y, name in ((36, "host"), (72, "GPU")):
        sheet.text(LEFT - 6, y + 12, name, anchor="end")
    sheet.box(LEFT, 72, before * unit, 24, fill=FAINT, line=GREY)
    sheet.text(LEFT + before * unit / 2, 84, "other work")
    sheet.box(LEFT + start * unit, 72, WORK * unit, 24, fill=OTHERS, line=GREY)
    sheet.text(LEFT + (start + WORK / 2) * unit, 84, "the kernel", colour="#050505")
    launch = LEFT + begin * unit
    sheet.box(launch, 36, unit, 24, fill=ACCENT)
    sheet.text(launch + unit / 2, 48, "go", colour="#fff")
    for tick in (begin, end):
        x = LEFT + tick * unit
        sheet.line(x, 28, x, 108, colour=strong(ALARM), thick=2)
    sheet.text(LEFT + (begin + end) / 2 * unit, 122, "1 tick" if seen == 1 else f"{seen} ticks")
    return sheet


# ---- estimates

ROWS, COLUMNS = 4096, 64
#: An envelope's number -> its kernel's name, rows -> its grid, its block
LAUNCHES = {
    4: ("a_row_each", lambda rows: -(-rows // 64), 64),
    6: ("all_rows", lambda rows: 1, 1),
    9: ("a_warp_each", lambda rows: rows, 32),
    12: ("a_row_each", lambda rows: -(-rows // 64), 64),
}


def estimated(number: int):
    """The Estimate of an envelope's kernel on an H200, for a matrix of ROWS x COLUMNS."""
    name, grid, block = LAUNCHES[number]
    kernel = getattr(bank.load(bank.envelopes()[number - 1].path), name)

    def launch(rows):
        x = Blank((rows, COLUMNS))
        return Launch(kernel, grid(rows), block, (x, x))

    if number == 6:  # one block does all: its counts are carried on from few rows
        return estimate(launch, size=ROWS, small=(2, 4, 8))
    return estimate(launch(ROWS))


def said(*numbers: int):
    """Estimated times of envelopes on an H200, in µs on a logarithmic axis."""
    times = {f"envelope {number}": 1e6 * estimated(number).seconds for number in numbers}
    labels = [f"{us:.3g} µs" if us < 1000 else f"{us:,.0f} µs" for us in times.values()]
    words = ", ".join(f"{name} {label}" for name, label in zip(times, labels, strict=True))
    fig, axes = chart(7, 0.9 + 0.36 * len(times), alt=f"Estimated for an H200: {words}")
    axes.barh(list(times), list(times.values()), color=SAID)
    for place, (label, us) in enumerate(zip(labels, times.values(), strict=True)):
        axes.annotate(label, (us, place), (6, -4), textcoords="offset points", fontsize=9)
    axes.set(xscale="log", xlabel="µs on an H200 (an estimate)")
    axes.margins(x=0.25)
    axes.invert_yaxis()
    plain(axes)
    return fig


# ---- the bank, and judges of it

#: A checker's key in assets/judges.json -> its name
CHECKERS = {
    "ours": "kerneljudge",
    "pygpubench": "pygpubench's rule: 20 inputs, at one address",
    "kernelbench": "KernelBench's rule: 5 random inputs",
    "allclose": "allclose on one input",
}


def judges():
    """How many of the bank's cheats each checker accepted, and how many right ones it refused, as
    `course.judge.bench` recorded it.
    """
    content = json.loads((ASSETS / "judges.json").read_text(encoding="utf-8"))
    rows = [(CHECKERS[key], one) for key, one in content["judges"].items()]
    rows.sort(key=lambda row: len(row[1]["accepted"]))
    cheats = rows[0][1]["of"]
    words = "; ".join(f"{name} {_marks(one)}" for name, one in rows)
    alt = f"Wrong or cheating kernels accepted: {words} ({content['date'][:10]})"
    fig, axes = chart(7.5, 1.0 + 0.36 * len(rows), alt=alt)
    for place, (_, one) in enumerate(rows):
        count = len(one["accepted"])
        axes.barh(place, count, color=ALARM if count else ACCENT)
        axes.annotate(_marks(one), (count, place), (6, -4), textcoords="offset points", fontsize=9)
    names = [name for name, _ in rows]
    axes.set(yticks=range(len(rows)), yticklabels=names, xlabel="cheats accepted")
    axes.set(xlim=(0, 1.5 * cheats), xticks=range(0, cheats + 1, 10))
    axes.invert_yaxis()
    plain(axes)
    return fig


def _marks(one):
    """A checker's two numbers: the cheats that it accepted, the right ones that it refused."""
    accepted, refused = len(one["accepted"]), len(one["refused"])
    return f"{accepted} of {one['of']}; refused {refused} of {one['right']} right ones"


class Table:
    """Rows of text as a table. head: the columns' names; rows: of cells, in HTML."""

    def __init__(self, head, rows):
        self.head, self.rows = head, rows

    def __repr__(self):
        return "\n".join(" | ".join(map(str, row)) for row in (self.head, *self.rows))

    def _repr_html_(self):
        style = 'style="text-align:left;vertical-align:top"'
        head = "".join(f"<th {style}>{cell}</th>" for cell in self.head)
        body = "".join(
            "<tr>" + "".join(f"<td {style}>{cell}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def patterns(*fails: str):
    """The bank's patterns that must fail one of these questions, each with its source."""
    rows = [
        (
            one.key,
            re.sub("`(.+?)`", r"<code>\1</code>", html.escape(one.says)),
            one.needs if one.needs == "GPU" else "",
            f'<a href="{html.escape(one.source)}">source</a>',
        )
        for one in bank.patterns()
        if not fails or one.fails in fails
    ]
    return Table(("pattern", "what it does", "needs", "reported"), rows)
