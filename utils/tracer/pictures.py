"""Pictures of a trace. Each names its source line and has a text alternative (`alt`)."""

import numpy as np

from utils.occupancy import ceil_div
from utils.plots import ACCENT, ALARM, IDLE, INK, figure, svg
from utils.plots.cells import draw_cells, draw_lines

from . import counts
from .record import WORDS, TraceError

WASTE = "#F6DDB8"
ASKED = "#BFD9EA"
BLANK = IDLE
GRID_LINE = "white"
MOST_ROWS = 33  # rows of memory in one picture
TITLE_WIDTH = 84  # characters


def lane_colour(lane):
    """The colour of a lane, and black or white for what is written on it."""
    from matplotlib import colormaps

    colour = colormaps["viridis"](lane / 31)
    return colour, "white" if lane < 17 else INK


def as_hex(colour):
    from matplotlib.colors import to_hex

    return to_hex(colour)


def rgb(colour):
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def code_of(trace, filename, line):
    """'line 12: out[i] = a[i]', cropped to what fits a title."""
    texts = {(name, number): text for name, number, text in trace.source}
    text = texts.get((filename, line), "").strip()
    if len(text) > TITLE_WIDTH:
        text = text[: TITLE_WIDTH - 1] + "…"
    return f"line {line}:  {text}"


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
        asked = [row for row in asked if (row.filename, row.line) == (one.filename, one.line)]
    else:
        asked = [row for row in asked if row.line == asked[0].line]
    drawn = []
    for row in asked:
        own = accesses_of(events, row, space)
        numbers, first = counts.requests(events, own)
        if warp is None:
            if space == "global":
                cost = counts.sectors(events, own, numbers)
            else:
                _, cost, _ = counts.passes(events, own, numbers)
            warp = int(events.warp[first[np.argmax(cost)]])
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


def is_wasteful(row, space):
    """Whether a row's accesses cost more than they must."""
    return row.efficiency < 99.5 if space == "global" else row.conflicts > 0


def accesses_of(events, row, space):
    """The accesses that a row of counts sums up: of one line, array and operation."""
    chosen = events.accesses(space)
    lines, places = events.line_of_site
    names, arrays = events.name_of_memory
    operations = np.array([WORDS[int(kind)] for kind in events.kind[chosen]])
    matching = lines[events.site[chosen]] == places.index((row.filename, row.line))
    matching &= names[events.memory[chosen]] == arrays.index(row.array)
    matching &= operations == row.operation
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
    heights = [max(len(rows), 2) for rows, *_ in sheets]
    texts = []
    row = drawn[0][0]
    for (row, chosen), _ in zip(drawn, sheets, strict=True):
        numbers = np.zeros(len(chosen), np.int64)
        touched = int(counts.sectors(trace.events, chosen, numbers)[0])
        asked = int(counts.unique_bytes(trace.events, chosen, numbers)[0])
        fewest = ceil_div(asked, counts.SECTOR)
        verb = {"read": "reads", "write": "writes", "atomic": "changes"}[row.operation]
        text = f"{verb} {row.array}: {touched} sector{'s' * (touched != 1)}, {fewest} would do"
        texts.append(f"{text} = {100 * fewest / touched:.3g} %")
    code = code_of(trace, row.filename, row.line)
    who = warp_name(trace, warp)
    title = f"{code}\n{who}"
    alt = f"Memory touched by {who} in {code} {'; '.join(texts)}."
    each = 0.23 if max(heights) <= 8 else 0.125
    fig = figure(8.6, 0.75 + sum(0.62 + each * height for height in heights), alt=alt)
    fig.suptitle(
        title,
        fontsize=9.5,
        x=0.01,
        ha="left",
        color=INK,
        family="monospace",
    )
    ratios = [0.62 / each + height for height in heights]
    panels = fig.subplots(len(drawn), 1, height_ratios=ratios, squeeze=False)[:, 0]
    for axes, content, text in zip(panels, sheets, texts, strict=True):
        draw_sheet(axes, content, text)
    return fig


