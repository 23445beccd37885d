"""How near a learner's predictions come, over all chapters, beside the model's estimates."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from course import progress
from utils.estimate.statement import JUDGED
from utils.plots import ACCENT, INK, OTHERS, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from utils.plots.picture import Picture

#: When it was made -> what `Prediction` keeps of it; a learner's file may hold anything
Predictions = Mapping[str, Any]
RECENT = 5  # of the last predictions a median or a share is drawn
FARTHEST = 64  # a factor: what is further off is drawn there
NOTHING = (
    "No prediction is kept yet. After a prediction, run the cell that answers it, come back, and "
    "say what it was: then this shows how near you come."
)


class Nothing:
    """What is shown before anything is kept."""

    def __repr__(self) -> str:
        return NOTHING


def guesses(kept: Predictions | None = None) -> "Picture | Nothing":
    """The kept predictions in order: factors of numbers, and the share of choices that were right.

    kept: as `progress.load()["predictions"]` has them, which is what is shown unless given.
    """
    kept = progress.load()["predictions"] if kept is None else kept
    factors, right = factors_of(kept), choices_of(kept)
    every: list[tuple[Callable[..., None], list]]
    every = [(draw_factors, factors), (draw_choices, right)]
    parts = [part for part in every if part[1]]
    if not parts:
        return Nothing()
    fig = figure(7.5, 0.6 + 2.2 * len(parts), alt=in_words(factors, right))
    for place, (draw, values) in enumerate(parts, 1):
        draw(fig.add_subplot(len(parts), 1, place), values)
    return fig


def headline_of(kept: Predictions) -> str:
    """A few words on kept predictions; "" where there are none."""
    factors, right = factors_of(kept), choices_of(kept)
    if not factors and not right:
        return ""
    said = f"predictions kept: {len(factors) + len(right)}"
    if factors:
        said += (
            f", the last numbers off by a factor of {recent(factors, statistics.median)[-1]:.2g}"
        )
    return said


def factors_of(kept: Predictions) -> list[float]:
    """By how large a factor each number was off, in the order in which they were kept."""
    pairs = ((one.get("guess", 0), one.get("was", 0)) for _, one in in_order(kept))
    numbers = [pair for pair in pairs if all(isinstance(n, (int, float)) and n > 0 for n in pair)]
    return [max(guess / was, was / guess) for guess, was in numbers]


def choices_of(kept: Predictions) -> list[bool]:
    """Whether each choice was right, in the order in which they were kept."""
    return [one["right"] for _, one in in_order(kept) if isinstance(one.get("right"), bool)]


def in_order(kept: Predictions) -> list[tuple[str, dict]]:
    """(when, what) of the predictions that can be read, the first one first."""
    return sorted((when, one) for when, one in kept.items() if isinstance(one, dict))


def recent(values: Sequence[float], summary: Callable[[Sequence[float]], float]) -> list[float]:
    """A summary of each value with those before it, RECENT of them at most."""
    return [summary(values[max(0, n - RECENT) : n]) for n in range(1, len(values) + 1)]


def model_factor() -> float:
    """The factor within which nine in ten of the model's estimates lie."""
    gpus = json.loads(JUDGED.read_text(encoding="utf-8"))["gpus"]
    factor: float = gpus["H200"]["both"]["all"]["p90_factor"]
    return factor


def in_words(factors: Sequence[float], right: Sequence[bool]) -> str:
    """The picture for who cannot see it."""
    parts = []
    if factors:
        middle = recent(factors, statistics.median)
        parts.append(
            f"{len(factors)} predicted numbers: the first ones off by a factor of "
            f"{middle[min(RECENT, len(middle)) - 1]:.2g}, the last by {middle[-1]:.2g}; nine in "
            f"ten of the model's estimates lie within {model_factor():.1f}"
        )
    if right:
        parts.append(f"{sum(right)} of {len(right)} choices right")
    return "; ".join(parts)


def draw_factors(axes: "Axes", factors: Sequence[float]) -> None:
    """A dot for each number, the median of the last few, and the model's factor."""
    places = range(1, len(factors) + 1)
    axes.plot(places, [min(f, FARTHEST) for f in factors], "o", color=OTHERS, label="a prediction")
    middle = [min(f, FARTHEST) for f in recent(factors, statistics.median)]
    axes.plot(places, middle, color=ACCENT, label=f"median of the last {RECENT}")
    axes.axhline(model_factor(), color=INK, linewidth=0.8, linestyle=":")
    axes.annotate(
        "nine in ten of the model's estimates",
        (0.01, model_factor()),
        (0, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=8,
        color=INK,
    )
    axes.set(yscale="log", ylim=(0.93, 1.3 * FARTHEST), ylabel="off by a factor of")
    ticks = [1, 2, 4, 8, 16, 32, FARTHEST]
    axes.set_yticks(ticks, [*map(str, ticks[:-1]), f"{FARTHEST} or more"])
    axes.minorticks_off()
    axes.set_xlabel("your predicted numbers, in order")
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)


def draw_choices(axes: "Axes", right: Sequence[bool]) -> None:
    """A dot for each choice, at the top if it was right, and the share of the last few."""
    places = range(1, len(right) + 1)
    axes.plot(places, list(map(int, right)), "o", color=OTHERS, label="a choice")
    share = recent(list(map(int, right)), statistics.mean)
    axes.plot(places, share, color=ACCENT, label=f"share of the last {RECENT}")
    axes.set(ylim=(-0.15, 1.15), ylabel="right")
    axes.set_yticks([0, 0.5, 1], ["no", "half", "yes"])
    axes.set_xlabel("your choices, in order")
    axes.legend(frameon=False, fontsize=8, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
