"""The pictures and tables of chapter 17, drawn from recorded results: the race, the waterfall,
where the time goes.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from utils import engine, results
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, INK, figure


def recorded(prefix: str) -> dict[str, dict]:
    """Entries whose name begins with `prefix`, by the rest of their name; of one GPU: this one, or
    the last recorded.
    """
    found = [entry for entry in results.load() if entry["name"].startswith(prefix)]
    here = engine.gpu()
    mine = [entry for entry in found if here and entry["gpu"] == here.name]
    if found and not mine:
        last = max(found, key=lambda entry: entry["date"])["gpu"]
        mine = [entry for entry in found if entry["gpu"] == last]
    return {entry["name"].removeprefix(prefix): entry for entry in mine}


def origin(entries: Mapping[str, dict]) -> str:
    """Whose these entries are: "NVIDIA H200, 2026-01-31, PyTorch 2.11.0"."""
    if not entries:
        return "nothing is recorded yet: `make race` on a machine with a GPU does it"
    last = max(entries.values(), key=lambda entry: entry["date"])
    return f"{last['gpu']}, {last['date'][:10]}, PyTorch {last['versions'].get('torch', '?')}"


def nothing(what: str):
    """In the place of a picture that nothing has been recorded for: it says so."""
    says = f"{what}: {origin({}).replace('`', '')}"
    fig = figure(0.3 + 0.078 * len(says), 0.4, alt=f"{what}: nothing recorded yet")
    fig.text(0.01, 0.5, says, fontsize=9.5, color=INK, va="center")
    return fig


class Table:
    """Rows that a notebook shows as a table, and a terminal as columns."""

    def __init__(self, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = ""):
        self.head, self.rows, self.note = list(head), [list(row) for row in rows], note

    def __repr__(self):
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        text = [
            "  ".join(
                cell.rjust(w) if column else cell.ljust(w)
                for column, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([*text, *([self.note] if self.note else [])])

    def _repr_markdown_(self):
        rows = [self.head, [":--", *["--:"] * (len(self.head) - 1)], *self.rows]
        table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        return table + (f"\n\n{self.note}" if self.note else "")


# ---- the race


def race() -> dict[str, dict]:
    """The race's entries as "64/ours/bf16" and so on."""
    return recorded("mnist/step/")


def times(entries: Mapping[str, dict]) -> dict[str, dict[int, dict]]:
    """{rival: {batch: entry}} from the entries of `race`, the slowest rival first."""
    by_rival = {}
    for name, entry in entries.items():
        batch, _, rival = name.partition("/")
        if entry["unit"] == "µs":
            by_rival.setdefault(rival, {})[int(batch)] = entry
    return dict(
        sorted(
            by_rival.items(),
            key=lambda item: -np.mean([np.log(e["value"]) for e in item[1].values()]),
        )
    )


def best_of_pytorch(rivals: Mapping[str, dict]) -> dict[int, str]:
    """{batch: PyTorch's fastest mode there}."""
    batches = sorted({batch for found in rivals.values() for batch in found})
    pytorch = [rival for rival in rivals if rival.startswith("pytorch/")]
    return {
        batch: min(
            (r for r in pytorch if batch in rivals[r]),
            key=lambda r: rivals[r][batch]["value"],
            default="",
        )
        for batch in batches
    }


#: Colours by who launches, lines by precision; the first that occurs in a rival's name.
LAUNCHERS = {
    "graph_compile": "#009E73",
    "graph_max": "#005F46",
    "graph": ACCENT,
    "compile": "#E69F00",
    "": "#999999",
}
PRECISIONS = {"fp32": ":", "tf32": "--", "": "-"}


def label_of(rival: str) -> str:
    """A rival's name for readers."""
    return rival.replace("ours/", "ours, ").removeprefix("pytorch/").replace("_", " ")


def race_table() -> Table:
    """Every rival's time for a step at every batch size, PyTorch's best in bold, and how much
    faster ours is.
    """
    entries = race()
    rivals = times(entries)
    best = best_of_pytorch(rivals)
    rows = []
    for rival, found in rivals.items():
        cells = []
        for batch in best:
            entry = found.get(batch)
            digits = 1 if entry and entry["spread"] < 10 else 0
            text = f"{entry['value']:,.{digits}f} ± {entry['spread']:.{digits}f}" if entry else "–"
            cells.append(f"**{text}**" if best[batch] == rival else text)
        rows.append([("" if rival.startswith("ours/") else "PyTorch ") + label_of(rival), *cells])
    speedups = [entries.get(f"{batch}/speedup_over_pytorch_best") for batch in best]
    if any(speedups):
        rows.append(
            ["PyTorch's best ÷ ours", *(f"**{e['value']:.2f}×**" if e else "–" for e in speedups)]
        )
    return Table(
        ["µs a step", *(f"batch {batch:,}" for batch in best)],
        rows,
        origin(entries) + (". Median ± half the interquartile range." if rows else ""),
    )


