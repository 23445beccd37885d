"""Recorded results of real GPUs: `assets/results/<gpu>.json`; the README there describes them.

Notebooks read them with `load` and `find`. Where several GPUs are recorded these take one of them
for all results of a topic: this machine's, else the one most like it. Numbers of two topics that
stand in one table or ratio are asked for with `together`, or with `find` and the first one's GPU.

While the recording command runs, it names a file of JSON lines in the environment variable
``CUDA_COURSE_RECORD``; the helpers add to it with `append`, and the command turns it into a results
file with `read_lines` and `add`.
"""

import functools
import json
import math
import os
import platform
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from utils import engine
from utils.files import ASSETS, write_whole
from utils.results.likeness import preferred

RECORD = "CUDA_COURSE_RECORD"
FOLDER = ASSETS / "results"
#: Files of results, each with the time of its last change
Files = tuple[tuple[Path, int], ...]
_LIBRARIES = ("numpy", "numba", "numba-cuda", "torch", "triton", "cuda-core")


def slug(gpu_name: str) -> str:
    """A GPU's name as a file name: "NVIDIA H200" becomes "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", gpu_name.lower()).strip("-")


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that matter for a measurement, as installed here."""
    installed = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def now() -> str:
    """This moment in UTC, as results state it: 2026-01-31T12:00:00Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- validation

_TEXT = {"type": "string", "pattern": r"\S"}
_DATE = {"type": "string", "pattern": r"^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\dZ$"}
_COUNT = {"type": "integer", "minimum": 1}
_VERSION = {"type": "string", "pattern": r"^\d+\.\d+$"}
_VERSIONS = {"type": "object", "minProperties": 1, "additionalProperties": _TEXT}


def _object(**properties: dict) -> dict:
    """JSON Schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_ENTRY = _object(
    name={"type": "string", "pattern": r"^[a-z0-9_.^-]+(/[a-z0-9_.^-]+)+$"},
    value={"type": "number"},
    unit=_TEXT,
    spread={"type": "number", "minimum": 0},
    gpu=_TEXT,
    driver=_TEXT,
    versions=_VERSIONS,
    date=_DATE,
)
_FILE = _object(
    schema={"const": 1},
    gpu=_object(
        name=_TEXT,
        compute_capability=_VERSION,
        sms=_COUNT,
        memory_bytes=_COUNT,
        driver=_TEXT,
        cuda=_VERSION,
    ),
    date=_DATE,
    versions=_VERSIONS,
    results={"type": "array", "items": _ENTRY},
)


@functools.cache
def _quick() -> Callable[[object], object]:
    """What raises for a file's content of another form: in a tenth of a second for thousands of
    entries, and jsonschema, which names all that is wrong, needs two.
    """
    import fastjsonschema

    return fastjsonschema.compile(_FILE)


def _problems_of_form(content: Any) -> list[str]:
    try:
        _quick()(content)
    except ValueError:  # fastjsonschema's are of this class
        return _problems(content, _FILE)
    return []


def _problems(content: Any, schema: dict) -> list[str]:
    from jsonschema import Draft202012Validator

    problems = []
    errors = Draft202012Validator(schema).iter_errors(content)
    for error in sorted(errors, key=lambda error: error.json_path):
        path = error.json_path.removeprefix("$").removeprefix(".")
        problems.append(f"{path or 'file'}: {error.message}")
    return problems


def _problems_of_entry(entry: dict) -> list[str]:
    """What a JSON Schema cannot say about an entry of the right form."""
    problems = []
    for field in ("value", "spread"):
        if not math.isfinite(entry[field]):
            problems.append(f"{field} is not finite")
    if "/share_of_" in entry["name"] and entry["unit"] != "1":
        problems.append(f"a share has the unit 1, not {entry['unit']}")
    return problems


def validate(content: Any) -> list[str]:
    """Problems of a results file's content (as `json.load` gives it), a sentence each."""
    problems = _problems_of_form(content)
    if problems:
        return problems
    names = set()
    for i, entry in enumerate(content["results"]):
        reasons = _problems_of_entry(entry)
        if entry["name"] in names:
            reasons.append("recorded twice")
        names.add(entry["name"])
        file = {"gpu": content["gpu"]["name"], "driver": content["gpu"]["driver"]}
        for field, wanted in file.items():
            if entry[field] != wanted:
                reasons.append(f"{field} is {entry[field]}, the file's is {wanted}")
        problems += [f"results[{i}] {entry['name']}: {text}" for text in reasons]
    return problems


