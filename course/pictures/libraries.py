"""Pictures of the chapter Libraries: what lives how long, how matrices lie, the table drawn."""

import numpy as np

from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure

SMALL = 8.5  # points: letters within a picture
TINY = 7


def _canvas(width, height, across, down, alt):
    """Axes of a picture of width × height inches, without ticks; y grows downwards."""
    fig = figure(width, height, alt=alt)
    axes = fig.add_subplot()
    axes.set(xlim=(-0.2, across + 0.2), ylim=(down + 0.2, -0.2))
    axes.set_aspect("equal")
    axes.axis("off")
    return fig, axes


def _box(axes, x, y, width, height, colour):
    from matplotlib.patches import Rectangle

    look = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.8}
    axes.add_patch(Rectangle((x, y), width, height, **look))


def _word(axes, x, y, text, **more):
    axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": SMALL, **more})


def _arrow(axes, x, y, to_x, to_y, colour=ACCENT):
    arrow = {"arrowstyle": "->", "color": colour, "linewidth": 1.2}
    axes.annotate("", xy=(to_x, to_y), xytext=(x, y), arrowprops=arrow)


# ---- lives

#: What a program keeps of a library: name, what it is, from and to which moment it lives.
LIVES = (
    ("handle", "the library's state for one thread", 0, 10),
    ("descriptors", "what the data look like", 1, 9),
    ("plan", "how it will be done", 2, 8),
    ("workspace", "memory to work in", 3, 8),
)
CALLS = (3.6, 4.7, 5.8, 6.9)


def lives():
    """Handle, descriptors, plan and workspace enclose the calls, which queue work in a stream."""
    names = ", ".join(f"{name} ({what})" for name, what, _, _ in LIVES)
    alt = f"Who lives how long, the longest first: {names}. Within all of them the calls."
    fig, axes = _canvas(7.4, 2.7, 14.6, 5.2, alt)
    for row, (name, what, begin, end) in enumerate(LIVES):
        _word(axes, 0, row + 0.4, name, ha="left", weight="bold")
        _box(axes, 4 + begin, row + 0.1, end - begin, 0.6, BLOCK_COLOURS[row])
        _word(axes, 4 + (begin + end) / 2, row + 0.4, what, fontsize=TINY)
    _word(axes, 0, 4.4, "calls, in a stream", ha="left", weight="bold")
    for call in CALLS:
        _box(axes, 4 + call, 4.1, 0.7, 0.6, IDLE)
        _word(axes, 4 + call + 0.35, 4.4, "call", fontsize=TINY)
    _arrow(axes, 4, 5.1, 14.4, 5.1, INK)
    _word(axes, 14.3, 4.85, "time", fontsize=TINY, ha="right")
    return fig


# ---- matrices in memory


def _matrix(axes, x, y, values, colours):
    for (row, column), value in np.ndenumerate(values):
        _box(axes, x + column, y + row, 1, 1, colours[row, column])
        _word(axes, x + column + 0.5, y + row + 0.5, value)


