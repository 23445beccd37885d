"""Pictures of C for CUDA: memory as a program printed it, what is made from what, who lives how
long.
"""

import ctypes
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course.pictures.shapes import box, titled, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, chart
from utils.plots.svg import GREY as MUTED
from utils.plots.svg import ON_COLOUR, Drawing, strong
from utils.tools import plain_cpp, process

GREY = "#777777"  # of what only explains
GAP = 0.55  # rows that a gap between two variables takes
FILE_WIDTH, FILE_HEIGHT, APART = 150, 34, 110  # pixels: a file, from column to column
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

    fig, axes = chart(7.4, 0.36 * rows + 0.35, alt=alt)
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
    word(
        axes,
        -0.15,
        -0.4,
        "address",
        ha="right",
        color=GREY,
    )
    word(axes, 1.4, -0.4, "value", color=GREY)
    word(axes, 3.0, -0.4, "name (bytes)", ha="left", color=GREY)
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
        word(axes, 1.4, variable.row - 0.3, gap, fontsize=7.5, color=GREY)
    box(axes, 0, variable.row, 2.8, 1, colour, "white", 1.5)
    address = f"{variable.address:#x}"
    word(
        axes,
        -0.15,
        middle,
        address,
        ha="right",
        family="monospace",
    )
    word(axes, 1.4, middle, variable.value, fontsize=9, family="monospace")
    word(axes, 3.0, middle, f"{variable.name} ({variable.size})", ha="left", fontsize=9.5)


def _draw_arrow(axes, start, end, number):
    x = 4.9 + 0.45 * number  # each arrow turns in a lane of its own
    aside = 0.16 if start < end else -0.16  # so that one that comes and one that goes do not touch
    start, end = start + aside, end - aside
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
    fig, axes = chart(8.2, 0.3 * rows + 0.95, alt=alt)
    narrow = min(1.0, STRIP / len(stored))
    for i, value in enumerate(stored):
        row, column = divmod(i, columns)
        _element(axes, column, row, 1, value, row, marked=i == index)
        _element(axes, i * narrow, rows + 1.1, narrow, value, row, marked=i == index)
    place = f"in memory: y * columns + x = {y} * {columns} + {x} = {index}"
    word(
        axes,
        columns + 0.5,
        rows / 2,
        f"row y = {y}, column x = {x}",
        ha="left",
        fontsize=9.5,
    )
    word(axes, 0, rows + 0.55, place, ha="left", fontsize=9.5)
    axes.set(
        xlim=(-0.1, STRIP + 0.1),
        ylim=(rows + 2.2, -0.1),
    )
    axes.set_axis_off()
    return fig


