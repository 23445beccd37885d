"""Pictures of Synchronization: what many orders of the threads lead to, what runs beside what in
streams; and what it recorded.
"""

import time

import numpy as np
from numba import cuda

from course.pictures.shapes import plain, titled, word
from utils import has_gpu, results
from utils.plots import ACCENT, BLOCK_COLOURS, chart
from utils.plots.svg import FAINT, GREY, ON_COLOUR, Drawing, strong

TINY_KERNELS = 200  # that the chapter launches one by one, recorded as launches/one_by_one/time
ENGINES = ("copy in", "compute", "copy out")
LANE, STEP = 27, 62  # pixels: a lane, from one shuffle to the next
WIDE_LANE = 62  # pixels: a lane with a longer number
NUMBER, RISE = 84, 54  # pixels: a number of a sum, from one level of sums to the next
DEFAULT = "default"  # the stream of launches that name none
NAMES, TURN, QUEUE = 90, 62, 38  # pixels: the streams' names, a kernel's time, a stream


def outcomes_chart(outcomes: list[int], threads: int):
    """How many different tickets the threads got, counted over many orders of them."""
    least, most = min(outcomes), max(outcomes)
    how_often = "never" if most < threads else "sometimes"
    alt = (
        f"How many different tickets {threads} threads got in {len(outcomes)} orders: "
        f"{how_often} all {threads}, between {least} and {most}"
    )
    fig, axes = chart(7, 2.4, alt=alt)
    edges = np.arange(least, most + 2) - 0.5
    axes.hist(outcomes, bins=edges, color=ACCENT, edgecolor="white")
    axes.set(xlabel=f"different numbers that {threads} threads drew")
    axes.set(ylabel=f"of {len(outcomes)} orders")
    return fig


def speedup_over_torch(ours, theirs) -> None:
    """Print how many times as fast our histogram is as torch.bincount, and record it; without a
    GPU print what a real one measured. ours, theirs: Timings of one race.
    """
    name = "histogram/speedup_over_torch"
    known = results.find(name)
    if ours.samples:
        speedup = theirs.median / ours.median
        spread = speedup * (ours.spread / ours.median + theirs.spread / theirs.median)
        results.record(name, speedup, spread=spread)
        print(f"{speedup:.1f} ± {spread:.1f} times as fast as torch.bincount")
    elif known:
        where = f"recorded on {known['gpu']}, {known['date'][:10]}"
        print(f"{where}: {known['value']:.1f} times as fast as torch.bincount")
    else:
        print("no GPU here, and nothing recorded yet")


def launch_cost(launch, launches: int = 1000) -> None:
    """Print what a launch from Numba costs: until it is queued, and until it is done, in the mean.

    launch: launches a compiled, empty kernel. Without a GPU: what PyTorch's launches took on one.
    """
    if not has_gpu():
        known = results.find("launches/one_by_one/time")
        each = known["value"] * 1e3 / TINY_KERNELS
        print(f"no GPU here; on {known['gpu']} PyTorch took {each:.1f} µs for each of", end=" ")
        print(f"{TINY_KERNELS} tiny kernels")
        return
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(launches):
        launch()
    queued = time.perf_counter() - start
    cuda.synchronize()
    done = time.perf_counter() - start
    queued_us, done_us = queued / launches * 1e6, done / launches * 1e6
    print(f"from Numba, a launch takes {queued_us:.2f} µs to queue, {done_us:.2f} µs in all")


def schedule(
    chunks: int, streams: int, copy_in: float, compute: float, copy_out: float
) -> list[tuple]:
    """When each piece of a chunked job runs, as (engine, chunk, start, end), in the units of the
    three times.

    A GPU is taken to have three engines (a copy engine for each direction, and the
    multiprocessors), which do one piece each at a time. The pieces of a chunk follow each other,
    and so do the chunks of a stream; chunk k is in stream k % streams.
    copy_in, compute, copy_out: the times of the undivided job.
    """
    lengths = [t / chunks for t in (copy_in, compute, copy_out)]
    engine_free, stream_free, done = [0.0] * 3, [0.0] * streams, []
    for chunk in range(chunks):
        for engine, length in enumerate(lengths):
            start = max(engine_free[engine], stream_free[chunk % streams])
            engine_free[engine] = stream_free[chunk % streams] = start + length
            done.append((engine, chunk, start, start + length))
    return done


