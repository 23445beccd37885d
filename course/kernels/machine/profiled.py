"""What limits the judged kernels by Nsight Compute's counters, beside what their estimates say.

    python -m course.kernels.machine.profiled                    on a GPU, with ncu
    python -m course.kernels.machine.profiled --agreement        anywhere: estimates against it

The first launches each kernel of `cases` once under ncu, some in a process, and writes
assets/recorded/limits-<gpu>.json after each process. Walks through a table are left out: their
launches need the chapter's own table.

Nsight Compute names a kernel's limit by how busy its units are: the busiest one, if it does LEAST
percent of what it could; below that its advice reads "latency". An estimate agrees where it names
that unit, or one whose share is within NEAR percent (ncu then calls the kernel balanced), or, where
all units are below LEAST, one of what keeps units idle: latency, barriers, the start of blocks,
additions that queue at one element.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numba import cuda

from course.kernels.machine import cases_cuda_c
from course.kernels.machine.cases import Case, Growing, cases
from utils import engine, results
from utils.estimate import Blank, Launch
from utils.estimate.statement import JUDGED
from utils.files import ASSETS, write_whole
from utils.tools import process, profilers
from utils.tracer import is_cuda_c

FOLDER = ASSETS / "recorded"
#: What it is called here -> Nsight Compute's counter; shares are percent of what a unit can do
COUNTERS = {
    "time_ns": "gpu__time_duration.sum",
    "memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue": "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}
UNITS = ("memory", "l2", "l1", "sm")
IDLE = "latency"
LEAST, NEAR = 60, 10  # percent: from ncu's own rules
#: A resource of the model -> the unit that it keeps busy; what is not here keeps units idle
UNIT_OF = {"memory": "memory", "l2": "l2", "l1": "l1"}
UNIT_OF |= dict.fromkeys(("issue", "fp32", "fp64", "multiply", "integer", "special"), "sm")
UNIT_OF |= dict.fromkeys(("convert", "shuffle", "tensor"), "sm")
LEFT_OUT = ("walks",)  # families
TOGETHER = 20  # kernels in a process
TIMEOUT = 90
UNKNOWN = re.compile(r"Failed to find metric (?:regex:)?\^?([\w.]+)")
SAID = "launched "
PIECE = 1 << 22  # elements that are copied to a GPU at once


def every() -> list[Case]:
    """The cases with an estimate, in an order in which the first few are of all kinds."""
    judged = {one["name"] for one in json.loads(JUDGED.read_text(encoding="utf-8"))["kernels"]}
    by_kind = {}
    for case in (*cases(), *cases_cuda_c.cases()):
        if case.name in judged and case.family not in LEFT_OUT:
            by_kind.setdefault((case.family, case.language), []).append(case)
    longest = max(map(len, by_kind.values()))
    return [case for n in range(longest) for case in at(by_kind, n)]


def at(lists: dict, n: int) -> Iterator:
    """The n-th of each list that has so many."""
    return (one[n] for one in lists.values() if n < len(one))


# ---- under ncu


def launch_of(case: Case) -> Launch:
    """A case's first launch, the longest, at its real size."""
    if case.growing is not None:
        return case.growing(case.size)
    first = case.launches[0]
    return first.make(first.size) if isinstance(first, Growing) else first


def on_device(arg):
    """An argument on the GPU; a Blank holds random numbers, counters hold zeros."""
    if isinstance(arg, np.ndarray) and arg.ndim:
        return cuda.to_device(arg)
    if not isinstance(arg, Blank):
        return arg
    array = cuda.device_array(arg.shape, arg.dtype)
    flat = array.ravel()
    rng = np.random.default_rng(0)
    numbers = np.zeros(PIECE, arg.dtype)
    if flat.dtype.kind == "f":
        numbers = rng.random(PIECE, dtype=np.float32).astype(arg.dtype)
    elif flat.dtype.itemsize == 1:
        numbers = rng.integers(0, 256, PIECE).astype(arg.dtype)
    for start in range(0, flat.size, PIECE):
        part = flat[start : start + PIECE]
        part.copy_to_device(numbers[: part.size])
    return array


def launch(names: list[str]) -> None:
    """Launch cases twice each; the second launch of each is what ncu watches."""
    chosen = {case.name: case for case in every()}
    for name in names:
        try:
            made = launch_of(chosen[name])
            args = [on_device(arg) for arg in made.args]
            stream = () if is_cuda_c(made.kernel) else (0,)  # Numba has it before the bytes
            run = made.kernel[(made.grid, made.block, *stream, made.shared_bytes)]
            run(*args)
            cuda.synchronize()
        except Exception as error:  # another case may do
            print(f"not launched: {name}: {type(error).__name__}: {error}", flush=True)
            continue
        cuda.profile_start()
        run(*args)
        cuda.synchronize()
        cuda.profile_stop()
        print(SAID + name, flush=True)


