"""The constants of `choosing`, fitted to what `grid --tune` has measured.

    python -m course.kernels.matmul.fitting tune.json race.json ...

writes model.json, and prints how far the model is off: its error in predicting times, and what
shapes lose because it chooses as it does. What a later file says of the same choice counts; shapes
that are held out do not.
"""

import json
import sys
from dataclasses import asdict, dataclass

import numpy as np

from course.kernels.matmul import choosing
from course.kernels.matmul.choosing import Choice, Costs
from course.kernels.matmul.forms import TYPES, Problem
from course.kernels.matmul.grid_shapes import TUNING
from utils.files import write_whole

BUSY = 0.6  # of a time that memory explains: beyond it, a point says nothing of the form
FEWEST = 6  # points that a form is fitted to
LONG = 20  # microseconds of a point that tells how fast memory is
SWEEPS = 3000
START = 2.0  # microseconds of a launch, at least


@dataclass(frozen=True)
class Point:
    """A measured time. best: of all choices for the problem."""

    choice: Choice
    problem: Problem
    us: float
    best: float


def points_of(paths) -> list[Point]:
    """What the grid's files hold of the tuning shapes."""
    times = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)
        for name, sweep in entries["sweeps"].items():
            times.setdefault(name, {}).update(sweep)
        for name, race in entries["races"].items():
            times.setdefault(name, {})[race["choice"]] = race["ours"] * 1e3
    found = []
    for shape in TUNING:
        for kind in TYPES:
            found += _points(shape.problem(kind), times.get(f"{kind}/{shape}", {}))
    return found


def _points(problem: Problem, times: dict[str, float]) -> list[Point]:
    choices = {str(choice): choice for choice in choosing.choices(problem)}
    known = {choices[label]: us for label, us in times.items() if label in choices}
    best = min(known.values(), default=0)
    return [Point(choice, problem, us, best) for choice, us in known.items()]


def features(point: Point) -> np.ndarray:
    """What a form's costs are multiplied by: start, step, together, tile, piece."""
    work = choosing.work_of(point.choice, point.problem)
    share = choosing.shared_share(work, point.choice.form)
    steps = work.steps * (1 - share), work.steps * share
    return np.array([1.0, *steps, work.tiles, work.pieces])


def nonnegative(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """x ≥ 0 with the least squares of rows x - wanted, by descent along one x after the other."""
    scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-12)
    rows = rows / scale
    x = np.zeros(rows.shape[1])
    left = wanted.copy()
    for _ in range(SWEEPS):
        for i, column in enumerate(rows.T):
            moved = max(0.0, x[i] + column @ left)
            left -= (moved - x[i]) * column
            x[i] = moved
    return x / scale


def fitted(points: list[Point], bytes_per_us: float) -> Costs | None:
    """A form's costs, with the least relative errors, by points that memory does not bound.

    What nobody would choose counts less. None where there are too few points.
    """
    telling = [point for point in points if _memory(point, bytes_per_us) < BUSY * point.us]
    if len(telling) < FEWEST:
        telling = points
    if len(telling) < FEWEST:
        return None
    weight = np.array([(point.best / point.us) ** 0.5 for point in telling])
    rows = np.array([features(point) / point.us for point in telling])
    over = [choosing.OVERLAPPED * _memory(point, bytes_per_us) / point.us for point in telling]
    found = nonnegative(rows * weight[:, None], (1 - np.array(over)) * weight)
    start, step, together, tile, piece = found
    costs = start, step or together, together or step, tile, piece
    return Costs(*(round(float(each), 5) for each in costs))


def _memory(point: Point, bytes_per_us: float) -> float:
    return choosing.moved(point.problem) / bytes_per_us


def fit(points: list[Point], before: dict) -> dict:
    """The model, as choosing.py reads it. before: its costs of forms that have no points stay."""
    long = [point for point in points if point.us > LONG]
    rates = [choosing.moved(point.problem) / (point.us - START) for point in long]
    bytes_per_us = round(max(before["bytes_per_us"], *rates))
    forms = {}
    for point in points:
        forms.setdefault(choosing.key(point.choice.form, point.problem.kind), []).append(point)
    costs = {key: fitted(own, bytes_per_us) for key, own in forms.items()}
    found = {key: asdict(own) for key, own in costs.items() if own}
    kept = {key: own for key, own in before["forms"].items() if key not in costs}
    known = kept | found
    for key, own in forms.items():
        if key in found and not any(features(point)[-1] for point in own):
            found[key]["piece"] = _piece_of_bf16(key, known)
    return before | {"bytes_per_us": bytes_per_us, "forms": dict(sorted(known.items()))}


def _piece_of_bf16(key: str, known: dict) -> float:
    """What a piece costs where none was timed: sums are float32 in every type."""
    _, _, form = key.partition("/")
    return known.get(f"bf16/{form}", {}).get("piece", 0.0)


def report(points: list[Point]) -> str:
    """How far the model is off, and what its choices lose."""
    points = [each for each in points if choosing.is_measured(each.choice.form, each.problem.kind)]
    errors = [np.log(choosing.predicted(each.choice, each.problem) / each.us) for each in points]
    lines = [f"median error of a time: {np.expm1(np.median(np.abs(errors))):.1%}"]
    by_problem = {}
    for point in points:
        by_problem.setdefault(point.problem, {})[point.choice] = point.us
    losses = []
    for problem, times in by_problem.items():
        said = min(times, key=lambda choice: choosing.predicted(choice, problem))
        best = min(times, key=times.get)
        losses.append(times[said] / times[best])
        us = f"{times[said]:.1f} us (said {choosing.predicted(said, problem):.1f})"
        lines.append(
            f"{losses[-1]:5.2f} {problem.kind} {problem}: {said} {us}, best {best} "
            f"{times[best]:.1f} (said {choosing.predicted(best, problem):.1f})"
        )
    lines.append(f"choices take {np.exp(np.mean(np.log(losses))):.3f} of the best's time")
    return "\n".join(lines)


def main() -> None:
    points = points_of(sys.argv[1:])
    model = fit(points, choosing.measured())
    write_whole(choosing.MEASURED, json.dumps(model, indent=1) + "\n")
    choosing.measured.cache_clear()
    choosing.costs.cache_clear()
    print(report(points))


if __name__ == "__main__":
    main()