def timeline(pieces: list[tuple], total: float | None = None):
    """A Gantt chart of `schedule`'s pieces. total: the right end of the axis, to compare charts by
    eye.
    """
    end = max(piece[3] for piece in pieces)
    chunks = 1 + max(piece[1] for piece in pieces)
    engines = ENGINES[: 1 + max(piece[0] for piece in pieces)]
    alt = f"What the engines do in time, for {chunks} chunks: all is done after {end:.3g} ms."
    fig, axes = chart(8.5, 0.85 + 0.35 * len(engines), alt=alt)
    for engine, chunk, start, stop in pieces:
        axes.barh(
            engine,
            stop - start,
            left=start,
            height=0.75,
            color=BLOCK_COLOURS[chunk % len(BLOCK_COLOURS)],
            edgecolor="white",
            linewidth=0.8,
        )
        if chunks <= 16:
            word(axes, (start + stop) / 2, engine, chunk, fontsize=8)
    axes.axvline(end, color=ACCENT, linewidth=1)
    axes.set(
        xlim=(0, 1.02 * max(end, total or 0)),
        xlabel="ms",
        ylim=(len(engines) - 0.4, -0.6),
    )
    axes.set_yticks(range(len(engines)), engines)
    plain(axes)
    titled(axes, f"{chunks} chunk{'s' * (chunks > 1)}: done after {end:.3g} ms", 10)
    return fig


