"""Pictures and counts of the chapter on tensor cores, from the sizes that its kernels have."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure

#: (name, bits of the exponent, bits after the point); each has a sign. IEEE 754 and PTX ISA,
#: "Alternate floating point data formats".
FORMATS = (("float32", 8, 23), ("TF32", 8, 10), ("bfloat16", 8, 7), ("float16", 5, 10))
BANKS_BYTES, PIECE_BYTES = 128, 16  # all banks together; what ldmatrix reads of a row


# ---- numbers and fragments


def number_formats():
    """The bits of the formats that tensor cores multiply, beside float32's."""
    words = ", ".join(f"{name}: 1 + {e} + {f} bits" for name, e, f in FORMATS)
    fig = figure(8, 1.9, alt=f"Sign, exponent and fraction. {words}")
    axes = fig.add_subplot()
    for row, (name, exponent, fraction) in enumerate(FORMATS):
        parts = ((1, INK), (exponent, BLOCK_COLOURS[1]), (fraction, BLOCK_COLOURS[0]))
        begin = 0
        for bits, colour in parts:
            for bit in range(begin, begin + bits):
                axes.add_patch(_cell(bit, row, colour))
            begin += bits
        axes.text(-0.4, row + 0.5, name, ha="right", va="center", fontsize=9, color=INK)
        axes.text(begin + 0.4, row + 0.5, f"1 + {exponent} + {fraction}", va="center", fontsize=9)
    _bare(axes, (-5, 37), (len(FORMATS), 0))
    axes.set_title("sign, exponent (yellow), after the point (blue)", fontsize=9.5, loc="left")
    return fig


