"""The pictures of the chapter Say it before you run it: what each resource would need, what was
said beside what was measured.
"""

import json
from collections import Counter

from course.kernels.machine import profiled
from course.pictures.shapes import plain
from utils import results
from utils.estimate.gpus import with_article
from utils.estimate.improving import CHANGED
from utils.estimate.model import WORDS
from utils.estimate.statement import JUDGED, worst_of
from utils.files import ASSETS
from utils.plots import ACCENT, ALARM, INK, OTHERS, chart
from utils.plots.svg import Drawing, as_html
from utils.quantities import format_ms
from utils.timing import SAID
from utils.tools import profilers

GPU = "NVIDIA H200"
#: The beginning of a kernel's name -> the likely reason why its estimate is far off
WHY = {
    "histogram/numba_global": "lanes of a warp meet on a counter at random; only the hottest one "
    "is taken as a queue",
    "histogram/numba_a_copy": "bytes that lie side by side are waited for as if each came anew",
    "walk/": "a request waits for the slowest of its lanes, and pages have to be looked up",
    "atomic_contention/": "the microbenchmark's neighbouring lanes share a sector, these do not",
    "softmax_": "what a block does once, its sums and barriers, is hidden only in part",
    "axpy/": "the number of turns of this `range` takes a 64-bit division, which is not counted",
    "layout/aos": "elements written in part are taken as dear as where the rest lies idle",
    "scan/": "shared memory is busy nearly all the time by Nsight Compute, by the model half of it",
}
#: A unit that Nsight Compute may find busiest, in words
UNITS = {"memory": "the memory", "l2": "the L2 cache", "l1": "L1 and shared memory"}
UNITS |= {"sm": "the SM's instructions", "latency": "nothing is busy"}
BAR, ROW, LEFT, WIDE = 16, 24, 250, 360
STEPS = 360  # as LEFT, for the words of changes


def clock(name: str) -> float:
    """Milliseconds that the H200 took, as recorded."""
    return results.find(f"{name}/time", GPU)["value"]


def resources(estimate, title: str = ""):
    """What each resource alone would need for a launch, the longest first."""
    seconds = {name: s for name, s in estimate.terms.seconds.items() if s > 0}
    rows = sorted(seconds.items(), key=lambda row: -row[1])
    whole = estimate.seconds
    last = {"the launch": estimate.terms.start}
    bars = [(WORDS[name].partition(":")[0], s) for name, s in rows] + list(last.items())
    said = ", ".join(f"{name} {format_ms(1e3 * s)}" for name, s in bars)
    alt = (
        f"{title or 'A launch'} on {with_article(estimate.gpu.name)}, estimated: {said}; "
        f"together {format_ms(1e3 * whole)}"
    )
    sheet = Drawing(LEFT + WIDE + 110, 62 + ROW * len(bars), alt=alt)
    sheet.heading(0, 12, title or "What each resource alone would need")
    most = max(whole, *(s for _, s in bars))
    for number, (name, s) in enumerate(bars):
        y = 32 + ROW * number
        sheet.text(LEFT - 8, y + BAR / 2, name, anchor="end")
        sheet.box(LEFT, y, max(1.0, WIDE * s / most), BAR, fill=SAID if number == 0 else OTHERS)
        sheet.text_from(LEFT + max(1.0, WIDE * s / most) + 6, y + BAR / 2, format_ms(1e3 * s))
    x = LEFT + WIDE * whole / most
    bottom = 32 + ROW * len(bars)
    sheet.line(x, 26, x, bottom, colour=SAID, thick=2, stroke_dasharray="4 3")
    how = "" if estimate.gpu.how == "measured" else ", by its data sheet"
    off = f"nine in ten within a factor of {estimate.factor:.1f}"
    if how:
        off = f"within a factor of {estimate.factor:.1f} at best"
    said = f"about {format_ms(1e3 * whole)}, an estimate{how}: {off}"
    sheet.text(max(x, LEFT + 190), bottom + 12, said, anchor="end")
    return sheet


