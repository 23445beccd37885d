"""What a check of a Numba kernel says of its signature, and of threads that are not there."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import linecache

import pytest
from numba import cuda

from course import exercises
from course.checking.answers import source_of
from course.checking.checker import check_answer
from course.checking.numba_kernels import left_early
from tests.needs import without_gpu

SCALE = exercises.EXERCISES["first_kernels.scale_guard"]


def declared(signature):
    """The solution with this signature."""
    source = exercises.solution_source(SCALE).partition("\n")[2]
    linecache.cache[signature] = len(source), None, source.splitlines(True), signature
    names = {"cuda": cuda}
    exec(compile(source, signature, "exec"), names)
    return cuda.jit(signature)(names["scale"])


@without_gpu("a GPU's Numba says so itself")
@pytest.mark.parametrize(
    "signature, says",
    [
        ("void(float64[:], float64[:], float64)", "was compiled for"),
        ("void(float32[:], float32[:, :], float32)", "was compiled for"),
        ("void(float32[:], float32[:], int32)", "the type that is declared makes it"),
    ],
)
def test_a_signature_that_does_not_fit_is_told_by_its_name(signature, says):
    outcome = check_answer(SCALE, declared(signature))
    assert outcome.reason == "wrong_dtype"
    assert says in repr(outcome)


@without_gpu("a GPU's Numba says so itself")
def test_a_signature_that_fits_is_none_of_the_checks_business():
    assert check_answer(SCALE, declared("void(float32[:], float32[:], float64)")).solved


@without_gpu("on a GPU nobody sees what was not written")
def test_a_load_that_small_blocks_leave_out_is_told_with_their_size():
    flash = exercises.EXERCISES["attention.flash"]
    (wrong,) = [wrong for wrong in flash.wrong if "if t < 8" in source_of(wrong.answer.py_func)]
    outcome = check_answer(flash, wrong.answer)
    assert outcome.reason == "uninitialized"
    assert "It went well in blocks of 16 threads and more, and here a block has " in repr(outcome)


def leaves_before(out):
    if cuda.grid(1) >= out.size:
        return
    cuda.syncthreads()
    out[cuda.grid(1)] = 1


def leaves_after(out):
    cuda.syncthreads()
    if cuda.grid(1) >= out.size:
        return
    out[cuda.grid(1)] = 1


def test_who_leaves_before_a_barrier_is_told_so():
    (said,) = left_early(leaves_before)
    assert "returns before a barrier" in said
    assert left_early(leaves_after) == ()
    inside = {}
    exec("def made():\n    return", inside)
    assert left_early(inside["made"]) == ()
