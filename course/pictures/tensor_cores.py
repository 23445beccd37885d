"""Pictures and counts of the chapter on tensor cores, from the sizes that its kernels have."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from course.pictures.shapes import box, grouped_order, strips_of, titled, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, chart, figure, svg

#: (name, bits of the exponent, bits after the point); each has a sign. IEEE 754 and PTX ISA,
#: "Alternate floating point data formats".
FORMATS = (
    ("float32", 8, 23),
    ("TF32", 8, 10),
    ("bfloat16", 8, 7),
    ("float16", 5, 10),
)
PIECE = 16  # bytes of a row that ldmatrix reads
PLACES = 8  # such pieces in 128 bytes, which is all 32 banks once
SMALL, MIDDLE, LARGE = 7.5, 9, 12  # sizes of letters; large: in pictures as high as a slide


# ---- numbers and fragments


def number_formats():
    """The bits of the formats that tensor cores multiply, beside float32's."""
    words = ", ".join(f"{name}: 1 + {e} + {f} bits" for name, e, f in FORMATS)
    fig, axes = _picture(8, 1.9, f"Sign, exponent and fraction. {words}")
    for row, (name, exponent, fraction) in enumerate(FORMATS):
        colours = [INK]
        colours += [BLOCK_COLOURS[1]] * exponent
        colours += [BLOCK_COLOURS[0]] * fraction
        for bit, colour in enumerate(colours):
            _box(axes, bit, row, colour)
        middle = row + 0.5
        _text(axes, -0.4, middle, name, ha="right")
        _text(axes, len(colours) + 0.4, middle, f"1 + {exponent} + {fraction}", ha="left")
    _finish(axes, (-5, 37), len(FORMATS), "sign, exponent (yellow), after the point (blue)")
    return fig


