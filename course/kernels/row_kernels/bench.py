"""Check and time the row kernels against their rivals on this GPU.

    python -m course.kernels.row_kernels.bench --out results.json --budget 150

In turn: every kernel is checked in small sizes of all kinds; for each operation and length of row
the shapes (`shapes.Shape`) are tried, and the fastest is raced against torch and torch.compile,
whose results are checked, too. Each result is written as soon as it is there. One failure ends
nothing. Without a GPU it only checks.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from course.kernels.bench import races
from course.kernels.bench.command import command_line
from course.kernels.bench.report import Report
from course.kernels.row_kernels import classic, fast, numba_softmax
from course.kernels.row_kernels.operations import (
    OPERATIONS,
    SOFTMAX,
    Operation,
    tensors,
    torch_compiled,
)
from course.kernels.row_kernels.precompile import Compiler
from course.kernels.row_kernels.rightness import (
    DEVICE,
    DTYPES,
    check_small,
    shapes_to_check,
    small_sizes,
    verify,
)
from course.kernels.row_kernels.shapes import CLUSTERS, Shape, best_shape, shape_for
from course.kernels.row_kernels.variants import VARIANTS, folder
from utils import compare, has_gpu, timing
from utils.occupancy import ceil_div

COLUMNS = (1024, 4096, 16384, 65536, 131072)
ELEMENTS = 1 << 28  # of the matrix that is timed
#: (values a thread keeps, threads a block, blocks an SM) to try with a ring
RING_DEALS = (
    (32, 512, 1),
    (64, 256, 1),
    (16, 1024, 1),
    (32, 256, 1),
    (32, 256, 2),
    (16, 512, 2),
)
#: (values a thread keeps, threads a block) to try without one
DIRECT_DEALS = (
    (4, 256),
    (4, 512),
    (8, 128),
    (8, 256),
    (8, 512),
    (8, 1024),
    (16, 64),
    (16, 128),
    (16, 256),
    (16, 512),
    (16, 1024),
    (32, 128),
    (32, 256),
    (32, 512),
)
MOST_THREADS = 2048  # of an SM
MOST_BLOCKS = 16  # of an SM; more would help nobody
REGISTERS = 1 << 16  # of an SM
OVERHEAD = 24  # registers a thread needs besides its values
#: Of GPU time, for one comparison
SWEEP_SECONDS = 0.2
RACE_SECONDS = 0.5
SHORT = 2048  # columns
LADDER_COLUMNS = (4096, 16384)
LADDER_THREADS = 512
LOADS = [name for name in VARIANTS if name.startswith("loads")]
SECOND_READS = [name for name in VARIANTS if name.startswith("reads")]
#: (values a thread reads, threads a block) to try where rows are read twice
TWICE_KEPT = (4, 8, 16, 32)
TWICE_THREADS = (256, 512, 1024)
TWICE_DEALS = tuple(itertools.product(TWICE_KEPT, TWICE_THREADS))
TWICE_ROW = 64 << 10  # bytes of the longest row that is worth it: two of them fit an SM's cache
SLOW_TO_COMPILE = ("layernorm_backward", "rmsnorm_backward")  # for torch.compile


def candidates(operation: Operation, columns: int, item: int) -> list[Shape]:
    """Shapes that fit an SM's registers and shared memory, each once."""
    deals = [*_with_a_ring(operation), *_without_a_ring(operation, columns)]
    if operation.twice and columns * item <= TWICE_ROW:
        deals += _read_twice()
    shapes = {}
    for deal in deals:
        inputs = 1 if deal.get("twice") else operation.inputs
        shape = shape_for(columns, inputs=inputs, item_bytes=item, **deal)
        if shape and shape.cluster <= 16:
            shapes[shape] = None
    return list(shapes)


def _with_a_ring(operation: Operation) -> Iterator[dict]:
    for kept, threads, blocks in RING_DEALS:
        if blocks_of(operation, kept, threads) >= blocks:
            yield {
                "kept": kept,
                "threads": threads,
                "blocks": blocks,
            }


def _without_a_ring(operation: Operation, columns: int) -> Iterator[dict]:
    for kept, threads in DIRECT_DEALS:
        if columns <= SHORT and kept * threads > 4 * columns:
            continue  # more rows a block bring nothing
        few = blocks_of(operation, kept, threads)
        many = few
        if operation.inputs == 1:
            many = blocks_of(SOFTMAX, kept, threads)  # the compiler must save registers
        for blocks in (few, many):
            if blocks:
                yield {
                    "kept": kept,
                    "threads": threads,
                    "blocks": blocks,
                    "ring": False,
                }


