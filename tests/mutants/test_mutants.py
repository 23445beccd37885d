"""The mutators change one thing at a time; no mutant of a small sample is accepted."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import ast
from types import SimpleNamespace

import pytest

from course import exercises
from tests.mutants import cpp, python
from tests.mutants.__main__ import EQUIVALENTS, chosen, finish, mutants_of
from tests.mutants.trial import (
    as_answer,
    first_failure,
    first_failure_in_c,
    outcome_of,
    whole_outcome,
)
from tests.needs import cpp_compiler

SAMPLE = ("first_kernels.scale_guard", "meet_the_gpu.warp_and_lane", "synchronization.rotate_left")


def test_python_mutants_are_python_and_differ():
    source = "def f(a, n):\n    for i in range(n):\n        if i < n:\n            a[i] += 2 * i\n"
    texts = [text for _, text in python.mutants(source)]
    assert len(set(texts)) == len(texts) > 8
    for text in texts:
        ast.parse(text)
    assert any("if i <= n" in text for text in texts)
    assert any("if True" in text for text in texts)


def test_statements_change_places_only_where_that_can_matter():
    apart = [says for says, _ in python.mutants("def f(a):\n    b = a\n    c = a\n    return b")]
    joined = [says for says, _ in python.mutants("def f(a):\n    b = a\n    c = b\n    return c")]
    assert not any("earlier" in says for says in apart)
    assert any("earlier" in says for says in joined)


def test_cuda_mutants_leave_comments_alone():
    source = (
        "// a < b\n__global__ void k(int* a, int n) {\n    if (a[0] < n)\n        a[1] = 2;\n}\n"
    )
    mutants = list(cpp.mutants(source))
    assert all(text.startswith("// a < b\n") for _, text in mutants)
    assert {"line 3: < -> <=", "line 4: 1 -> 2"} <= {says for says, _ in mutants}


@pytest.mark.parametrize("id", SAMPLE)
def test_a_sample_of_mutants_is_rejected(id):
    exercise = exercises.EXERCISES[id]
    for says, source in mutants_of(exercise)[::10]:
        assert says in EQUIVALENTS.get(id, {}) or outcome_of(exercise, source)[0] != "solved", says


def test_what_is_wrong_already_at_first_is_told_by_one_launch():
    exercise = exercises.EXERCISES["first_kernels.scale_guard"]
    source = exercises.solution_source(exercise)
    unguarded = as_answer(exercise, source.replace("if i < ", "if i <= "), folder=None)
    assert first_failure(exercise, exercise.solution) is None
    assert first_failure(exercise, unguarded) == ("not yet", "off_by_one")
    assert whole_outcome(exercise, unguarded) == ("not yet", "off_by_one")


def test_what_is_wrong_in_c_is_told_by_a_few_launches(tmp_path):
    cpp_compiler()
    exercise = exercises.EXERCISES["first_kernels.rotate"]
    path = as_answer(exercise, exercise.solution, tmp_path)
    assert first_failure_in_c(exercise, path) is None
    path.write_text(exercise.solution.replace("src[y * width + x]", "src[x]"))
    status, _ = first_failure_in_c(exercise, path)
    assert status == "not yet"
    path.write_text(exercise.solution.replace("x < width", "x <= width"))
    assert first_failure_in_c(exercise, path) is None, "what stops a launch is looked at in whole"


@pytest.mark.nightly("mutants themselves are looked for at night, too")
def test_equivalents_are_of_exercises_and_have_reasons():
    for id, reasons in EQUIVALENTS.items():
        known = {says for says, _ in mutants_of(exercises.EXERCISES[id])}
        assert set(reasons) <= known
        assert all(len(why) > 20 for why in reasons.values())


def asked(**options):
    """What the command line asks for."""
    nothing = {"ids": [], "kind": None, "draw": None, "days": None, "seed": 0}
    return SimpleNamespace(**nothing | options)


def test_every_exercise_has_its_day():
    week = [chosen(asked(days=7), day) for day in range(739_000, 739_007)]
    turns = [exercise.id for day in week for exercise in day]
    assert sorted(turns) == sorted(exercises.EXERCISES)
    assert max(map(len, week)) - min(map(len, week)) <= 1


def test_a_draw_is_repeated_by_its_seed(capsys):
    drawn = chosen(asked(draw=5, seed=7), 0)
    assert len({exercise.id for exercise in drawn}) == 5
    assert drawn == chosen(asked(draw=5, seed=7), 1) != chosen(asked(draw=5, seed=8), 0)
    assert "--seed 7: " in capsys.readouterr().out


def test_a_mutant_is_accepted_or_rejected(capsys):
    statuses = ("not yet", "not yet", "broken", "solved")
    entries = [{"exercise": f"a.{n % 2}", "status": status} for n, status in enumerate(statuses)]
    with pytest.raises(SystemExit) as ended:
        finish(entries, whole=False)
    said = capsys.readouterr().out
    assert said == (
        "4 mutants: 2 rejected, 1 rejected (did not run), 1 accepted\n"
        "2 exercises, 4 mutants: 1 not found\n"
    )
    assert ended.value.code


def test_the_last_line_says_that_all_were_found(capsys):
    entries = [{"exercise": "a.b", "status": status} for status in ("not yet", "equivalent")]
    with pytest.raises(SystemExit) as ended:
        finish(entries, whole=False)
    assert capsys.readouterr().out.endswith(
        "1 exercises, 2 mutants: all found, or known to be equivalent\n"
    )
    assert not ended.value.code
