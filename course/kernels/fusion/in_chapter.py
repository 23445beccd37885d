"""Races of the benches for the chapter: run where the GPU can, else what is recorded.

Each runs in a process of its own: a kernel that fails takes its process with it.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from course.kernels.fusion import records
from utils import has_gpu, results
from utils.engine import gpu
from utils.files import ROOT

HOPPER = (9, 0)
ROOM = 64 << 30  # bytes of GPU memory that the larger matrices need
PACKAGES = {
    "linear_cross_entropy": "fusion",
    "gemv": "low_precision",
    "fp8": "low_precision",
}


def able() -> bool:
    """Whether this GPU has the instructions and the memory."""
    if not has_gpu() or gpu().compute_capability != HOPPER:
        return False
    return torch.cuda.get_device_properties(0).total_memory >= ROOM


def race(part: str, *names: str | tuple[str, str], seconds: int = 60) -> None:
    """Race a part of a bench here, and print what was found under these names.

    names: or (name, words for it). Elsewhere, and where the race fails: print what is recorded.
    """
    found = run(part, seconds) if able() else {}
    for name, label in map(records.labelled, names):
        if name in found:
            value, unit = found[name]
            print(f"{label}: {records.in_words(name, value, unit)}, measured now")
        else:
            records.recorded((name, label))


def run(part: str, seconds: int) -> dict[str, tuple[float, str]]:
    """{name: (value, unit)} of a part of a bench; {} where it fails."""
    bench = f"course.kernels.{PACKAGES[part]}.bench"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        options = ["--parts", part, "--budget", str(seconds), "--out", str(out)]
        command = [sys.executable, "-m", bench, *options]
        try:
            subprocess.run(
                command,
                cwd=ROOT,
                timeout=2 * seconds,
                capture_output=True,
                check=True,
            )
        except subprocess.SubprocessError:
            return {}
        return json.loads(out.read_text())["clock"].get("found", {})


def gemv_clock() -> None:
    """Say so where the recorded products were timed one by one, not layer after layer."""
    if not able() and results.find("gemv/int4/8192/layers") is None:
        print("(recorded in another way: one matrix at a time, after a flush of the cache)")
