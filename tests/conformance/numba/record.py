"""Record the Numba conformance programs' expected outputs on a GPU.

    python -m tests.conformance.numba.record [name ...]

Needs an NVIDIA GPU and numba-cuda. Runs every program with the real numba.cuda, writes what it
printed to its .out file and notes GPU, driver, versions and date in provenance.json. A program that
fails or prints nothing keeps its old .out, and the command ends with status 1. Differences from
derive.py are
shown: one of the two must be wrong.
"""

import argparse
import datetime
import difflib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.processes import completed

from .derive import FOLDER, PROGRAMS, PROVENANCE


def gpu_facts():
    """GPU, driver and versions of this machine; raises SystemExit where there is no GPU."""
    if not shutil.which("nvidia-smi"):
        sys.exit("recording needs an NVIDIA GPU (nvidia-smi is not there)")
    query = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    answer = completed(query, check=True).stdout
    name, driver = (part.strip() for part in answer.splitlines()[0].split(","))
    versions = {
        package: importlib.metadata.version(package) for package in ("numba", "numba-cuda", "numpy")
    }
    return {"gpu": name, "driver": driver, **versions, "date": datetime.date.today().isoformat()}


def record(source):
    """Run one program on the GPU; return (what it printed, "") or (None, what went wrong)."""
    environment = {
        name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"
    }
    try:
        done = completed([sys.executable, str(source)], timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return None, "ran for more than 120 s"
    if done.returncode or not done.stdout:
        return None, f"ended with status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="programs to record (all)")
    names = parser.parse_args().names
    facts = gpu_facts()
    provenance = json.loads(PROVENANCE.read_text())
    failed = 0
    sources = [
        source for source in sorted(FOLDER.glob("*.py")) if not names or source.stem in names
    ]
    with ThreadPoolExecutor(
        os.cpu_count()
    ) as pool:  # starting Python and compiling take far longer than the kernels
        answers = list(pool.map(record, sources))
    for source, (printed, problem) in zip(sources, answers, strict=True):
        if printed is None:
            failed += 1
            print(f"{source.stem}: NOT recorded\n{problem}")
            continue
        derived = PROGRAMS[source.stem]()
        print(
            f"{source.stem}: recorded"
            + ("" if printed == derived else ", DIFFERS from what was derived")
        )
        sys.stdout.writelines(
            difflib.unified_diff(
                derived.splitlines(True), printed.splitlines(True), "derived", "recorded", n=0
            )
        )
        source.with_suffix(".out").write_text(printed)
        provenance["recorded"][source.stem] = facts
    PROVENANCE.write_text(json.dumps(provenance, indent=2) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
