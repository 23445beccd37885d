"""Does one function hold for every product? A grid of shapes and types, against cuBLAS.

    python -m course.kernels.matmul.grid --out grid.json --budget 100 --seed 1

Every form of the kernels is proved against float64 on ragged shapes. Then the function runs on
every shape of the grid (`grid_shapes`): those that its model was fitted by, and held-out ones,
which the seed draws. It is proved there, too, and timed in turn with cuBLAS in its modes. Recorded
are the geometric mean of the speedups over the best rival, and the worst. Each result is written at
once. `--tune` times all forms on the tuning shapes instead, to fit the model. Without a GPU the
forms are proved on small shapes.
"""

import random
import time

import torch

from course.kernels.bench.command import command_line
from course.kernels.bench.grids import Summary, record, replayed, summary
from course.kernels.bench.report import Report
from course.kernels.matmul import choosing, grid_tune
from course.kernels.matmul.forms import TYPES
from course.kernels.matmul.grid_race import Operands
from course.kernels.matmul.grid_shapes import MOST, TUNING, GridShape, drawn
from utils import compare, has_gpu, timing

KINDS = tuple(TYPES)
SMALL = 1 << 22  # multiply-adds of a product that is run without a GPU
SIDES = ("m", "n", "k", "batch")  # of a shape, in the metrics
PATIENCE = 60  # seconds without a result
#: Of a comparison: seconds of GPU time, by which repeats are counted, and the fewest repeats
SECONDS, REPEATS = 0.01, 12


def sets_of(seed: int) -> dict[str, tuple[GridShape, ...]]:
    """What follows a metric's type -> shapes. Without a GPU the small ones."""
    sets = {"": TUNING, "/held_out": drawn(seed)}
    if has_gpu():
        return sets
    return {
        suffix: tuple(each for each in shapes if each.problem("bf16").flops <= 2 * SMALL)
        for suffix, shapes in sets.items()
    }


def races_of(kind: str, shapes) -> list[GridShape]:
    """The shapes of a kind that have a rival: torch multiplies no batch of 8-bit floats.

    The largest product takes too long without tensor cores.
    """
    if kind == "fp8":
        return [shape for shape in shapes if _has_scaled_mm(shape)]
    if kind == "fp32":
        return [shape for shape in shapes if shape.problem(kind).flops <= MOST]
    return list(shapes)


def _has_scaled_mm(shape: GridShape) -> bool:
    return shape.batch == 1 and shape.n % 16 == 0 and shape.k % 16 == 0


def race_all(report: Report, options) -> None:
    """Race all shapes in all types, in an order of chance, while the budget lasts."""
    races = []
    for shapes in sets_of(options.seed).values():
        for kind in options.kinds:
            races += [(kind, shape) for shape in races_of(kind, shapes)]
    random.Random(0).shuffle(races)
    forms = {kind: set() for kind in options.kinds}
    for kind, shape in races:
        problem = shape.problem(kind)
        forms[kind].add((choosing.best(problem).form, kind, problem.along_k))
    grid_tune.compile_all(each for wanted in forms.values() for each in wanted)
    report.put("clock", "compiled, seconds left", round(report.left()))
    for done, (kind, shape) in enumerate(races):
        if report.left() < 3:
            report.put("clock", "not raced", len(races) - done)
            return
        report.attempt(f"{kind}/{shape}", race, report, kind, shape)


def race(report: Report, kind: str, shape: GridShape) -> None:
    """Prove ours, and time it in turn with its rivals."""
    began = time.monotonic()
    given = Operands(kind, shape)
    given.ours()
    error = given.prove()
    if not has_gpu():
        return
    runs = {"ours": replayed(given.ours)}
    for name, run in given.rivals().items():
        try:
            runs[name] = replayed(run)
        except Exception as failure:
            report.failed(f"{kind}/{shape} {name}", failure)
    times = {label: found.median for label, found in compare(runs).timings.items()}
    entry = times | {"error": error, "choice": str(choosing.best(shape.problem(kind)))}
    entry["predicted"] = choosing.predicted(choosing.best(shape.problem(kind)), shape.problem(kind))
    report.put("races", f"{kind}/{shape}", entry | {"seconds": round(time.monotonic() - began, 2)})


