"""The finale's plain step: right with every idea, counted from what ran, and the learner's own."""

import numpy as np
import pytest

from course.exercises import beating_pytorch as exercises
from course.kernels.mnist_cnn import fast, pytorch, sockets, steps
from course.kernels.mnist_cnn.ledger import Ledger, StepError
from course.pictures import beating_pytorch as pictures
from tests.course.kernels.mnist_cnn.test_fast import distance, problem
from utils.engine import has_gpu

#: launches and kB for a digit, from a kernel a layer to one update
COUNTS = {
    None: (46, 2982),
    "backward": (42, 2108),
    "forward": (38, 1496),
    "moments": (39, 1396),
    "not_stored": (35, 758),
    "head": (29, 756),
    "update": (20, 756),
    "splits": (21, 756),
}
BATCH = 64 if has_gpu() else 3


def ideas_up_to(idea):
    return steps.IDEAS[: steps.IDEAS.index(idea) + 1] if idea else ()


BETWEEN = pytest.mark.nightly("by day without an idea, with half of them and with all")
BY_DAY = None, "not_stored", "splits"


@pytest.mark.parametrize(
    "idea", [pytest.param(idea, marks=[] if idea in BY_DAY else [BETWEEN]) for idea in COUNTS]
)
def test_each_step_is_right_and_counted(idea):
    weights, images, labels = problem(BATCH)
    step = steps.Step(weights, images, labels, 0.1, ideas_up_to(idea))
    for _ in range(2):  # what one leaves behind does not disturb the next
        before = step.weights()
        loss, _, exact = pytorch.loss_and_gradients(before, images, labels)
        step.run()
        assert step.loss == pytest.approx(loss, rel=1e-4)
        gradients, after = step.gradients(), step.weights()
        for name in exact:
            assert distance(gradients[name], exact[name]) < 1e-3, name
            np.testing.assert_allclose(
                after[name], before[name] - 0.1 * gradients[name], rtol=1e-4, atol=1e-6
            )
    assert (len(step.launches), round(step.kilobytes)) == COUNTS[idea]


def test_conv1s_outputs_are_touched_seventeen_times():
    step = steps.Step(*problem(2))
    step.run()
    table = pictures.touches(step.launches, {"y1", "z1", "dy1"})
    assert table.rows[-1] == ["together", "17", "1,706"]


def test_kernels_of_the_learner_are_in_it_and_named(tmp_path):
    own = tmp_path / "bn_relu_pool.cu"
    own.write_text(exercises.BN_RELU_POOL.solution)
    parts = tmp_path / "split_sums.cu"
    parts.write_text(exercises.SPLIT_SUMS.solution)
    good = sockets.SOCKETS["head"].good
    mine = {"bn_relu_pool": own, "split_sums": parts, "head": good}
    step = steps.Step(*problem(2), ideas=ideas_up_to("splits"), mine=mine)
    step.run()
    assert [launch.name for launch in step.launches if launch.mine] == list(mine)
    with pytest.raises(sockets.SocketError, match="no kernel of the step is called 'haed'"):
        steps.Step(*problem(2), mine={"haed": own})


def test_ideas_build_on_each_other():
    with pytest.raises(ValueError, match="in this order: backward, forward"):
        steps.Step(*problem(2), ideas=("forward",))


def test_what_the_finished_trainer_moves_is_what_its_map_says():
    drawn = {name: read + written for name, _, _, _, read, written in pictures.KERNELS}
    assert drawn == steps.FINISHED
    assert steps.finished_kilobytes() < steps.finished_kilobytes({"head": ""})


OTHER_KERNELS = pytest.mark.nightly("by day without a kernel of the learner's, below with a head")


@pytest.mark.parametrize(
    "mine, launches",
    [
        ((), 8),
        pytest.param(("head",), 11, marks=OTHER_KERNELS),
        pytest.param(("patch_moments",), 8, marks=OTHER_KERNELS),
        pytest.param(("head", "update"), 14, marks=OTHER_KERNELS),
    ],
)
def test_the_finished_trainers_launches_are_counted(mine, launches):
    files = {name: sockets.SOCKETS[name].good for name in mine}
    with fast.Trainer(problem(2)[0], 2, 0.1, mine=files) as trainer:
        assert trainer.launches() == launches
    with (
        fast.Trainer(problem(2)[0], 2, 0.1, graph=False) as trainer,
        pytest.raises(ValueError, match="leave graph=False out"),
    ):
        trainer.launches()


# ---- the ledger


def test_a_row_takes_the_place_of_its_like(tmp_path):
    ledger = Ledger(*problem(2))
    first = ledger.add("plain")
    own = tmp_path / "bn_relu_pool.cu"
    own.write_text(exercises.PLAIN_BN_RELU_POOL)
    ledger.add("forward", "forward")
    again = ledger.add("forward", "forward", {"bn_relu_pool": own})
    assert ledger.rows == [first, again]
    assert again.mine == ("bn_relu_pool",)
    assert "yours: bn_relu_pool" in repr(again)
    assert "2 kernels" not in pictures.your_waterfall(ledger.rows).alt
    assert "1 kernel of yours" in pictures.your_waterfall(ledger.rows).alt


def test_a_wrong_step_gets_no_row(tmp_path, capsys):
    ledger = Ledger(*problem(2))
    wrong = tmp_path / "bn_relu_pool.cu"
    wrong.write_text(exercises.POOLED_FIRST)
    with pytest.raises(StepError, match=r"off by \d+% of its size; wrong are"):
        ledger.add("forward", "forward", {"bn_relu_pool": wrong})
    assert not ledger.rows
    ledger.tried("forward", {"bn_relu_pool": wrong})
    ledger.tried("forward")
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("✗ the gradient of") and said[1].startswith("✓ right")


def test_pytorch_learns_the_ledgers_batch_by_the_same_steps():
    weights, images, labels = problem(3)
    theirs = Ledger(weights, images, labels).pytorchs_losses(lr=0.02, steps=3)
    for loss in theirs:
        exact, _, gradients = pytorch.loss_and_gradients(weights, images, labels)
        assert loss == pytest.approx(exact, rel=1e-4)
        moved = {name: value - 0.02 * gradients[name] for name, value in weights.items()}
        weights = {name: value.astype(np.float32) for name, value in moved.items()}


@pytest.mark.nightly("by day its gradients are autograd's, and its steps SGD's: test_fast.py")
def test_the_finished_trainer_learns_the_ledgers_batch_as_pytorch_does():
    ledger = Ledger(*problem(3))
    good = {"head": sockets.SOCKETS["head"].good}
    ours, theirs = ledger.losses(0.02, 3, good), ledger.pytorchs_losses(0.02, 3)
    assert ours == pytest.approx(theirs, rel=3e-2) and ours[2] < ours[0]


@pytest.mark.nightly("the chapter gives its finished trainer a row, and tries it")
def test_the_finished_trainer_gets_a_row_and_is_tried(capsys):
    ledger = Ledger(*problem(4))
    row = ledger.finish("finished", {"head": sockets.SOCKETS["head"].good})
    assert (row.launches, row.mine) == (11, ("head",))
    ledger.tried_finished()
    assert "✓ right" in capsys.readouterr().out


# ---- what threads ask for


@pytest.mark.parametrize("name", sockets.SOCKETS)
def test_good_kernels_ask_for_no_more_than_slow_ones(name):
    socket = sockets.SOCKETS[name]
    assert 0 < sockets.asked(name, socket.good) <= sockets.asked(name, socket.slow)
