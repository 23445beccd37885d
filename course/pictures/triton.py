"""Pictures of the chapter on Triton: programs, tiles, layouts, and how the languages compare."""

import re

import numpy as np
import torch

from course.pictures.shapes import box, grouped_order, strips_of, word
from utils import results
from utils.plots import (
    ACCENT,
    ALARM,
    BLOCK_COLOURS,
    IDLE,
    INK,
    OTHERS,
    chart,
    figure,
    images,
    svg,
)
from utils.plots.cells import draw_cells, draw_lines

SMALL, LARGE = 8, 10  # sizes of letters
LANGUAGES = {
    "cuda_c_portable": "CUDA C, mma.sync",
    "cuda_c": "CUDA C, Hopper",
    "triton_pointers": "Triton, pointers",
    "triton": "Triton, its best",
    "gluon": "Gluon",
    "cutile": "cuTile",
    "cute": "CuTe DSL",
}
#: Whose lines have names and circles in the picture, and their colours
NAMED = {"cutile": "#8A4FBF", "triton": ACCENT, "gluon": "#1B7F4B", "cuda_c": ALARM}
#: Whose thin lines lie apart from others, so that there is room for a name below
APART = ("triton_pointers", "cuda_c_portable")


def _colour(number: int) -> str:
    return BLOCK_COLOURS[number % len(BLOCK_COLOURS)]


def _cells(axes, numbers: np.ndarray, colours, text: bool, size=SMALL + 1) -> None:
    """A matrix of cells; colours gives each number's colour."""
    for (row, column), number in np.ndenumerate(numbers):
        box(axes, column, row, 1, 1, colours(number), "white", 0.6)
        if text:
            word(axes, column + 0.5, row + 0.5, number, fontsize=size)
    axes.set_xlim(0, numbers.shape[1])
    axes.set_ylim(numbers.shape[0], 0)
    axes.set_aspect("equal")
    axes.axis("off")


