"""The pictures of Meet the GPU: generations of GPUs, silicon to scale, who issues when, which
lanes work.

The numbers come from assets/data/gpu_generations.json, where each one names its source; the others
from what a simulation or the learner's own kernel did.
"""

import inspect
import linecache
import textwrap
from collections import Counter

import numpy as np

from course.pictures.shapes import box, numbered, plain, titled, word
from utils.hardware import generations
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, chart, figure
from utils.plots.cells import draw_cells
from utils.plots.svg import PAPER, Drawing

WARP = 32
GAP = 0.8  # lanes' widths between two warps
# What a warp does in a cycle: its turn has not come, it waits for memory, it issues
READY, WAITING, ISSUING = range(3)
GREEN = "#2E7D4F"
SIMULATED = (1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64)  # warps, in Little's chart


def walkers_chart(walkers, longer):
    """Steps a second against the number of walkers, relative to one walker alone.

    longer: for each number of walkers, how many times longer they all take than one.
    """
    alt = (
        "Steps a second against the number of walkers: it rises almost in proportion at first, "
        "then levels off"
    )
    fig, axes = chart(6.5, 3.0, alt=alt)
    gains = np.asarray(walkers) / longer
    axes.plot(walkers, gains, "o-", color=ACCENT, label="measured on this CPU")
    axes.plot(walkers, walkers, "--", color=INK, label="in proportion")
    axes.set(xscale="log", xlabel="walkers (loads under way)")
    axes.set(yscale="log", ylabel="steps a second")
    axes.set_xticks(walkers, walkers)
    axes.set_yticks(walkers, [f"{n} ×" for n in walkers])
    axes.legend(frameon=False, fontsize=9)
    return fig


def little_chart(programs, busy, alone):
    """Share of busy cycles against warps: Little's law as lines, a simulation as dots.

    programs: words as the simulation reads them. busy(program, warps): the simulated share.
    alone(program): the counted share of a single warp.
    """
    alt = (
        "Share of busy cycles against warps for three programs: the simulation lies on Little's "
        "law, a straight line up to 100 %; with more work a wait, fewer warps do"
    )
    fig, axes = chart(7.5, 3.1, alt=alt)
    warps = np.arange(SIMULATED[-1] + 1)
    for program, colour in zip(programs, (ACCENT, ALARM, GREEN), strict=True):
        dots = [busy(program, count) for count in SIMULATED]
        axes.plot(SIMULATED, dots, "o", color=colour, label=f"{program}, simulated")
        axes.plot(
            warps,
            np.minimum(1, warps * alone(program)),
            color=colour,
            linewidth=1,
        )
    axes.set(xlabel="warps of this scheduler")
    axes.set(ylabel="share of cycles with an issue", ylim=(0, 1.05))
    axes.legend(frameon=False, fontsize=9)
    return fig


def history(columns: dict):
    """The table over the years on a logarithmic scale: a panel for each of columns, name -> title,
    unit.
    """
    gpus = generations()["gpus"]
    fig = figure(
        9.2, 3.6, alt="; ".join(_span(gpus, column, title) for column, title in columns.items())
    )
    for index, (column, title) in enumerate(columns.items()):
        axes = fig.add_subplot(1, len(columns), index + 1)
        for kind, colour, marker in (("data center", ACCENT, "o"), ("gaming", ALARM, "s")):
            rows = [g for g in gpus if g["kind"] == kind and g[column] is not None]
            axes.scatter(
                [g["year"] for g in rows],
                [g[column] for g in rows],
                color=colour,
                marker=marker,
                s=28,
                label=kind,
            )
        known = [g for g in gpus if g[column] is not None and g["kind"] == "data center"]
        for g in (known[0], known[-1]):
            where = (g["year"], g[column])
            axes.annotate(
                g["gpu"], where, fontsize=8, color=INK, xytext=(6, -3), textcoords="offset points"
            )
        axes.set_yscale("log")
        titled(axes, title)
        axes.set_xlim(2005.5, 2030.5)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8)
        axes.grid(True, axis="y", color=IDLE)
        plain(axes)
    axes.legend(fontsize=8, loc="lower right", frameon=False)
    return fig


def _span(gpus, column, title):
    rows = [g for g in gpus if g[column] is not None]
    first, last = (f"{row[column]:g} ({row['gpu']}, {row['year']})" for row in (rows[0], rows[-1]))
    return f"{title}: from {first} to {last}"


