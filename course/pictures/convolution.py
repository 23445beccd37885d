"""Pictures of the chapter Convolution: windows, halos, im2col, and who is how fast."""

from course.pictures.shapes import SMALL, box, sheet, word
from utils import results
from utils.plots import ACCENT, BLOCK_COLOURS, IDLE, INK, chart
from utils.plots.svg import FAINT, GREY, ON_COLOUR, Drawing, strong

TINY = 7
PLAIN = "#ffffff"
KNOWN = "#cfe8cf"
OUTSIDE = "#eeeeee"
PIXEL, APART, WORDS = 30, 110, 350  # pixels of the walk's picture: a pixel, gaps, a sum's words
WIDE, ASIDE = 44, 170  # pixels of the picture of blame: a number's box, the words beside


def _row(axes, y, numbers, colour_of, first=0):
    for i, number in enumerate(numbers):
        box(axes, first + i, y, 1, 1, colour_of(i))
        word(axes, first + i + 0.5, y + 0.5, f"{number:g}")


def window(signal, taps, at: int):
    """A filter lying on a signal, and the one number of the result that it gives there."""
    total = sum(t * s for t, s in zip(taps, signal[at:], strict=False))
    count = len(signal) - len(taps) + 1
    fig, axes = chart(
        6.4,
        2.4,
        alt=f"The filter {list(taps)} lies on elements {at} to {at + len(taps) - 1} of the signal "
        f"{list(signal)}: products summed up, {total:g} is element {at} of the result.",
    )
    sheet(axes, len(signal) + 3, 3.9, below=0.1)
    covered = range(at, at + len(taps))
    _row(axes, 0, taps, lambda i: KNOWN, at)
    _row(axes, 1.2, signal, lambda i: KNOWN if i in covered else PLAIN)
    for i in range(count):
        box(axes, i, 2.9, 1, 1, IDLE if i == at else PLAIN)
    word(axes, at + 0.5, 3.4, f"{total:g}", color=ACCENT, weight="bold")
    for y, name in ((0.5, "filter"), (1.7, "signal"), (3.4, "result")):
        word(axes, len(signal) + 0.3, y, name, ha="left")
    return fig


def places(
    size: int,
    side: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
):
    """Which pixels of a size × size picture the first two places of a filter touch."""
    reach = (side - 1) * dilation
    whole = size + 2 * padding
    count = (whole - reach - 1) // stride + 1
    fig, axes = chart(
        3.3,
        3.2,
        alt=f"A {size} × {size} picture with a padding of {padding}; a filter of {side} × "
        f"{side} taps, {dilation} apart, moves by {stride}: {count} × {count} places.",
    )
    sheet(axes, whole, whole + 1, below=0.1)
    taps = [dilation * k for k in range(side)]
    for y in range(whole):
        for x in range(whole):
            inside = padding <= y < size + padding and padding <= x < size + padding
            box(axes, x, y, 1, 1, PLAIN if inside else OUTSIDE)
            if y in taps and x in taps:
                box(axes, x, y, 1, 1, KNOWN)
            if count > 1 and y in taps and x - stride in taps:
                word(axes, x + 0.5, y + 0.5, "●", color=INK)
    text = f"stride {stride}, padding {padding}, dilation {dilation}: {count} × {count}"
    word(axes, whole / 2, whole + 0.6, text)
    return fig


def halo(across: int, down: int, side: int):
    """A block's tile of the result, and what of the picture it needs."""
    half = side // 2
    width, height = across + side - 1, down + side - 1
    fig, axes = chart(
        6.4,
        2.6,
        alt=f"A tile of {across} × {down} results needs {width} × {height} pixels: "
        f"a halo of {half} on each side for a filter of {side} × {side}.",
    )
    sheet(axes, width + 12, height, below=0.1)
    for y in range(height):
        for x in range(width):
            core = half <= y < half + down and half <= x < half + across
            box(axes, x, y, 1, 1, KNOWN if core else IDLE, line=0.3)
    loads, results_count = width * height, across * down
    text = f"{results_count} results\n{loads} pixels loaded\n{loads / results_count:.2f} per result"
    word(axes, width + 6, height / 2, text)
    return fig


