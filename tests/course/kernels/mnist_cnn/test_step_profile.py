"""What a chapter says of a step's time where there is no GPU."""

from course.kernels.mnist_cnn import step_profile
from utils import engine


def test_without_a_gpu_the_recorded_step_is_shown_whatever_the_batch(monkeypatch, capsys):
    monkeypatch.setattr(engine, "has_gpu", lambda: False)
    result = {"milliseconds": 1.0, "losses": [2.3]}
    assert step_profile.step_of_ours(result, batch=40) is None
    said = capsys.readouterr().out
    assert "recorded on" in said
    assert f"per step of {step_profile.ON_A_GPU} digits" in said


def test_what_was_measured_here_comes_before_the_record(monkeypatch, capsys):
    monkeypatch.setattr(step_profile, "_measured", {})
    recorded_us, whose = step_profile.pytorch_step()
    assert recorded_us > 100 and whose.startswith("recorded on")
    monkeypatch.setattr(engine, "has_gpu", lambda: True)
    monkeypatch.setattr(step_profile, "_time", lambda step: 1234.0)
    step_profile.launches_of_the_step(None, launches=54, busy=1000)
    assert step_profile.pytorch_step() == (1234.0, "measured above")
