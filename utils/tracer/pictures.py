"""Pictures of a trace. Each names its source line and has a text alternative (`alt`)."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ..occupancy import ceil_div
from ..plots import ACCENT, ALARM, IDLE, INK, figure, svg
from ..plots.cells import draw_cells, draw_lines
from ..plots.picture import luminance
from . import counts
from .record import WORDS, TraceError, cropped

WASTE = "#F6DDB8"
ASKED = "#BFD9EA"
BLANK = IDLE
GRID_LINE = "white"
MOST_ROWS = 16  # rows of memory in one picture: of more a slide shows no number
FEW_ROWS = 8  # up to here there is room for thick ones
WIDTH = 8.6  # inches
LETTERS = 9  # points: at this width 18 pixels on a slide
MOST_UNDER_WHITE = 0.18  # luminance: above it white letters have less contrast than 4.5 to 1
SECTORS = counts.CACHE_LINE // counts.SECTOR
#: Inches of a panel of memory: above its rows, a thick row, a thin one
ABOVE_INCHES = 0.62
THICK_INCHES = 0.23
THIN_INCHES = 0.16
TITLE_WIDTH = 84  # characters


def lane_colour(lane):
    """The colour of a lane, and black or white for what is written on it."""
    from matplotlib import colormaps

    colour = colormaps["viridis"](lane / 31)
    return colour, "white" if luminance(colour[:3]) < MOST_UNDER_WHITE else svg.ON_COLOUR


def as_hex(colour):
    from matplotlib.colors import to_hex

    return to_hex(colour)


def rgb(colour):
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def code_of(trace, filename, line):
    """'line 12: out[i] = a[i]', cropped to what fits a title."""
    texts = {(name, number): text for name, number, text in trace.source}
    text = texts.get((filename, line), "")
    return f"line {line}:  {cropped(text.strip(), TITLE_WIDTH)}"


def cell_text(who):
    """The number of the one lane in a cell, or how many share it."""
    return f"{who[0]}" if len(who) == 1 else f"×{len(who)}"


def warp_name(trace, warp):
    block, number = divmod(int(warp), trace.events.warps_a_block)
    return f"warp {number} of block {trace.point(block, trace.grid)}"


# ---- which request to show


def select(trace, rows, space, line, array, operation, warp, time):
    """The requests to draw: for each array and operation of one line, the events of one request.

    line None: the first line where something can be improved, else the first.
    warp None: that of the request that costs most.
    time: which of that warp's requests at this line, from 0.
    """
    events = trace.events
    asked = trace.rows(rows, array, operation, line)
    if line is None:
        wasteful = [row for row in asked if is_wasteful(row, space)]
        one = (wasteful or asked)[0]
        asked = [row for row in asked if row.filename == one.filename]
        line = one.line
    else:
        line = asked[0].line
    drawn = []
    for row in asked:
        if row.line != line:
            continue
        own = accesses_of(events, row, space)
        numbers, first = counts.requests(events, own)
        if warp is None:
            costliest = np.argmax(cost_of(events, own, numbers, space))
            warp = int(events.warp[first[costliest]])
        mine = np.flatnonzero(events.warp[first] == warp)
        mine = mine[np.argsort(first[mine])]
        if not len(mine):
            raise TraceError(f"{warp_name(trace, warp)} does not come to line {row.line}")
        if not 0 <= time < len(mine):
            raise TraceError(
                f"{warp_name(trace, warp)} comes to line {row.line} {len(mine)} times; time= "
                "counts from 0"
            )
        drawn.append((row, own[numbers == mine[time]]))
    return drawn, warp


def cost_of(events, own, numbers, space):
    """Of each request the sectors that it moves, or the passes that it takes."""
    if space == "global":
        return counts.sectors(events, own, numbers)
    _, passes, _ = counts.passes(events, own, numbers)
    return passes


def is_wasteful(row, space):
    """Whether a row's accesses cost more than they must."""
    if space == "global":
        return row.efficiency < 99.5
    return row.conflicts > 0


