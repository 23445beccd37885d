"""What each learner of a class is given of a machine's GPUs, and what the instructor is told."""

import pytest

from utils import gpu_queue
from utils.gpu_queue import sharing
from utils.gpu_queue.__main__ import main
from utils.gpu_queue.sharing import Card, Slice

GIB = 1 << 30
WHOLE = Slice("GPU-1", "Test GPU", 80 * GIB)
SLICES = tuple(Slice(f"MIG-{n}", "Test GPU MIG 1g.10gb", 10 * GIB) for n in range(7))


def fraction(variables):
    name, _, value = variables["PYTORCH_ALLOC_CONF"].partition(":")
    assert name == "per_process_memory_fraction"
    return float(value)


@pytest.mark.parametrize("learners", [1, 8, 30])
@pytest.mark.parametrize("card", [Card(WHOLE), Card(WHOLE, mig=True, slices=SLICES)])
def test_all_learners_together_fit_into_the_memory(card, learners):
    memory = {part.uuid: part.memory for part in card.parts}
    used = dict.fromkeys(memory, 0.0)
    for number in range(learners):
        variables = sharing.environment(number, learners, "/run/queue", [card])
        assert variables[gpu_queue.FOLDER] == "/run/queue"
        part = variables["CUDA_VISIBLE_DEVICES"]
        assert fraction(variables) > 0
        assert variables["CUPY_GPU_MEMORY_LIMIT"] == f"{fraction(variables):.1%}"
        used[part] += fraction(variables) * memory[part] + sharing.CONTEXT
    assert all(used[part] <= 1.01 * memory[part] for part in memory)
    assert max(used.values()) > 0.9 * max(memory.values()) if learners == 30 else True


def test_on_a_small_gpu_each_learner_may_have_what_chapters_need():
    small = Card(Slice("GPU-2", "Small GPU", 8 * GIB))
    assert fraction(sharing.environment(0, 30, "/run/queue", [small])) * 8 * GIB == sharing.ENOUGH


@pytest.mark.parametrize("found", [[], [Card(WHOLE, mig=True)]], ids=["no GPU", "no slice"])
def test_without_a_gpu_or_a_slice_a_learner_has_the_queue_alone(found):
    assert sharing.environment(3, 30, "/run/queue", found) == {gpu_queue.FOLDER: "/run/queue"}


def test_what_the_instructor_is_told():
    def told(*cards, mps=False, learners=30):
        return "\n".join(sharing.lines(learners, cards, mps))

    assert "30 learners: at most 30 on each of 1, with 2.2 GiB" in told(Card(WHOLE))
    cut = told(Card(WHOLE, mig=True, slices=SLICES))
    assert "7 slices (MIG)" in cut and "at most 5 on each of 7, with 1.5 GiB" in cut
    assert "without any slice" in told(Card(WHOLE, mig=True))
    assert "nvidia-smi -c DEFAULT" in told(Card(WHOLE, exclusive=True))
    assert "ends the kernels of all others" in told(Card(WHOLE), mps=True)
    small = Card(Slice("GPU-2", "Small GPU", 16 * GIB))
    assert "10 learners fit" in told(small)
    assert "10 learners fit" not in told(small, learners=10)


def test_the_command_makes_a_folder_in_which_all_can_queue(tmp_path, capsys):
    assert main(["--make", str(tmp_path / "queue")]) == 0
    assert (tmp_path / "queue").stat().st_mode & 0o7777 == 0o1777
    assert f"{gpu_queue.FOLDER}={tmp_path}/queue" in capsys.readouterr().out
    (tmp_path / "file").touch()
    assert main(["--make", str(tmp_path / "file")]) == 1
