"""Results of a measurement become entries of the recorded results."""

import json

import pytest

from course.kernels.many_gpus import choices
from course.kernels.many_gpus.choices import Choice
from course.kernels.many_gpus.recording import MACHINE, Recording, merge
from utils import results


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A folder of recorded results with one GPU's file."""
    folder = tmp_path / "results"
    folder.mkdir()
    original = next(results.FOLDER.glob("nvidia-h200.json"))
    content = json.loads(original.read_text())
    content["results"] = content["results"][:3]
    (folder / original.name).write_text(json.dumps(content))
    monkeypatch.setattr(results, "FOLDER", folder)
    monkeypatch.setattr(choices, "TABLE", tmp_path / "choices.json")
    choices.table.cache_clear()
    yield content
    choices.table.cache_clear()


def test_merge_takes_what_is_right_and_last(tmp_path, recorded):
    recording = Recording(tmp_path / "out.json")
    gpu = recorded["gpu"]
    versions = {"python": "3.12.3", "nccl": "2.28.9"}
    machine = {"gpu": gpu["name"], "driver": gpu["driver"], "versions": versions}
    recording.entries.append({"name": MACHINE, **machine})
    recording.add("many_gpus/peer_copy/bandwidth", 1.0, "B/s")
    recording.add("many_gpus/peer_copy/bandwidth", 2.0, "B/s", 0.5, extra="kept in the file")
    for blocks, seconds in ((1, 3e-6), (2, 1e-6), (4, 2e-6)):
        name = f"many_gpus/all_reduce/64/sweep/push/{blocks}x32u1"
        recording.add(name, seconds, "s", quiet=True)
    recording.add("many_gpus/WRONG/ddp/256/scaling", 9.0, "1")
    recording.predict("8/ddp/4096/scaling/predicted", 7.5, "1")
    recording.note("many_gpus/ddp", "a note")
    recording.write()
    file = merge(recording.path)
    merged = {e["name"]: e for e in json.loads(file.read_text())["results"]}
    assert merged["many_gpus/peer_copy/bandwidth"]["value"] == 2.0
    assert merged["many_gpus/8/ddp/4096/scaling/predicted"]["value"] == 7.5
    assert not any("sweep" in name or "WRONG" in name for name in merged)
    assert merged["many_gpus/all_reduce/64/best/push"]["value"] == 1e-6
    assert len(merged) == 3 + 3
    assert choices.choose(64, 2) == Choice("push", 2, 32)


def test_a_prediction_is_not_made_anew_after_the_run(tmp_path, recorded):
    gpu = recorded["gpu"]
    machine = {"gpu": gpu["name"], "driver": gpu["driver"], "versions": {"python": "3.12.3"}}
    said = "many_gpus/4/all_reduce/64/predicted"
    values = []
    for gpus, seconds in ((2, 3e-6), (4, 5e-6), (2, 4e-6)):
        recording = Recording(tmp_path / f"{gpus}_{seconds}.json", ranks=gpus)
        recording.entries.append({"name": MACHINE, **machine, "gpus": gpus})
        recording.add("many_gpus/all_reduce/64/ours/call", seconds, "s")
        recording.predict("4/all_reduce/64/predicted", seconds, "s")
        recording.write()
        merged = json.loads(merge(recording.path).read_text())["results"]
        values.append(next(e["value"] for e in merged if e["name"] == said))
    assert values == [3e-6, 5e-6, 5e-6]


def test_another_kind_of_gpu_has_predictions_of_its_own(tmp_path, recorded):
    other = {**recorded, "gpu": {**recorded["gpu"], "name": "Other GPU"}, "results": []}
    (results.FOLDER / "other-gpu.json").write_text(json.dumps(other))
    for name, gpus in ((recorded["gpu"]["name"], 4), ("Other GPU", 2)):
        machine = {"gpu": name, "driver": recorded["gpu"]["driver"], "versions": {"python": "3.12"}}
        recording = Recording(tmp_path / f"{gpus}.json", ranks=gpus)
        recording.entries.append({"name": MACHINE, **machine, "gpus": gpus})
        recording.add("many_gpus/all_reduce/64/ours/call", 3e-6, "s")
        recording.predict("4/all_reduce/64/predicted", 3e-6, "s")
        recording.write()
        file = merge(recording.path)
    names = [entry["name"] for entry in json.loads(file.read_text())["results"]]
    assert "many_gpus/4/all_reduce/64/predicted" in names


def test_with_more_gpus_names_have_their_number(tmp_path):
    recording = Recording(tmp_path / "out.json", ranks=8)
    recording.add("many_gpus/all_reduce/8/speedup_over_nccl", 1.5, "1")
    written = json.loads(recording.path.read_text())
    assert written[0]["name"] == "many_gpus/8/all_reduce/8/speedup_over_nccl"


def test_fewer_of_a_machines_gpus_have_their_number_too(tmp_path):
    recording = Recording(tmp_path / "out.json", ranks=2, gpus=8)
    recording.add("many_gpus/ddp/4096/scaling", 1.9, "1")
    written = json.loads(recording.path.read_text())
    assert written[0]["name"] == "many_gpus/2/ddp/4096/scaling"
