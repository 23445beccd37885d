"""Recorded results: the committed files are sound, broken ones are named, and recording works."""

import copy
import json
import math

import pytest

from tests import recorded
from tests.recorded import DATE, GPU
from utils import engine, results
from utils.results import likeness

ENTRY = recorded.entry("vector_add/numba/share_of_copy", 0.5)


def entry(**changes):
    return {**ENTRY, **changes}


def content(*entries):
    return {
        "schema": 1,
        "gpu": GPU,
        "date": DATE,
        "versions": {"python": "3.13.0"},
        "results": list(entries),
    }


def test_every_committed_file_is_sound():
    for found in results.load():  # raises ValueError with the file's name otherwise
        assert found["name"]
    for path in results.FOLDER.glob("*.json"):
        assert results.validate(json.loads(path.read_text())) == [], path


def test_nothing_recorded_yet(tmp_path):
    assert results.load(tmp_path) == []
    assert results.load(tmp_path / "absent") == []
    assert results.find("vector_add/numba/time", folder=tmp_path) is None


def test_sound_content_has_no_problems():
    assert results.validate(content()) == []
    assert results.validate(content(entry(), entry(name="a/b"))) == []


def changed(path, value):
    """Sound content with one thing changed; `...` takes it away."""
    broken = copy.deepcopy(content(ENTRY))
    *lead, last = path
    at = broken
    for key in lead:
        at = at[key]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return broken


@pytest.mark.parametrize(
    "path, value, named",
    [
        (["schema"], 2, "schema: 1 was expected"),
        (["schema"], ..., "'schema' is a required property"),
        (["gpu", "sms"], "many", "gpu.sms: 'many' is not of type 'integer'"),
        (["gpu", "driver"], ..., "gpu: 'driver' is a required property"),
        (["gpu", "cuda"], "13", "gpu.cuda: '13' does not match"),
        (["date"], "yesterday", "date: 'yesterday' does not match"),
        (["versions"], {}, "versions: {} should be non-empty"),
        (["surprise"], 1, "'surprise' was unexpected"),
        (["results"], {}, "results: {} is not of type 'array'"),
        (["results", 0], 3, "results[0]: 3 is not of type 'object'"),
        (["results", 0, "name"], "Vector Add", "results[0].name: 'Vector Add' does not match"),
        (["results", 0, "value"], "0.5", "results[0].value: '0.5' is not of type 'number'"),
        (["results", 0, "value"], math.nan, "share_of_copy: value is not finite"),
        (["results", 0, "value"], True, "results[0].value: True is not of type 'number'"),
        (["results", 0, "unit"], "ms", "a share has the unit 1, not ms"),
        (["results", 0, "spread"], -1, "results[0].spread: -1 is less than the minimum of 0"),
        (["results", 0, "spread"], math.inf, "spread is not finite"),
        (["results", 0, "gpu"], "Another", "gpu is Another, the file's is Example GPU 9000"),
        (["results", 0, "driver"], ..., "results[0]: 'driver' is a required property"),
        (
            ["results", 0, "versions"],
            {"numba": 68},
            "results[0].versions.numba: 68 is not of type 'string'",
        ),
        (["results", 0, "date"], "2026-01-31", "results[0].date: '2026-01-31' does not match"),
    ],
)
def test_each_problem_is_named(path, value, named):
    problems = results.validate(changed(path, value))
    assert len(problems) == 1
    assert named in problems[0]


def test_content_that_is_no_object_is_named():
    assert "is not of type 'object'" in results.validate([])[0]


def test_an_entry_twice_is_named():
    (problem,) = results.validate(content(ENTRY, ENTRY))
    assert problem == "results[1] vector_add/numba/share_of_copy: recorded twice"


@pytest.mark.parametrize("text", ["{", "\xff", json.dumps(content(entry(value="x")))])
def test_a_broken_file_is_named_when_loaded(tmp_path, text):
    path = tmp_path / "example-gpu-9000.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="example-gpu-9000.json is not a sound results file"):
        results.load(tmp_path)


def test_a_file_of_another_gpu_is_named(tmp_path):
    (tmp_path / "nvidia-h200.json").write_text(json.dumps(content()))
    with pytest.raises(ValueError, match="must be called example-gpu-9000.json"):
        results.load(tmp_path)


def test_write_and_find(tmp_path):
    path = results.write(GPU, [entry()], tmp_path / "example-gpu-9000.json")
    other = {**GPU, "name": "Other"}
    later = entry(gpu="Other", value=0.75, date="2026-02-01T00:00:00Z")
    results.write(other, [later], tmp_path / "other.json")
    assert json.loads(path.read_text())["gpu"] == GPU
    assert len(results.everything(tmp_path)) == 2
    assert results.find(ENTRY["name"], gpu=GPU["name"], folder=tmp_path)["value"] == 0.5
    assert results.find("no/such", folder=tmp_path) is None