def walk(row: int, side: int):
    """A thread that walks down a picture: for which of its sums the row just loaded counts.

    row: of the picture; side: of the filter, odd.
    """
    half = side // 2
    first = row - half
    alt = (
        f"Row {row} of a picture counts for results {first} to {row + half}, whose sums a thread "
        f"keeps in registers: sums[0], of result {first}, takes it times the filter's row "
        f"{side - 1} and is complete; the last, of result {row + half}, takes it times row 0."
    )
    left = PIXEL * side + APART
    rows = row + half + 1
    sheet = Drawing(left + PIXEL + WORDS, PIXEL * (rows + 1), alt=alt)
    sheet.text(PIXEL * side / 2, PIXEL / 2, "picture", size=14)
    sheet.text(left + PIXEL / 2, PIXEL / 2, "result", size=14)
    for y in range(rows):
        for x in range(side):
            _pixel(sheet, PIXEL * x, y, y == row)
        _pixel(sheet, left, y, y >= first, y)
        if y < first:
            sheet.text_from(left + 40, PIXEL * (y + 1.5), "written", colour=GREY)
    for k in range(side):
        middle = PIXEL * (first + k + 1.5)
        ends = PIXEL * side + 4, PIXEL * (row + 1.5), left - 5, middle
        sheet.arrow(*ends, colour=strong(ACCENT), thick=1.2, head=6)
        words = f"sums[{k}] += filter's row {side - 1 - k} · this row"
        done = ", complete" if k == 0 else ""
        sheet.text_from(left + 40, middle, words + done)
    return sheet


def _pixel(sheet, left, y, coloured, text=""):
    """A pixel of the walk, in row y."""
    fill, colour = (BLOCK_COLOURS[1], ON_COLOUR) if coloured else (FAINT, GREY)
    top = PIXEL * (y + 1)
    sheet.box(left, top + 1, PIXEL - 2, PIXEL - 2, fill=fill)
    sheet.text(left + PIXEL / 2 - 1, top + PIXEL / 2, text, colour=colour)


def im2col(place: int = 0, size: int = 4, side: int = 2):
    """The im2col matrix of a picture: a row for each place of the window.

    place: of the window that is coloured, counted line by line.
    """
    across = size - side + 1
    taps = [(r, s) for r in range(side) for s in range(side)]
    top, left = divmod(place, across)
    numbers = [(top + r) * size + left + s for r, s in taps]
    alt = (
        f"A {size} × {size} picture with pixels 0 to {size**2 - 1} and its matrix: a row for each"
        f" of {across**2} places of a window of {side} × {side}. The window at place {place} covers"
        f" pixels {', '.join(map(str, numbers))}, and these are row {place} of the matrix."
    )
    high = max(size, across**2)
    fig, axes = chart(6.4, 0.26 * high + 0.3, alt=alt)
    sheet(axes, size + side**2 + 7, high, below=0.1)
    for i in range(size * size):
        y, x = divmod(i, size)
        box(axes, x, y, 1, 1, KNOWN if i in numbers else PLAIN)
        word(axes, x + 0.5, y + 0.5, i)
    first = size + 3
    for row in range(across**2):
        r, s = divmod(row, across)
        pixels = [(r + dr) * size + s + ds for dr, ds in taps]
        _row(axes, row, pixels, lambda _, row=row: KNOWN if row == place else PLAIN, first)
        if row == place:
            word(axes, first + side**2 + 0.3, row + 0.5, f"place {row}", ha="left")
    return fig


def blame(pixel: int = 2, size: int = 6, side: int = 3):
    """Which results a pixel of a signal went into, and by which taps: the way back to it.

    pixel: the one that is coloured; side: taps of the filter, whose result is as *valid* has it.
    """
    into = [(s, pixel - s) for s in range(side) if 0 <= pixel - s <= size - side]
    way = ", ".join(f"result {i} by tap {s}" for s, i in into)
    alt = (
        f"A signal of {size} pixels and its {size - side + 1} results. "
        f"Pixel {pixel} went into {way}."
    )
    sheet = Drawing(WIDE * size + ASIDE, 4.7 * WIDE, alt=alt)
    shift = WIDE * (side - 1) / 2  # a result stands under the middle of its window
    for i in range(size - side + 1):
        hit = any(i == result for _, result in into)
        _place(sheet, shift + WIDE * i, 2.6 * WIDE, hit, i)
    for i in range(size):
        _place(sheet, WIDE * i, 0.2 * WIDE, i == pixel, i)
    middle = WIDE / 2 - 1
    for s, i in into:
        sheet.text(shift + WIDE * i + middle, 3.75 * WIDE, f"w[{s}]", size=14)
        ends = shift + WIDE * i + middle, 2.6 * WIDE, WIDE * pixel + middle, 1.2 * WIDE
        sheet.arrow(*ends, colour=strong(ACCENT), thick=1.5, head=8)
    gathered = " + ".join(f"error[{i}]·w[{s}]" for s, i in into)
    sheet.text_from(0, 4.4 * WIDE, f"blame[{pixel}] = {gathered}", size=14)
    for y, name in ((0.65, "pixels x"), (3.05, "results y")):
        sheet.text_from(WIDE * size + 14, y * WIDE, name, size=14, colour=GREY)
    return sheet


def _place(sheet, left, top, coloured, number):
    fill, colour = (BLOCK_COLOURS[1], ON_COLOUR) if coloured else (FAINT, GREY)
    sheet.box(left, top, WIDE - 2, WIDE - 2, fill=fill)
    sheet.text(left + WIDE / 2 - 1, top + WIDE / 2 - 1, number, colour=colour)


