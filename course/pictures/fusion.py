"""Pictures of the chapter Fusion: passes over memory, bits, spacings, tiles."""

import numpy as np

from course.kernels.fusion import records
from course.pictures.shapes import SMALL, box, numbered, plain, sheet, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, chart, svg

TINY = 6.5
KERNEL = "#cfe8cf"


# ---- fusion


def passes(steps: dict[str, tuple[int, int]], fused: tuple[int, int]):
    """Each step as a kernel that reads and writes matrices, and all of them as one.

    steps: name -> (matrices read, written); fused: the same of the one kernel.
    """
    total = sum(map(sum, steps.values()))
    words = "; ".join(f"{name} reads {r}, writes {w}" for name, (r, w) in steps.items())
    alt = f"{words}: {total} passes over memory. One kernel reads {fused[0]}, writes {fused[1]}."
    fig, axes = chart(8, 2.3, alt=alt)
    sheet(axes, 2.1 * (len(steps) + 1.4), 3, below=0.1, equal=False)
    for number, (name, moved) in enumerate(steps.items()):
        _kernel(axes, 2.1 * number, 1.6, name, moved)
    _kernel(axes, 2.1 * (len(steps) + 0.3), 2, "all in one", fused)
    box(axes, 0, 2.3, 2.1 * (len(steps) + 1.3), 0.5, IDLE)
    word(axes, 1.05 * (len(steps) + 1.3), 2.55, "memory")
    return fig


def _kernel(axes, x, width, name, moved):
    """A kernel's box above memory, an arrow for each matrix it reads (up) or writes (down)."""
    box(axes, x, 0.4, width, 0.6, KERNEL)
    word(axes, x + width / 2, 0.7, name)
    read, written = moved
    places = np.linspace(x + 0.25, x + width - 0.25, read + written)
    for number, place in enumerate(places):
        up = number < read
        ends = ((place, 1.05), (place, 2.25)) if up else ((place, 2.25), (place, 1.05))
        arrow = {
            "arrowstyle": "->",
            "color": ACCENT if up else ALARM,
            "linewidth": 1.2,
        }
        axes.annotate(
            "",
            xy=ends[0],
            xytext=ends[1],
            arrowprops=arrow,
        )


# ---- a loss in chunks

STRIP, TOP = 38, 58  # pixels: a chunk's height, where the first begins


