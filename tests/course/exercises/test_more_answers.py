"""Right answers unlike the solutions are solved, and wrong ones of many kinds are not.

They were written from the notebooks' text alone, before any checker was read: answers/right.txt and
answers/wrong.txt. Each begins with a line `### ID NAME`.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import linecache
import math
import re
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

from course import exercises
from course.checking import drawn
from course.checking.checker import check_answer
from utils.cpu.cuda_c.build import BuildError, compiler

ANSWERS = Path(__file__).with_name("answers")


def answers(name):
    """pytest.param(exercise, source) of each answer in a file."""
    for part in re.split(r"(?m)^### ", (ANSWERS / name).read_text())[1:]:
        head, source = part.split("\n", 1)
        id, _, title = head.partition(" ")
        yield pytest.param(exercises.EXERCISES[id], source, id=f"{id}-{title}")


def handed_in(exercise, source, folder):
    """An answer as a learner hands it in: the path of a file, else the last function."""
    if exercise.in_file:
        try:
            compiler()
        except BuildError as error:
            pytest.skip(str(error).splitlines()[0])
        path = folder / Path(exercise.path).name
        path.write_text(source)
        return path
    filename = f"<{exercise.id}, {hash(source)}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    namespace = {"cuda": cuda, "math": math, "np": np}
    exec(compile(source, filename, "exec"), namespace)
    return namespace[re.findall(r"^def (\w+)", source, re.M)[-1]]


@pytest.mark.parametrize("exercise, source", list(answers("right.txt")))
def test_a_right_answer_is_solved(exercise, source, tmp_path, monkeypatch):
    # What is right is right in each draw: a few of them show that none is rejected.
    monkeypatch.setattr(drawn, "CALLS", 30)
    monkeypatch.setattr(drawn, "LAUNCHES", 2)
    outcome = check_answer(exercise, handed_in(exercise, source, tmp_path))
    assert outcome.solved, repr(outcome)


@pytest.mark.parametrize("exercise, source", list(answers("wrong.txt")))
def test_a_wrong_answer_has_an_outcome_and_a_reason(exercise, source, tmp_path):
    outcome = check_answer(exercise, handed_in(exercise, source, tmp_path))
    assert not outcome.solved
    assert outcome.reason, repr(outcome)