def race_chart():
    """Time of a step against the batch size: every mode of PyTorch, and ours."""
    entries = race()
    rivals = times(entries)
    best = best_of_pytorch(rivals)
    known = {batch: entries.get(f"{batch}/speedup_over_pytorch_best") for batch in best}
    speedups = {batch: entry["value"] for batch, entry in known.items() if entry}
    if not rivals:
        return nothing("Microseconds a step against the batch size")
    faster = "; ours is faster than PyTorch's best mode by " + ", ".join(
        f"{s:.1f} at batch {b}" for b, s in speedups.items()
    )
    fig = figure(
        8.5,
        4.6,
        alt="Microseconds a step against the batch size, both on logarithmic scales: "
        f"{len(rivals)} rivals" + (faster if speedups else ""),
    )
    axes = fig.add_subplot()
    for rival, found in rivals.items():
        xs = sorted(found)
        ours = rival.startswith("ours/")
        colour = (
            ALARM if ours else next(colour for kind, colour in LAUNCHERS.items() if kind in rival)
        )
        style = next(style for precision, style in PRECISIONS.items() if precision in rival)
        axes.plot(
            xs,
            [found[x]["value"] for x in xs],
            "o" + style,
            color=colour,
            linewidth=2.6 if ours else 1.4,
            markersize=5 if ours else 3,
            label=label_of(rival),
            zorder=3 if ours else 2,
        )
    for batch, factor in speedups.items():
        axes.annotate(
            f"{factor:.1f}×",
            (batch, rivals["ours/bf16"][batch]["value"]),
            xytext=(0, -15),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            color=ALARM,
        )
    axes.set(xlabel="batch size", ylabel="µs a step", title=origin(entries))
    axes.margins(y=0.12)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(list(best), [f"{b:,}" for b in best])
    axes.minorticks_off()
    axes.title.set(fontsize=9.5, color=INK, ha="left")
    axes.title.set_position((0, 1))
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    return fig


# ---- where the time goes


def bars(
    parts: Mapping[str, float],
    *,
    title: str,
    what: str,
    unit: str = "µs",
    share: bool = True,
    axis: str = "",
):
    """A bar for each part, the longest first, with its `share` of all.

    what: for those who cannot see it. axis: what the axis says, if not "µs a step".
    """
    if not parts:
        return nothing(what)
    parts = dict(sorted(parts.items(), key=lambda item: -item[1]))
    total = sum(parts.values())
    fig = figure(
        8,
        0.9 + 0.32 * len(parts),
        alt=f"{what}: " + ", ".join(f"{name} {value:,.0f} {unit}" for name, value in parts.items()),
    )
    axes = fig.add_subplot()
    axes.barh(list(parts), list(parts.values()), color=ACCENT, height=0.65)
    for row, value in enumerate(parts.values()):
        text = f" {value:,.1f} {unit}" + (f" · {value / total:.0%}" if share else "")
        axes.text(value, row, text, va="center", fontsize=8.5, color=INK)
    axes.set_xlim(0, 1.25 * max(parts.values()))
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9.5, loc="left", color=INK)
    axes.set_xlabel(axis or f"{unit} a step", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def waterfall(
    steps: Mapping[str, float],
    *,
    title: str,
    predicted: Mapping[str, float] = MappingProxyType({}),
    unit: str = "µs",
):
    """What each change took off, from the first version to the last; a change that cost time is
    drawn in red.

    predicted: what some of the versions were expected to take, drawn as a line across the bar.
    """
    if not steps:
        return nothing("Waterfall of optimizations")
    names, values = list(steps), list(steps.values())
    fig = figure(
        8.8,
        0.9 + 0.36 * len(names),
        alt="Waterfall of optimizations: "
        + ", then ".join(f"{name} {value:,.0f} {unit}" for name, value in steps.items()),
    )
    axes = fig.add_subplot()
    for row, value in enumerate(values):
        before = values[row - 1] if row else value
        axes.barh(row, value, color=BLOCK_COLOURS[0], height=0.6)
        if row:
            axes.barh(
                row,
                before - value,
                left=value,
                height=0.6,
                color="#DDDDDD" if before >= value else ALARM,
            )
        factor = f" · {before / value:.2f}×" if row else ""
        if names[row] in predicted:
            axes.plot([predicted[names[row]]] * 2, [row - 0.42, row + 0.42], color=INK, linewidth=2)
            factor += f" · predicted {predicted[names[row]]:,.0f}"
        end = max(value, before, predicted.get(names[row], 0))
        axes.text(end, row, f" {value:,.0f} {unit}{factor}", va="center", fontsize=8.5, color=INK)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_xlim(0, 1.35 * max(values))
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit} a step", fontsize=9)
    axes.set_title(title, fontsize=9.5, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def owners(lane_of: np.ndarray, title: str, highlight: int = 6):
    """Which lane of a warp holds each element of a small matrix: [rows, columns] of lane numbers,
    one lane marked.
    """
    rows, columns = lane_of.shape
    fig = figure(
        0.36 * columns + 0.6,
        0.3 * rows + 0.6,
        alt=f"{title}: a {rows} × {columns} matrix, each cell with the number "
        f"of the lane that holds it; lane {highlight} is marked",
    )
    axes = fig.add_subplot()
    for (row, column), lane in np.ndenumerate(lane_of):
        mine = lane == highlight
        axes.add_patch(
            _rectangle(
                column, row, ALARM if mine else BLOCK_COLOURS[int(lane) // 4 % len(BLOCK_COLOURS)]
            )
        )
        axes.text(
            column + 0.5,
            row + 0.53,
            str(lane),
            ha="center",
            va="center",
            fontsize=7.5,
            color="white" if mine else INK,
        )
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.spines[:].set_visible(False)
    return fig


def _rectangle(x, y, colour):
    from matplotlib.patches import Rectangle

    return Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, facecolor=colour, edgecolor="white")
