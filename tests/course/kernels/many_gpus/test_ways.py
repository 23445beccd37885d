"""The model of ways to cut a training: what fits, what is sent, what is fastest."""

import pytest

from course.kernels.many_gpus import ways


def by_name(job):
    return {way.name.split(" (")[0]: way for way in ways.ways(job)}


def test_a_small_model_stays_data_parallel_and_a_large_one_is_shared():
    assert ways.best(ways.job(1, 8, 80, 350)).name == "data parallel"
    assert "stage 1" in ways.best(ways.job(7, 8, 80, 350)).name
    assert "stage 3" in ways.best(ways.job(70, 64, 80, 350)).name
    assert ways.best(ways.job(180, 2, 16, 350)) is None


def test_all_shared_is_a_share_of_all():
    found = by_name(ways.job(7, 8, 80, 350))
    assert found["data parallel"].bytes == 16 * 7e9
    assert found["+ parameters shared"].bytes == pytest.approx(2 * 7e9)
    assert found["+ parameters shared"].messages == pytest.approx(
        1.5 * found["data parallel"].messages
    )


def test_a_slow_link_costs_tensor_parallel_most():
    fast, slow = (by_name(ways.job(7, 8, 80, link)) for link in (350, 25))
    longer = {name: slow[name].seconds / fast[name].seconds for name in fast}
    assert max(longer, key=longer.get) == "tensor parallel"
    assert longer["pipeline"] < 1.01


def test_the_table_marks_one_way_and_what_does_not_fit():
    text = ways.table(ways.job(7, 8, 80, 350))
    assert text.count("fastest that fits") == 1
    assert text.count("does not fit") == 1
