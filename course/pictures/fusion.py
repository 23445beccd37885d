"""Pictures of the chapter Fusion: passes over memory, a guessed word, a loss in chunks."""

import numpy as np

from course.kernels.fusion import records
from course.pictures.shapes import box, sheet, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, chart, svg

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
    drawing.text(305, middle - 1, "logits, then (2) their gradient", colour=svg.ON_COLOUR)
    drawing.arrow(432, middle, 517, middle, colour=ink)
    drawing.text(474, middle - 12, "3 multiply", size=12)
    ends = {"colour": ink, "thick": 1.5}
    drawing.line(470, middle, 470, bottom + 16, **ends)
    drawing.line(470, bottom + 16, 655, bottom + 16, **ends)
    drawing.arrow(655, bottom + 16, 655, bottom + 1, colour=ink)
    drawing.text(655, middle - 1, "+ part", colour=svg.ON_COLOUR)


#: Prints recorded results, or that there are none yet.
recorded = records.recorded


# ---- the next word


def guess(words, scores, right=None):
    """A bar for each word's probability, and where training moves its score.

    scores: a word each, of which softmax makes the probabilities. right: the word that comes next;
        an arrow beside each bar is then minus the gradient of the cross-entropy.
    """
    powers = np.exp(np.float64(scores) - np.max(scores))
    chances = powers / powers.sum()
    told = [f"{word} {chance:.0%}" for word, chance in zip(words, chances, strict=True)]
    alt = "The next word: " + ", ".join(told)
    fig, axes = chart(7.2, 2.6, alt=alt)
    axes.barh(words, chances, color=KERNEL, height=0.6)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.5)
    axes.set_xticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    for row, (score, chance) in enumerate(zip(scores, chances, strict=True)):
        axes.text(chance + 0.02, row, f"{chance:.0%}, score {score:.2g}", va="center")
    if right is not None:
        moves = np.equal(words, right) - chances
        loss = -np.log(chances[words.index(right)])
        axes.set_title(f"{right} comes next: the loss is {loss:.2f}", fontsize=10, loc="left")
        axes.text(1.25, -0.62, "pull on the score", ha="center", fontsize=9)
        for row, move in enumerate(moves):
            _move(axes, row, move)
        pulls = [f"{word} {move:+.2f}" for word, move in zip(words, moves, strict=True)]
        fig.alt = f"{alt}. {right} is right, the loss {loss:.2f}. Moved: " + ", ".join(pulls)
    return fig


def _move(axes, row, move):
    """An arrow at the right of a word's row: to the right where its score is to grow."""
    colour = ACCENT if move > 0 else ALARM
    arrow = {"arrowstyle": "->", "color": colour, "linewidth": 1.8}
    axes.annotate("", xy=(1.25 + 0.2 * move, row), xytext=(1.25, row), arrowprops=arrow)
    axes.text(1.25, row - 0.28, f"{move:+.2f}", ha="center", fontsize=9)


# ---- online softmax

ROW = (1, 3, 2, 0, 2, 5, 4, 1, 3, 2, 7, 6)  # scores, three a tile
A_TILE = 3


def online_states(row=ROW, tile=A_TILE):
    """(largest, factor, sum) after each tile: the sum so far is multiplied by the factor, then the
    tile's exponentials are added.
    """
    largest, total, states = -np.inf, 0.0, []
    for start in range(0, len(row), tile):
        part = np.array(row[start : start + tile], float)
        new = max(largest, part.max())
        factor = np.exp(largest - new)
        total = total * factor + np.exp(part - new).sum()
        largest = new
        states.append((largest, factor, total))
    return states


def online(tiles):
    """Online softmax after so many tiles of `ROW`: what was seen, the largest value, the sum.

    Bars are exp(value - largest so far). They all shrink whenever a larger value comes.
    """
    states = online_states()
    seen = A_TILE * tiles
    largest, factor, total = states[tiles - 1] if tiles else (-np.inf, 1, 0)
    before = states[tiles - 2][2] if tiles > 1 else 0
    words = f"largest {largest:g}, sum {before:.3f} × {factor:.3f} + this tile = {total:.3f}"
    if not tiles:
        words = "nothing seen yet: largest -inf, sum 0"
    alt = f"Online softmax after {tiles} tiles of {_spaced(ROW)}: {words}"
    fig, axes = chart(7.2, 2.6, alt=alt)
    heights = [np.exp(value - largest) if i < seen else 0 for i, value in enumerate(ROW)]
    colours = [ACCENT if seen - A_TILE <= i < seen else KERNEL for i in range(len(ROW))]
    axes.bar(range(len(ROW)), heights, color=colours, width=0.8)
    for i, value in enumerate(ROW):
        axes.text(i, -0.06, f"{value}" if i < seen else "?", ha="center", va="top", fontsize=10)
    axes.set_ylim(-0.2, 1.25)
    axes.set_xlim(-0.6, len(ROW) - 0.4)
    axes.set_axis_off()
    axes.text(len(ROW) / 2 - 0.5, 1.14, words, ha="center", fontsize=10)
    return fig


def _spaced(numbers):
    return " ".join(map(str, numbers))
