"""Pictures of C for CUDA: memory as a program printed it. None knows what it was meant to do."""

import re
from collections.abc import Sequence

from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure

GREY = "#777777"  # of what only explains

_VARIABLE = re.compile(
    r"^(?P<name>\S+)\s+(?P<address>0x[0-9a-f]+)\s+(?P<size>\d+)\s+(?P<value>\S+)$"
)
_FIELD = re.compile(r"^(?P<type>\w+) (?P<total>\d+) (?P<name>\w+) (?P<offset>\d+) (?P<size>\d+)$")


def memory(lines: Sequence[str]):
    """Variables in the order of their addresses, with an arrow from each pointer to what it points
    to.

    lines: a program's output. Lines ``name address size value``, as the chapter's SHOW prints, are
        drawn, all others ignored.
    Where two neighbours do not touch, a gap says how many bytes lie between them. Raises ValueError
    when there is nothing to draw.
    """
    found = [m.groupdict() for m in map(_VARIABLE.match, lines) if m]
    if not found:
        raise ValueError("no line of the form 'name address size value' in the program's output")
    boxes = sorted(
        ({**v, "at": int(v["address"], 16), "size": int(v["size"])} for v in found),
        key=lambda v: v["at"],
    )
    y, above = 0.0, None
    for box in boxes:
        gap = 0 if above is None else box["at"] - above["at"] - above["size"]
        y += 0.55 if gap else 0
        box["gap"], box["y"] = gap, y
        y, above = y + 1, box
    where = {box["at"]: box for box in boxes}
    arrows = [
        (box, where[int(box["value"], 16)])
        for box in boxes
        if box["value"].startswith("0x") and int(box["value"], 16) in where
    ]
    alt = "Variables by address: " + ", ".join(b["name"] for b in boxes)
    alt += "".join(f"; {a['name']} points to {b['name']}" for a, b in arrows) + "."
    fig = figure(7.4, 0.36 * y + 0.35, alt=alt)
    axes = fig.add_subplot()
    for box in boxes:
        _draw_variable(axes, box)
    for number, (start, end) in enumerate(sorted(arrows, key=lambda a: abs(a[0]["y"] - a[1]["y"]))):
        _draw_arrow(axes, start["y"] + 0.5, end["y"] + 0.5, number)
    axes.set(xlim=(-3.1, 7.2), ylim=(y + 0.1, -0.75))
    axes.set_axis_off()
    headings = (
        (-0.15, "address", "right"),
        (1.4, "value", "center"),
        (3.0, "name (bytes)", "left"),
    )
    for x, text, side in headings:
        axes.text(x, -0.4, text, ha=side, va="center", fontsize=8.5, color=GREY)
    return fig


def _draw_variable(axes, box):
    from matplotlib.patches import Rectangle

    y, pointer = box["y"], box["value"].startswith("0x")
    if box["gap"]:
        axes.text(
            1.4,
            y - 0.3,
            f"{box['gap']:,} bytes",
            ha="center",
            va="center",
            fontsize=7.5,
            color=GREY,
        )
    axes.add_patch(
        Rectangle(
            (0, y),
            2.8,
            1,
            facecolor=BLOCK_COLOURS[1] if pointer else BLOCK_COLOURS[0],
            edgecolor="white",
            linewidth=1.5,
        )
    )
    axes.text(
        -0.15,
        y + 0.5,
        box["address"],
        ha="right",
        va="center",
        fontsize=8.5,
        color=INK,
        family="monospace",
    )
    axes.text(
        1.4,
        y + 0.5,
        box["value"],
        ha="center",
        va="center",
        fontsize=9,
        color=INK,
        family="monospace",
    )
    axes.text(
        3.0,
        y + 0.5,
        f"{box['name']} ({box['size']})",
        ha="left",
        va="center",
        fontsize=9.5,
        color=INK,
    )


def _draw_arrow(axes, start, end, number):
    x = 4.9 + 0.45 * number  # each arrow turns in a lane of its own
    axes.plot(
        [4.5, x, x, 4.62],
        [start, start, end, end],
        color=ACCENT,
        linewidth=1.4,
        solid_joinstyle="round",
    )
    axes.plot([4.5], [start], marker="o", markersize=4, color=ACCENT)
    axes.plot([4.6], [end], marker="<", markersize=6, color=ACCENT)