def rivals_of(entry: dict) -> dict[str, float]:
    """Their milliseconds."""
    return {name: ms for name, ms in entry.items() if name.startswith(grid_tune.RIVALS)}


def summaries(report: Report, options) -> dict[str, Summary]:
    """Beginning of a metric's name -> what its races come to."""
    found = {}
    for kind in options.kinds:
        for suffix, shapes in sets_of(options.seed).items():
            ratios = {}
            for shape in shapes:
                entry = report.entries["races"].get(f"{kind}/{shape}")
                if entry and rivals_of(entry):
                    ratios[shape] = min(rivals_of(entry).values()) / entry["ours"]
            if ratios:
                found[f"matmul/grid/{kind}{suffix}"] = summary(ratios)
    return found


def table(report: Report, found: dict[str, Summary]) -> str:
    """A line a type and set of shapes, then every race, the weakest first."""
    lines = []
    for start, told in found.items():
        least, count = told.ratios[told.worst], len(told.ratios)
        lines.append(f"{start:<28} {told.mean:.3f}  worst {least:.2f} at {told.worst} ({count})")
    ratios = {
        name: min(rivals_of(entry).values()) / entry["ours"]
        for name, entry in report.entries["races"].items()
        if rivals_of(entry)
    }
    for name in sorted(ratios, key=ratios.get):
        entry = report.entries["races"][name]
        us = f"{entry['ours'] * 1e3:.1f} us, said {entry['predicted']:.1f}"
        lines.append(f"{ratios[name]:5.2f} {name}: {us}; {entry['choice']}")
    return "\n".join(lines)


def arguments():
    """What the command line says."""
    parser = command_line(__doc__, 100)
    add = parser.add_argument
    add("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    add("--seed", type=int, default=1, help="draws the held-out shapes")
    add("--tune", action="store_true", help="time all forms, to fit the model")
    add("--forms", choices=("stay", "share"), help="tune those whose blocks stay, or share k")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    report = Report(options.out, options.budget, PATIENCE)
    report.watch()
    timing.BUDGET, timing.MIN_REPEATS = SECONDS, REPEATS
    report.put("notes", "seed", options.seed)
    if has_gpu():
        torch.zeros(1, device="cuda")  # the context that the compilers' threads use
    if options.tune:
        tune_all(report, options)
        return
    print(f"held-out shapes of seed {options.seed}:", *map(str, drawn(options.seed)), sep="\n  ")
    race_all(report, options)
    found = summaries(report, options)
    record(report, found, SIDES)
    print(table(report, found))
    print("clock:", report.entries["clock"], "wrong:", len(report.entries["errors"]))


def tune_all(report: Report, options) -> None:
    """Compile, prove and time all forms, a type after the other."""
    for kind in options.kinds:
        forms = choosing.forms_of(kind)
        if options.forms:
            forms = [form for form in forms if bool(form.split) == (options.forms == "share")]
        every = [(form, kind, along_k) for form in forms for along_k in grid_tune.layouts(kind)]
        grid_tune.compile_all(every)
        report.put("clock", f"{kind} compiled, seconds left", round(report.left()))
        right = grid_tune.checked(report, kind, forms)
        report.put("clock", f"{kind} checked, seconds left", round(report.left()))
        shapes = races_of(kind, sets_of(options.seed)[""])
        shapes = [shape for shape in shapes if shape.problem(kind).flops <= MOST]
        grid_tune.tune(report, kind, right, shapes)
        print(grid_tune.table(report, kind))
    print("clock:", report.entries["clock"], "wrong:", list(report.entries["errors"]))


if __name__ == "__main__":
    main()
