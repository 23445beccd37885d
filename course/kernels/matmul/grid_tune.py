"""Every form on every tuning shape: the times that the model of `choosing` is fitted to."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from course.kernels.bench.grids import replayed
from course.kernels.bench.report import Report
from course.kernels.matmul import choosing
from course.kernels.matmul.forms import kernel
from course.kernels.matmul.grid_race import Operands
from course.kernels.matmul.grid_shapes import GridShape
from utils import compare, has_gpu, pick

RIVALS = ("cublas", "scaled_mm")
COMPILERS = pick(gpu=14, cpu=1)
#: (m, n, k), batch: no side is a multiple of a tile's, and k is many steps or one
RAGGED = (
    GridShape(300, 328, 1000, batch=2),
    GridShape(130, 72, 520),
    GridShape(77, 201, 24, batch=3),
)


def compile_all(wanted) -> None:
    """Compile (form, kind, along_k), several at a time. An error is left to the launch."""

    def attempt(each):
        with contextlib.suppress(Exception):
            kernel(*each)

    with ThreadPoolExecutor(COMPILERS) as pool:
        list(pool.map(attempt, wanted))


def layouts(kind: str) -> tuple[bool, ...]:
    """How b may be stored: along_k or not."""
    return {"fp32": (False,), "tf32": (True,), "fp8": (True,)}.get(kind, (False, True))


def checked(report: Report, kind: str, forms) -> tuple:
    """Those forms that are right: on ragged shapes, streamed and whole, against float64."""
    right = []
    for form in forms:
        try:
            errors = [error_of(kind, form, shape) for shape in RAGGED]
        except Exception as error:
            report.failed(f"{kind} {form}", error)
        else:
            report.put("checks", f"{kind} {form}", max(errors))
            right.append(form)
    return tuple(right)


def error_of(kind: str, form, shape: GridShape) -> float:
    """The largest error of a form's choices on a shape, in both layouts."""
    worst = 0.0
    for linear in layouts(kind):
        shape = GridShape(shape.m, shape.n, shape.k, shape.batch, linear)
        given = Operands(kind, shape)
        for choice in choosing.choices(shape.problem(kind), (form,)):
            given.c.fill_(torch.nan)
            given.ours(choice)
            worst = max(worst, given.prove())
    return worst


def tune(report: Report, kind: str, forms, shapes) -> None:
    """Time all choices of all shapes, in turn with cuBLAS; keep microseconds."""
    for shape in shapes:
        if report.left() < 5:
            report.put("clock", "not tuned", f"{kind} {shape} and after")
            return
        report.attempt(f"tune {kind} {shape}", _tune_one, report, kind, forms, shape)


def _tune_one(report: Report, kind: str, forms, shape: GridShape) -> None:
    given = Operands(kind, shape)
    problem = shape.problem(kind)
    runs = {}
    for choice in choosing.choices(problem, forms):
        given.c.fill_(torch.nan)
        given.ours(choice)
        given.prove()
        runs[str(choice)] = replayed(partial(given.ours, choice))
    if not has_gpu():
        return
    for name, run in given.rivals().items():
        try:
            runs[name] = replayed(run)
        except Exception as error:
            report.failed(f"{kind} {shape} {name}", error)
    timings = compare(runs).timings
    times = {label: round(timing.median * 1e3, 3) for label, timing in timings.items()}
    report.put("sweeps", f"{kind}/{shape}", times)


def table(report: Report, kind: str) -> str:
    """A line a shape: cuBLAS, the model's choice and the best, in microseconds."""
    lines = []
    for name, times in report.entries["sweeps"].items():
        if not name.startswith(f"{kind}/"):
            continue
        theirs = {label: us for label, us in times.items() if label.startswith(RIVALS)}
        ours = {label: us for label, us in times.items() if label not in theirs}
        ranked = sorted(ours, key=ours.get)[:3]
        if not ranked:
            continue
        best = ", ".join(f"{label}: {ours[label]:.1f}" for label in ranked)
        rival = min(theirs.values(), default=0)
        lines.append(f"{rival / ours[ranked[0]]:5.2f} {name} {rival:.1f}; {best}")
    return "\n".join(lines)
