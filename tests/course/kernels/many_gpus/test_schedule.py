"""The all-reduces' schedules are right for any number of ranks, and send what theory says."""

import numpy as np
import pytest

from course.kernels.many_gpus.schedule import SCHEDULES, bytes_of_busiest, ring, run, seconds


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("count", [1, 8, 41])
def test_every_rank_gets_the_sum(name, ranks, count):
    random = np.random.default_rng(ranks)
    arrays = [random.integers(-99, 99, count) for _ in range(ranks)]
    total = np.sum(arrays, axis=0)
    run(SCHEDULES[name](ranks), arrays)
    for array in arrays:
        np.testing.assert_array_equal(array, total)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_bytes_of_the_busiest_link(ranks):
    sent = {name: sum(bytes_of_busiest(make(ranks), 1.0)) for name, make in SCHEDULES.items()}
    least = 2 * (ranks - 1) / ranks
    assert sent["ring"] == pytest.approx(least)
    assert sent["two_shot"] == pytest.approx(least)
    assert sent["one_shot"] == pytest.approx(ranks - 1)
    assert sent["naive"] == pytest.approx(2 * (ranks - 1))
    assert sent["tree"] == pytest.approx(2 * np.log2(ranks))


def test_a_short_message_wants_few_steps_and_a_long_one_few_bytes():
    def best(bytes):
        times = {n: seconds(make(8), bytes, 1e-6, 400e9) for n, make in SCHEDULES.items()}
        return min(times, key=times.get)

    assert best(8) == "one_shot"
    assert best(1 << 30) in ("two_shot", "ring")


def test_a_ring_with_the_wrong_neighbour_is_wrong():
    schedule = ring(4)
    wrong = [
        tuple(type(s)(s.source, (s.source + 2) % 4, s.part, s.adds) for s in step)
        for step in schedule.steps
    ]
    arrays = [np.arange(8.0) + rank for rank in range(4)]
    total = np.sum(arrays, axis=0)
    run(type(schedule)(4, 4, tuple(wrong)), arrays)
    assert not all(np.array_equal(array, total) for array in arrays)
