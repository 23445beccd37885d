"""What is measured on how many GPUs, in which order."""

from course.kernels.many_gpus import measure

SELDOM = {"gate", "autotune"}


def test_the_most_gpus_come_first():
    assert measure.counts(8) == [8, 4, 2]
    assert measure.counts(6) == [6, 4, 2]
    assert measure.counts(2) == [2]


def test_two_gpus_run_every_part_once():
    ran = [part for _, row in measure.plan(2, measure.PARTS, 480) for part, _ in row]
    assert sorted(ran) == sorted(set(measure.PARTS) - {"prepare", "model"})


def test_eight_gpus_train_and_reduce_with_four_and_two_as_well():
    sessions = measure.plan(8, [p for p in measure.PARTS if p not in SELDOM], 480)
    assert sessions[0][0] == sessions[1][0] == 8
    assert [part for part, _ in sessions[0][1]] == ["train"]
    for ranks in (4, 2):
        (row,) = [row for n, row in sessions if n == ranks]
        assert [part for part, _ in row] == ["train", "reduce"]


def test_a_part_that_is_not_asked_for_does_not_run():
    assert [ranks for ranks, _ in measure.plan(8, ["links"], 480)] == [8]
    assert measure.plan(8, ["reduce"], 240)[0] == (8, [("reduce", 30)])