def waterfall(changes, title: str = "", said: float | None = None):
    """What to change next, one change on top of the other: a bar for the time after each.

    changes: an `improving.Waterfall`. said: milliseconds that a learner expected at the end.
    """
    rows = [("as it is", changes.seconds), *((step.words, step.seconds) for step in changes.steps)]
    rows.append(("its bytes and its arithmetic alone", changes.least))
    times = [format_ms(1e3 * seconds) for _, seconds in rows]
    told = "; ".join(f"{words} {time}" for (words, _), time in zip(rows, times, strict=True))
    yours = "" if said is None else f"; you said {format_ms(said)}"
    where = with_article(changes.name)
    bottom = 32 + ROW * len(rows)
    sheet = Drawing(
        STEPS + WIDE + 110,
        bottom + 44,
        alt=f"{title or 'A kernel'} on {where}, estimated: {told}{yours}",
    )
    sheet.heading(0, 12, f"{title or 'A kernel'}: what to change next, estimated for {where}")
    scale = WIDE / max(changes.seconds, (said or 0) / 1e3)
    before = changes.seconds
    for number, ((words, seconds), time) in enumerate(zip(rows, times, strict=True)):
        y = 32 + ROW * number
        is_last = number == len(rows) - 1  # no change, but what is left at least
        before = seconds if is_last else before
        end = STEPS + scale * seconds
        sheet.text(STEPS - 8, y + BAR / 2, words, anchor="end")
        sheet.box(STEPS, y, scale * seconds, BAR, fill=OTHERS if is_last else SAID)
        if before > seconds:  # what the change brings
            gain = scale * (before - seconds)
            sheet.box(end, y, gain, BAR, line=SAID, stroke_dasharray="3 3")
        sheet.text_from(STEPS + scale * before + 6, y + BAR / 2, time)
        before = seconds
    if said is not None:
        x = STEPS + scale * said / 1e3
        sheet.line(x, 26, x, bottom, colour=ALARM, thick=2)
        sheet.text(x, bottom + 10, f"you: {format_ms(said)}")
    sheet.text(STEPS + WIDE, bottom + 32, changes.how_far_off(), anchor="end")
    return sheet


def beside_clock(rows: dict):
    """What was said and what was measured, on one axis. rows: label -> (said, measured) in ms."""
    pairs = "; ".join(
        f"{label}: said {format_ms(said)}, measured {format_ms(took)}"
        for label, (said, took) in rows.items()
    )
    fig, axes = chart(7.5, 1.1 + 0.36 * len(rows), alt=f"{pairs} ({GPU}, recorded)")
    for place, (said, took) in enumerate(rows.values()):
        axes.plot([said, took], [place, place], color=OTHERS, linewidth=2, zorder=1)
        axes.plot(said, place, "D", color=SAID, fillstyle="none", markersize=7, zorder=3)
        axes.plot(took, place, "o", color=INK, markersize=6, zorder=2)
        ratio = said / took
        axes.annotate(
            f"× {ratio:.2g}", (max(said, took), place), (8, -3), textcoords="offset points",
            color=ALARM if max(ratio, 1 / ratio) > 1.5 else INK, fontsize=9,
        )  # fmt: skip
    axes.plot([], [], "D", color=SAID, fillstyle="none", label="said (an estimate)")
    axes.plot([], [], "o", color=INK, label=f"measured ({GPU}, recorded)")
    axes.set(yticks=range(len(rows)), yticklabels=list(rows), xscale="log", xlabel="ms")
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    plain(axes)
    return fig


class Judged:
    """Estimates over measured times, as `course.kernels.machine.judge` drew them."""

    def __repr__(self):
        return "; ".join(f"{gpu}: {words(one)}" for gpu, one in errors().items())

    def _repr_html_(self):
        return as_html((ASSETS / "estimates.svg").read_text(encoding="utf-8"), repr(self), 700)


def judged():
    """The picture of all recorded kernels with an estimate."""
    return Judged()