def two_readings(rows: int, columns: int):
    """One piece of memory, read as a row-major matrix and as cuBLAS reads it."""
    letters = np.array([chr(ord("a") + i) for i in range(rows * columns)])
    of_row = np.array([BLOCK_COLOURS[i // columns] for i in range(rows * columns)])
    shape = rows, columns
    seen = ["".join(line) for line in letters.reshape(shape).T]
    alt = (
        f"The letters {''.join(letters)} in memory: row-major {rows} × {columns}; to a "
        f"column-major library {columns} × {rows} with the rows {', '.join(seen)}."
    )
    width = rows * columns
    fig, axes = _canvas(6.6, 2.6, 2 * width + 1, 2.6 + max(shape), alt)
    start = (2 * width + 1 - width) / 2
    _matrix(axes, start, 0.6, letters[None], of_row[None])
    _word(axes, start + width / 2, 0.2, "in memory")
    down = 2.6
    _matrix(axes, 1, down, letters.reshape(shape), of_row.reshape(shape))
    _word(axes, 1 + columns / 2, down - 0.4, "you: row by row")
    right = 2 * width - rows
    _matrix(axes, right, down, letters.reshape(shape).T, of_row.reshape(shape).T)
    _word(axes, right + rows / 2, down - 0.4, "cuBLAS: column by column")
    return fig


def leading_dimension(rows: int, columns: int, leading: int):
    """A matrix whose columns are `leading` apart: element (i, j) at i + j * leading."""
    alt = (
        f"{columns} columns of {rows} elements in memory, each with room for {leading}: the "
        f"leading dimension is {leading}."
    )
    fig, axes = _canvas(7.2, 1.5, columns * leading, 2.6, alt)
    for place in range(columns * leading):
        column, row = divmod(place, leading)
        colour = BLOCK_COLOURS[column] if row < rows else "white"
        _box(axes, place, 0.8, 1, 1, colour)
        if row < rows:
            _word(axes, place + 0.5, 1.3, f"{row},{column}", fontsize=TINY)
    for column in range(columns):
        _word(axes, column * leading + rows / 2, 0.4, f"column {column}", fontsize=TINY)
    _arrow(axes, 0, 2.2, leading, 2.2)
    _word(axes, leading / 2, 2.6, f"leading dimension {leading}", fontsize=TINY, color=ACCENT)
    return fig


# ---- transforms, sparse matrices


def bins_of(n: int):
    """Which of the n bins of a real signal cuFFT's R2C stores; the others are mirrored."""
    kept = n // 2 + 1
    alt = f"{n} real numbers have {n} bins; {kept} are stored, the others are their conjugates."
    fig, axes = _canvas(7.0, 1.6, n, 2.6, alt)
    for f in range(n):
        stored = f < kept
        _box(axes, f, 0.6, 1, 1, BLOCK_COLOURS[2] if stored else "white")
        text = f"{f}" if stored else f"{n - f}*"
        _word(axes, f + 0.5, 1.1, text, color=INK if stored else ALARM)
    _word(axes, kept / 2, 0.25, f"stored: {kept} of {n}", fontsize=TINY)
    _word(axes, (kept + n) / 2, 2, "conjugates", fontsize=TINY, color=ALARM)
    return fig


def csr(matrix):
    """A small matrix, and the three arrays that CSR keeps of it."""
    matrix = np.asarray(matrix)
    rows, columns = np.nonzero(matrix)
    counts = np.bincount(rows, minlength=len(matrix))
    offsets = np.concatenate(([0], counts.cumsum()))
    arrays = {"values": matrix[rows, columns], "columns": columns, "offsets": offsets}
    words = "; ".join(f"{name} {' '.join(map(str, array))}" for name, array in arrays.items())
    height, width = matrix.shape
    down = max(height + 0.8, 4.8)
    fig, axes = _canvas(7.2, 2.6, width + 6 + len(rows), down, f"A sparse matrix in CSR: {words}.")
    for (row, column), value in np.ndenumerate(matrix):
        _box(axes, column, row + 0.6, 1, 1, BLOCK_COLOURS[row] if value else "white")
        _word(axes, column + 0.5, row + 1.1, str(value) if value else "")
    _word(axes, width / 2, 0.2, "the matrix")
    for line, (name, array) in enumerate(arrays.items()):
        y = 0.6 + 1.5 * line
        _word(axes, width + 4.2, y + 0.5, name, ha="right", weight="bold")
        for place, value in enumerate(array):
            colour = IDLE if name == "offsets" else BLOCK_COLOURS[rows[place]]
            _box(axes, width + 4.5 + place, y, 1, 1, colour)
            _word(axes, width + 5 + place, y + 0.5, str(value))
    return fig


def two_of_four(weights):
    """Weights in groups of four: the two smallest go, what stays is packed with its places."""
    weights = np.asarray(weights, float)
    groups = weights.reshape(-1, 4)
    kept = np.sort(np.argsort(-np.abs(groups), axis=1)[:, :2], axis=1)
    packed = np.take_along_axis(groups, kept, axis=1).ravel()
    places = " ".join(map(str, kept.ravel()))
    stay = " ".join(f"{value:g}" for value in packed)
    alt = f"Of every four weights two stay: {stay}, at places {places} of their groups."
    fig, axes = _canvas(7.2, 2.0, len(weights) + 5, 4.4, alt)
    for place, value in enumerate(weights):
        group, within = divmod(place, 4)
        stays = within in kept[group]
        _box(axes, 5 + place, 0, 1, 1, BLOCK_COLOURS[group] if stays else "white")
        _word(axes, 5.5 + place, 0.5, f"{value:g}", color=INK if stays else "#AAAAAA")
    for name, y, row in (("kept", 1.7, packed), ("2 bits each", 3.2, kept.ravel())):
        _word(axes, 4.6, y + 0.5, name, ha="right")
        for place, value in enumerate(row):
            _box(axes, 5 + place, y, 1, 1, BLOCK_COLOURS[place // 2])
            _word(axes, 5.5 + place, y + 0.5, f"{value:g}")
    _word(axes, 4.6, 0.5, "weights", ha="right")
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
    words = "; ".join(
        f"{title}: " + ", ".join(f"{who} {share:.0%}" for who, share in found.items() if share)
        for title, found in rows
    )
    fig = figure(7.4, 0.8 + 0.42 * len(rows), alt=f"Share of the roof. {words}.")
    axes = fig.add_subplot()
    looks = {"library": ACCENT, "Python": BLOCK_COLOURS[0], "ours": BLOCK_COLOURS[4]}
    for line, (_, found) in enumerate(rows):
        for step, (who, colour) in enumerate(looks.items()):
            label = who if line == 0 else None
            axes.barh(
                line + 0.26 * (step - 1), found.get(who) or 0, 0.24, color=colour, label=label
            )
    axes.set_yticks(range(len(rows)), [title for title, _ in rows], fontsize=SMALL)
    axes.set_xlabel("share of the roof", fontsize=SMALL)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.invert_yaxis()
    axes.legend(fontsize=SMALL, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(looks))
    fig.set_layout_engine("tight")
    return fig


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
        _box(axes, 0, y, 6.4, 1, IDLE)
        _word(axes, 3.2, y + 0.5, question)
        _arrow(axes, 6.4, y + 0.5, 7.6, y + 0.5)
        _word(axes, 7, y + 0.22, "yes", fontsize=TINY)
        _box(axes, 7.6, y, 8.4, 1, BLOCK_COLOURS[row])
        _word(axes, 8.8, y + 0.5, verb, weight="bold")
        _word(axes, 12.7, y + 0.5, how, fontsize=TINY)
        if row:
            _arrow(axes, 3.2, y - 0.4, 3.2, y)
    return fig
