"""Check and time the row kernels against their rivals on this GPU.

    python -m course.row_kernels.bench --out results.json --budget 150

In turn: every kernel is checked in small sizes of all kinds; for each operation and length of row
the shapes (`shapes.Shape`) are tried, and the fastest is raced against torch and torch.compile,
whose results are checked, too. Each result is written as soon as it is there. One failure ends
nothing. Without a GPU it only checks.
"""

import argparse
import time
from pathlib import Path

import torch

from course.row_kernels import classic, fast, numba_softmax
from course.row_kernels.operations import OPERATIONS, SOFTMAX, Operation, tensors
from course.row_kernels.precompile import Compiler
from course.row_kernels.report import Report
from course.row_kernels.rightness import (
    DEVICE,
    DTYPES,
    check_small,
    shapes_to_check,
    small_sizes,
    verify,
)
from course.row_kernels.shapes import CLUSTERS, Shape, shape_for
from course.row_kernels.variants import VARIANTS, folder
from utils import compare, has_gpu, timing

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
SWEEP_SECONDS, RACE_SECONDS = 0.2, 0.5  # of GPU time, for one comparison
SHORT = 2048  # columns
LADDER_COLUMNS = (4096, 16384)
LADDER_THREADS = 512
SLOW_TO_COMPILE = ("layernorm_backward", "rmsnorm_backward")  # for torch.compile
VARIANT_COLUMNS = (1024, 16384, 131072)


def candidates(operation: Operation, columns: int, item: int) -> list[Shape]:
    """Shapes that fit an SM's registers and shared memory, each once."""
    how = {"inputs": operation.inputs, "item_bytes": item}
    shapes = []
    for kept, threads, blocks in RING_DEALS:
        if blocks_of(operation, kept, threads) < blocks:
            continue
        shapes.append(shape_for(columns, **how, kept=kept, threads=threads, blocks=blocks))
    for kept, threads in DIRECT_DEALS:
        if columns <= SHORT and kept * threads > 4 * columns:
            continue  # more rows a block bring nothing
        few = blocks_of(operation, kept, threads)
        many = blocks_of(SOFTMAX, kept, threads) if operation.inputs == 1 else few
        for blocks in (few, many):  # many: the compiler must save registers
            if blocks:
                one = {**how, "kept": kept, "threads": threads, "blocks": blocks, "ring": False}
                shapes.append(shape_for(columns, **one))
    return list(dict.fromkeys(shape for shape in shapes if shape and shape.cluster <= 16))


