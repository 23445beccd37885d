"""What a learner is told of a kernel of attention that they changed."""

import dataclasses
import inspect
import linecache
import re
import textwrap

import numpy as np
import pytest
import torch

from course.exercises import EXERCISES
from course.kernels.attention import numba_flash, triton_flash, trying
from tests.needs import cpp_compiler, without_gpu

cpp_compiler()
pytestmark = without_gpu("small cases on the CPU runtime")


@pytest.fixture
def merge(tmp_path):
    """A function that writes a file of the learner's, and what is said of it."""

    def said(old, new, capsys):
        source = EXERCISES["attention.merge"].solution
        assert old in source
        file = tmp_path / "merge.cu"
        file.write_text(source.replace(old, new))
        trying.merged(file)
        return capsys.readouterr().out

    return said


def test_a_right_merge_joins_the_parts(merge, capsys):
    assert "✓ right: 256 values" in merge("", "", capsys)


def test_a_mean_of_unlike_parts_is_wrong(merge, capsys):
    assert "wrong: " in merge("float weight = expf(own - largest);", "float weight = 1;", capsys)


def test_a_merge_joins_what_ranks_have_found(tmp_path):
    file = tmp_path / "merge.cu"
    file.write_text(EXERCISES["attention.merge"].solution)
    parts = [(np.array([[1.0, 0.0]]), np.log([[3.0]])), (np.array([[0.0, 4.0]]), np.log([[1.0]]))]
    assert trying.joined(file, parts) == pytest.approx(np.array([[0.75, 1.0]]))


def test_with_more_queries_to_a_block_keys_are_read_less_often():
    kernel = EXERCISES["attention.flash"].solution
    read = {n: trying.flash_traced(kernel, n).sectors("k", "read") for n in (8, 16)}
    assert read == {8: 16, 16: 8}


def test_one_look_is_attention_of_one_query():
    rng = np.random.default_rng(3)
    shapes = (1, 2), (19, 2), (19, 3)
    query, keys, values = (rng.normal(size=shape) for shape in shapes)
    powers = np.exp(query @ keys.T / np.sqrt(2))
    kernel = EXERCISES["attention.flash"].solution
    found = trying.one_look(kernel, query, keys, values)
    assert np.allclose(found, powers @ values / powers.sum(), atol=1e-5)


def test_the_course_s_own_kernels_are_right(capsys):
    trying.tried("online", trying.Case(1, 5, 40, heads=2, key_heads=1, dim=64, causal=True))
    trying.tried_backward(case=trying.Case(1, 3, 4, dim=64))
    assert capsys.readouterr().out.count("✓ right") == 2


def test_of_a_wrong_kernel_the_rows_that_are_right_are_told(capsys, monkeypatch):
    """A rung that is wrong but where the largest score is in a row's last tile of keys."""
    case = trying.Case(1, 5, 140, heads=2, key_heads=1, dim=64, causal=True)

    def run(q, k, v, causal, out):
        exact, lse = trying.reference.attention(q, k, v, causal)
        first = torch.from_numpy(trying.largest_first(q, k, case, 64)).to(exact.device)
        out.copy_(torch.where(first[..., None], exact, exact + 1))
        return out, lse

    rung = dataclasses.replace(trying.RUNGS["mma"], run=run)
    monkeypatch.setitem(trying.RUNGS, "mma", rung)
    trying.tried("mma", case)
    said = capsys.readouterr().out
    count = int(re.search(r"right rows, a query of a head each: (\d+) of 10", said)[1])
    assert count < 10
    assert f"that they see: {count}, and {count} of these are right" in said


def test_the_largest_score_of_a_row_is_met_first_or_later():
    case = trying.Case(1, 3, 6, dim=2, causal=True)
    q = np.ones((1, 3, 1, 2))
    k = np.zeros((1, 6, 1, 2))
    k[0, :, 0, 0] = 0, 1, 2, 9, 3, 4  # queries see 4, 5 and 6 keys: the last tiles are 1, 2, 2
    first = trying.largest_first(q, k, case, 2)
    assert first[0, :, 0].tolist() == [True, False, False]


def test_a_few_right_rows_are_listed():
    right = np.zeros((1, 40, 2), bool)
    assert trying.rows_in_words(right).endswith("0 of 80")
    right[0, 39] = True
    right[0, 3, 0] = True
    assert trying.rows_in_words(right).endswith("3 of 80 (3, 39 of head 0; 39 of head 1)")
    assert trying.rows_in_words(~right).endswith("77 of 80")


def test_slopes_are_gradients_and_leave_the_arrays_as_they_were():
    given = np.array([1.0, 2.0]), np.array([3.0])
    (by_a, by_b) = trying.slopes(lambda a, b: (a**2).sum() * b.item(), given)
    np.testing.assert_allclose(by_a, [6, 12], rtol=1e-6)
    np.testing.assert_allclose(by_b, [5], rtol=1e-6)
    np.testing.assert_array_equal(given[0], [1, 2])


def test_the_gradient_of_a_query_is_that_of_the_result():
    """What the exercise asks for, by finite differences of softmax(scale q kᵀ) v."""
    exercise = EXERCISES["attention.slope"]
    given = exercise.inputs(np.random.default_rng(0), (3, 5))

    def result(q):
        scores = given["scale"] * q @ given["k"].T
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        return (weights @ given["v"] * given["dout"]).sum()

    (slope,) = trying.slopes(result, [given["q"].astype(np.float64)])
    np.testing.assert_allclose(exercise.reference(**given), slope, rtol=1e-4, atol=1e-5)


def test_kernels_in_python_are_tried_as_they_are_handed_in(capsys):
    trying.tried_in_numba(numba_flash.flash_batch)
    trying.tried_in_triton(triton_flash.take)
    assert capsys.readouterr().out.count("✓ right") == 2
    assert triton_flash.flash.fn.__globals__["take"] is triton_flash.take


def test_a_triton_step_that_shrinks_nothing_is_wrong(capsys):
    source = textwrap.dedent(inspect.getsource(triton_flash.take.fn))
    wrong = source.replace("total = total * factor +", "total = total +")
    assert wrong != source
    names = dict(vars(triton_flash))
    linecache.cache["<wrong>"] = len(wrong), None, wrong.splitlines(True), "<wrong>"
    exec(compile(wrong, "<wrong>", "exec"), names)
    trying.tried_in_triton(names["take"])
    assert "wrong: " in capsys.readouterr().out