def here(monkeypatch, name, capability):
    gpu = name and engine.GPU(name, capability, 1 << 30, "600.1", (13, 0), "GPU-0")
    monkeypatch.setattr(engine, "gpu", lambda: gpu)


@pytest.fixture
def two_gpus(tmp_path):
    """Both have "a", the H200 three of it and the H100 two; one of "b" each, "c" the H200 alone."""
    many = {"a/1": 1, "a/2": 2, "a/3": 3, "b/1": 4, "c/1": 5, "c/2": 6, "c/3": 7}
    recorded.write(tmp_path, "NVIDIA H200", many, "9.0")
    few = {"a/1": 10, "a/2": 20, "b/1": 40, "c/1": 50}
    recorded.write(tmp_path, "NVIDIA H100 80GB HBM3", few, "9.0")
    return tmp_path


@pytest.mark.parametrize(
    "name, capability, speaks",
    [
        (None, None, "H200"),  # the most results
        ("NVIDIA H200", (9, 0), "H200"),
        ("NVIDIA H100 80GB HBM3", (9, 0), "H100"),
        ("NVIDIA H100 PCIe", (9, 0), "H100"),  # the nearer bandwidth
        ("NVIDIA B200", (10, 0), "H200"),
        ("NVIDIA GeForce RTX 4090", (8, 9), "H100"),
        ("Tesla T4", (7, 5), "H100"),
        ("A GPU without a data sheet", (8, 6), "H200"),
    ],
)
def test_one_gpu_speaks_for_a_topic(two_gpus, monkeypatch, name, capability, speaks):
    here(monkeypatch, name, capability)
    shown = {found["name"]: found for found in results.load(two_gpus)}
    assert {shown[key]["gpu"].split()[1] for key in ("a/1", "a/2", "b/1")} == {speaks}
    assert ("a/3" in shown) == (speaks == "H200")  # nothing of the other GPU beside its own
    assert results.find("b/1", folder=two_gpus) == shown["b/1"]
    assert results.find("b/1", gpu="NVIDIA H100 80GB HBM3", folder=two_gpus)["value"] == 40
    # a GPU with a third of a topic does not speak for it
    assert {shown[f"c/{n}"]["gpu"] for n in (1, 2, 3)} == {"NVIDIA H200"}


@pytest.mark.parametrize(
    "names, values",
    [
        (("a/1", "b/1"), [10, 40]),  # both have both: the one like this machine's
        (("a/1", "c/2"), [1, 6]),  # the H100 lacks one of them
        (("c/2", "no/such"), [6, None]),
        (("no/such", "d/1"), [None, None]),
    ],
)
def test_numbers_to_divide_are_of_one_gpu(two_gpus, monkeypatch, names, values):
    here(monkeypatch, "NVIDIA H100 PCIe", (9, 0))
    found = results.together(*names, folder=two_gpus)
    assert [each and each["value"] for each in found] == values


def test_a_gpu_is_named_in_full(tmp_path):
    """A GH200 has an H200 in its name, and is another GPU."""
    recorded.write(tmp_path, "NVIDIA H200", {"a/1": 1}, "9.0")
    recorded.write(
        tmp_path, "NVIDIA GH200 480GB", {"a/1": 2}, dates={"a/1": "2026-03-01T00:00:00Z"}
    )
    assert results.find("a/1", gpu="NVIDIA H200", folder=tmp_path)["value"] == 1
    assert results.find("a/1", gpu="H200", folder=tmp_path) is None
    assert results.recorded_gpu("NVIDIA H200", tmp_path)["compute_capability"] == "9.0"


def test_together_says_none_where_nothing_is_recorded(tmp_path):
    assert results.together("a/1", "a/2", folder=tmp_path) == [None, None]


def test_without_a_gpu_the_notebooks_one_is_shown(tmp_path, monkeypatch):
    recorded.write(tmp_path, likeness.RECORDED_ON, {"a/1": 1})
    recorded.write(tmp_path, "NVIDIA GeForce RTX 4090", {"a/1": 2, "a/2": 3, "b/1": 4}, "8.9")
    here(monkeypatch, None, None)
    assert results.find("a/1", folder=tmp_path)["value"] == 1


def test_the_nearest_level_comes_before_bandwidth(tmp_path, monkeypatch):
    recorded.write(tmp_path, "NVIDIA A100-SXM4-80GB", {"a/1": 1}, "8.0")
    recorded.write(tmp_path, "NVIDIA GeForce RTX 3060", {"a/1": 2}, "8.6")
    here(monkeypatch, "Tesla T4", (7, 5))  # 320 GB/s, like the 3060
    assert results.find("a/1", folder=tmp_path)["value"] == 1