def owners(lane_of: np.ndarray, title: str, mark: int = 6):
    """Which lane of a warp holds each element of a small matrix.

    lane_of: [rows, columns] of lane numbers. mark: the lane whose elements stand out.
    """
    rows, columns = lane_of.shape
    alt = f"{title}: {rows} × {columns} cells, each with its lane's number; lane {mark} is marked"
    fig = figure(0.36 * columns + 0.6, 0.27 * rows + 0.6, alt=alt)
    axes = fig.add_subplot()
    for (row, column), lane in np.ndenumerate(lane_of):
        marked = lane == mark
        colour = ALARM if marked else BLOCK_COLOURS[int(lane) // 4 % len(BLOCK_COLOURS)]
        ink = "white" if marked else INK
        axes.add_patch(_cell(column, row, colour))
        axes.text(
            column + 0.5, row + 0.53, str(lane), ha="center", va="center", fontsize=7.5, color=ink
        )
    _bare(axes, (0, columns), (rows, 0))
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    return fig


def ldmatrix(mark: int = 6):
    """Which lane names each row of 16 bytes for `ldmatrix`, and what lane `mark` gets."""
    alt = (
        "a 16 × 16 tile in shared memory: lanes 0 to 15 name the rows of the left half, lanes 16 "
        f"to 31 those of the right; lane {mark} gets the marked pairs"
    )
    fig = figure(6.2, 4, alt=alt)
    axes = fig.add_subplot()
    for row, column in np.ndindex(16, 16):
        block = row // 8 + column // 8 * 2
        owner = row % 8 * 4 + column % 8 // 2
        colour = ALARM if owner == mark else BLOCK_COLOURS[block]
        axes.add_patch(_cell(column, row, colour))
    for row in range(16):
        middle = row + 0.5
        axes.text(-0.2, middle, f"lane {row}", ha="right", va="center", fontsize=7.5)
        axes.text(16.2, middle, f"lane {row + 16}", ha="left", va="center", fontsize=7.5)
    _bare(axes, (-2, 18), (16, 0))
    title = f"who names which row; red: what lane {mark} gets, a pair in each register"
    axes.set_title(title, fontsize=9, loc="left")
    return fig


def tiles(sizes: dict[str, int], piece: tuple[int, int], title: str):
    """A block's tile of C, cut into the warps' tiles, one of them into single products.

    sizes: BM, BN, WM, WN as `source.constants` finds them. piece: rows and columns of one product.
    """
    height, width, warp_height, warp_width = (sizes[name] for name in ("BM", "BN", "WM", "WN"))
    warps = height // warp_height * (width // warp_width)
    alt = (
        f"{title}: a block's tile of {height} × {width}, {warps} warps of {warp_height} × "
        f"{warp_width}, in products of {piece[0]} × {piece[1]}"
    )
    fig = figure(width / 48 + 0.6, height / 48 + 0.7, alt=alt)
    axes = fig.add_subplot()
    for warp in range(warps):
        row = warp // (width // warp_width) * warp_height
        column = warp % (width // warp_width) * warp_width
        colour = BLOCK_COLOURS[warp % len(BLOCK_COLOURS)]
        axes.add_patch(_cell(column, row, colour, warp_width, warp_height))
        axes.text(column + 3, row + 12, f"warp {warp}", fontsize=8, color=INK)
    for row in range(0, warp_height, piece[0]):
        for column in range(0, warp_width, piece[1]):
            axes.add_patch(_cell(column, row, "none", piece[1], piece[0], edge=INK))
    _bare(axes, (0, width), (height, 0))
    axes.set_title(alt, fontsize=8.5, color=INK, loc="left", wrap=True)
    return fig


def warp_group(columns: int = 16):
    """Which warp of a group holds each row of a wgmma's sums, and what lane 6 has of it."""
    row, column = np.mgrid[0:64, 0:columns]
    lane = row % 8 * 4 + column % 8 // 2
    title = f"64 × {columns} sums of a wgmma: 16 rows a warp; lane 6 of each warp is marked"
    fig = figure(0.22 * columns + 2.6, 4.6, alt=title)
    axes = fig.add_subplot()
    for y, x in np.ndindex(lane.shape):
        colour = ALARM if lane[y, x] == 6 else BLOCK_COLOURS[y // 16]
        axes.add_patch(_cell(x, y, colour))
    for warp in range(4):
        axes.text(columns + 0.4, warp * 16 + 8, f"warp {warp}", va="center", fontsize=9)
    _bare(axes, (0, columns + 5), (64, 0))
    axes.set_title(title, fontsize=8.5, loc="left", wrap=True)
    return fig


# ---- shared memory


def rows_in_banks(pitches: Sequence[int]):
    """Where the 8 rows that ldmatrix reads for a matrix lie in the banks.

    pitches: bytes from one row to the next, a panel for each.
    """
    places = {pitch: [row * pitch // PIECE_BYTES % 8 for row in range(8)] for pitch in pitches}
    passes = {pitch: max(map(place.count, place)) for pitch, place in places.items()}
    words = ", ".join(f"rows {pitch} bytes apart: {passes[pitch]} passes" for pitch in pitches)
    fig = figure(
        3.2 * len(pitches) + 0.4, 2.6, alt=f"8 rows of 16 bytes in 128 bytes of banks. {words}"
    )
    for number, pitch in enumerate(pitches):
        axes = fig.add_subplot(1, len(pitches), number + 1)
        for row, place in enumerate(places[pitch]):
            for column in range(8):
                colour = BLOCK_COLOURS[row] if column == place else IDLE
                axes.add_patch(_cell(column, row, colour))
            axes.text(place + 0.5, row + 0.53, f"row {row}", ha="center", va="center", fontsize=6.5)
        _bare(axes, (0, 8), (8, 0))
        plural = "pass" if passes[pitch] == 1 else "passes"
        axes.set_title(f"{pitch} bytes apart: {passes[pitch]} {plural}", fontsize=9, loc="left")
        axes.set_xlabel("8 × 16 bytes: all 32 banks once", fontsize=8)
    return fig


def swizzle():
    """Eight rows of a tile as the copy engine swizzles it by 128 bytes."""
    alt = "8 rows of 8 pieces of 16 bytes: piece p of row r lies at place p XOR r"
    fig = figure(5.2, 2.9, alt=alt)
    axes = fig.add_subplot()
    for row in range(8):
        for piece in range(8):
            place = piece ^ row
            colour = ALARM if piece == 2 else BLOCK_COLOURS[piece % len(BLOCK_COLOURS)]
            ink = "white" if piece == 2 else INK
            axes.add_patch(_cell(place, row, colour))
            axes.text(place + 0.5, row + 0.53, str(piece), ha="center", va="center", color=ink)
        axes.text(-0.2, row + 0.5, f"row {row}", ha="right", va="center", fontsize=8)
    _bare(axes, (-1.2, 8), (8, 0))
    axes.set_title(
        "piece p of row r lies at place p XOR r; column 2 is marked", fontsize=9.5, loc="left"
    )
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
    fig = figure(8.4, 1.3, alt=f"64 bits of a descriptor. {words}")
    axes = fig.add_subplot()
    axes.add_patch(_cell(0, 0, IDLE, 64, 1))
    for number, (first, bits, what) in enumerate(DESCRIPTOR):
        left = 64 - first - bits
        axes.add_patch(_cell(left, 0, BLOCK_COLOURS[number], bits, 1))
        axes.text(
            left + bits / 2, 0.5, what if bits > 4 else "", ha="center", va="center", fontsize=7.5
        )
        axes.text(left + bits / 2, 1.4, f"{first + bits - 1} … {first}", ha="center", fontsize=8)
    axes.text(1, -0.25, "swizzle", ha="center", fontsize=7.5)
    _bare(axes, (0, 64), (1.8, -0.6))
    return fig


# ---- time


@dataclass(frozen=True)
class Step:
    """A step along k on the timeline: its slot, and when what happens. In cycles."""

    slot: int
    asked: float  # the producer asks for the tiles
    arrived: float
    begun: float  # the multiplication
    ended: float


def schedule(steps: int, stages: int, copy: float, multiply: float) -> list[Step]:
    """What happens when, with `stages` slots: a copy begins once its slot is free.

    copy: cycles from asking for a step's tiles to their arrival; copies overlap one another freely.
    multiply: cycles of arithmetic a step. A simple model: no queue for memory or for the engine.
    """
    free = [0.0] * stages
    done = 0.0
    timeline = []
    for number in range(steps):
        slot = number % stages
        arrived = free[slot] + copy
        begun = max(arrived, done)
        done = begun + multiply
        timeline.append(Step(slot, free[slot], arrived, begun, done))
        free[slot] = done
    return timeline


def cycles_a_step(stages: int, copy: float, multiply: float) -> float:
    """What a step takes in the long run in this model."""
    return max(multiply, (copy + multiply) / stages)


def ring(stages: int, copy: float, multiply: float, steps: int = 9):
    """The slots of a ring on a timeline: copies on their way, tiles that wait, multiplications."""
    timeline = schedule(steps, stages, copy, multiply)
    end = timeline[-1].ended
    busy = steps * multiply / end
    plural = "stage" if stages == 1 else "stages"
    alt = f"{stages} {plural}, {steps} steps: {end:,.0f} cycles, the tensor cores busy {busy:.0%}"
    fig = figure(8.4, 0.75 + 0.36 * (stages + 1), alt=alt)
    axes = fig.add_subplot()
    for number, step in enumerate(timeline):
        lap = number // stages % 2
        _bar(axes, step.slot, step.asked, step.arrived, BLOCK_COLOURS[6], "")
        _bar(axes, step.slot, step.arrived, step.begun, IDLE, "")
        _bar(axes, step.slot, step.begun, step.ended, BLOCK_COLOURS[2 + 2 * lap], str(number))
        _bar(axes, stages, step.begun, step.ended, ACCENT, str(number), "white")
    names = [*(f"slot {slot}" for slot in range(stages)), "tensor cores"]
    axes.set_yticks(np.arange(stages + 1) + 0.5, names, fontsize=8.5)
    axes.set(xlim=(0, end * 1.01), ylim=(stages + 1, 0))
    axes.set_xlabel(
        "cycles; blue-grey: on its way, green and orange: multiplied, even and odd laps", fontsize=8
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(alt, fontsize=9.5, loc="left")
    return fig


def _bar(axes, row, begin, end, colour, text, ink=INK):
    if end > begin:
        axes.add_patch(_cell(begin, row + 0.1, colour, end - begin, 0.8))
        axes.text(
            (begin + end) / 2, row + 0.53, text, ha="center", va="center", fontsize=7.5, color=ink
        )


# ---- the order of tiles


def tile_number(down: int, across: int, group: int) -> np.ndarray:
    """[down, across]: when each tile's turn comes, in groups of `group` rows of tiles."""
    number = np.empty((down, across), int)
    turn = 0
    for first in range(0, down, group):
        rows = range(first, min(first + group, down))
        for column in range(across):
            for row in rows:
                number[row, column] = turn
                turn += 1
    return number


def wanted(down: int, across: int, group: int, running: int) -> tuple[int, int]:
    """(Rows of tiles, columns of tiles) that the first `running` tiles need of A and of B."""
    rows, columns = np.nonzero(tile_number(down, across, group) < running)
    return len(set(rows)), len(set(columns))


def tile_order(down: int, across: int, groups: Sequence[int], running: int):
    """The tiles of C that run at one time, a panel an order. groups: rows of tiles in a group."""
    needs = {group: wanted(down, across, group, running) for group in groups}
    words = "; ".join(
        f"groups of {g}: {r} rows of A, {c} columns of B" for g, (r, c) in needs.items()
    )
    fig = figure(3.6 * len(groups), 3.4, alt=f"{running} tiles of {down} × {across}. {words}")
    for panel, group in enumerate(groups):
        number = tile_number(down, across, group)
        axes = fig.add_subplot(1, len(groups), panel + 1)
        shade = np.where(number < running, number / running * 0.6 + 0.4, 0)
        axes.imshow(shade, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set(xticks=[], yticks=[])
        rows, columns = needs[group]
        order = "row by row" if group == 1 else f"in groups of {group} rows"
        title = f"{order}:\n{rows} rows of tiles of A, {columns} columns of B"
        axes.set_title(title, fontsize=9, loc="left")
    return fig


def cluster():
    """What the two blocks of a cluster fetch, and what each gets."""
    alt = (
        "A cluster: each block fetches its 128 rows of A, and half of the 256 columns of B for both"
    )
    fig = figure(7, 3, alt=alt)
    axes = fig.add_subplot()
    for block, colour in enumerate(BLOCK_COLOURS[:2]):
        top = 3 + 2 * block
        axes.add_patch(_cell(0, top, colour, 1.4, 2))
        axes.text(0.7, top + 1, "A", ha="center", va="center")
        axes.add_patch(_cell(2 + 2 * block, 1, colour, 2, 1.4))
        axes.text(
            3 + 2 * block,
            1.7,
            f"half of B, by block {block}",
            ha="center",
            va="center",
            fontsize=7.5,
        )
        axes.add_patch(_cell(2, top, "white", 4, 2, edge=INK))
        text = f"block {block}: 128 × 256 of C\nneeds its rows of A, and both halves"
        axes.text(4, top + 1, text, ha="center", va="center", fontsize=8)
    _bare(axes, (0, 6.1), (7.1, 0.9))
    axes.set_title(alt, fontsize=8.5, loc="left", wrap=True)
    return fig


# ---- helpers


def _cell(x, y, colour, width=1, height=1, edge="white"):
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, edgecolor=edge, linewidth=0.7)


def _bare(axes, across, down):
    """No ticks, no frame; axes from `across` and `down`, which runs downwards."""
    axes.set(xlim=across, ylim=down, xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
