"""The pictures of the chapter Kernels that you did not write show what is so."""

import json

import numpy as np
import pytest

from course.exercises.not_written import roundings
from course.judge import bank
from course.pictures import not_written
from utils.files import ASSETS


def test_envelopes_are_closed_until_they_are_stamped():
    assert "All are closed" in not_written.desk().alt
    stamped = not_written.desk({3: "wrong", 12: "right"})
    assert "3 wrong, 12 right" in stamped.alt
    assert all(f">{word}</text>" in stamped.svg() for word in ("wrong", "right"))


def test_signatures_are_counted_where_they_were_kept():
    assert "No signature" in not_written.signatures({})
    here = {"chapter": "not_written"}
    kept = {
        "1": {"guess": "cheating", "right": False, **here},
        "2": {"guess": "wrong", "right": True, **here},
        "3": {"guess": "wrong", "right": False, "chapter": "matmul"},
        "4": {"guess": "it accepts it", "right": True, **here},
        "5": {"guess": 7, "was": 6, **here},
    }
    said = not_written.signatures(kept)
    assert said == "Signatures kept: 2, right: 1. You signed what was not so: cheating (1)."


@pytest.mark.parametrize("columns, verdict", [(10, "refused"), (100_000, "accepted")])
def test_a_tolerance_takes_zeros_where_rows_are_wide(columns, verdict):
    x = np.random.default_rng(columns).normal(size=columns)
    results = np.exp(x) / np.exp(x).sum()
    accepted = np.allclose(0, results, rtol=0, atol=not_written.USUAL)
    assert accepted == (verdict == "accepted")
    assert f"zeros are {verdict}" in not_written.tolerance(columns).alt


@pytest.mark.parametrize("largest", [10, 15, 85, 90, 130])
def test_what_holds_a_power_is_what_numpy_says(largest):
    with np.errstate(over="ignore"):
        held = [t for t in ("float16", "float32") if np.isfinite(np.exp(np.dtype(t).type(largest)))]
    alt = not_written.overflow(largest).alt
    assert alt.endswith(f"held by {' and '.join(held)}" if held else "infinity")


def test_a_right_bound_lets_float32_through_and_float16_not():
    alt = not_written.bounds(roundings, threads=32).alt
    assert "0 of 11 in float32 and 11 of 11 in float16 lie above" in alt


def test_a_sum_by_threads_rounds_in_the_order_that_is_told():
    products = np.array([[1, 2**-24, 2**-24, 2**-24]])
    assert not_written.summed(products, 1, np.float32)[0] == 1
    by_two = not_written.summed(products, 2, np.float32)[0]
    assert by_two == 1 + 2**-23


def test_the_clock_is_right_only_where_it_waits_twice():
    said = [not_written.clocked(waits).alt for waits in not_written.WAITS]
    right = f"the clock says {not_written.WORK}."
    assert [alt.endswith(right) for alt in said] == [False, False, True]


def test_one_thread_takes_thousands_of_times_as_long():
    one, many = (not_written.estimated(number).seconds for number in (6, 9))
    assert one > 1000 * many
    assert "envelope 9" in not_written.said(9).alt


def test_each_pattern_is_in_a_table_with_its_source():
    page = not_written.patterns()._repr_html_()
    assert all(one.key in page and one.source in page for one in bank.patterns())
    assert len(not_written.patterns("honest").rows) < len(bank.patterns())


def test_the_board_of_judges_shows_what_was_recorded():
    content = json.loads((ASSETS / "judges.json").read_text(encoding="utf-8"))["judges"]
    fig = not_written.judges()
    said = {text.get_text() for text in fig.axes[0].texts}
    assert said == {
        f"{len(one['accepted'])} of {one['of']}; refused {len(one['refused'])} of {one['right']}"
        " right ones"
        for one in content.values()
    }
    assert set(content) == set(not_written.CHECKERS)
    ours = content["ours"]
    assert ours["accepted"] == ours["refused"] == [] and ours["right"] >= 600
