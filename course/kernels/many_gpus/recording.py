"""Results as they come: one JSON file, written after each, so that nothing measured is lost."""

import json
import os
import statistics
import sys
import time
from pathlib import Path

from utils import results
from utils.engine import gpu

MACHINE = "machine"  # the name of the entry that says where the results are from


class Recording:
    """A file of results. Only rank 0 writes; the others' calls do nothing.

    Each result: name, value, unit, spread (half the interquartile range) and what else is known of
    it.
    """

    def __init__(self, path: str | Path, rank: int = 0, ranks: int = 2):
        self.path, self.rank, self.ranks = Path(path), rank, ranks
        self.entries = json.loads(self.path.read_text()) if self.path.exists() else []

    def machine(self) -> None:
        """Keep on what the results are measured."""
        import torch

        libraries = {**results.versions(), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
        here = {"gpu": gpu().name, "driver": gpu().driver, "versions": libraries}
        if not any(entry["name"] == MACHINE for entry in self.entries):
            self.entries.append({"name": MACHINE, **here, "gpus": self.ranks})

    def add(
        self, name, value: float, unit: str, spread: float = 0.0, *, quiet=False, **more
    ) -> None:
        """Keep a result, and print it. With more than two GPUs names get their number."""
        name = self._with_ranks(name)
        entry = {"name": name, "value": float(value), "unit": unit, "spread": float(spread), **more}
        entry["date"] = results.now()
        self.entries.append(entry)
        if quiet:
            return  # the next result that is not quiet writes this one, too
        self.write()
        if self.rank == 0:
            print(f"{name:60} {value:12.5g} {unit}", flush=True)

    def predict(self, name: str, value: float, unit: str, **more) -> None:
        """Keep a prediction for another number of GPUs, without printing it."""
        entry = {"name": f"many_gpus/{name}", "value": value, "unit": unit, "spread": 0.0, **more}
        self.entries.append({**entry, "date": results.now()})

    def note(self, name: str, text: str) -> None:
        """Keep what went wrong, or what should be known."""
        name = self._with_ranks(name)
        self.entries.append({"name": name, "note": text})
        self.write()
        if self.rank == 0:
            print(f"{name:60} {text.strip()[-300:]}", flush=True)

    def _with_ranks(self, name):
        if self.ranks == 2 or not name.startswith("many_gpus/"):
            return name
        return name.replace("many_gpus/", f"many_gpus/{self.ranks}/", 1)

    def write(self) -> None:
        """Write all results, as one."""
        if self.rank:
            return
        fresh = self.path.with_suffix(".part")
        fresh.write_text(json.dumps(self.entries, indent=1))
        os.replace(fresh, self.path)


def merge(path: str | Path) -> Path:
    """Put a file's results into assets/results, of the GPU that they were measured on.

    Not the sweeps, the notes, nor what was found wrong. Of results with one name the last counts.
    """
    entries = json.loads(Path(path).read_text())
    machine = next(entry for entry in entries if entry["name"] == MACHINE)
    where = {key: machine[key] for key in ("gpu", "driver", "versions")}
    taken = {}
    for entry in entries:
        name = entry["name"]
        if "value" not in entry or "/sweep/" in name or "WRONG" in name:
            continue
        kept = {key: entry[key] for key in ("name", "value", "unit", "spread", "date")}
        taken[name] = {**where, **kept}
    file = results.FOLDER / f"{results.slug(machine['gpu'])}.json"
    return results.add(list(taken.values()), json.loads(file.read_text())["gpu"])


def median_and_spread(samples) -> tuple[float, float]:
    """Median, and half the interquartile range."""
    if len(samples) < 2:
        return samples[0], 0.0
    low, middle, high = statistics.quantiles(samples, n=4)
    return middle, (high - low) / 2


class Clock:
    """What is left of a budget of seconds. All ranks must agree, so rank 0's word counts."""

    def __init__(self, seconds: float):
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.monotonic()

    def agreed(self, group) -> float:
        """Seconds that are left by rank 0's clock."""
        return group.all_gather(self.left())[0]


if __name__ == "__main__":  # python -m course.kernels.many_gpus.recording RESULTS.json
    print("wrote", merge(sys.argv[1]))
