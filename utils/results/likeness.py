"""Which of the recorded GPUs is most like this machine's, so that its numbers are shown here."""

import json
import math
import re
from operator import itemgetter

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
    newest = sorted(contents, key=itemgetter("date"), reverse=True)
    most = sorted(newest, key=lambda content: -len(content["results"]))
    return sorted(most, key=lambda content: _unlike(content["gpu"], here))


def _unlike(recorded: dict, here: GPU | None) -> tuple:
    """How far a recorded GPU is from this machine's, as something to sort by."""
    name = recorded["name"]
    if here is None:
        return (name != RECORDED_ON,)
    major, minor = map(int, recorded["compute_capability"].split("."))
    its_major, its_minor = here.compute_capability
    capability = abs(10 * (major - its_major) + minor - its_minor)
    speed = bandwidth_of(name)
    its_speed = bandwidth_of(here.name)
    ratio = math.inf
    if speed and its_speed:
        ratio = abs(math.log(speed / its_speed))
    return name != here.name, capability, ratio


def bandwidth_of(name: str) -> float | None:
    """GB/s of a GPU's memory by its data sheet, from a name as NVML gives it; None if unlisted."""
    try:
        speed: float = listed(name)["bandwidth_gb_s"]["value"]
        return speed
    except LookupError:
        return None


def listed(name: str) -> dict:
    """The row of the data sheets that fits a name as NVML gives it. LookupError where none does.

    A row fits whose model ("H100", "4090") is a word of the name; of several the one that shares
    the most words ("PCIe").
    """
    words = set(name.lower().split())
    data = json.loads(GENERATIONS.read_text(encoding="utf-8"))
    best: dict | None = None
    most = 0
    for row in data["gpus"]:
        of_row = set(row["gpu"].lower().split())
        model = {word for word in of_row if re.search(r"\d", word)}
        shared = len(words & of_row)
        if model <= words and shared > most and row["bandwidth_gb_s"]:
            best = row
            most = shared
    if best is None:
        raise LookupError(f"no data sheet of {name}")
    return best
