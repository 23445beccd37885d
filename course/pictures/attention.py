"""Pictures of the chapter on attention: weights, tiles, turns on an SM, pages, recorded races."""

from dataclasses import dataclass

import numpy as np

from course.kernels.attention.hopper import QUERIES, Form, costs
from course.kernels.attention.reference import seen
from course.kernels.attention.ring import KINDS
from course.kernels.attention.ring import Span as RingSpan
from course.pictures.shapes import plain
from utils import results
from utils.occupancy import ceil_div
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, OTHERS, chart, svg

BLUE, YELLOW, GREEN = BLOCK_COLOURS[:3]
GIGA = 1 << 30


# ---- who looks at whom

PALE = 238  # of red, green and blue, where nothing is


def weights(words: list[str], matrix: np.ndarray):
    """The weights as a table: a line for each word that looks, a column for each that is seen."""
    rows = "; ".join(
        f"{word} looks at "
        + ", ".join(f"{other} {weight:.2f}" for other, weight in zip(words, row, strict=True))
        for word, row in zip(words, matrix, strict=True)
    )
    cell, left, top = 84, 110, 40
    drawing = svg.Drawing(left + cell * len(words) + 20, top + 46 * len(words) + 12, alt=rows)
    drawing.text(left - 12, top - 18, "looks at", size=13, anchor="end")
    for column, word in enumerate(words):
        drawing.text(left + cell * (column + 0.5), top - 18, word, size=15)
    for y, word in enumerate(words):
        drawing.text(left - 12, top + 46 * y + 23, word, size=15, anchor="end")
        for x, weight in enumerate(matrix[y]):
            place = left + cell * x, top + 46 * y
            drawing.named(*place, cell - 3, 43, f"{weight:.2f}", lighter(BLUE, weight), size=15)
    return drawing


def lighter(colour: str, share: float) -> str:
    """A colour mixed with nearly white: all of it where share is 1."""
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    mixed = [round(PALE + share * (part - PALE)) for part in parts]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def looks(words: list[str], row: np.ndarray, token: int, query: np.ndarray | None = None):
    """One word's weights as lines to all words, each as thick as its weight.

    query: two numbers, how alive and how hollow what it looks for is, where they are to be told.
    """
    said = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, row, strict=True))
    step = 140
    alt = f"{words[token]} looks at {said}"
    height = 190
    if query is not None:
        looks_for = f"looks for {query[0]:.2f} alive, {query[1]:.2f} hollow"
        alt = f"{alt}; it {looks_for}"
        height += 24
    drawing = svg.Drawing(step * len(words) + 20, height, alt=alt)
    if query is not None:
        drawing.text(step * len(words) + 5, 200, looks_for, size=14, anchor="end")
    for number, (word, weight) in enumerate(zip(words, row, strict=True)):
        x = 10 + step * (number + 0.5)
        drawing.named(x - 55, 20, 110, 34, word, GREEN, size=16)
        drawing.text(x, 8, f"{weight:.2f}", size=14)
        asks = number == token
        drawing.named(x - 55, 146, 110, 34, word, YELLOW if asks else IDLE, size=16)
        if weight > 0:
            ends = 10 + step * (token + 0.5), 146, x, 54
            drawing.line(*ends, colour=svg.strong(ACCENT), thick=float(1 + 16 * weight))
    return drawing


#: A query of section 1 -> the word that looks for this: how alive, how hollow
LOOKING = {(1, 0): "hungry", (0, 1): "empty", (1, 1): "it"}


def who_looks(words: list[str], row: np.ndarray, looks_for: list[int]):
    """`looks` of the word whose query is `looks_for`; the last word gives way to one of its name.

    A query that no word of the chapter has is somebody's.
    """
    name = LOOKING.get(tuple(looks_for), "somebody")
    if name not in words:
        words = [*words[:-1], name]
    return looks(words, row, words.index(name))


PER_PAGE = 50  # words
PAGES_ACROSS = 20


def book(weights: np.ndarray, per_page: int = PER_PAGE):
    """How a look from the last word falls on a book's pages, each as blue as its weights together.

    weights: of all words, in order.
    """
    shares = weights.reshape(-1, per_page).sum(1)
    most = int(shares.argmax())
    said = f"the last page looks: page {most + 1} gets {shares[most]:.1%}"
    said += f", each other page at most {np.delete(shares, most).max():.1%}"
    wide, high, top = 32, 40, 34
    rows = ceil_div(len(shares), PAGES_ACROSS)
    drawing = svg.Drawing(PAGES_ACROSS * wide + 20, top + rows * high + 6, alt=said)
    drawing.text_from(10, 14, said, size=15)
    for page, share in enumerate(shares):
        x, y = 10 + page % PAGES_ACROSS * wide, top + page // PAGES_ACROSS * high
        looks_out = page == len(shares) - 1
        colour = YELLOW if looks_out else lighter(BLUE, share)
        drawing.named(x, y, wide - 4, high - 5, str(page + 1), colour, size=12)
    return drawing


# ---- how much memory