def chunks_of_logits(tokens: int, chunk: int, now: int):
    """Which rows of the logits exist while chunk number `now` (from 0) is worked on."""
    count = -(-tokens // chunk)
    alt = (
        f"{tokens:,} tokens in {count} chunks. Of the logits only the rows of chunk {now + 1}"
        " exist. They become their gradient in place, which gives the same rows of dx and a part"
        " of dweights, to which every chunk adds."
    )
    drawing = svg.Drawing(700, TOP + STRIP * count + 30, alt=alt)
    for left, width, name in ((20, 70, "x"), (180, 250, "logits"), (520, 70, "dx")):
        drawing.text(left + width / 2, TOP - 36, name, font_weight="bold")
        for number in range(count):
            kept = name != "logits" and (name == "x" or number < now)
            colour = _of_chunk(number == now, kept)
            drawing.box(left, TOP + STRIP * number, width, STRIP - 2, fill=colour, line=svg.GREY)
    drawing.text(655, TOP - 36, "dweights", font_weight="bold")
    drawing.box(620, TOP, 70, STRIP * count - 2, fill=IDLE, line=svg.GREY)
    _steps_of_chunk(drawing, TOP + STRIP * now + STRIP / 2, TOP + STRIP * count)
    for number in range(count):
        if number != now:
            words = "forgotten" if number < now else "not yet"
            drawing.text(305, TOP + STRIP * number + STRIP / 2 - 1, words, size=12)
    return drawing


def _of_chunk(now: bool, kept: bool) -> str:
    """The colour of a chunk's rows: worked on now, in memory, or not there."""
    if now:
        return BLOCK_COLOURS[1]
    return IDLE if kept else "none"


def _steps_of_chunk(drawing, middle: float, bottom: float) -> None:
    """The arrows of the chunk whose rows have this middle; bottom: below the last chunk."""
    ink = svg.strong(ACCENT)
    drawing.arrow(92, middle, 177, middle, colour=ink)
    drawing.text(134, middle - 12, "1 multiply", size=12)
    drawing.text(305, middle - 1, "2 logits, then their gradient", colour=svg.ON_COLOUR)
    drawing.arrow(432, middle, 517, middle, colour=ink)
    drawing.text(474, middle - 12, "3 multiply", size=12)
    ends = {"colour": ink, "thick": 1.5}
    drawing.line(470, middle, 470, bottom + 16, **ends)
    drawing.line(470, bottom + 16, 655, bottom + 16, **ends)
    drawing.arrow(655, bottom + 16, 655, bottom + 1, colour=ink)
    drawing.text(655, middle - 1, "+ part", colour=svg.ON_COLOUR)


# ---- formats


def bits(formats):
    """Each format's bits: sign, exponent, mantissa."""
    words = ", ".join(f"{f.name} 1 + {f.exponent} + {f.mantissa}" for f in formats)
    fig, axes = chart(
        8, 0.3 * len(formats) + 0.5, alt=f"Sign, exponent and mantissa bits: {words}."
    )
    axes.set(
        xlim=(-5, 40),
        ylim=(len(formats) + 0.9, -0.1),
    )
    axes.axis("off")
    for row, f in enumerate(formats):
        colours = [INK] + [BLOCK_COLOURS[1]] * f.exponent + [BLOCK_COLOURS[0]] * f.mantissa
        for bit, colour in enumerate(colours):
            box(axes, bit, row + 0.1, 0.92, 0.8, colour)
        word(axes, -0.5, row + 0.5, f.name, ha="right")
        counts = f"1 + {f.exponent} + {f.mantissa}"
        word(
            axes,
            len(colours) + 0.5,
            row + 0.5,
            counts,
            ha="left",
            fontsize=TINY + 1,
        )
    legend = "sign (black), exponent (yellow), mantissa (blue)"
    word(axes, 16, len(formats) + 0.5, legend)
    return fig


def number_line(numbers: dict[str, np.ndarray], largest: float):
    """The numbers of some formats from 0 to `largest`, a row of ticks each."""
    within = {name: x[(x >= 0) & (x <= largest)] for name, x in numbers.items()}
    words = ", ".join(f"{name} {len(x)}" for name, x in within.items())
    fig, axes = chart(8, 0.5 * len(numbers) + 0.6, alt=f"Numbers from 0 to {largest:g}: {words}.")
    for row, x in enumerate(within.values()):
        axes.vlines(
            x,
            row - 0.3,
            row + 0.3,
            color=ACCENT,
            linewidth=0.9,
        )
    axes.set_yticks(range(len(within)), within)
    axes.set(
        xlim=(-largest / 100, largest * 1.01),
        ylim=(len(within) - 0.5, -0.5),
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    return fig


def spacings(formats, spacing, at: float):
    """The distance between neighbours, over their size, for each format.

    spacing(x, format): the distance at x. at: where it is marked.
    """
    words = ", ".join(f"{f.name} {_step(f, spacing, at)}" for f in formats)
    fig, axes = chart(7.4, 3, alt=f"Distance between neighbours at {at:g}: {words}.")
    for number, f in enumerate(formats):
        highest = min(np.log2(f.largest), 24)
        octaves = np.arange(-24, highest + 1e-6)
        steps = [spacing(2.0**octave, f) for octave in octaves]
        line = {
            "color": f"C{number}",
            "drawstyle": "steps-post",
            "linewidth": 1.4,
        }
        axes.plot(2.0**octaves, steps, label=f"{f.name}: {_step(f, spacing, at)}", **line)
    axes.axvline(at, color=ALARM, linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set(
        xlabel="number",
        ylabel="to the next one",
        xlim=(2.0**-24, 2.0**24),
    )
    axes.legend(
        title=f"at {at:g}",
        fontsize=TINY + 0.5,
        title_fontsize=SMALL,
        loc="upper left",
    )
    plain(axes)
    return fig


def _step(f, spacing, at):
    return "too large" if at > f.largest else f"{spacing(at, f):.3g}"


# ---- training


def losses(runs: dict):
    """Loss by step, a line a run. runs: name -> object with `losses`."""
    last = ", ".join(f"{name} ends at {run.losses[-1]:.3g}" for name, run in runs.items())
    fig, axes = chart(6.6, 2.6, alt=f"Loss by step: {last}.")
    for name, run in runs.items():
        axes.plot(run.losses, label=name, linewidth=1.4)
    axes.set(
        xlabel="step",
        ylabel="loss",
        ylim=(0, 0.3),
    )
    axes.legend(fontsize=SMALL)
    plain(axes)
    return fig


def accuracy_against_bytes(rows):
    """Accuracy of quantized networks over their bytes. rows: (name, bytes, accuracy)."""
    words = "; ".join(f"{name}: {size / 1e3:.0f} KB, {right:.1%}" for name, size, right in rows)
    fig, axes = chart(7.2, 3, alt=f"Accuracy against bytes. {words}.")
    for number, (name, size, right) in enumerate(rows):
        hollow = "one scale" in name
        face = "white" if hollow else f"C{(number + 1) // 2}"
        look = {
            "s": 60,
            "edgecolor": f"C{(number + 1) // 2}",
            "facecolor": face,
            "zorder": 3,
        }
        axes.scatter(size / 1e3, 100 * right, label=name, **look)
    axes.set_xscale("log")
    axes.set(xlabel="KB of weights", ylabel="test digits right, %")
    axes.legend(fontsize=TINY + 0.5, loc="lower right")
    plain(axes)
    return fig


# ---- tiles


def int4_tile(mark: int = 5):
    """Which lane has which of a tile's 16 × 128 codes; lane `mark` stands out."""
    alt = (
        "A tile of 16 rows and 128 columns of 4-bit codes. Lane 4 r + q has columns 32 q to "
        f"32 q + 31 of rows r and r + 8: 16 bytes each. Lane {mark} is marked."
    )
    fig, axes = chart(7.6, 3.1, alt=alt)
    sheet(axes, 8.6, 9.4, below=0.1, equal=False)
    for row in range(16):
        for quarter in range(4):
            lane = row % 8 * 4 + quarter
            marked = lane == mark
            box(axes, quarter * 2, row * 0.55, 2, 0.55, ALARM if marked else KERNEL)
            ink = "white" if marked else INK
            word(
                axes,
                quarter * 2 + 1,
                row * 0.55 + 0.3,
                f"lane {lane}",
                fontsize=TINY,
                color=ink,
            )
    for quarter in range(4):
        word(axes, quarter * 2 + 1, 9.15, f"columns {32 * quarter} …", fontsize=TINY + 1)
    word(axes, 8.1, 0.3, "row 0", fontsize=TINY + 1, ha="left")
    word(axes, 8.1, 8.5, "row 15", fontsize=TINY + 1, ha="left")
    return fig


SCALED, APART = 36, 190  # pixels: 128 numbers, from one matrix to the next


def scales(row: int = 1, step: int = 2, column: int = 3):
    """Which scale the parts of two 8-bit factors have: one a row and column, or one every 128.

    Marked: the scales of the result at `row` and `column`; with blocks those of a step along k.
    """
    down, across = np.indices((4, 4))
    block = 4 * down + across
    matrices = {
        "A: one a row": (down, row),
        "B: one a column": (across, column),
        "A: every 128": (block, block[row, step]),
        "B: 128 × 128": (block, block[step, column]),
    }
    alt = "Scales. " + "; ".join(
        f"{words}: {len(np.unique(numbers))}" for words, (numbers, _) in matrices.items()
    )
    picture = svg.Drawing(APART * 3 + SCALED * 4, SCALED * 4 + 52, alt=f"{alt}.")
    for place, (words, (numbers, marked)) in enumerate(matrices.items()):
        picture.text_from(APART * place, 10, words, size=15)
        numbered(picture, APART * place, 24, SCALED, numbers, marked)
    words = f"orange: of the result in row {row}, column {column}; right: at step {step} along k"
    picture.text_from(0, SCALED * 4 + 40, words, size=15)
    return picture


def two_of_four(
    dense: np.ndarray,
    kept: np.ndarray,
    places: np.ndarray,
):
    """A row before and after compression: numbers kept, and where each stood among its four."""
    words = ", ".join(f"{value:g} at {place}" for value, place in zip(kept, places, strict=True))
    fig, axes = chart(7.2, 1.5, alt=f"Of every four numbers two are kept: {words}.")
    sheet(axes, len(dense) + 0.2, 3.2, below=0.1, equal=False)
    for i, value in enumerate(dense):
        box(axes, i, 0.1, 0.95, 0.8, KERNEL if value else "white")
        word(axes, i + 0.47, 0.5, f"{value:.1f}" if value else "0")
        if i % 4 == 0:
            axes.axvline(
                i - 0.03,
                color=INK,
                linewidth=1,
                ymin=0.7,
            )
    for i, (value, place) in enumerate(zip(kept, places, strict=True)):
        box(axes, i, 1.5, 0.95, 0.8, KERNEL)
        word(axes, i + 0.47, 1.9, f"{value:.1f}")
        word(axes, i + 0.47, 2.7, f"{place:02b}", color=ACCENT)
    word(axes, len(kept) + 0.3, 2.7, "2 bits each: its place", ha="left", color=ACCENT)
    return fig


#: Prints recorded results, or that there are none yet.
recorded = records.recorded