def row_major(stored: Sequence[int], columns: int, index: int):
    """A matrix as we think of it, and below it as it lies in memory, with one element marked in
    both.

    stored: the elements in the order of memory; columns: how many make a row; index: of the marked
        element.
    """
    from matplotlib.patches import Rectangle

    rows, y, x = len(stored) // columns, index // columns, index % columns
    fig = figure(
        8.2,
        0.3 * rows + 0.95,
        alt=f"A matrix of {rows} rows and {columns} columns. Row {y}, column {x} is element "
        f"{index} in memory.",
    )
    axes = fig.add_subplot()
    for i, value in enumerate(stored):
        row, column = divmod(i, columns)
        cell = min(1.0, 26 / len(stored))
        for left, top, width in ((column, row, 1), (i * cell, rows + 1.1, cell)):
            axes.add_patch(
                Rectangle(
                    (left, top),
                    width,
                    1,
                    facecolor=BLOCK_COLOURS[row],
                    edgecolor="white",
                    linewidth=1,
                )
            )
            if width > 0.6:
                axes.text(
                    left + width / 2,
                    top + 0.52,
                    f"{value:02}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=INK,
                )
            if i == index:
                axes.add_patch(
                    Rectangle(
                        (left, top), width, 1, fill=False, edgecolor=ALARM, linewidth=2.4, zorder=3
                    )
                )
    axes.text(
        columns + 0.5,
        rows / 2,
        f"row y = {y}, column x = {x}",
        va="center",
        fontsize=9.5,
        color=INK,
    )
    axes.text(
        0,
        rows + 0.55,
        f"in memory: y * columns + x = {y} * {columns} + {x} = {index}",
        va="center",
        fontsize=9.5,
        color=INK,
    )
    axes.set(xlim=(-0.1, 26.1), ylim=(rows + 2.2, -0.1))
    axes.set_axis_off()
    return fig


def layout(lines: Sequence[str]):
    """The bytes of structs, field by field, padding left empty, as the compiler laid them out.

    lines: a program's output; lines ``type size field offset size`` (in bytes) are drawn, others
        ignored.
    """
    from matplotlib.patches import Rectangle

    fields = [m.groupdict() for m in map(_FIELD.match, lines) if m]
    types = list(dict.fromkeys(f["type"] for f in fields))
    totals = {f["type"]: int(f["total"]) for f in fields}
    used = {t: sum(int(f["size"]) for f in fields if f["type"] == t) for t in types}
    alt = (
        ". ".join(f"{t}: {totals[t]} bytes, {totals[t] - used[t]} of them padding" for t in types)
        + "."
    )
    fig = figure(7.4, 0.75 * len(types) + 0.3, alt=alt)
    axes = fig.add_subplot()
    for row, name in enumerate(types):
        top = 1.7 * row
        axes.text(-0.3, top + 0.5, name, ha="right", va="center", fontsize=10, color=INK)
        for byte in range(totals[name]):
            axes.add_patch(
                Rectangle((byte, top), 1, 1, facecolor=IDLE, edgecolor="white", linewidth=1)
            )
            axes.text(
                byte + 0.5,
                top + 1.25,
                str(byte),
                ha="center",
                va="center",
                fontsize=7,
                color=GREY,
            )
        for colour, field in enumerate(f for f in fields if f["type"] == name):
            offset, size = int(field["offset"]), int(field["size"])
            axes.add_patch(
                Rectangle(
                    (offset, top),
                    size,
                    1,
                    facecolor=BLOCK_COLOURS[colour],
                    edgecolor="white",
                    linewidth=1.5,
                )
            )
            axes.text(
                offset + size / 2,
                top + 0.52,
                field["name"],
                ha="center",
                va="center",
                fontsize=9 if size > 1 else 7,
                color=INK,
            )
    axes.set(xlim=(-3, max(totals.values()) + 0.2), ylim=(1.7 * len(types), -0.15))
    axes.set_axis_off()
    axes.set_title(alt, fontsize=9.5, color=INK, loc="left")
    return fig