HEADS, DIM = 16, 128
LONGEST = 16384


def bytes_of_scores(length: int, heads: int = HEADS) -> int:
    """Of the score matrices of all heads, in float32."""
    return 4 * heads * length**2


def bytes_of_rows(length: int, heads: int = HEADS, dim: int = DIM) -> int:
    """Of q, k, v and the result of all heads, in float32."""
    return 4 * 4 * heads * length * dim


def scores_to_scale(length: int):
    """One head's score matrix beside its q, k, v and out, to scale, up to `LONGEST` rows."""
    scores, rows = bytes_of_scores(length), bytes_of_rows(length)
    words = f"{HEADS} heads, {length:,} tokens: scores {in_bytes(scores)}, q, k, v and out "
    words += in_bytes(rows)
    drawing = svg.Drawing(560, 360, alt=words)  # a label below the longest has its tail
    drawing.text_from(10, 14, words, size=15)
    pixels = 300 / LONGEST
    side = length * pixels
    drawing.box(110, 36, side, side, fill=YELLOW, line=svg.GREY)
    for number, name in enumerate(("q", "k", "v", "out")):
        x = 10 + 24 * number
        drawing.box(x, 36, max(DIM * pixels, 1.5), side, fill=ACCENT)
        drawing.text(x + 2, 36 + side + 10, name, size=12)
    drawing.text_from(110, 36 + side + 10, "scores", size=12)
    return drawing


