"""Pictures of Synchronization: what many orders of the threads lead to, what runs beside what in
streams; and what it recorded.
"""

import numpy as np

from course.pictures.shapes import plain
from utils import results
from utils.plots import ACCENT, BLOCK_COLOURS, INK, figure

ENGINES = ("copy in", "compute", "copy out")


def outcomes_chart(outcomes: list[int], threads: int):
    """How many different tickets the threads got, counted over many orders of them."""
    least, most = min(outcomes), max(outcomes)
    how_often = "never" if most < threads else "sometimes"
    alt = (
        f"How many different tickets {threads} threads got in {len(outcomes)} orders: "
        f"{how_often} all {threads}, between {least} and {most}"
    )
    fig = figure(7, 2.4, alt=alt)
    axes = fig.add_subplot()
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
        results.append(
            {
                "name": name,
                "value": speedup,
                "unit": "1",
                "spread": spread,
            }
        )
        print(f"{speedup:.1f} ± {spread:.1f} times as fast as torch.bincount")
    elif known:
        where = f"recorded on {known['gpu']}, {known['date'][:10]}"
        print(f"{where}: {known['value']:.1f} times as fast as torch.bincount")
    else:
        print("no GPU here, and nothing recorded yet")


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
    alt = f"What the three engines do in time, for {chunks} chunks: all is done after {end:.3g} ms."
    fig = figure(8.5, 1.9, alt=alt)
    axes = fig.add_subplot()
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
            axes.text(
                (start + stop) / 2, engine, chunk, ha="center", va="center", fontsize=8, color=INK
            )
    axes.axvline(end, color=ACCENT, linewidth=1)
    axes.set(
        xlim=(0, 1.02 * max(end, total or 0)),
        xlabel="ms",
        ylim=(2.6, -0.6),
    )
    axes.set_yticks(range(3), ENGINES)
    axes.set_title(
        f"{chunks} chunk{'s' * (chunks > 1)}: done after {end:.3g} ms",
        fontsize=10,
        loc="left",
        color=INK,
    )
    plain(axes)
    return fig
