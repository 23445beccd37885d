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

PARTS = ("matmul", "languages", "rows")
#: Of each language the beginnings of its variants' names
LANGUAGES = {
    "triton": ("pointers", "descriptors", "persistent"),
    "triton_pointers": ("pointers",),
    "triton_descriptors": ("descriptors",),
    "gluon": ("gluon",),
}


def matmuls(report: Report, variants: dict, options) -> None:
    """Sweep the variants, then race the fastest of each language beside cuBLAS."""
    ours = matmul_bench.ready(report, variants)
    others = matmul_bench.ready(report, matmul_bench.cuda_c_variants())
    if not has_gpu():
        return
    best = {n: matmul_bench.sweep(report, ours, n) for n in options.swept}
    for n in options.sides:
        if report.left() < matmul_bench.PATIENCE:
            report.put("clock", "not raced", f"matmul/{n} and all after it")
            return
        ranked = best[min(best, key=lambda side: abs(side - n))]
        contestants = dict(others)
        for language, beginnings in LANGUAGES.items():
            first = next((name for name in ranked if name.startswith(beginnings)), None)
            if first:
                contestants[language] = ours[first]
                report.put("clock", f"{language}/{n}", first)
        matmul_bench.race(report, contestants, n)


def languages() -> dict:
    """The variants that were best before, of every language that is here."""
    return matmul_bench.triton_variants(matmul_bench.BEST) | matmul_bench.gluon_variants()


def rows(report: Report, lengths: list[int], operations: list[str]) -> None:
    """Sweep and race the kernels on rows, one length after the other."""
    rows_bench.check(report)
    if not has_gpu():
        return
    for columns in lengths:
        if report.left() < 20:
            report.put("clock", "not swept", f"rows of {columns} and all after it")
            return
        try:
            best = rows_bench.sweep(report, columns, operations)
            rows_bench.race(report, columns, best)
        except Exception as error:
            report.failed(f"rows of {columns}", error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=150, help="seconds")
    parser.add_argument("--parts", nargs="*", default=["languages", "rows"], choices=PARTS)
    parser.add_argument("--sides", nargs="*", type=int, default=[8192, 4096, 1024, 2048, 16384])
    parser.add_argument("--swept", nargs="*", type=int, default=[8192, 4096, 1024])
    parser.add_argument("--columns", nargs="*", type=int, default=list(rows_bench.COLUMNS))
    parser.add_argument("--operations", nargs="*", default=["softmax", "layernorm"])
    options = parser.parse_args()
    report = Report(options.out, options.budget)
    if has_gpu():
        report.watch()
        report.put("clock", "copy GB/s", round(timing.copy_bandwidth() / 1e9))
    if "matmul" in options.parts:
        matmuls(report, matmul_bench.triton_variants(), options)
        report.put("clock", "after matmul, seconds left", round(report.left()))
    if "languages" in options.parts:
        matmuls(report, languages(), options)
        report.put("clock", "after languages, seconds left", round(report.left()))
    if "rows" in options.parts:
        rows(report, options.columns, options.operations)
        report.put("clock", "after rows, seconds left", round(report.left()))
    print("checks:", {name: _count(value) for name, value in report.entries["checks"].items()})
    tables = (matmul_bench, rows_bench)
    print("\n".join(line for module in tables for line in module.table(report)))
    print("clock:", report.entries["clock"], "errors:", len(report.entries["errors"]))


def _count(value) -> int:
    return len(value) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
