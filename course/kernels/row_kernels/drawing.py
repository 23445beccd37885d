"""Recorded rates of the row kernels as pictures."""

import re

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