def shuffle_tree(table):
    """How a warp adds up by shuffles from lanes further on: what counts for lane 0 is coloured.

    table: (shuffles + 1, lanes), what each lane holds at first and after each of them; the first
    is from half a warp further on, each other from half as far.
    """
    table = np.asarray(table)
    rows, lanes = table.shape
    alt = (
        f"{lanes} lanes add up in {rows - 1} shuffles: the number of lanes whose sum still counts "
        f"is halved by each, until lane 0 holds {table[-1, 0]}."
    )
    sheet = Drawing(44 + LANE * lanes, 30 + STEP * (rows - 1), alt=alt)
    counting = lanes
    for row, values in enumerate(table):
        _draw_lanes(sheet, row, values, counting)
        if row + 1 < rows:
            _draw_shuffle(sheet, row, counting // 2)
        counting //= 2
    return sheet


def _draw_lanes(sheet, row, values, counting):
    """What the lanes hold after so many shuffles; those that count in colour."""
    top = STEP * row
    for lane, value in enumerate(values):
        counts = lane < counting
        left = 42 + LANE * lane
        sheet.box(left, top, LANE - 2, 26, fill=BLOCK_COLOURS[1] if counts else FAINT, rx=3)
        colour = ON_COLOUR if counts else GREY
        sheet.text(left + LANE / 2 - 1, top + 13, value, size=11, colour=colour)


def _draw_shuffle(sheet, row, apart):
    """An arrow to each lane that counts on, from the lane so far away."""
    top = STEP * row
    sheet.text_from(0, top + 44, f"+{apart}", size=14)
    for lane in range(apart):
        middle = 41 + LANE * (lane + 0.5)
        start = middle + LANE * apart
        sheet.arrow(
            start, top + 27, middle, top + STEP - 1, colour=strong(ACCENT), thick=1.1, head=6
        )


def started(launches, legacy: bool) -> list[int]:
    """When each launch starts, if all take one unit of time and the GPU has room for all.

    launches: the stream of each, in the order in which the host gives them. legacy: whether the
    default stream waits for all others, and they for it; else it is a stream like them.
    https://docs.nvidia.com/cuda/cuda-runtime-api/stream-sync-behavior.html
    """
    ends = dict.fromkeys(launches, 0)
    starts = []
    for stream in launches:
        meets = [other for other in ends if legacy and DEFAULT in (stream, other)]
        start = max(ends[other] for other in [stream, *meets])
        ends[stream] = start + 1
        starts.append(start)
    return starts


def default_stream(launches):
    """Both kinds of default stream: when each launch runs. launches: as `started` takes them."""
    streams = list(dict.fromkeys(launches))
    plans = {"legacy": started(launches, True), "per-thread": started(launches, False)}
    said = "; ".join(f"{kind}: done after {1 + max(plan)} steps" for kind, plan in plans.items())
    high = QUEUE * len(streams) + 44
    width = NAMES + TURN * (2 + max(map(max, plans.values())))
    sheet = Drawing(width, high * len(plans), alt=f"{len(launches)} launches. {said}.")
    for number, (kind, plan) in enumerate(plans.items()):
        top = high * number
        words = f"{kind} default stream: done after {1 + max(plan)}"
        sheet.heading(0, top + 12, words, size=14)
        _draw_queues(sheet, top + 28, streams, launches, plan)
    return sheet


def _draw_queues(sheet, top, streams, launches, plan):
    """A row for each stream; a launch's number is its place in the host's order."""
    for row, stream in enumerate(streams):
        middle = top + QUEUE * (row + 0.5)
        sheet.text_from(0, middle, stream, size=14)
        sheet.line(NAMES, middle, sheet.width, middle, colour=FAINT, thick=2)
    for number, (stream, start) in enumerate(zip(launches, plan, strict=True), 1):
        row = streams.index(stream)
        left, y = NAMES + TURN * start, top + QUEUE * row + 4
        colour = BLOCK_COLOURS[4 if stream == DEFAULT else row]
        sheet.named(left + 1, y, TURN - 2, QUEUE - 8, number, colour, size=14)


def butterfly(table):
    """How all lanes come to hold the sum: after each exchange every lane's sum counts.

    table: (exchanges + 1, lanes), what each lane holds at first and after each exchange; in
    exchange k a lane adds what the lane holds whose number differs in bit k.
    """
    table = np.asarray(table)
    rows, lanes = table.shape
    alt = (
        f"{lanes} lanes add up in {rows - 1} exchanges, each with a partner of another bit: "
        f"{len(set(table[0]))} different values at first, {len(set(table[-1]))} at last."
    )
    sheet = Drawing(WIDE_LANE * lanes + 80, 34 + STEP * (rows - 1), alt=alt)
    for row, values in enumerate(table):
        if row + 1 < rows:
            _draw_exchange(sheet, row, lanes)
        for lane, value in enumerate(values):
            place = sorted(set(values)).index(value)
            left, top = 80 + WIDE_LANE * lane, STEP * row
            fill = BLOCK_COLOURS[place % len(BLOCK_COLOURS)]
            sheet.named(left, top, WIDE_LANE - 6, 28, value, fill, rx=3)
    return sheet


def _draw_exchange(sheet, row, lanes):
    """Arrows of an exchange: from each lane to its partner and to itself."""
    top, bit = STEP * row, 1 << row
    sheet.text_from(0, top + STEP / 2 + 12, f"lane ^ {bit}", size=14)
    for lane in range(lanes):
        end = 77 + WIDE_LANE * (lane + 0.5)
        start = 77 + WIDE_LANE * ((lane ^ bit) + 0.5)
        sheet.line(end, top + 28, end, top + STEP, colour=GREY)
        ends = start, top + 29, end, top + STEP - 1
        sheet.arrow(*ends, colour=strong(ACCENT), thick=1.1, head=6)


# ---- the order of a sum


def orders(values):
    """The same float32 numbers added one after the other, and in pairs: where bits are lost.

    values: a power of two of them. Every sum that had to be rounded is marked.
    """
    values = [np.float32(value) for value in values]
    exact = float(np.sum(values, dtype=np.float64))
    plans = {"one after the other": _chain(values), "in pairs": _pairs(values)}
    said = "; ".join(f"{name}: {plan[-1][-1][0]:.0f}" for name, plan in plans.items())
    alt = f"The sum of {len(values)} numbers, exactly {exact:.0f}. {said}."
    wide = NUMBER * len(values)
    deepest = max(map(len, plans.values()))
    sheet = Drawing(wide * 2 + 60, 40 + RISE * deepest, alt=alt)
    for column, (name, plan) in enumerate(plans.items()):
        left = column * (wide + 60)
        words = f"{name}: {plan[-1][-1][0]:.0f}"
        sheet.heading(left, 10, words, size=14)
        for depth, level in enumerate(plan):
            for total, place, parents, lost in level:
                _draw_sum(sheet, left, depth, total, place, parents, lost)
    words = f"exactly {exact:.0f}; red: rounded"
    sheet.text_from(0, sheet.height - 9, words, size=12, colour=GREY)
    return sheet


def _chain(values):
    """Levels of (sum, place, places of its two parts a level or more above, rounded?)."""
    levels = [[(value, place, (), False) for place, value in enumerate(values)]]
    total, at = values[0], (0, 0)
    for place, value in enumerate(values[1:], 1):
        rounded = float(total) + float(value) != float(np.float32(total + value))
        total = np.float32(total + value)
        levels.append([(total, place, (at, (0, place)), rounded)])
        at = place, place
    return levels


def _pairs(values):
    """The same for sums of neighbours, then of neighbouring sums."""
    levels = [[(value, place, (), False) for place, value in enumerate(values)]]
    while len(levels[-1]) > 1:
        above = levels[-1]
        level = []
        for one, other in zip(above[::2], above[1::2], strict=True):
            total = np.float32(one[0] + other[0])
            rounded = float(one[0]) + float(other[0]) != float(total)
            depth = len(levels) - 1
            parents = (depth, one[1]), (depth, other[1])
            level.append((total, (one[1] + other[1]) / 2, parents, rounded))
        levels.append(level)
    return levels


def _draw_sum(sheet, left, depth, total, place, parents, lost):
    """A number in its box, with lines from the two that it is the sum of."""
    x, y = left + NUMBER * place, 28 + RISE * depth
    for level, other in parents:
        start = left + NUMBER * (other + 0.5), 28 + RISE * level + 26
        sheet.line(*start, x + NUMBER / 2, y, colour=GREY)
    colour = BLOCK_COLOURS[4 if lost else min(depth, 1)]
    sheet.named(x + 2, y, NUMBER - 4, 26, f"{total:.0f}", colour, rx=3)


# ---- kernels that launch kernels

CELL, CHILD = 64, 44  # pixels: a thread of the parent, a block of a child


def children(lengths, threads: int):
    """A parent's threads, the grids that they launch, and what waits for all of them.

    lengths: how many numbers each of the parent's threads has work for. threads: of a block.
    """
    blocks = [-(-length // threads) for length in lengths]
    said = ", ".join(f"thread {row}: {count}" for row, count in enumerate(blocks))
    alt = f"Blocks that each thread of the parent launches: {said}. The tail launch comes last."
    most = max(blocks)
    left = 130 + CELL + 40
    end = left + most * CHILD + 40
    sheet = Drawing(end + 130, QUEUE * len(blocks) + 40, alt=alt)
    sheet.text(130 + CELL / 2, 12, "parent", font_weight="bold")
    sheet.heading(left, 12, "children, in any order")
    for row, (length, count) in enumerate(zip(lengths, blocks, strict=True)):
        y = 28 + QUEUE * row
        middle = y + (QUEUE - 8) / 2
        sheet.text_from(0, middle, f"{length} numbers")
        sheet.named(130, y, CELL, QUEUE - 8, f"thread {row}", BLOCK_COLOURS[1], size=12)
        if count:
            sheet.arrow(130 + CELL, middle, left - 4, middle, colour=strong(ACCENT), thick=2)
        for block in range(count):
            sheet.box(left + CHILD * block, y, CHILD - 4, QUEUE - 8, fill=BLOCK_COLOURS[0], rx=4)
    high = QUEUE * len(blocks)
    sheet.line(end - 16, 20, end - 16, 28 + high, colour=GREY, thick=2)
    sheet.box(end, 28, 130, high - 8, fill=BLOCK_COLOURS[2], rx=4)
    for line, words in enumerate(("tail launch:", "after them all")):
        sheet.text(end + 65, 18 + high / 2 + 20 * line, words, colour=ON_COLOUR)
    return sheet