def silicon():
    """What a CPU and a GPU of one year spend on storage near their cores, as areas to scale."""
    chips = generations()["chips"]
    biggest = max(sum(c["storage_kb"].values()) for c in chips) ** 0.5
    alt = ". ".join(
        f"{c['chip']}: {c['cores']} {'cores' if c['kind'] == 'CPU' else 'SMs'}, "
        f"{c['threads']:,} threads at once, "
        + ", ".join(f"{level} {kb / 1024:.0f} MB" for level, kb in c["storage_kb"].items())
        for c in chips
    )
    fig = figure(9.2, 3.5, alt=alt)
    for index, chip in enumerate(chips):
        axes = fig.add_subplot(1, 2, index + 1)
        side = sum(chip["storage_kb"].values()) ** 0.5
        top = 0.0
        for level, (name, kb) in enumerate(chip["storage_kb"].items()):
            height = kb / side
            box(axes, 0, top, side, height, BLOCK_COLOURS[level], "white", 1)
            inside = height > biggest / 18
            x, anchor = (side / 2, "center") if inside else (side + biggest / 50, "left")
            words = f"{name}: {kb / 1024:.0f} MB"
            word(axes, x, top + height / 2, words, ha=anchor, fontsize=9)
            top += height
        unit = "cores" if chip["kind"] == "CPU" else "SMs"
        threads = f"{chip['cores']} {unit}, {chip['threads']:,} threads at once"
        title = f"{chip['chip']} ({chip['kind']})\n{threads}"
        titled(axes, title, 10)
        axes.set(
            xlim=(0, biggest * 1.35),
            ylim=(biggest * 1.02, 0),
            aspect="equal",
            anchor="NW",
        )
        axes.set_axis_off()
    return fig


def ridge_chart(years, fp32, tensor):
    """FLOPs for each byte that memory delivers, by year. fp32, tensor: FLOP/byte, nan where
    unknown.
    """
    top = np.array(tensor)[~np.isnan(tensor)]
    alt = (
        "FLOPs a byte that data center GPUs ask for, by year. "
        f"Fp32 units: {fp32[0]:.1f} in {years[0]}, later up to {max(fp32):.0f}. "
        f"Tensor cores: between {top.min():.0f} and {top.max():.0f}"
    )
    fig, axes = chart(7.5, 3.0, alt=alt)
    axes.plot(years, fp32, "o", color=ACCENT, label="fp32 units")
    axes.plot(years, tensor, "s", color=ALARM, label="tensor cores, 16 bit")
    axes.axhline(1 / 12, color=INK, linewidth=1)
    axes.text(2007, 1 / 10, "adding two vectors: 1 FLOP for 12 bytes", fontsize=9)
    axes.set(
        yscale="log",
        ylabel="FLOPs a byte",
        xlim=(2005.5, 2026),
        xticks=range(2006, 2027, 4),
    )
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return fig


def speedup_chart(amdahl, gustafson, shares, at: int | None = None):
    """What two laws say for 1 to 4,096 processors. amdahl, gustafson: functions of (share,
    processors).

    shares: up to three parallel shares, 0 to 1. at: a number of processors to mark, and to write
        out.
    """
    n = np.geomspace(1, 4096, 100)
    alt = (
        "Speed-up against processors: by Amdahl it levels off at 1 / (1 - p); "
        "by Gustafson it rises in proportion to the processors"
    )
    fig, axes = chart(7.5, 3.1, alt=alt)
    for p, colour in zip(shares, (ACCENT, ALARM, GREEN), strict=False):
        axes.plot(
            n,
            amdahl(p, n),
            color=colour,
            label=f"Amdahl, p = {p:.0%}",
        )
        axes.plot(
            n, gustafson(p, n), "--", color=colour, linewidth=1, label=f"Gustafson, p = {p:.0%}"
        )
        if at:
            faster, more = amdahl(p, at), gustafson(p, at)
            axes.plot([at, at], [faster, more], "o", color=colour)
            title = f"{at} processors: {faster:,.1f} times faster, or {more:,.1f} times the work"
            titled(axes, title)
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(0.9, 6000),
        xlabel="processors",
    )
    axes.set_ylabel("times faster, times the work")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return fig


def warp_map(warps, title: str = ""):
    """Which warp each thread of a block is in. warps: [rows, columns], as the threads wrote it
    down.
    """
    from matplotlib.colors import to_rgb

    warps = np.asarray(warps)
    rows, columns = warps.shape
    cell = min(0.36, 8.5 / columns, 3.6 / rows)
    block = f"A block of {columns} by {rows} threads in {warps.max() + 1} warps"
    fig, axes = chart(
        max(4.5, columns * cell + 0.8),
        rows * cell + 0.9,
        alt=f"{block}, each with its own colour",
    )
    colours = np.array([to_rgb(colour) for colour in BLOCK_COLOURS])
    draw_cells(axes, colours[warps % len(colours)])
    axes.set_aspect("equal")
    for y in range(rows):
        for x in range(columns):
            word(axes, x, y, warps[y, x], fontsize=min(8, 22 * cell))
    axes.set_xticks(np.arange(-0.5, columns), [])
    axes.set_yticks(np.arange(-0.5, rows), [])
    axes.grid(True, color="white", linewidth=1)
    axes.tick_params(length=0)
    axes.set_xlabel("threadIdx.x →", fontsize=9)
    axes.set_ylabel("← threadIdx.y", fontsize=9)
    titled(axes, title or block)
    axes.spines[:].set_visible(False)
    return fig


