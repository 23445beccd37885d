"""Check and time the chapter's kernels on this GPU.

    python -m course.kernels.tiles.bench --out results.json --budget 150

In turn: every kernel is checked in small sizes of all kinds; variants are swept; the fastest is
raced against its rivals, whose results are checked, too. Each result is written as soon as it is
there, and handed to the recording command where that runs. One failure ends nothing. Without a GPU
it only checks.
"""

import argparse
from pathlib import Path

from course.kernels.row_kernels.report import Report
from course.kernels.tiles import matmul_bench, rows_bench
from utils import has_gpu, timing

PARTS = ("matmul", "gluon", "rows")


def matmuls(report: Report, sides: list[int], swept: list[int], gluon: bool) -> None:
    """Sweep Triton's variants, or Gluon's, then race the fastest of each beside cuBLAS."""
    tried = matmul_bench.gluon_variants() if gluon else matmul_bench.triton_variants()
    ours = matmul_bench.ready(report, tried)
    others = matmul_bench.ready(report, matmul_bench.cuda_c_variants())
    if not has_gpu():
        return
    best = {}
    for n in swept:
        names = matmul_bench.sweep(report, ours, n, keep=1000)
        best[n] = names
    for n in sides:
        if report.left() < matmul_bench.PATIENCE:
            report.put("clock", "not raced", f"matmul/{n} and all after it")
            return
        ranked = best[min(best, key=lambda side: abs(side - n))]
        contestants = dict(others)
        for language, prefixes in {
            "triton": ("pointers", "descriptors", "persistent"),
            "triton_pointers": ("pointers",),
            "gluon": ("gluon",),
        }.items():
            first = next((name for name in ranked if name.startswith(prefixes)), None)
            if first:
                contestants[language] = ours[first]
                report.put("clock", f"{language}/{n}", first)
        matmul_bench.race(report, contestants, n)


def rows(report: Report, lengths: list[int]) -> None:
    """Sweep and race the kernels on rows, one length after the other."""
    rows_bench.check(report)
    if not has_gpu():
        return
    for columns in lengths:
        if report.left() < 20:
            report.put("clock", "not swept", f"rows of {columns} and all after it")
            return
        try:
            best = rows_bench.sweep(report, columns)
            rows_bench.race(report, columns, best)
        except Exception as error:
            report.failed(f"rows of {columns}", error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=150, help="seconds")
    parser.add_argument("--parts", nargs="*", default=["matmul", "rows"], choices=PARTS)
    parser.add_argument("--sides", nargs="*", type=int, default=[8192, 4096, 1024, 2048, 16384])
    parser.add_argument("--swept", nargs="*", type=int, default=[8192, 4096, 1024])
    parser.add_argument("--columns", nargs="*", type=int, default=list(rows_bench.COLUMNS))
    options = parser.parse_args()
    report = Report(options.out, options.budget)
    if has_gpu():
        report.watch()
        report.put("clock", "copy GB/s", round(timing.copy_bandwidth() / 1e9))
    if "matmul" in options.parts:
        matmuls(report, options.sides, options.swept, gluon=False)
        report.put("clock", "after matmul, seconds left", round(report.left()))
    if "gluon" in options.parts:
        matmuls(report, options.sides, options.swept, gluon=True)
        report.put("clock", "after gluon, seconds left", round(report.left()))
    if "rows" in options.parts:
        rows(report, options.columns)
        report.put("clock", "after rows, seconds left", round(report.left()))
    print("checks:", {name: _count(value) for name, value in report.entries["checks"].items()})
    print("\n".join(matmul_bench.table(report) + rows_bench.table(report)))
    print("clock:", report.entries["clock"], "errors:", len(report.entries["errors"]))


def _count(value) -> int:
    return len(value) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
