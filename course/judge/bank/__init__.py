"""The bank: kernels that are wrong or dishonest on purpose, and twelve that somebody handed in.

Each file of `patterns/` does what a public report describes, in a few lines of our own. Its
docstring is its record: the sentence, where it was reported, the task that it claims to solve,
which of the judge's three questions it must fail, and whether it needs a GPU to do so. `envelopes/`
holds twelve answers to one order, softmax, as a machine would hand them in: what is wrong with
which is told in `verdicts.json`, not in the files. `tasks.py` has the orders. Whom a judge must not
refuse stands in `right.txt`, answers of strangers, and in `operations.py`.

No test imports the patterns: some put other functions in the place of a library's.
"""

import ast
import importlib.util
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
FIELDS = ("source", "task", "fails", "needs")


@dataclass(frozen=True)
class Pattern:
    """One documented way to be wrong or to cheat.

    key: its file's name. says: what it does, in a sentence. source: where it was reported. task: a
    key of `tasks.TASKS`. fails: "right", "fast" or "honest". needs: "nothing" or "GPU".
    """

    key: str
    path: Path
    says: str
    source: str
    task: str
    fails: str
    needs: str


@dataclass(frozen=True)
class Envelope:
    """One answer to the order.

    verdict: "right", "wrong", "slow", "cheating" or "brilliant". why: in a sentence.
    """

    number: int
    path: Path
    verdict: str
    why: str

    @property
    def source(self) -> str:
        """Its text."""
        return self.path.read_text(encoding="utf-8")


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, by name."""
    return tuple(_pattern(path) for path in sorted((HERE / "patterns").glob("*.py")))


@cache
def envelopes() -> tuple[Envelope, ...]:
    """The twelve, in order."""
    known = json.loads((HERE / "verdicts.json").read_text(encoding="utf-8"))
    return tuple(
        Envelope(int(number), HERE / "envelopes" / f"{number}.py", one["verdict"], one["why"])
        for number, one in known.items()
    )


@dataclass(frozen=True)
class RightAnswer:
    """A right answer of somebody who knew neither judge nor course.

    task: a key of `tasks.TASKS`. by_library: whether a library may compute it.
    """

    task: str
    title: str
    source: str
    by_library: bool


@cache
def right_answers() -> tuple[RightAnswer, ...]:
    """All of right.txt, each behind a line `### TASK TITLE`."""
    found = []
    text = (HERE / "right.txt").read_text(encoding="utf-8")
    for part in re.split(r"(?m)^### ", text)[1:]:
        head, source = part.split("\n", 1)
        task, _, title = head.partition(" ")
        found.append(RightAnswer(task, title, source, title.endswith(" by library")))
    return tuple(found)


def load(path):
    """A submission as a module, in this very process: only for one whose text you have read."""
    path = Path(path)
    spec = importlib.util.spec_from_file_location(f"submission_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _pattern(path):
    """The record in a pattern's docstring: a sentence, an empty line, then `Name: value` lines."""
    told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    says, _, record = told.partition("\n\n")
    fields = dict(line.split(": ", 1) for line in record.splitlines())
    return Pattern(path.stem, path, says, *(fields[name.title()] for name in FIELDS))