def _element(axes, left, top, width, value, row, marked):
    """An element of a matrix in the colour of its row, its value written in where there is room."""
    box(axes, left, top, width, 1, BLOCK_COLOURS[row], "white", 1)
    if width > 0.6:
        word(axes, left + width / 2, top + 0.52, f"{value:02}", fontsize=8)
    if marked:
        box(axes, left, top, width, 1, "none", ALARM, 2.4, zorder=3)


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

    fig, axes = chart(7.4, 0.75 * len(sizes) + 0.3, alt=alt)
    for row, (name, size) in enumerate(sizes.items()):
        top = 1.7 * row
        word(
            axes,
            -0.3,
            top + 0.5,
            name,
            ha="right",
            fontsize=10,
        )
        for byte in range(size):
            box(axes, byte, top, 1, 1, IDLE, "white", 1)
            word(
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
    titled(axes, alt)
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
    box(axes, field.offset, top, field.size, 1, colour, "white", 1.5)
    letters = 9 if field.size > 1 else 7
    word(axes, field.offset + field.size / 2, top + 0.52, field.name, fontsize=letters)


_RULE = re.compile(r"^([\w.]+):[ \t]*(.*)$", re.MULTILINE)


def made_from(makefile: str):
    """A Makefile's files from left to right, with an arrow from each to what is made from it.

    makefile: its text, with rules `target: inputs` that make no circle.
    """
    rules = {target: inputs.split() for target, inputs in _RULE.findall(makefile)}
    columns = {}
    for name in dict.fromkeys([*sum(rules.values(), []), *rules]):
        columns.setdefault(_depth(name, rules), []).append(name)
    said = "; ".join(f"{name} from {' and '.join(inputs)}" for name, inputs in rules.items())
    most = max(map(len, columns.values()))
    width = len(columns) * FILE_WIDTH + (len(columns) - 1) * APART
    sheet = Drawing(width, most * 1.6 * FILE_HEIGHT, alt=f"What is made from what: {said}")
    places = {
        name: (column * (FILE_WIDTH + APART), sheet.height * (row + 0.5) / len(names))
        for column, names in columns.items()
        for row, name in enumerate(names)
    }
    for target, inputs in rules.items():
        for name in inputs:
            (x, y), (to_x, to_y) = places[name], places[target]
            sheet.arrow(x + FILE_WIDTH, y, to_x - 2, to_y, colour=strong(ACCENT), thick=2)
    for name, (x, y) in places.items():
        fill = BLOCK_COLOURS[1] if name in rules else BLOCK_COLOURS[0]
        sheet.named(x, y - FILE_HEIGHT / 2, FILE_WIDTH, FILE_HEIGHT, name, fill, size=15, rx=5)
    return sheet


def _depth(name, rules):
    """How many commands must run, one after the other, before there is such a file."""
    return 1 + max(_depth(each, rules) for each in rules[name]) if name in rules else 0


# ---- one pattern of bits, two readings

CELL, LINE = 50, 30  # pixels: a pattern, a row of the picture
ASIDE = 92  # pixels for the names of rows


def readings(bits: int = 4):
    """All patterns of so few bits, read without a sign and with one, and where 0 - 1 leads.

    Source of the signed reading: two's complement, as C++20 prescribes it.
    """
    count = 1 << bits
    signed = [value - count if value >= count // 2 else value for value in range(count)]
    alt = (
        f"The {count} patterns of {bits} bits: unsigned 0 to {count - 1}, signed {min(signed)} to "
        f"{max(signed)}. One less than 0 is the pattern {count - 1:0{bits}b}: unsigned "
        f"{count - 1}, signed {signed[-1]}."
    )
    sheet = Drawing(ASIDE + CELL * count + 2, 40 + 3 * LINE, alt=alt)
    for row, name in enumerate(("bits", "unsigned", "int")):
        sheet.text(ASIDE - 8, 40 + LINE * (row + 0.5), name, size=14, anchor="end")
    for value in range(count):
        texts = f"{value:0{bits}b}", str(value), str(signed[value]).replace("-", "−")
        colour = BLOCK_COLOURS[0 if signed[value] >= 0 else 1]
        for row, text in enumerate(texts):
            x, y = ASIDE + CELL * value, 40 + LINE * row
            fill = IDLE if row == 0 else colour
            sheet.named(x + 1, y + 1, CELL - 2, LINE - 2, text, fill, size=14, rx=3)
    first, last = ASIDE + CELL / 2, ASIDE + CELL * (count - 0.5)
    blue = strong(ACCENT)
    sheet.line(first, 40, first, 14, colour=blue, thick=1.5)
    sheet.line(first, 14, last, 14, colour=blue, thick=1.5)
    sheet.arrow(last, 14, last, 39, colour=blue)
    sheet.text((first + last) / 2, 27, "0 − 1", size=14, colour=blue)
    return sheet


# ---- from source to program

#: What the compiler does in turn: what it makes, the option that ends there
STAGES = (
    ("preprocessed", "-E", "headers pasted in"),
    ("assembly", "-S", "instructions as text"),
    ("object file", "-c", "machine code"),
    ("program", None, "libraries linked"),
)
STAGE, NEXT = 132, 22  # pixels: a stage's box, the arrow to the next


def stages(source: str):
    """What the C++ compiler of this machine makes of a file, step by step, each with its size.

    source: path of a .cpp file that compiles. RuntimeError if it does not.
    """
    sizes = {Path(source).name: Path(source).stat().st_size}
    with tempfile.TemporaryDirectory() as folder:
        for name, option, _ in STAGES:
            made = Path(folder, "made")
            flags = [option] if option else []
            _compiled(plain_cpp.command(Path(source), flags, made))
            sizes[name] = made.stat().st_size
    said = ", ".join(f"{name} {size:,} bytes" for name, size in sizes.items())
    sheet = Drawing((STAGE + NEXT) * len(sizes) - NEXT, 104, alt=f"From source to program: {said}.")
    does = ["what you write", *(words for *_, words in STAGES)]
    for step, (name, size) in enumerate(sizes.items()):
        left = (STAGE + NEXT) * step
        fill = BLOCK_COLOURS[1 if step else 0]
        sheet.named(left, 8, STAGE, 44, name, fill, size=14, rx=5)
        sheet.text(left + STAGE / 2, 68, does[step], size=12)
        sheet.text(left + STAGE / 2, 90, f"{size:,} bytes", size=13, font_weight="bold")
        if step:
            sheet.arrow(left - NEXT + 3, 30, left - 3, 30, colour=strong(ACCENT), thick=2)
    return sheet


def _compiled(command):
    """Run a compiler's command; RuntimeError with what it says if it fails."""
    done = process.run(command, timeout=60)
    if done.returncode:
        raise RuntimeError(done.output)


# ---- pointers handed to functions

HOLDS = (190, 34)  # pixels: a variable


def by_copy_and_by_address():
    """A pointer handed to a function: a copy, which it fills in vain, or the place of the caller's.

    As `allocate_wrong` and `allocate` of the chapter do it.
    """
    alt = (
        "allocate_wrong's p is a copy of a: it points to the new memory, a stays nullptr. "
        "allocate's p holds the address of a, and what it stores there, a points to."
    )
    sheet = Drawing(722, 196, alt=alt)
    heads = ("in main", "in the function", "in the heap")
    for head, x in zip(heads, (0, 265, 530), strict=True):
        sheet.heading(x, 10, head)
    sheet.named(0, 40, *HOLDS, "a = nullptr", BLOCK_COLOURS[1], size=14)
    sheet.named(265, 40, *HOLDS, "p, a copy of a", BLOCK_COLOURS[1], size=14)
    sheet.named(530, 40, *HOLDS, "memory, lost", BLOCK_COLOURS[7], size=14)
    sheet.arrow(457, 57, 527, 57, colour=strong(ACCENT), thick=2)
    sheet.text_from(0, 90, "allocate_wrong(a): p = malloc(…)", size=12, colour=MUTED)
    sheet.named(0, 120, *HOLDS, "a", BLOCK_COLOURS[1], size=14)
    sheet.named(265, 120, *HOLDS, "p = &a", BLOCK_COLOURS[4], size=14)
    sheet.named(530, 120, *HOLDS, "memory", BLOCK_COLOURS[0], size=14)
    sheet.arrow(263, 129, 193, 129, colour=strong(ACCENT), thick=2)
    sheet.line(150, 154, 150, 172, colour=strong(ALARM), thick=2)
    sheet.line(150, 172, 625, 172, colour=strong(ALARM), thick=2)
    sheet.arrow(625, 173, 625, 156, colour=strong(ALARM), thick=2)
    sheet.text_from(0, 186, "allocate(&a): *p = malloc(…)", size=12, colour=MUTED)
    return sheet


BYTE = 22  # pixels


def arguments(**types):
    """What a launch is handed: an array of addresses, and where each one leads.

    types: of the kernel's arguments by name, such as ctypes.c_int; their sizes are drawn.
    """
    sizes = {name: ctypes.sizeof(kind) for name, kind in types.items()}
    said = "; ".join(f"{name}, {size} bytes" for name, size in sizes.items())
    pointer = ctypes.sizeof(ctypes.c_void_p)
    alt = f"arguments: {len(sizes)} pointers of {pointer} bytes. They lead to {said}."
    sheet = Drawing(640, 24 + 46 * len(sizes), alt=alt)
    sheet.heading(0, 10, "void* arguments[]")
    sheet.heading(330, 10, "the variables themselves")
    for row, (name, size) in enumerate(sizes.items()):
        y = 28 + 46 * row
        _bytes(sheet, 0, y, pointer, BLOCK_COLOURS[1])
        sheet.text(BYTE * pointer / 2, y + 15, f"&{name}", size=14, colour=ON_COLOUR)
        sheet.arrow(BYTE * pointer + 4, y + 15, 326, y + 15, colour=strong(ACCENT), thick=2)
        _bytes(sheet, 330, y, size, BLOCK_COLOURS[row + 2])
        words = f"{name}, {size} bytes"
        sheet.text_from(340 + BYTE * size, y + 15, words, size=14)
    return sheet


def _bytes(sheet, left, top, count, fill):
    """So many bytes in a row, as a box with a mark between two."""
    sheet.box(left, top, BYTE * count, 30, fill=fill, rx=3)
    for byte in range(1, count):
        x = left + BYTE * byte
        sheet.line(x, top + 24, x, top + 30, colour=ON_COLOUR)


# ---- who lives how long

_EVENT = re.compile(r"^\s*([+-]) (\d+) bytes$")
MOMENT = 72  # pixels from one line of output to the next


def lifetimes(lines: Sequence[str]):
    """Bars from each `+ n bytes` of a program's output to its `- n bytes`, in the order of lines.

    Other lines are titles of what follows. ValueError when nothing is released.
    """
    runs = _lives(lines)
    if not any(lives for _, lives in runs):
        raise ValueError("no lines '+ n bytes' and '- n bytes' in the program's output")
    said = "; ".join(
        f"{title}: " + ", ".join(f"{size} bytes from {a} to {b}" for size, a, b in lives)
        for title, lives in runs
    )
    rows = sum(len(lives) + 1 for _, lives in runs)
    last = max(end for _, lives in runs for _, _, end in lives)
    sheet = Drawing(MOMENT * last + 260, 32 * rows + 24, alt=f"Who lives when. {said}.")
    row = 0
    for title, lives in runs:
        sheet.heading(0, 32 * row + 18, title)
        for place, (size, begin, end) in enumerate(lives):
            top = 32 * (row + place + 1)
            width = MOMENT * (end - begin)
            fill = BLOCK_COLOURS[place]
            sheet.named(MOMENT * begin, top, width, 26, size, fill)
            sheet.text_from(MOMENT * end + 8, top + 13, "released", size=12)
        row += len(lives) + 1
    words = "bytes held; time goes right"
    sheet.text_from(0, sheet.height - 8, words, size=12, colour=MUTED)
    return sheet


def _lives(lines) -> list[tuple[str, list]]:
    """For each title of the output, (bytes, first moment, last moment) of what it acquired."""
    runs = []
    for line in filter(str.strip, lines):
        event = _EVENT.match(line)
        if not event:
            runs.append((line.strip(), []))
            open_now, moment = {}, 0
            continue
        size = int(event[2])
        if event[1] == "+":
            open_now[size] = moment
        else:
            runs[-1][1].append((size, open_now.pop(size), moment))
        moment += 1
    return [(title, sorted(lives, key=lambda life: life[1])) for title, lives in runs]