def test_the_head_says_when_and_by_what_the_newest_was_measured(tmp_path):
    """Not what has written the file, on another machine."""
    newest = entry(
        name="a/late", date="2099-02-03T04:05:06Z", versions={"python": "3.12.3", "torch": "99.1"}
    )
    path = results.write(GPU, [newest, entry()], tmp_path / "example-gpu-9000.json")
    head = json.loads(path.read_text())
    assert (head["date"], head["versions"]) == (newest["date"], newest["versions"])


def test_adding_keeps_what_the_same_gpu_has(two_gpus, monkeypatch):
    """`add` looks at the file of its own GPU, whichever GPU is shown."""
    monkeypatch.setattr(results, "FOLDER", two_gpus)
    name = "NVIDIA H100 80GB HBM3"
    here(monkeypatch, "NVIDIA H200", (9, 0))
    results.add([entry(name="d/1", gpu=name)], {**GPU, "name": name})
    kept = {found["name"] for found in results.everything(two_gpus) if found["gpu"] == name}
    assert kept == {"a/1", "a/2", "b/1", "c/1", "d/1"}


def test_a_pretended_level_stands_in_the_name(tmp_path, monkeypatch):
    gpu = engine.GPU(GPU["name"], (9, 0), 1 << 30, GPU["driver"], (13, 0), "GPU-0")
    monkeypatch.setattr(engine, "_nvml_gpus", lambda: (gpu,))
    for name in (engine.FORCE_CPU, "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(engine.LEVEL, "7.5")
    monkeypatch.setenv(results.RECORD, str(tmp_path / "lines"))
    results.record("a/b", 1.0)
    (found,) = results.read_lines(tmp_path / "lines")
    assert found["name"] == "a/b/level_7.5" and found["gpu"] == GPU["name"]


def test_an_unsound_entry_leaves_the_old_file(tmp_path):
    path = results.write(GPU, [entry()], tmp_path / "example-gpu-9000.json")
    before = path.read_text()
    with pytest.raises(ValueError, match="value is not finite"):
        results.write(GPU, [entry(value=math.nan)], path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_append_does_nothing_while_nothing_is_recorded(tmp_path, monkeypatch):
    monkeypatch.delenv(results.RECORD, raising=False)
    monkeypatch.chdir(tmp_path)
    results.append({"name": "a/b", "value": 1, "unit": "ms", "spread": 0})
    assert list(tmp_path.iterdir()) == []


def test_append_completes_the_entry_and_the_last_counts(tmp_path, monkeypatch):
    here(monkeypatch, GPU["name"], (9, 0))
    path = tmp_path / "record.jsonl"
    monkeypatch.setenv(results.RECORD, str(path))
    for value in (1, 2):
        results.append({"name": "a/b", "value": value, "unit": "ms", "spread": 0})
    (found,) = results.read_lines(path)
    assert found["value"] == 2
    assert (
        found["gpu"] == GPU["name"]
        and found["driver"] == GPU["driver"]
        and "numpy" in found["versions"]
    )
    results.write(GPU, [found], tmp_path / "example-gpu-9000.json")


@pytest.mark.parametrize("torn", ['{"name": "a/c', '{"name": "a{"name": "a/d"}', "[]", "{}", "\0"])
def test_a_line_that_is_no_result_is_named(tmp_path, torn):
    path = tmp_path / "record.jsonl"
    path.write_text(f'{{"name": "a/b"}}\n{torn}\n{{"name": "a/e"}}\n')
    with pytest.raises(ValueError, match="record.jsonl, line 2 is no result"):
        results.read_lines(path)


@pytest.mark.parametrize("level", ["", "7.5"])
def test_nothing_is_recorded_without_a_gpu(tmp_path, monkeypatch, level):
    from utils import hardware

    monkeypatch.setattr(engine, "gpu", lambda: None)
    monkeypatch.setenv(engine.LEVEL, level)
    monkeypatch.setenv(results.RECORD, str(tmp_path / "record.jsonl"))
    with pytest.raises(RuntimeError, match="a/b is not recorded: there is no GPU here"):
        results.append({"name": "a/b", "value": 1, "unit": "ms", "spread": 0})
    with pytest.raises(RuntimeError, match="no GPU"):
        hardware.this_gpu()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong", [{"value": math.inf}, {"value": None}, {"unit": ""}, {"spread": -1}]
)
def test_an_unsound_entry_is_not_recorded(tmp_path, monkeypatch, wrong):
    monkeypatch.setenv(results.RECORD, str(tmp_path / "record.jsonl"))
    with pytest.raises(ValueError, match="vector_add/numba/share_of_copy is not recorded"):
        results.append(entry(**wrong))
    assert list(tmp_path.iterdir()) == []
