"""Holds estimates against recorded times.

    python -m course.kernels.machine.judge               the kernels that may be looked at
    python -m course.kernels.machine.judge --held-out    all of them; writes what was found
    python -m course.kernels.machine.judge --calibrate   writes the exponent of the model

It writes assets/recorded/estimates.json (each kernel's estimate, time and limit, and the errors by
GPU and family) and assets/estimates.svg (estimates over times). Which third is held out was settled
by name (`cases.is_held_out`) before any estimate was compared with a time. Whoever changes the
model after a look at the held-out kernels has to name others.
"""

import argparse
import dataclasses
import itertools
import json
import math
import statistics
import time

from course.kernels.machine import cases_cuda_c, cases_triton
from course.kernels.machine.cases import Case, Growing, cases
from utils import plots, results
from utils.estimate import Launch, Unknown
from utils.estimate.gpus import OVERLAP, Gpu, gpu, recorded_name
from utils.estimate.model import Counts, Terms, seconds_of, terms
from utils.estimate.statement import JUDGED, off, worst_of
from utils.estimate.totals import count
from utils.files import ASSETS, write_whole
from utils.plots.picture import themed

GPUS = ("H200", "H100")
LANGUAGES = ("numba", "cuda_c", "triton")
BOTH = "both"  # all of them
TIE = 1.05  # of two measured times: closer ones are in no order
PICTURE = ASSETS / "estimates.svg"
NUMBERED = 10  # of the worst, on the picture
LINES = 1.5  # factors between which nine in ten should lie
COLOURS = ("#0072B2", "#D55E00")  # of GPUS
EXPONENTS = [quarters / 4 for quarters in range(6, 41)]


def counts_of(case: Case) -> list[Counts]:
    """The counts of each launch of a case. Unknown where there are none."""
    if case.growing is not None:
        first = [count(case.growing, case.size, case.small)]
        return first + [count(launch) for launch in case.also]
    return [counts_of_launch(launch) for launch in case.launches]


def counts_of_launch(launch: Launch | Growing) -> Counts:
    if isinstance(launch, Growing):
        return count(launch.make, launch.size, launch.small)
    return count(launch)


def terms_of(counted: list[Counts], card: Gpu) -> list[Terms]:
    return [terms(one, card) for one in counted]


def measured(name: str, card: str) -> float | None:
    """Seconds that were recorded of a kernel on a GPU; None where nothing was."""
    entry = results.find(f"{name}/time", recorded_name(card))
    return entry["value"] / 1e3 if entry else None


def row_of(case: Case, counted: list[Counts], card: str) -> dict | None:
    """A case's estimate beside its time; None where nothing was recorded."""
    real = measured(case.name, card)
    if real is None:
        return None
    parts = terms_of(counted, gpu(card))
    longest = max(parts, key=lambda one: one.time)
    return {
        "name": case.name,
        "family": case.family,
        "language": case.language,
        "gpu": card,
        "held_out": case.held_out,
        "calibrates": case.calibrates,
        "measured_ms": real * 1e3,
        "estimate_ms": seconds_of(parts) * 1e3,
        "limit": longest.limit,
        "terms_ms": {name: 1e3 * value for name, value in longest.seconds.items() if value},
    }


def error(row) -> float:
    """How far an estimate is off, as a share of the time: -0.2 is a fifth too short."""
    return row["estimate_ms"] / row["measured_ms"] - 1


def summary(rows: list[dict]) -> dict:
    """Median error, factor within which nine in ten lie, pairs of a family in the right order."""
    right, pairs = ordered(rows)
    factors = sorted(off(row) for row in rows)
    return {
        "kernels": len(rows),
        "median_error": statistics.median(abs(error(row)) for row in rows),
        "p90_factor": factors[math.ceil(0.9 * len(factors)) - 1],
        "pairs": pairs,
        "pairs_in_order": right / pairs if pairs else None,
    }


def ordered(rows) -> tuple[int, int]:
    """(pairs in the right order, pairs) of the same family, ties of the clock left out."""
    right = total = 0
    for one, other in itertools.combinations(rows, 2):
        if one["family"] != other["family"]:
            continue
        ratio = one["measured_ms"] / other["measured_ms"]
        if max(ratio, 1 / ratio) < TIE:
            continue
        total += 1
        right += (ratio > 1) == (one["estimate_ms"] > other["estimate_ms"])
    return right, total


def judge(chosen: list[Case]) -> tuple[list[dict], dict]:
    """(a row for each kernel and GPU, name -> why there is none)."""
    rows, unknown = [], {}
    for case in chosen:
        begin = time.process_time()
        try:
            counted = counts_of(case)
        except Unknown as reason:
            unknown[case.name] = str(reason)
            continue
        spent = time.process_time() - begin
        for card in GPUS:
            row = row_of(case, counted, card)
            if row is not None:
                rows.append({**row, "seconds_to_count": round(spent, 2)})
    return rows, unknown


def shown(row) -> str:
    top = sorted(row["terms_ms"].items(), key=lambda item: -item[1])[:4]
    parts = " ".join(f"{name} {value:.4g}" for name, value in top)
    times = f"{row['measured_ms']:9.4g} {row['estimate_ms']:9.4g} {error(row):+6.0%}"
    return f"{row['gpu']} {row['name']:<42} {times}  {parts}"


def said(what, found) -> str:
    order = found["pairs_in_order"]
    pairs = f"{order:.0%} of {found['pairs']} pairs in order" if order is not None else "no pairs"
    return (
        f"{what}: {found['kernels']} kernels, median error {found['median_error']:.0%}, nine in "
        f"ten within a factor of {found['p90_factor']:.2f}, {pairs}"
    )


