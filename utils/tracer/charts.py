"""Charts of a trace beside the kernel's lines: divergence and barriers; the threads of a race."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..plots import ACCENT, ALARM, INK, figure
from . import counts
from .pictures import ASKED, BLANK, GRID_LINE, LETTERS, WASTE, WIDTH, code_of, rgb, show_cells
from .record import LINE, TraceError, cropped

#: Characters of a source line, at most, beside a chart
CODE_WIDTH = 44
NO_BREAK_SPACE = "\u00a0"  # common ones SVG takes together: no indent would be left


def listing(trace, rows, columns, alt, title, width):
    """A figure with the kernel's lines `rows`, (filename, line), at the left, axes for a chart."""
    texts = []
    for name, line, text in trace.source:
        if (name, line) in rows:
            listed = f"{line:>4}  {cropped(text, CODE_WIDTH)}"
            texts.append(listed.replace(" ", NO_BREAK_SPACE))
    fig = figure(WIDTH, 0.95 + 0.21 * len(texts), alt=alt)
    code, chart = fig.subplots(1, 2, width_ratios=(4.3, width))
    code.set(xlim=(0, 1), ylim=(len(texts) - 0.5, -0.5))
    code.set_axis_off()
    for row, text in enumerate(texts):
        code.text(
            0,
            row,
            text,
            fontsize=LETTERS,
            family="monospace",
            va="center",
            ha="left",
            color=INK,
        )
    fig.suptitle(
        title,
        fontsize=9.5,
        x=0.01,
        ha="left",
        color=INK,
    )
    chart.set(xlim=(-0.5, columns - 0.5), ylim=(len(texts) - 0.5, -0.5), yticks=[])
    return fig, code, chart


def kernel_lines(trace, used):
    """(filename, line) of all lines to list: the kernel's own, and others with events."""
    lines = []
    for name, line, text in trace.source:
        text = text.strip()
        is_code = text and not text.startswith(("#", '"""'))
        if is_code or (name, line) in used:
            lines.append((name, line))
    return lines


def name_axes(chart, ticks, label, notes):
    """Name the threads below a chart, and note what there is to say right of each line."""
    chart.set_xticks(ticks)
    chart.tick_params(labelsize=LETTERS, length=2)
    chart.set_xlabel(f"thread of the block {label}", fontsize=LETTERS)
    chart.yaxis.tick_right()
    chart.set_yticks(range(len(notes)), notes, fontsize=LETTERS)
    chart.tick_params(axis="y", length=0)


def divergence(trace, block=0):
    """Lanes across, source lines down: how often each lane of the first warps ran each line.

    block: its number through the grid. At most four warps are shown.
    """
    if not 0 <= block < trace.blocks:
        raise TraceError(f"there are {trace.blocks} blocks, from 0; not {block}")
    threads = min(trace.threads_a_block, 4 * counts.WARP)
    counted = runs_of_lines(trace, block, threads)
    rows = kernel_lines(trace, counted)
    active = {(row.filename, row.line): row for row in trace.activity}
    low = min((row.active for row in trace.activity), default=32)
    alt = (
        f"Which of {threads} threads of block {block} of {trace.name} run which line, for "
        f"{len(rows)} lines. The line with the fewest active lanes has {low:.3g} of 32 on average."
    )
    title = f"{trace.name}: which lanes run which line (block {trace.point(block, trace.grid)})"
    fig, _, chart = listing(trace, set(rows), threads, alt, title, 5.1)
    picture = np.ones((len(rows), threads, 3))
    nothing = np.zeros(threads, int)
    for row, where in enumerate(rows):
        if where in active:
            picture[row] = shades(counted.get(where, nothing))
    show_cells(chart, picture, fine=threads <= 64)
    between_lines = np.arange(0.5, len(rows) - 1)
    chart.hlines(between_lines, -0.5, threads - 0.5, GRID_LINE, linewidth=1.5)
    for boundary in range(0, threads + 1, counts.WARP):
        chart.axvline(boundary - 0.5, color=INK, linewidth=1)
    ticks = sorted({*range(0, threads, 8), threads - 1})
    if threads > 64:
        ticks = [0, *range(counts.WARP - 1, threads, counts.WARP)]
    notes = [lanes_note(trace, active.get(where)) for where in rows]
    name_axes(chart, ticks, "(blue: runs the line); right: active lanes of a warp", notes)
    return fig


