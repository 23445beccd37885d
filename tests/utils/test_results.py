"""Recorded results: the committed files are sound, broken ones are named, and recording works."""

import copy
import json
import math

import pytest

from utils import results

DATE = "2026-01-31T12:00:00Z"
GPU = {
    "name": "Example GPU 9000",
    "compute_capability": "9.0",
    "sms": 10,
    "memory_bytes": 1 << 30,
    "driver": "600.1",
    "cuda": "13.0",
}
ENTRY = {
    "name": "vector_add/numba/share_of_copy",
    "value": 0.5,
    "unit": "1",
    "spread": 0.01,
    "gpu": GPU["name"],
    "driver": GPU["driver"],
    "versions": {"numba": "0.68.1"},
    "date": DATE,
}


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
    ("path", "value", "named"),
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


def test_write_and_find_the_newest(tmp_path):
    path = results.write(GPU, [entry()], tmp_path / "example-gpu-9000.json")
    other = {**GPU, "name": "Other"}
    later = entry(gpu="Other", value=0.75, date="2026-02-01T00:00:00Z")
    results.write(other, [later], tmp_path / "other.json")
    assert json.loads(path.read_text())["gpu"] == GPU
    assert len(results.load(tmp_path)) == 2
    assert results.find(ENTRY["name"], folder=tmp_path)["value"] == 0.75
    assert results.find(ENTRY["name"], gpu="gpu 9000", folder=tmp_path)["value"] == 0.5
    assert results.find("no/such", folder=tmp_path) is None


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
    from utils import engine

    gpu = engine.GPU(GPU["name"], (9, 0), 1 << 30, GPU["driver"], (13, 0), "GPU-0")
    monkeypatch.setattr(engine, "gpu", lambda: gpu)
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


def test_nothing_is_recorded_without_a_gpu(tmp_path, monkeypatch):
    from utils import engine, hardware

    monkeypatch.setattr(engine, "gpu", lambda: None)
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
