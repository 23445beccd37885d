"""Pictures of the chapter Low precision: neurons, bits, spacings, trainings, tiles, scales."""

import numpy as np

from course.pictures.shapes import SMALL, box, numbered, plain, sheet, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, INK, chart, images, svg

TINY = 6.5
KERNEL = "#cfe8cf"


# ---- the network


FOR, AGAINST = (0, 114, 178), (176, 58, 0)  # blue: ink makes a neuron's number larger; orange: less
WHITE, FRAME = 255, 205


def neurons(weights, titles=(), limit: float | None = None):
    """Neurons as pictures: each weight at the place of its pixel, blue above 0, orange below.

    weights: [n, side · side]. limit: the magnitude that gets the full colour, by default the
    largest of all.
    """
    weights = np.asarray(weights)
    side = int(weights.shape[1] ** 0.5)
    limit = limit or np.abs(weights).max()
    strength = np.clip(weights / limit, -1, 1)[..., None]
    full = np.where(strength > 0, FOR, AGAINST)
    colours = WHITE + np.abs(strength) * (full - WHITE)
    squares = colours.round().astype(np.uint8).reshape(-1, side, side, 3)
    frame = ((0, 0), (1, 1), (1, 1), (0, 0))
    squares = np.pad(squares, frame, constant_values=FRAME)
    left = ", ".join(f"{np.count_nonzero(each):,}" for each in weights)
    named = f" ({', '.join(titles)})" if titles else ""
    alt = f"{len(weights)} neurons{named}, {side} × {side} weights each; not 0 are {left}."
    return images(list(squares), list(titles), alt=alt, width=1.3 * len(weights))


def reading(pixels, answers, labels):
    """Digits in a row, and below each what was read; what is wrong stands in orange with a cross.

    pixels: [n, side · side] from 0 to 1.
    """
    side = int(pixels.shape[1] ** 0.5)
    wrong = sum(int(answer) != int(label) for answer, label in zip(answers, labels, strict=True))
    alt = f"Digits {' '.join(map(str, labels))}, read as {' '.join(map(str, answers))}: "
    alt += f"{wrong} wrong."
    fig, axes = chart(0.75 * len(labels), 1.25, alt=alt)
    axes.axis("off")
    axes.set(xlim=(0, len(labels)), ylim=(1.6, 0))
    for place, (digit, answer, label) in enumerate(zip(pixels, answers, labels, strict=True)):
        extent = (place + 0.04, place + 0.96, 0.98, 0.02)
        square = digit.reshape(side, side)
        axes.imshow(square, cmap="gray_r", extent=extent, vmin=0, vmax=1, aspect="auto")
        right = int(answer) == int(label)
        words = f"{answer}" if right else f"{answer} ×"
        word(
            axes,
            place + 0.5,
            1.3,
            words,
            fontsize=SMALL + 4,
            color=INK if right else ALARM,
        )
    return fig


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
        colours = _of_bits(f)
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
    legend = "sign (green), exponent (yellow), mantissa (blue)"
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


def rounding(x: float, format, code: int, around):
    """Where a number lies among a format's numbers, the bits of the nearest, and the error.

    code: of the nearest. around: numbers of the format, the nearest among them, in order.
    """
    bits = f"{code:0{format.bits}b}"
    nearest = min(around, key=lambda number: abs(number - x))
    error = abs(nearest - x) / x
    alt = f"{x:g} with {format.exponent} exponent and {format.mantissa} mantissa bits becomes "
    alt += f"{nearest:g}, code {bits}: an error of {error:.1%}."
    fig, axes = chart(7.6, 2.2, alt=alt)
    axes.set(xlim=(0, 17.5), ylim=(3.4, -0.2))
    axes.axis("off")
    _boxes(axes, bits, format)
    words = f"{x:g} becomes {nearest:g}: {error:.1%} off"
    word(axes, format.bits + 0.4, 0.55, words, ha="left", fontsize=SMALL + 2)
    _line_of(axes, x, nearest, around)
    return fig