def issue_chart(states, title: str = ""):
    """What each warp does in each cycle. states: [warps, cycles] of READY, WAITING and ISSUING."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    states = np.asarray(states)
    busy = (states == ISSUING).any(axis=0).mean()
    warps, cycles = states.shape
    fig, axes = chart(
        9.2,
        min(3.6, 0.9 + 0.16 * warps + 0.35),
        alt=f"{warps} warps over {cycles} cycles; "
        f"an instruction is issued in {busy:.0%} of the cycles",
    )
    colours = np.array([to_rgb(colour) for colour in (BLOCK_COLOURS[1], IDLE, ACCENT)])
    draw_cells(axes, colours[states])
    axes.set_xlabel("cycle", fontsize=9)
    axes.set_ylabel("warp", fontsize=9)
    axes.set_yticks(sorted({0, warps - 1}))
    axes.tick_params(labelsize=8)
    words = f"the scheduler issues in {busy:.0%} of the cycles"
    titled(axes, f"{title} · {words}" if title else words)
    axes.legend(
        handles=[
            Patch(facecolor=ACCENT, label="issues"),
            Patch(facecolor=BLOCK_COLOURS[1], label="ready, not its turn"),
            Patch(facecolor=IDLE, label="waits for memory"),
        ],
        fontsize=8,
        ncols=3,
        loc="lower right",
        bbox_to_anchor=(1, 1.0),
        frameon=False,
    )
    axes.spines[:].set_visible(False)
    return fig


def lanes(kernel, threads: int, *arguments):
    """Run a kernel with one block on the CPU engine, note which lanes run each line, and draw it.

    kernel: a Numba kernel. threads: of the block, along x. arguments: NumPy arrays and numbers for
        it.
    A row is a line of the kernel, a column a lane; the number at the right says how often warps
    issue the line: each as often as that of its lanes that runs it most often. That is a bound from
    the source; the compiler may turn a short branch into a select.
    """
    counts, rows = lane_counts(kernel, threads, *arguments)
    texts = _lines_of(kernel, rows)
    work = np.zeros((len(rows), -(-threads // WARP), WARP), int)  # [lines, warps, lanes]
    work.reshape(len(rows), -1)[:, :threads] = counts
    issued = work.max(axis=2)
    share = work.sum() / (issued.sum() * WARP)
    warps = issued.shape[1]
    alt = (
        f"Lanes at work on {len(rows)} lines, {warps} warps: {share:.0%} of the lanes that "
        "the issued lines occupy do work"
    )
    width = 9.2  # inches
    fig, axes = chart(width, 0.32 * len(rows) + 0.85, alt=alt)
    for y, line in enumerate(work):
        _draw_line(axes, y, line, issued[y], threads)
    right = warps * (WARP + GAP)
    letters = max(map(len, texts)) * 0.085  # inches that the longest line takes
    left = -1 - letters * (warps * WARP + 6) / (width - letters)
    for y, text in enumerate(texts):
        word(axes, left, y + 0.5, text, ha="left", fontsize=9, family="monospace")
    for warp in range(warps):
        label = f"warp {warp}, lanes 0 to {WARP - 1}"
        axes.text(warp * (WARP + GAP), -0.35, label, fontsize=8.5, color=INK)
    axes.set(
        xlim=(left, right + 3),
        ylim=(len(rows) + 0.1, -1.1),
    )
    axes.set_axis_off()
    titled(axes, f"{issued.sum()} lines issued; {share:.0%} of their lanes work")
    return fig


def _lines_of(kernel, rows):
    """The kernel's lines of these numbers, without their comments."""
    filename = kernel.py_func.__code__.co_filename
    first = min(rows)
    source = "".join(linecache.getline(filename, n) for n in range(first, max(rows) + 1))
    lines = textwrap.dedent(source).splitlines()
    return [lines[n - first].split("  #")[0].rstrip() for n in rows]


def _draw_line(axes, y, work, issued, threads):
    """A line of the kernel: a cell for each lane, and behind them how often warps issue it.

    work: [warps, lanes], how often a lane runs the line; issued: [warps].
    """
    for warp, times in enumerate(issued):
        for lane, count in enumerate(work[warp]):
            there = times and warp * WARP + lane < threads
            left = warp * (WARP + GAP) + lane
            _lane(axes, left, y, count / times if there else None)
    right = len(issued) * (WARP + GAP)
    word(axes, right, y + 0.5, issued.sum(), ha="left", fontsize=9)


