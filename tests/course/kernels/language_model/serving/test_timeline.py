"""The timeline: its numbers by hand, and what other decisions do to it."""

import pytest

from course.kernels.language_model.serving.scheduler import Rules
from course.kernels.language_model.serving.timeline import ARRIVALS, timeline


def test_by_hand():
    """Two requests in pieces of four tokens."""
    told = timeline([(0, 6, 2), (1, 2, 3)], blocks=4, budget=4, places=2)
    doing = [moment.doing for moment in told.moments]
    assert doing == [
        {"A": "prompt"},
        {"A": "prompt", "B": "prompt"},
        {"A": "writes", "B": "writes"},
        {"B": "writes"},
    ]
    assert [moment.tokens for moment in told.moments][:2] == [{"A": 4}, {"A": 2, "B": 2}]
    assert told.moments[1].written == {"A": 1, "B": 1}
    assert told.moments[1].owners == ("A", "B", "", "")
    assert (told.came, told.first) == ({"A": 0, "B": 1}, {"A": 1, "B": 1})
    assert told.last == {"A": 2, "B": 3}
    assert told.tokens_per_step == 5 / 4
    assert told.wait == 1.5
    assert "11 computed, 4 in the longest step" in str(told)


def test_all_tokens_are_written():
    told = timeline()
    assert list(told.moments[-1].written.values()) == [most for _, _, most in ARRIVALS]
    assert any(len(owners) > 1 for moment in told.moments for owners in moment.owners)


def test_other_decisions():
    """One after the other is slow; whoever fits begins, and somebody has to go."""
    ours = timeline()
    in_turn = timeline(rules=Rules(may_enter=lambda needed, free, running: running == 0))
    assert len(in_turn.moments) > 2 * len(ours.moments)
    assert in_turn.wait > 5 * ours.wait
    assert not ours.preempted
    everybody = Rules(may_enter=lambda needed, free, running: True)
    assert timeline(rules=everybody).preempted
    first = Rules(may_enter=everybody.may_enter, victim=lambda running: running[0])
    assert timeline(rules=first).preempted
    assert timeline(sharing=False).wait > ours.wait
    assert max(timeline(budget=64).computed) > 40


def test_who_came_first_is_done_last_if_the_first_can_be_thrown_out():
    long_ones = [(5 * i, 40, 90) for i in range(4)]
    fits = Rules(may_enter=lambda needed, free, running: True)
    ours = timeline(long_ones, rules=fits)
    first = Rules(may_enter=fits.may_enter, victim=lambda running: running[0])
    theirs = timeline(long_ones, rules=first)
    assert min(ours.last, key=ours.last.get) == "A" == max(theirs.last, key=theirs.last.get)
    assert sum(theirs.computed) > sum(ours.computed)


def test_who_is_never_served_is_told():
    with pytest.raises(RuntimeError, match="nobody can go on"):
        timeline(rules=Rules(may_enter=lambda needed, free, running: False))