def _read_twice() -> Iterator[dict]:
    for kept, threads in TWICE_DEALS:
        yield {
            "kept": kept,
            "threads": threads,
            "blocks": MOST_THREADS // threads,
            "ring": False,
            "twice": True,
        }


def blocks_of(operation: Operation, kept: int, threads: int) -> int:
    """Blocks for which an SM has registers and threads."""
    needed = operation.registers * kept + OVERHEAD
    registers = ceil_div(needed, 8) * 8
    by_registers = REGISTERS // (registers * threads)
    by_threads = MOST_THREADS // threads
    return min(by_registers, by_threads, MOST_BLOCKS)


def sweep(
    report: Report,
    compiler: Compiler,
    operation: Operation,
    t: dict,
    label: str,
) -> Shape:
    """Time all shapes, then the fastest ones' other ways to load; returns the fastest."""
    x = t["x"]
    shapes = candidates(operation, *sizes(x))
    rates = time_shapes(report, compiler, operation, t, shapes)
    fastest = by_rate(rates)
    if x.dtype == torch.float32:
        direct = [shape for shape in fastest if not shape.stages and not shape.twice]
        twice = [shape for shape in fastest if shape.twice]
        others = varied(direct[:3], LOADS) + varied(twice[:2], SECOND_READS)
        rates |= time_shapes(report, compiler, operation, t, others)
        fastest = by_rate(rates)
    report.put("sweeps", label, {str(shape): rates[shape] for shape in fastest})
    return next(shape for shape in fastest if not shape.folder)


def by_rate(rates: dict) -> list:
    """The fastest first."""
    return sorted(rates, key=rates.get, reverse=True)


def varied(shapes: list[Shape], names: list[str]) -> list[Shape]:
    """Each shape with each of these variants."""
    variants = []
    for shape in shapes:
        for name in names:
            variants.append(replace(shape, folder=str(folder(name))))
    return variants


def sizes(x: torch.Tensor) -> tuple[int, int]:
    """Columns and bytes of an element."""
    return x.shape[1], x.element_size()


def time_shapes(
    report: Report,
    compiler: Compiler,
    operation: Operation,
    t: dict,
    shapes: list[Shape],
) -> dict[Shape, int]:
    """GB/s of each shape whose results are right."""
    x = t["x"]
    compiler.wait(operation, shapes, x.dtype)
    right = {}
    for shape in shapes:
        try:
            outputs = operation.ours(t, shape)
            verify(operation, t, outputs, rows=8, sums=False)
        except Exception as error:
            report.failed(f"{operation.name}/{x.shape[1]} {shape}", error)
        else:
            right[str(shape)] = shape
    if not right:
        return {}
    runs = {name: partial(operation.ours, t, shape) for name, shape in right.items()}
    rates = gigabytes(compare(runs, bytes=operation.bytes(x)))
    return {right[name]: rate for name, rate in rates.items()}


def gigabytes(comparison) -> dict[str, int]:
    """GB/s of each rival."""
    return {name: round(found.bytes_per_second / 1e9) for name, found in comparison.timings.items()}


def climb(report: Report, compiler: Compiler, t: dict) -> None:
    """The rungs of the softmax ladder, CUDA C and Numba side by side."""
    from numba import cuda

    x = t["x"]
    rows, columns = x.shape
    out = torch.empty_like(x)
    arrays = (cuda.as_cuda_array(out), cuda.as_cuda_array(x))
    kept = columns // LADDER_THREADS
    rungs = classic.module("softmax.cu")
    one_read = numba_softmax.one_read(columns, LADDER_THREADS)
    grid = (rows, LADDER_THREADS)

    def cuda_c(name):
        return partial(rungs[name][grid], out, x, columns)

    def numba(kernel):
        return partial(kernel[grid], *arrays)

    runs = {
        "three reads, CUDA C": cuda_c("softmax_three_reads<float>"),
        "three reads, Numba": numba(numba_softmax.three_reads),
        "online, CUDA C": cuda_c("softmax_online<float>"),
        "online, Numba": numba(numba_softmax.online),
        "one read, CUDA C": cuda_c(f"softmax_one_read<float, {kept}>"),
        "one read, Numba": numba(one_read),
        "fast": partial(SOFTMAX.ours, t, None),
    }
    for run in runs.values():
        out.fill_(float("nan"))
        result = run() or (out,)
        verify(SOFTMAX, t, result)
    race = compare(runs, bytes=SOFTMAX.bytes(x), name=f"softmax_ladder/{columns}")
    report.put("ladder", f"softmax/{columns}", gigabytes(race))
    (registers,) = one_read.get_regs_per_thread().values()
    (local,) = one_read.get_local_mem_per_thread().values()
    (ptx,) = one_read.inspect_asm().values()
    listing = {
        "registers": registers,
        "local bytes": local,
        "ptx": ptx,
    }
    report.put("ladder", f"softmax/{columns}/one read, Numba", listing)