def sheet(events, chosen):
    """(row numbers, element size, grid of lanes, labels, lanes sharing a cell) of a request."""
    size = int(min(events.size[chosen].min(), counts.SECTOR))
    size = max(size, 1)
    cells = counts.CACHE_LINE // size
    memory = events.memories[events.memory[chosen[0]]]
    start = int(events.address[chosen].min()) // counts.CACHE_LINE
    where = []
    for i in chosen.tolist():
        address = int(events.address[i])
        lane = int(events.lane[i])
        for piece in range(max(1, int(events.size[i]) // size)):
            where.append((address + piece * size, lane))
    rows = sorted({address // counts.CACHE_LINE for address, _ in where} | {start})
    hidden = max(0, len(rows) - MOST_ROWS)
    rows = rows[:MOST_ROWS]
    lanes = {}
    for address, lane in where:
        row, within = divmod(address, counts.CACHE_LINE)
        if row in rows:
            cell = rows.index(row), within // size
            lanes.setdefault(cell, []).append(lane)
    labels = [row_label(memory, row * counts.CACHE_LINE - memory.start) for row in rows]
    return rows, size, cells, lanes, labels, hidden


def row_label(memory, offset):
    """What a row of memory that begins at this byte of an array begins with."""
    if -counts.CACHE_LINE < offset < 0:
        return f"… {memory.element(0)}"  # the array begins somewhere in this row
    return memory.element(offset)


def draw_sheet(axes, content, text):
    rows, size, cells, lanes, labels, hidden = content
    per_sector = counts.SECTOR // size
    picture = np.empty((len(rows), cells, 3))
    picture[:] = rgb(BLANK)
    for row, cell in lanes:
        first = cell // per_sector * per_sector
        picture[row, first : first + per_sector] = rgb(WASTE)
    for (row, cell), who in lanes.items():
        picture[row, cell] = lane_colour(who[0])[0][:3]
    show_cells(axes, picture, fine=cells <= 64)
    for boundary in range(0, cells + 1, per_sector):
        width = 1.4 if boundary in (0, cells) else 0.9
        axes.axvline(boundary - 0.5, color=INK, linewidth=width)
    is_small = len(rows) < 9
    if cells <= 32:
        for (row, cell), who in lanes.items():
            axes.text(
                cell,
                row,
                cell_text(who),
                ha="center",
                va="center",
                fontsize=6.5 if is_small else 5.5,
                color=lane_colour(who[0])[1],
            )
    axes.set_yticks(range(len(rows)), labels, fontsize=7 if is_small else 5.5, family="monospace")
    middles = [(i + 0.5) * per_sector - 0.5 for i in range(4)]
    axes.set_xticks(middles, [f"sector {i}" for i in range(4)], fontsize=7)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    more = f"  (and {hidden} more rows)" if hidden else ""
    axes.set_title(text + more, fontsize=9, loc="left", color=INK)
    sectors = {(row, cell // per_sector) for row, cell in lanes}
    if len(lanes) < len(sectors) * per_sector:
        axes.set_title("orange: moved, not asked for", fontsize=7.5, loc="right", color="#8A5A00")


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
    row = drawn[0][0]
    texts = []
    for (row, _), (_, _, load, part, _) in zip(drawn, sheets, strict=True):
        verb = {"read": "reads", "write": "writes", "atomic": "changes"}[row.operation]
        worst = int(load.max())
        conflict = f"{worst}-way bank conflict: {worst} passes"
        if worst == 1:
            conflict = "no bank conflict: 1 pass"
        texts.append(f"{verb} {row.array}{part}: {conflict}")
    code = code_of(trace, row.filename, row.line)
    who = warp_name(trace, warp)
    alt = f"Banks used by {who} in {code} {'; '.join(texts)}."
    tall = max(len(rows) for rows, *_ in sheets) > FEW_ROWS
    row_height = THIN_ROW if tall else THICK_ROW
    heights = [ABOVE_ROWS + row_height * len(rows) + BELOW_ROWS for rows, *_ in sheets]
    picture = svg.Drawing(BANKS_WIDTH, TITLE_HEIGHT + sum(heights), alt=alt)
    for line, words in enumerate((code, who)):
        picture.text(4, 12 + 18 * line, words, size=13, anchor="start", font_family="monospace")
    top = TITLE_HEIGHT
    for content, words, height in zip(sheets, texts, heights, strict=True):
        draw_banks(picture, top, row_height, content, words)
        top += height
    return picture


#: Pixels of the banks' picture: its width, the column of names, a row of many and of few
BANKS_WIDTH = 826
NAMES = 76
THIN_ROW, THICK_ROW = 13, 22
FEW_ROWS = 8
#: Pixels of the title, of the bars of passes, of all above the rows, and of what stands below
TITLE_HEIGHT = 44
BAR_HEIGHT = 44
ABOVE_ROWS = BAR_HEIGHT + 30
BELOW_ROWS = 38
BANK_WIDTH = (BANKS_WIDTH - NAMES - 4) / counts.BANKS


def bank_sheet(events, chosen):
    """(rows of 128 bytes, lanes of each word, each bank's passes, part of the warp, rows left)."""
    size = int(events.size[chosen].max())
    lanes_a_phase = counts.WARP if size <= 4 else max(1, counts.WARP * 4 // size)
    best = None
    for phase in range(counts.WARP // lanes_a_phase):
        own = [i for i in chosen.tolist() if events.lane[i] // lanes_a_phase == phase]
        words = {}
        for i in own:
            first, count = counts.extents(events, i, counts.BANK_BYTES)
            for word in range(int(first), int(first + count)):
                words.setdefault(word, []).append(int(events.lane[i]))
        atomic = bool(own) and WORDS[int(events.kind[own[0]])] == "atomic"
        load = np.zeros(counts.BANKS, int)
        for word, who in words.items():
            load[word % counts.BANKS] += len(who) if atomic else 1
        if best is None or load.max() > best[1].max():
            best = words, load, phase
    words, load, phase = best
    rows = sorted({word // counts.BANKS for word in words})
    part = ""
    if lanes_a_phase < counts.WARP:
        lane = phase * lanes_a_phase
        part = f" (lanes {lane}–{lane + lanes_a_phase - 1})"
    shown = rows[:MOST_ROWS]
    kept = {word: who for word, who in words.items() if word // counts.BANKS in shown}
    return shown, kept, load, part, len(rows) - len(shown)


def draw_banks(picture, top, row_height, content, words):
    """One request: above, how many passes each bank takes; below, the words that are asked for."""
    rows, used, load, _, hidden = content
    worst = int(load.max())
    more = f"  (and {hidden} more rows)" if hidden else ""
    colour = svg.strong(ALARM) if worst > 1 else svg.INK
    picture.text(NAMES, top + 8, words + more, size=12, anchor="start", colour=colour)
    ground = top + 22 + BAR_HEIGHT
    picture.line(NAMES, ground, BANKS_WIDTH - 4, ground)
    picture.text(NAMES - 6, ground - BAR_HEIGHT / 2, "passes", size=10, anchor="end")
    for bank, passes in enumerate(load.tolist()):
        if passes == 0:
            continue
        height = passes / max(worst, 2) * (BAR_HEIGHT - 12)
        x = NAMES + bank * BANK_WIDTH
        colour = ALARM if passes == worst > 1 else ACCENT
        picture.box(x + 2, ground - height, BANK_WIDTH - 4, height, fill=colour)
        picture.text(x + BANK_WIDTH / 2, ground - height - 6, passes, size=10)
    draw_words(picture, top + ABOVE_ROWS, row_height, rows, used)


def draw_words(picture, top, row_height, rows, used):
    """The words of shared memory that are used, a row of 32 banks each, with their lanes."""
    size = 10 if row_height == THIN_ROW else 11
    right = NAMES + counts.BANKS * BANK_WIDTH
    bottom = top + row_height * len(rows)
    picture.box(NAMES, top, right - NAMES, bottom - top, fill=svg.FAINT)
    for word, who in used.items():
        row, bank = divmod(word, counts.BANKS)
        x = NAMES + bank * BANK_WIDTH
        y = top + rows.index(row) * row_height
        colour, ink = lane_colour(who[0])
        picture.box(x, y, BANK_WIDTH, row_height, fill=as_hex(colour))
        middle = x + BANK_WIDTH / 2, y + row_height / 2
        picture.text(*middle, cell_text(who), size=size, colour=ink)
    draw_grid(picture, top, row_height, len(rows))
    for number, row in enumerate(rows):
        name = f"word {row * counts.BANKS}"
        y = top + (number + 0.5) * row_height
        picture.text(NAMES - 6, y, name, size=size, anchor="end")
    for bank in range(counts.BANKS):
        picture.text(NAMES + (bank + 0.5) * BANK_WIDTH, bottom + 10, bank, size=10)
    picture.text((NAMES + right) / 2, bottom + 26, "bank", size=11)


def draw_grid(picture, top, row_height, rows):
    """Thin lines of the page's own ground between rows and between banks."""
    right = NAMES + counts.BANKS * BANK_WIDTH
    for bank in range(1, counts.BANKS):
        x = NAMES + bank * BANK_WIDTH
        picture.line(x, top, x, top + rows * row_height, colour=svg.PAPER, thick=0.7)
    for row in range(1, rows):
        y = top + row * row_height
        picture.line(NAMES, y, right, y, colour=svg.PAPER, thick=0.7)
