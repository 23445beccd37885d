"""Checks and times NVIDIA's libraries for the chapter's table, and keeps what snippets print.

    python -m course.libraries.bench --out libraries.json [--budget 150] [--parts tasks ...]

Each program checks its result against float64 before it is timed. Each result is written as soon
as it is there, and handed to the recording command where that runs this one. An error is written
down and does not end the run. Without a GPU everything that can run is run, in small sizes, and
nothing is timed.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

from course.kernels.bench.command import command_line
from course.kernels.bench.report import Report
from course.libraries import programs, recorded
from course.libraries.tasks import TASKS, exactly, inputs_of
from utils import results
from utils.engine import gpu, has_gpu
from utils.hardware import data_sheet, fp32_roofs
from utils.timing import benchmark, copy_bandwidth

SNIPPETS = tuple(sorted(path.stem for path in recorded.SNIPPETS.glob("*.py")))
#: Programs that only a GPU can run, with their arguments for it.
GPU_PROGRAMS = {
    "sparse24": (8192, "time"),
    "lt_fp8": (8192, "time"),
    "cutlass_gemm": (8192, "time"),
    "xt": (8192, "time"),
}
#: Programs that the chapter runs everywhere, with arguments for a GPU.
TIMED_PROGRAMS = {"lt": (4096, 4096, 256, "time"), "plans": (4096, "time")}
CHECKED_PROGRAMS = ("gemv", "pi", "conv", "thrust", "cub")
TRAPS = ("leading_dimension", "rows_and_columns", "stream", "tf32", "late")
PACKAGES = (
    "torch",
    "cupy-cuda13x",
    "nvmath-python",
    "cuda-cccl",
    "nvidia-cudnn-frontend",
    "nvidia-cudnn-cu13",
    "nvidia-cublas",
    "nvidia-cusparselt-cu13",
    "nvidia-cutlass",
)


def keep(report: Report, name: str, text: str) -> None:
    """Keep what a program printed, to be shown where it cannot run."""
    lines = [line for line in text.splitlines() if not line.startswith("TIME ")]
    entry = {
        "gpu": gpu().name if has_gpu() else "",
        "driver": gpu().driver if has_gpu() else "",
        "date": results.now(),
        "versions": package_versions(),
        "text": "\n".join(lines),
    }
    report.put("outputs", name, entry)


def package_versions() -> dict[str, str]:
    """Versions of NVIDIA's packages that are installed here."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def sized(arguments) -> tuple:
    """A program's arguments: these on a GPU, none without."""
    return arguments if has_gpu() else ()


# ---- the table's tasks


def roofs() -> dict[str, float]:
    """What this GPU can do at most: bytes/s of a copy (measured), operations/s (its data sheet)."""
    name = gpu().name.removeprefix("NVIDIA ")
    _, fp32, _ = fp32_roofs()
    found = {"copy": copy_bandwidth(), "fp32": fp32}
    try:
        found["tensor"] = data_sheet(name)["tensor16_tflops"] * 1e12
    except KeyError:
        pass
    return found


def bench_tasks(report: Report, chosen=()) -> None:
    roof = roofs() if has_gpu() else {}
    for name, value in roof.items():
        report.record(f"library/roof/{name}", value, "B/s" if name == "copy" else "FLOP/s")
    for task in TASKS:
        if report.left() < 0 or (chosen and task.key not in chosen):
            continue
        if task.timed:
            report.attempt(f"{task.key} in CUDA C", time_program, report, task, roof)
        if has_gpu():
            report.attempt(f"{task.key} in Python", time_python, report, task, roof)


def time_program(report: Report, task, roof) -> None:
    arguments = (*task.arguments, "time") if has_gpu() else ()
    text = programs.output_of(task.program, *arguments)
    assert "WRONG" not in text, text
    labels = {task.timed: "cuda_c", f"{task.timed}_ours": "ours"}
    for name, (middle, spread) in programs.times_of(text).items():
        if name in labels:
            note(report, task, labels[name], middle, spread, roof)


def time_python(report: Report, task, roof) -> None:
    arguments = inputs_of(task.key)
    with exactly():
        timing = benchmark(lambda: task.python(*arguments))
    note(report, task, "python", timing.median, timing.spread, roof)
    if task.key == "convolution":  # as PyTorch begins: with TF32
        timing = benchmark(lambda: task.python(*arguments))
        note(report, task, "python_tf32", timing.median, timing.spread, roof)


def note(report: Report, task, label, middle, spread, roof) -> None:
    """Record a time and its share of the roof."""
    name = f"library/{task.key}/{label}"
    report.record(f"{name}/time", middle, "ms", spread)
    share = float("nan")
    if task.roof in roof:
        share = task.amount / (middle * 1e-3) / roof[task.roof]
        report.record(f"{name}/share_of_{task.roof}", share, "1", share * spread / middle)
    report.say(f"{name:<32} {middle:9.4f} ms ±{spread:7.4f}  {share:6.1%} of {task.roof}")


# ---- what only a GPU can run, and traps


def bench_programs(report: Report) -> None:
    only_there = GPU_PROGRAMS if has_gpu() else {}
    for name, arguments in {**only_there, **TIMED_PROGRAMS}.items():
        report.attempt(name, keep_program, report, name, sized(arguments))
    for trap in TRAPS:
        report.attempt(trap, keep_program, report, "traps", (trap,), f"trap_{trap}")
    for name in CHECKED_PROGRAMS:
        report.attempt(name, keep_program, report, name, ())


def keep_program(report: Report, name: str, arguments, label: str = "") -> None:
    text = programs.output_of(name, *arguments)
    keep(report, label or name, text)
    for what, (middle, spread) in programs.times_of(text).items():
        report.record(f"library/{what}/time", middle, "ms", spread)
        report.say(f"library/{what:<24} {middle:9.4f} ms ±{spread:7.4f}")


def bench_snippets(report: Report) -> None:
    if not has_gpu():
        return
    for name in SNIPPETS:
        report.attempt(name, keep_snippet, report, name)


def keep_snippet(report: Report, name: str) -> None:
    done = recorded.run_snippet(name)
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    keep(report, name, done.stdout)
    report.say(f"{name}: {len(done.stdout.splitlines())} lines")


PARTS = {"programs": bench_programs, "tasks": bench_tasks, "snippets": bench_snippets}


def build_all(report: Report) -> None:
    """Compile everything at once, the slowest first."""
    names = ["cutlass_gemm"] if has_gpu() else []
    names += [*reversed(CHECKED_PROGRAMS), *TIMED_PROGRAMS, "traps"]
    names += [task.program for task in TASKS]
    names += [name for name in GPU_PROGRAMS if has_gpu()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in dict.fromkeys(names):
            pool.submit(report.attempt, f"build {name}", programs.build, name)


def main() -> None:
    parser = command_line(__doc__, 150, PARTS)
    parser.add_argument("--tasks", nargs="*", default=[], help="only these of the table's tasks")
    options = parser.parse_args()
    report = Report(options.out, options.budget)
    build_all(report)
    report.say(f"-- built, {report.left():.0f} s left")
    for part in options.parts:
        if report.left() > 0:
            chosen = (options.tasks,) if part == "tasks" else ()
            report.attempt(part, PARTS[part], report, *chosen)
        report.say(f"-- {part}: {report.left():.0f} s left")


if __name__ == "__main__":
    main()
