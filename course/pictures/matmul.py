"""Pictures of the chapters on matrix products: tiles, lanes and stages, and charts of speed."""

import contextlib
import itertools
import textwrap
from collections.abc import Mapping, Sequence, Set

import numpy as np

from course.pictures.shapes import SMALL, box, grouped_order, plain, strips_of, titled, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, chart, figure, svg
from utils.plots.cells import draw_cells, draw_lines, rectangles
from utils.tracer import READ, WRITE

_LINES = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7F7F7F",
    "#8C564B",
    "#6A3D9A",
)


# ---- parts


def _panel(axes, title: str, width: float, height: float):
    """An axes without ticks whose y grows downwards, for things of width × height."""
    axes.set(
        xlim=(-0.02 * width, 1.02 * width),
        ylim=(1.02 * height, -0.02 * height),
    )
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(
        textwrap.fill(title, 34),
        fontsize=9,
        color=INK,
    )


# ---- a product as multiplication tables

SQUARE = 34  # pixels
APART = 40  # between two tables
WORDS = 420  # pixels that the words under a table take
SIDES = BLOCK_COLOURS[0], BLOCK_COLOURS[1]  # the numbers of A, of B


def tables(left, top, names: Sequence[str] = (), rows: Sequence[str] = ()):
    """A product as a multiplication table for each step along k; of several also their sum.

    left: [m, k], which stands down the sides; top: [k, n], along the tops. names: of the tables;
    rows: of the rows.
    """
    (m, k), n = left.shape, top.shape[1]
    if k == 1:
        return _one_table(left[:, 0], top[0])
    alt = f"{k} tables of {m} × {n}, and their sum: {(left @ top).tolist()}"
    wide, over = (n + 1) * SQUARE + APART, 24
    begin = 52 if rows else 4
    sheet = svg.Drawing(begin + (k + 1) * wide, over + (m + 1) * SQUARE, alt=alt)
    for row, name in enumerate(rows):
        sheet.text_from(0, over + (row + 1.5) * SQUARE, name)
    for step, name in enumerate(names):
        sheet.text(begin + step * wide + (n / 2 + 1) * SQUARE, 10, name, font_weight="bold")
    for step in range(k):
        x = begin + step * wide
        _draw_table(sheet, x, over, left[:, step], top[step], np.outer(left[:, step], top[step]))
        sign = "+" if step < k - 1 else "="
        sheet.text(x + wide - APART / 2, over + (m / 2 + 1) * SQUARE, sign, size=22)
    x = begin + k * wide - SQUARE  # the sum has no side
    sheet.text(x + (n / 2 + 1) * SQUARE, 10, "together", font_weight="bold")
    _draw_table(sheet, x, over, (), (), left @ top)
    return sheet


def _one_table(side, top):
    """A single table, and what it costs: how many numbers, for how many products."""
    numbers, products = side.size + top.size, side.size * top.size
    said = f"{numbers} numbers, {products} products; numbers per product: {numbers / products:.3g}"
    high = (side.size + 1) * SQUARE
    sheet = svg.Drawing(max(WORDS, (top.size + 1) * SQUARE), high + 30, alt=said)
    _draw_table(sheet, 0, 0, side, top, np.outer(side, top))
    sheet.text_from(0, high + 16, said)
    return sheet


def _draw_table(sheet, x, y, side, top, inside):
    """A table whose corner is at (x, y): the numbers at its side, along its top, and inside."""
    for row, number in enumerate(side):
        _number(sheet, x, y + (row + 1) * SQUARE, number, SIDES[0])
    for column, number in enumerate(top):
        _number(sheet, x + (column + 1) * SQUARE, y, number, SIDES[1])
    for (row, column), number in np.ndenumerate(inside):
        _number(sheet, x + (column + 1) * SQUARE, y + (row + 1) * SQUARE, number)


def _number(sheet, x, y, number, colour=None):
    """A square with a number; without a colour only its edge."""
    if colour:
        sheet.named(x, y, SQUARE - 3, SQUARE - 3, number, colour)
        return
    sheet.box(x, y, SQUARE - 3, SQUARE - 3, line=svg.GREY, rx=4)
    middle = (SQUARE - 3) / 2
    sheet.text(x + middle, y + middle, number)


# ---- what the machine can do


def feeding(tiles):
    """What one step along k costs an SM, by a thread's tile: cycles of loads, of arithmetic.

    tiles: of (tm, tn). For a warp: one value for each lane a cycle, four multiply-adds a cycle.
    """
    names = [f"{tm} × {tn}" for tm, tn in tiles]
    loads = [tm + tn for tm, tn in tiles]
    work = [tm * tn / 4 for tm, tn in tiles]
    words = "; ".join(
        f"{n}: {a} cycles of loads, {b:g} of arithmetic"
        for n, a, b in zip(names, loads, work, strict=True)
    )
    fig, axes = chart(8, 0.9 + 0.42 * len(names), alt=f"One step along k of a warp. {words}")
    rows = np.arange(len(names))
    axes.barh(rows - 0.19, loads, 0.36, color=BLOCK_COLOURS[1], label="values from shared memory")
    axes.barh(rows + 0.19, work, 0.36, color=ACCENT, label="multiply-adds")
    axes.set_yticks(rows, names, fontsize=SMALL)
    axes.set_xlabel("cycles for one step along k of one warp; the longer bar decides", fontsize=9)
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=SMALL)
    plain(axes, "a thread's tile of C: what is busy for how long")
    return fig


