"""What the checks of the chapter Triton need besides their exercises' own answers."""

import pytest
import torch

from course.checking.checker import check_answer
from course.exercises import triton


@pytest.fixture
def gpu_out_of_bounds(monkeypatch):
    """As in a copy (`fork`) of a process that has used the GPU."""

    def refuse(*_):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", refuse)


@pytest.mark.usefixtures("in_this_process", "gpu_out_of_bounds")
def test_graphs_are_counted_where_the_gpu_may_not_be_touched():
    outcome = check_answer(triton.ONE_GRAPH, triton.ONE_GRAPH.solution)
    assert outcome.solved, repr(outcome)


@pytest.mark.usefixtures("in_this_process", "gpu_out_of_bounds")
def test_a_break_is_found_there_too():
    (break_in_an_if, *_) = triton.ONE_GRAPH.wrong
    outcome = check_answer(triton.ONE_GRAPH, break_in_an_if.answer)
    assert outcome.reason == "other_means", repr(outcome)