def blocks_of(operation: Operation, kept: int, threads: int) -> int:
    """Blocks for which an SM has registers and threads."""
    registers = -(-(operation.registers * kept + OVERHEAD) // 8) * 8
    return min(REGISTERS // (registers * threads), MOST_THREADS // threads, MOST_BLOCKS)


def sweep(report: Report, compiler, operation: Operation, t: dict, label: str) -> Shape | None:
    """Time all shapes; returns the fastest."""
    x = t["x"]
    runs = {}
    shapes = {}
    wanted = candidates(operation, x.shape[1], x.element_size())
    compiler.wait(operation.file, wanted, x.dtype)
    for shape in wanted:
        name = str(shape)
        try:
            verify(operation, t, operation.ours(t, shape), rows=8, sums=False)
        except Exception as error:
            report.failed(f"{label} {name}", error)
        else:
            shapes[name] = shape
            runs[name] = lambda shape=shape: operation.ours(t, shape)
    if not runs:
        return None
    result = compare(runs, bytes=operation.bytes(x))
    rates = {name: round(timing.bytes_per_second / 1e9) for name, timing in result.timings.items()}
    report.put("sweeps", label, dict(sorted(rates.items(), key=lambda pair: -pair[1])))
    return shapes[max(rates, key=rates.get)]


def climb(report: Report, t: dict) -> None:
    """The rungs of the softmax ladder, CUDA C and Numba side by side."""
    from numba import cuda

    x = t["x"]
    rows, columns = x.shape
    out = torch.empty_like(x)
    numba_out, numba_x = cuda.as_cuda_array(out), cuda.as_cuda_array(x)
    threads = LADDER_THREADS
    kept = columns // threads
    rungs = classic.module("softmax.cu")
    one_read = numba_softmax.one_read(columns, threads)
    grid = rows, threads
    runs = {
        "three reads, CUDA C": lambda: rungs["softmax_three_reads<float>"][grid](out, x, columns),
        "three reads, Numba": lambda: numba_softmax.three_reads[grid](numba_out, numba_x),
        "online, CUDA C": lambda: rungs["softmax_online<float>"][grid](out, x, columns),
        "online, Numba": lambda: numba_softmax.online[grid](numba_out, numba_x),
        "one read, CUDA C": lambda: rungs[f"softmax_one_read<float, {kept}>"][grid](
            out, x, columns
        ),
        "one read, Numba": lambda: one_read[grid](numba_out, numba_x),
        "ring": lambda: SOFTMAX.ours(t, None),
    }
    for run in runs.values():
        out.fill_(float("nan"))
        result = run() or (out,)
        verify(SOFTMAX, t, result)
    result = compare(runs, bytes=SOFTMAX.bytes(x))
    rates = {name: round(timing.bytes_per_second / 1e9) for name, timing in result.timings.items()}
    report.put("ladder", f"softmax/{columns}", rates)
    (registers,) = one_read.get_regs_per_thread().values()
    (local,) = one_read.get_local_mem_per_thread().values()
    (ptx,) = one_read.inspect_asm().values()
    listing = {"registers": registers, "local bytes": local, "ptx": ptx}
    report.put("ladder", f"softmax/{columns}/one read, Numba", listing)


def try_variants(report: Report, compiler: Compiler, t: dict, shape: Shape) -> None:
    """Softmax with one thing changed (`variants`)."""
    x = t["x"]
    out = torch.empty_like(x)
    ring = shape.stages > 0
    names = [name for name, variant in VARIANTS.items() if variant.ring in (None, ring)]
    files = {name: str(folder(name) / SOFTMAX.file) for name in names}
    for file in files.values():
        compiler.ask(file, [shape], x.dtype)
    runs = {"as it is": lambda: SOFTMAX.ours(t, shape), "copy": lambda: out.copy_(x)}
    for name, file in files.items():
        compiler.wait(file, [shape], x.dtype)
        kernel = fast.load(file, "softmax_fast", shape, x.dtype)
        runs[name] = lambda kernel=kernel: kernel.launch(len(x), out, x, len(x))
    result = compare(runs, bytes=SOFTMAX.bytes(x))
    rates = {name: round(timing.bytes_per_second / 1e9) for name, timing in result.timings.items()}
    report.put("variants", f"softmax/{x.shape[1]} {shape}", rates)


def race(report: Report, operation: Operation, t: dict, label: str, shape: Shape | None) -> None:
    """Our fastest against torch and torch.compile."""
    runs = {"ours": lambda: operation.ours(t, shape)}
    rivals = {"torch": operation.eager, "compile": compiled(operation.compiled)}
    for name, rival in rivals.items():
        start = time.monotonic()
        try:
            verify(operation, t, rival(t), rows=8)
        except Exception as error:
            report.failed(f"{label} {name}", error)
        else:
            runs[name] = lambda rival=rival: rival(t)
        report.put("clock", f"{label} {name}", round(time.monotonic() - start, 1))
    result = compare(runs, bytes=operation.bytes(t["x"]))
    entry = {
        name: {
            "ms": measured.median,
            "spread_ms": measured.spread,
            "GB/s": measured.bytes_per_second / 1e9,
            "share_of_copy": measured.share_of_copy,
        }
        for name, measured in result.timings.items()
    }
    times = {name: measured.median for name, measured in result.timings.items()}
    others = [ms for name, ms in times.items() if name != "ours"]
    entry["shape"] = str(shape)
    if others:
        entry["speedup_over_best"] = min(others) / times["ours"]
    report.put("races", label, entry)


def compiled(function):
    """torch.compile's best mode without CUDA graphs, for just these sizes."""
    torch._dynamo.reset()
    return torch.compile(
        lambda t: function(t), mode="max-autotune-no-cudagraphs", dynamic=False, fullgraph=True
    )


def timed(report: Report, compiler: Compiler, options) -> None:
    """Try all shapes, then race the fastest of each length, while the budget lasts."""
    report.put("clock", "copy GB/s", round(timing.copy_bandwidth() / 1e9))
    report.put("clock", "clusters at a time", clusters_at_a_time())
    best = {}
    sweeps = [
        ("sweep", columns, name) for columns in options.columns for name in options.operations
    ]
    slow = [name for name in options.operations if name in SLOW_TO_COMPILE]
    quick = [name for name in options.operations if name not in SLOW_TO_COMPILE]
    races = [("race", columns, name) for columns in options.race_columns for name in quick]
    races += [("race", columns, name) for columns in options.race_columns for name in slow]
    last = None
    for stage, columns, name in sweeps + races:
        if report.left() < 6:
            report.put("clock", "not done", f"{stage} {name}/{columns} and all after it")
            return
        if columns != last:
            t = None
            t = tensors(ELEMENTS // columns, columns, DTYPES[options.dtype], DEVICE)
            last = columns
        try:
            step(report, compiler, stage, name, t, best)
        except Exception as error:
            report.failed(f"{stage} {name}/{columns}", error)


def step(report: Report, compiler: Compiler, stage: str, name: str, t: dict, best: dict) -> None:
    """Sweep or race one operation in one length."""
    x = t["x"]
    columns = x.shape[1]
    plain = x.dtype == torch.float32
    label = f"{name}/{columns}" + ("" if plain else "/bfloat16")
    timing.BUDGET = SWEEP_SECONDS if stage == "sweep" else RACE_SECONDS
    if stage == "race":
        race(report, OPERATIONS[name], t, label, best.get(label))
        return
    best[label] = sweep(report, compiler, OPERATIONS[name], t, label)
    if name == SOFTMAX.name and plain:
        rivals = [best[label], *(shape_for(columns, ring=ring) for ring in (True, False))]
        if columns in VARIANT_COLUMNS:
            for ring in (True, False):
                shape = next(shape for shape in rivals if (shape.stages > 0) == ring)
                try_variants(report, compiler, t, shape)
        if columns in LADDER_COLUMNS:
            climb(report, t)


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
                compiler.ask(operation.file, shapes, dtype)
    dtype = DTYPES[options.dtype]
    for columns in options.columns:
        for name in options.operations:
            shapes = candidates(OPERATIONS[name], columns, dtype.itemsize)
            compiler.ask(OPERATIONS[name].file, shapes, dtype)


def table(report: Report) -> str:
    """A line an operation and length: our rate, its share of a copy, and the rivals'."""
    lines = []
    for label, entry in report.entries["races"].items():
        rates = "  ".join(
            f"{name} {entry[name]['GB/s']:5.0f}"
            for name in ("ours", "torch", "compile")
            if name in entry
        )
        share = entry["ours"]["share_of_copy"]
        lines.append(
            f"{label:<28} {rates}  copy {share:4.0%}  x {entry.get('speedup_over_best', 0):.2f}"
        )
    for label, rates in report.entries["sweeps"].items():
        if label not in report.entries["races"]:
            name, rate = next(iter(rates.items()))
            lines.append(f"{label:<28} ours {rate:5.0f}  ({name})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=150, help="seconds")
    parser.add_argument("--operations", nargs="*", default=list(OPERATIONS), choices=OPERATIONS)
    parser.add_argument("--columns", nargs="*", type=int, default=list(COLUMNS))
    parser.add_argument("--race-columns", nargs="*", type=int, default=list(COLUMNS))
    parser.add_argument("--no-race", dest="race_columns", action="store_const", const=[])
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--no-check", action="store_true", help="skip the small sizes")
    options = parser.parse_args()
    report = Report(options.out, options.budget)
    if has_gpu():
        report.watch()
    compiler = Compiler() if fast.available() else None
    if compiler:
        ask_for_all(compiler, options)
    if not options.no_check:
        check_small(report, compiler)
        report.put("clock", "checked, seconds left", round(report.left(), 1))
        print(
            "right:", report.entries["checks"], "failed:", len(report.entries["errors"]), flush=True
        )
    if compiler:
        timed(report, compiler, options)
        print(table(report))
        print("variants:", report.entries["variants"])
        ladders = report.entries["ladder"].items()
        print("ladder:", {name: rates for name, rates in ladders if "Numba" not in name})
        print("clock:", report.entries["clock"])
        compiler.pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
