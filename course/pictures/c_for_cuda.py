"""Pictures of C for CUDA: memory as a program printed it. None knows what it was meant to do."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure

GREY = "#777777"  # of what only explains
GAP = 0.55  # rows that a gap between two variables takes
STRIP = 26  # cells that fit side by side in the picture of a matrix

_VARIABLE = re.compile(
    r"^(?P<name>\S+)\s+(?P<address>0x[0-9a-f]+)\s+(?P<size>\d+)\s+(?P<value>\S+)$"
)
_FIELD = re.compile(r"^(?P<type>\w+) (?P<total>\d+) (?P<name>\w+) (?P<offset>\d+) (?P<size>\d+)$")


@dataclass
class Variable:
    """A variable as a program printed it, and its place in the picture: the gap above it in bytes,
    and its row.
    """

    name: str
    address: int
    size: int
    value: str
    gap: int = 0
    row: float = 0

    @property
    def target(self) -> int | None:
        """The address that a pointer holds; None for any other value."""
        return int(self.value, 16) if self.value.startswith("0x") else None


def memory(lines: Sequence[str]):
    """Variables in the order of their addresses, with an arrow from each pointer to what it points
    to.

    lines: a program's output. Lines ``name address size value``, as the chapter's SHOW prints, are
        drawn, all others ignored.
    Where two neighbours do not touch, a gap says how many bytes lie between them. Raises ValueError
    when there is nothing to draw.
    """
    variables = _variables(lines)
    if not variables:
        raise ValueError("no line of the form 'name address size value' in the program's output")
    rows = _stack(variables)
    at = {variable.address: variable for variable in variables}
    arrows = [(variable, at[variable.target]) for variable in variables if variable.target in at]
    alt = "Variables by address: " + ", ".join(variable.name for variable in variables)
    alt += "".join(f"; {start.name} points to {end.name}" for start, end in arrows) + "."

    fig = figure(7.4, 0.36 * rows + 0.35, alt=alt)
    axes = fig.add_subplot()
    for variable in variables:
        _draw_variable(axes, variable)
    arrows.sort(key=lambda arrow: abs(arrow[0].row - arrow[1].row))
    for number, (start, end) in enumerate(arrows):
        _draw_arrow(axes, start.row + 0.5, end.row + 0.5, number)
    axes.set(
        xlim=(-3.1, 7.2),
        ylim=(rows + 0.1, -0.75),
    )
    axes.set_axis_off()
    _write(
        axes,
        -0.15,
        -0.4,
        "address",
        ha="right",
        fontsize=8.5,
        color=GREY,
    )
    _write(axes, 1.4, -0.4, "value", fontsize=8.5, color=GREY)
    _write(axes, 3.0, -0.4, "name (bytes)", ha="left", fontsize=8.5, color=GREY)
    return fig


def _variables(lines) -> list[Variable]:
    """The variables that the lines print, by address."""
    matches = filter(None, map(_VARIABLE.match, lines))
    variables = [
        Variable(match["name"], int(match["address"], 16), int(match["size"]), match["value"])
        for match in matches
    ]
    return sorted(variables, key=lambda variable: variable.address)


def _stack(variables: list[Variable]) -> float:
    """Give each variable its row, with room for gaps; returns how many rows there are in all."""
    row, end = 0.0, variables[0].address
    for variable in variables:
        variable.gap = variable.address - end
        row += GAP if variable.gap else 0
        variable.row = row
        row += 1
        end = variable.address + variable.size
    return row


def _draw_variable(axes, variable: Variable):
    middle = variable.row + 0.5
    colour = BLOCK_COLOURS[0] if variable.target is None else BLOCK_COLOURS[1]
    if variable.gap:
        gap = f"{variable.gap:,} bytes"
        _write(axes, 1.4, variable.row - 0.3, gap, fontsize=7.5, color=GREY)
    _box(axes, 0, variable.row, 2.8, colour, linewidth=1.5)
    address = f"{variable.address:#x}"
    _write(
        axes,
        -0.15,
        middle,
        address,
        ha="right",
        fontsize=8.5,
        family="monospace",
    )
    _write(axes, 1.4, middle, variable.value, fontsize=9, family="monospace")
    _write(axes, 3.0, middle, f"{variable.name} ({variable.size})", ha="left", fontsize=9.5)


def _draw_arrow(axes, start, end, number):
    x = 4.9 + 0.45 * number  # each arrow turns in a lane of its own
    path = {
        "color": ACCENT,
        "linewidth": 1.4,
        "solid_joinstyle": "round",
    }
    axes.plot([4.5, x, x, 4.62], [start, start, end, end], **path)
    axes.plot(
        [4.5],
        [start],
        marker="o",
        markersize=4,
        color=ACCENT,
    )
    axes.plot(
        [4.6],
        [end],
        marker="<",
        markersize=6,
        color=ACCENT,
    )


def row_major(stored: Sequence[int], columns: int, index: int):
    """A matrix as we think of it, and below it as it lies in memory, with one element marked in
    both.

    stored: the elements in the order of memory; columns: how many make a row; index: of the marked
        element.
    """
    rows = len(stored) // columns
    y, x = divmod(index, columns)
    alt = (
        f"A matrix of {rows} rows and {columns} columns. "
        f"Row {y}, column {x} is element {index} in memory."
    )
    fig = figure(8.2, 0.3 * rows + 0.95, alt=alt)
    axes = fig.add_subplot()
    narrow = min(1.0, STRIP / len(stored))
    for i, value in enumerate(stored):
        row, column = divmod(i, columns)
        _element(axes, column, row, 1, value, row, marked=i == index)
        _element(axes, i * narrow, rows + 1.1, narrow, value, row, marked=i == index)
    place = f"in memory: y * columns + x = {y} * {columns} + {x} = {index}"
    _write(
        axes,
        columns + 0.5,
        rows / 2,
        f"row y = {y}, column x = {x}",
        ha="left",
        fontsize=9.5,
    )
    _write(axes, 0, rows + 0.55, place, ha="left", fontsize=9.5)
    axes.set(
        xlim=(-0.1, STRIP + 0.1),
        ylim=(rows + 2.2, -0.1),
    )
    axes.set_axis_off()
    return fig


def _element(axes, left, top, width, value, row, marked):
    """An element of a matrix in the colour of its row, its value written in where there is room."""
    from matplotlib.patches import Rectangle

    _box(axes, left, top, width, BLOCK_COLOURS[row], linewidth=1)
    if width > 0.6:
        _write(axes, left + width / 2, top + 0.52, f"{value:02}", fontsize=8)
    if marked:
        frame = {
            "fill": False,
            "edgecolor": ALARM,
            "linewidth": 2.4,
            "zorder": 3,
        }
        axes.add_patch(Rectangle((left, top), width, 1, **frame))


@dataclass(frozen=True)
class Field:
    """A field of a struct: its offset and size in bytes."""

    name: str
    offset: int
    size: int


def layout(lines: Sequence[str]):
    """The bytes of structs, field by field, padding left empty, as the compiler laid them out.

    lines: a program's output; lines ``type size field offset size`` (in bytes) are drawn, others
        ignored.
    """
    sizes, fields = _structs(lines)
    padding = {
        name: size - sum(field.size for field in fields[name]) for name, size in sizes.items()
    }
    said = [
        f"{name}: {size} bytes, {padding[name]} of them padding" for name, size in sizes.items()
    ]
    alt = ". ".join(said) + "."

    fig = figure(7.4, 0.75 * len(sizes) + 0.3, alt=alt)
    axes = fig.add_subplot()
    for row, (name, size) in enumerate(sizes.items()):
        top = 1.7 * row
        _write(
            axes,
            -0.3,
            top + 0.5,
            name,
            ha="right",
            fontsize=10,
        )
        for byte in range(size):
            _box(axes, byte, top, 1, IDLE, linewidth=1)
            _write(
                axes,
                byte + 0.5,
                top + 1.25,
                str(byte),
                fontsize=7,
                color=GREY,
            )
        for field, colour in zip(fields[name], BLOCK_COLOURS, strict=False):
            _draw_field(axes, field, top, colour)
    axes.set(
        xlim=(-3, max(sizes.values()) + 0.2),
        ylim=(1.7 * len(sizes), -0.15),
    )
    axes.set_axis_off()
    axes.set_title(alt, fontsize=9.5, color=INK, loc="left")
    return fig


def _structs(lines) -> tuple[dict[str, int], dict[str, list[Field]]]:
    """(bytes, fields) of each struct that the lines print."""
    sizes, fields = {}, {}
    for match in filter(None, map(_FIELD.match, lines)):
        sizes[match["type"]] = int(match["total"])
        field = Field(match["name"], int(match["offset"]), int(match["size"]))
        fields.setdefault(match["type"], []).append(field)
    return sizes, fields


def _draw_field(axes, field: Field, top, colour):
    _box(axes, field.offset, top, field.size, colour, linewidth=1.5)
    letters = 9 if field.size > 1 else 7
    _write(axes, field.offset + field.size / 2, top + 0.52, field.name, fontsize=letters)


def _box(axes, left, top, width, colour, linewidth):
    """A box of one row's height."""
    from matplotlib.patches import Rectangle

    style = {
        "facecolor": colour,
        "edgecolor": "white",
        "linewidth": linewidth,
    }
    axes.add_patch(Rectangle((left, top), width, 1, **style))


def _write(
    axes,
    x,
    y,
    text,
    ha="center",
    color=INK,
    **style,
):
    """A text whose middle is at height y."""
    axes.text(
        x,
        y,
        text,
        ha=ha,
        va="center",
        color=color,
        **style,
    )
