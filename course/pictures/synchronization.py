"""Pictures of chapter 07: what runs beside what in streams."""

from utils.plots import ACCENT, BLOCK_COLOURS, INK, figure

ENGINES = ("copy in", "compute", "copy out")


def schedule(
    chunks: int, streams: int, copy_in: float, compute: float, copy_out: float
) -> list[tuple]:
    """When each piece of a chunked job runs, as (engine, chunk, start, end), in the units of the
    three times.

    A GPU is taken to have three engines (a copy engine for each direction, and the
    multiprocessors), which do one piece
    each at a time. The pieces of a chunk follow each other, and so do the chunks of a stream; chunk
    k is in stream k % streams. copy_in, compute, copy_out: the times of the undivided job.
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
    fig = figure(
        8.5,
        1.9,
        alt=f"What the three engines do in time, for {chunks} chunks: all is done after {end:.3g} ms.",
    )
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
    axes.set(xlim=(0, 1.02 * max(end, total or 0)), xlabel="ms", ylim=(2.6, -0.6))
    axes.set_yticks(range(3), ENGINES)
    axes.set_title(
        f"{chunks} chunk{'s' * (chunks > 1)}: done after {end:.3g} ms",
        fontsize=10,
        loc="left",
        color=INK,
    )
    axes.spines[["top", "right"]].set_visible(False)
    return fig
