"""What a bench found, kept in a file from the first result on.

    python -m course.kernels.bench.report results.jsonl

puts what a bench measured, on whatever machine, into assets/results.
"""

import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path

import torch

from utils import results
from utils.engine import gpu, has_gpu
from utils.files import write_whole

PATIENCE = 80  # seconds without a result, unless a bench says otherwise


class Report:
    """What was found, written to a file after every entry.

    On a GPU the entries for assets/results lie beside it, in a file that ends in .jsonl.
    """

    def __init__(self, path: Path, budget: float, patience: float = PATIENCE):
        self.path = path
        self.patience = patience
        self.attempted = "nothing"
        if has_gpu():
            os.environ.setdefault(results.RECORD, str(path.with_suffix(".jsonl")))
        self.latest = time.monotonic()  # when something was last put
        self.ends = self.latest + budget
        self.entries = {
            "gpu": gpu().name if has_gpu() else "none",
            "torch": torch.__version__,
        }
        kinds = "found checks sweeps races errors clock variants ladder notes outputs".split()
        self.entries |= {kind: {} for kind in kinds}
        self.entries["lines"] = []

    def put(self, kind: str, name: str, value) -> None:
        """Keep a result."""
        self.entries[kind][name] = value
        self._write()

    def record(self, name: str, value: float, unit: str = "1", spread: float = 0.0) -> None:
        """Keep a number, and hand it to the recording command, if one is running."""
        results.record(name, value, unit, spread)
        self.put("found", name, [float(value), unit, float(spread)])

    def say(self, line: str) -> None:
        """Print a line, and keep it."""
        print(line, flush=True)
        self.entries["lines"].append(line)
        self._write()

    def _write(self) -> None:
        self.latest = time.monotonic()
        write_whole(self.path, json.dumps(self.entries, indent=1))

    def failed(self, name: str, error: Exception) -> None:
        """Keep an error, and say so."""
        last = traceback.format_exception_only(error)[-1]
        print(f"FAILED {name}: {last[:300]}", flush=True)
        self.put("errors", name, "".join(traceback.format_exception(error))[-6000:])

    def attempt(self, name: str, function, *arguments):
        """function's result, or None after an error, which is kept."""
        self.attempted = name
        try:
            return function(*arguments)
        except Exception as error:
            self.failed(name, error)
            return None

    def left(self) -> float:
        """Seconds left of the budget."""
        return self.ends - time.monotonic()

    def watch(self) -> None:
        """End the process if nothing comes any more: a kernel that hangs would hold the GPU."""
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while time.monotonic() - self.latest < self.patience:
            time.sleep(1)
        print(f"nothing for {self.patience} s: given up at {self.attempted}", flush=True)
        os._exit(3)


def measured(timing) -> dict:
    """A timing as it is kept: milliseconds, rate, share of a copy's speed."""
    entry = {"ms": timing.median, "spread_ms": timing.spread}
    if timing.bytes:
        entry["GB/s"] = timing.bytes_per_second / 1e9
        entry["copy"] = timing.share_of_copy
    if timing.flops:
        entry["TFLOP/s"] = timing.flops_per_second / 1e12
    return entry


def merge(path: str | Path) -> Path:
    """Put a bench's file of JSON lines into assets/results; returns the file that was written.

    For a GPU that has a file there already: what its driver says of it is taken from that.
    """
    entries = results.read_lines(path)
    if not entries:
        raise ValueError(f"{path} holds no result")
    return results.add(entries, results.known(entries[0]["gpu"]))


if __name__ == "__main__":
    print("wrote", merge(sys.argv[1]))
