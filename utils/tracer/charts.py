"""Charts of a trace beside the kernel's lines: divergence and barriers; the threads of a race."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain

import numpy as np

from utils.plots import ACCENT, ALARM, INK, figure

from . import counts
from .pictures import ASKED, BLANK, GRID_LINE, LETTERS, WASTE, WIDTH, code_of, rgb, show_cells
from .record import LINE, TraceError

#: Characters of a source line, at most, beside a chart
CODE_WIDTH = 44
NO_BREAK_SPACE = "\u00a0"  # common ones SVG takes together: no indent would be left


def listing(trace, rows, columns, alt, title, width):
    """A figure with the kernel's lines `rows`, (filename, line), at the left, axes for a chart."""
    texts = []
    for name, line, text in trace.source:
        if (name, line) in rows:
            code_text = text if len(text) <= CODE_WIDTH else text[: CODE_WIDTH - 1] + "…"
            texts.append(f"{line:>4}  {code_text}".replace(" ", NO_BREAK_SPACE))
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
    return [
        (name, line)
        for name, line, text in trace.source
        if (name, line) in used or text.strip() and not text.strip().startswith(("#", '"""'))
    ]


def divergence(trace, block=0):
    """Lanes across, source lines down: how often each lane of the first warps ran each line.

    block: its number through the grid. At most four warps are shown.
    """
    events = trace.events
    if not 0 <= block < trace.blocks:
        raise TraceError(f"there are {trace.blocks} blocks, from 0; not {block}")
    threads = min(trace.threads_a_block, 4 * counts.WARP)
    rank = events.thread - block * trace.threads_a_block
    chosen = np.flatnonzero((events.kind == LINE) & (rank >= 0) & (rank < threads))
    lines, places = events.line_of_site
    if not len(chosen):
        raise TraceError(
            "no line was recorded: the kernel's source cannot be found, or the block never ran"
        )
    used = {places[number] for number in np.unique(lines[events.site[chosen]])}
    rows = kernel_lines(trace, used)
    table = np.zeros((len(rows), threads), int)
    for row, where in enumerate(rows):
        if where in used:
            events_of_line = chosen[lines[events.site[chosen]] == places.index(where)]
            table[row] = np.bincount(rank[events_of_line], minlength=threads)
    active = {(row.filename, row.line): row for row in trace.activity}
    low = min((row.active for row in trace.activity), default=32)
    alt = (
        f"Which of {threads} threads of block {block} of {trace.name} run which line, for "
        f"{len(rows)} lines. The line with the fewest active lanes has {low:.3g} of 32 on average."
    )
    title = f"{trace.name}: which lanes run which line (block {trace.point(block, trace.grid)})"
    fig, _, chart = listing(trace, set(rows), threads, alt, title, 5.1)
    picture = np.empty((len(rows), threads, 3))
    for row, counted in enumerate(table):
        for thread, count in enumerate(counted):
            picture[row, thread] = shade(count, counted.max())
    for row, where in enumerate(rows):
        if where not in active:
            picture[row] = 1.0
    show_cells(chart, picture, fine=threads <= 64)
    chart.hlines(np.arange(0.5, len(rows) - 1), -0.5, threads - 0.5, GRID_LINE, linewidth=1.5)
    for boundary in range(0, threads + 1, counts.WARP):
        chart.axvline(boundary - 0.5, color=INK, linewidth=1)
    ticks = sorted({*range(0, threads, 8), threads - 1})
    if threads > 64:
        ticks = [0, *range(counts.WARP - 1, threads, counts.WARP)]
    chart.set_xticks(ticks)
    chart.tick_params(labelsize=LETTERS, length=2)
    chart.set_xlabel(
        "thread of the block (blue: runs the line); right: active lanes of a warp", fontsize=LETTERS
    )
    notes = [lanes_note(trace, active.get(where)) for where in rows]
    chart.yaxis.tick_right()
    chart.set_yticks(range(len(rows)), notes, fontsize=LETTERS)
    chart.tick_params(axis="y", length=0)
    return fig