def profiled(names: list[str], counters: dict) -> dict[str, dict]:
    """Name -> ncu's counters, of those that could be launched. Drops counters it does not know."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        command = [profilers.find("ncu"), "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--profile-from-start", "off", "--clock-control", "none"]
        command += ["--log-file", str(table), "--metrics", ",".join(counters.values())]
        command += [sys.executable, "-m", __spec__.name, "--launch", *names]
        done = process.run(command, timeout=TIMEOUT)
        text = table.read_text(encoding="utf-8") if table.exists() else ""
    unknown = set(UNKNOWN.findall(text + done.output)) & set(counters.values())
    if unknown:
        print("this ncu does not know", *unknown, flush=True)
        for name in [name for name, counter in counters.items() if counter in unknown]:
            del counters[name]
        return profiled(names, counters)
    launched = [line[len(SAID) :] for line in done.output.splitlines() if line.startswith(SAID)]
    rows = [row for row in profilers.parse_csv(profilers.csv_part(text)) if row.get("Kernel Name")]
    if len(rows) != len(launched):
        print(text[-2000:], done.output[-2000:], sep="\n")
        raise RuntimeError(f"ncu saw {len(rows)} launches, not {len(launched)}")
    return {
        name: {what: value(row[counter]) for what, counter in counters.items() if counter in row}
        for name, row in zip(launched, rows, strict=True)
    }


def value(cell: str) -> float:
    """A number of ncu's table, whatever unit stands behind it."""
    return float(cell.split()[0].replace(",", ""))


def record(path: Path, budget: float) -> None:
    """Profile all cases until `budget` seconds are over; the file is whole after each process."""
    begin = time.monotonic()
    names = [case.name for case in every()]
    counters, found = dict(COUNTERS), {}
    gpu = engine.gpu()
    while names and time.monotonic() - begin < budget:
        now, names = names[:TOGETHER], names[TOGETHER:]
        try:
            found |= profiled(now, counters)
        except (RuntimeError, process.Timeout) as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        content = {
            "gpu": gpu.name,
            "driver": gpu.driver,
            "date": results.now(),
            "versions": results.versions(),
            "counters": counters,
            "kernels": found,
        }
        write_whole(path, json.dumps(content, indent=1) + "\n")
        print(f"{len(found)} kernels after {time.monotonic() - begin:.0f} s", flush=True)


# ---- beside estimates


def verdict(counted: dict) -> str:
    """The unit that Nsight Compute finds busiest, or IDLE where none is busy."""
    busiest = max(UNITS, key=counted.get)
    return busiest if counted[busiest] >= LEAST else IDLE


def agrees(limit: str, counted: dict) -> bool:
    """Whether an estimate's limit is ncu's."""
    most = max(counted[unit] for unit in UNITS)
    unit = UNIT_OF.get(limit)
    if unit is None or most < LEAST:
        return unit is None and most < LEAST
    return counted[unit] >= most - NEAR


def compared(estimates: list[dict], counted: dict[str, dict]) -> list[dict]:
    """A row for each kernel of which both are known: name, estimate's limit, ncu's, agreement."""
    return [
        {
            "name": one["name"],
            "estimate": one["limit"],
            "ncu": verdict(counted[one["name"]]),
            "agrees": agrees(one["limit"], counted[one["name"]]),
        }
        for one in estimates
        if one["name"] in counted
    ]


def recorded(gpu: str = "H200") -> list[dict]:
    """`compared` of what is recorded of a GPU; empty where nothing is."""
    path = FOLDER / f"limits-nvidia-{gpu.lower()}.json"
    if not path.exists():
        return []
    counted = json.loads(path.read_text(encoding="utf-8"))["kernels"]
    kernels = json.loads(JUDGED.read_text(encoding="utf-8"))["kernels"]
    return compared([one for one in kernels if one["gpu"] == gpu], counted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=300, help="seconds")
    parser.add_argument("--agreement", action="store_true", help="estimates against what there is")
    parser.add_argument("--launch", nargs="+", metavar="NAME", help="what runs under ncu")
    options = parser.parse_args()
    if options.launch:
        launch(options.launch)
        return 0
    if options.agreement:
        rows = recorded()
        for row in rows:
            mark = "" if row["agrees"] else "   differs"
            print(f"{row['name']:42} {row['estimate']:10} {row['ncu']:10}{mark}")
        print(f"{sum(row['agrees'] for row in rows)} of {len(rows)} kernels: the same limit")
        return 0
    missing = profilers.absent("ncu")
    if missing:
        print(f"nothing recorded: {missing}", file=sys.stderr)
        return 2
    record(FOLDER / f"limits-{results.slug(engine.gpu().name)}.json", options.budget)
    return 0


if __name__ == "__main__":
    sys.exit(main())