def errors() -> dict:
    """GPU -> how far its estimates are off."""
    content = json.loads(JUDGED.read_text(encoding="utf-8"))
    return {gpu: languages["both"]["all"] for gpu, languages in content["gpus"].items()}


def words(error) -> str:
    """An error in words."""
    return (
        f"{error['kernels']} kernels, median error {error['median_error']:.0%}, nine in ten within"
        f" a factor of {error['p90_factor']:.2f}, {error['pairs_in_order']:.0%} of pairs in order"
    )


def worst(count: int, gpu: str = "H200"):
    """The kernels whose estimates are furthest off, numbered as in the picture, with the likely
    reason of each.
    """
    kernels = json.loads(JUDGED.read_text(encoding="utf-8"))["kernels"]
    for number, one in enumerate(worst_of(kernels, count, gpu), 1):
        took, said = format_ms(one["measured_ms"]), format_ms(one["estimate_ms"])
        print(f"{number:2} {one['name']:38} said {said:>9}, measured {took:>9}")
        print(f"     {reason_of(one['name'])}")


def reason_of(name: str) -> str:
    """Why an estimate is far off, most likely; "" where nobody has looked."""
    return next((why for beginning, why in WHY.items() if name.startswith(beginning)), "")


def limits():
    """What limits each kernel by its estimate, and by Nsight Compute's counters on an H200."""
    rows = profiled.recorded("H200")
    same = sum(row["agrees"] for row in rows)
    print(f"{same} of {len(rows)} kernels: the same limit")
    pairs = Counter((row["estimate"], row["ncu"]) for row in rows if not row["agrees"])
    for (said, counted), count in pairs.most_common():
        print(f"{count:4}  said: {WORDS[said].partition(':')[0]:24} counted: {UNITS[counted]}")


def counters(name: str) -> list[dict]:
    """A recorded report of Nsight Compute, a dict of numbers for each kernel."""
    table = profilers.load(profilers.Table, "ncu", f"{name}.ncu.csv", "")
    return [{key: number(value) for key, value in row.items()} for row in table.rows]


def timeline(name: str) -> list[tuple[int, int]]:
    """(start, duration) in nanoseconds of each kernel and copy of a recorded timeline."""
    table = profilers.load(profilers.Table, "CUPTI", f"{name}.gpu_trace.csv", "")
    return [(int(row["Start (ns)"]), int(row["Duration (ns)"])) for row in table.rows]


def number(cell: str):
    """A cell of a report as a number where it is one, with a unit behind it or not."""
    try:
        return float(cell.split()[0].replace(",", ""))
    except (ValueError, IndexError):
        return cell


def units(card):
    """A bar for each number of threads: how many blocks a GPU starts in a microsecond."""
    sizes = (32, 64, 128, 256, 512, 1024)
    rates = [card.rates[f"blocks_{size}"] / 1e6 for size in sizes]
    said = ", ".join(f"{s}: {r:,.0f}" for s, r in zip(sizes, rates, strict=True))
    fig, axes = chart(
        6, 2.4, alt=f"Blocks that an {card.name} starts in a microsecond, by threads: {said}"
    )
    axes.bar([str(size) for size in sizes], rates, color=ACCENT, width=0.6)
    axes.set(xlabel="threads in a block", ylabel="blocks started\nin a microsecond")
    plain(axes)
    return fig


def changes(gpu: str = "H200"):
    """What changes were said to bring and what they brought by the clock, as times as fast."""
    content = json.loads(CHANGED.read_text(encoding="utf-8"))
    for row in content["changes"]:
        if row["gpu"] == gpu:
            said, brought = (f"{row[key]:6.2f}" for key in ("said", "brought"))
            print(f"{row['name']:33} said {said}, brought {brought}   {row['change']}")
    found = content["gpus"][gpu]
    print(
        f"{found['changes']} changes on {with_article(gpu)}: {found['same_way']} in the direction "
        f"that was said; median factor {found['median_factor']:.2f}, nine in ten within "
        f"{found['p90_factor']:.2f}"
    )