# ---- tiles


def block_tile(
    size: Mapping[str, int],
    across: int = 4,
    down: int = 3,
):
    """A block's tile of C, and the pieces of A and B that one step along k needs.

    size: BM, BN and BK; C is drawn as down × across tiles.
    """
    bm, bn, bk = (size[name] for name in ("BM", "BN", "BK"))
    alt = f"C in tiles of {bm} × {bn}; a step needs {bm} × {bk} of A and {bk} × {bn} of B"
    fig, axes = chart(7, 3.6, alt=alt)
    width, height, gap, depth = across * bn, down * bm, 0.35 * bm, 2.2 * bm
    row, col = down // 2 * bm, across // 2 * bn
    step = max(bk, bm / 12)  # thinner pieces would not be seen
    _panel(axes, "", depth + gap + width, depth + gap + height)
    x0, y0 = depth + gap, depth + gap
    box(axes, 0, y0, depth, height)
    box(axes, x0, 0, width, depth)
    for y in range(down):
        for x in range(across):
            box(axes, x0 + x * bn, y0 + y * bm, bn, bm, "white", "#BBBBBB")
    box(axes, 0, y0 + row, depth, bm, "#DCE9F5", "none")
    box(axes, x0 + col, 0, bn, depth, "#FBE9D0", "none")
    box(axes, 0.3 * depth, y0 + row, step, bm, ACCENT)
    box(axes, x0 + col, 0.3 * depth, bn, step, BLOCK_COLOURS[1])
    box(axes, x0 + col, y0 + row, bn, bm, "#CFE8D8", INK, 1.4)
    word(axes, x0 + col + bn / 2, y0 + row + bm / 2, f"{bm} × {bn}\na block")
    word(axes, depth / 2, y0 + row + bm * 1.25, f"{bm} × {bk} of A per step")
    word(axes, x0 + col - 0.1 * bn, 0.3 * depth + step / 2, f"{bk} × {bn} of B", ha="right")
    for name, x, y in (("A", 0, y0), ("B", x0, 0), ("C", x0, y0)):
        word(
            axes,
            x + 0.12 * bm,
            y + 0.15 * bm,
            name,
            fontsize=11,
            fontweight="bold",
        )
    return fig


