"""Record the conformance programs' expected outputs on a GPU.

    python -m tests.conformance.record [name ...]
    python -m tests.conformance.record --compile [name ...]    only whether nvcc accepts them; needs
    no GPU

Needs nvcc and an NVIDIA GPU. Builds every program of cuda_c/ with nvcc for this GPU, runs it,
writes what it printed to its .out file and notes GPU, driver, nvcc and date in provenance.json. A
program that does not build, fails or prints nothing keeps its old .out and provenance, and the
command ends with status
1.
Differences from the values of derive.py are shown, since one of the two must be wrong.
"""

import argparse
import datetime
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.processes import completed

from .derive import FOLDER, PROGRAMS, PROVENANCE, provenance


def flags(source):
    """nvcc flags named in the source's first line, `// flags: ...`."""
    first = source.read_text().split("\n", 1)[0]
    return first.removeprefix("// flags:").split() if first.startswith("// flags:") else []


def architecture(source, arch):
    """The flag for a GPU; none where the program names its own (instructions of one GPU only)."""
    own = any(flag.startswith(("-arch", "-gencode")) for flag in flags(source))
    return [] if own else [f"-arch={arch}"]


def command_output(*command):
    return completed(command, check=True).stdout.strip()


def gpu_facts():
    """GPU, driver and compiler of this machine; raises SystemExit where there are none."""
    if not shutil.which("nvcc") or not shutil.which("nvidia-smi"):
        sys.exit("recording needs nvcc and an NVIDIA GPU (nvidia-smi)")
    query = command_output(
        "nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"
    )
    name, driver, capability = (part.strip() for part in query.splitlines()[0].split(","))
    nvcc = command_output("nvcc", "--version").splitlines()[-2].split("release ")[-1]
    date = datetime.date.today().isoformat()
    return {"gpu": name, "driver": driver, "nvcc": nvcc, "date": date}, "sm_" + capability.replace(
        ".", ""
    )


def compile_only(sources, build):
    """Compile every program with nvcc to an object file; return how many it does not accept."""
    failed = 0
    for source in sources:
        output = str(Path(build) / "object.o")
        command = [
            "nvcc",
            *architecture(source, "sm_90"),
            "-std=c++17",
            *flags(source),
            "-c",
            "-o",
            output,
            str(source),
        ]
        done = completed(command)
        failed += done.returncode != 0
        print(f"{source.stem}: {'accepted' if done.returncode == 0 else done.stderr}")
    return failed


def compile_program(source, arch, build):
    """Build one program; return its path and nvcc's errors."""
    executable = Path(build) / source.stem
    command = [
        "nvcc",
        *architecture(source, arch),
        "-std=c++17",
        *flags(source),
        "-o",
        str(executable),
        str(source),
    ]
    return executable, completed(command).stderr


def record(executable, errors):
    """Run one program that was built; return (what it printed, "") or (None, what went wrong)."""
    if not executable.exists():
        return None, errors
    try:
        done = completed([str(executable)], timeout=60)
    except subprocess.TimeoutExpired:
        return None, "ran for more than 60 s"
    if done.returncode or not done.stdout:
        return None, f"ended with status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="programs to record (all)")
    parser.add_argument("--compile", action="store_true", help="only compile, to object files")
    arguments = parser.parse_args()
    names = arguments.names
    sources = [s for s in sorted(FOLDER.glob("*.cu")) if not names or s.stem in names]
    with tempfile.TemporaryDirectory() as build:
        if arguments.compile:
            sys.exit(1 if compile_only(sources, build) else 0)
        facts, arch = gpu_facts()
        known, failed = provenance(), 0
        with ThreadPoolExecutor(
            os.cpu_count()
        ) as pool:  # nvcc takes seconds a program, and the GPU nothing
            built = list(pool.map(lambda source: compile_program(source, arch, build), sources))
        for source, (executable, errors) in zip(sources, built, strict=True):
            printed, problem = record(executable, errors)
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
            known["recorded"][source.stem] = facts
    PROVENANCE.write_text(json.dumps(known, indent=2) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