def hands(gets: np.ndarray, giver: int):
    """The four sums that each of 32 lanes gets; those that are not 0 stand out.

    gets: [32, 4]. giver: the lane that gave a one, which is framed.
    """
    lit = {lane: np.flatnonzero(sums) for lane, sums in enumerate(gets) if np.any(sums)}
    words = "; ".join(f"lane {lane}: {' and '.join(map(str, at))}" for lane, at in lit.items())
    alt = f"Lane {giver} gives a one. Sums that are not 0: {words or 'none'}"
    sheet = svg.Drawing(700, 330, alt=alt)
    for lane, sums in enumerate(gets):
        x = 10 + 172 * (lane % 4)
        y = 10 + 40 * (lane // 4)
        edge = {"line": ACCENT, "thick": 3} if lane == giver else {"line": svg.GREY}
        sheet.box(x, y, 164, 34, rx=8, **edge)
        sheet.text_from(x + 8, y + 17, f"lane {lane}", size=14)
        for number, value in enumerate(sums):
            left = x + 68 + 23 * number
            sheet.box(left, y + 7, 20, 20, fill=ALARM if value else svg.FAINT)
            if value:
                sheet.text(left + 10, y + 17, f"{value:g}", size=13, colour="white")
    return sheet


def owners(lane_of: np.ndarray, title: str, mark: int = 6):
    """Which lane of a warp holds each element of a small matrix.

    lane_of: [rows, columns] of lane numbers. mark: the lane whose elements stand out.
    """
    rows, columns = lane_of.shape
    what = f"{rows} × {columns} cells, each with its lane's number; lane {mark} is marked"
    fig, axes = _picture(0.45 * columns + 0.6, 0.25 * rows + 0.6, f"{title}: {what}")
    for (row, column), lane in np.ndenumerate(lane_of):
        _box(axes, column, row, ALARM if lane == mark else _colour(lane // 4))
        ink = "white" if lane == mark else INK
        _text(axes, column + 0.5, row + 0.53, lane, LARGE, color=ink)
    _finish(axes, (0, columns), rows, title, LARGE)
    return fig


def ldmatrix(mark: int = 6):
    """Which lane names each row of 16 bytes for `ldmatrix`, and what lane `mark` gets."""
    alt = (
        "a 16 × 16 tile in shared memory: lanes 0 to 15 name the rows of the left half, lanes 16 "
        f"to 31 those of the right; lane {mark} gets the marked pairs"
    )
    fig, axes = _picture(6.2, 3.4, alt)
    for row, column in np.ndindex(16, 16):
        block = row // 8 + column // 8 * 2
        owner = row % 8 * 4 + column % 8 // 2
        _box(axes, column, row, ALARM if owner == mark else BLOCK_COLOURS[block])
    for row in range(16):
        _text(axes, -0.2, row + 0.5, f"lane {row}", MIDDLE + 0.5, ha="right")
        _text(axes, 16.2, row + 0.5, f"lane {row + 16}", MIDDLE + 0.5, ha="left")
    title = f"who names which row; red: what lane {mark} gets, a pair in each register"
    _finish(axes, (-2, 18), 16, title, MIDDLE + 0.5)
    return fig


def tiles(
    sizes: dict[str, int],
    piece: tuple[int, int],
    title: str,
):
    """A block's tile of C, cut into the warps' tiles, one of them into single products.

    sizes: BM, BN, WM, WN as `source.constants` finds them. piece: rows and columns of one product.
    """
    height, width = sizes["BM"], sizes["BN"]
    warp_height, warp_width = sizes["WM"], sizes["WN"]
    across = width // warp_width
    warps = height // warp_height * across
    alt = (
        f"{title}: a block's tile of {height} × {width}, {warps} warps of {warp_height} × "
        f"{warp_width}, in products of {piece[0]} × {piece[1]}"
    )
    fig, axes = _picture(width / 48 + 0.6, height / 48 + 0.7, alt)
    for warp in range(warps):
        row = warp // across * warp_height
        column = warp % across * warp_width
        _box(axes, column, row, _colour(warp), warp_width, warp_height)
    for row in range(0, warp_height, piece[0]):
        for column in range(0, warp_width, piece[1]):
            _box(axes, column, row, "none", piece[1], piece[0], edge=INK)
    for warp in range(warps):  # last, on a ground of their own: no line strikes a name through
        row, column = warp // across * warp_height, warp % across * warp_width
        ground = {"facecolor": _colour(warp), "edgecolor": "none", "pad": 1}
        _text(axes, column + 3, row + 9, f"warp {warp}", ha="left", bbox=ground)
    _finish(axes, (0, width), height, alt)
    return fig


def warp_group(columns: int = 16):
    """Which warp of a group holds each row of a wgmma's sums, and what lane 6 has of it."""
    title = f"64 × {columns} sums of a wgmma: 16 rows per warp; lane 6 of each warp is marked"
    fig, axes = _picture(0.22 * columns + 2.6, 4.6, title)
    for row, column in np.ndindex(64, columns):
        lane = row % 8 * 4 + column % 8 // 2
        _box(axes, column, row, ALARM if lane == 6 else BLOCK_COLOURS[row // 16])
    for warp in range(4):
        _text(axes, columns + 0.4, warp * 16 + 8, f"warp {warp}", ha="left")
    _finish(axes, (0, columns + 5), 64, title)
    return fig


# ---- shared memory


def rows_in_banks(pitches: Sequence[int]):
    """Where the 8 rows that ldmatrix reads for a matrix lie in the banks.

    pitches: bytes from one row to the next, a panel for each.
    """
    passes = {pitch: _passes(pitch) for pitch in pitches}
    said = {pitch: f"{n} pass{'es' if n > 1 else ''}" for pitch, n in passes.items()}
    words = ", ".join(f"rows {pitch} bytes apart: {text}" for pitch, text in said.items())
    alt = f"8 rows of 16 bytes in 128 bytes of banks. {words}"
    fig = figure(3.2 * len(pitches) + 0.4, 2.6, alt=alt)
    for number, pitch in enumerate(pitches, start=1):
        axes = fig.add_subplot(1, len(pitches), number)
        for row, place in enumerate(_places(pitch)):
            for column in range(PLACES):
                _box(axes, column, row, _colour(row) if column == place else IDLE)
            _text(axes, place + 0.5, row + 0.53, f"row {row}", 6.5)
        _finish(axes, (0, PLACES), 8, f"{pitch} bytes apart: {said[pitch]}")
        axes.set_xlabel("8 × 16 bytes: all 32 banks once", fontsize=8)
    return fig


def _places(pitch: int) -> list[int]:
    """Where each of 8 rows begins, in pieces of 16 bytes, modulo the banks."""
    return [row * pitch // PIECE % PLACES for row in range(8)]


def _passes(pitch: int) -> int:
    places = _places(pitch)
    return max(places.count(place) for place in places)


def swizzle(mark: int = 2):
    """Eight rows of a tile as the copy engine swizzles it by 128 bytes."""
    alt = "8 rows of 8 pieces of 16 bytes: piece p of row r lies at place p XOR r"
    fig, axes = _picture(5.2, 2.9, alt)
    for row, piece in np.ndindex(8, PLACES):
        place = piece ^ row
        _box(axes, place, row, ALARM if piece == mark else _colour(piece))
        ink = "white" if piece == mark else INK
        _text(axes, place + 0.5, row + 0.53, piece, color=ink)
    for row in range(8):
        _text(axes, -0.2, row + 0.5, f"row {row}", ha="right")
    title = f"piece p of row r lies at place p XOR r; column {mark} is marked"
    _finish(axes, (-1.2, PLACES), 8, title)
    axes.set_xlabel("places of 16 bytes: all 32 banks once", fontsize=8)
    return fig


#: (first bit, bits, what), as the PTX ISA describes it ("Matrix descriptor format" of wgmma).
DESCRIPTOR = (
    (0, 14, "address / 16"),
    (16, 14, "to the next part / 16"),
    (32, 14, "to the next 8 rows / 16"),
    (62, 2, "swizzle"),
)


def descriptor():
    """The fields of a tile's descriptor for wgmma, by their bits."""
    words = "; ".join(f"bits {first} to {first + n - 1}: {what}" for first, n, what in DESCRIPTOR)
    fig, axes = _picture(8.4, 1.3, f"64 bits of a descriptor. {words}")
    _box(axes, 0, 0, IDLE, 64)
    for number, (first, bits, what) in enumerate(DESCRIPTOR):
        left = 64 - first - bits  # the highest bit stands on the left
        middle = left + bits / 2
        _box(axes, left, 0, _colour(number), bits)
        _text(axes, middle, 0.5 if bits > 4 else -0.3, what, SMALL)
        _text(axes, middle, 1.4, f"{first + bits - 1} … {first}", SMALL)
    axes.set(
        xlim=(-1, 65),
        ylim=(1.8, -0.7),
    )
    return fig


# ---- the way to the tensor cores

STOPS = ("global memory", "registers", "shared memory", "registers", "tensor core")
#: How a number of A travels, rung by rung: (from which stop, to which, by what)
WAYS = {
    "rung 15, wmma": ((0, 1, "load"), (1, 2, "store"), (2, 3, "load"), (3, 4, "mma")),
    "rung 16, mma.sync": ((0, 2, "cp.async"), (2, 3, "ldmatrix"), (3, 4, "mma")),
    "rung 18, wgmma": ((0, 2, "TMA"), (2, 4, "wgmma")),
}


def ways():
    """Which way a number of A takes to a tensor core, and through whose registers."""
    said = {name: sum(STOPS[to] == "registers" for _, to, _ in hops) for name, hops in WAYS.items()}
    often = ("never", "once", "twice")
    words = "; ".join(f"{name}: {often[count]} in registers" for name, count in said.items())
    sheet = svg.Drawing(760, 320, alt=f"The way of a number of A from global memory. {words}")
    middles = [190 + 130 * stop for stop in range(len(STOPS))]
    for middle, stop in zip(middles, STOPS, strict=True):
        if stop == "registers":
            sheet.box(middle - 45, 30, 90, 284, fill=svg.FAINT, rx=8)
        sheet.text(middle, 16, stop, size=14)
    for row, (name, hops) in enumerate(WAYS.items()):
        y = 96 + 90 * row
        sheet.text_from(6, y, name, size=14)
        for start, end, by in hops:
            left, right = middles[start] + 9, middles[end] - 9
            middle = (left + right) / 2
            high = 60 if end - start > 1 else 0  # over the registers
            curve = f"M{left} {y}Q{middle} {y - high} {right - 4} {y}"
            sheet.add("path", d=curve, style=f"fill:none;stroke:{svg.INK}", stroke_width=2)
            sheet.text(middle, y - 14 - high / 2, by, size=14)
        stops = {0, *(end for _, end, _ in hops)}
        sheet.dots([(middles[stop], y) for stop in sorted(stops)], 18, colour=ACCENT)
    return sheet


# ---- time


@dataclass(frozen=True)
class Step:
    """A step along k on the timeline: its slot, and when what happens, in cycles."""

    slot: int
    asked: float  # the producer asks for the tiles
    arrived: float
    begun: float  # the multiplication
    ended: float


def schedule(
    steps: int,
    stages: int,
    copy: float,
    multiply: float,
) -> list[Step]:
    """What happens when, with `stages` slots: a copy begins once its slot is free.

    copy: cycles from asking for a step's tiles to their arrival; copies overlap one another freely.
    multiply: cycles of arithmetic a step. A simple model: no queue for memory or for the engine.
    """
    free = [0.0] * stages
    done = 0.0
    timeline = []
    for number in range(steps):
        slot = number % stages
        asked = free[slot]
        arrived = asked + copy
        begun = max(arrived, done)
        done = begun + multiply
        free[slot] = done
        timeline.append(Step(slot, asked, arrived, begun, done))
    return timeline


def phases(steps: int = 3, copy: float = 1.7, multiply: float = 1.0):
    """A `full` barrier's phases over time, with one slot, and the parity that is waited for."""
    timeline = schedule(steps, 1, copy, multiply)
    ends = ", ".join(f"phase {n} ends when step {n}'s bytes are here" for n in range(steps))
    sheet = svg.Drawing(760, 150, alt=f"{ends}; with parity 0, 1, 0 the threads wait for them")
    wide = 640 / timeline[-1].ended
    before = 0.0  # when the phase began
    for text, y in (("full", 45), ("bytes here", 80), ("threads", 127)):
        sheet.text(86, y, text, anchor="end")
    for number, step in enumerate(timeline):
        left, asked, right = (100 + wide * t for t in (before, step.asked, step.arrived))
        parity = number % 2
        phase = f"phase {number}: parity {parity}"
        look = {"rx": None, "line": svg.PAPER}
        sheet.named(left, 32, right - left, 26, phase, BLOCK_COLOURS[parity], **look)
        sheet.arrow(asked, 12, asked, 32)
        sheet.text_from(asked + 8, 12, "arrival")
        sheet.add("path", d=f"M{asked:.1f} 100L{right:.1f} 64V100z", style=f"fill:{ACCENT}")
        start = 100 + wide * (timeline[number - 1].ended if number else 0.0)
        sheet.box(start, 114, right - start, 26, fill=svg.FAINT)
        sheet.text((start + right) / 2, 127, f"wait for {parity}")
        working = wide * (step.ended - step.begun)
        sheet.named(right, 114, working, 26, "multiply", BLOCK_COLOURS[2], rx=None)
        before = step.arrived
    return sheet


def cycles_a_step(stages: int, copy: float, multiply: float) -> float:
    """What a step takes in the long run in this model."""
    return max(multiply, (copy + multiply) / stages)


def ring(
    stages: int,
    copy: float,
    multiply: float,
    steps: int = 9,
):
    """The slots of a ring on a timeline: copies on their way, tiles that wait, multiplications."""
    timeline = schedule(steps, stages, copy, multiply)
    end = timeline[-1].ended
    busy = steps * multiply / end
    plural = "stage" if stages == 1 else "stages"
    alt = f"{stages} {plural}, {steps} steps: {end:,.0f} cycles, the tensor cores busy {busy:.0%}"
    fig, axes = _picture(8.4, 0.75 + 0.36 * (stages + 1), alt)
    for number, step in enumerate(timeline):
        lap = number // stages % 2
        _bar(axes, step.slot, step.asked, step.arrived, BLOCK_COLOURS[6])
        _bar(axes, step.slot, step.arrived, step.begun, IDLE)
        _bar(axes, step.slot, step.begun, step.ended, BLOCK_COLOURS[2 + 2 * lap], str(number))
        _bar(axes, stages, step.begun, step.ended, ACCENT, str(number), "white")
    _finish(axes, (0, end * 1.01), stages + 1, alt)
    names = [f"slot {slot}" for slot in range(stages)]
    axes.set_yticks(np.arange(stages + 1) + 0.5, [*names, "tensor cores"], fontsize=8.5)
    axes.xaxis.set_major_locator(_ticks())
    legend = "blue-grey: on its way; green and orange: multiplied, in even and odd laps"
    axes.set_xlabel(f"cycles; {legend}", fontsize=8)
    axes.spines["bottom"].set_visible(True)
    return fig


def _ticks():
    from matplotlib.ticker import AutoLocator

    return AutoLocator()


def _bar(
    axes,
    row,
    begin,
    end,
    colour,
    text="",
    ink=INK,
):
    if end > begin:
        _box(axes, begin, row + 0.1, colour, end - begin, 0.8)
        _text(axes, (begin + end) / 2, row + 0.53, text, SMALL, color=ink)


# ---- the order of tiles


def wanted(
    down: int,
    across: int,
    group: int,
    running: int,
) -> tuple[int, int]:
    """(Rows of tiles, columns of tiles) that the first `running` tiles need of A and of B."""
    return strips_of(grouped_order(down, across, group), running)


def tile_order(
    down: int,
    across: int,
    groups: Sequence[int],
    running: int,
):
    """The tiles of C that run at one time, a panel an order. groups: rows of tiles in a group."""
    titles = {}
    for group in groups:
        rows, columns = wanted(down, across, group, running)
        order = "row by row" if group == 1 else f"in groups of {group} rows"
        titles[group] = f"{order}:\n{rows} rows of tiles of A, {columns} columns of B"
    words = "; ".join(titles.values()).replace("\n", " ")
    fig = figure(3.6 * len(groups), 3.4, alt=f"{running} tiles of {down} × {across}, {words}")
    for panel, group in enumerate(groups, start=1):
        axes = fig.add_subplot(1, len(groups), panel)
        number = grouped_order(down, across, group)
        later = 0.4 + 0.6 * number / running
        shade = np.where(number < running, later, 0)
        axes.imshow(
            shade,
            cmap="Blues",
            vmin=0,
            vmax=1,
            aspect="auto",
        )
        axes.set(xticks=[], yticks=[])
        axes.set_title(titles[group], fontsize=MIDDLE, loc="left")
    return fig


#: What a cluster's blocks ask for: (name, which block asks, where its middle is, and the middles of
#: the places where it arrives)
PIECES = (
    ("A, block 0's rows", 0, 100, (70,)),
    ("B, left half", 0, 280, (185, 440)),
    ("B, right half", 1, 460, (300, 555)),
    ("A, block 1's rows", 1, 640, (670,)),
)


def cluster():
    """What each of a cluster's two blocks asks for, and what arrives in its shared memory."""
    asked = [[name for name, asks, *_ in PIECES if asks == block] for block in range(2)]
    both = " and ".join(name for name, *_, goals in PIECES if len(goals) == 2)
    words = "; ".join(f"block {n} asks for {' and '.join(names)}" for n, names in enumerate(asked))
    sheet = svg.Drawing(740, 318, alt=f"A cluster: {words}. {both} arrive in both blocks")
    colours = BLOCK_COLOURS[0], BLOCK_COLOURS[4]
    for name, asks, middle, goals in PIECES:
        sheet.named(middle - 78, 10, 156, 36, name, colours[asks], size=15)
        sheet.text(middle, 62, f"block {asks} asks", size=14)
        for goal in goals:
            sheet.arrow(middle, 76, goal, 188, colour=svg.strong(colours[asks]), thick=2.5)
            sheet.named(goal - 52, 192, 104, 36, name.split("'")[0], colours[asks], size=14)
    for block in range(2):
        sheet.box(10 + 370 * block, 182, 350, 90, line=svg.INK, rx=8)
        words = f"block {block}: its shared memory, on an SM of its own"
        sheet.text(185 + 370 * block, 252, words, size=14)
    sheet.text(
        370, 300, "Each piece has 16 KiB. A block asks for two of them and gets three.", size=14
    )
    return sheet


# ---- helpers


def _picture(width: float, height: float, alt: str):
    """A figure in inches with one pair of bare axes."""
    fig, axes = chart(width, height, alt=alt)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    return fig, axes


def _box(
    axes,
    x,
    y,
    colour,
    width=1,
    height=1,
    edge="white",
):
    box(axes, x, y, width, height, colour, edge, 0.7)


def _text(axes, x, y, text, size=MIDDLE, **look):
    """Centred on its place, unless `look` says otherwise."""
    word(axes, x, y, text, **{"fontsize": size, **look})


def _finish(axes, across, down, title, size=MIDDLE):
    """Set the limits, `down` rows from above, and the title."""
    axes.set(
        xlim=across,
        ylim=(down, 0),
        xticks=[],
        yticks=[],
    )
    axes.spines[:].set_visible(False)
    titled(axes, title, size, wrap=True)


def _colour(number: int) -> str:
    return BLOCK_COLOURS[int(number) % len(BLOCK_COLOURS)]
