"""Facts of GPUs from data sheets and white papers, each with its source: `assets/data` has them."""

import json
from typing import Any

from utils.results.likeness import GENERATIONS

#: fp32 units of an SM by compute capability, where it has not 128
FP32_UNITS = {(7, 5): 64, (8, 0): 64}


def generations() -> dict:
    """The table of GPUs, chips and TPUs: {"gpus": [...], "chips": [...], "tpus": [...], ...}.

    Each number stands as itself (None where there is no source); `sources_of` says where it is
    from.
    """
    data = json.loads(GENERATIONS.read_text(encoding="utf-8"))
    rows = {name: [_plain(row) for row in data[name]] for name in ("gpus", "chips", "tpus")}
    return {**rows, "sources": data["sources"], "units": data["units"]}


def _plain(entry: Any) -> Any:
    """An entry {"value": ..., "source": ...} as its value; dicts of such entries likewise."""
    if not isinstance(entry, dict):
        return entry
    if "source" in entry:
        return entry["value"]
    return {key: _plain(value) for key, value in entry.items()}


def sources_of(gpu: str) -> str:
    """The sources of a GPU's numbers, each with what it says. KeyError for an unknown GPU."""
    data = json.loads(GENERATIONS.read_text(encoding="utf-8"))
    row = {row["gpu"]: row for row in data["gpus"]}[gpu]
    facts: dict[str, list[str]] = {}
    for column, entry in row.items():
        if isinstance(entry, dict):
            how = f" ({entry['how']})" if "how" in entry else ""
            value = entry["value"] if column == "year" else f"{entry['value']:,g}"
            facts.setdefault(entry["source"], []).append(f"{column} {value}{how}")
    titles = {key: data["sources"][key] for key in facts}
    return "\n".join(
        f"{titles[key]['title']}\n   {titles[key]['url']}\n   {', '.join(texts)}"
        for key, texts in facts.items()
    )


def data_sheet(name: str) -> dict:
    """The row of `generations` for one GPU, such as "H100 SXM". KeyError for an unknown GPU."""
    rows: dict[str, dict] = {row["gpu"]: row for row in generations()["gpus"]}
    return rows[name]