def report(rows: list[dict]) -> dict:
    """Errors by GPU and language: of all kernels, of those held out, of each family.

    Calibration kernels are left out.
    """
    found = {}
    rows = [row for row in rows if not row["calibrates"]]
    for card, language in itertools.product(GPUS, (*LANGUAGES, BOTH)):
        mine = [row for row in rows if row["gpu"] == card and language in (row["language"], BOTH)]
        if not mine:
            continue
        held_out = [row for row in mine if row["held_out"]]
        families = sorted({row["family"] for row in mine})
        numbers = found.setdefault(card, {})[language] = {
            "all": summary(mine),
            "families": {
                name: summary([row for row in mine if row["family"] == name]) for name in families
            },
        }
        if held_out:
            numbers["held_out"] = summary(held_out)
    return found


def metrics(found: dict) -> dict:
    """The errors of all kernels of a GPU, and of those held out, by the names of metrics."""
    named = {}
    for card, languages in found.items():
        for part, place in (("all", ""), ("held_out", "held_out/")):
            numbers = languages[BOTH].get(part, {})
            for what in ("median_error", "p90_factor", "pairs_in_order"):
                if numbers.get(what) is not None:
                    named[f"estimate/{place}{card.lower()}/{what}"] = numbers[what]
    return named


def drawn(rows: list[dict]):
    """The picture: each kernel's estimate over its time, those held out filled."""
    rows = [row for row in rows if not row["calibrates"]]
    times = [row[key] for row in rows for key in ("measured_ms", "estimate_ms")]
    ends = [min(times) / 2, max(times) * 2]
    fig, axes = plots.chart(7.0, 5.0, alt=in_words(rows))
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="measured, ms", ylabel="estimated, ms")
    for away, style in ((1, "-"), (LINES, ":"), (1 / LINES, ":")):
        axes.plot(ends, [away * end for end in ends], style, color="#999999", linewidth=0.8)
    for card, colour in zip(GPUS, COLOURS, strict=True):
        for held_out in (False, True):
            mine = [row for row in rows if (row["gpu"], row["held_out"]) == (card, held_out)]
            axes.scatter(
                [row["measured_ms"] for row in mine],
                [row["estimate_ms"] for row in mine],
                s=22,
                edgecolors=colour,
                facecolors=colour if held_out else "none",
                label=f"{card}, {'held out' if held_out else 'looked at'}",
            )
    for number, row in enumerate(worst_of(rows, NUMBERED), 1):
        place = row["measured_ms"], row["estimate_ms"]
        axes.annotate(str(number), place, (4, 3), textcoords="offset points", fontsize=8)
    axes.legend(frameon=False, fontsize=8)
    return fig


def in_words(rows) -> str:
    """The picture for who cannot see it."""
    parts = []
    for card in GPUS:
        mine = [row for row in rows if row["gpu"] == card]
        near = sum(off(row) <= LINES for row in mine)
        parts.append(f"{near} of {len(mine)} kernels on an {card}")
    return (
        f"Estimates over measured times on logarithmic axes, along the diagonal: within a factor "
        f"of {LINES} are {' and '.join(parts)}. The {NUMBERED} worst of the {GPUS[0]} have numbers."
    )


def calibrated(chosen: list[Case]) -> dict:
    """The exponent that fits the kernels of CALIBRATION best: the least mean square logarithm.

    No error is ever stated of these kernels.
    """
    known = [(case, counts_of(case)) for case in chosen if case.calibrates]
    misses = {}
    for exponent in EXPONENTS:
        squares = []
        for case, counted in known:
            for card in GPUS:
                real = measured(case.name, card)
                if real is not None:
                    changed = dataclasses.replace(gpu(card), exponent=exponent)
                    squares.append(math.log(seconds_of(terms_of(counted, changed)) / real) ** 2)
        misses[exponent] = statistics.mean(squares)
    best = min(misses, key=misses.get)
    return {"exponent": best, "kernels": [case.name for case, _ in known], "date": results.now()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--held-out", action="store_true", help="look at all, and write it down")
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument("--calibrate", action="store_true", help="write the exponent alone")
    options = parser.parse_args()
    if options.calibrate:
        found = calibrated(cases())
        write_whole(OVERLAP, json.dumps(found, indent=1) + "\n")
        print(f"exponent {found['exponent']}, from {len(found['kernels'])} kernels")
        return
    every = [*cases(), *cases_cuda_c.cases(), *cases_triton.cases()]
    chosen = [case for case in every if options.held_out or not case.held_out]
    if options.only:
        chosen = [case for case in chosen if options.only in case.name]
    rows, unknown = judge(chosen)
    for row in rows:
        print(shown(row))
    for name, reason in unknown.items():
        print(f"no estimate: {name}: {reason}")
    found = report(rows)
    for card, language in itertools.product(GPUS, (*LANGUAGES, BOTH)):
        by = found.get(card, {}).get(language, {"families": {}})
        for what in ("all", "held_out"):
            if what in by:
                print(said(f"{card}, {language}, {what}", by[what]))
        for family, numbers in by["families"].items():
            print(said(f"    {family}", numbers))
    if options.held_out and not options.only:
        content = {
            "date": results.now(),
            "metrics": metrics(found),
            "gpus": found,
            "unknown": unknown,
            "kernels": rows,
        }
        write_whole(JUDGED, json.dumps(content, indent=1) + "\n")
        write_whole(PICTURE, themed(drawn(rows)) + "\n")
        print("wrote", JUDGED.name, "and", PICTURE.name)


if __name__ == "__main__":
    main()
