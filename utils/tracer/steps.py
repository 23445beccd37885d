"""Step by step: which thread accesses which element; a slider in a notebook, a picture on paper."""

import html
from collections import defaultdict
from functools import cached_property
from itertools import chain

import numpy as np

from ..plots import ALARM, INK, figure, widget_view
from . import counts
from .pictures import (
    BLANK,
    LETTERS,
    WIDTH,
    cell_text,
    code_of,
    lane_colour,
    rgb,
    show_cells,
    warp_name,
)
from .record import TraceError

VERBS = {"read": "read", "write": "write", "atomic": "change"}
LEGEND = (
    "colour and number: the lane (×n: n lanes); pale blue: read before; pale orange: written before"
)
BEEN_READ, BEEN_WRITTEN = "#DCEAF3", "#F6DDB8"
MOST_CELLS = 4096
MOST_WARPS = 64
STILL_STEPS = 4
TALLEST, TOGETHER = 2.6, 4.8  # inches of a step's grids, and of those of all steps on a page
LINED = 2.5  # points: smaller cells have no lines between them
ACROSS = 32
LETTERS_A_CELL = 0.7  # of a cell's width: two digits fit


class Steps:
    """The accesses of one warp in order; lanes that access at the same place do so in one step.

    In a notebook it shows a slider and a play button; elsewhere, and on paper, a few of the steps.
    `len(steps)` counts them, `steps.draw(n)` draws one, `steps.still()` those few.
    """

    def __init__(self, trace, warp=0):
        self.trace = trace
        warps = trace.blocks * trace.events.warps_a_block
        if not 0 <= warp < warps:
            raise TraceError(f"there are {warps:,} warps, from 0; not {warp}")
        self.warp = warp

    @cached_property
    def _steps(self):
        """For each step, the indices of its events."""
        return ordered(self.trace.events, self.warp)

    @cached_property
    def _arrays(self):
        """The arrays that the warp uses, as memory numbers; local arrays are left out."""
        events = self.trace.events
        first = {}
        for i in chain(*self._steps):
            memory = events.memory_of(i)
            place = memory.root, memory.start, memory.shape
            first.setdefault(place, int(events.memory[i]))
        return list(first.values())

    def __len__(self):
        return len(self._steps)

    def describe(self, number):
        """Step `number` in words: the line, and what it does to which array."""
        events = self.trace.events
        step = self._steps[number]
        first = step[0]
        site = events.site_of(first)
        verb = VERBS[events.operation_of(first)]
        elements = list(dict.fromkeys(map(events.element_of, step)))
        shown = elements[0]
        if len(elements) > 1:
            shown += f" … {elements[-1]}"
        lanes = f"{len(step)} lanes {verb}"
        if len(step) == 1:
            lanes = f"lane {events.lane[first]} {verb}s"
        return (
            f"step {number + 1} of {len(self)} · {code_of(self.trace, site.filename, site.line)}\n"
            f"{warp_name(self.trace, self.warp)}: {lanes} {shown}"
        )

    def draw(self, number=0):
        """One step, from 0: elements in the colour and number of the lane that accesses them."""
        return self._figure([number])

    def still(self):
        """The first step of each access in the source, one below the other."""
        firsts = {}
        for number, step in enumerate(self._steps):
            firsts.setdefault(self.trace.events.site[step[0]], number)
        return self._figure(list(firsts.values())[:STILL_STEPS])

    def _figure(self, numbers):
        if not len(self):
            raise TraceError(
                f"{warp_name(self.trace, self.warp)} accesses no global or shared memory"
            )
        grids = [layout(self.trace.events.memories[number]) for number in self._arrays]
        widths = [min(columns, ACROSS) + 3 for _, columns in grids]
        inch = (WIDTH - 0.3) / sum(widths)  # of one cell of an array that is not too wide
        letters = min(LETTERS, 72 * inch * LETTERS_A_CELL)
        rows = [rows * min(1, ACROSS / columns) for rows, columns in grids]
        tall = min(max(inch * max(rows), 0.3), TALLEST, TOGETHER / len(numbers))
        texts = [self.describe(number) for number in numbers]
        heights = [tall + 0.75] * len(texts)
        heights[-1] += 0.19  # for the legend, so that the last picture is as large as the others
        fig = figure(WIDTH, sum(heights), alt="\n".join(texts))
        parts = fig.subfigures(len(texts), 1, squeeze=False, height_ratios=heights)[:, 0]
        for part, number, text in zip(parts, numbers, texts, strict=True):
            part.suptitle(
                text,
                fontsize=LETTERS,
                x=0.01,
                ha="left",
                family="monospace",
                color=INK,
            )
            panels = part.subplots(1, len(grids), width_ratios=widths, squeeze=False)[0]
            for axes, memory, grid in zip(panels, self._arrays, grids, strict=True):
                fine = 72 * tall / grid[0] > LINED
                self._panel(axes, memory, grid, number, letters, fine)
        parts[-1].supxlabel(
            LEGEND,
            fontsize=LETTERS,
            x=0.01,
            ha="left",
            color=INK,
        )
        return fig

    def _panel(self, axes, number, grid, now, letters, fine):
        """One array at step `now`: what was read and written before, and who accesses what now.

        fine: whether lines between the cells leave enough of them to see.
        """
        events = self.trace.events
        memory = self.trace.events.memories[number]
        rows, columns = grid
        picture = np.empty((rows * columns, 3))
        picture[:] = 1
        picture[: int(np.prod(memory.shape))] = rgb(BLANK)
        labels = defaultdict(list)
        kinds = set()
        for step in range(now + 1):
            for i in self._steps[step]:
                cell = cell_of(events, i, memory)
                if cell is None or cell >= len(picture):
                    continue
                operation = events.operation_of(i)
                if step == now:
                    labels[cell].append(int(events.lane[i]))
                    kinds.add(operation)
                elif operation == "read":
                    picture[cell] = rgb(BEEN_READ)
                else:
                    picture[cell] = rgb(BEEN_WRITTEN)
        for cell, lanes in labels.items():
            colour, _ = lane_colour(lanes[0])
            picture[cell] = colour[:3]
        show_cells(axes, picture.reshape(rows, columns, 3), fine=columns <= 64 and fine)
        axes.set(aspect="equal", anchor="NW")
        outline(axes, memory, rows, columns)
        if columns <= ACROSS and rows <= 16:
            for cell, lanes in labels.items():
                axes.text(
                    cell % columns,
                    cell // columns,
                    cell_text(lanes),
                    ha="center",
                    va="center",
                    fontsize=letters,
                    color=lane_colour(lanes[0])[1],
                )
        axes.set_xticks([])
        axes.set_yticks([])
        doing = f": {' and '.join(sorted(kinds))}" if kinds else ""
        axes.set_title(
            f"{memory.name} ({memory.space}){doing}",
            fontsize=LETTERS,
            loc="left",
            color=ALARM if kinds else INK,
        )

    # ---- in a notebook

    def _page(self, number):
        return self.draw(number)._repr_mimebundle_()["text/html"]

    def widget(self):
        """Slider, play button, choice of warp and picture, as an ipywidgets box."""
        import ipywidgets

        warps = self.trace.blocks * self.trace.events.warps_a_block
        offered = sorted({*range(min(warps, MOST_WARPS)), self.warp})
        choice = ipywidgets.Dropdown(
            options=[(warp_name(self.trace, warp), warp) for warp in offered],
            value=self.warp,
            description="of",
        )
        slider = ipywidgets.IntSlider(
            1, 1, max(len(self), 1), description="step", continuous_update=False
        )
        play = ipywidgets.Play(1, 1, max(len(self), 1), interval=900, show_repeat=False)
        ipywidgets.jslink((play, "value"), (slider, "value"))
        picture = ipywidgets.HTML()
        words = ipywidgets.HTML()
        of_warp = {self.warp: self}
        pictures = {}

        def show(*_):
            steps = of_warp.setdefault(choice.value, Steps(self.trace, choice.value))
            slider.max = play.max = max(len(steps), 1)
            if not len(steps):
                picture.value = ""
                words.value = "This warp accesses no global or shared memory."
                return
            number = slider.value - 1
            if (choice.value, number) not in pictures:
                pictures[choice.value, number] = steps._page(number)
            picture.value = pictures[choice.value, number]
            words.value = html.escape(steps.describe(number).splitlines()[1])

        slider.observe(show, "value")
        choice.observe(show, "value")
        show()
        return ipywidgets.VBox([ipywidgets.HBox([play, slider, choice]), picture, words])

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.still()._repr_mimebundle_() | widget_view(self.widget())