def runs_of_lines(trace, block, threads):
    """(filename, line) -> how often each of the first threads of a block ran it."""
    events = trace.events
    rank = events.thread - block * trace.threads_a_block
    ran = (events.kind == LINE) & (rank >= 0) & (rank < threads)
    chosen = np.flatnonzero(ran)
    if not len(chosen):
        raise TraceError(
            "no line was recorded: the kernel's source cannot be found, or the block never ran"
        )
    lines, places = events.line_of_site
    line = lines[events.site[chosen]]
    counted = {}
    for number in np.unique(line):
        own = chosen[line == number]
        counted[places[number]] = np.bincount(rank[own], minlength=threads)
    return counted


def shades(counted):
    """The colours of lanes that ran a line so many times: the strongest for the busiest."""
    most = max(1, counted.max())
    strength = 0.35 + 0.65 * counted / most
    colours = 1 - (1 - np.array(rgb(ACCENT))) * strength[:, None]
    colours[counted == 0] = rgb(BLANK)
    return colours


def lanes_note(trace, row):
    """'16 of 32', and how often warps ran the line if that is not once each."""
    if row is None:
        return ""
    once = row.runs == trace.blocks * trace.events.warps_a_block
    runs = "" if once else f", {row.runs:,} run{'s' * (row.runs != 1)}"
    return f"{row.active:.3g} of 32{runs}"