def in_bytes(number: float) -> str:
    """A number of bytes in words: 1,024 bytes are a KiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{float(f'{number:.3g}'):,g} {unit}"
        number /= 1024


# ---- online softmax

SCORES = np.array([1.0, 3.0, 2.0, 0.5, 4.0, 1.0, 2.0, 3.5])
VALUES = np.array([4.0, 1.0, 3.0, 2.0, 8.0, 5.0, 1.0, 6.0])
A_TILE = 2  # scores


@dataclass(frozen=True)
class State:
    """What is kept of a row: the largest score, the sum of weights, the sum of weighted values."""

    largest: float = -np.inf
    total: float = 0.0
    result: float = 0.0
    factor: float = 1.0  # by which the sums before this tile shrank

    def after(self, scores, values):
        """The state after another tile."""
        largest = max(self.largest, scores.max())
        factor = np.exp(self.largest - largest)
        weight = np.exp(scores - largest)
        total = self.total * factor + weight.sum()
        return State(largest, total, self.result * factor + weight @ values, factor)


def states(scores=SCORES, values=VALUES, tile=A_TILE) -> list[State]:
    """The state at the start and after each tile."""
    found = [State()]
    for first in range(0, len(scores), tile):
        part = slice(first, first + tile)
        found.append(found[-1].after(scores[part], values[part]))
    return found


def online(tiles: int):
    """Online softmax after so many tiles of `SCORES`: the weights so far, and the two sums."""
    state = states()[tiles]
    past = A_TILE * tiles
    words = "nothing seen yet"
    if tiles:
        words = f"largest {state.largest:g}, factor {state.factor:.3f}, "
        words += f"sum {state.total:.3f}, result {state.result:.3f}"
        words += f", quotient {state.result / state.total:.3f}"
    if past == len(SCORES):
        weight = np.exp(SCORES - SCORES.max())
        words += f" (at once: {weight @ VALUES / weight.sum():.3f})"
    spaced = " ".join(f"{score:g}" for score in SCORES)
    alt = f"Online softmax after {tiles} tiles of {spaced}: {words}"
    drawing = svg.Drawing(660, 240, alt=alt)
    drawing.text_from(10, 14, words, size=15)
    for number, (score, value) in enumerate(zip(SCORES, VALUES, strict=True)):
        x = 96 + 68 * number
        is_seen = number < past
        if is_seen:
            height = float(120 * np.exp(score - state.largest))
            colour = YELLOW if number >= past - A_TILE else BLUE
            drawing.box(x, 166 - height, 52, height, fill=colour)
        drawing.line(x - 4, 166, x + 56, 166, colour=svg.GREY)
        drawing.text(x + 26, 184, f"{score:g}" if is_seen else "?", size=15)
        drawing.text(x + 26, 212, f"{value:g}" if is_seen else "?", size=15)
    for y, name in ((150, "weight"), (184, "score"), (212, "value")):
        drawing.text(82, y, name, size=14, anchor="end")
    return drawing


# ---- flash attention: one block's walk

TILES, OWN_TILE = 6, 2  # tiles of queries, and of keys; those of the block that is drawn
KEYS_OF_TILE = 8


def one_block(tile: int):
    """A block of flash attention with one of its tiles of keys: what exists, and what never did."""
    cell, left, top = 44, 110, 60
    first = KEYS_OF_TILE * tile
    here = f"keys and values {first} to {first + KEYS_OF_TILE - 1}"
    alt = f"a block with {here} in shared memory; of each query it keeps m, l and o"
    drawing = svg.Drawing(680, top + cell * TILES + 12, alt=alt)
    drawing.text(left + cell * TILES / 2, 12, "keys and values, in global memory", size=14)
    drawing.text(left - 62, top - 12, "queries", size=14)
    for number in range(TILES):
        x, y = left + cell * number, top + cell * number
        drawing.box(x + 2, 26, cell - 4, 24, fill=GREEN if number == tile else svg.FAINT)
        own = number == OWN_TILE
        drawing.box(left - 84, y + 2, 44, cell - 4, fill=YELLOW if own else svg.FAINT)
        for column in range(TILES):
            place = left + cell * column + 2, y + 2, cell - 4, cell - 4
            drawing.box(*place, line=svg.GREY, stroke_dasharray="3 3")
    x, y = left + cell * tile, top + cell * OWN_TILE
    drawing.named(x + 2, y + 2, cell - 4, cell - 4, "scores", BLUE, size=11, rx=0)
    drawing.arrow(x + cell / 2, 52, x + cell / 2, y - 2)
    drawing.arrow(left - 38, y + cell / 2, x - 1, y + cell / 2)
    right = left + cell * TILES + 24
    drawing.box(right, 26, 18, 18, fill=GREEN)
    drawing.text_from(right + 26, 35, "in shared memory:", size=14)
    drawing.text_from(right + 26, 55, here, size=14)
    drawing.box(right, y - 20, 18, 18, fill=YELLOW)
    drawing.text_from(right + 26, y - 11, "in registers, for each query:", size=14)
    drawing.text_from(right + 26, y + 9, "its numbers, and m, l, o", size=14)
    drawing.box(right, y + 40, 18, 18, line=svg.GREY, stroke_dasharray="3 3")
    drawing.text_from(right + 26, y + 49, "no memory is needed for these:", size=14)
    drawing.text_from(right + 26, y + 69, "gone, to come, or another block's", size=14)
    return drawing


# ---- which tiles are visited

WHOLE, EDGE, SKIPPED = "all of it is seen", "partly seen: it needs the mask", "skipped"


def kind_of_tile(first_query, first_key, tile, length, causal, window=None) -> str:
    """What a tile of scores is: WHOLE, EDGE or SKIPPED. window: keys that a query sees at most."""
    rows = np.arange(first_query, min(first_query + tile, length))[:, None]
    keys = np.arange(first_key, min(first_key + tile, length))
    sees = np.ones((len(rows), len(keys)), bool)
    if causal:
        sees = keys < np.vectorize(seen)(rows, length, length)
    if window:
        sees = sees & (keys > rows - window)
    if not sees.any():
        return SKIPPED
    return WHOLE if sees.all() and len(keys) == tile else EDGE


def visits(length: int, tile: int = 16, causal: bool = True, window: int | None = None):
    """The tiles of a score matrix: which are whole, which need the mask, which are skipped."""
    tiles = ceil_div(length, tile)
    firsts = [tile * number for number in range(tiles)]
    kinds = [[kind_of_tile(q, k, tile, length, causal, window) for k in firsts] for q in firsts]
    flat = [kind for row in kinds for kind in row]
    counts = {kind: flat.count(kind) for kind in (WHOLE, EDGE, SKIPPED)}
    words = "; ".join(f"{count} {kind}" for kind, count in counts.items())
    cell = 300 / max(tiles, 8)
    alt = f"{length} queries and keys in tiles of {tile}: {words}"
    drawing = svg.Drawing(680, 60 + cell * tiles, alt=alt)
    drawing.text_from(70, 14, "keys →", size=14)
    drawing.text_from(8, 50, "queries", size=14)
    drawing.text_from(8, 68, "↓", size=14)
    colours = {WHOLE: GREEN, EDGE: YELLOW, SKIPPED: svg.FAINT}
    for kind, colour in colours.items():
        for y, row in enumerate(kinds):
            corners = [(70 + cell * x, 30 + cell * y) for x, each in enumerate(row) if each == kind]
            drawing.cells(corners, cell - 2, fill=colour)
    for number, (kind, count) in enumerate(counts.items()):
        y = 46 + 28 * number
        drawing.box(390, y - 9, 18, 18, fill=colours[kind])
        drawing.text_from(416, y, f"{count} {kind}", size=14)
    return drawing


# ---- which places of a tile a lane holds

SIDE = 16  # rows of a product, and numbers that it adds up over


def sums_of(lane: int) -> list[tuple[int, int]]:
    """(row, column) of the eight sums that a lane has of two `mma.m16n8k16`, side by side, in the
    order of its registers (PTX, Matrix Fragments for mma.m16n8k16).
    """
    return [
        (lane // 4 + 8 * (i // 2), 8 * product + lane % 4 * 2 + i % 2)
        for product in range(2)
        for i in range(4)
    ]


def factors_of(lane: int) -> list[tuple[int, int]]:
    """(row, column) of the eight numbers that a lane supplies of such a product's left factor."""
    return [
        (lane // 4 + 8 * (register % 2), lane % 4 * 2 + half + 8 * (register // 2))
        for register in range(4)
        for half in range(2)
    ]


def places(lane: int):
    """A lane's places in a tile of 16 × 16: of the scores that it gets, two `mma` side by side, and
    of the weights that it hands to the product with V.
    """
    sheets = {"scores that it gets": sums_of(lane), "weights that it hands in": factors_of(lane)}
    said = "; ".join(f"{title}: {', '.join(map(str, own))}" for title, own in sheets.items())
    cell = 17
    wide = SIDE * cell
    alt = f"lane {lane}'s places (row, column), in the order of its registers. {said}"
    drawing = svg.Drawing(2 * wide + 90, wide + 40, alt=alt)
    for sheet, (title, own) in enumerate(sheets.items()):
        left = 10 + sheet * (wide + 70)
        drawing.text_from(left, 14, title, size=15)
        every = [(row, column) for row in range(SIDE) for column in range(SIDE)]
        for colour, which in ((svg.FAINT, every), (YELLOW, own)):
            corners = [(left + cell * column, 30 + cell * row) for row, column in which]
            drawing.cells(corners, cell - 2, fill=colour)
        for number, (row, column) in enumerate(own):
            middle = left + cell * column + cell / 2 - 1, 30 + cell * row + cell / 2 - 1
            drawing.text(*middle, number, size=12, colour=svg.ON_COLOUR)
    drawing.arrow(wide + 24, 30 + wide / 2, wide + 66, 30 + wide / 2)
    return drawing


# ---- who waits for whom on a Hopper SM

PRODUCT, SOFTMAX = "product", "softmax"
SCHEMES = ("at the same time", "in turns", "overlapped")
GROUPS = (0, 1)


@dataclass(frozen=True)
class Span:
    """What a warp group does from one cycle to another."""

    group: int
    what: str
    start: float
    end: float


class Clock:
    """Two units, one for products and one for softmax, each of which serves one group at a time."""

    def __init__(self):
        self.spans = []
        self.free = {PRODUCT: 0.0, SOFTMAX: 0.0}

    def work(self, group: int, what: str, ready: float, cycles: float) -> float:
        """Give a unit work that can begin at `ready`; when it ends."""
        start = max(ready, self.free[what])
        end = self.free[what] = start + cycles
        self.spans.append(Span(group, what, start, end))
        return end


def timeline(scheme: str, product: float, softmax: float, tiles: int = 3) -> list[Span]:
    """A model of two warp groups of an SM; each tile of keys costs two products and a softmax.

    "at the same time": both multiply, both weigh, and share the units. "in turns": values of a tile
    and scores of the next are one turn, while the other group weighs. "overlapped": a group's next
    scores are queued before it multiplies these weights, and weighed during that product.
    """
    if scheme == "at the same time":
        return _side_by_side(product, softmax, tiles)
    clock = Clock()
    ready = [clock.work(group, PRODUCT, 0.0, product) for group in GROUPS]
    if scheme == "overlapped":
        ready = [clock.work(group, SOFTMAX, ready[group], softmax) for group in GROUPS]
    elif scheme != "in turns":
        raise ValueError(f"scheme must be one of {SCHEMES}, not {scheme!r}")
    for tile in range(tiles):
        last = tile == tiles - 1
        for group in GROUPS:
            if scheme == "in turns":
                weighed = clock.work(group, SOFTMAX, ready[group], softmax)
                cycles = product if last else 2 * product
                ready[group] = clock.work(group, PRODUCT, weighed, cycles)
            elif last:
                ready[group] = clock.work(group, PRODUCT, ready[group], product)
            else:
                scores = clock.work(group, PRODUCT, ready[group], product)
                values = clock.work(group, PRODUCT, scores, product)
                ready[group] = max(values, clock.work(group, SOFTMAX, scores, softmax))
    return clock.spans


def _side_by_side(product, softmax, tiles):
    """Both groups do the same, at half the speed each."""
    spans, now = [], 0.0
    for what, cycles in ((PRODUCT, product), (SOFTMAX, softmax), (PRODUCT, product)) * tiles:
        spans += [Span(group, what, now, now + 2 * cycles) for group in GROUPS]
        now += 2 * cycles
    return spans


def busy(scheme: str, product: float, softmax: float) -> float:
    """The share of the time in which tensor cores multiply, without a loop's start and end."""
    few, many = 10, 20
    first, second = (ends(timeline(scheme, product, softmax, tiles)) for tiles in (few, many))
    return 2 * len(GROUPS) * product * (many - few) / (second - first)


TICK = 2000  # cycles


def longest(product: float, softmax: float, tiles: int) -> float:
    """Cycles after which the slowest scheme ends: where the axis of all of them ends."""
    return max(ends(timeline(scheme, product, softmax, tiles)) for scheme in SCHEMES)


def ends(spans: list[Span]) -> float:
    """The cycle after which nothing runs any more."""
    return max(span.end for span in spans)


def turns(scheme: str, product: float, softmax: float, tiles: int = 3):
    """The timeline of two warp groups as a picture, and how busy tensor cores are further on.

    A group has two rows, one for each unit: what it does on both at once does not hide itself. The
    axis is the same for all schemes, so that a shorter one looks shorter.
    """
    spans = timeline(scheme, product, softmax, tiles)
    words = f"{scheme}: {tiles} tiles end after {ends(spans):,.0f} cycles; once under way, "
    words += f"tensor cores are {busy(scheme, product, softmax):.0%} busy"
    alt = f"{words}; a product takes {product:,.0f} cycles, a softmax {softmax:,.0f}"
    drawing = svg.Drawing(720, 210, alt=alt)
    drawing.text_from(10, 14, words, size=14)
    left, last = 140, longest(product, softmax, tiles)
    pixels = 560 / last
    rows = {PRODUCT: (BLUE, 36), SOFTMAX: (YELLOW, 64)}
    for group in GROUPS:
        drawing.text_from(10, 62 + 72 * group, f"group {group + 1}", size=14)
        for what, (_, y) in rows.items():
            drawing.text_from(76, y + 12 + 72 * group, what, size=13)
    for span in spans:
        colour, y = rows[span.what]
        width = pixels * (span.end - span.start)
        place = left + pixels * span.start, y + 72 * span.group
        drawing.box(*place, width, 24, fill=colour, line=svg.ON_COLOUR)
        cycles = f"{span.end - span.start:,.0f}"
        if width > 6 * len(cycles) + 6:
            drawing.text(place[0] + width / 2, place[1] + 12, cycles, size=11, colour=svg.ON_COLOUR)
    drawing.line(left, 178, left + 560, 178, colour=svg.GREY)
    for cycle in range(0, int(last) + 1, TICK):
        x = left + pixels * cycle
        drawing.line(x, 178, x, 184, colour=svg.GREY)
        drawing.text(x, 196, f"{cycle:,}", size=12)
    return drawing


# ---- a producer, a ring of slots, two consumers

#: KiB of shared memory that a block may have (CUDA programming guide, compute capability 9.0)
SHARED_MOST = 227
#: Registers of a consumer's thread (kernels/stay.cu), and what of them the results take
REGISTERS, RESULTS = 232, 64
CONSUMERS = 2
KEPT = {
    "queries": YELLOW,
    "next queries": YELLOW,
    "K": GREEN,
    "V": GREEN,
    "next K": BLUE,
    "next V": BLUE,
}


def held(keys: int) -> tuple[int, dict[str, int]]:
    """(bytes of shared memory of a block that stays, {what: registers of a consumer's thread}).

    keys: of a tile. A warp group of 128 threads has 64 rows: a thread has half as many scores as a
    tile has keys, and packs two weights into a register.
    """
    return Form(keys=keys).shared, {"results": RESULTS, "scores": keys // 2, "weights": keys // 4}


def room(keys: int):
    """A block of the fastest rung: who asks, what lies in shared memory, and what threads hold.

    keys: of a tile. Both bars are to scale; what does not fit stands behind their ends.
    """
    size, registers = held(keys)
    kib, most = size / 1024, sum(registers.values())
    fits = "it fits" if kib <= SHARED_MOST and most <= REGISTERS else "it does not fit"
    said = f"tiles of {keys} keys: {kib:.0f} of {SHARED_MOST} KiB, {most} of {REGISTERS} registers"
    said = f"{said}: {fits}"
    drawing = svg.Drawing(700, 250, alt=said)
    drawing.text_from(10, 14, said, size=15)
    drawing.named(10, 32, 330, 30, "producer: one thread asks TMA for tiles", IDLE, size=14)
    drawing.arrow(175, 64, 400, 86)
    pixels = 620 / max(SHARED_MOST, kib)
    rows = {name: QUERIES if "queries" in name else keys for name in KEPT}
    tiles = [(name, pixels * rows[name] * 2 * DIM / 1024, KEPT[name]) for name in KEPT]
    filled(drawing, 10, 88, tiles, pixels * SHARED_MOST)
    drawing.text_from(10, 140, "shared memory (red: its end)", size=13)
    pitch = 330 / max(REGISTERS, most)
    holds = [(name, pitch * count, IDLE) for name, count in registers.items()]
    for group in range(CONSUMERS):
        left = 10 + 350 * group
        drawing.arrow(left + 240, 124, left + 240, 158)
        drawing.text_from(left, 170, f"consumer {group + 1}: 64 queries", size=14)
        filled(drawing, left, 182, holds, pitch * REGISTERS)
        drawing.text_from(left, 230, "registers of a thread", size=13)
    return drawing


def filled(drawing, left, top, parts, room_for):
    """Draw parts (name, width, colour) side by side, and a line where their room ends."""
    x = left
    for name, wide, colour in parts:
        drawing.named(x, top, wide - 2, 32, name, colour, size=11)
        x += wide
    end = left + room_for
    drawing.line(end, top - 7, end, top + 40, colour=svg.strong(ALARM), thick=2)


# ---- blocks of unequal length on the SMs


def needed(length: int) -> list[int]:
    """Tiles of 160 keys that each tile of 128 causal queries needs, the first queries first."""
    return costs(length, length, causal=True, width=160)


def as_launched(lengths: list[int], sms: int) -> list[int]:
    """Of each block its SM, if blocks start in their order, and each on the SM that is free first.

    lengths: how long each block runs.
    """
    whose = []
    free = [0] * sms
    for length in lengths:
        sm = free.index(min(free))
        whose.append(sm)
        free[sm] += length
    return whose


def last_end(lengths: list[int], whose: list[int], sms: int) -> int:
    """When the last SM ends. whose: of each block its SM."""
    work = np.bincount(whose, weights=lengths, minlength=sms)
    return int(work.max())


def last_ends(launched: list[int], whose: list[int], sms: int) -> None:
    """Print when the last SM ends: as blocks are launched, and as they are dealt out.

    launched: how long each block runs. whose: of each block the SM that a learner gives it.
    """
    ways = {
        "as launched": (launched, as_launched(launched, sms)),
        "dealt out by you": (launched, whose),
    }
    for way, (lengths, owners) in ways.items():
        print(f"{way:31} {last_end(lengths, owners, sms)}")
    print(f"{'evenly, if that were possible':31} {sum(launched) / sms:.0f}")


def handed_out(lengths: list[int], whose: list[int], sms: int):
    """A line for each SM: its blocks one after the other, and where the last of all SMs ends.

    whose: of each block its SM.
    """
    end = last_end(lengths, whose, sms)
    lists = [[x for x, own in zip(lengths, whose, strict=True) if own == sm] for sm in range(sms)]
    said = "; ".join(f"SM {sm}: {' + '.join(map(str, own))}" for sm, own in enumerate(lists))
    drawing = svg.Drawing(620, 50 + 34 * sms, alt=f"{said}; the last ends after {end}")
    left, unit, height = 70, 500 / max(end, 1), 34
    for sm, own in enumerate(lists):
        drawing.text_from(10, 20 + height * sm, f"SM {sm}", size=14)
        past = 0
        for length in own:
            place = left + unit * past, 6 + height * sm
            drawing.named(*place, unit * length - 2, 28, length, GREEN, size=14)
            past += length
    drawing.text_from(left, 24 + height * sms, f"the last SM ends after {end}", size=14)
    return drawing


# ---- recorded races


def shares_of_cudnn(names, causal: bool = False, length: int = 4096) -> tuple[str, dict]:
    """(whose, {rung: share of cuDNN's speed}) as recorded; rungs without a record are left out."""
    kind = "_causal" if causal else ""
    rungs = [f"attention/ladder{kind}/{length}/{name}/rate" for name in names]
    cudnn, *found = results.together(f"attention/forward{kind}/{length}/cudnn/rate", *rungs)
    if cudnn is None:
        return "", {}
    pairs = zip(names, found, strict=True)
    return cudnn["gpu"], {name: rung["value"] / cudnn["value"] for name, rung in pairs if rung}


ANSWERS = {
    "naive": "three kernels",
    "online": "flash, float32",
    "mma": "tensor cores: mma",
    "wgmma": "a producer: wgmma",
    "turns": "turns",
    "overlap": "overlap",
    "stay": "blocks that stay",
}


ROOM = 15  # of a column of numbers, in % of the axis


def ladder(names, causal: bool = False):
    """A bar for each rung: its share of cuDNN's speed on the same work, as recorded.

    The newest rung is the dark one. Numbers stand in a column of their own, beside cuDNN's line.
    """
    whose, shares = shares_of_cudnn(names, causal)
    shares = {ANSWERS[name]: share for name, share in shares.items()}
    if not shares:
        print("not recorded yet")
        return None
    kind = "causal" if causal else "every key is seen"
    title = f"share of cuDNN's speed, 4,096 tokens, {kind}, {whose}"
    said = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    fig, axes = chart(8, 0.9 + 0.3 * len(shares), alt=f"{title}: {said}")
    percent = [100 * share for share in shares.values()]
    colours = [OTHERS] * (len(percent) - 1) + [ACCENT]
    axes.barh(list(shares), percent, color=colours, height=0.7)
    axes.axvline(100, color=ALARM, linewidth=1.2)
    end = max(100, *percent)
    for row, share in enumerate(percent):
        digits = 1 if share >= 1 else 2
        axes.text(end + ROOM, row, f"{share:.{digits}f} %", ha="right", va="center", color=INK)
    axes.set(xlim=(0, end + ROOM), xlabel="% of cuDNN's speed (line: cuDNN)")
    axes.set_xticks(range(0, 101, 20))
    axes.invert_yaxis()
    plain(axes, title)
    return fig


RIVALS = {
    "ours": "ours, fastest",
    "cudnn": "cuDNN",
    "ours_mma": "ours, mma",
    "flash": "PyTorch flash",
}
LENGTHS = (2048, 4096, 8192, 16384)


def lengths(causal: bool = False, kind: str = "forward"):
    """TFLOP/s over the length, ours and PyTorch's backends, as recorded."""
    topic = f"attention/{kind}_causal" if causal else f"attention/{kind}"
    keys = [(name, length) for name in RIVALS for length in LENGTHS]
    found = results.together(*(f"{topic}/{length}/{name}/rate" for name, length in keys))
    rates = {key: entry["value"] / 1e12 for key, entry in zip(keys, found, strict=True) if entry}
    if not rates:
        print("not recorded yet")
        return None
    whose = next(entry["gpu"] for entry in found if entry)
    title = f"{'causal' if causal else 'every key is seen'}, 16 heads of 128, bf16, {whose}"
    said = ", ".join(f"{RIVALS[n]} at {length:,} {rate:.0f}" for (n, length), rate in rates.items())
    fig, axes = chart(8, 3.2, alt=f"TFLOP/s, {title}: {said}")
    looks_like = {"ours": (ACCENT, "-"), "cudnn": (ALARM, "-")}
    looks_like |= {"ours_mma": (ACCENT, ":"), "flash": (ALARM, ":")}
    for name, label in RIVALS.items():
        ours = [(length, rates[name, length]) for length in LENGTHS if (name, length) in rates]
        colour, line = looks_like[name]
        axes.plot(*zip(*ours, strict=True), line, color=colour, marker="o", label=label)
    axes.set(xscale="log", xticks=LENGTHS, xlabel="tokens", ylabel="TFLOP/s", ylim=(0, None))
    axes.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS])
    axes.set_xticks([], minor=True)
    axes.legend(frameon=False)
    plain(axes, title)
    return fig


