"""A bench as a command: its options, its checks, then its parts while the budget lasts."""

import argparse
from pathlib import Path

import torch

from course.kernels.bench.report import Report
from utils import has_gpu, timing

PATIENCE = 170  # seconds without a result: so long max-autotune may take


def report_path(text: str) -> Path:
    """Of a report; beside it, with another ending, lie the entries for assets/results."""
    path = Path(text)
    if path.suffix == ".jsonl":
        raise argparse.ArgumentTypeError(f"{path}: entries for assets/results go there; say .json")
    return path


def command_line(doc: str, budget: float, parts=()) -> argparse.ArgumentParser:
    """A bench's command line, without the options of its own.

    doc: its module's. budget: seconds. parts: names of which `--parts` takes some.
    """
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    told = "JSON, written from the first on"
    parser.add_argument("--out", type=report_path, required=True, help=told)
    parser.add_argument("--budget", type=float, default=budget, help="seconds")
    if parts:
        parser.add_argument("--parts", nargs="*", default=list(parts), choices=list(parts))
    return parser


def main(doc: str, parts: dict, check, budget: float = 100) -> None:
    """Run a bench: check(report), then on a GPU its parts, part(report), while the budget lasts.

    doc: the bench's own, whose first line is the command's description. budget: seconds, unless
    the command line says otherwise.
    """
    options = command_line(doc, budget, parts).parse_args()
    report = Report(options.out, options.budget, PATIENCE)
    report.watch()
    check(report)
    if has_gpu():
        rate = timing.copy_bandwidth()
        report.put("clock", "copy GB/s", round(rate / 1e9))
        run_parts(report, {name: parts[name] for name in options.parts})
    print(table(report))


def run_parts(report: Report, parts: dict) -> None:
    """One part after the other, while the budget lasts."""
    for name, part in parts.items():
        if report.left() < 5:
            report.put("clock", "not done", f"{name} and all after it")
            break
        report.attempt(name, part, report)
        if has_gpu():
            torch.cuda.empty_cache()
        report.put("clock", f"{name} done, seconds left", round(report.left()))


def table(report: Report) -> str:
    """A line a race, then what else was noted, then what failed."""
    lines = []
    for name, entry in report.entries["races"].items():
        rows = {label: row for label, row in entry.items() if isinstance(row, dict)}
        times = ", ".join(f"{label} {row['ms']:.4g} ms" for label, row in rows.items())
        speedup = f"x {entry['speedup']:.3f}; " if "speedup" in entry else ""
        share = ""
        if "copy" in rows.get("ours", {}):
            share = f"copy {rows['ours']['copy']:.1%}; "
        lines.append(f"{name}: {speedup}{share}{times}")
    for name, value in report.entries["clock"].items():
        lines.append(f"{name}: {value}")
    for name in report.entries["errors"]:
        lines.append(f"FAILED {name}")
    return "\n".join(lines)
