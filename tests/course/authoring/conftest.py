"""A copy of the course to write skeletons into: commands there touch nothing here."""

import os
import shutil

import pytest

from course.authoring import rung
from course.chapters import WRITTEN
from tests.prepared import Prepared
from tests.processes import completed
from utils.files import ROOT

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
LAST = WRITTEN[-1]
CHAPTERS = ("04_meet_the_gpu", "05_first_kernels", LAST.name)
ANSWERS = "tests/course/exercises/answers/right.txt"
ASSETS = "assets/data", "assets/recorded", "assets/results"
#: What every command imports, and none changes
UNTOUCHED = ("course.checking.checker", "nbformat")
NOT_NEEDED = shutil.ignore_patterns("__pycache__", "build", "*.ipynb", ".*")


class Copy:
    """A copy of the course, under version control, and commands in it."""

    def __init__(self, folder):
        self.folder = folder
        self.python = Prepared(UNTOUCHED, folder, {**os.environ, "PYTHONPATH": str(folder)})

    def __truediv__(self, name):
        return self.folder / name

    def run(self, module, *arguments):
        """What `python -m module` says there."""
        return self.python.run(module, *arguments)

    def changed(self):
        """The files that are not as at first, with git's letters: {name: "M"}."""
        said = completed([*GIT, "status", "--porcelain", "-uall"], cwd=self.folder, check=True)
        return {line[3:]: line[:2].strip() for line in said.stdout.splitlines()}

    def commit(self):
        """Commit all that is there."""
        completed([*GIT, "add", "-A"], cwd=self.folder, check=True)
        completed([*GIT, "commit", "-qm", "a course"], cwd=self.folder, check=True)


@pytest.fixture(scope="session")
def copied(tmp_path_factory):
    """The copy, with three of the chapters."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("course", "utils", "tests/course/pictures", *ASSETS):
        shutil.copytree(ROOT / name, folder / name, ignore=NOT_NEEDED)
    (folder / "chapters").mkdir()
    (folder / ANSWERS).parent.mkdir(parents=True)
    for name in (*(f"chapters/{name}.ipynb" for name in CHAPTERS), "course/index.ipynb", ANSWERS):
        shutil.copy(ROOT / name, folder / name)
    for name in ("README.md", "pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    completed([*GIT, "init", "-q"], cwd=folder, check=True)
    made = Copy(folder)
    made.commit()
    first = completed([*GIT, "rev-parse", "HEAD"], cwd=folder, check=True).stdout.strip()
    yield made, first
    made.python.end()


@pytest.fixture
def course(copied):
    """The copy as it was at first."""
    made, first = copied
    completed([*GIT, "reset", "-q", "--hard", first], cwd=made.folder, check=True)
    completed([*GIT, "clean", "-fdq"], cwd=made.folder, check=True)
    return made


@pytest.fixture
def with_ladder(course):
    """The copy with both chapters of the matmul ladder, and the tests of its kernels."""
    chapters = [f"chapters/{each.name}.ipynb" for each in WRITTEN if each.key in rung.LADDER]
    for name in (*chapters, str(rung.TESTS.relative_to(ROOT))):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, course / name)
    course.commit()
    return course
