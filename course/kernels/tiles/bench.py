"""Check and time the chapter's kernels on this GPU.

    python -m course.kernels.tiles.bench --out results.json --budget 150

In turn: every kernel is checked in small sizes of all kinds; variants are swept; the fastest is
raced against its rivals, whose results are checked, too. Each result is written as soon as it is
there, and handed to the recording command where that runs. One failure ends nothing. Without a GPU
it only checks.
"""

from course.kernels.bench.command import command_line, table
from course.kernels.bench.report import Report
from course.kernels.tiles import matmul_bench, rows_bench
from utils import has_gpu, timing

PARTS = ("matmul", "languages", "rows")
SIDES = (8192, 4096, 1024, 2048, 16384)
#: Of each language the beginnings of its variants' names
LANGUAGES = {
    "triton": ("pointers", "descriptors", "persistent"),
    "triton_pointers": ("pointers",),
    "triton_descriptors": ("descriptors",),
    "gluon": ("gluon",),
    "cutile": ("cutile",),
    "cute": ("cute",),
}


def matmuls(report: Report, variants: dict, options) -> None:
    """Sweep the variants, then race the fastest of each language beside cuBLAS."""
    ours = matmul_bench.ready(report, variants)
    cuda_c = matmul_bench.cuda_c_variants()
    others = matmul_bench.ready(report, cuda_c)
    if not has_gpu():
        return
    best = {n: matmul_bench.sweep(report, ours, n) for n in options.swept}
    for n in options.sides:
        if report.left() < matmul_bench.PATIENCE:
            report.put("clock", "not raced", f"matmul/{n} and all after it")
            return
        nearest = min(best, key=lambda side: abs(side - n))
        contestants = dict(others)
        for language, name in fastest_of(best[nearest]).items():
            contestants[language] = ours[name]
            report.put("clock", f"{language}/{n}", name)
        matmul_bench.race(report, contestants, n)


def fastest_of(ranked: list[str]) -> dict[str, str]:
    """Of each language the first variant, if it has one."""
    fastest = {}
    for language, beginnings in LANGUAGES.items():
        of_language = [name for name in ranked if name.startswith(beginnings)]
        if of_language:
            fastest[language] = of_language[0]
    return fastest


def languages() -> dict:
    """The variants that were best before, of every language that is here."""
    triton = matmul_bench.triton_variants(matmul_bench.BEST)
    cutes = matmul_bench.cutile_variants() | matmul_bench.cute_variants()
    return triton | matmul_bench.gluon_variants() | cutes


def rows(
    report: Report,
    lengths: list[int],
    operations: list[str],
) -> None:
    """Sweep and race the kernels on rows, one length after the other."""
    rows_bench.check(report)
    if not has_gpu():
        return
    for columns in lengths:
        if report.left() < 20:
            report.put("clock", "not swept", f"rows of {columns} and all after it")
            return
        report.attempt(f"rows of {columns}", rows_of, report, columns, operations)


def rows_of(report: Report, columns: int, operations: list[str]) -> None:
    """Sweep and race the kernels on rows of one length."""
    best = rows_bench.sweep(report, columns, operations)
    rows_bench.race(report, columns, best)


def arguments():
    """What the command line says."""
    parser = command_line(__doc__, 150)
    add = parser.add_argument
    add("--parts", nargs="*", default=["languages", "rows"], choices=PARTS)
    add("--sides", nargs="*", type=int, default=SIDES)
    add("--swept", nargs="*", type=int, default=SIDES[:3])
    add("--columns", nargs="*", type=int, default=rows_bench.COLUMNS)
    add("--operations", nargs="*", default=["softmax", "layernorm"])
    return parser.parse_args()


def main() -> None:
    options = arguments()
    report = Report(options.out, options.budget)
    if has_gpu():
        report.watch()
        rate = timing.copy_bandwidth()
        report.put("clock", "copy GB/s", round(rate / 1e9))
    parts = {
        "matmul": lambda: matmuls(report, matmul_bench.triton_variants(), options),
        "languages": lambda: matmuls(report, languages(), options),
        "rows": lambda: rows(report, options.columns, options.operations),
    }
    for name, run in parts.items():
        if name in options.parts:
            run()
            left = round(report.left())
            report.put("clock", f"after {name}, seconds left", left)
    show(report)


def show(report: Report) -> None:
    """Print the tables, and how many checks passed."""
    checks = report.entries["checks"].items()
    print("checks:", {name: _count(value) for name, value in checks})
    print("\n".join(matmul_bench.table(report)))
    print(table(report))


def _count(value) -> int:
    return len(value) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
