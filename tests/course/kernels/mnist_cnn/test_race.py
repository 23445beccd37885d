"""The race: what is timed was verified, what is recorded passed the gate, and a part that fails
costs the others nothing.
"""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from course.kernels.mnist_cnn import SHAPES, fast, program, race
from course.kernels.mnist_cnn.pytorch import initial_weights
from course.kernels.mnist_cnn.pytorch_modes import ALL_MODES, MODES, modes_for
from tests.needs import without_gpu
from utils import data, engine, hardware, results

RIVAL = SimpleNamespace(name="pytorch/graph_tf32", precision="tf32")


def entry(name, value, gpu="NVIDIA H200"):
    return {
        "name": name,
        "value": value,
        "unit": "1",
        "spread": 0.0,
        "gpu": gpu,
        "driver": "580.1",
        "versions": {"python": "3.12"},
        "date": "2026-01-31T12:00:00Z",
    }


def test_eleven_modes_and_one_and_three_for_an_older_gpu():
    assert len(MODES) == 12 and all(name == mode.name for name, mode in ALL_MODES.items())
    assert modes_for(("bf16", "tf32")) == list(MODES)
    old = modes_for(("fp16",))
    assert {ALL_MODES[name].precision for name in old} == {"fp16", "fp32"} and len(old) == 5
    assert set(race.PROGRAMS) <= {"ours", *MODES}


def test_losses_that_are_off_are_refused():
    reference = np.array([2.3, 2.0, 1.5])
    assert race.verify(RIVAL, reference * 1.01, reference) == pytest.approx(0.01)
    for wrong in (reference * 1.05, reference * [1, 1, np.nan], reference * [1, np.inf, 1]):
        with pytest.raises(race.Failed, match="graph_tf32 is not right"):
            race.verify(RIVAL, wrong, reference)


def test_median_and_spread():
    assert race.median_and_spread([1.0, 2.0, 3.0, 4.0, 100.0]) == (
        3.0,
        pytest.approx((52 - 1.5) / 2),
    )


@pytest.mark.parametrize(
    "kernel, name",
    [
        ("void conv_forward<2>(Network)", "conv_forward"),
        ("patch_moments(Network)", "patch_moments"),
        ("Memcpy HtoD (Pinned -> Device)", "copy_of_the_batch"),
        (
            "void at::native::vectorized<4, f(int), std::array<char*, 3ul> >(int, f(int))",
            "vectorized",
        ),
    ],
)
def test_short_names(kernel, name):
    assert race.short_name(kernel) == name


@pytest.mark.parametrize(
    "ours, passed",
    [(0.9901, True), (0.9892, True), (0.9909, True), (0.9889, False), (0.9913, False)],
)
def test_the_gate_is_a_tenth_of_a_point(ours, passed):
    found = [entry("mnist/accuracy/ours", ours), entry("mnist/accuracy/pytorch", 0.9901)]
    assert race.passed_gate(found) == ["bf16"][:passed]
    assert race.passed_gate([*found, entry("mnist/accuracy/ours_tf32", 0.99)]) == ["bf16"][
        :passed
    ] + ["tf32"]
    assert race.passed_gate(found[:1]) == race.passed_gate([]) == []


def test_a_time_without_the_gate_is_not_recorded(tmp_path, monkeypatch, capsys):
    lines = tmp_path / "lines"
    monkeypatch.setenv(results.RECORD, str(lines))
    monkeypatch.setattr(engine, "gpu", lambda: SimpleNamespace(name="G", driver="580"))
    race.record("mnist/step/64/ours/bf16", 50, "µs", keep=False)
    assert not lines.exists() and "not recorded" in capsys.readouterr().out
    race.record("mnist/step/64/ours/bf16", 50, "µs", 1.5)
    assert json.loads(lines.read_text())["value"] == 50


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(engine, "gpu", lambda: None)
    assert race.main([]) == 1 and "needs an NVIDIA GPU" in capsys.readouterr().err


@without_gpu("there it races")
def test_the_short_race_needs_a_gpu():
    assert race.short({"head": "build/head.cu"}) == {}


