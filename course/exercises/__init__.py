"""Exercises of the course: `check`, `hint` and `solution` for code, `quiz` for questions, `predict`
before a cell shows what happens.

In a notebook: `from course import exercises`, then `exercises.check("first_kernels.scale_guard",
scale)`. Each chapter's exercises are one module here, which bears the chapter's name and may gather
them from others beside it; `course.checking.model.Exercise` says what an entry holds.
"""

import difflib
import importlib
import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from course import classroom
from course.chapters import CHAPTERS
from course.checking.checker import check_answer, is_starter
from course.checking.guesses import guesses
from course.checking.model import sentence
from course.checking.predict import Prediction
from course.checking.quiz import QuizView
from course.checking.report import NotSolved, Outcome
from course.checking.speed import speed_of
from course.checking.text import Note

__all__ = [
    "EXERCISES",
    "QUIZZES",
    "NotSolved",
    "Outcome",
    "check",
    "guesses",
    "hint",
    "predict",
    "quiz",
    "solution",
    "solved_files",
    "starter",
]


class Entries(Mapping):
    """id -> entry, of all chapters in order; a chapter's module is imported when it is asked for.

    One of them imports Triton, and that PyTorch: seconds, which the first chapters do not need.
    """

    def __init__(self, kind):
        self._kind = kind  # "EXERCISES" or "QUIZZES"

    def __getitem__(self, id):
        if not isinstance(id, str):
            raise KeyError(id)
        return self._of(id.partition(".")[0])[id]

    def __iter__(self):
        return (id for key in KEYS for id in self._of(key))

    def __len__(self):
        return sum(1 for _ in self)

    def of(self, key):
        """The entries of one chapter."""
        return list(self._of(key).values())

    def _of(self, key):
        """The entries of one chapter, by their ids; none where it has no module."""
        if key not in KEYS:
            return {}
        module = importlib.import_module(f"course.exercises.{key}")
        return {entry.id: entry for entry in getattr(module, self._kind)}


def _keys():
    """The start page's key and those of the chapters that have a module here, in order."""
    here = Path(__file__).parent
    keys = ["start", *(chapter.key for chapter in CHAPTERS)]
    return [key for key in keys if (here / f"{key}.py").is_file()]


KEYS = _keys()
EXERCISES = Entries("EXERCISES")
QUIZZES = Entries("QUIZZES")
_hints_shown = {}


def check(id, answer, *, seed=None, strict=False):
    """Check an answer and return the Outcome, which a notebook shows as a report.

    id: such as "first_kernels.scale_guard".
    answer: a kernel, the path of a .cu file, or a function, as the exercise asks. It is never
        changed.
    seed: draws the same random inputs again (a report names its seed).
    strict: raise NotSolved instead of reporting an answer that is not accepted.
    What is solved is recorded in the learner's progress.
    """
    exercise = _find(id, EXERCISES)
    outcome = check_answer(exercise, answer, seed)
    if not outcome.untouched:
        told = {"exercise": exercise.id, "status": outcome.status, "reason": outcome.reason}
        classroom.tell("check", **told)
    if strict and not outcome.solved:
        raise NotSolved(repr(outcome))
    if outcome.solved:
        from course import progress

        progress.record_solved(exercise.id)
        outcome = replace(
            outcome,
            one_way=solution_source(exercise),
            rejects=rejected(exercise),
            speed=speed_of(exercise, answer),
        )
    return outcome


def hint(id):
    """The next hint for an exercise; each call shows one more."""
    exercise = _find(id, EXERCISES)
    count = _hints_shown[id] = min(_hints_shown.get(id, 0) + 1, len(exercise.hints))
    lines = [f"{n}. {text}" for n, text in enumerate(exercise.hints[:count], 1)]
    left = len(exercise.hints) - count
    lines.append(
        f"*{left} more: run this cell again.*"
        if left
        else f'*That was the last hint: `exercises.solution("{id}")` shows a solution.*'
    )
    return Note("\n\n".join(lines))


def solution(id):
    """The solution of an exercise, the very code that the tests run, and what the check rejects."""
    exercise = _find(id, EXERCISES)
    language = "c++" if exercise.in_file else "python"
    wrong = "".join(f"\n- {each}" for each in rejected(exercise))
    wrong = f"\n\nThe check rejects, among others:\n{wrong}" if wrong else ""
    return Note(f"```{language}\n{solution_source(exercise)}\n```{wrong}")


def rejected(exercise):
    """What is wrong with the exercise's wrong answers, each mistake once, in a sentence."""
    reasons = dict.fromkeys(wrong.reason for wrong in exercise.wrong)
    reasons.pop("wrong_value", None)  # which says nothing that a learner could look for
    return tuple(sentence(reason, exercise.kind) for reason in reasons)


def solution_source(exercise):
    """The text of a solution, without helpers around it."""
    if exercise.in_file:
        return exercise.solution.strip()
    return inspect.getsource(getattr(exercise.solution, "py_func", exercise.solution)).strip()


def solved_files(chapter):
    """{id: path} of a chapter's solved exercises whose file is there, and no starter any more: for
    what is built from them.

    chapter: its key, such as "mnist_cnn".
    """
    from course import progress

    solved = progress.solved()
    files = {e.id: Path(e.path) for e in EXERCISES.of(chapter) if e.in_file and e.id in solved}
    return {
        id: path
        for id, path in files.items()
        if path.is_file() and not is_starter(EXERCISES[id], path)
    }


def starter(id):
    """The text of an exercise's starter cell."""
    return _find(id, EXERCISES).starter.strip()


def quiz(id):
    """A question with answers to choose from; explains every answer and records a right one."""
    return QuizView(_find(id, QUIZZES))


def predict(*choices, unit=""):
    """What will the next cell show? Pick one of the choices; without any, write a guess.

    unit: what a number is counted in, such as "sectors".
    """
    return Prediction(choices, unit)


def _find(id, entries):
    if id in entries:
        return entries[id]
    near = difflib.get_close_matches(str(id), entries, n=1, cutoff=0.4)
    instead = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(entries)}"
    raise ValueError(f"there is no {id!r}; {instead}") from None