def layouts(channels: int = 3, pixels: int = 4):
    """Where the numbers of a picture lie: channel by channel, or pixel by pixel."""
    colours = (KNOWN, IDLE, PLAIN)
    fig, axes = chart(
        6.8,
        1.7,
        alt="In memory: NCHW holds all pixels of channel 0, then all of channel 1, and so on; "
        "NHWC holds all channels of pixel 0, then all of pixel 1.",
    )
    sheet(axes, channels * pixels + 2, 3, below=0.1)
    for i in range(channels * pixels):
        by_channel = i // pixels
        by_pixel = i % channels
        for y, channel, pixel in ((0, by_channel, i % pixels), (1.6, by_pixel, i // channels)):
            box(axes, i, y, 1, 1, colours[channel])
            word(axes, i + 0.5, y + 0.5, f"c{channel}\np{pixel}", fontsize=TINY)
    word(axes, channels * pixels + 0.3, 0.5, "NCHW", ha="left")
    word(axes, channels * pixels + 0.3, 2.1, "NHWC", ha="left")
    return fig


def shifted_patch(tap: int = 0, width: int = 5):
    """A patch counted pixel after pixel: a tap is the same row, read a little later.

    tap: of 3 × 3, counted line by line.
    """
    pitch = width + 2
    later = tap // 3 * pitch + tap % 3
    count = 3 * pitch
    fig, axes = chart(
        7.0,
        2.8,
        alt=f"A patch with rows of {pitch} pixels, counted through. For tap {tap} result 0 takes"
        f" pixel {later}, result 1 pixel {later + 1}, and so on: one row of memory, read {later}"
        f" pixels later. Two of {pitch} results in a line are computed for nothing.",
    )
    sheet(axes, 3.3 * pitch, 6.6, below=0.1)
    for i in range(5 * pitch + 2):
        y, x = divmod(i, pitch)
        box(axes, x, y, 1, 1, KNOWN if later <= i < later + count else PLAIN)
        word(axes, x + 0.5, y + 0.5, i, fontsize=TINY)
    for i in range(count):
        y, x = divmod(i, pitch)
        box(axes, pitch + 3 + x, 1 + y, 1, 1, OUTSIDE if x >= width else KNOWN)
        word(axes, pitch + 3.5 + x, 1.5 + y, i + later, fontsize=TINY)
    word(axes, pitch / 2, 6.3, f"patch: tap {tap} begins at pixel {later}")
    word(axes, pitch + 3 + pitch / 2, 4.5, "which pixel a result takes (grey: for nothing)")
    return fig


#: Kinds as they are recorded, and what they are called.
KINDS = {
    "fprop": "forward",
    "dgrad": "data gradient",
    "wgrad": "weights' gradient",
}
SHAPES = {
    "256x28": "256 ch, 28²",
    "512x14": "512 ch, 14²",
    "64x56": "64 ch, 56²",
    "256x56_1x1": "1×1, 56²",
}


def share(kind: str, shape: str) -> dict | None:
    """The recorded share of cuDNN's speed, an entry of the results file; None without."""
    return results.find(f"conv/{kind}/{shape}/share_of_cudnn")


def shares():
    """Our speed as a share of cuDNN's, all shapes and directions, as recorded."""
    known = {(k, s): share(k, s) for k in KINDS for s in SHAPES}
    said = [
        f"{KINDS[k]} {SHAPES[s]}: {entry['value']:.0%}" for (k, s), entry in known.items() if entry
    ]
    if not said:
        print("our share of cuDNN's speed: not recorded yet")
        return None
    gpu = next(entry["gpu"] for entry in known.values() if entry)
    fig, axes = chart(7.0, 3.0, alt=f"Our share of cuDNN's speed on {gpu}. " + "; ".join(said))
    _bars(axes, known)
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_title(f"our speed as a share of cuDNN's, {gpu}", fontsize=10)
    axes.legend(fontsize=SMALL, frameon=False, ncols=3)
    return fig


def _bars(axes, known) -> None:
    colours = (ACCENT, IDLE, KNOWN)
    wide = 0.26
    for n, (kind, name) in enumerate(KINDS.items()):
        values = [known[kind, s]["value"] if known[kind, s] else 0 for s in SHAPES]
        places = [i + (n - 1) * wide for i in range(len(SHAPES))]
        axes.bar(
            places,
            values,
            wide,
            color=colours[n],
            edgecolor=INK,
            linewidth=0.5,
            label=name,
        )
        for x, value in zip(places, values, strict=True):
            word(axes, x, value + 0.02, f"{value:.0%}", va="baseline", fontsize=TINY)
    axes.set_xticks(range(len(SHAPES)), SHAPES.values(), fontsize=SMALL)
    axes.set_ylim(0, max(1.3, axes.get_ylim()[1] * 1.2))
    axes.yaxis.set_major_formatter("{x:.0%}")