def _sound(content: Any, path: Path) -> dict:
    problems = validate(content)
    if not problems:
        name = f"{slug(content['gpu']['name'])}.json"
        if path.name != name:
            problems = [f"must be called {name}"]
    if problems:
        raise ValueError(f"{path} is not a sound results file:\n  " + "\n  ".join(problems))
    sound: dict = content
    return sound


# ---- reading


def everything(folder: Path | None = None) -> list[dict]:
    """All recorded entries of all GPUs; an empty list where nothing has been recorded.

    Each entry has name, value, unit, spread, gpu, driver, versions and date. ValueError names a
    broken file.
    """
    entries = []
    for content in _contents(_files(folder)):
        entries += content["results"]
    return entries


def load(folder: Path | None = None) -> list[dict]:
    """The entries to show: of each topic (the first part of the names) those of one GPU.

    It is the first of `likeness.preferred` with at least half of what any GPU has on the topic, so
    that no table mixes two. ValueError names a broken file.
    """
    return list(_shown(_files(folder), engine.gpu()).values())


def find(
    name: str,
    gpu: str | None = None,
    folder: Path | None = None,
) -> dict | None:
    """The entry of this name among those of `load`, or None.

    gpu: a GPU's name, as entries state it: the entry of that GPU, whichever one is shown.
    """
    if gpu is None:
        return _shown(_files(folder), engine.gpu()).get(name)
    return _by_gpu(_files(folder)).get(gpu, {}).get(name)


def together(*names: str, folder: Path | None = None) -> list[dict | None]:
    """The entries of these names, all of one GPU, so that they can be divided and compared.

    It is the first of `likeness.preferred` among those that have most of the names. None stands
    for what it has not.
    """
    files = _files(folder)
    known = _by_gpu(files)
    best = {}
    most = 0
    for content in preferred(_contents(files), engine.gpu()):
        entries = known[content["gpu"]["name"]]
        has = len(entries.keys() & set(names))
        if has > most:
            best = entries
            most = has
    return [best.get(name) for name in names]


def recorded_gpu(name: str, folder: Path | None = None) -> dict:
    """What is recorded of a GPU itself (as `utils.hardware.this_gpu`). KeyError for another one."""
    gpus: list[dict] = [content["gpu"] for content in _contents(_files(folder))]
    return {gpu["name"]: gpu for gpu in gpus}[name]


def _files(folder: Path | None) -> Files:
    """The results files of a folder, `FOLDER` unless given."""
    paths = sorted(Path(folder or FOLDER).glob("*.json"))
    return tuple((path, path.stat().st_mtime_ns) for path in paths)


def _contents(files: Files) -> list[dict]:
    return [_content(path, when) for path, when in files]


# notebooks ask for many entries: a file is read and validated once, and when it changes
@functools.lru_cache
def _content(path: Path, _modified: int) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # not JSON, or not even text
        raise ValueError(f"{path} is not a sound results file:\n  {error}") from None
    return _sound(content, path)


@functools.lru_cache
def _shown(files: Files, here: engine.GPU | None) -> dict[str, dict]:
    """{name: entry} of `load`. here: this machine's GPU."""
    topics = defaultdict(list)  # topic: its entries of each GPU, the preferred one first
    for content in preferred(_contents(files), here):
        for topic, entries in _by_topic(content).items():
            topics[topic].append(entries)
    shown: dict[str, dict] = {}
    for of_gpus in topics.values():
        most = max(map(len, of_gpus))
        chosen = next(entries for entries in of_gpus if 2 * len(entries) >= most)
        shown |= {entry["name"]: entry for entry in chosen}
    return shown


@functools.lru_cache
def _by_gpu(files: Files) -> dict[str, dict[str, dict]]:
    """{GPU: {name: entry}} of all files."""
    gpus = {}
    for content in _contents(files):
        name = content["gpu"]["name"]
        gpus[name] = {entry["name"]: entry for entry in content["results"]}
    return gpus


