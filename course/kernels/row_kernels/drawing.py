"""Recorded rates of the row kernels as pictures."""

import itertools
import re
from dataclasses import dataclass

from course.kernels.row_kernels.shapes import WARP
from course.kernels.row_kernels.variants import VARIANTS
from utils import results
from utils.plots import ACCENT, INK, figure

COLUMNS = (1024, 4096, 16384, 65536, 131072)
STYLES = {
    "ours": {
        "color": ACCENT,
        "linewidth": 2.4,
        "marker": "o",
    },
    "compile": {
        "color": INK,
        "linestyle": "--",
        "marker": "s",
    },
    "torch": {
        "color": INK,
        "linestyle": ":",
        "marker": "^",
    },
}
NAMES = {
    "ours": "ours",
    "compile": "torch.compile",
    "torch": "torch",
}
SM_REGISTERS = 1 << 18  # bytes of an SM's registers
SM_SHARED = 227 << 10  # bytes of shared memory that a block may have, Hopper


def shares(operation: str):
    """Recorded speed as a share of a copy's against the length of a row, beside torch's.

    operation: as in the recorded names, such as "softmax". Returns a figure, or a sentence where
    nothing is recorded.
    """
    curves = {who: _recorded(operation, who) for who in STYLES}
    curves = {who: points for who, points in curves.items() if points}
    if not curves:
        return f"nothing is recorded yet for {operation}"
    rates = [
        f"{NAMES[who]} " + ", ".join(f"{share:.0%} at {columns:,}" for columns, share in points)
        for who, points in curves.items()
    ]
    fig = figure(7, 3, alt=f"{operation}, share of copy speed by columns: " + "; ".join(rates))
    axes = fig.add_subplot()
    for who, points in curves.items():
        axes.plot(
            *zip(*points, strict=True),
            label=NAMES[who],
            **STYLES[who],
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(COLUMNS, [f"{columns:,}" for columns in COLUMNS])
    axes.set(ylim=(0, 1.1), xlabel="values in a row", ylabel="share of copy speed")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", frameon=False)
    gpu = results.find(f"{operation}/{COLUMNS[0]}/ours/share_of_copy")
    if gpu:
        axes.set_title(f"{operation} on an {gpu['gpu']}, {gpu['date'][:10]}", fontsize=10)
    return fig


def _recorded(operation: str, who: str) -> list[tuple[int, float]]:
    """(columns, share of copy) of each length that is recorded."""
    entries = {
        columns: results.find(f"{operation}/{columns}/{who}/share_of_copy") for columns in COLUMNS
    }
    return [(columns, entry["value"]) for columns, entry in entries.items() if entry]


def choices(lengths=(4096, 16384)) -> str:
    """Recorded GB/s of softmax as it is, with one choice changed at a time, and of a copy.

    A column for each length of row, a line for each of the `variants`; without those that are not
    recorded.
    """
    lines = [" " * 32 + "".join(f"{columns:>9,}" for columns in lengths)]
    shown = {"as it is": "as it is: L2 evicts last"}
    for name in ("as it is", *VARIANTS, "copy"):
        path = re.sub(r"[^a-z0-9.]+", "_", name.lower()).strip("_")
        found = [results.find(f"softmax_variants/{n}/{path}/bandwidth") for n in lengths]
        if all(found):
            rates = "".join(f"{entry['value'] / 1e9:9,.0f}" for entry in found)
            lines.append(f"{shown.get(name, name):<32}{rates} GB/s")
    return "\n".join(lines)


# ---- the grid of shapes

#: Kernels of the grid, by the name in the metrics, and what a reader calls them
GRID = {
    "softmax": "softmax",
    "layernorm": "layer norm",
    "layernorm_backward": "layer norm, backward",
    "rmsnorm": "RMS norm",
    "rmsnorm_backward": "RMS norm, backward",
    "cross_entropy_forward": "cross-entropy",
    "cross_entropy": "cross-entropy and gradient",
}
TYPES = ("float32", "bfloat16", "float16")
SETS = {"": "tuned with", "/held_out": "held out"}


@dataclass(frozen=True)
class OfGrid:
    """What is recorded of one kernel, type and set of shapes: speeds over the best rival's."""

    kernel: str
    type: str
    suffix: str  # a key of SETS
    mean: float
    worst: float
    shape: str  # of the worst
    best: float | None


def of_grid() -> list[OfGrid]:
    """All that is recorded of the grid."""
    found = []
    for kernel, type_, suffix in itertools.product(GRID, TYPES, SETS):
        start = f"{kernel}/grid/{type_}{suffix}"
        mean = results.find(f"{start}/geomean_over_best")
        worst = results.find(f"{start}/worst_over_best")
        if not mean or not worst:
            continue
        place = f"{start}/worst_over_best"
        rows, columns, gap = (
            round(results.find(f"{place}/{what}")["value"]) for what in ("rows", "columns", "gap")
        )
        shape = f"{rows:,} x {columns:,}" + (f", {gap} apart" if gap else "")
        best = results.find(f"{start}/greatest_over_best")
        best = best and best["value"]
        found.append(OfGrid(kernel, type_, suffix, mean["value"], worst["value"], shape, best))
    return found


def grid():
    """Each kernel's geometric means, and lines from the worst shapes to them, or to the best ones
    where these are recorded: of the shapes that it was tuned with, and of those that nobody had
    seen. Returns a figure, or a sentence where nothing is recorded.
    """
    told = of_grid()
    if not told:
        return "nothing is recorded yet of the grid"
    least = min(told, key=lambda each: each.worst)
    words = "; ".join(
        f"{GRID[each.kernel]} {each.type} {SETS[each.suffix]}: "
        f"{each.mean:.2f}, worst {each.worst:.2f}"
        for each in told
    )
    fig = figure(7, 4, alt=f"Speed over the best rival's, mean and worst of many shapes: {words}")
    axes = fig.add_subplot()
    colours = {"": INK, "/held_out": ACCENT}
    order = list(itertools.product(SETS, TYPES))
    for each in told:
        lane = order.index((each.suffix, each.type)) / (len(order) + 2)
        y = list(GRID).index(each.kernel) + lane - 0.3
        style = {"color": colours[each.suffix], "linewidth": 1.2}
        axes.plot([each.worst, each.best or each.mean], [y, y], **style)
        axes.plot([each.mean], [y], "o", color=colours[each.suffix], markersize=4)
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    ticks = (0.25, 0.5, 1, 2)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(range(len(GRID)), GRID.values())
    axes.invert_yaxis()
    axes.set_xlabel("times the speed of the better of torch and torch.compile")
    for suffix, label in SETS.items():
        axes.plot([], [], "o-", color=colours[suffix], label=f"shapes {label}")
    axes.legend(loc="lower left", frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    entry = results.find(f"{least.kernel}/grid/{least.type}{least.suffix}/worst_over_best")
    axes.set_title(f"{entry['gpu']}, {entry['date'][:10]}", fontsize=10)
    return fig


def weakest(count: int = 6) -> str:
    """The weakest recorded shapes of the grid, one of a kernel, type and set each."""
    told = sorted(of_grid(), key=lambda each: each.worst)[:count]
    lines = [
        f"{each.worst:5.2f}  {GRID[each.kernel]:<26} {each.type:<9} {each.shape}" for each in told
    ]
    return "\n".join(lines) or "nothing is recorded yet of the grid"


#: What was called, by the name in the metrics
CALLS = {
    "softmax_torch": "torch.softmax",
    "softmax_ours": "ours",
    "softmax_unaligned_ours": "ours, rows that begin within an access",
}


def host_times() -> str:
    """Recorded microseconds of the CPU for a call, until the kernel is on its way."""
    entries = {label: results.find(f"launch/{name}/host_time") for name, label in CALLS.items()}
    lines = [
        f"{entry['value'] * 1e6:5.1f} µs  {label}" for label, entry in entries.items() if entry
    ]
    return "\n".join(lines) or "nothing is recorded yet of calls"


def homes(lengths=COLUMNS) -> str:
    """Where a row of float32 fits: a warp's registers, a block's, shared memory, or a cluster."""
    lines = []
    for columns in lengths:
        size = 4 * columns
        fits = [
            name
            for name, room in (
                (f"a warp's registers, {columns // WARP} a thread", WARP * 128 * 4),
                ("half an SM's registers", SM_REGISTERS // 2),
                ("an SM's shared memory", SM_SHARED),
                ("half of 8 SMs' registers: a cluster", 8 * SM_REGISTERS // 2),
            )
            if size <= room
        ]
        lines.append(f"{columns:7,} values, {size / 1024:4.0f} KB: fits into {fits[0]}")
    return "\n".join(lines)
