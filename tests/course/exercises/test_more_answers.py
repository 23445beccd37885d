"""Right answers unlike the solutions are solved, and wrong ones of many kinds are not.

They were written from the notebooks' text alone, before any checker was read: answers/right.txt,
answers/wrong.txt and, rejected for a reason for which one of the exercise's own wrong answers is,
answers/wrong_as_known.txt. Each begins with a line `### ID NAME`. Right ones differ in algorithm,
order, synchronization or means; with the solution each exercise has at least four. By day one right
answer is handed in for each way in which a check asks for more than values, and so may ask for the
solution, and for each kind of exercise; of what is wrong one for each kind, besides the solutions
and the exercises' own wrong answers. At night, and by `make chapter`, all are.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import collections
import functools
import linecache
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

from course import exercises
from course.checking import cuda_c_files, engines, limits
from course.checking.checker import check_answer
from tests.needs import cpp_compiler

pytestmark = pytest.mark.usefixtures("in_this_process")
ANSWERS = Path(__file__).with_name("answers")


def parts(name):
    """(exercise, title, source) of each answer in a file."""
    for part in re.split(r"(?m)^### ", (ANSWERS / name).read_text())[1:]:
        head, source = part.split("\n", 1)
        id, _, title = head.partition(" ")
        yield exercises.EXERCISES[id], title, source


def answers(name):
    """pytest.param(exercise, source) of each answer in a file."""
    for exercise, title, source in parts(name):
        yield pytest.param(exercise, source, id=f"{exercise.id}-{title}")


OWN_BY_DAY = pytest.mark.nightly("by day the exercise's own wrong answers")
ANOTHER = pytest.mark.nightly("by day its solution, and one where the check asks in the same way")


def means_of(exercise):
    """What the check of an exercise looks at besides values, and so may refuse what is right."""
    counted = {name for name in ("needs", "without", "no_more") if getattr(exercise, name)}
    own = {exercise.demand and exercise.demand.unmet, exercise.after}
    return counted | own - {None}


def by_day():
    """Ids of the exercises of which a right answer besides the solution is handed in by day: the
    first of each kind, and the first whose check looks at something in one way, short ones first.
    """
    chosen, seen = set(), set()
    for exercise in sorted(exercises.EXERCISES.values(), key=lambda exercise: exercise.minutes):
        looks_at = {exercise.kind, *means_of(exercise)}
        if not looks_at <= seen:
            chosen.add(exercise.id)
            seen |= looks_at
    return chosen


def right_answers():
    """pytest.param(exercise, source) of each right answer that is not in CUDA C."""
    left = by_day()
    for param in answers("right.txt"):
        exercise, source = param.values
        if exercise.kind == "cuda_c":
            continue
        marks = [] if exercise.id in left else [ANOTHER]
        left.discard(exercise.id)
        yield pytest.param(exercise, source, id=param.id, marks=marks)


def in_one_file():
    """pytest.param(exercise, {title: source}) of each CUDA C exercise's right answers, by day of
    the first one.
    """
    of_each = collections.defaultdict(dict)
    for exercise, title, source in parts("right.txt"):
        if exercise.kind == "cuda_c":
            of_each[exercise.id][title] = source
    for id, sources in of_each.items():
        first, *_ = sources
        if id in by_day():
            yield pytest.param(exercises.EXERCISES[id], {first: sources[first]}, id=f"{id}-{first}")
        yield pytest.param(exercises.EXERCISES[id], sources, id=f"{id}-all", marks=[ANOTHER])


def names_for(exercise):
    """What stands in the notebook before an answer."""
    names = {"cuda": cuda, "math": math, "np": np, "re": re}
    if exercise.kind == "triton":
        import triton
        import triton.language as tl

        names |= {"triton": triton, "tl": tl}
    if exercise.kind == "torch":
        import torch

        names |= {"torch": torch}
    return names


def handed_in(exercise, source, folder):
    """An answer as a learner hands it in: the path of a file, else the last function."""
    if exercise.in_file:
        cpp_compiler()
        path = folder / Path(exercise.path).name
        path.write_text(source)
        return path
    filename = f"<{exercise.id}, {hash(source)}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    namespace = names_for(exercise)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[re.findall(r"^(?:async )?def (\w+)", source, re.M)[-1]]


@pytest.mark.parametrize("exercise, source", list(right_answers()))
def test_a_right_answer_is_solved(exercise, source, tmp_path, few_draws, small):
    answer = handed_in(exercise, source, tmp_path)
    outcome = check_answer(replace(small(exercise), orders=1), answer)
    assert outcome.solved, repr(outcome)


HELPER = r"__device__ [\w ]*?\b(\w+)\("  # the name of a device function


@pytest.mark.parametrize("exercise, sources", list(in_one_file()))
def test_right_answers_in_cuda_c_are_solved(exercise, sources, tmp_path, monkeypatch, small):
    """All in one file, each as a kernel of another name: compiled once, by nvcc at night alone."""
    cpp_compiler()
    least = cuda_c_files.least_counts(exercise)
    monkeypatch.setattr(cuda_c_files, "least_counts", lambda _: least)
    with_nvcc = functools.cache(cuda_c_files.reject_if_nvcc_does)
    by_day = len(sources) == 1
    monkeypatch.setattr(
        cuda_c_files, "reject_if_nvcc_does", (lambda path: None) if by_day else with_nvcc
    )
    path = tmp_path / Path(exercise.path).name
    helpers = collections.Counter(
        name for source in sources.values() for name in re.findall(HELPER, source)
    )
    names = [exercise.kernel_name, *(name for name, count in helpers.items() if count > 1)]
    own = rf"\b({'|'.join(names)})\b"
    path.write_text(
        "".join(re.sub(own, rf"\1_{title}", source) for title, source in sources.items())
    )
    for title in sources:
        name = f"{exercise.kernel_name}_{title}"
        outcome = check_answer(replace(small(exercise), kernel_name=name, orders=1), path)
        assert outcome.solved, f"{title}: {outcome!r}"


def test_by_day_a_right_answer_is_solved_of_each_kind_and_where_more_than_values_count():
    params = [*right_answers(), *in_one_file()]
    found = [param.values[0] for param in params if not param.marks]
    assert sorted(exercise.id for exercise in found) == sorted(by_day())
    for of in (lambda exercise: {exercise.kind}, means_of):
        assert set().union(*map(of, found)) == set().union(*map(of, exercises.EXERCISES.values()))


def test_each_exercise_has_three_right_answers_besides_its_solution():
    written = collections.Counter(exercise.id for exercise, _, _ in parts("right.txt"))
    few = {id: written[id] for id in exercises.EXERCISES if written[id] < 3}
    assert not few, f"{few}: write three right answers for each into answers/right.txt"


@pytest.fixture
def first_failure(monkeypatch):
    """Any reason will do: what was wrong once is not tried on, as on a slow machine."""
    monkeypatch.setattr(limits, "ENOUGH_SECONDS", 0)


def wrong_answers():
    """pytest.param(exercise, source) of each in wrong.txt; by day the first of a kind."""
    kinds = set()
    for param in answers("wrong.txt"):
        exercise, source = param.values
        marks = [OWN_BY_DAY] if exercise.kind in kinds else []
        kinds.add(exercise.kind)
        yield pytest.param(exercise, source, id=param.id, marks=marks)


@pytest.fixture
def soon_stopped(monkeypatch):
    """What never ends has not ended after a second either."""
    monkeypatch.setattr(limits, "EACH_SECONDS", 1)
    monkeypatch.setattr(engines, "LAUNCH_SECONDS", 1)


@pytest.mark.usefixtures("pictures_undrawn", "soon_stopped")
@pytest.mark.parametrize("exercise, source", list(wrong_answers()))
def test_a_wrong_answer_has_an_outcome_and_a_reason(exercise, source, tmp_path, first_failure):
    outcome = check_answer(exercise, handed_in(exercise, source, tmp_path))
    assert not outcome.solved
    assert outcome.reason, repr(outcome)


@pytest.mark.nightly("the exercise's own wrong answers are rejected for the same reasons")
@pytest.mark.usefixtures("pictures_undrawn")
@pytest.mark.parametrize("exercise, source", list(answers("wrong_as_known.txt")))
def test_a_wrong_answer_of_a_known_kind_is_rejected(exercise, source, tmp_path, first_failure):
    outcome = check_answer(exercise, handed_in(exercise, source, tmp_path))
    assert not outcome.solved
    known = {wrong.reason for wrong in exercise.wrong}
    assert outcome.reason in known, f"its place is in wrong.txt: {outcome!r}"