def backward_table() -> None:
    """Print the backward pass's speed beside cuDNN's, as recorded."""
    keys = [(kind, length) for kind in ("backward", "backward_causal") for length in LENGTHS[1:]]
    names = [f"attention/{kind}/{length}" for kind, length in keys]
    rates = results.together(*(f"{name}/ours/rate" for name in names))
    shares = results.together(*(f"{name}/share_of_cudnn" for name in names))
    rows = [row for row in zip(keys, rates, shares, strict=True) if row[1] and row[2]]
    for (kind, length), rate, share in rows:
        speed = f"{rate['value'] / 1e12:.0f} TFLOP/s, {share['value']:.0%} of cuDNN"
        print(f"{kind.replace('_', ', '):16} {length:6,} tokens: {speed} ({rate['gpu']})")
    if not rows:
        print("speeds of the backward pass: not recorded yet")


# ---- decoding


def parts_on_sms(blocks: int, sms: int = 132, across: int = 22):
    """SMs that have a block, and those that have none; how many blocks an SM has at most."""
    used = min(blocks, sms)
    alt = f"{blocks} blocks: {used} of {sms} SMs work, each with {ceil_div(blocks, sms)} at most"
    drawing = svg.Drawing(620, 46 + 24 * ceil_div(sms, across), alt=alt)
    drawing.text_from(10, 14, alt, size=15)
    corners = [(10 + 27 * (i % across), 34 + 24 * (i // across)) for i in range(sms)]
    drawing.cells(corners[:used], 20, fill=GREEN)
    drawing.cells(corners[used:], 20, fill=svg.FAINT)
    return drawing


LADDER_WORDS = 32768
STEPS = {
    "simple": "a block for each head",
    "split": "its keys in parts",
    "group": "a group shares its loads",
}


def decode_ladder():
    """A bar for each way to decode: its share of the speed of a copy, as recorded."""
    names = [f"attention/decode_ladder/{LADDER_WORDS}/{step}/share_of_copy" for step in STEPS]
    entries = results.together(*names)
    shares = {
        label: 100 * entry["value"]
        for label, entry in zip(STEPS.values(), entries, strict=True)
        if entry
    }
    if not shares:
        print("not recorded yet")
        return None
    whose = next(entry["gpu"] for entry in entries if entry)
    title = f"share of a copy's speed, {LADDER_WORDS:,} words, {whose}"
    said = ", ".join(f"{label} {share:#.3g}%" for label, share in shares.items())
    fig, axes = chart(8, 0.9 + 0.3 * len(shares), alt=f"{title}: {said}")
    bars = axes.barh(list(shares), list(shares.values()), color=ACCENT, height=0.7)
    axes.bar_label(bars, [f"{share:#.3g} %" for share in shares.values()], padding=3)
    axes.set(xlim=(0, 100), xlabel="% of a copy's speed")
    axes.invert_yaxis()
    plain(axes, title)
    return fig


def pages(tables: dict[str, list[int]], count: int):
    """Which page of the cache belongs to which sequence, and in which order.

    tables: of each sequence the numbers of its pages, its own first page first.
    """
    said = "; ".join(f"{name}: pages {', '.join(map(str, own))}" for name, own in tables.items())
    drawing = svg.Drawing(690, 60 + 58 * (len(tables) + 1), alt=f"{count} pages. {said}")
    drawing.text_from(10, 22, "memory", size=14)
    owner = {}
    for colour, (name, own) in zip(BLOCK_COLOURS, tables.items(), strict=False):
        owner |= {page: (colour, name, place) for place, page in enumerate(own)}
    for page in range(count):
        colour, name, place = owner.get(page, (svg.FAINT, "", ""))
        drawing.box(120 + 56 * page, 6, 52, 34, fill=colour, rx=4)
        ink = svg.ON_COLOUR if name else svg.INK
        drawing.text(146 + 56 * page, 23, page, size=15, colour=ink)
    for row, (name, own) in enumerate(tables.items()):
        y = 78 + 58 * row
        drawing.text_from(10, y + 17, name, size=14)
        for place, page in enumerate(own):
            drawing.named(120 + 56 * place, y, 52, 34, page, owner[page][0], size=15)
    drawing.text_from(120, 78 + 58 * len(tables), "each line: a sequence's block table", size=13)
    return drawing


# ---- a ring


def ring(ranks: int, step: int):
    """Which rank has which part of the keys and values in a step of ring attention."""
    held = [(rank - step) % ranks for rank in range(ranks)]
    said = ", ".join(f"rank {rank} has part {part}" for rank, part in enumerate(held))
    drawing = svg.Drawing(150 * ranks + 20, 150, alt=f"step {step}: {said}")
    for rank, part in enumerate(held):
        x = 10 + 150 * rank
        drawing.named(x, 10, 110, 36, f"queries {rank}", BLOCK_COLOURS[rank % 6], size=14)
        drawing.named(x, 70, 110, 36, f"K, V {part}", BLOCK_COLOURS[part % 6], size=14)
        if rank + 1 < ranks:
            drawing.arrow(x + 114, 88, x + 146, 88)
    y = 128
    drawing.line(10 + 150 * ranks - 95, 108, 10 + 150 * ranks - 95, y)
    drawing.line(10 + 150 * ranks - 95, y, 65, y)
    drawing.arrow(65, y, 65, 108)
    return drawing


def ring_turns(turns):
    """What each rank does in each turn of a causal ring, and with whose keys; all wait for the
    slowest.

    turns: [turn][rank], as `course.kernels.attention.ring.steps` gives them.
    """
    ranks = len(turns[0])
    took = sum(max(KINDS[work.kind] for work in turn) for turn in turns)
    done = sum(KINDS[work.kind] for turn in turns for work in turn)
    words = f"{took:g} blocks of time for {done:g} of work, shared by {ranks} ranks"
    kinds = "; ".join(
        f"turn {number}: " + ", ".join(work.kind for work in turn)
        for number, turn in enumerate(turns)
    )
    drawing = svg.Drawing(130 * ranks + 110, 52 + 46 * len(turns), alt=f"{words}. {kinds}")
    drawing.text_from(10, 14, words, size=15)
    for row, turn in enumerate(turns):
        y = 36 + 46 * row
        drawing.text_from(10, y + 18, f"turn {row}", size=14)
        for rank, work in enumerate(turn):
            share = KINDS[work.kind]
            label = f"{work.kind}, {work.source}" if share else work.kind
            drawing.named(90 + 130 * rank, y, 124, 38, label, lighter(GREEN, share), size=13)
    return drawing


def recorded_spans(length: int, ranks: int) -> list[RingSpan]:
    """What ran when on the first rank, as recorded; empty where nothing is."""
    name = f"attention/ring/{ranks}/{length}/timeline"
    spans = []
    for what in ("copy", "work", "merge"):
        for turn in range(ranks):
            ends = [results.find(f"{name}/{what}/{turn}/{end}") for end in ("begin", "end")]
            if all(ends):
                begin, end = (1e3 * entry["value"] for entry in ends)
                spans.append(RingSpan(what, turn, begin, end))
    return spans


def ring_timeline(spans: list[RingSpan]):
    """One GPU's run of a ring: what its SMs did, and when keys and values for which turn came."""
    rows = {"SMs": ("work", "merge"), "copies": ("copy",)}
    colours = {"work": GREEN, "merge": YELLOW, "copy": BLUE}
    last = max((span.end for span in spans), default=0)
    words = "; ".join(
        f"{span.what} {span.turn} from {span.begin:.1f} to {span.end:.1f} ms" for span in spans
    )
    drawing = svg.Drawing(760, 150, alt=words or "nothing is recorded")
    if not spans:
        drawing.text_from(10, 20, "nothing is recorded", size=14)
        return drawing
    left, wide = 80, 660
    for row, (label, kinds) in enumerate(rows.items()):
        y = 12 + 52 * row
        drawing.text_from(10, y + 20, label, size=15)
        for span in spans:
            if span.what in kinds:
                x = left + wide * span.begin / last
                width = wide * (span.end - span.begin) / last
                said = f"turn {span.turn}" if span.what == "work" else ""
                drawing.named(x, y, max(width, 2), 40, said, colours[span.what], size=14, rx=0)
    drawing.line(left, 118, left + wide, 118)
    drawing.text(left, 134, "0", size=13)
    drawing.text(left + wide, 134, f"{last:.1f} ms", size=13, anchor="end")
    return drawing