def value(code: int, format, around):
    """A code's bits, how they make a number, and where it lies.

    around: numbers of the format in order, that of the code among them.
    """
    bits = f"{code:0{format.bits}b}"
    exponent, mantissa = code >> format.mantissa, code % (1 << format.mantissa)
    steps, bias = 1 << format.mantissa, (1 << format.exponent - 1) - 1
    inside = f"(1 + {mantissa}/{steps}) · 2^({exponent} - {bias})"
    if exponent == 0:
        inside = f"{mantissa}/{steps} · 2^(1 - {bias})"
    number = (mantissa + steps * (exponent > 0)) / steps * 2.0 ** (max(exponent, 1) - bias)
    words = f"{inside} = {number:g}"
    fig, axes = chart(7.6, 2.2, alt=f"The code {bits} is {words}.")
    axes.set(xlim=(0, 17.5), ylim=(3.4, -0.2))
    axes.axis("off")
    _boxes(axes, bits, format)
    word(axes, format.bits + 0.4, 0.55, words, ha="left", fontsize=SMALL + 2)
    _line_of(axes, number, number, around)
    return fig


def _of_bits(format):
    """The colour of each bit of a format, from the left: sign, exponent, mantissa."""
    mantissa, exponent, sign = BLOCK_COLOURS[:3]
    return [sign] + [exponent] * format.exponent + [mantissa] * format.mantissa


def _boxes(axes, bits: str, format):
    """A code's bits in boxes, coloured by what they are: sign, exponent, mantissa."""
    for place, (bit, colour) in enumerate(zip(bits, _of_bits(format), strict=True)):
        box(axes, place, 0.1, 0.92, 0.9, colour)
        word(axes, place + 0.46, 0.55, bit, fontsize=SMALL + 2, color=INK)


def _line_of(axes, x, nearest, around):
    """Some of a format's numbers as ticks, from the first to the last, and x above them."""
    low, high = min(around), max(around)

    def place(number):
        return 0.4 + 16.5 * (number - low) / (high - low)

    axes.plot([0.4, 16.9], [2.4, 2.4], color=INK, linewidth=0.8)
    for number in around:
        colour = ACCENT if number == nearest else INK
        axes.plot([place(number)] * 2, [2.2, 2.6], color=colour, linewidth=1.6)
        word(axes, place(number), 3.0, f"{number:g}", color=colour)
    axes.annotate(
        "",
        xy=(place(x), 2.3),
        xytext=(place(x), 1.5),
        arrowprops={"arrowstyle": "->", "color": ALARM, "linewidth": 1.6},
    )


# ---- training


AREA = 8  # pixels of an area's side


def greys(true, ways: dict):
    """A picture after each way of rounding, and how far off its pixels and its areas are.

    true: [height, width], from 0 to its largest. ways: name -> rounded, of the same shape. Off is
    the root of the mean square, of pixels and of the means of 8 × 8 pixels, which are called areas.
    """
    titles = [f"{name}\npixels {_off(each - true)}" for name, each in ways.items()]
    words = "; ".join(title.replace("\n", ": ") for title in titles)
    many = len({float(grey) for each in ways.values() for grey in np.unique(each)})
    alt = f"A picture in at most {many} greys. How far off, {words}."
    shown = [np.clip(each / true.max(), 0, 1) for each in ways.values()]
    picture = images(shown, titles, alt=alt)
    picture.set_figheight(picture.get_figheight() + 0.2)  # a title's second line
    return picture


def _off(errors):
    """In words: how far single pixels are off, and the means of areas."""
    height, width = (length // AREA * AREA for length in errors.shape)
    parts = errors[:height, :width].reshape(height // AREA, AREA, width // AREA, AREA)
    pixel, area = (np.sqrt(np.mean(each**2)) for each in (errors, parts.mean((1, 3))))
    return f"{pixel:.2f} off, areas {area:.2f}"


def losses(runs: dict):
    """Loss by step, a line a run. runs: name -> object with `losses`."""
    last = ", ".join(f"{name} ends at {run.losses[-1]:.3g}" for name, run in runs.items())
    fig, axes = chart(6.6, 2.6, alt=f"Loss by step: {last}.")
    for name, run in runs.items():
        axes.plot(run.losses, label=name, linewidth=1.4)
    axes.set(
        xlabel="step",
        ylabel="loss",
        ylim=(0, 0.9),
    )
    axes.legend(fontsize=SMALL, loc="upper right")
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
        "A: one per row": (down, row),
        "B: one per column": (across, column),
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