def programs(n: int, block: int):
    """Elements by the program that has them; lanes behind the end are masked."""
    count = -(-n // block)
    masked = count * block - n
    grey = f"the last {masked} lanes of program {count - 1} are masked" if masked else "none masked"
    alt = f"{n} elements in {count} programs of {block} lanes; {grey}"
    fig, axes = chart(7.5, 0.34 * count + 0.7, alt=alt)
    lanes = np.arange(count * block).reshape(count, block)
    _cells(axes, lanes, lambda i: _colour(i // block) if i < n else IDLE, text=block <= 32)
    for program in range(count):
        word(axes, -0.4, program + 0.5, f"program {program}", ha="right", fontsize=SMALL)
    axes.set_title(f"i = program_id · {block} + arange(0, {block}); grey: masked", size=SMALL + 1)
    return fig


def tile_order(
    rows: int = 8,
    columns: int = 8,
    group: int = 4,
    together: int = 16,
):
    """Programs that run at the same time, row by row and in groups: what they read."""
    orders = {
        "row by row": grouped_order(rows, columns, 1),
        f"groups of {group}": grouped_order(rows, columns, group),
    }
    counts = {name: sum(strips_of(order, together)) for name, order in orders.items()}
    words = "; ".join(f"{name}: {count}" for name, count in counts.items())
    alt = (
        f"which program has which tile of c; strips that programs 0 to {together - 1} read: {words}"
    )

    def colour(number):
        return BLOCK_COLOURS[4] if number < together else IDLE

    fig = figure(7.2, 3.6, alt=alt)
    for axes, (name, order) in zip(fig.subplots(1, 2), orders.items(), strict=True):
        _cells(axes, order, colour, text=True, size=LARGE)
        axes.set_title(f"{name}: {counts[name]} strips of a and b", size=LARGE)
    return fig


# ---- prints of the darkroom


def photographs(named: dict, width: float = 3.3):
    """Grey pictures side by side, each under its name.

    named: {name: [h, w]}, arrays or tensors; 0 is black, 1 is white, and what is beyond is cut off.
    width: inches of each.
    """
    greys = [_grey(picture) for picture in named.values()]
    seen = (f"{name} ({_seen(grey)})" for name, grey in zip(named, greys, strict=True))
    alt = f"Photographs, from 0, black, to 1, white: {'; '.join(seen)}."
    return images(greys, list(named), alt=alt, width=width * len(greys))


def _seen(grey: np.ndarray) -> str:
    """How bright a print is, and how rough: a jumble has neighbours that differ much."""
    rough = np.abs(np.diff(grey, axis=0)).mean()
    return f"mean {grey.mean():.2f}, a pixel and the one below differ by {rough:.2f}"


def _grey(picture) -> np.ndarray:
    """A picture as it is printed: float32 from 0 to 1."""
    return torch.as_tensor(picture).cpu().float().nan_to_num().clamp(0, 1).numpy()


PIXEL, GAP, LABEL = 0.03, 0.1, 0.6  # inches: a pixel's side, between pictures, room for a word


def thin(a: np.ndarray, b: np.ndarray, most: int = 32):
    """Two thin matrices where they belong: a left of their product, b above it.

    a: [m, k], b: [k, n], with signs; the product is a photograph from 0 to 1. Up to k = most there
    is room, so that the photograph stays where it is while k grows.
    """
    (m, k), n = a.shape, b.shape[1]
    words = f"{k * (m + n):,} numbers in place of {m * n:,}"
    alt = f"{k} columns of {m} and {k} rows of {n} numbers; their product is a photograph: {words}."
    left, foot, high = LABEL + most * PIXEL + GAP, GAP, m * PIXEL
    top = foot + high + GAP
    fig = figure(left + n * PIXEL + GAP, top + most * PIXEL + LABEL, alt=alt)
    fig.set_layout_engine("none")
    reach = max(np.abs(a).max(), np.abs(b).max())
    signed = {"cmap": "gray", "vmin": -reach, "vmax": reach}
    _print(fig, a, (left - GAP - k * PIXEL, foot), **signed)
    _print(fig, b, (left, top), **signed)
    _print(fig, _grey(a @ b), (left, foot), cmap="gray", vmin=0, vmax=1)
    _label(fig, left - 2 * GAP - k * PIXEL, foot + high / 2, f"a\n{m} × {k}", ha="right")
    _label(fig, left - GAP, top + k * PIXEL / 2, f"b: {k} × {n}", ha="right")
    _label(fig, left, top + k * PIXEL + LABEL / 3, words, ha="left", size=LARGE)
    return fig


def _print(fig, picture, corner, **more) -> None:
    """A picture with its lower left corner there, pixel for pixel; inches."""
    width, height = fig.get_size_inches()
    rows, columns = picture.shape
    place = corner[0] / width, corner[1] / height
    axes = fig.add_axes((*place, columns * PIXEL / width, rows * PIXEL / height))
    axes.imshow(picture, aspect="auto", interpolation="nearest", **more)
    axes.set_axis_off()


def _label(fig, x, y, text, size=SMALL + 1, **more) -> None:
    """A word there; inches."""
    width, height = fig.get_size_inches()
    fig.text(x / width, y / height, text, va="center", size=size, color=INK, **more)


# ---- a tile of addresses

TILE_CELL = 44, 30  # pixels: width and height of a number's cell


def tile_addresses(program: int, rows: int, columns: int, block: tuple[int, int]) -> np.ndarray:
    """[R, C]: the offsets of a program's tile in a matrix of rows × columns; -1: masked.

    block: (R, C); program p has the R rows from p R on, and all columns.
    """
    row = program * block[0] + np.arange(block[0])[:, None]
    column = np.arange(block[1])[None, :]
    inside = (row < rows) & (column < columns)
    return np.where(inside, row * columns + column, -1)


def tile(program: int, rows: int, columns: int, block: tuple[int, int]):
    """Row numbers that stand and column numbers that lie make a tile of addresses."""
    height, width = block
    addresses = tile_addresses(program, rows, columns, block)
    masked = np.count_nonzero(addresses < 0)
    first = program * height
    alt = (
        f"Program {program}: rows {first} to {first + height - 1} stand, columns 0 to {width - 1} "
        f"lie, and together they make {height} × {width} offsets, row * {columns} + column; "
        f"{masked} outside of {rows} × {columns} are masked"
    )
    wide, high = TILE_CELL
    left, top = 242, 62
    sheet = svg.Drawing(left + width * wide + 12, top + height * high + 34, alt=alt)
    sheet.text(left + width * wide / 2, 12, f"column = arange(0, {width})[None, :]")
    for column in range(width):
        _number(sheet, left + column * wide, top - high - 8, column, _colour(2))
    middle = top + height * high / 2
    sheet.text(left - wide - 18, middle - 10, f"row = {program} * {height} +", anchor="end")
    sheet.text(left - wide - 18, middle + 10, f"arange(0, {height})[:, None]", anchor="end")
    for row in range(height):
        _number(sheet, left - wide - 8, top + row * high, first + row, _colour(1))
    for (row, column), address in np.ndenumerate(addresses):
        place = left + column * wide, top + row * high
        if address < 0:
            _number(sheet, *place, "", IDLE)
        else:
            _number(sheet, *place, address, _colour(0))
    words = f"row * {columns} + column; grey: masked"
    sheet.text(left + width * wide / 2, top + height * high + 18, words)
    return sheet


def _number(sheet, x, y, number, colour) -> None:
    """A cell of a tile."""
    sheet.named(x, y, *TILE_CELL, number, colour, size=14, rx=None, line=svg.PAPER)


# ---- layouts


def blocked(text: str) -> dict:
    """The numbers of the first #ttg.blocked layout in a TTGIR."""
    found = re.search(r"#ttg\.blocked<\{(.*?)\}>", text)
    if not found:
        raise LookupError("there is no blocked layout in this text")
    pairs = re.findall(r"(\w+) = \[([\d, ]*)\]", found.group(1))
    return {name: [int(n) for n in numbers.split(",")] for name, numbers in pairs}


def owner(layout: dict, shape) -> np.ndarray:
    """[rows, columns]: the thread of a program that has each element, by a blocked layout.

    Tiles of sizePerThread × threadsPerWarp × warpsPerCTA, repeated; `order` says which axis goes
    first. Source: Triton's TritonGPUAttrDefs, BlockedEncodingAttr.
    """
    sizes, lanes, warps = (layout[n] for n in ("sizePerThread", "threadsPerWarp", "warpsPerCTA"))
    order = layout["order"]
    threads = np.zeros(shape, int)
    for place in np.ndindex(*shape):
        lane = warp = 0
        for axis in reversed(order):
            piece = place[axis] // sizes[axis]
            lane = lane * lanes[axis] + piece % lanes[axis]
            warp = warp * warps[axis] + piece // lanes[axis] % warps[axis]
        threads[place] = warp * int(np.prod(lanes)) + lane
    return threads


def layout(text: str, shape=(8, 64)):
    """A corner of a block, coloured by warp; the elements of thread 0 and 1 are marked."""
    from matplotlib.colors import to_rgb

    numbers = blocked(text)
    threads = owner(numbers, shape)
    alt = (
        f"a corner of {shape[0]} × {shape[1]} elements of a block in the layout {numbers}: thread 0"
        f" has {np.count_nonzero(threads == 0)} of them"
    )
    fig, axes = chart(8, 0.125 * shape[0] + 0.7, alt=alt)
    marks = {0: ALARM, 1: ACCENT}
    colours = [marks.get(t, _colour(t // 32)) for t in threads.ravel().tolist()]
    draw_cells(axes, np.array([to_rgb(colour) for colour in colours]).reshape(*shape, 3))
    draw_lines(axes, *shape)
    axes.set_aspect("equal")
    axes.axis("off")
    said = ", ".join(f"{name} {value}" for name, value in numbers.items())
    axes.set_title(f"colours: warps; red: thread 0; dark blue: thread 1\n{said}", size=LARGE)
    return fig


def swizzle(rows: int = 8, pieces: int = 8):
    """Where 16-byte pieces of a tile's rows lie in shared memory with the 128-byte swizzle."""
    places = np.array([[row % 8 ^ piece for piece in range(pieces)] for row in range(rows)])
    alt = f"{rows} rows of {pieces} pieces of 16 bytes; piece p of row r lies at place p XOR r % 8"
    fig, axes = chart(4.6, 3, alt=alt)
    _cells(axes, places, lambda p: _colour(int(p)), text=True)
    axes.set_title("the place of each piece: a column of pieces meets 8 places", size=SMALL)
    return fig


# ---- what was recorded


def shares(sides=(1024, 2048, 4096, 8192, 16384)) -> dict[str, dict[int, dict]]:
    """{language: {side: entry}} of the recorded shares of cuBLAS."""
    known = {}
    for language in LANGUAGES:
        entries = {
            n: results.find(f"languages/matmul/bf16/{n}/{language}/share_of_cublas") for n in sides
        }
        entries = {n: entry for n, entry in entries.items() if entry}
        if entries:
            known[language] = entries
    return known


def languages(sides=(1024, 2048, 4096, 8192, 16384)):
    """Recorded shares of cuBLAS of one product in several languages, over the matrix's side.

    The lines of NAMED are thick, the others thin; the text below the picture has all numbers.
    """
    known = shares(sides)
    if not known:
        fig = figure(6, 1, alt="the languages' shares of cuBLAS: not recorded yet")
        fig.text(0.5, 0.5, "not recorded yet", ha="center", va="center", color=INK)
        return fig
    entry = next(iter(next(iter(known.values())).values()))
    words = "; ".join(
        f"{LANGUAGES[name]}: " + ", ".join(f"{n}: {e['value']:.0%}" for n, e in entries.items())
        for name, entries in known.items()
    )
    fig, axes = chart(7.5, 3.4, alt=f"bf16 matmul, share of cuBLAS on {entry['gpu']}: {words}")
    for name, entries in known.items():
        values = [e["value"] for e in entries.values()]
        places = [sides.index(n) for n in entries]
        if name not in NAMED:
            axes.plot(places, values, color=OTHERS, lw=1, zorder=1)
            if name in APART:
                below = {"xytext": (0, -5), "textcoords": "offset points", "va": "top"}
                end = places[-1], values[-1]
                axes.annotate(LANGUAGES[name], end, color=INK, size=SMALL, ha="right", **below)
            continue
        axes.plot(places, values, "o-", color=NAMED[name], lw=2)
        beside = {"xytext": (-7, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
        axes.annotate(LANGUAGES[name], (places[0], values[0]), color=NAMED[name], **beside)
    axes.axhline(1, color=INK, lw=1, ls=":")
    axes.set_xticks(range(len(sides)), [f"{n:,}" for n in sides])
    axes.set_ylabel("share of cuBLAS")
    axes.set_xlabel(f"side of the matrices; {entry['gpu']}, {entry['date'][:10]}")
    axes.set_xlim(-1.4, len(sides) - 0.8)  # room for names on the left, where lines lie apart
    axes.set_ylim(0, None)
    return fig


def recorded(name: str, form: str = "{:.2f}") -> str:
    """A recorded value as text, or that there is none yet."""
    entry = results.find(name)
    return form.format(entry["value"]) if entry else "not recorded yet"


def rows_table(operations=("softmax", "layernorm"), columns=(1024, 4096, 16384, 65536)) -> str:
    """Recorded speed-ups of Triton's kernels on rows over torch and torch.compile, as a table."""
    lines = [f"{'':22}{'over torch':>16}{'over torch.compile':>22}"]
    for operation in operations:
        for width in columns:
            path = f"triton/{operation}/{width}/speedup_over"
            torch, compiled = (recorded(f"{path}_{who}", "{:.2f}×") for who in ("torch", "compile"))
            lines.append(f"{operation}, {width:,}".ljust(22) + f"{torch:>16}{compiled:>22}")
    return "\n".join(lines)


# ---- graphs of a compiled function

OPERATION, STEP = (132, 34), 48  # pixels: an operation's box, from one to the next


def graphs(found):
    """The graphs that Dynamo made of a function, in their order, and Python where it broke off.

    found: what `torch._dynamo.explain(function)(arguments)` returns.
    """
    parts = [_operations(graph) for graph in found.graphs]
    said = "; ".join(f"graph {number}: {', '.join(part)}" for number, part in enumerate(parts, 1))
    wide = OPERATION[0]
    pitch = wide + 130
    most = max(map(len, parts))
    sheet = svg.Drawing(
        pitch * len(parts) - 100, 56 + STEP * most, alt=f"Graphs of a function. {said}."
    )
    for number, part in enumerate(parts):
        left = pitch * number + 12
        sheet.heading(left, 10, f"graph {number + 1}")
        sheet.box(left - 11, 24, wide + 22, STEP * len(part) + 8, line=svg.GREY, rx=8)
        for row, name in enumerate(part):
            top = 36 + STEP * row
            sheet.named(left, top, *OPERATION, name, _colour(2), size=14, rx=5)
            if row:
                middle = left + wide / 2
                sheet.arrow(middle, top - 13, middle, top - 1, colour=svg.strong(ACCENT), head=6)
        if number:
            begin = left - 118 + 1, 53
            sheet.arrow(*begin, left - 13, 53, colour=svg.strong(ALARM), thick=2)
            middle = left - 66
            sheet.text(middle, 36, "Python", colour=svg.strong(ALARM), font_weight="bold")
            sheet.text(middle, 72, "needs a value", size=12)
    return sheet


def _operations(graph):
    """The names of a graph's operations, in their order."""
    nodes = [node for node in graph.graph.nodes if node.op.startswith("call")]
    return [getattr(node.target, "__name__", str(node.target)) for node in nodes]


# ---- two programs at one element

MOMENT, LINE = 150, 46  # pixels: a moment of time, a program's line


def meeting(parts, start: int = 0):
    """What programs do to one total, in time: with load and store, and with one atomic operation.

    parts: what each program adds. All load before the first one stores.
    """
    total = start + sum(parts)
    last = start + parts[-1]
    alt = (
        f"{len(parts)} programs add {', '.join(map(str, parts))} to {start}. Load, add, store: all "
        f"load {start}, and the last store leaves {last}. Atomically: {total}."
    )
    plain = [[f"load {start}", f"add {part}"] for part in parts]
    for program, part in enumerate(parts):
        plain[program] += [""] * program + [f"store {start + part}"]
    before = np.cumsum([start, *parts]).tolist()
    atomic = [[""] * turn + [f"{before[turn]} + {part}"] for turn, part in enumerate(parts)]
    most = max(map(len, plain))
    sheet = svg.Drawing(110 + MOMENT * most, 2 * (LINE * len(parts) + 60), alt=alt)
    stories = ("load, add, store", plain, last), ("atomic_add", atomic, total)
    for number, (name, story, left) in enumerate(stories):
        top = number * (LINE * len(parts) + 60)
        words = f"{name}: {left} remains" + ("" if left == total else f", {total} is right")
        sheet.heading(0, top + 12, words, size=15)
        _moments(sheet, top + 28, story)
    sheet.text_from(110, sheet.height - 12, "time →", colour=svg.GREY)
    return sheet


def _moments(sheet, top, story):
    """A line for each program, with what it does in each moment."""
    for program, moments in enumerate(story):
        y = top + LINE * program
        sheet.text_from(0, y + 18, f"program {program}", size=14)
        sheet.line(110, y + 18, sheet.width, y + 18, colour=svg.FAINT, thick=2)
        for moment, words in enumerate(moments):
            if words:
                left = 110 + MOMENT * moment
                sheet.named(left, y, MOMENT - 8, 36, words, BLOCK_COLOURS[program], size=14)