def shade(count, most):
    """The colour of a lane that ran a line `count` times, when the busiest ran it `most` times."""
    if not count:
        return rgb(BLANK)
    strength = 0.35 + 0.65 * count / most
    return 1 - (1 - np.array(rgb(ACCENT))) * strength


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
    in_words = []
    for row in trace.barriers:
        skipped = int((row.reached[block] < row.reached[block].max()).sum())
        how = f"{skipped} threads skip it" if skipped else "all threads alike"
        in_words.append(f"line {row.line}: {how}")
    alt = f"How often each thread of {where} of {trace.name} reached each barrier. "
    alt += "; ".join(in_words)
    threads = trace.threads_a_block
    lines = kernel_lines(trace, {(row.filename, row.line) for row in trace.barriers})
    title = f"{trace.name}: barriers that the threads of {where} reach"
    fig, code, chart = listing(trace, set(lines), threads, alt, title, 5.1)
    picture = np.ones((len(lines), threads, 3))
    notes = [""] * len(lines)
    for row in trace.barriers:
        at = lines.index((row.filename, row.line))
        reached = row.reached[block]
        missing = reached < reached.max()
        picture[at] = rgb(ACCENT)
        picture[at, missing] = rgb("#D55E00")
        code.axhspan(at - 0.5, at + 0.5, color=WASTE if missing.any() else "#DCEAF3", zorder=0)
        who = f"; {int(missing.sum())} skip it" if missing.any() else ", all"
        notes[at] = f"{reached.max()}×{who}"
        if threads <= 40 and reached.max() < 10:  # one digit has room
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
    show_cells(chart, picture, fine=threads <= 64)
    for boundary in range(0, threads + 1, counts.WARP):
        chart.axvline(boundary - 0.5, color="#BBBBBB", linewidth=0.8, zorder=0.5)
    ticks = range(0, threads, 4)
    if threads > 40:
        ticks = sorted({*range(0, threads, max(counts.WARP, threads // 8)), threads - 1})
    chart.set_xticks(ticks)
    chart.tick_params(labelsize=LETTERS, length=2)
    chart.set_xlabel(
        "thread of the block (blue: waits here; orange: never comes)", fontsize=LETTERS
    )
    chart.yaxis.tick_right()
    chart.set_yticks(range(len(lines)), notes, fontsize=LETTERS)
    chart.tick_params(axis="y", length=0)
    return fig


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
    last = min(max(0, middle - BEFORE) + ELEMENTS, int(np.prod(memory.shape)))
    first = max(0, last - ELEMENTS)
    one, other = map(trace.thread_name, race.threads)
    alt = (
        f"Race on {race.element}: {one} ({race.operation}, line {race.line}), "
        f"{other} ({race.other_operation}, line {race.other.line})."
    )
    fig = figure(WIDTH, 1.3 + 0.75 * len(tracks), alt=alt)
    axes = fig.add_subplot()
    users = users_of(tracks, events, first, last, size)
    for place, tracked in enumerate(users):
        draw_users(axes, trace, race, place, [tracked.get(row, []) for row in range(len(tracks))])
    axes.set(xlim=(-0.6, 15.6), ylim=(len(tracks) - 0.4, -0.6))
    names = [
        memory.element((first + i) * size).removeprefix(memory.name) for i in range(len(users))
    ]
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
    axes.set_xlabel(what, fontsize=LETTERS)
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
        same_line = lines[events.site[near]] == lines[events.site[event]]
        same_kind = events.kind[near] == events.kind[event]
        track = Track(where.line, where.filename, operation, near[same_line & same_kind])
        tracks.append(track)
    if race.line == race.other.line and race.operation == race.other_operation:
        return tracks[:1]
    return tracks


def users_of(tracks, events, first, last, size):
    """For each element from first to last: {track's number: its accesses to the element}."""
    users = [{} for _ in range(first, last)]
    for row, track in enumerate(tracks):
        for event in track.accesses.tolist():
            place = int(events.offset[event]) // size - first
            if 0 <= place < len(users):
                users[place].setdefault(row, []).append(event)
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
        threads = list(dict.fromkeys(int(events.thread[event]) for event in own))
        style = {"facecolor": BLANK, "edgecolor": "white"}
        if threads:
            style = {"facecolor": ASKED, "edgecolor": "white"}
        if threads and collide:
            style = {"facecolor": RACED, "edgecolor": ALARM}
        corner = place - 0.46, row - 0.4
        axes.add_patch(Rectangle(corner, 0.92, 0.8, linewidth=1.5, **style))
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
