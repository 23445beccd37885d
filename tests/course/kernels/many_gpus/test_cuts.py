"""The ways to cut a training do what one device does, keep what they should, and idle as drawn."""

import pytest

from course.kernels.many_gpus import cuts
from course.kernels.many_gpus.launch import launch
from course.pictures.many_gpus import bubble

ROUNDING = 1e-5
RANKS = 2


@pytest.fixture(scope="module")
def found():
    """What each rank found, of one launch."""
    return launch(cuts.session, RANKS, echo=lambda line: None)


def test_buckets_give_the_gradient_of_pytorchs_ddp(found):
    for rank in found:
        assert rank["buckets"]["off"] < ROUNDING
        log = rank["buckets"]["log"]
        assert len(log) > 1 and log[0]["bytes"] > 4 * log[-1]["bytes"]  # the last layers' first
        assert [entry["ready"] for entry in log] == sorted(entry["ready"] for entry in log)


@pytest.mark.parametrize("stage", range(4))
def test_every_stage_takes_the_step_of_one_device(found, stage):
    for rank in found:
        assert rank["sharded"][stage]["off"] < ROUNDING


def test_a_stage_keeps_its_share_of_the_bytes(found):
    for rank in found:
        each = rank["sharded"][0]["parameters"]
        kept = [rank["sharded"][stage]["bytes"] / each for stage in range(4)]
        assert kept == [16, 8 + 8 / RANKS, 4 + 12 / RANKS, 16 / RANKS]
        assert rank["fsdp"]["bytes"] == pytest.approx(16 / RANKS * each, rel=0.01)
        assert rank["fsdp"]["off"] < ROUNDING


def test_cut_layers_give_the_loss_and_the_gradients_of_one_device(found):
    for rank in found:
        assert all(rank["tensor"][what] < ROUNDING for what in ("off_loss", "off_fc1", "off_conv1"))


def test_a_pipeline_gives_the_gradients_of_one_device_and_its_bubble(found):
    for rank in found:
        assert rank["pipeline"]["off"] < ROUNDING
    assert found[-1]["pipeline"]["loss"] == pytest.approx(found[0]["pipeline"]["expected"])
    log = [entry for rank in found for entry in rank["pipeline"]["log"]]
    assert bubble(log) == pytest.approx((RANKS - 1) / (cuts.MICRO_BATCHES + RANKS - 1))