def turned(size: Mapping[str, int], row: int = 0):
    """A's tile as it lies in A, and turned: where the values are that a thread reads in a step.

    size: BM, BK and TM, all drawn with BM cut short. row: of the thread's first element.
    """
    bk, tm = size["BK"], size["TM"]
    shown = 2 * tm
    alt = f"As in A: {tm} values below one another, {bk} words apart. Turned: side by side"
    fig = figure(8, 2.6, alt=alt)
    left, right = fig.subplots(1, 2, width_ratios=(bk, shown))
    _panel(left, f"as it lies in A: {tm} loads", bk, shown)
    _panel(right, f"turned: {tm // 4} loads of 16 bytes", shown, bk)
    for m in range(shown):
        for k in range(bk):
            ours = k == 2 and row <= m < row + tm
            colour = BLOCK_COLOURS[m // 4 % 2] if ours else IDLE
            box(left, k, m, 1, 1, colour, "white")
            box(right, m, k, 1, 1, colour, "white")
    return fig


# ---- what one thread does, as a trace saw it

LONG = 240  # pixels of C's sides
DEEP = 64  # at least, of a step along k: a thin tile would not be seen
SPACE, UP = 26, 24  # between the matrices; above them
BRINGS, READS, SUMS = BLOCK_COLOURS[1], ACCENT, BLOCK_COLOURS[2]
WARP = 32


def hands(t, thread: int = 0, step: int = 0):
    """What one thread of block 0 brings, reads and computes; what its warp does is paler.

    t: the Trace of a product kernel (c, a, b) whose tiles, if it has any, lie in shared memory. Of
    these the first pair is shown, as it comes in before the first barrier. step: along k in it.
    """
    work = _Hands(t)
    rows, columns, depth = work.sizes
    thread, step = min(thread, work.threads - 1), min(step, depth - 1)
    warp = thread // WARP * WARP, thread // WARP * WARP + WARP
    alone = thread, thread + 1
    mine = work.of(alone, step)
    counts = {name: [int(mask.sum()) for mask in masks] for name, masks in mine.items()}
    said = [f"reads {counts['reads'][0]} of A and {counts['reads'][1]} of B in step {step}"]
    if work.tiled:
        said.insert(0, f"brings {counts['brings'][0]} of A and {counts['brings'][1]} of B")
    said.append(f"computes {counts['sums'][0]} of C's {rows * columns}")
    deep = min(LONG, max(DEEP, depth * LONG / max(rows, columns)))
    alt = f"Thread {thread} of {t.name}: {', '.join(said)}"
    sheet = svg.Drawing(deep + SPACE + LONG + 250, UP + deep + SPACE + LONG + 4, alt=alt)
    x, y = deep + SPACE, UP + deep + SPACE
    places = {  # left, top, width and height of an element
        "A": (0, y, deep / depth, LONG / rows),
        "B": (x, UP, LONG / columns, deep / depth),
        "C": (x, y, LONG / columns, LONG / rows),
    }
    for name, (left, top, *_) in places.items():
        wide, high = (deep if name == "A" else LONG), (deep if name == "B" else LONG)
        sheet.box(left, top, wide, high, fill=svg.FAINT, line=svg.GREY)
        sheet.text(left + wide / 2, top - 8, name, font_weight="bold")
    for masks, opacity in ((work.of(warp, step), 0.35), (mine, 1)):
        for what, colour in (("brings", BRINGS), ("reads", READS), ("sums", SUMS)):
            for name, mask in zip("C" if what == "sums" else "AB", masks[what], strict=True):
                _fill(sheet, places[name], mask, colour, opacity)
    for line, words in enumerate((f"thread {thread}", *said)):
        look = {"font_weight": "bold"} if line == 0 else {}
        sheet.text_from(x + LONG + 14, y + 14 + 22 * line, words, **look)
    _legend(sheet, x + LONG + 14, UP + 8, work.tiled)
    return sheet


def _legend(sheet, left, top, tiled):
    names = [(READS, "reads in this step"), (SUMS, "computes")]
    if tiled:
        names.insert(0, (BRINGS, "brings into shared memory"))
    for line, (colour, words) in enumerate(names):
        sheet.box(left, top + 20 * line - 6, 14, 12, fill=colour)
        sheet.text_from(left + 20, top + 20 * line, words)


def _fill(sheet, place, mask, colour, opacity):
    """The chosen elements of a matrix, in as few boxes as there can be."""
    left, top, wide, high = place
    for x, y, right, bottom in rectangles(mask):
        size = (right - x) * wide, (bottom - y) * high
        look = {"fill": colour, "fill_opacity": opacity}
        sheet.box(left + x * wide, top + y * high, *size, **look)


class _Hands:
    """Who touched what, in a trace of a product."""

    def __init__(self, t):
        self.events = t.events
        self.threads = t.threads_a_block
        memories = self.events.memories
        known = {m.name: number for number, m in reversed(list(enumerate(memories)))}
        shared = [n for n, m in enumerate(memories) if m.space == "shared" and len(m.shape) == 2]
        self.tiled = len(shared) >= 2
        self.pair = shared[:2] if self.tiled else [known["a"], known["b"]]
        self.c = known["c"]
        height, width = memories[self.c].shape
        self.depth = memories[self.pair[1]].shape[0]
        of_a = memories[self.pair[0]].shape
        self.turned = of_a[0] == self.depth and of_a[1] != self.depth
        if self.tiled:  # C's part of one block
            height = min(height, of_a[1 if self.turned else 0])
            width = min(width, memories[self.pair[1]].shape[1])
        self.sizes = height, width, self.depth

    def of(self, threads, step):
        """{"brings", "reads": (masks of A and B), "sums": (mask of C,)} of threads (from, to)."""
        events = self.events
        theirs = (events.thread >= threads[0]) & (events.thread < threads[1])
        early = events.epoch <= 1 if self.tiled else np.ones(len(events.kind), bool)
        written = [self._mask(theirs & (events.epoch == 0), WRITE, n) for n in self.pair]
        read = [self._mask(theirs & early, READ, n) for n in self.pair]
        read[0][:, np.arange(self.depth) != step] = False
        read[1][np.arange(self.depth) != step] = False
        stored = self._mask(theirs, WRITE, self.c)
        return {
            "brings": written if self.tiled else [np.zeros_like(m) for m in written],
            "reads": read,
            "sums": [stored],
        }

    def _mask(self, chosen, kind, number):
        """[rows, columns] of A, B or C: whether one of the chosen events touched the element."""
        memory = self.events.memories[number]
        here = chosen & (self.events.kind == kind) & (self.events.memory == number)
        mask = np.zeros(memory.shape, bool)
        elements = self.events.offset[here] // memory.dtype.itemsize
        mask.flat[elements] = True
        height, width, depth = self.sizes
        if number == self.c:
            return mask[:height, :width]
        if number == self.pair[1]:
            return mask[:, :width]
        return (mask.T if self.turned else mask)[:height]


def nested(size: Mapping[str, int]):
    """A block's tile in warps' tiles, a warp's in threads' tiles, a thread's in elements.

    size: BM, BN, WM, WN, TM and TN.
    """
    sides = [(size[a], size[b]) for a, b in (("BM", "BN"), ("WM", "WN"), ("TM", "TN"))]
    (bm, bn), (wm, wn), (tm, tn) = sides
    alt = (
        f"Block {bm} × {bn}: {bm // wm} × {bn // wn} warps. Warp {wm} × {wn}: "
        f"{wm // tm} × {wn // tn} threads. Thread: {tm} × {tn} sums"
    )
    fig = figure(8.6, 2.9, alt=alt)
    panels = fig.subplots(1, 3)
    titles = (
        f"a block: {bm // wm} × {bn // wn} warps",
        f"a warp: {wm // tm} × {wn // tn} threads",
        f"a thread: {tm} × {tn} sums in registers",
    )
    for level, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        rows, cols = sides[level]
        high, wide = sides[level + 1] if level < 2 else (1, 1)
        _panel(axes, title, cols, rows)
        for y in range(0, rows, high):
            for x in range(0, cols, wide):
                box(axes, x, y, wide, high, ACCENT if x == y == 0 else IDLE, "white")
        if level < 2:
            word(
                axes,
                wide / 2,
                high / 2,
                f"{high} × {wide}",
                color="white",
                fontsize=7,
            )
    return fig


def lane_map(
    rows: np.ndarray,
    cols: np.ndarray,
    title: str = "",
):
    """Where a warp's lanes stand: each lane's number at the place of its first group of four.

    rows, cols: of the first element of each lane, as the kernel itself works them out.
    """
    places = {(int(y), int(x)) for y, x in zip(rows, cols, strict=True)}
    alt = f"{title}: {len(places)} places for {len(rows)} lanes"
    fig, axes = chart(3.4, 4.4, alt=alt)
    ys, xs = sorted(set(map(int, rows))), sorted(set(map(int, cols)))
    _panel(axes, title, len(xs), len(ys))
    for lane, (y, x) in enumerate(zip(map(int, rows), map(int, cols), strict=True)):
        place = xs.index(x), ys.index(y)
        colour = BLOCK_COLOURS[lane // 8 % len(BLOCK_COLOURS)]
        box(axes, *place, 1, 1, colour, "white")
        word(axes, place[0] + 0.5, place[1] + 0.5, lane)
    return fig


# ---- time


def stages(
    count: int,
    steps: int = 6,
    copy: float = 1.6,
    work: float = 1.0,
):
    """Copies and arithmetic of a block over time, with `count` pairs of tiles in turn.

    copy, work: how long one pair's copy and one step's arithmetic take, in any unit.
    """
    copies, work_at = _schedule(count, steps, copy, work)
    total = work_at[-1] + work
    pairs = f"{count} pair{'s' if count > 1 else ''} of tiles"
    alt = f"{pairs}: {steps} steps take {total:.1f}, {steps * work:g} of it arithmetic"
    fig, axes = chart(8, 1.5, alt=alt)
    for step in range(steps):
        colour = BLOCK_COLOURS[step % len(BLOCK_COLOURS)]
        lane = 0.8 * (step % count) / count
        axes.barh(
            1 + lane,
            copy,
            0.7 / count,
            left=copies[step],
            color=colour,
            edgecolor=INK,
        )
        axes.barh(2.15, work, 0.6, left=work_at[step], color=colour, edgecolor=INK)
        word(axes, work_at[step] + work / 2, 2.15, step)
        word(axes, copies[step] + copy / 2, 1 + lane, step, fontsize=7)
    axes.set(
        xlim=(0, steps * (copy + work)),
        ylim=(2.6, 0.5),
        xticks=[],
    )
    axes.set_yticks((1.3, 2.15), ("copies", "arithmetic"), fontsize=SMALL)
    axes.set_xlabel("time", fontsize=SMALL)
    busy = f"{steps * work / total:.0%} of the time is arithmetic"
    plain(axes, f"{pairs}: {busy}")
    return fig


def _schedule(count, steps, copy, work):
    """When each step's copy and its arithmetic begin.

    As the kernels do it: `count - 1` copies are started before the loop, then one as each step's
    arithmetic begins. A single pair is filled again when its step is done.
    """
    copies, work_at = [], []
    for step in range(steps):
        before = work_at[-1] + work if work_at else 0.0
        starter = step - count + 1  # the step that starts this one's copy
        copies.append(before if count == 1 else work_at[starter] if starter >= 0 else 0.0)
        work_at.append(max(before, copies[-1] + copy))
    return copies, work_at


def rounds(tiles: int, places: int, parts: int = 8):
    """Whole tiles dealt out in rounds, and the same work dealt out in steps along k (stream-K).

    tiles: so many, each of `parts` steps. places: blocks that run at the same time.
    """
    full = (tiles + places - 1) // places
    share = tiles / places
    alt = (
        f"{tiles} tiles on {places} SMs: {full} rounds as whole tiles, {share:.2f} in equal shares"
    )
    fig = figure(8, 2.6, alt=alt)
    panels = fig.subplots(1, 2, sharex=True, sharey=True)
    for tile in range(tiles):
        colour = BLOCK_COLOURS[tile % len(BLOCK_COLOURS)]
        panels[0].barh(
            tile % places, 1, left=tile // places, color=colour, edgecolor=INK, height=0.8
        )
        word(panels[0], tile // places + 0.5, tile % places, str(tile))
    for step in range(tiles * parts):
        place = int(step / (share * parts))
        at = step / parts - place * share
        colour = BLOCK_COLOURS[step // parts % len(BLOCK_COLOURS)]
        panels[1].barh(
            place,
            1 / parts,
            left=at,
            color=colour,
            height=0.8,
        )
    panels[0].set(
        yticks=range(places),
        xlim=(0, full),
        ylim=(places - 0.5, -0.5),
    )
    panels[0].set_ylabel("SM", fontsize=SMALL)
    plain(panels[0], f"whole tiles: {full} rounds")
    plain(panels[1], f"equal shares of all steps: {share:.2f}")
    return fig


def tile_order(across: int, down: int, at_once: int, group: int):
    """Which tiles of C run first: in rows, and in groups of `group` rows.

    at_once: tiles that run at the same time. Below each: how many pieces of A and B they want.
    """
    from matplotlib.colors import to_rgb

    orders = [grouped_order(down, across, rows) for rows in (1, group)]
    wanted = [sum(strips_of(order, at_once)) for order in orders]
    alt = f"{at_once} tiles at once: in rows they want {wanted[0]} rows and columns of tiles, "
    fig = figure(8, 0.8 + 3.6 * down / across, alt=f"{alt}in groups of {group} rows {wanted[1]}")
    titles = ("row by row", f"groups of {group} rows")
    colours = np.array([to_rgb(IDLE), to_rgb(ACCENT)])
    for axes, order, title, count in zip(fig.subplots(1, 2), orders, titles, wanted, strict=True):
        _panel(axes, f"{title}: {count} strips", across, down)
        draw_cells(axes, colours[(order < at_once).astype(int)])
        draw_lines(axes, down, across, 0.5)
    return fig


# ---- charts


LADDER_LETTERS = 10  # points


#: The rungs of the float32 ladder as the chapter counts them
RUNGS = {
    **{"naive": 1, "coalesced": 2, "tile": 3, "mine": 4, "tile_1d": 4, "tile_2d": 5},
    **{"vector": 6, "banks": 7, "cp_async_wide": 8, "cp_async": 8, "warp_tile": 9},
    **{"whole": 10, "ahead": 10, "to_and_fro": 10, "tuned": 11, "split_k": 12},
    **{"l2_order": 13, "stream_k": 14},
}


HUNDRED = 100
PER_ROW = 10
DOT = 20  # pixels from square to square
SEVEN = BLOCK_COLOURS[:7]  # the eighth is the grey of what is missing


def hundred(whose: str, shares: Mapping[str, float]):
    """A hundred squares for cuBLAS's speed, in the colour of the rung that first reaches them.

    whose: GPU. shares: name -> share of cuBLAS, rungs in their order, as `Ladder.shares` has them.
    """
    reached = {name: min(HUNDRED, round(HUNDRED * share)) for name, share in shares.items()}
    missing = HUNDRED - max(reached.values(), default=0)
    words = ", ".join(f"{name} {HUNDRED * share:.0f}" for name, share in shares.items())
    alt = f"Of 100 squares for cuBLAS's speed, {whose}: {words or 'none'}; {missing} are missing"
    right = PER_ROW * DOT + 30
    sheet = svg.Drawing(right + 300, 26 + max(right - 30, 22 * (len(shares) + 1)), alt=alt)
    sheet.text_from(0, 9, f"100 squares: cuBLAS's speed, {whose}", size=12)
    colours = itertools.cycle(SEVEN)
    first, y = 0, 36
    for name, last in reached.items():
        colour = next(colours) if last > first else "none"  # a rung that is behind gains nothing
        _squares(sheet, range(first, last), colour)
        first = max(first, last)
        number = f"{RUNGS[name]} · " if name in RUNGS else ""
        words = f"{number}{name}: {HUNDRED * shares[name]:.0f} %"
        _entry(sheet, right, y, colour, words)
        y += 22
    _squares(sheet, range(first, HUNDRED), svg.FAINT)
    if missing:
        _entry(sheet, right, y, svg.FAINT, f"{missing} still missing")
    return sheet


def _entry(sheet, x, y, colour, words):
    sheet.box(x, y - 7, 14, 14, fill=colour)
    sheet.text_from(x + 22, y, words)


def _squares(sheet, places, colour):
    corners = [(DOT * (i % PER_ROW), 26 + DOT * (i // PER_ROW)) for i in places]
    sheet.cells(corners, DOT - 3, fill=colour)


def ladder_chart(
    shares: dict[str, float],
    title: str,
    other: Set[str] = frozenset(),
    guessed: Mapping[str, float] | None = None,
    numbers: Mapping[str, int] | None = None,
):
    """A bar a rung: its share of cuBLAS. shares: name -> share, from the ladder's foot.

    other: names in another colour. guessed: name -> share that the reader predicted, a diamond.
    numbers: name -> the rung's number, which is written before it.
    """
    words = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    fig, axes = chart(8, 0.9 + 0.165 * len(shares), alt=f"{title}: {words}")
    colours = [BLOCK_COLOURS[1] if name in other else ACCENT for name in shares]
    percent = [100 * share for share in shares.values()]
    bars = axes.barh(
        list(shares),
        percent,
        color=colours,
        height=0.7,
    )
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # legible on cuBLAS's line
    labels = [f"{share:.1%}" for share in shares.values()]
    axes.bar_label(
        bars,
        labels,
        padding=3,
        fontsize=LADDER_LETTERS,
        bbox=behind,
    )
    axes.axvline(100, color=ALARM, linewidth=1.2)
    rows = list(shares)
    marks = {rows.index(name): 100 * x for name, x in (guessed or {}).items() if name in shares}
    axes.plot(
        marks.values(),
        marks.keys(),
        "D",
        color=INK,
        markersize=5,
        linestyle="none",
    )
    axes.set(xlim=(0, 118), xlabel="% of cuBLAS's speed on the same matrices (line: cuBLAS)")
    if numbers:
        named = [f"{numbers[name]} · {name}" if name in numbers else name for name in rows]
        axes.set_yticks(range(len(rows)), named)
    axes.tick_params(axis="y", labelsize=LADDER_LETTERS)
    axes.invert_yaxis()
    plain(axes, title)
    return fig


def asked_chart(asked: Mapping[str, object], other: Set[str] = frozenset()):
    """Multiply-adds for each byte of global memory and for each access to shared memory, by rung.

    asked: name -> what it asks for a multiply-add (`ladder.Asked`). other: in another colour.
    """
    sides = {
        "for a byte of global memory": [1 / a.global_bytes for a in asked.values()],
        "for an access to shared memory": [
            1 / a.shared if a.shared else 0.0 for a in asked.values()
        ],
    }
    words = "; ".join(
        f"{name} {', '.join(f'{n:.3g}' for n in numbers)}"
        for name, numbers in zip(asked, zip(*sides.values(), strict=True), strict=True)
    )
    alt = f"Multiply-adds for a byte of global memory, for an access to shared memory: {words}"
    fig = figure(8, 1.1 + 0.22 * len(asked), alt=alt)
    colours = [BLOCK_COLOURS[1] if name in other else ACCENT for name in asked]
    for axes, (title, numbers) in zip(fig.subplots(1, 2, sharey=True), sides.items(), strict=True):
        bars = axes.barh(list(asked), numbers, color=colours, height=0.7)
        labels = [f"{number:.3g}" if number else "none" for number in numbers]
        axes.bar_label(bars, labels, padding=3, fontsize=LADDER_LETTERS)
        axes.set_xlim(0, 1.2 * max(numbers, default=1) or 1)
        axes.tick_params(axis="y", labelsize=LADDER_LETTERS)
        axes.set_xticks([])
        plain(axes, f"multiply-adds {title}")
    fig.axes[0].invert_yaxis()
    return fig


def size_chart(rates: dict[str, dict[int, float]], title: str):
    """TFLOP/s against the side of the matrices, a line a rung; cuBLAS is drawn dashed.

    rates: name -> {n: FLOP/s}.
    """
    words = "; ".join(f"{name} {_points(line)}" for name, line in rates.items())
    fig, axes = chart(8, 4.2, alt=f"{title}. TFLOP/s by side: {words}")
    sides = sorted({n for line in rates.values() for n in line})
    for number, (name, line) in enumerate(rates.items()):
        look, colour = "o-", _LINES[number % len(_LINES)]
        if name == "cuBLAS":
            look, colour = "s--", INK
        teraflops = [rate / 1e12 for rate in line.values()]
        axes.plot(
            list(line), teraflops, look, color=colour, label=name, linewidth=1.6, markersize=4
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="side n of the matrices",
        ylabel="TFLOP/s",
    )
    axes.set_xticks(sides, [str(n) for n in sides])
    axes.minorticks_off()
    axes.legend(
        frameon=False,
        fontsize=SMALL,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    plain(axes, title)
    return fig


def _points(line: dict[int, float]) -> str:
    return ", ".join(f"{n}: {rate / 1e12:.3g}" for n, rate in line.items())


def roofline(
    peak: float, bytes_per_second: float, rungs: dict[str, tuple[float, float]], title: str
):
    """Rungs under a GPU's roofs.

    rungs: name -> (FLOPs for each byte that its blocks ask of global memory, FLOP/s).
    """
    words = ", ".join(
        f"{name} {x:.3g} FLOPs per byte, {rate / 1e12:.3g} TFLOP/s"
        for name, (x, rate) in rungs.items()
    )
    ridge = peak / bytes_per_second
    roofs = f"{bytes_per_second / 1e12:.3g} TB/s and {peak / 1e12:.3g} TFLOP/s"
    meet = f"meeting at {ridge:.1f} FLOPs per byte"
    fig, axes = chart(8, 4, alt=f"{title}: roofs {roofs}, {meet}. {words}")
    x = np.geomspace(0.1, 300, 200)
    axes.plot(
        x,
        np.minimum(peak, bytes_per_second * x) / 1e12,
        color=INK,
        linewidth=1.8,
    )
    axes.axvline(ridge, color=INK, linestyle=":", linewidth=0.9)
    axes.text(ridge * 0.93, 0.12, f"ridge: {ridge:.1f}", fontsize=SMALL, color=INK, ha="right")
    for intensity, rate in rungs.values():
        axes.plot(
            intensity,
            rate / 1e12,
            "o",
            color=ACCENT,
            markersize=5,
        )
    _names_of(axes, rungs, ridge)
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(0.1, peak / 1e12 * 2),
        xlim=(0.1, 300),
    )
    axes.set_xlabel("FLOPs for each byte that the blocks ask of global memory")
    axes.set_ylabel("TFLOP/s")
    plain(axes, title)
    return fig


def _names_of(axes, rungs, ridge):
    """The rungs' names beside their points; where many points are near each other, a column."""
    line = {
        "arrowstyle": "-",
        "color": "#BBBBBB",
        "linewidth": 0.6,
    }
    last = np.inf
    for name, (intensity, rate) in sorted(rungs.items(), key=lambda item: -item[1][1]):
        place, right = np.log10(rate / 1e12), intensity * 1.3
        if intensity > ridge:
            place, right = min(place, last - 0.15), 110
            last = place
        at = (intensity, rate / 1e12)
        axes.annotate(
            name,
            at,
            xytext=(right, 10**place),
            fontsize=8,
            va="center",
            arrowprops=line,
        )


def search_map(
    rates: dict[tuple[str, str], float],
    rows: str,
    columns: str,
    title: str,
):
    """A search over two choices as a heat map of TFLOP/s.

    rates: (row, column) -> FLOP/s; what is missing did not run.
    """
    across = list(dict.fromkeys(column for _, column in rates))
    down = list(dict.fromkeys(row for row, _ in rates))
    grid = np.array([[rates.get((r, c), np.nan) for c in across] for r in down]) / 1e12
    words = ", ".join(f"{r} / {c}: {rate / 1e12:.3g}" for (r, c), rate in rates.items())
    width, height = 1.9 + 1.15 * len(across), 1.1 + 0.42 * len(down)
    fig, axes = chart(width, height, alt=f"{title}, TFLOP/s: {words}")
    axes.set_facecolor(IDLE)
    axes.imshow(grid, cmap="viridis", aspect="auto")
    low, high = np.nanmin(grid), np.nanmax(grid)
    for (y, x), value in np.ndenumerate(grid):
        if np.isfinite(value):
            colour = INK if value > (low + high) / 2 else "white"
            weight = "bold" if value == high else "normal"
            word(
                axes,
                x,
                y,
                f"{value:.1f}",
                fontsize=9,
                fontweight=weight,
                color=colour,
            )
    axes.set_xticks(range(len(across)), across, fontsize=SMALL)
    axes.set_yticks(range(len(down)), down, fontsize=SMALL)
    axes.set(xlabel=columns, ylabel=rows)
    titled(axes, title)
    return fig


# ---- the order of three loops

SHOWN, LINE = 32, 16  # a matrix's side; elements of a cache line
WALK_COLOURS = {ACCENT: "used", BLOCK_COLOURS[1]: "fetched with it"}
WIDE, HIGH = 8, 3.5  # pixels of an element: flat, as a slide is
LEFT, BETWEEN, ROW_GAP = 175, 26, 18  # of the names, from matrix to matrix, from row to row
WALK_LETTERS = 16


def _row_column_i(side):
    return ((row, column, i) for row, column, i in np.ndindex(side, side, side))


def _row_i_column(side):
    return ((row, column, i) for row, i, column in np.ndindex(side, side, side))


def _in_tiles(side, tile=4):
    parts = side // tile
    for big_row, big_i, column in np.ndindex(parts, parts, side):
        for y, j in np.ndindex(tile, tile):
            yield tile * big_row + y, column, tile * big_i + j


ORDERS = {
    "row, column, i": _row_column_i,
    "row, i, column": _row_i_column,
    "in tiles": _in_tiles,
}


def walks(steps: int = 256):
    """What the first multiply-adds of three loop orders touch of A, B and C."""
    rows = {name: _touched(order, steps) for name, order in ORDERS.items()}
    lines = {name: sum(map(_lines_of, touched)) for name, touched in rows.items()}
    said = ", ".join(f"{name}: {count}" for name, count in lines.items())
    alt = f"Cache lines that the first {steps} multiply-adds of three orders touch. {said}."
    across, down = SHOWN * WIDE + BETWEEN, SHOWN * HIGH + ROW_GAP
    sheet = svg.Drawing(LEFT + 3 * across, 30 + 3 * down, alt=alt)
    bold = {"size": WALK_LETTERS, "font_weight": "bold"}
    for column, name in enumerate("ABC"):
        sheet.text(LEFT + column * across + SHOWN * WIDE / 2, 10, name, **bold)
    for row, (name, touched) in enumerate(rows.items()):
        names = name, f"{steps} multiply-adds", f"{lines[name]} cache lines"
        _draw_walk(sheet, 26 + row * down, names, touched)
    return sheet


def walked(multiply, steps: int = 256):
    """What the first multiply-adds of the reader's own three loops touch of A, B and C.

    multiply: (c, a, b) in plain Python, element by element.
    """
    touched = _walk(multiply, steps)
    names = "your loops", f"{steps} multiply-adds", f"{sum(map(_lines_of, touched))} cache lines"
    alt = f"The first {steps} multiply-adds of your loops touch {names[2]}"
    across = SHOWN * WIDE + BETWEEN
    sheet = svg.Drawing(LEFT + 3 * across, 30 + SHOWN * HIGH, alt=alt)
    _draw_walk(sheet, 26, names, touched)
    for column, name in enumerate("ABC"):
        middle = LEFT + column * across + SHOWN * WIDE / 2
        sheet.text(middle, 10, name, size=WALK_LETTERS, font_weight="bold")
    for place, (colour, words) in enumerate(WALK_COLOURS.items()):
        y = 115 + 18 * place  # below the three lines of words
        sheet.box(0, y - 6, 12, 12, fill=colour)
        sheet.text_from(18, y, words, size=13)
    return sheet


def _walk(multiply, steps):
    """(A's, B's, C's) elements that are touched until so many elements of B have been read."""

    class Enough(Exception):
        pass

    class Watched:
        def __init__(self, most=None):
            self.shape, self.size, self.most = (SHOWN, SHOWN), SHOWN**2, most
            self.touched, self.reads = set(), 0

        def __getitem__(self, place):
            if self.most is not None and self.reads == self.most:
                raise Enough
            self.reads += 1
            self.touched.add(place)
            return 1.0

        def __setitem__(self, place, value):
            self.touched.add(place)

    c, a, b = Watched(), Watched(), Watched(steps)
    with contextlib.suppress(Enough):
        multiply(c, a, b)
    return a.touched, b.touched, c.touched


def _draw_walk(sheet, top, names, touched):
    """A row: what it is, and the three matrices."""
    bold = {"size": WALK_LETTERS, "font_weight": "bold"}
    for place, text in enumerate(names):
        look = bold if place != 1 else {"size": WALK_LETTERS}
        sheet.text_from(0, top + 20 + 24 * place, text, **look)
    for column, elements in enumerate(touched):
        _draw_touched(sheet, LEFT + column * (SHOWN * WIDE + BETWEEN), top, elements)


def _touched(order, steps):
    """The elements (row, column) of A, B and C that the first steps of an order touch."""
    first = list(itertools.islice(order(SHOWN), steps))
    a = {(row, i) for row, _, i in first}
    b = {(i, column) for _, column, i in first}
    c = {(row, column) for row, column, _ in first}
    return a, b, c


def _lines_of(elements):
    return len({(row, column // LINE) for row, column in elements})


def _draw_touched(sheet, left, top, elements):
    """A matrix: whole cache lines that are fetched, and in them the elements that are used."""
    sheet.box(left, top, SHOWN * WIDE, SHOWN * HIGH, fill=svg.FAINT, line=svg.GREY)
    for row, line in sorted({(row, column // LINE) for row, column in elements}):
        x, y = left + line * LINE * WIDE, top + row * HIGH
        sheet.box(x, y, LINE * WIDE, HIGH - 0.6, fill=BLOCK_COLOURS[1])
    for row in sorted({row for row, _ in elements}):
        columns = sorted(column for other, column in elements if other == row)
        wide = WIDE * (columns[-1] + 1 - columns[0])  # they are neighbours
        sheet.box(left + WIDE * columns[0], top + row * HIGH, wide, HIGH - 0.6, fill=ACCENT)