def accesses_of(events, row, space):
    """The accesses that a row of counts sums up: of one line, array and operation."""
    chosen = events.accesses(space)
    lines, places = events.line_of_site
    names, arrays = events.name_of_memory
    kinds = {word: kind for kind, word in WORDS.items()}
    line = places.index((row.filename, row.line))
    array = arrays.index(row.array)
    matching = lines[events.site[chosen]] == line
    matching &= names[events.memory[chosen]] == array
    matching &= events.kind[chosen] == kinds[row.operation]
    return chosen[matching]


# ---- memory: sectors and cache lines


def memory(
    trace,
    line=None,
    array=None,
    operation=None,
    warp=None,
    time=0,
):
    """Memory as rows of 128 bytes, four 32-byte sectors each, with one request of one warp.

    A cell is an element; its colour and number are the lane that asks for it. Orange: moved with
    it, not asked for.
    line, array, operation: which accesses (a line number or a piece of its text; None: the first
        line that wastes sectors).
    warp: its number through the grid (None: the one that moves most).
    time: which of its requests there, from 0.
    """
    drawn, warp = select(trace, trace.coalescing, "global", line, array, operation, warp, time)
    sheets = [sheet(trace.events, chosen) for _, chosen in drawn]
    texts = [said_of_sectors(trace.events, row, chosen) for row, chosen in drawn]
    row = drawn[-1][0]
    code = code_of(trace, row.filename, row.line)
    who = warp_name(trace, warp)
    heights = [max(len(each.rows), 2) for each in sheets]
    row_height = THICK_INCHES if max(heights) <= FEW_ROWS else THIN_INCHES
    inches = [ABOVE_INCHES + row_height * height for height in heights]
    fig = figure(
        WIDTH,
        0.75 + sum(inches),
        alt=f"Memory touched by {who} in {code} {'; '.join(texts)}.",
    )
    fig.suptitle(
        f"{code}\n{who}",
        fontsize=9.5,
        x=0.01,
        ha="left",
        color=INK,
        family="monospace",
    )
    ratios = [height / row_height for height in inches]
    panels = fig.subplots(len(drawn), 1, height_ratios=ratios, squeeze=False)[:, 0]
    for axes, content, text in zip(panels, sheets, texts, strict=True):
        draw_sheet(axes, content, text)
    return fig


VERBS = {"read": "reads", "write": "writes", "atomic": "changes"}


def said_of_sectors(events, row, chosen):
    """'reads x: 8 sectors, 4 would do = 50 %', of one request."""
    numbers = np.zeros(len(chosen), np.int64)
    touched = int(counts.sectors(events, chosen, numbers)[0])
    asked = int(counts.unique_bytes(events, chosen, numbers)[0])
    fewest = ceil_div(asked, counts.SECTOR)
    sectors = "1 sector" if touched == 1 else f"{touched} sectors"
    share = 100 * fewest / touched
    return f"{VERBS[row.operation]} {row.array}: {sectors}, {fewest} would do = {share:.3g} %"


@dataclass(frozen=True)
class Sheet:
    """Memory that a request touches, in rows of a cache line.

    size: bytes of a cell, an element or a part of one; cells: how many there are in a row.
    lanes: (place in `rows`, cell) -> lanes that ask for it.
    labels: what each row begins with. hidden: rows that are left out.
    """

    rows: list
    size: int
    lanes: dict
    labels: list
    hidden: int

    @property
    def cells(self):
        return counts.CACHE_LINE // self.size

    @property
    def per_sector(self):
        return counts.SECTOR // self.size


