"""Rivals, timed in turn, kept and recorded."""

from functools import partial

import torch

from course.kernels.bench.report import Report, measured
from utils import compare, timing


def race(
    report: Report,
    name: str,
    runs: dict,
    ours: str = "ours",
    *,
    keep=True,
    **work,
) -> dict:
    """{rival: Timing}: all in turn; times, rates and our speedup over the best rival are kept.

    runs: name -> function. work: bytes or flops, as for `compare`. keep: record them, too.
    """
    timings = compare(runs, name=name if keep else None, **work).timings
    entry = {label: measured(timing) for label, timing in timings.items()}
    rivals = [label for label in runs if not label.startswith(ours)]
    if rivals and ours in runs:
        entry["speedup"] = speedup(timings, rivals, ours)[0]
    report.put("races", name, entry)
    return timings


def _median(timing) -> float:
    return timing.median


def speedup(
    timings: dict,
    rivals,
    ours: str = "ours",
) -> tuple[float, float]:
    """(How much faster we are than the fastest of some rivals, spread)."""
    best = min([timings[label] for label in rivals], key=_median)
    return timing.speedup(timings[ours], best)


def record_speedup(report: Report, name: str, timings: dict, rivals, ours: str = "ours") -> None:
    """Record our speedup over the fastest of some rivals, if any of them was timed."""
    rivals = [label for label in rivals if label in timings]
    if rivals:
        value, spread = speedup(timings, rivals, ours)
        report.record(name, value, "1", spread)


def record_share(report: Report, name: str, timing) -> None:
    """Record a share of the copy bandwidth."""
    share = timing.share_of_copy
    relative = timing.spread / timing.median
    report.record(name, share, "1", share * relative)


def fastest(
    report: Report,
    name: str,
    forms: dict,
    check,
    run,
    **work,
):
    """The form whose run is fastest among those that are right; None where none is.

    forms: label -> form. check(form) raises where it is wrong; run(form) is timed.
    """
    right = {}
    for label, form in forms.items():
        try:
            check(form)
        except Exception as error:
            report.failed(f"{name} {label}", error)
        else:
            right[label] = form
    if not right:
        return None
    runs = {label: partial(run, form) for label, form in right.items()}
    timings = compare(runs, **work).timings
    times = {label: measured.median for label, measured in timings.items()}
    report.put("sweeps", name, {label: round(ms, 5) for label, ms in times.items()})
    return right[min(times, key=times.get)]


def usable(report: Report, name: str, rivals: dict) -> dict:
    """Those rivals that run here at all; the others' errors are kept."""
    able = {}
    for label, run in rivals.items():
        try:
            run()
            torch.cuda.synchronize()
        except Exception as error:
            report.failed(f"{name} {label}", error)
        else:
            able[label] = run
    return able
