"""The table of GPU generations: every number has a source and a plausible value, and the years
ascend.
"""

import copy
import json

import pytest

from utils.files import ROOT

PATH = ROOT / "assets" / "data" / "gpu_generations.json"
DATA = json.loads(PATH.read_text(encoding="utf-8"))

# What a number of each column may be; outside, it is most likely in another unit (GFLOP/s for
# TFLOP/s).
PLAUSIBLE = {
    "year": (2006, 2027),
    "transistors_billion": (0.5, 1000),
    "sms": (10, 400),
    "fp32_tflops": (0.3, 300),
    "tensor16_tflops": (50, 20_000),
    "bf16_tflops": (50, 20_000),
    "memory_gb": (1, 1000),
    "bandwidth_gb_s": (50, 50_000),
    "tdp_w": (50, 3000),
    "storage_kb": (1000, 1_000_000),
    "cores": (8, 400),
    "threads": (8, 1_000_000),
}
WORDS = {"gpu", "chip", "architecture", "kind", "form"}
NEEDED = {"year", "bandwidth_gb_s"}  # of every GPU, or it cannot be drawn


def numbers(row):
    """(column, entry) for every number of a row; entry is None where there is none."""
    for column, entry in row.items():
        if column == "storage_kb":
            yield from ((column, level) for level in entry.values())
        elif column not in WORDS:
            yield column, entry


def problems(data):
    """What is wrong with the table, as a list of sentences."""
    found = []
    rows = [*data["gpus"], *data["chips"], *data["tpus"]]
    for row in rows:
        name = row.get("gpu") or row.get("chip")
        for column, entry in numbers(row):
            if entry is None:
                continue
            low, high = PLAUSIBLE[column]
            if entry["source"] not in data["sources"]:
                found.append(f"{name}: {column} has no source")
            if isinstance(entry["value"], bool) or not isinstance(entry["value"], int | float):
                found.append(f"{name}: {column} is no number")
            elif not low <= entry["value"] <= high:
                found.append(f"{name}: {column} = {entry['value']} is not plausible")
            if column not in data["units"] and column not in {"cores", "threads"}:
                found.append(f"{name}: {column} has no unit")
    for row in data["gpus"]:
        found += [f"{row['gpu']}: no {column}" for column in sorted(NEEDED) if row[column] is None]
        if (
            row["tensor16_tflops"]
            and row["tensor16_tflops"]["value"] <= row["fp32_tflops"]["value"]
        ):
            found.append(f"{row['gpu']}: its tensor cores are slower than its other units")
    years = [row["year"]["value"] for row in data["gpus"] if row["year"]]
    if years != sorted(years):
        found.append("the years do not ascend")
    names = [row.get("gpu") or row.get("chip") for row in rows]
    found += [f"{name} is there twice" for name in sorted({n for n in names if names.count(n) > 1})]
    for key, source in data["sources"].items():
        if not source["title"].strip() or not source["url"].startswith("https://"):
            found.append(f"source {key} has no title or address")
    used = {entry["source"] for row in rows for _, entry in numbers(row) if entry}
    return found + [f"source {key} is never used" for key in sorted(set(data["sources"]) - used)]


def test_the_table_is_sound():
    assert problems(DATA) == []


def test_every_gpu_has_the_same_columns():
    assert {tuple(row) for row in DATA["gpus"]} == {tuple(DATA["gpus"][0])}


DEFECTS = {
    "unknown source": ("has no source", lambda d: d["gpus"][0]["sms"].update(source="somewhere")),
    "MB/s": (
        "bandwidth_gb_s = 76800 is not plausible",
        lambda d: d["gpus"][0]["bandwidth_gb_s"].update(value=76800),
    ),
    "GFLOP/s": (
        "fp32_tflops = 622 is not plausible",
        lambda d: d["gpus"][1]["fp32_tflops"].update(value=622),
    ),
    "text": ("is no number", lambda d: d["gpus"][2]["sms"].update(value="16")),
    "no year": ("no year", lambda d: d["gpus"][0].update(year=None)),
    "order": ("do not ascend", lambda d: d["gpus"].reverse()),
    "twice": ("Tesla C870 is there twice", lambda d: d["gpus"].insert(0, d["gpus"][0])),
    "no address": ("no title or address", lambda d: d["sources"]["c870"].update(url="")),
    "cache": (
        "storage_kb = 32 is not plausible",
        lambda d: d["chips"][0]["storage_kb"]["L1 data"].update(value=32),
    ),
    "unused": (
        "is never used",
        lambda d: d["sources"].update(spare={"title": "x", "url": "https://x"}),
    ),
    "tensor": (
        "slower than its other units",
        lambda d: d["gpus"][9]["fp32_tflops"].update(value=80),
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(defect):
    said, spoil = DEFECTS[defect]
    data = copy.deepcopy(DATA)
    spoil(data)
    assert any(said in problem for problem in problems(data)), problems(data)
