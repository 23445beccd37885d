"""The trainer with the finale's exercises solved: verified before it counts, and kept by name."""

from types import SimpleNamespace

import numpy as np
import pytest

from course import solved_trainer
from course.kernels.mnist_cnn import race
from course.kernels.mnist_cnn.sockets import SOCKETS
from tests.needs import cpp_compiler, without_gpu
from utils import engine, results

cpp_compiler()
GPU = SimpleNamespace(name="G", driver="580")


class Fake:
    """A trainer whose losses are given, which counts its steps."""

    precision = "bf16"

    def __init__(self, losses):
        self.given = np.array(losses)
        self.steps = 0

    def step(self, images, labels):
        self.steps += 1

    def synchronize(self):
        pass

    def losses(self):
        return self.given


def test_each_socket_has_a_solution(tmp_path):
    files = solved_trainer.solutions(tmp_path)
    assert set(files) == set(SOCKETS)
    assert all(f"void {name}(" in path.read_text() for name, path in files.items())


@pytest.mark.nightly("test_sockets takes two steps with the same solutions by day")
@without_gpu("there the command measures")
def test_a_toy_row(tmp_path):
    """On the CPU runtime: the four kernels run in the step, its losses are PyTorch's."""
    found = solved_trainer.row(2, solved_trainer.solutions(tmp_path), steps=1, repeats=1)
    time_us, ours_us = found["time"][0], found["ours"][0]
    assert found["share_of_ours"][:2] == (pytest.approx(ours_us / time_us), "1")
    assert {name for name in found if name.startswith("only_")} == {f"only_{n}" for n in SOCKETS}
    assert found["launches"][0] > 8  # sockets convert between floats and the trainer's 16 bits


def test_losses_that_are_off_are_refused():
    expected = np.array([2.3, 2.0])
    batches = [(None, None)]
    right, wrong = Fake(expected * 1.01), Fake(expected * 1.2)
    off = solved_trainer.verify({"ours": right}, batches, expected)
    assert off == {"ours": pytest.approx(0.01)} and right.steps == 2
    for other in (wrong, Fake(expected * np.nan)):
        with pytest.raises(solved_trainer.NotShown, match="solved: a loss of the first 2 steps"):
            solved_trainer.verify({"ours": right, "solved": other}, batches, expected)


def test_they_take_turns():
    trainers = {"ours": Fake([]), "solved": Fake([])}
    times = solved_trainer.measure(trainers, [(None, None)], steps=3, repeats=4)
    assert [len(samples) for samples in times.values()] == [4, 4]
    assert trainers["ours"].steps == trainers["solved"].steps == 4 * (race.WARM_UP + 3)


@pytest.mark.parametrize("accuracy, passed", [(0.9895, True), (0.9885, False)])
def test_the_gate_is_the_races(accuracy, passed, monkeypatch):
    monkeypatch.setattr(results, "find", lambda name: {"value": 0.9901})
    monkeypatch.setattr(solved_trainer, "accuracy", lambda *_: (accuracy, 4e-4))
    if passed:
        assert solved_trainer.gate({}) == (accuracy, "1", 4e-4)
        return
    with pytest.raises(solved_trainer.NotShown, match=r"98\.85% has not passed"):
        solved_trainer.gate({})


def test_without_an_accuracy_of_pytorch_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(results, "find", lambda name: None)
    with pytest.raises(solved_trainer.NotShown, match="run the race first"):
        solved_trainer.gate({})


def test_entries_are_sound(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "gpu", lambda: GPU)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    found = {"64/time": (78.6, "µs", 0.1), "64/share_of_ours": (0.56, "1", 0.01)}
    gpu = {"name": "G", "compute_capability": "9.0", "sms": 1, "memory_bytes": 1}
    gpu |= {"driver": "580", "cuda": "13.0"}
    written = results.add(solved_trainer.entries_of(found), gpu)
    assert written.name == "g.json"
    assert [entry["name"] for entry in results.everything()] == [
        "mnist/yours/64/share_of_ours",
        "mnist/yours/64/time",
    ]


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(engine, "gpu", lambda: None)
    assert solved_trainer.main([]) == 1 and "need an NVIDIA GPU" in capsys.readouterr().err


def test_each_batch_is_written_at_once(monkeypatch, tmp_path):
    """The second batch size fails: what the first found is in the file."""

    def row(batch, *_):
        if batch == 256:
            raise solved_trainer.NotShown("off")
        return {"time": (78.6, "µs", 0.1)}

    gpu = {"name": "G", "compute_capability": "9.0", "sms": 1, "memory_bytes": 1}
    gpu |= {"driver": "580", "cuda": "13.0"}
    monkeypatch.setattr(engine, "gpu", lambda: GPU)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(solved_trainer.hardware, "this_gpu", lambda: gpu)
    monkeypatch.setattr(solved_trainer, "build", lambda mine: None)
    monkeypatch.setattr(solved_trainer, "gate", lambda mine: (0.989, "1", 4e-4))
    monkeypatch.setattr(solved_trainer, "row", row)
    assert solved_trainer.main(["--batches", "64", "256"]) == 1
    kept = {entry["name"]: entry["value"] for entry in results.everything()}
    assert kept == {"mnist/yours/accuracy": 0.989, "mnist/yours/64/time": 78.6}
    assert solved_trainer.main(["--batches", "64"]) == 0
