"""Pictures of serving: who computes what in which step, and whose the cache's blocks are."""

from course.kernels.language_model.serving.timeline import Moment, Timeline
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, svg
from utils.plots.svg import FAINT, INK

BLUE, YELLOW, GREEN = BLOCK_COLOURS[:3]
#: What a request does in a step -> its colour
COLOURS = {"waits": FAINT, "prompt": YELLOW, "writes": GREEN, "preempted": ALARM}
WORDS = {"waits": "waits", "prompt": "its prompt is read", "writes": "writes a token"}
WIDTH, LEFT, RIGHT = 720, 34, 10
ROW, TOP, GAP = 22, 44, 26
BLOCK_HEIGHT = 34


def steps(timeline: Timeline, step: int):
    """All requests up to the end of a step, and the blocks of the cache then."""
    moments = timeline.moments
    names = list(timeline.came)
    column = (WIDTH - LEFT - RIGHT) / len(moments)
    blocks_at = TOP + ROW * len(names) + GAP + 18
    drawing = svg.Drawing(WIDTH, blocks_at + BLOCK_HEIGHT + 14, alt=said(timeline, step))
    _legend(drawing)
    for row, name in enumerate(names):
        y = TOP + ROW * row
        drawing.text(LEFT - 16, y + ROW / 2, name, size=14)
        for number, moment in enumerate(moments[: step + 1]):
            doing = moment.doing.get(name)
            if doing:
                x = LEFT + column * number
                drawing.box(x, y + 2, column - 1, ROW - 4, fill=COLOURS[doing])
        if timeline.first[name] <= step:
            _first_token(drawing, LEFT + column * (timeline.first[name] + 1), y)
    now = LEFT + column * (step + 1)
    drawing.line(now, TOP - 4, now, TOP + ROW * len(names) + 4, colour=INK, thick=1.5)
    drawing.text_from(LEFT - 24, blocks_at - 16, summary(timeline, step), size=14)
    _blocks(drawing, moments[step], blocks_at)
    return drawing


def _legend(drawing) -> None:
    x = LEFT
    for doing, words in WORDS.items():
        drawing.box(x, 12, 16, 16, fill=COLOURS[doing])
        drawing.text_from(x + 22, 20, words, size=13)
        x += 46 + 8 * len(words)
    drawing.box(x, 12, 16, 16, fill=COLOURS["preempted"])
    drawing.text_from(x + 22, 20, "has to go", size=13)
    _first_token(drawing, x + 120, 9)
    drawing.text_from(x + 128, 20, "first token", size=13)


def _first_token(drawing, x: float, y: float) -> None:
    drawing.line(x - 1, y + 1, x - 1, y + ROW - 1, colour=svg.strong(ACCENT), thick=4)


def _blocks(drawing, moment: Moment, y: float) -> None:
    """The cache: whose each block is; who shares one stands there, too."""
    width = (WIDTH - LEFT - RIGHT + 24) / len(moment.owners)
    for number, owners in enumerate(moment.owners):
        x = LEFT - 24 + width * number
        colour = "none"
        if owners:
            colour = YELLOW if len(owners) > 1 else BLUE
        drawing.box(x, y, width - 3, BLOCK_HEIGHT, fill=colour, line=svg.GREY)
        if owners:
            size = 15 if len(owners) < 4 else 45 / len(owners) + 3
            colour = svg.ON_COLOUR
            drawing.text(
                x + width / 2 - 1.5, y + BLOCK_HEIGHT / 2, owners, size=size, colour=colour
            )


def summary(timeline: Timeline, step: int) -> str:
    """A step in numbers."""
    moment = timeline.moments[step]
    waiting = list(moment.doing.values()).count("waits")
    free = moment.owners.count("")
    written = sum(moment.written.values())
    return (
        f"step {step}: {sum(moment.tokens.values())} tokens computed, {written} written so far, "
        f"{waiting} wait; {free} of {len(moment.owners)} blocks are free"
    )


def said(timeline: Timeline, step: int) -> str:
    """The picture in words."""
    moment = timeline.moments[step]
    what = ", ".join(
        f"{name} {doing}" + (f" ({moment.tokens[name]} tokens)" if name in moment.tokens else "")
        for name, doing in moment.doing.items()
    )
    blocks = " ".join(owners or "-" for owners in moment.owners)
    return f"{summary(timeline, step)}. {what or 'nobody is there'}. Blocks: {blocks}"
