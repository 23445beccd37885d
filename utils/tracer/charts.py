"""Charts of a trace beside the kernel's lines: divergence and barriers; the threads of a race."""

from collections import defaultdict
from itertools import chain

import numpy as np

from utils.plots import ACCENT, ALARM, INK, figure

from . import counts
from .pictures import ASKED, BLANK, GRID_LINE, WASTE, code_of, rgb, show_cells
from .record import LINE, TraceError


def listing(trace, rows, columns, alt, title, width):
    """A figure with the kernel's lines `rows`, (filename, line), at the left, axes for a chart."""
    texts = [
        f"{line:>4}  {text[:57] + '…' if len(text) > 58 else text}"
        for name, line, text in trace.source
        if (name, line) in rows
    ]
    fig = figure(9.4, 0.95 + 0.21 * len(texts), alt=alt)
    code, chart = fig.subplots(1, 2, width_ratios=(4.3, width))
    code.set(xlim=(0, 1), ylim=(len(texts) - 0.5, -0.5))
    code.set_axis_off()
    for row, text in enumerate(texts):
        code.text(0, row, text, fontsize=7.5, family="monospace", va="center", ha="left", color=INK)
    fig.suptitle(title, fontsize=9.5, x=0.01, ha="left", color=INK)
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
            picture[row, thread] = rgb("#EDEDED" if not count else ACCENT)
            if count:
                picture[row, thread] = 1 - (1 - np.array(rgb(ACCENT))) * (
                    0.35 + 0.65 * count / counted.max()
                )
    for row, where in enumerate(rows):
        if where not in active:
            picture[row] = 1.0
    show_cells(chart, picture, fine=threads <= 64)
    chart.hlines(np.arange(0.5, len(rows) - 1), -0.5, threads - 0.5, GRID_LINE, linewidth=1.5)
    for boundary in range(0, threads + 1, counts.WARP):
        chart.axvline(boundary - 0.5, color=INK, linewidth=1)
    chart.set_xticks(
        [0, *range(counts.WARP - 1, threads, counts.WARP)]
        if threads > 64
        else sorted({*range(0, threads, 8), threads - 1})
    )
    chart.tick_params(labelsize=7, length=2)
    chart.set_xlabel(
        "thread of the block (blue: runs the line); right: active lanes of a warp", fontsize=7.5
    )
    notes = [lanes_note(trace, active.get(where)) for where in rows]
    chart.yaxis.tick_right()
    chart.set_yticks(range(len(rows)), notes, fontsize=7)
    chart.tick_params(axis="y", length=0)
    return fig


