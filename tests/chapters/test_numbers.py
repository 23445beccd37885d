"""What prose says of a measurement is what was measured.

A comment right behind the words, which no reader sees, says what they claim of the results recorded
on the GPU whose outputs the chapters show:

    about twice as fast<!-- = 2 of matmul/fp32/512/split_k/rate : matmul/fp32/512/tuned/rate -->

`=` allows what "about" does, `>` and `<` are bounds; behind `of` stands a result's name, or two
whose ratio is meant.
"""

import re

import pytest

from course.chapters import WRITTEN
from tests import hygiene
from utils import results
from utils.results.likeness import RECORDED_ON

ABOUT = 0.15
CLAIM = re.compile(r"<!-- ([=<>]) ([\d.]+) of (\S+)(?: : (\S+))? -->")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def value_of(name):
    """A recorded value. LookupError where there is none."""
    entry = results.find(name, gpu=RECORDED_ON)
    if entry is None:
        raise LookupError(f"nothing is recorded as {name}")
    return entry["value"]


def holds(sign, claimed, measured):
    if sign == "=":
        return abs(measured / claimed - 1) <= ABOUT
    return measured > claimed if sign == ">" else measured < claimed


def problems(text):
    """What is wrong with the claims of a cell's prose, a line each."""
    found = []
    for comment in COMMENT.findall(text):
        claim = CLAIM.fullmatch(comment)
        if not claim:
            found.append(f"{comment}: not of the form <!-- = 2 of NAME : NAME -->")
            continue
        sign, claimed, name, base = claim.groups()
        try:
            measured = value_of(name) / (value_of(base) if base else 1)
        except LookupError as error:
            found.append(str(error))
            continue
        if not holds(sign, float(claimed), measured):
            found.append(f"{comment}: it is {measured:.3g}")
    return found


@pytest.mark.parametrize("chapter", WRITTEN)
def test_prose_says_what_was_measured(chapter):
    cells = hygiene.read(chapter.path).cells
    prose = {cell.id: cell.source for cell in cells if cell.cell_type == "markdown"}
    assert [(at, line) for at, text in prose.items() for line in problems(text)] == []


def test_some_prose_does():
    cells = [cell for chapter in WRITTEN for cell in hygiene.read(chapter.path).cells]
    assert sum(len(CLAIM.findall(cell.source)) for cell in cells) >= 12


MEASURED = {"a/rate": 4.0, "b/rate": 2.0}


@pytest.mark.parametrize(
    "claim, says",
    [
        ("<!-- = 2 of a/rate : b/rate -->", None),
        ("<!-- = 2.2 of a/rate : b/rate -->", None),
        ("<!-- > 1.9 of a/rate : b/rate -->", None),
        ("<!-- < 4.1 of a/rate -->", None),
        ("<!-- = 3 of a/rate : b/rate -->", "it is 2"),
        ("<!-- > 2 of a/rate : b/rate -->", "it is 2"),
        ("<!-- < 4 of a/rate -->", "it is 4"),
        ("<!-- = 2 of a/rate : c/rate -->", "nothing is recorded as c/rate"),
        ("<!-- about 2 -->", "not of the form"),
    ],
)
def test_a_wrong_claim_is_found(claim, says, monkeypatch):
    def find(name, gpu):
        return {"value": MEASURED[name]} if name in MEASURED else None

    monkeypatch.setattr(results, "find", find)
    found = problems(f"so many times{claim}, and more")
    assert (found == []) if says is None else (len(found) == 1 and says in found[0])
