"""The Triton engine without a GPU against tests/conformance/triton: right programs and broken ones.

They run in one process of their own, since Triton decides once how its kernels run.
"""

import importlib.util
import json
import re
import sys

import pytest

from tests.processes import completed
from utils.files import ROOT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton exists for Linux only"
)
FOLDER = ROOT / "tests" / "conformance" / "triton"
BROKEN = (FOLDER / "broken.py").read_text().splitlines()


def names(pattern: str, *files: str) -> list[str]:
    """Names of functions in these files whose `def` the pattern finds."""
    found = [re.match(pattern, line) for f in files for line in f.read_text().splitlines()]
    return [match.group(1) for match in found if match]


RIGHT = names(r"def check_(\w+)\(", *sorted(FOLDER.glob("right_*.py")))
WRONG = names(r"(?:def )?run_(\w+)(?:\(| = )", FOLDER / "broken.py")


@pytest.fixture(scope="module")
def outcomes():
    done = completed(
        [sys.executable, "-W", "ignore", "-m", "tests.conformance.triton.run"],
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def planted(name: str) -> tuple[str, int]:
    """The kind of a program's mistake, and the line that it stands at."""
    first = BROKEN.index(next(line for line in BROKEN if line.startswith(f"def {name}(")))
    for number, line in enumerate(BROKEN[first:], first + 1):
        match = re.search(r"# mistake: (\w+)", line)
        if match:
            return match.group(1), number
    raise AssertionError(f"{name} has no line with # mistake:")


def test_there_are_enough_of_both():
    assert len(RIGHT) >= 40 and len(set(RIGHT)) == len(RIGHT)
    assert len(WRONG) >= 25 and len(set(WRONG)) == len(WRONG)


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_right_and_nothing_is_said(outcomes, name):
    assert outcomes["right"][name] is None, outcomes["right"][name]


@pytest.mark.parametrize("name", WRONG)
def test_broken_programs_are_named_with_line_and_program(outcomes, name):
    said = outcomes["broken"][name]
    kind, line = planted(name)
    assert (said["kind"], said["line"]) == (kind, line), said["text"]
    assert said["program"] is not None and said["text"].startswith("program ")