def lanes_note(trace, row):
    """'16 of 32', and how often warps ran the line if that is not once each."""
    if row is None:
        return ""
    once = row.runs == trace.blocks * trace.events.warps_a_block
    return f"{row.active:.3g} of 32" + (
        "" if once else f", {row.runs:,} run{'s' * (row.runs != 1)}"
    )


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
        block = next(
            (row.skipped[0] // trace.threads_a_block for row in trace.barriers if row.skipped), 0
        )
    rows = [(row.filename, row.line) for row in trace.barriers]
    skipped = [int((row.reached[block] < row.reached[block].max()).sum()) for row in trace.barriers]
    where = f"block {trace.point(block, trace.grid)}"
    alt = f"How often each thread of {where} of {trace.name} reached each barrier. " + "; ".join(
        f"line {row.line}: {'all threads alike' if not n else f'{n} threads skip it'}"
        for row, n in zip(trace.barriers, skipped, strict=True)
    )
    threads = trace.threads_a_block
    lines = kernel_lines(trace, set(rows))
    fig, code, chart = listing(
        trace,
        set(lines),
        threads,
        alt,
        f"{trace.name}: barriers that the threads of {where} reach",
        5.1,
    )
    picture = np.ones((len(lines), threads, 3))
    notes = [""] * len(lines)
    for row in trace.barriers:
        at, reached = lines.index((row.filename, row.line)), row.reached[block]
        missing = reached < reached.max()
        picture[at] = rgb(ACCENT)
        picture[at, missing] = rgb("#D55E00")
        code.axhspan(at - 0.5, at + 0.5, color=WASTE if missing.any() else "#DCEAF3", zorder=0)
        notes[at] = f"{reached.max()}×" + (
            f"; {int(missing.sum())} skip it" if missing.any() else ", all"
        )
        if threads <= 40:
            for thread, count in enumerate(reached):
                chart.text(thread, at, count, ha="center", va="center", fontsize=6.5, color="white")
    show_cells(chart, picture, fine=threads <= 64)
    for boundary in range(0, threads + 1, counts.WARP):
        chart.axvline(boundary - 0.5, color="#BBBBBB", linewidth=0.8, zorder=0.5)
    chart.set_xticks(
        sorted({*range(0, threads, max(counts.WARP, threads // 8)), threads - 1})
        if threads > 40
        else range(0, threads, 4)
    )
    chart.tick_params(labelsize=7, length=2)
    chart.set_xlabel("thread of the block (blue: waits here; orange: never comes)", fontsize=7.5)
    chart.yaxis.tick_right()
    chart.set_yticks(range(len(lines)), notes, fontsize=7)
    chart.tick_params(axis="y", length=0)
    return fig


# ---- races


def races(trace, number=0):
    """The elements around one race: which threads touch them at its lines, where they collide."""
    if not trace.races:
        raise TraceError(f"no race was found in {trace.name}, so there is none to draw")
    race, events = trace.races[number], trace.events
    a, b = race.events
    same = events.memories[events.memory[a]]
    epochs = events.epoch if events.block[a] == events.block[b] else events.grid_epoch
    near = np.flatnonzero((events.root == events.root[a]) & (epochs == epochs[a]))
    near = near[np.isin(events.block[near], (events.block[a], events.block[b]))]
    lines, _ = events.line_of_site
    tracks = []
    for i, where, operation in ((a, race, race.operation), (b, race.other, race.other_operation)):
        own = near[
            (lines[events.site[near]] == lines[events.site[i]])
            & (events.kind[near] == events.kind[i])
        ]
        tracks.append((where, operation, own))
    if tracks[0][0].line == tracks[1][0].line and race.operation == race.other_operation:
        tracks = tracks[:1]
    size = int(events.size[a])
    middle = int(events.offset[a]) // size
    first = max(0, middle - 8)
    last = min(first + 16, int(np.prod(same.shape)))
    first = max(0, last - 16)
    alt = (
        f"Race on {race.element}: {trace.thread_name(race.threads[0])} ({race.operation}, line "
        f"{race.line}), "
        f"{trace.thread_name(race.threads[1])} ({race.other_operation}, line {race.other.line})."
    )
    fig = figure(8.6, 1.3 + 0.75 * len(tracks), alt=alt)
    axes = fig.add_subplot()
    users = [{} for _ in range(first, last)]
    for row, (_, _, own) in enumerate(tracks):
        for i in own.tolist():
            place = int(events.offset[i]) // size - first
            if 0 <= place < len(users):
                users[place].setdefault(row, []).append(i)
    from matplotlib.patches import Rectangle

    for place, tracked in enumerate(users):
        together = defaultdict(set)  # (block, barriers passed) -> its threads, which nothing orders
        for i in chain(*tracked.values()):
            together[int(events.block[i]), int(events.epoch[i])].add(int(events.thread[i]))
        collide = len({block for block, _ in together}) > 1 or any(
            len(ones) > 1 for ones in together.values()
        )
        for row in range(len(tracks)):
            threads = list(dict.fromkeys(int(events.thread[i]) for i in tracked.get(row, [])))
            colour = BLANK if not threads else "#F3C6AE" if collide else ASKED
            axes.add_patch(
                Rectangle(
                    (place - 0.46, row - 0.4),
                    0.92,
                    0.8,
                    facecolor=colour,
                    edgecolor=ALARM if collide and threads else "white",
                    linewidth=1.5,
                )
            )
            name = (
                ""
                if not threads
                else f"t{threads[0] % trace.threads_a_block}"
                + (f"\nb{threads[0] // trace.threads_a_block}" if race.between_blocks else "")
                + (f"\n+{len(threads) - 1}" if len(threads) > 1 else "")
            )
            axes.text(place, row, name, ha="center", va="center", fontsize=7, color=INK)
    axes.set(xlim=(-0.6, 15.6), ylim=(len(tracks) - 0.4, -0.6))
    axes.set_xticks(
        range(len(users)),
        [same.element((first + i) * size).removeprefix(same.name) for i in range(len(users))],
        fontsize=7,
        rotation=0 if len(same.shape) == 1 else 30,
    )
    axes.set_yticks(
        range(len(tracks)),
        [
            f"line {where.line}\n{operation}s"
            if operation != "atomic"
            else f"line {where.line}\natomic"
            for where, operation, _ in tracks
        ],
        fontsize=8,
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    title = "\n".join(
        dict.fromkeys(code_of(trace, where.filename, where.line) for where, *_ in tracks)
    )
    axes.set_title(title, fontsize=9, loc="left", family="monospace", color=INK)
    axes.set_xlabel(
        f"element of {race.array}; t: thread (b: block); red: several threads, in no order",
        fontsize=7.5,
    )
    return fig