def try_variants(report: Report, compiler: Compiler, t: dict) -> None:
    """Softmax with one thing changed (`variants`)."""
    x = t["x"]
    out = torch.empty_like(x)
    changed = changed_shapes(x.shape[1], x.element_size())
    compiler.wait(SOFTMAX, list(changed.values()), x.dtype)
    runs = {
        "as it is": partial(SOFTMAX.ours, t, None),
        "copy": partial(out.copy_, x),
    }
    for name, other in changed.items():
        runs[name] = partial(SOFTMAX.ours, t, other)
    label = f"softmax_variants/{x.shape[1]}"
    race = compare(runs, bytes=SOFTMAX.bytes(x), name=label)
    report.put("variants", f"softmax/{x.shape[1]}", gigabytes(race))


def changed_shapes(columns: int, item: int) -> dict[str, Shape]:
    """Softmax's shape for rows of a length, with each variant that it has."""
    shape = best_shape(SOFTMAX.deals, columns, item)
    changed = {}
    for name, variant in VARIANTS.items():
        fits = variant.ring in (None, shape.stages > 0)
        if variant.file != "two_reads.cuh" and fits:
            changed[name] = replace(shape, folder=str(folder(name)))
    return changed


def race(
    report: Report,
    operation: Operation,
    t: dict,
    label: str,
    shape: Shape | None,
) -> None:
    """Our fastest or default shape against torch and torch.compile; recorded if asked for."""
    runs = {"ours": partial(operation.ours, t, shape)}
    verify(operation, t, operation.ours(t, shape))
    rivals = {
        "torch": operation.eager,
        "compile": torch_compiled(operation.compiled),
    }
    for name, rival in rivals.items():
        start = time.monotonic()
        try:
            verify(operation, t, rival(t), rows=8)
        except Exception as error:
            report.failed(f"{label} {name}", error)
        else:
            runs[name] = partial(rival, t)
        seconds = time.monotonic() - start
        report.put("clock", f"{label} {name}", round(seconds, 1))
    timings = races.race(report, label, runs, bytes=operation.bytes(t["x"]))
    races.record_speedup(report, f"{label}/speedup_over_best", timings, set(runs) - {"ours"})
    default = best_shape(operation.deals, *sizes(t["x"]), operation.inputs)
    report.put("clock", f"{label}: shape, default", [str(shape or default), str(default)])


def ladders(report: Report, compiler: Compiler, parts: list) -> None:
    """Softmax rung by rung (`climb`), and with single choices undone (`try_variants`)."""
    for columns in LADDER_COLUMNS if parts else ():
        t = timed_tensors(columns, torch.float32)
        for part in parts:
            report.attempt(f"{part.__name__} {columns}", part, report, compiler, t)


