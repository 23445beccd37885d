"""What a diagnosis says of each kind of mistake: the reason, and the place it names.

The evidence is made by hand. That real wrong answers are given these reasons is tested with the
exercises; they do not look at the numbers in the sentence.
"""

from dataclasses import replace

import numpy as np
import pytest

from course.checking.diagnose import diagnose
from course.checking.engines import Run
from course.checking.model import Exercise, Launch, Out
from course.checking.report import first_to_show

BLOCK = 4
COPY = Exercise(
    id="test.copy",
    title="",
    minutes=1,
    task="",
    starter="",
    solution="",
    hints=(),
    shapes=((8,), (9,)),
    large=(70,),
    inputs=None,
    reference=None,
    block=(BLOCK, 1, 1),
    other_block=(6, 1, 1),
    extents=lambda shape: (shape[0], 1, 1),
)


def run(size, unwritten=(), wrong=(), rounded=(), block=BLOCK, blocks=None, **evidence):
    """A launch over `size` elements; evidence: as `Run` has it; the others: indices."""
    expected = np.arange(1, size + 1, dtype=np.float32)
    initial = np.full(size, np.nan, np.float32)
    actual = expected.copy()
    actual[list(wrong)] = -1
    actual[list(rounded)] *= 1 + 5e-4
    actual[list(unwritten)] = np.nan
    grid = blocks or -(-size // block)
    launch = Launch((grid, 1, 1), (block, 1, 1))
    arguments = {"out": Out((size,)), "a": expected}
    return Run((size,), launch, "CPU", expected, actual, initial, arguments, **evidence)


def flags(size, at, value=True):
    """An array of this many zeros, of the type of `value`, with it at one place."""
    array = np.zeros(size, type(value))
    array[at] = value
    return array


CASES = {
    "the last missing, of one and of more": (
        [run(1, unwritten=[0]), run(9, unwritten=[8])],
        "off_by_one",
        "except index 8",
    ),
    "the only one missing": ([run(1, unwritten=[0])], "unwritten", "No element of the output"),
    "an input changed": ([run(9, modified=["a"])], "modifies_input", "`a` is stored to"),
    "read early": (
        [run(9, wrong=[3], early_reads=flags(9, 3))],
        "reads_output",
        "`out` holds anything",
    ),
    "one beyond": (
        [run(10, outside_writes={"out": [(10,)]}, blocks=4)],
        "off_by_one",
        "past the end of `out`: index 10, but its size is 10.",
    ),
    "one before": (
        [run(10, outside_reads={"a": [(-1,)]}, blocks=4)],
        "off_by_one",
        "reads before the start of `a`: index -1",
    ),
    "no guard": (
        [run(9, outside_writes={"out": [(10,), (9,), (11,)]})],
        "missing_guard",
        "index 9, but its size is 9. Is there a guard",
    ),
    "a wrong index, not a missing guard": (
        [run(9, outside_writes={"out": [(11,)]}, outside_by={(3, 0, 0)})],
        "out_of_bounds",
        "index 11, but its size is 9. Threads that have work",
    ),
    "no guard, and it is known who": (
        [run(9, outside_writes={"out": [(11,)]}, outside_by={(3, 0, 0), (11, 0, 0)})],
        "missing_guard",
        "Is there a guard",
    ),
    "far outside": ([run(8, outside_reads={"a": [(50,)]})], "out_of_bounds", "index 50, but its"),
    "damage by surplus threads": (
        [run(8, wrong=[7], blocks=3), run(8)],
        "missing_guard",
        "exactly as many threads as needed along x,",
    ),
    "one block": (
        [run(9, unwritten=range(BLOCK, 9)), run(12, unwritten=range(BLOCK, 12))],
        "first_block_only",
        "Only the first block's",
    ),
    "without the last": (
        [run(9, unwritten=[8]), run(13, unwritten=[12])],
        "off_by_one",
        "except index 8, the last one, which was never",
    ),
    "too few threads": (
        [run(9, unwritten=[4, 5], blocks=2), run(9), run(13)],
        "needs_full_grid",
        "with 8 threads for 9 elements",
    ),
    "a partly filled block": (
        [run(9, wrong=[4]), run(8), run(12)],
        "only_multiples",
        "multiple of the block (4,), wrong for 9:",
    ),
    "a size right by chance": (
        [run(9, wrong=[4]), run(8), run(12), run(10), run(11)],
        "wrong_value",
        "computes something else",
    ),
    "rounds of a small grid": (
        [run(9, wrong=[8], blocks=2), run(8, blocks=2), run(16, blocks=2), run(7), run(5)],
        "only_multiples",
        "9 elements and 8 threads: what of the rest? All of it was written: does a thread keep",
    ),
    "only where all go on in step": (
        [run(9, wrong=[3], in_step=True), run(9)],
        "contention",
        "Does it give up after some tries",
    ),
    "a large array": (
        [run(8), run(9), run(70, wrong=[66, 67])],
        "only_small",
        "with up to 9 elements in `out`, wrong with 70:",
    ),
    "many terms in a type with few digits": (
        [run(8), run(9), run(70, rounded=range(70))],
        "only_small",
        "Nearly right with 70 elements, and quite right with fewer: does a sum",
    ),
    "a large array in few threads": (
        [run(8), run(70), run(70, wrong=[66, 67], blocks=2)],
        "few_rounds",
        "with 72 threads for 70 elements, wrong with 8:",
    ),
    "another block": (
        [run(9, wrong=[4], block=6), run(8), run(9), run(13)],
        "fixed_block",
        "blocks of (4,) threads, wrong with blocks of (6,):",
    ),
    "rare numbers, of which a large array has some": (
        [run(8), run(9), run(70, wrong=[12, 31])],
        "wrong_value",
        "2 of 70 elements are wrong: what have these",
    ),
    "numbers that blocks of both sizes meet": (
        [run(9, wrong=[4], block=6), run(8), run(9), run(13), run(14, block=6)],
        "wrong_value",
        "computes something else",
    ),
    "twice": (
        [run(9, writers=flags(9, 3, 2))],
        "duplicate_work",
        "Element 3 of the output was written by 2 threads",
    ),
    "holes": (
        [run(9, unwritten=[5, 2])],
        "unwritten",
        "2 of 9 elements never were, the first at index 2.",
    ),
    "nothing": ([run(9, unwritten=range(9))], "unwritten", "No element of the output"),
    "something else": ([run(9, wrong=[1, 3])], "wrong_value", "computes something else"),
}


def run_of(size, change, **evidence):
    """A launch whose output is what `change` makes of the right one; `a` holds it, too."""
    one = run(size, **evidence)
    return replace(one, actual=change(one.expected.copy()).astype(np.float32))


def written(size, change):
    """The same, where each element was written by a thread: NaN there is no gap."""
    return run_of(size, change, writers=np.ones(size, int))


def negative(values):
    """These numbers with another sign for every second one."""
    return values * np.where(np.arange(values.size) % 2, -1, 1)


def lost_below_zero(size):
    """A launch whose input has both signs, and whose output is 0 or 7 where that is below 0."""
    one = run(size)
    signs = negative(one.expected).astype(np.float32)
    wrong = np.arange(size) % 4 * 2.5 + 0.1
    return replace(
        one,
        actual=np.where(signs < 0, wrong, one.expected).astype(np.float32),
        arguments={**one.arguments, "a": signs},
    )


OBSERVED = {
    "a factor": (
        [run_of(n, lambda values: 2 * values) for n in (8, 9)],
        "Off by a constant factor: got 2 × expected.",
    ),
    "a factor, and NaN": (
        [written(n, lambda values: np.where(values > 5, np.nan, 2 * values)) for n in (8, 9)],
        "got 2 × expected. The other wrong elements are NaN.",
    ),
    "zeros and NaN": (
        [written(n, lambda values: np.where(values > 5, np.nan, 0)) for n in (8, 9)],
        "Each wrong element is 0 or NaN.",
    ),
    "infinity": (
        [run_of(n, lambda values: np.where(values > 5, np.inf, values)) for n in (8, 9)],
        "Each wrong element is infinite.",
    ),
    "a multiple that no block has": (
        [run(n) for n in (6, 12, 18, 66)] + [run(n, wrong=[2]) for n in (7, 11)],
        "Right wherever the length of `out` is a multiple of 2, wrong wherever it is none.",
    ),
    "up to a length": (
        [run(n) for n in (4, 5, 6)] + [run(n, wrong=[0, 3]) for n in (7, 10)],
        "Right with up to 6 as the length of `out`, wrong from 7 on.",
    ),
    "an input below zero": (
        [lost_below_zero(n) for n in (33, 40)],
        "Wrong just where `a` is below 0.",
    ),
    "one way": (
        [run(20, wrong=range(9)), run(21, wrong=range(9))],
        "Each wrong value is too small.",
    ),
}


@pytest.mark.parametrize("case", OBSERVED)
def test_of_an_unknown_mistake_it_is_told_what_all_launches_show(case):
    runs, words = OBSERVED[case]
    finding = diagnose(runs, COPY)
    assert finding.reason == "wrong_value"
    assert words in finding.says


def test_each_wrong_element_is_0_only_if_those_of_small_launches_are():
    zeros = [run_of(n, np.zeros_like) for n in (8, 9)]
    assert "Every wrong element is 0." in diagnose(zeros, COPY).says
    assert "wrong element is 0" not in diagnose([*zeros, run(1, wrong=[0])], COPY).says


def test_what_special_numbers_do_is_no_rule_about_sizes():
    special = [run(n, special=True) for n in (4, 5, 6)]
    finding = diagnose([*special, *(run(n, wrong=[0, 3]) for n in (7, 10))], COPY)
    assert "Right with" not in finding.says


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_named_and_placed(case):
    runs, reason, words = CASES[case]
    finding = diagnose(runs, COPY)
    assert finding.reason == reason, finding.says
    assert words in finding.says


def test_what_is_right_is_no_mistake():
    assert diagnose([run(8), run(9)], COPY) is None


def test_a_thread_has_as_many_elements_as_the_text_gives_it():
    one_each = replace(COPY, elements=1)
    both = [run(9, most_of_one_thread=1), run(9, most_of_one_thread=2)]
    assert diagnose(both[:1], one_each) is None
    assert diagnose(both, COPY) is None
    assert diagnose(both, replace(COPY, elements=2)) is None
    finding = diagnose(both, one_each)
    assert finding.reason == "one_thread"
    assert "stores to 2 elements of `out`. The task gives each thread one element" in finding.says


def test_in_a_grid_that_is_too_small_a_thread_may_have_more_elements():
    too_small = run(9, blocks=2, most_of_one_thread=2)
    assert diagnose([too_small], replace(COPY, elements=1)) is None


def test_a_finite_wrong_element_is_shown_before_an_infinite_one():
    wrong = np.array([False, True, True])
    assert first_to_show(wrong, np.array([1, np.inf, 2.0]))[1] == (2,)
    assert first_to_show(wrong, np.array([1, np.inf, np.inf])) == ("First wrong element", (1,))
    assert first_to_show(wrong, np.array([1, 2, 3])) == ("First wrong element", (1,))
