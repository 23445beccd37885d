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
