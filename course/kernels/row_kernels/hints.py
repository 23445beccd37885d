"""What memory does when softmax asks L2 to keep what it reads, and when it does not.

Nsight Compute counts while this module launches the kernel once for each hint:

    ncu --clock-control none python -m course.kernels.row_kernels.hints
"""

import sys
from dataclasses import replace

import torch

from course.kernels.row_kernels import fast
from course.kernels.row_kernels.shapes import best_shape
from course.kernels.row_kernels.softmax import softmax
from course.kernels.row_kernels.variants import folder
from utils import has_gpu
from utils.tools import profilers

REPORT = "cache_hints"
ROWS, COLUMNS = 1 << 16, 1 << 12
#: Hint of the loads -> the variant that has it; the last one is the kernel as it is
HINTS = {
    "past L1 only": "loads: past L1, without a hint",
    "evict first": "loads: L2 evicts first",
    "evict last": None,
}
METRICS = {
    "gpu__time_duration.sum": "time",
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "of memory's peak",
}


def counted() -> profilers.Table:
    """Nsight Compute's table, a row a hint; the recorded one where it cannot count."""
    if has_gpu() and not fast.available():
        why = "these kernels need Hopper or a later data-centre GPU"
        return with_hints(profilers.load(profilers.Table, "ncu", f"{REPORT}.ncu.csv", why))
    options = ("--clock-control", "none")  # as fast as the kernels are timed elsewhere
    command = [*options, sys.executable, "-m", "course.kernels.row_kernels.hints"]
    return with_hints(profilers.ncu(command, REPORT, METRICS, kernels="softmax_fast"))


def with_hints(table: profilers.Table) -> profilers.Table:
    """The table of the launches, with each one's hint in front instead of the kernel's name."""
    if not table:
        return table
    hints = list(HINTS)
    lines = [",".join(["hint", *METRICS.values()])]
    for hint, row in zip(hints, table.rows, strict=True):
        cells = [_shortened(row[column]) for column in METRICS.values()]
        lines.append(",".join([hint, *cells]))
    return replace(table, text="\n".join(lines))


def _shortened(cell: str) -> str:
    """A number with its unit in thousands of them: "496,123 ns" is "496.1 µs"."""
    value = profilers.number(cell)
    if cell.endswith("ns"):
        return f"{value / 1e3:.1f} µs"
    if cell.endswith("byte"):
        return f"{value / 1e9:.3f} GB"
    return cell.replace(",", "")


def main() -> None:
    """Launch softmax once for each hint."""
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    shape = best_shape("softmax", COLUMNS)
    for variant in HINTS.values():
        if variant:
            softmax(x, shape=replace(shape, folder=str(folder(variant))))
        else:
            softmax(x, shape=shape)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