def cell_of(events, event, memory):
    """The number of an array's element that an event accesses; None if it is another array's."""
    own = events.memory_of(event)
    if (own.root, own.shape) != (memory.root, memory.shape):
        return None
    index = own.index(int(events.offset[event]))
    if index is None:
        return None
    return int(np.ravel_multi_index(index, memory.shape))


def outline(axes, memory, rows, columns):
    """A thin frame around an array."""
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (-0.5, -0.5),
            columns,
            rows,
            fill=False,
            edgecolor="#BBBBBB",
            linewidth=0.8,
            clip_on=False,
        )
    )


def layout(memory):
    """(rows, columns) in which to draw an array: last axis across, a single one in lines of 32."""
    if len(memory.shape) <= 1:
        size = int(np.prod(memory.shape))
        columns = min(size, ACROSS) or 1
        rows = -(-size // columns)
    else:
        columns = memory.shape[-1]
        rows = int(np.prod(memory.shape[:-1]))
    most = max(1, MOST_CELLS // max(columns, 1))
    return min(rows, most) or 1, columns or 1


def ordered(events, warp):
    """The warp's accesses to global and shared memory as steps, in the order of its lanes."""
    chosen = events.accesses("global", "shared")
    chosen = chosen[events.warp[chosen] == warp]
    numbers, first = counts.requests(events, chosen)
    steps = [chosen[numbers == number] for number in range(len(first))]

    def when(step):
        first = step[0]
        return events.epoch[first], events.step[step].min(), events.site[first]

    return sorted(steps, key=when)
