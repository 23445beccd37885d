"""Do the row kernels hold for every shape? A grid of shapes, against torch and torch.compile.

    python -m course.kernels.row_kernels.grid --out grid.json --budget 100 --seed 1

Every kernel runs on every shape of the grid (`grid_shapes`): those that its deals were chosen by,
and held-out ones, which the seed draws. It is proved against float64, then timed in turn with its
rivals. Recorded are the geometric mean of the speedups over the best rival, and the worst. Each
result is written at once; what the file has already is not measured again, unless the kernel deals
those rows in another way by now. `--sweep` times other ways to deal the tuning shapes, too. Without
a GPU the kernels that run everywhere are proved on a few short rows.
"""

import json
import multiprocessing
import os
import queue
import random
import time
from dataclasses import replace

import torch

from course.kernels.bench.command import command_line
from course.kernels.bench.grids import Summary, record, summary
from course.kernels.bench.report import Report
from course.kernels.row_kernels.grid_race import RIVALS, Job, work
from course.kernels.row_kernels.grid_shapes import TUNING, GridShape, drawn
from course.kernels.row_kernels.grid_sweep import chosen, others
from course.kernels.row_kernels.operations import OPERATIONS
from course.kernels.row_kernels.rightness import DTYPES
from utils import has_gpu
from utils.engine import gpu

#: Operations of the grid, by the name in the metrics
GRID = (
    "softmax",
    "layernorm",
    "layernorm_backward",
    "rmsnorm",
    "rmsnorm_backward",
    "cross_entropy_forward",
    "cross_entropy",
)
SWEPT = ("softmax", "layernorm", "layernorm_backward")
SIDES = ("rows", "columns", "gap")  # of a shape, in the metrics
PATIENCE = 100  # seconds without a result
MEMORY = 7 << 30  # bytes of a GPU that a process may hold
FEW, SHORT = 3, 600  # rows and columns that are proved without a GPU


def sets_of(seed: int) -> dict[str, tuple[GridShape, ...]]:
    """What follows a metric's type -> shapes. Without a GPU a few rows of the shorter ones."""
    sets = {"": TUNING, "/held_out": drawn(seed)}
    if has_gpu():
        return sets
    few = {}
    for suffix, shapes in sets.items():
        short = [shape for shape in shapes if shape.columns <= SHORT]
        few[suffix] = tuple(replace(shape, rows=min(FEW, shape.rows)) for shape in short)
    return few


def jobs_of(options) -> list[Job]:
    """What is to be raced, in an order of chance."""
    jobs = []
    for suffix, shapes in sets_of(options.seed).items():
        for name in options.operations:
            for dtype in options.dtypes:
                for shape in shapes_of(shapes, name, dtype, options.in_turn):
                    extra = ()
                    if options.sweep and not suffix and name in SWEPT:
                        extra = others(OPERATIONS[name], shape, DTYPES[dtype].itemsize)
                    jobs.append(Job(name, dtype, shape, extra))
    random.Random(0).shuffle(jobs)
    return jobs


def dealt(job: Job) -> str:
    """How our kernel deals the job's rows."""
    return str(chosen(OPERATIONS[job.operation], job.shape, DTYPES[job.dtype].itemsize))


def shapes_of(shapes, name: str, dtype: str, in_turn: bool = False) -> list[GridShape]:
    """Those shapes on which an operation is raced in a type: all, or every third."""
    if not in_turn:
        return list(shapes)
    first = (GRID.index(name) + list(DTYPES).index(dtype)) % len(DTYPES)
    return list(shapes[first :: len(DTYPES)])


class Pool:
    """Processes that race one job after the other."""

    def __init__(self, count: int):
        context = multiprocessing.get_context("spawn")
        self.jobs, self.results = context.Queue(), context.Queue()
        self.lock = context.Lock()
        self.processes = []
        for _ in range(count):
            arguments = self.lock, self.jobs, self.results
            process = context.Process(target=work, args=arguments, daemon=True)
            process.start()
            self.processes.append(process)

    def alive(self) -> bool:
        return any(process.is_alive() for process in self.processes)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()


