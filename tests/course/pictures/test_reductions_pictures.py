"""Look-back adds what tiles told, and nothing twice; the ring and the recorded lines say it all."""

import pytest

from course.pictures import reductions


def texts(fig):
    return [text.get_text() for text in fig.axes[0].texts]


@pytest.mark.parametrize(
    "told, sums, begins",
    [
        (["PREFIX", "PREFIX", "SUM", "SUM"], [3, 1, 4, 1], "4 + 4 + 1 = 9"),
        (["PREFIX", "SUM"], [3, 1], "3 + 1 = 4"),
        (["PREFIX", "SUM", "PREFIX"], [3, 1, 4], "8 = 8"),
    ],
)
def test_look_back_begins_at_the_sum_of_all_tiles_before(told, sums, begins):
    fig = reductions.look_back(told, sums)
    said = texts(fig)
    assert f"it begins at {begins}" in said
    assert fig.alt.endswith(f"it begins at {sum(sums)}.")
    nearest = max(t for t, what in enumerate(told) if what == "PREFIX")
    assert f"prefix {sum(sums[: nearest + 1])}" in said
    bold = [text for text in fig.axes[0].texts if text.get_weight() == "bold"]
    assert len(bold) == len(told) - nearest


def test_the_ring_says_who_waits_for_what():
    fig = reductions.ring()
    for who, what, wait in reductions.JOBS:
        assert {who, what, f"waits: {wait}"} <= set(texts(fig))
        assert f"the {who} {what} (waits for: {wait})" in fig.alt


def test_a_recorded_speed_up_is_said_with_its_gpu_and_day(capsys):
    entry = {"name": "scan/2^22/speedup_over_cub", "value": 1.256, "gpu": "NVIDIA H200"}
    reductions.beside({**entry, "date": "2026-01-31T12:00:00Z"})
    assert capsys.readouterr().out == (
        "scan/2^22        1.26 times CUB's speed (NVIDIA H200, 2026-01-31)\n"
    )
    reductions.beside(None)
    assert capsys.readouterr().out == ""
