"""What CONTRIBUTING.md, its second half tests/README.md and the licence files name is there: paths,
links, commands, tests, exercises.
"""

import importlib.util
import re
import shlex
import sys

import pytest

from course import record
from course.chapters import CHAPTERS
from course.exercises import EXERCISES
from tests.conformance import derive, mistakes
from tests.processes import completed
from utils.files import ROOT

PAGES = "CONTRIBUTING.md", "tests/README.md"
TEXT = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
PROSE = re.sub(r"^ *```.*?^ *```", "", TEXT, flags=re.M | re.S)
BLOCKS = re.findall(r"^ *```\n(.*?)^ *```", TEXT, re.M | re.S)
CODE = re.findall(r"`([^`\n]+)`", PROSE)
COMMANDS = [line.strip() for block in BLOCKS for line in block.splitlines()] + [
    code for code in CODE if code.startswith(("make ", ".venv/"))
]


def is_path(words):
    """Whether a piece of code names a file or a folder of the repository."""
    return bool(re.fullmatch(r"[\w./-]+(?:/|\.(?:py|md|ipynb|yml|json))", words))


def there(path):
    """Whether it is: NN stands for a chapter's number and NAME for its name."""
    return any(ROOT.glob(path.rstrip("/").replace("NN", "[0-9][0-9]").replace("NAME", "*")))


def wrong(command):
    """What of a command is not there, or None."""
    words = shlex.split(command)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text()
        verbs = [word for word in words[1:] if "=" not in word]
        return next((verb for verb in verbs if not re.search(rf"^{verb}:", makefile, re.M)), None)
    if words[:2] != [".venv/bin/python", "-m"]:
        return words[0]
    module, arguments = words[2], words[3:]
    if importlib.util.find_spec(module) is None:
        return module
    folders = ROOT, ROOT / "course" / "kernels"
    paths = [word for word in arguments if is_path(word)]
    return next((path for path in paths if not any((f / path).exists() for f in folders)), None)


def test_paths_are_there():
    paths = [code for code in CODE if is_path(code)]
    assert len(paths) > 20
    assert [path for path in paths if not there(path)] == []


def test_commands_are_there():
    assert len(COMMANDS) > 10
    assert {command: found for command in COMMANDS if (found := wrong(command))} == {}


def test_examples_are_real_names():
    """What the commands take as an example is an exercise, a program of the suite, a planted
    mistake.
    """
    text = "\n".join(COMMANDS)
    assert set(re.findall(r"-k (\S+)", text)) <= set(EXERCISES)
    assert set(re.findall(r"NAME=(\w+)", text)) <= {chapter.key for chapter in CHAPTERS}
    assert set(re.findall(r"record --compile (\w+)", text)) <= set(derive.PROGRAMS)
    assert {
        name
        for name in re.findall(r"conformance\.mistakes (\w+)", text)
        if not (mistakes.FOLDER / f"{name}.cu").exists()
    } == set()


def arguments_of(module):
    """What the examples of `python -m module` hand over."""
    lines = [shlex.split(command) for command in COMMANDS]
    return [words[3:] for words in lines if words[1:3] == ["-m", module]]


@pytest.mark.nightly("by day the paths and the names that they hand over are looked for")
def test_examples_of_tests_are_tests():
    for given in arguments_of("pytest"):
        found = completed(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", *given], cwd=ROOT
        )
        assert found.returncode == 0, (given, found.stdout[-500:])


def test_examples_of_recording_are_understood():
    examples = arguments_of("course.record")
    assert examples
    for given in examples:
        assert all(path.is_file() for path in record.parsed(given).notebooks)


@pytest.mark.parametrize("name", [*PAGES, "LICENSE-text.md"])
def test_links_lead_somewhere(name):
    path = ROOT / name
    targets = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    assert targets
    files = [target for target in targets if "://" not in target]
    assert [target for target in files if not (path.parent / target).exists()] == []


def test_the_readme_names_both_licences():
    last = (ROOT / "README.md").read_text(encoding="utf-8").rstrip().splitlines()[-1]
    assert "](LICENSE)" in last and "](LICENSE-text.md)" in last


@pytest.mark.parametrize(
    "command",
    [
        "make toast",
        ".venv/bin/python -m utils.nowhere",
        "python setup.py",
        ".venv/bin/python -m pytest tests/test_nowhere.py",
    ],
)
def test_a_command_that_is_not_there_is_found(command):
    assert wrong(command)


def test_a_path_that_is_not_there_is_found():
    assert (
        there("chapters/NN_NAME.ipynb")
        and there("course/pictures/NAME.py")
        and there("assets/data/")
    )
    assert not there("lessons/NN_NAME.ipynb") and not there("utils/nowhere.py")
    assert (
        is_path("tests/hygiene.py") and not is_path("make test") and not is_path("exercises.check")
    )
