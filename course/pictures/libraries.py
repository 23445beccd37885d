"""Pictures of the chapter Libraries: what lives how long, how matrices lie, the table drawn."""

import numpy as np

from course.pictures.shapes import SMALL, arrow, box, sheet, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, OTHERS, chart, svg

TINY = 7


def _canvas(width, height, across, down, alt):
    """Axes of a picture of width × height inches, without ticks; y grows downwards."""
    fig, axes = chart(width, height, alt=alt)
    sheet(axes, across, down, below=0.2)
    return fig, axes


def _row(axes, x, y, texts, colours, **look):
    """A row of cells of side 1, each with its text and colour."""
    for place, text in enumerate(texts):
        left = x + place
        box(axes, left, y, 1, 1, colours[place])
        word(axes, left + 0.5, y + 0.5, text, **look)


# ---- lives

#: What a program keeps of a library: name, what it is, from and to which moment it lives.
LIVES = (
    ("handle", "the library's state for one thread", 0, 10),
    ("descriptors", "what the data look like", 1, 9),
    ("plan", "how it will be done", 2, 8),
    ("workspace", "memory to work in", 3, 8),
)
CALLS = (3.6, 4.7, 5.8, 6.9)
LIVES_BEGIN = 4  # the column at which time begins


def lives():
    """Handle, descriptors, plan and workspace enclose the calls, which queue work in a stream."""
    names = ", ".join(f"{name} ({what})" for name, what, _, _ in LIVES)
    alt = f"Who lives how long, the longest first: {names}. Within all of them the calls."
    fig, axes = _canvas(7.4, 2.7, 14.6, 5.2, alt)
    for row, life in enumerate(LIVES):
        _life(axes, row, *life)
    word(axes, 0, 4.4, "calls, in a stream", ha="left", weight="bold")
    for call in CALLS:
        left = LIVES_BEGIN + call
        box(axes, left, 4.1, 0.7, 0.6, IDLE)
        word(axes, left + 0.35, 4.4, "call", fontsize=TINY)
    arrow(axes, LIVES_BEGIN, 5.1, 14.4, 5.1, INK)
    word(axes, 14.3, 4.85, "time", fontsize=TINY, ha="right")
    return fig


def _life(axes, row, name, what, begin, end):
    left = LIVES_BEGIN + begin
    width = end - begin
    word(axes, 0, row + 0.4, name, ha="left", weight="bold")
    box(axes, left, row + 0.1, width, 0.6, BLOCK_COLOURS[row])
    word(axes, left + width / 2, row + 0.4, what, fontsize=TINY)


# ---- matrices in memory


