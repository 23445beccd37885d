"""A learner's server is told of the GPU's queue, and of a part of a GPU where there is one."""

from course.hub import gpu
from course.hub.settings import Settings
from utils import gpu_queue
from utils.gpu_queue import sharing
from utils.gpu_queue.sharing import Card, Slice


def test_each_learner_has_the_queue_and_a_part(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "queue", lambda settings: tmp_path / "queue")
    whole = [Slice(f"GPU-{n}", "Test GPU", 80 << 30) for n in range(2)]
    monkeypatch.setattr(sharing, "cards", lambda: tuple(map(Card, whole)))
    found = [gpu.variables(Settings(), number) for number in (1000, 1001)]
    assert (tmp_path / "queue").stat().st_mode & 0o7777 == 0o1777
    assert {one[gpu_queue.FOLDER] for one in found} == {str(tmp_path / "queue")}
    assert [one["CUDA_VISIBLE_DEVICES"] for one in found] == ["GPU-0", "GPU-1"]

    monkeypatch.setattr(sharing, "cards", lambda: (Card(whole[0], mig=True),))
    assert gpu.variables(Settings(), 0) == {gpu_queue.FOLDER: str(tmp_path / "queue")}
    assert "no slice" in capsys.readouterr().err