def _lane(axes, x, y, share):
    """A lane's cell: the bluer, the more it works of what its warp issues; None, nothing issued, is
    white.
    """
    from matplotlib.colors import to_rgb

    if share is None:
        face, edge = "white", "#BBBBBB"
    else:
        idle, busy = (np.array(to_rgb(colour)) for colour in (IDLE, BLOCK_COLOURS[0]))
        face = edge = (1 - share) * idle + share * busy
    box(axes, x + 0.06, y + 0.1, 0.88, 0.8, face, edge, 0.4)


def lane_counts(kernel, threads: int, *arguments):
    """(counts [lines, threads], line numbers): how often each thread of a block runs each line."""
    from utils.cpu.numba_cuda import Observer, cpu_jit, observe

    class Lines(Observer):
        def __init__(self):
            self.counts = Counter()

        def line(self, thread, block, site):
            self.counts[site.line, thread] += 1

    lines = Lines()
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    with observe(lines):
        cpu_jit(kernel)[1, threads](*copies)
    first = inspect.getsourcelines(kernel.py_func)[1]
    rows = sorted({line for line, _ in lines.counts if line >= first})
    counts = np.zeros((len(rows), threads), int)
    for (line, thread), count in lines.counts.items():
        if line in rows:
            counts[rows.index(line), thread] = count
    return counts, rows


# ---- one instruction of a warp

UNIT = 11  # pixels: an element of a matrix


def one_instruction(m: int, n: int, k: int):
    """What a warp multiplies with one instruction: 32 lanes, and tensor cores with D = A B + C.

    m, n, k: A is m × k, B k × n, C and D are m × n.
    """
    alt = (
        f"One instruction of a warp: {WARP} multiply-adds by its lanes, {m * n * k:,} by tensor "
        f"cores, which multiply {m} × {k} by {k} × {n} numbers: {m * n * k // WARP} times as many."
    )
    sheet = Drawing(600, UNIT * (m + k) + 106, alt=alt)
    sheet.heading(0, 10, "lanes: d = a b + c")
    for number, colour in enumerate(BLOCK_COLOURS[:3]):
        x, y = 6 * number, 30 + 3 * number
        lanes = [divmod(lane, 8) for lane in range(WARP)]
        corners = [(x + 24 * column, y + 28 * row) for row, column in lanes]
        sheet.cells(corners, UNIT - 1, fill=colour)
    words = f"{WARP} multiply-adds"
    sheet.text_from(0, 52 + 10.4 * UNIT, words, size=15)
    sheet.heading(300, 10, "tensor cores: D = A B + C")
    top, left = 66 + UNIT * k, 316 + UNIT * k
    _matrix(sheet, 300, top, (m, k), BLOCK_COLOURS[0], "A")
    _matrix(sheet, left, 42, (k, n), BLOCK_COLOURS[1], "B")
    _matrix(sheet, left, top, (m, n), BLOCK_COLOURS[2], "C, D")
    words = f"{m * n * k:,} multiply-adds"
    sheet.text_from(300, top + UNIT * m + 22, words, size=15)
    return sheet


def _matrix(sheet, left, top, shape, colour, name):
    """A matrix of elements with its name and shape."""
    down, across = UNIT * shape[0], UNIT * shape[1]
    sheet.box(left, top, across, down, fill=colour)
    for row in range(1, shape[0]):
        sheet.line(left, top + UNIT * row, left + across, top + UNIT * row, colour=PAPER)
    for column in range(1, shape[1]):
        sheet.line(left + UNIT * column, top, left + UNIT * column, top + down, colour=PAPER)
    words = f"{name}: {shape[0]} × {shape[1]}"
    sheet.text_from(left, top - 10, words)


# ---- a systolic array

CELL, APART = 36, 180  # pixels: a cell, from one step's picture to the next


def systolic(n: int, steps):
    """Which pair of numbers each cell of a systolic array of n × n multiplies, at some steps.

    Cell (i, j) multiplies a[i, k] by b[k, j] at step i + j + k. The pair k = 0 is marked.
    """
    row, column = np.indices((n, n))
    pairs = [step - row - column for step in steps]
    busy = ", ".join(
        f"{np.sum((k >= 0) & (k < n))} at step {step}" for step, k in zip(steps, pairs, strict=True)
    )
    alt = f"Of {n * n} cells multiply: {busy}. The pairs move away from the upper left corner."
    sheet = Drawing(APART * len(steps) - APART + CELL * n, CELL * n + 52, alt=alt)
    for place, (step, k) in enumerate(zip(steps, pairs, strict=True)):
        sheet.text_from(APART * place, 10, f"step {step}", size=15)
        numbered(sheet, APART * place, 24, CELL, np.where(k < n, k, -1), marked=0)
    words = "number: k, of a[i, k] times b[k, j]; orange: the first"
    sheet.text_from(0, CELL * n + 40, words, size=15)
    return sheet