def _by_topic(content: dict) -> dict[str, list[dict]]:
    topics = defaultdict(list)
    for entry in content["results"]:
        topic, _, _ = entry["name"].partition("/")
        topics[topic].append(entry)
    return topics


# ---- recording


def append(entry: dict) -> None:
    """Hand one result to the recording command; does nothing while no recording runs.

    `entry` has name, value, unit and spread; GPU, driver, versions and date are added if missing.
    RuntimeError without a GPU: what a CPU engine took is never recorded. ValueError for an unsound
    entry. Under a pretended level the name says so at its end.
    """
    path = os.environ.get(RECORD)
    if not path:
        return
    entry = {"versions": versions(), "date": now(), **entry}
    entry["name"] += level_suffix()
    if "gpu" not in entry or "driver" not in entry:
        gpu = engine.gpu()
        if gpu is None:
            raise RuntimeError(f"{entry.get('name')} is not recorded: there is no GPU here")
        entry = {"gpu": gpu.name, "driver": gpu.driver, **entry}
    problems = _problems(entry, _ENTRY) or _problems_of_entry(entry)
    if problems:
        raise ValueError(f"{entry.get('name')} is not recorded: " + "; ".join(problems))
    with open(path, "a", encoding="utf-8") as file:
        # one write, so that notebooks running at once do not mix
        file.write(json.dumps(entry) + "\n")


def level_suffix() -> str:
    """What the names of results end with where a level is pretended: "/level_7.5", else ""."""
    level = os.environ.get(engine.LEVEL)
    gpu = engine.gpu() if level else None
    return f"/level_{level}" if gpu and gpu.pretended else ""


def record(
    name: str,
    value: float,
    unit: str = "1",
    spread: float = 0.0,
) -> None:
    """Hand a number to the recording command, as `append` does."""
    append(
        {
            "name": name,
            "value": float(value),
            "unit": unit,
            "spread": float(spread),
        }
    )


def known(gpu_name: str) -> dict:
    """What `utils.hardware.this_gpu` returned on a GPU that has a file of results."""
    path = FOLDER / f"{slug(gpu_name)}.json"
    gpu: dict = json.loads(path.read_text(encoding="utf-8"))["gpu"]
    return gpu


def read_lines(path: str | Path) -> list[dict]:
    """Entries that `append` collected in a file of JSON lines; the last of a name counts.

    ValueError, with the line's number, for one that is no entry.
    """
    lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    entries = {}
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            entry = json.loads(line)
            entries[entry["name"]] = entry
        except (ValueError, KeyError, TypeError):
            torn = "was its writer stopped? Remove it"
            raise ValueError(f"{path}, line {number} is no result: {torn}: {line[:60]}") from None
    return list(entries.values())


def write(gpu_info: dict, entries: list[dict], path: str | Path | None = None) -> Path:
    """Write a results file and return its path, `assets/results/<gpu>.json` by default.

    `gpu_info` is what `utils.hardware.this_gpu` returns. The head's date and versions are those of
    the newest entry: a file may be written elsewhere than on the GPU's machine. The content is
    validated first (ValueError names each problem) and the file replaced in one step, so that a
    failure leaves the old file as it was.
    """
    newest = max(entries, key=lambda entry: entry.get("date", ""), default={})
    path = Path(path or FOLDER / f"{slug(gpu_info['name'])}.json")
    content = {
        "schema": 1,
        "gpu": gpu_info,
        "date": newest.get("date") or now(),
        "versions": newest.get("versions") or versions(),
        "results": sorted(entries, key=lambda e: e["name"]),
    }
    text = (
        json.dumps(
            _sound(content, path),
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        )
        + "\n"
    )
    write_whole(path, text)
    return path


def add(entries: list[dict], gpu_info: dict) -> Path:
    """Add entries to a GPU's results file and return its path.

    Older ones of other names stay, if of the same driver.

    `gpu_info` is what `utils.hardware.this_gpu` returns.
    """
    new = {entry["name"] for entry in entries}
    source = gpu_info["name"], gpu_info["driver"]
    old = []
    for entry in everything():
        same = (entry["gpu"], entry["driver"]) == source
        if same and entry["name"] not in new:
            old.append(entry)
    return write(gpu_info, old + entries)