def sheet(events, chosen):
    """The Sheet of one request."""
    smallest = int(events.size[chosen].min())
    size = min(max(1, smallest), counts.SECTOR)
    asked = asked_bytes(events, chosen, size)
    start = int(events.address[chosen].min()) // counts.CACHE_LINE
    touched = {address // counts.CACHE_LINE for address, _ in asked}
    rows = sorted(touched | {start})
    shown = rows[:MOST_ROWS]
    hidden = rows[MOST_ROWS:]
    lanes = defaultdict(list)
    for address, lane in asked:
        row, within = divmod(address, counts.CACHE_LINE)
        if row in shown:
            cell = shown.index(row), within // size
            lanes[cell].append(lane)
    memory = events.memory_of(chosen[0])
    offsets = [row * counts.CACHE_LINE - memory.start for row in shown]
    labels = [row_label(memory, offset) for offset in offsets]
    return Sheet(shown, size, lanes, labels, len(hidden))


def asked_bytes(events, chosen, size):
    """(address, lane) of every piece of `size` bytes that a request asks for."""
    asked = []
    for i in chosen.tolist():
        lane = int(events.lane[i])
        first = int(events.address[i])
        pieces = max(1, int(events.size[i]) // size)
        for piece in range(pieces):
            address = first + piece * size
            asked.append((address, lane))
    return asked


def row_label(memory, offset):
    """What a row of memory that begins at this byte of an array begins with."""
    if -counts.CACHE_LINE < offset < 0:
        return f"… {memory.element(0)}"  # the array begins somewhere in this row
    return memory.element(offset)


def draw_sheet(axes, content, text):
    """A request's Sheet on a matplotlib panel, below what is said of it."""
    show_cells(axes, colours_of(content), fine=content.cells <= 64)
    for boundary in range(0, content.cells + 1, content.per_sector):
        is_outer = boundary in (0, content.cells)
        axes.axvline(boundary - 0.5, color=INK, linewidth=1.4 if is_outer else 0.9)
    if content.cells <= 32:
        write_lanes(axes, content)
    places = range(len(content.rows))
    axes.set_yticks(places, content.labels, fontsize=LETTERS, family="monospace")
    sectors = np.arange(SECTORS)
    middles = (sectors + 0.5) * content.per_sector - 0.5
    names = [f"sector {i}" for i in sectors]
    axes.set_xticks(middles, names, fontsize=LETTERS)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    more = f"  (and {content.hidden} more rows)" if content.hidden else ""
    axes.set_title(text + more, fontsize=LETTERS, loc="left", color=INK)
    moved = {(row, cell // content.per_sector) for row, cell in content.lanes}
    if len(content.lanes) < len(moved) * content.per_sector:
        axes.set_title(
            "orange: moved, not asked for", fontsize=LETTERS, loc="right", color="#8A5A00"
        )


def colours_of(content):
    """The colours of a Sheet's cells: whose they are, moved for nothing, or not moved."""
    picture = np.empty((len(content.rows), content.cells, 3))
    picture[:] = rgb(BLANK)
    for row, cell in content.lanes:
        sector = cell // content.per_sector
        first = sector * content.per_sector
        last = first + content.per_sector
        picture[row, first:last] = rgb(WASTE)
    for (row, cell), who in content.lanes.items():
        colour, _ = lane_colour(who[0])
        picture[row, cell] = colour[:3]
    return picture


def write_lanes(axes, content):
    """Into each cell of a Sheet its lane, or how many share it."""
    for (row, cell), who in content.lanes.items():
        axes.text(
            cell,
            row,
            cell_text(who),
            ha="center",
            va="center",
            fontsize=LETTERS if len(cell_text(who)) < 3 else LETTERS - 2,
            color=lane_colour(who[0])[1],
        )


def show_cells(axes, picture, fine=True):
    """A grid of coloured cells, with thin white lines between them."""
    rows, cells = picture.shape[:2]
    draw_cells(axes, picture)
    if fine:
        draw_lines(axes, rows, cells)
    axes.spines[:].set_visible(False)


# ---- banks


def banks(
    trace,
    line=None,
    array=None,
    operation=None,
    warp=None,
    time=0,
):
    """Shared memory as rows of 32 banks, with one request of one warp, and each bank's passes.

    A cell is a 4-byte word; its colour and number are the lane that asks for it (×n: n lanes share
    it, in one pass). Arguments as in `memory`. Of accesses of 8 or 16 bytes the half or quarter of
    the warp that takes longest is shown.
    """
    drawn, warp = select(trace, trace.banks, "shared", line, array, operation, warp, time)
    sheets = [bank_sheet(trace.events, chosen) for _, chosen in drawn]
    rows = [row for row, _ in drawn]
    texts = [said_of_banks(row, content) for row, content in zip(rows, sheets, strict=True)]
    code = code_of(trace, rows[-1].filename, rows[-1].line)
    who = warp_name(trace, warp)
    is_tall = max(len(content.rows) for content in sheets) > FEW_ROWS
    row_height = THIN_ROW if is_tall else THICK_ROW
    heights = [ABOVE_ROWS + row_height * len(each.rows) + BELOW_ROWS for each in sheets]
    alt = f"Banks used by {who} in {code} {'; '.join(texts)}."
    picture = svg.Drawing(BANKS_WIDTH, TITLE_HEIGHT + sum(heights), alt=alt)
    for number, words in enumerate((code, who)):
        y = 12 + 18 * number
        picture.text(4, y, words, size=13, anchor="start", font_family="monospace")
    top = TITLE_HEIGHT
    for content, words, height in zip(sheets, texts, heights, strict=True):
        draw_banks(picture, top, row_height, content, words)
        top += height
    return picture


def said_of_banks(row, content):
    """'reads tile: 2-way bank conflict: 2 passes', of one request."""
    conflict = "no bank conflict: 1 pass"
    if content.worst > 1:
        conflict = f"{content.worst}-way bank conflict: {content.worst} passes"
    return f"{VERBS[row.operation]} {row.array}{content.part}: {conflict}"


#: Pixels of the banks' picture: its width, the column of names, a row of many and of few
BANKS_WIDTH = 826
NAMES = 76
THIN_ROW, THICK_ROW = 15, 22
BANK_LETTERS = 12  # of the lanes that share a word, ×32, two less
#: Pixels of the title, of the bars of passes, of all above the rows, and of what stands below
TITLE_HEIGHT = 44
BAR_HEIGHT = 44
ABOVE_ROWS = BAR_HEIGHT + 30
BELOW_ROWS = 38
BANK_WIDTH = (BANKS_WIDTH - NAMES - 4) / counts.BANKS


@dataclass(frozen=True)
class BankSheet:
    """Words of shared memory that a request asks for, in rows of one word a bank.

    words: number of a word -> lanes that ask for it. passes: of each bank.
    part: which lanes, where the hardware takes the warp in several parts.
    hidden: rows that are left out.
    """

    rows: list
    words: dict
    passes: np.ndarray
    part: str
    hidden: int

    @property
    def worst(self):
        return int(self.passes.max())


def bank_sheet(events, chosen):
    """The BankSheet of one request: of the part of its warp that takes most passes."""
    size = int(events.size[chosen].max())
    lanes = counts.WARP if size <= 4 else max(1, counts.WARP * 4 // size)
    parts = []
    for first in range(0, counts.WARP, lanes):
        part_of_warp = events.lane[chosen] // lanes
        own = chosen[part_of_warp == first // lanes].tolist()
        words = words_of(events, own)
        passes = passes_of(events, own, words)
        parts.append((passes, words, first))
    passes, words, first = max(parts, key=lambda part: part[0].max())
    rows = sorted({word // counts.BANKS for word in words})
    shown = rows[:MOST_ROWS]
    hidden = rows[MOST_ROWS:]
    kept = {word: who for word, who in words.items() if word // counts.BANKS in shown}
    part = ""
    if lanes < counts.WARP:
        part = f" (lanes {first}–{first + lanes - 1})"
    return BankSheet(shown, kept, passes, part, len(hidden))


def words_of(events, own):
    """Number of a word of shared memory -> lanes that ask for it."""
    words = defaultdict(list)
    for i in own:
        lane = int(events.lane[i])
        first, count = counts.extents(events, i, counts.BANK_BYTES)
        for word in range(first, first + count):
            words[word].append(lane)
    return words


def passes_of(events, own, words):
    """How many passes each bank takes: one a word, of atomics one a lane."""
    is_atomic = bool(own) and events.operation_of(own[0]) == "atomic"
    passes = np.zeros(counts.BANKS, int)
    for word, who in words.items():
        passes[word % counts.BANKS] += len(who) if is_atomic else 1
    return passes


def draw_banks(picture, top, row_height, content, words):
    """One request: above, how many passes each bank takes; below, the words that are asked for."""
    worst = content.worst
    more = f"  (and {content.hidden} more rows)" if content.hidden else ""
    colour = svg.strong(ALARM) if worst > 1 else svg.INK
    picture.text(NAMES, top + 8, words + more, size=BANK_LETTERS, anchor="start", colour=colour)
    ground = top + 22 + BAR_HEIGHT
    picture.line(NAMES, ground, BANKS_WIDTH - 4, ground)
    picture.text(NAMES - 6, ground - BAR_HEIGHT / 2, "passes", size=BANK_LETTERS, anchor="end")
    for bank, passes in enumerate(content.passes.tolist()):
        if passes == 0:
            continue
        height = passes / max(worst, 2) * (BAR_HEIGHT - 12)
        x = NAMES + bank * BANK_WIDTH
        colour = ALARM if passes == worst > 1 else ACCENT
        picture.box(x + 2, ground - height, BANK_WIDTH - 4, height, fill=colour)
        picture.text(x + BANK_WIDTH / 2, ground - height - 7, passes, size=BANK_LETTERS)
    draw_words(picture, top + ABOVE_ROWS, row_height, content)


def draw_words(picture, top, row_height, content):
    """The words of shared memory that are used, a row of 32 banks each, with their lanes."""
    right = NAMES + counts.BANKS * BANK_WIDTH
    rows = content.rows
    bottom = top + row_height * len(rows)
    picture.box(NAMES, top, right - NAMES, bottom - top, fill=svg.FAINT)
    for word, who in content.words.items():
        row, bank = divmod(word, counts.BANKS)
        x = NAMES + bank * BANK_WIDTH
        y = top + rows.index(row) * row_height
        colour, ink = lane_colour(who[0])
        picture.box(x, y, BANK_WIDTH, row_height, fill=as_hex(colour))
        middle = x + BANK_WIDTH / 2, y + row_height / 2
        name = cell_text(who)
        size = BANK_LETTERS if len(name) < 3 else BANK_LETTERS - 2
        picture.text(*middle, name, size=size, colour=ink)
    draw_grid(picture, top, row_height, len(rows))
    for number, row in enumerate(rows):
        name = f"word {row * counts.BANKS}"
        y = top + (number + 0.5) * row_height
        picture.text(NAMES - 6, y, name, size=BANK_LETTERS, anchor="end")
    for bank in range(counts.BANKS):
        picture.text(NAMES + (bank + 0.5) * BANK_WIDTH, bottom + 10, bank, size=BANK_LETTERS)
    picture.text((NAMES + right) / 2, bottom + 27, "bank", size=BANK_LETTERS)


def draw_grid(picture, top, row_height, rows):
    """Thin lines of the page's own ground between rows and between banks."""
    right = NAMES + counts.BANKS * BANK_WIDTH
    for bank in range(1, counts.BANKS):
        x = NAMES + bank * BANK_WIDTH
        picture.line(x, top, x, top + rows * row_height, colour=svg.PAPER, thick=0.7)
    for row in range(1, rows):
        y = top + row * row_height
        picture.line(NAMES, y, right, y, colour=svg.PAPER, thick=0.7)
