"""Results as they come: one JSON file, written after each, so that nothing measured is lost."""

import json
import os
import re
import sys
import time
from pathlib import Path

from course.kernels.many_gpus import choices
from utils import results
from utils.engine import gpu

MACHINE = "machine"  # the name of the entry that says where the results are from


class Recording:
    """A file of results. Only rank 0 writes; the others' calls do nothing.

    Each result: name, value, unit, spread (half the interquartile range) and what else is known of
    it. gpus: how many the machine has, if not as many as there are ranks. Names of a machine with
    two GPUs are many_gpus/..., all others many_gpus/<ranks>/...
    """

    def __init__(
        self,
        path: str | Path,
        rank: int = 0,
        ranks: int = 2,
        gpus: int = 0,
    ):
        self.path = Path(path)
        self.rank, self.ranks = rank, ranks
        self.gpus = gpus or ranks
        self.entries = []
        if self.path.exists():
            self.entries = json.loads(self.path.read_text())

    def machine(self) -> None:
        """Keep on what the results are measured."""
        import torch

        libraries = {
            **results.versions(),
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        }
        here = {
            "gpu": gpu().name,
            "driver": gpu().driver,
            "versions": libraries,
        }
        if not any(entry["name"] == MACHINE for entry in self.entries):
            self.entries.append(
                {
                    "name": MACHINE,
                    **here,
                    "gpus": self.gpus,
                }
            )

    def add(
        self, name, value: float, unit: str, spread: float = 0.0, *, quiet=False, **more
    ) -> None:
        """Keep a result, and print it. With more than two GPUs names get their number."""
        name = self._with_ranks(name)
        entry = {
            "name": name,
            "value": float(value),
            "unit": unit,
            "spread": float(spread),
            **more,
        }
        entry["date"] = results.now()
        self.entries.append(entry)
        if quiet:
            return  # the next result that is not quiet writes this one, too
        self.write()
        if self.rank == 0:
            print(f"{name:60} {value:12.5g} {unit}", flush=True)

    def predict(
        self,
        name: str,
        value: float,
        unit: str,
        **more,
    ) -> None:
        """Keep a prediction for another number of GPUs, without printing it."""
        entry = {
            "name": f"many_gpus/{name}",
            "value": value,
            "unit": unit,
            "spread": 0.0,
            **more,
        }
        self.entries.append({**entry, "date": results.now()})

    def note(self, name: str, text: str) -> None:
        """Keep what went wrong, or what should be known."""
        name = self._with_ranks(name)
        self.entries.append({"name": name, "note": text})
        self.write()
        if self.rank == 0:
            print(f"{name:60} {text.strip()[-300:]}", flush=True)

    def _with_ranks(self, name):
        if self.ranks == self.gpus == 2 or not name.startswith("many_gpus/"):
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

    Not the notes, nor what was found wrong; of the sweeps each algorithm's best, and each size's
    into the table of choices. Of results with one name the last counts. A prediction is made before
    a run: one of a smaller machine than was measured since replaces none.
    """
    entries = json.loads(Path(path).read_text())
    machine = next(entry for entry in entries if entry["name"] == MACHINE)
    same = [entry for entry in results.everything() if entry["gpu"] == machine["gpu"]]
    later = machine.get("gpus", 2) < largest(same)
    where = {key: machine[key] for key in ("gpu", "driver", "versions")}
    taken = {}
    for entry in [*entries, *_bests(entries)]:
        name = entry["name"]
        if "value" not in entry or "/sweep/" in name or "WRONG" in name:
            continue
        if later and name.endswith("/predicted"):
            continue
        kept = {key: entry[key] for key in ("name", "value", "unit", "spread", "date")}
        taken[name] = {**where, **kept}
    choices.write(entries, machine)
    return results.add(list(taken.values()), results.known(machine["gpu"]))


def largest(entries: list[dict] | None = None) -> int:
    """The most GPUs of which these results are (default: those shown); 2 where there are none."""
    pattern = re.compile(r"many_gpus/(\d+)/all_reduce/\d+/ours/call")
    entries = results.load() if entries is None else entries
    numbers = [pattern.fullmatch(entry["name"]) for entry in entries]
    return max((int(match[1]) for match in numbers if match), default=2)


def _bests(entries) -> list[dict]:
    """The fastest variant of each algorithm and size: .../all_reduce/<bytes>/best/<algorithm>."""
    found = {}
    for entry in entries:
        before, sweep, variant = entry["name"].partition("/sweep/")
        if not sweep:
            continue
        name = f"{before}/best/{variant.split('/')[0]}"
        if name not in found or entry["value"] < found[name]["value"]:
            found[name] = {**entry, "name": name}
    return list(found.values())


def slowest(everyone: list[dict], key) -> list[float]:
    """Of each sample, taken by all ranks, the slowest rank's. everyone: each rank's samples."""
    ranks = [samples[key] for samples in everyone]
    return [max(times) for times in zip(*ranks, strict=True)]


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
