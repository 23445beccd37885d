"""Which of the recorded GPUs is most like this machine's, so that its numbers are shown here."""

import json
import math
import re

from utils.engine import GPU
from utils.files import ASSETS

#: The GPU whose outputs the notebooks keep, and whose race the front pages show
RECORDED_ON = "NVIDIA H200"
GENERATIONS = ASSETS / "data" / "gpu_generations.json"


def preferred(contents: list[dict], here: GPU | None) -> list[dict]:
    """Contents of results files, that of the GPU most like `here` first.

    That is the GPU itself, then the nearest compute capability, then the nearest memory bandwidth
    by the data sheets. Without a GPU that of the notebooks, so that what stands in tables is what
    the text beside them speaks of. Among equals: the one with the most results, then the newest.
    """
    newest = sorted(contents, key=lambda content: content["date"], reverse=True)
    most = sorted(newest, key=lambda content: -len(content["results"]))
    if here is None:
        return sorted(most, key=lambda content: content["gpu"]["name"] != RECORDED_ON)
    return sorted(most, key=lambda content: _unlike(content["gpu"], here))


def _unlike(recorded: dict, here: GPU) -> tuple:
    """How far a recorded GPU is from this machine's, as something to sort by."""
    major, minor = map(int, recorded["compute_capability"].split("."))
    its_major, its_minor = here.compute_capability
    capability = abs(10 * (major - its_major) + minor - its_minor)
    speeds = bandwidth_of(recorded["name"]), bandwidth_of(here.name)
    ratio = abs(math.log(speeds[0] / speeds[1])) if all(speeds) else math.inf
    return recorded["name"] != here.name, capability, ratio


def bandwidth_of(name: str) -> float | None:
    """GB/s of a GPU's memory by its data sheet, from a name as NVML gives it; None if unlisted."""
    try:
        return listed(name)["bandwidth_gb_s"]["value"]
    except LookupError:
        return None


def listed(name: str) -> dict:
    """The row of the data sheets that fits a name as NVML gives it. LookupError where none does.

    A row fits whose model ("H100", "4090") is a word of the name; of several the one that shares
    the most words ("PCIe").
    """
    words = set(name.lower().split())
    best, most = None, 0
    for row in json.loads(GENERATIONS.read_text(encoding="utf-8"))["gpus"]:
        of_row = row["gpu"].lower().split()
        model = [word for word in of_row if re.search(r"\d", word)]
        shared = len(words & set(of_row))
        if words.issuperset(model) and shared > most and row["bandwidth_gb_s"]:
            best, most = row, shared
    if best is None:
        raise LookupError(f"no data sheet of {name}")
    return best