def two_readings(rows: int, columns: int):
    """One piece of memory, read as a row-major matrix and as cuBLAS reads it."""
    size = rows * columns
    letters = np.array([chr(ord("a") + i) for i in range(size)])
    colours = np.array([BLOCK_COLOURS[i // columns] for i in range(size)])
    matrix = letters.reshape(rows, columns)
    seen = ", ".join("".join(line) for line in matrix.T)
    alt = (
        f"The letters {''.join(letters)} in memory: row-major {rows} × {columns}; to a "
        f"column-major library {columns} × {rows} with the rows {seen}."
    )
    across = 2 * size + 1
    fig, axes = _canvas(6.6, 2.6, across, 2.6 + max(rows, columns), alt)
    word(axes, across / 2, 0.2, "in memory")
    _row(axes, (across - size) / 2, 0.6, letters, colours)
    colours = colours.reshape(rows, columns)
    _matrix(axes, 1, matrix, colours, "you: row by row")
    _matrix(axes, 2 * size - rows, matrix.T, colours.T, "cuBLAS: column by column")
    return fig


def _matrix(axes, x, letters, colours, title):
    """A matrix below the memory, with its title."""
    top = 2.6
    word(axes, x + letters.shape[1] / 2, top - 0.4, title)
    for row, line in enumerate(letters):
        _row(axes, x, top + row, line, colours[row])


def leading_dimension(rows: int, columns: int, leading: int, told: int | None = None):
    """A matrix whose columns are `leading` apart: element (i, j) at i + j * leading.

    told: the leading dimension that the library is given; each of its columns has a colour.
    """
    told = leading if told is None else told
    refused = told < rows
    alt = (
        f"{columns} columns of {rows} elements in memory, each with room for {leading}. Told that "
        f"the leading dimension is {told}, the library "
        + ("refuses the call." if refused else f"{_what_it_reads(told, leading)}.")
    )
    places = columns * max(leading, told)
    fig, axes = _canvas(7.2, 1.5, places, 2.6, alt)
    names = [""] * places
    colours = ["white"] * places
    for column in range(columns):
        for row in range(rows):
            names[column * leading + row] = f"{row},{column}"
            if not refused:
                colours[column * told + row] = BLOCK_COLOURS[column]
    _row(axes, 0, 0.8, names, colours, fontsize=TINY)
    if refused:
        word(axes, places / 2, 0.4, "refused: less than a column", fontsize=TINY, color=ALARM)
    else:
        for column in range(columns):
            middle = column * told + rows / 2
            word(axes, middle, 0.4, f"its column {column}", fontsize=TINY)
    arrow(axes, 0, 2.2, told, 2.2)
    title = f"told: leading dimension {told}"
    word(axes, max(told, 4) / 2, 2.6, title, fontsize=TINY, color=ACCENT)
    return fig


def _what_it_reads(told: int, leading: int) -> str:
    return "reads the matrix" if told == leading else "reads other elements, and says nothing"


# ---- transforms, sparse matrices


def bins_of(n: int):
    """Which of the n bins of a real signal cuFFT's R2C stores; the others are mirrored."""
    kept = n // 2 + 1
    alt = f"{n} real numbers have {n} bins; {kept} are stored, the others are their conjugates."
    fig, axes = _canvas(7.0, 1.6, n, 2.6, alt)
    mirrored = [f"{n - f}*" for f in range(kept, n)]
    _row(axes, 0, 0.6, range(kept), [BLOCK_COLOURS[2]] * kept)
    _row(axes, kept, 0.6, mirrored, ["white"] * len(mirrored), color=ALARM)
    word(axes, kept / 2, 0.25, f"stored: {kept} of {n}", fontsize=TINY)
    word(axes, (kept + n) / 2, 2, "conjugates", fontsize=TINY, color=ALARM)
    return fig


def csr(matrix):
    """A small matrix, and the three arrays that CSR keeps of it."""
    matrix = np.asarray(matrix)
    rows, columns = np.nonzero(matrix)
    counts = np.bincount(rows, minlength=len(matrix))
    offsets = np.concatenate(([0], counts.cumsum()))
    arrays = {
        "values": matrix[rows, columns],
        "columns": columns,
        "offsets": offsets,
    }
    words = "; ".join(f"{name} {' '.join(map(str, array))}" for name, array in arrays.items())
    height, width = matrix.shape
    down = max(height + 0.8, 4.8)
    fig, axes = _canvas(7.2, 2.6, width + 6 + len(rows), down, f"A sparse matrix in CSR: {words}.")
    word(axes, width / 2, 0.2, "the matrix")
    for row, line in enumerate(matrix):
        texts = [str(value) if value else "" for value in line]
        colours = [BLOCK_COLOURS[row] if value else "white" for value in line]
        _row(axes, 0, row + 0.6, texts, colours)
    of_row = [BLOCK_COLOURS[row] for row in rows]
    for line, (name, array) in enumerate(arrays.items()):
        top = 0.6 + 1.5 * line
        colours = [IDLE] * len(array) if name == "offsets" else of_row
        word(
            axes,
            width + 4.2,
            top + 0.5,
            name,
            ha="right",
            weight="bold",
        )
        _row(axes, width + 4.5, top, array, colours)
    return fig


def two_of_four(weights):
    """Weights in groups of four: the two smallest go, what stays is packed with its places."""
    groups = np.asarray(weights, float).reshape(-1, 4)
    by_size = np.argsort(-np.abs(groups), axis=1)
    kept = np.sort(by_size[:, :2], axis=1)
    packed = np.take_along_axis(groups, kept, axis=1).ravel()
    places = kept.ravel()
    stay = " ".join(f"{value:g}" for value in packed)
    alt = f"Of every four weights two stay: {stay}, at places {' '.join(map(str, places))}"
    fig, axes = _canvas(7.2, 2.0, groups.size + 5, 4.4, f"{alt} of their groups.")
    for group, four in enumerate(groups):
        stays = [place in kept[group] for place in range(4)]
        colours = [BLOCK_COLOURS[group] if stay else "white" for stay in stays]
        _row(axes, 5 + 4 * group, 0, [f"{value:g}" for value in four], colours)
    of_group = [BLOCK_COLOURS[place // 2] for place in range(len(places))]
    word(axes, 4.6, 0.5, "weights", ha="right")
    word(axes, 4.6, 2.2, "kept", ha="right")
    _row(axes, 5, 1.7, [f"{value:g}" for value in packed], of_group)
    word(axes, 4.6, 3.7, "2 bits each", ha="right")
    _row(axes, 5, 3.2, places, of_group)
    return fig


# ---- the table


def shares(rows):
    """Bars of each task: what part of the roof the library reaches, and our kernel.

    rows: (title, {"library": share, "Python": share, "ours": share}), a share None where there is
    none. Where there are none at all, it says so.
    """
    rows = [(title, found) for title, found in rows if any(found.values())]
    if not rows:
        return "no shares are recorded yet"
    fig, axes = chart(7.4, 0.8 + 0.42 * len(rows), alt=f"Share of the roof. {_in_words(rows)}.")
    looks = {
        "library": OTHERS,
        "Python": BLOCK_COLOURS[1],
        "ours": ACCENT,
    }
    for step, (who, colour) in enumerate(looks.items()):
        places = [line + 0.26 * (step - 1) for line in range(len(rows))]
        lengths = [found.get(who) or 0 for _, found in rows]
        axes.barh(places, lengths, 0.24, color=colour, label=who)
    titles = [title for title, _ in rows]
    axes.set_yticks(range(len(rows)), titles, fontsize=SMALL)
    axes.set_xlabel("share of the roof", fontsize=SMALL)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.invert_yaxis()
    above = {
        "loc": "lower center",
        "bbox_to_anchor": (0.5, 1),
    }
    axes.legend(fontsize=SMALL, frameon=False, ncols=len(looks), **above)
    axes.spines[["top", "right"]].set_visible(False)
    fig.set_layout_engine("tight")
    return fig


def _in_words(rows) -> str:
    tasks = []
    for title, found in rows:
        known = [f"{who} {share:.0%}" for who, share in found.items() if share]
        tasks.append(f"{title}: {', '.join(known)}")
    return "; ".join(tasks)


# ---- the decision

#: Each step: the question, and what to do if the answer is yes.
STEPS = (
    ("Does a library do just this?", "use", "one call"),
    ("Does it do it in another shape?", "wrap", "descriptors, strides, a transposed call"),
    ("Is something elementwise left?", "fuse", "an epilogue, a graph, torch.compile"),
    ("Is it measured, and too slow?", "write", "a kernel, proven beside the library"),
)


def decide():
    """Use, wrap, fuse, write: the questions in their order."""
    words = "; ".join(f"{question} {verb}: {how}" for question, verb, how in STEPS)
    fig, axes = _canvas(7.2, 2.7, 16, 5.6, f"The rule: {words}.")
    for row, (question, verb, how) in enumerate(STEPS):
        y = 1.4 * row
        box(axes, 0, y, 6.4, 1, IDLE)
        word(axes, 3.2, y + 0.5, question)
        arrow(axes, 6.4, y + 0.5, 7.6, y + 0.5)
        word(axes, 7, y + 0.22, "yes", fontsize=TINY)
        box(axes, 7.6, y, 8.4, 1, BLOCK_COLOURS[row])
        word(axes, 8.8, y + 0.5, verb, weight="bold")
        word(axes, 12.7, y + 0.5, how, fontsize=TINY)
        if row:
            arrow(axes, 3.2, y - 0.4, 3.2, y)
    return fig


# ---- points in a square

BOXES, SQUARE = 16, 320  # boxes a side: as many as points; pixels of a square


def points(clouds):
    """Points of two coordinates in [0, 1), and how many of the square's boxes stay empty.

    clouds: {name: [points, 2]}.
    """
    empty = {name: BOXES**2 - _boxes(cloud) for name, cloud in clouds.items()}
    said = "; ".join(
        f"{name}: {count} of {BOXES**2} boxes are empty" for name, count in empty.items()
    )
    pitch = SQUARE + 40
    drawing = svg.Drawing(pitch * len(clouds), SQUARE + 30, alt=f"Points in a square. {said}.")
    for column, (name, cloud) in enumerate(clouds.items()):
        left = 1 + pitch * column
        words = f"{name}: {empty[name]} of {BOXES**2} boxes are empty"
        drawing.text_from(left, 10, words)
        drawing.box(left, 26, SQUARE, SQUARE, line=svg.GREY)
        for line in range(1, BOXES):
            at = SQUARE * line / BOXES
            drawing.line(left + at, 26, left + at, 26 + SQUARE, colour=svg.FAINT)
            drawing.line(left, 26 + at, left + SQUARE, 26 + at, colour=svg.FAINT)
        middles = [(left + SQUARE * x, 26 + SQUARE * (1 - y)) for x, y in np.asarray(cloud)]
        drawing.dots(middles, 6, colour=svg.strong(ACCENT))
        arc = f"M{left} 26A{SQUARE} {SQUARE} 0 0 1 {left + SQUARE} {26 + SQUARE}"
        drawing.add("path", d=arc, style=f"fill:none;stroke:{svg.strong(ALARM)}")
    return drawing


def _boxes(cloud) -> int:
    """How many boxes of the square have a point."""
    return len(np.unique((np.asarray(cloud) * BOXES).astype(int), axis=0))


# ---- a tensor's four sizes

STRIP, LEVEL = 720, 62  # pixels: the whole tensor, from one level to the next


def nchw(images: int, channels: int, rows: int, columns: int):
    """Where the numbers of a tensor lie in memory, level by level, each a part of the one above."""
    sizes = {"image": images, "channel": channels, "row": rows, "column": columns}
    steps = np.cumprod([1, columns, rows, channels])[::-1].tolist()
    said = ", ".join(f"{name} {step}" for name, step in zip(sizes, steps, strict=True))
    shape = " × ".join(map(str, sizes.values()))
    alt = f"A tensor of {shape} in memory. Numbers from one to the next: {said}."
    drawing = svg.Drawing(STRIP, LEVEL * len(sizes), alt=alt)
    for level, ((name, count), step) in enumerate(zip(sizes.items(), steps, strict=True)):
        top = LEVEL * level
        words = f"{count} {name}s" if level == 0 else f"the first of them: {count} {name}s"
        drawing.text_from(0, top + 10, f"{words}, {step} numbers apart")
        for part in range(count):
            wide = STRIP / count
            colour = BLOCK_COLOURS[level] if part == 0 else svg.FAINT
            drawing.box(part * wide, top + 22, wide - 3, 26, fill=colour, rx=3)
            ink = svg.ON_COLOUR if part == 0 else svg.INK
            drawing.text((part + 0.5) * wide, top + 35, part, colour=ink)
        if level:
            drawing.line(0, top - 14, 0, top + 22, colour=svg.GREY)
            first = STRIP / list(sizes.values())[level - 1]
            drawing.line(first, top - 14, STRIP - 3, top + 22, colour=svg.FAINT, thick=2)
    return drawing


# ---- two packages, two streams

#: What either package queues, and for how long it works: pixels
PYTORCH = (("busy", 250), ("fill x with 1", 130))
CUPY = (("add x up", 120),)
#: A title, and the work in each stream that there is
QUEUES = (
    ("each in its own stream, and nobody waits", {"PyTorch's": PYTORCH, "CuPy's": CUPY}),
    ("both in PyTorch's stream, one after the other", {"PyTorch's": PYTORCH + CUPY}),
)


def two_streams():
    """PyTorch's and CuPy's work in time: in streams of their own, and in one."""
    said = "; ".join(
        f"{title}: "
        + ", ".join(
            f"{stream} has {', then '.join(what for what, _ in work)}"
            for stream, work in streams.items()
        )
        for title, streams in QUEUES
    )
    drawing = svg.Drawing(640, 212, alt=f"Time runs to the right. {said}.")
    top = 0
    for title, streams in QUEUES:
        drawing.heading(0, top + 12, title, size=16)
        top += 28
        for stream, work in streams.items():
            drawing.text_from(0, top + 21, stream, size=16)
            _queue(drawing, top, work)
            top += 46
        top += 16
    return drawing


def _queue(drawing, top, work):
    """What a stream does, one after the other."""
    left = 110
    for what, wide in work:
        colour = BLOCK_COLOURS[(what, wide) in CUPY]
        drawing.named(left, top, wide - 3, 42, what, colour, size=16)
        left += wide
