"""From a folder to outcomes: each answer of each learner, checked anew."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from course import exercises
from course.answers import apart, collecting, reaching, sandbox, slicing
from course.answers.alike import look_alikes
from course.answers.collecting import Asked, Learner
from course.checking.checker import squeezed
from course.checking.model import REASONS
from course.recording.cells import python_of

RANK = ("not handed in", "untouched", "broken", "not yet", "not believed", "solved")
NOT_APART = "not checked apart"
#: Outcomes of handing in itself
WORDS = {
    "solved": "It is solved: its check and its results, compared apart from it, say so.",
    "untouched": "It is the starter as it was given.",
    "not handed in": "No file has the cell.",
    "not believed": "Its check cannot be believed: look at this answer.",
    "forks": "It started processes without end.",
    "fills": "It filled the disk.",
    "memory": "It took too much memory.",
}


@dataclass
class Result:
    """What became of a learner's answers: {exercise's id: outcome}.

    sources: {id: the learner's cell}. reached: {id: what it uses besides kernels and numbers}.
    """

    learner: Learner
    outcomes: dict[str, dict] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    reached: dict[str, list[str]] = field(default_factory=dict)

    def said(self, id) -> str:
        """One word for an outcome: "solved", "untouched", or the reason."""
        outcome = self.outcomes.get(id, NOTHING)
        return outcome["reason"] or outcome["status"]

    def solved(self, ids) -> int:
        """How many are solved."""
        return sum(self.said(id) == "solved" for id in ids)

    def look_at(self) -> list[str]:
        """What the instructor should look at: files that were not read, and what answers reach
        for.
        """
        found = [f"{file.name}: {file.problem}" for file in self.learner.files if file.problem]
        for id, names in self.reached.items():
            trusted = self.said(id) == "solved" and not apart.possible(id)
            found.append(f"{id}{f' ({NOT_APART})' if trusted else ''} uses {', '.join(names)}")
        for id, outcome in self.outcomes.items():
            if outcome["status"] == "not believed":
                found.append(" ".join((f"{id}: {WORDS['not believed']}", *outcome["lines"])))
        return found


NOTHING = {"status": "not handed in", "reason": "", "lines": []}


def sentence(said: str, id: str = "") -> str:
    """What an outcome's word means, of the exercise with this id."""
    if said == "solved" and id and not apart.possible(id):
        return f"Its check says that it is solved: {NOT_APART}."
    return WORDS.get(said) or REASONS.get(said, said)


def chosen(learners, wanted=()) -> dict[str, Asked]:
    """The exercises that count: of the chapters, or with the ids, that are wanted; unless any are,
    of all chapters that somebody handed in. ValueError for a name that is neither.
    """
    known = collecting.asked()
    handed = {key for learner in learners for file in learner.files for key in file.chapters}
    unknown = [w for w in wanted if w not in known and not _of_chapter(known, w)]
    if unknown:
        raise ValueError(f"neither a chapter nor an exercise: {', '.join(unknown)}")
    if not wanted:
        return {id: where for id, where in known.items() if where.chapter in handed}
    return {id: w for id, w in known.items() if id in wanted or w.chapter in wanted}


def _of_chapter(known, key):
    return any(where.chapter == key for where in known.values())


def graded(learners, wanted: dict[str, Asked], tell=print, at_once=None) -> list[Result]:
    """Check all answers, some learners at a time. tell: takes a line for each learner."""
    originals = {}
    for path in collecting.notebooks():
        cells = collecting.originals(path)
        originals[collecting.key_of(path)] = [slicing.Cell(c.id, c.source) for c in cells]

    def one(learner):
        result = of_learner(learner, wanted, originals)
        tell(f"{learner.label}: {result.solved(wanted)} of {len(wanted)} solved")
        return result

    if any(where.path for where in wanted.values()):
        sandbox.warm()
    with ThreadPoolExecutor(at_once or os.cpu_count()) as pool:
        return list(pool.map(one, learners))


def of_learner(learner: Learner, wanted, originals) -> Result:
    """A learner's outcomes. Of several files that answer the same exercise the best one counts."""
    result = Result(learner)
    waiting = {}  # exercise's id -> tasks that differ
    for id, where in wanted.items():
        for file in learner.files:
            cells = file.chapters.get(where.chapter)
            if cells:
                _note(result, waiting, id, *task_of(cells, where, originals[where.chapter]))
    while waiting:
        found = sandbox.judged([tasks.pop(0) for tasks in waiting.values()])
        for id, outcome in found.items():
            _keep(result, id, outcome)
        waiting = {id: tasks for id, tasks in waiting.items() if tasks}
    return result


def _note(result, waiting, id, task, outcome):
    """Keep an outcome that is known, or a task that is to be tried."""
    if outcome is not None:
        _keep(result, id, outcome)
    if task is None:
        return
    result.sources.setdefault(id, task["own"])
    names = reaching.names(task["source"], task.pop("given"))
    if names:
        result.reached[id] = names
    tasks = waiting.setdefault(id, [])
    if all(task["source"] != other["source"] for other in tasks):
        tasks.append(task)


def _keep(result, id, outcome):
    """Keep an outcome if it is better than the one that is there."""
    before = result.outcomes.get(id, NOTHING)
    if RANK.index(outcome["status"]) >= RANK.index(before["status"]):
        result.outcomes[id] = outcome


def task_of(cells, where: Asked, original):
    """(what is to be tried, None), or (None, the outcome that needs no trial)."""
    number = collecting.answer_cell(cells, where)
    if number is None:
        return None, NOTHING
    own = cells[number].source
    starter = next(cell.source for cell in original if cell.id == where.cell)
    if squeezed(own) == squeezed(starter):
        number = collecting.own_cell(cells, where, original)
        if number is None:
            return None, NOTHING | {"status": "untouched"}
        own = cells[number].source
    task = {"exercise": where.id, "name": where.name, "path": where.path, "own": own}
    try:
        source = _body(own) if where.path else slicing.sliced(cells, number, where.name)
    except slicing.Unreadable as error:
        lines = [REASONS["does_not_compile"], str(error)]
        broken = {"status": "broken", "reason": "does_not_compile", "lines": lines}
        return None, NOTHING | broken
    given = [python_of(cell.source) for cell in original]
    return task | {"source": source, "given": given}, None


def _body(source):
    """What a cell `%%writefile` writes: all but its first line."""
    first, _, rest = source.partition("\n")
    return rest if first.startswith("%%") else source


def alike(results, wanted):
    """Answers of the class that look alike."""
    found = []
    for id in wanted:
        exercise = exercises.EXERCISES[id]
        given = (exercise.starter, exercises.solution_source(exercise))
        answers = {r.learner.label: r.sources[id] for r in results if id in r.sources}
        found += look_alikes(id, answers, given)
    return found