def barriers(trace, block=None):
    """Threads across, barriers down: how often each thread of a block reached each one.

    block: its number through the grid (None: the first in which some thread skips one, else the
        first).
    """
    if not trace.barriers:
        raise TraceError(
            f"no thread of {trace.name} came to a barrier (syncthreads() or grid.sync())"
        )
    if block is None:
        skipping = [row.skipped[0] for row in trace.barriers if row.skipped]
        block = skipping[0] // trace.threads_a_block if skipping else 0
    where = f"block {trace.point(block, trace.grid)}"
    alt = f"How often each thread of {where} of {trace.name} reached each barrier. "
    alt += "; ".join(said_of_barrier(row, block) for row in trace.barriers)
    threads = trace.threads_a_block
    lines = kernel_lines(trace, {(row.filename, row.line) for row in trace.barriers})
    title = f"{trace.name}: barriers that the threads of {where} reach"
    fig, code, chart = listing(trace, set(lines), threads, alt, title, 5.1)
    picture = np.ones((len(lines), threads, 3))
    notes = [""] * len(lines)
    for row in trace.barriers:
        at = lines.index((row.filename, row.line))
        reached = row.reached[block]
        missing = missing_at(row, block)
        skipped = int(missing.sum())
        picture[at] = rgb(ACCENT)
        picture[at, missing] = rgb("#D55E00")
        ground = WASTE if skipped else "#DCEAF3"
        code.axhspan(at - 0.5, at + 0.5, color=ground, zorder=0)
        who = f"; {skipped} skip it" if skipped else ", all"
        notes[at] = f"{reached.max()}×{who}"
        if threads <= 40 and reached.max() < 10:  # one digit has room
            write_counts(chart, at, reached)
    show_cells(chart, picture, fine=threads <= 64)
    for boundary in range(0, threads + 1, counts.WARP):
        chart.axvline(boundary - 0.5, color="#BBBBBB", linewidth=0.8, zorder=0.5)
    ticks = range(0, threads, 4)
    if threads > 40:
        step = max(counts.WARP, threads // 8)
        ticks = sorted({*range(0, threads, step), threads - 1})
    name_axes(chart, ticks, "(blue: waits here; orange: never comes)", notes)
    return fig


def missing_at(row, block):
    """Of each thread of a block, whether it came to a barrier less often than others."""
    reached = row.reached[block]
    return reached < reached.max()


def said_of_barrier(row, block):
    """'line 7: 3 threads skip it', of one block."""
    skipped = int(missing_at(row, block).sum())
    if skipped:
        return f"line {row.line}: {skipped} threads skip it"
    return f"line {row.line}: all threads alike"


def write_counts(chart, at, reached):
    """Into each cell of a line how often its thread came."""
    for thread, count in enumerate(reached):
        chart.text(
            thread,
            at,
            count,
            ha="center",
            va="center",
            fontsize=LETTERS,
            color="white",
        )


# ---- races


@dataclass(frozen=True)
class Track:
    """What one of a race's two lines does to the elements near it."""

    line: int
    filename: str
    operation: str
    accesses: np.ndarray  # numbers of events


#: Elements drawn, so many before the one that is raced for
ELEMENTS, BEFORE = 16, 8
RACED = "#F3C6AE"


def races(trace, number=0):
    """The elements around one race: which threads touch them at its lines, where they collide."""
    if not trace.races:
        raise TraceError(f"no race was found in {trace.name}, so there is none to draw")
    race = trace.races[number]
    events = trace.events
    tracks = tracks_of(race, events)
    event = race.events[0]
    memory = events.memories[events.memory[event]]
    size = int(events.size[event])
    middle = int(events.offset[event]) // size
    start = max(0, middle - BEFORE)
    last = min(start + ELEMENTS, int(np.prod(memory.shape)))
    first = max(0, last - ELEMENTS)
    one, other = map(trace.thread_name, race.threads)
    alt = (
        f"Race on {race.element}: {one} ({race.operation}, line {race.line}), "
        f"{other} ({race.other_operation}, line {race.other.line})."
    )
    fig = figure(WIDTH, 1.3 + 0.75 * len(tracks), alt=alt)
    axes = fig.add_subplot()
    users = users_of(tracks, events, first, last, size)
    for place, accesses in enumerate(users):
        draw_users(axes, trace, race, place, accesses)
    axes.set(xlim=(-0.6, 15.6), ylim=(len(tracks) - 0.4, -0.6))
    names = []
    for number in range(first, last):
        element = memory.element(number * size)
        names.append(element.removeprefix(memory.name))
    tilt = 0 if len(memory.shape) == 1 else 30
    axes.set_xticks(range(len(users)), names, fontsize=LETTERS, rotation=tilt)
    verbs = {"atomic": "atomic", "read": "reads", "write": "writes"}
    labels = [f"line {track.line}\n{verbs[track.operation]}" for track in tracks]
    axes.set_yticks(range(len(tracks)), labels, fontsize=LETTERS)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    codes = dict.fromkeys(code_of(trace, track.filename, track.line) for track in tracks)
    axes.set_title(
        "\n".join(codes),
        fontsize=LETTERS,
        loc="left",
        family="monospace",
        color=INK,
    )
    what = f"element of {race.array}; t: thread (b: block); red: several threads, in no order"
    axes.set_xlabel(what, fontsize=LETTERS, loc="left")
    return fig


def tracks_of(race, events):
    """A Track for each of a race's two lines; one if both threads do the same at the same line."""
    a, b = race.events
    epochs = events.epoch if events.block[a] == events.block[b] else events.grid_epoch
    near = np.flatnonzero((events.root == events.root[a]) & (epochs == epochs[a]))
    near = near[np.isin(events.block[near], (events.block[a], events.block[b]))]
    lines, _ = events.line_of_site
    tracks = []
    for event, where, operation in (
        (a, race, race.operation),
        (b, race.other, race.other_operation),
    ):
        line = lines[events.site[event]]
        same_line = lines[events.site[near]] == line
        same_kind = events.kind[near] == events.kind[event]
        accesses = near[same_line & same_kind]
        tracks.append(Track(where.line, where.filename, operation, accesses))
    if race.line == race.other.line and race.operation == race.other_operation:
        return tracks[:1]
    return tracks


def users_of(tracks, events, first, last, size):
    """For each element from first to last: of each track the accesses to the element."""
    users = [[] for _ in range(first, last)]
    for track in tracks:
        element = events.offset[track.accesses] // size
        for number, accesses in enumerate(users, start=first):
            accesses.append(track.accesses[element == number].tolist())
    return users


def draw_users(axes, trace, race, place, accesses):
    """One element: a cell for each track, with the threads that access it there."""
    from matplotlib.patches import Rectangle

    events = trace.events
    together = defaultdict(set)  # (block, barriers passed) -> its threads, which nothing orders
    for event in chain(*accesses):
        moment = int(events.block[event]), int(events.epoch[event])
        together[moment].add(int(events.thread[event]))
    several_blocks = len({block for block, _ in together}) > 1
    collide = several_blocks or any(len(threads) > 1 for threads in together.values())
    for row, own in enumerate(accesses):
        threads = list(dict.fromkeys(events.thread[own].tolist()))
        colour = ASKED if threads else BLANK
        edge = "white"
        if threads and collide:
            colour = RACED
            edge = ALARM
        corner = place - 0.46, row - 0.4
        cell = Rectangle(corner, 0.92, 0.8, linewidth=1.5, facecolor=colour, edgecolor=edge)
        axes.add_patch(cell)
        name = thread_names(trace, race, threads)
        axes.text(
            place,
            row,
            name,
            ha="center",
            va="center",
            fontsize=LETTERS,
            color=INK,
        )


def thread_names(trace, race, threads):
    """The first thread, its block where blocks race, and how many more there are."""
    if not threads:
        return ""
    block, rank = divmod(threads[0], trace.threads_a_block)
    lines = [f"t{rank}"]
    if race.between_blocks:
        lines.append(f"b{block}")
    if len(threads) > 1:
        lines.append(f"+{len(threads) - 1}")
    return "\n".join(lines)
