"""Recorded reports of tools: each call in a chapter records under a name of its own, else the last
one recorded would overwrite the others.
"""

import re
from collections import Counter

import pytest

from course.chapters import notebooks
from tests import hygiene
from utils.tools import profilers

CALL = re.compile(r"profilers\.nvidia_smi\([^)]*name=\"([\w-]+)\"")
NAMES = [
    name
    for path in notebooks()
    for cell in hygiene.read(path).cells
    for name in CALL.findall(cell.source)
]


def test_no_two_calls_record_under_one_name():
    assert len(NAMES) >= 3
    assert [name for name, count in Counter(NAMES).items() if count > 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_call_has_its_own_recorded_report(name):
    """A query's report has the fields that it asked for; without one it is the box with borders."""
    report = (profilers.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    command, text = report.split("\n", 1)
    assert ("--query-gpu" in command) == ("+----" not in text)