@pytest.mark.parametrize("ours", [0.99, 0.97])
def test_everything(ours, tmp_path, monkeypatch, capsys):
    """Each part is a process: one fails, one is out of time; the others' entries are kept, beside
    what was there.
    """

    def run(command, *, env, **_):
        part = command[3:]
        if part[0] == "waterfall":
            raise subprocess.TimeoutExpired(command, 1)
        values = {f"mnist/{'/'.join(part).replace('--', '')}": 1.0}
        if part == ["gate"]:
            values = {"mnist/accuracy/ours": ours, "mnist/accuracy/pytorch": 0.9901}
        with open(env[results.RECORD], "a") as file:
            file.writelines(json.dumps(entry(*pair)) + "\n" for pair in values.items())
        return SimpleNamespace(returncode=int(part[0] == "kernels"))

    monkeypatch.setattr(race, "__spec__", SimpleNamespace(name="race"))
    monkeypatch.setattr(race, "prepare", lambda timeout: None)
    monkeypatch.setattr(race.subprocess, "run", run)
    monkeypatch.setattr(race, "ROOT", tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    gpu = {
        "name": "NVIDIA H200",
        "compute_capability": "9.0",
        "sms": 132,
        "memory_bytes": 1,
        "driver": "580.1",
        "cuda": "13.0",
    }
    monkeypatch.setattr(hardware, "this_gpu", lambda: gpu)
    results.write(gpu, [entry("copy/time", 2.0), entry("mnist/accuracy/ours", 0.5)])

    assert race.everything(100) == 1
    kept = {e["name"]: e["value"] for e in results.load(tmp_path)}
    gated = "/gated" + "/bf16" * (ours > 0.98)
    assert kept == {
        "copy/time": 2.0,
        "mnist/accuracy/ours": ours,
        "mnist/accuracy/pytorch": 0.9901,
        "mnist/ablation": 1.0,
        "mnist/program": 1.0,
        "mnist/profile": 1.0,
        **{f"mnist/step/batch/{batch}{gated}": 1.0 for batch in race.BATCHES},
    }
    said = capsys.readouterr()
    assert "FAILED kernels: exit status 1" in said.err and "FAILED waterfall: stopped" in said.err
    assert ("gate passed by bf16" in said.out) is (ours > 0.98)


@pytest.mark.nightly("by day each of the kernels is right as it is raced, with all of them")
@without_gpu("on a GPU the race verifies it")
def test_without_an_optimization_the_results_are_the_same():
    images, labels = (digits[:2].copy() for digits in data.mnist(subset=True))
    weights, found = initial_weights(0), []
    for what in ((), ("NO_TENSOR_CORES", "PLAIN_COPIES")):
        with fast.Trainer(weights, 2, 0.05, race.without("tf32", what), gradients=True) as trainer:
            trainer.step(images, labels)
            found.append(trainer.gradients())
    for name, gradient in found[0].items():
        assert np.linalg.norm(found[1][name] - gradient) <= 1e-5 * np.linalg.norm(gradient), name


# ---- whole programs


def test_the_programs_start_as_pytorch_does():
    ours, theirs = program.starting_weights(0), initial_weights(0)
    assert list(ours) == list(SHAPES)
    for name, value in theirs.items():
        assert ours[name].shape == value.shape and ours[name].dtype == value.dtype
        assert np.abs(ours[name]).max() == pytest.approx(np.abs(value).max(), rel=0.3)
        assert ours[name].std() == pytest.approx(value.std(), rel=0.5)


def test_our_program_does_not_load_pytorch():
    """Loading it takes longer than all of our training."""
    code = (
        "import sys; from course.kernels.mnist_cnn import fast, program; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=race.ROOT).returncode == 0


def test_an_epoch_takes_every_digit_once():
    rows = program.orders(1000, 64, 1)
    assert rows.shape == (15, 64) and len(set(rows.ravel())) == 960
    assert (rows != program.orders(1000, 64, 2)).any() and (
        rows == program.orders(1000, 64, 1)
    ).all()


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["ours", "--batch", "0"], "between 1 and the 60 digits"),
        (["ours", "--batch", "61"], "between 1 and the 60 digits"),
        (["ours", "--batch", "8", "--steps", "0"], "at least one"),
        (["grahp_tf32"], "no such trainer: grahp_tf32. There are ours, eager"),
    ],
)
def test_a_program_says_what_it_cannot_do(monkeypatch, capsys, arguments, says):
    monkeypatch.setattr(
        program.data,
        "mnist",
        lambda part: (np.zeros((60, 28, 28), np.uint8), np.zeros(60, np.uint8)),
    )
    with pytest.raises(SystemExit):
        program.main(arguments)
    assert says in capsys.readouterr().err