def timed_tensors(columns: int, dtype: torch.dtype) -> dict:
    """Inputs of the size that is timed."""
    return tensors(ELEMENTS // columns, columns, dtype, DEVICE)


def timed(report: Report, compiler: Compiler, options) -> None:
    """Try all shapes, then race the fastest of each length, while the budget lasts."""
    rate = timing.copy_bandwidth()
    report.put("clock", "copy GB/s", round(rate / 1e9))
    report.put("clock", "clusters at a time", clusters_at_a_time())
    best = {}
    last = None
    for stage, columns, name in stages(options):
        if report.left() < 6:
            report.put("clock", "not done", f"{stage} {name}/{columns} and all after it")
            return
        if columns != last:
            t = None  # before the next ones are made: both do not fit
            t = timed_tensors(columns, DTYPES[options.dtype])
            last = columns
        label = f"{stage} {name}/{columns}"
        report.attempt(label, step, report, compiler, stage, name, t, best)


def stages(options) -> list[tuple[str, int, str]]:
    """(sweep or race, columns, operation), the most wanted ones first."""
    tuned = targets_of(options.tune)
    others = []
    for columns in options.columns:
        for name in options.operations:
            if (columns, name) not in tuned:
                others.append((columns, name))
    others.sort(key=lambda target: target[1] in SLOW_TO_COMPILE)
    sweeps = [("sweep", *target) for target in tuned]
    return sweeps + [("race", *target) for target in tuned + others]


def targets_of(names: list[str]) -> list[tuple[int, str]]:
    """Columns and operation of names such as "softmax/4096"."""
    targets = []
    for name in names:
        operation, columns = name.split("/")
        targets.append((int(columns), operation))
    return targets


def step(
    report: Report,
    compiler: Compiler,
    stage: str,
    name: str,
    t: dict,
    best: dict,
) -> None:
    """Sweep or race one operation in one length."""
    x = t["x"]
    operation = OPERATIONS[name]
    label = f"{name}/{x.shape[1]}"
    if x.dtype != torch.float32:
        label += "/bfloat16"
    if stage == "race":
        timing.BUDGET = RACE_SECONDS
        race(report, operation, t, label, best.get(label))
    else:
        timing.BUDGET = SWEEP_SECONDS
        best[label] = sweep(report, compiler, operation, t, label)


def clusters_at_a_time() -> dict[str, int]:
    """How many clusters of each size this GPU runs at a time, a block an SM."""
    counts = {}
    for cluster in CLUSTERS:
        shape = shape_for(8192 * cluster, cluster=cluster, kept=16)
        try:
            kernel = fast.load("fast_softmax.cu", "softmax_fast", shape, torch.float32)
            counts[cluster] = kernel.clusters
        except Exception as error:
            counts[cluster] = str(error)
    return counts


def ask_for_all(compiler: Compiler, options) -> None:
    """Begin to compile everything, what is needed first first."""
    if not options.no_check:
        for rows, columns, dtype in small_sizes():
            for operation in OPERATIONS.values():
                shapes = shapes_to_check(operation, rows, columns, dtype)
                compiler.ask(operation, shapes, dtype)
    for columns in LADDER_COLUMNS if options.variants else ():
        changed = changed_shapes(columns, torch.float32.itemsize)
        compiler.ask(SOFTMAX, list(changed.values()), torch.float32)
    dtype = DTYPES[options.dtype]
    item = dtype.itemsize
    for columns, name in targets_of(options.tune):
        operation = OPERATIONS[name]
        shapes = candidates(operation, columns, item)
        compiler.ask(operation, shapes, dtype)
    for columns in options.columns:
        for name in options.operations:
            operation = OPERATIONS[name]
            shape = best_shape(operation.deals, columns, item, operation.inputs)
            compiler.ask(operation, [shape], dtype)


def table(report: Report) -> str:
    """A line an operation and length: our rate, its share of a copy, and the rivals'."""
    lines = []
    for label, entry in report.entries["races"].items():
        raced = [name for name in ("ours", "torch", "compile") if name in entry]
        rates = "  ".join(f"{name} {entry[name]['GB/s']:5.0f}" for name in raced)
        share = entry["ours"]["copy"]
        speedup = entry.get("speedup", 0)
        lines.append(f"{label:<28} {rates}  copy {share:4.0%}  x {speedup:.2f}")
    for label, rates in report.entries["sweeps"].items():
        if label not in report.entries["races"]:
            name, rate = next(iter(rates.items()))
            lines.append(f"{label:<28} ours {rate:5.0f}  ({name})")
    return "\n".join(lines)


def arguments():
    """What the command line says."""
    parser = command_line(__doc__, 150)
    add = parser.add_argument
    add("--operations", nargs="*", default=list(OPERATIONS), choices=OPERATIONS)
    add("--columns", nargs="*", type=int, default=COLUMNS)
    add("--tune", nargs="*", default=[], help="try all shapes, e.g. of softmax/4096")
    add("--dtype", default="float32", choices=DTYPES)
    add("--ladder", action="store_true", help="time softmax rung by rung, too")
    add("--variants", action="store_true", help="and with single choices undone")
    add("--no-check", action="store_true", help="skip the small sizes")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    report = Report(options.out, options.budget)
    if has_gpu():
        report.watch()
    compiler = Compiler() if fast.available() else None
    if compiler:
        ask_for_all(compiler, options)
    if not options.no_check:
        check_small(report, compiler)
        left = round(report.left(), 1)
        report.put("clock", "checked, seconds left", left)
        failed = len(report.entries["errors"])
        print("right:", report.entries["checks"], "failed:", failed, flush=True)
    if compiler:
        parts = [climb] * options.ladder + [try_variants] * options.variants
        ladders(report, compiler, parts)
        timed(report, compiler, options)
        show(report)
        compiler.pool.shutdown(cancel_futures=True)


def show(report: Report) -> None:
    """Print the table, and what was found beside it."""
    print(table(report))
    print("variants:", report.entries["variants"])
    rungs = report.entries["ladder"].items()
    print("ladder:", {name: rates for name, rates in rungs if "Numba" not in name})
    print("clock:", report.entries["clock"])


if __name__ == "__main__":
    main()