def race_all(report: Report, jobs: list[Job], count: int) -> None:
    """Race what the report lacks, while the budget lasts."""
    done = {name: entry.get("dealt") for name, entry in report.entries["races"].items()}
    wanted = [job for job in jobs if done.get(str(job)) != dealt(job)]
    pool = Pool(count)
    for job in wanted:
        pool.jobs.put(job)
    missing = len(wanted)
    latest = time.monotonic()
    while missing and report.left() > 0 and pool.alive():
        try:
            job, entry = pool.results.get(timeout=1)
        except queue.Empty:
            if time.monotonic() - latest > PATIENCE:
                break
            continue
        latest = time.monotonic()
        missing -= 1
        report.put("races", str(job), entry | {"dealt": dealt(job)})
        for label, why in entry["wrong"].items():
            report.put("errors", f"{job} {label}", why)
    report.put("clock", "not raced", missing)
    pool.stop()


def speedup(entry: dict) -> float | None:
    """Of ours over the best rival; None where ours or all rivals are missing."""
    rivals = [entry[name] for name in RIVALS if name in entry]
    if "ours" not in entry or not rivals:
        return None
    return min(rivals) / entry["ours"]


def summaries(report: Report, options) -> dict[str, Summary]:
    """Beginning of a metric's name -> what its races come to."""
    found = {}
    for name in options.operations:
        for dtype in options.dtypes:
            for suffix, shapes in sets_of(options.seed).items():
                ratios = {}
                for shape in shapes_of(shapes, name, dtype, options.in_turn):
                    entry = report.entries["races"].get(str(Job(name, dtype, shape)))
                    ratio = entry and speedup(entry)
                    if ratio:
                        ratios[shape] = ratio
                if ratios:
                    found[f"{name}/grid/{dtype}{suffix}"] = summary(ratios)
    return found


def table(report: Report, found: dict) -> str:
    """A line a kernel, type and set of shapes, then the weakest races."""
    lines = []
    for start, told in found.items():
        least, count = told.ratios[told.worst], len(told.ratios)
        line = f"{start:<40} {told.mean:6.3f}  worst {least:5.2f} at {told.worst} ({count} shapes)"
        lines.append(line)
    ratios = {}
    for name, entry in report.entries["races"].items():
        ratio = speedup(entry)
        if ratio:
            ratios[name] = ratio
    lines.append("weakest:")
    for name in sorted(ratios, key=ratios.get)[:25]:
        entry = report.entries["races"][name]
        times = {
            label: round(entry[label] * 1e3, 1) for label in ("ours", *RIVALS) if label in entry
        }
        lines.append(f"  {ratios[name]:5.2f}  {name}  µs: {times}")
    return "\n".join(lines)


def processes() -> int:
    """How many race: a core stays free, and each may need `MEMORY` of the GPU's."""
    cores = (os.cpu_count() or 2) - 1
    room = gpu().memory_bytes // MEMORY if has_gpu() else cores
    return max(1, min(cores, room))


def arguments():
    """What the command line says."""
    parser = command_line(__doc__, 100)
    add = parser.add_argument
    add("--operations", nargs="*", default=list(GRID), choices=GRID)
    add("--dtypes", nargs="*", default=list(DTYPES), choices=DTYPES)
    add("--seed", type=int, default=1, help="draws the held-out shapes")
    add("--sweep", action="store_true", help="time other ways to deal the tuning shapes, too")
    add("--in-turn", action="store_true", help="each shape in one type only: a third of the time")
    add("--processes", type=int, default=processes())
    return parser.parse_args()


def main() -> None:
    options = arguments()
    report = Report(options.out, options.budget)
    if options.out.exists():  # go on
        report.entries["races"] = json.loads(options.out.read_text())["races"]
    print(f"held-out shapes of seed {options.seed}:", *map(str, drawn(options.seed)), sep="\n  ")
    report.put("notes", "torch", torch.__version__)
    report.put("notes", "seed", options.seed)
    race_all(report, jobs_of(options), options.processes)
    found = summaries(report, options)
    record(report, found, SIDES)
    print(table(report, found))
    print("clock:", report.entries["clock"], "wrong:", len(report.entries["errors"]))


if __name__ == "__main__":
    main()
