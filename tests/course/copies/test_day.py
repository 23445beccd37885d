"""A learner's day, with git, a kernel and files: nothing that they made is lost by an update."""

import os
import sys
import tarfile

import nbformat
import pytest

from tests.processes import completed
from utils.files import ROOT

CHAPTER = "chapters/05_first_kernels.ipynb"
MINE = f"my/{CHAPTER}"
ANSWERS = {
    "scale-guard": """\
@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * factor""",
    "blocks-for": """\
def blocks_for(height, width, block_x, block_y):
    return -(-width // block_x), -(-height // block_y)""",
}
SOLVED = "first_kernels.scale_guard", "first_kernels.blocks_for"
# A part of the chapter: set-up, a first kernel, a file that a cell writes, two exercises
CELLS = (
    "setup",
    "c-kernel",
    "exercises-import",
    "start-scale-guard",
    "check-scale-guard",
    "start-blocks-for",
    "check-blocks-for",
)


def git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = completed(["git", *identity, *words], cwd=folder)
    assert done.returncode == 0, f"git {words}: {done.stderr}"
    return done.stdout


@pytest.fixture
def upstream(tmp_path):
    """The course as it is here, in a repository of its own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = completed(command, cwd=ROOT)
    if listed.returncode:
        pytest.skip("not a git checkout")
    folder = tmp_path / "upstream"
    folder.mkdir()
    archive = tmp_path / "course.tar"
    with tarfile.open(archive, "w") as tar:
        for name in set(filter(None, listed.stdout.split("\0"))):
            if (ROOT / name).exists():
                tar.add(ROOT / name, name)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="tar")
    archive.unlink()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


class Learner:
    """A clone, and what a learner does in it."""

    def __init__(self, upstream, home):
        self.folder = home / "cuda-course"
        git(home, "clone", "-q", "--depth", "1", f"file://{upstream}", str(self.folder))
        self.environment = {
            **{name: value for name, value in os.environ.items() if "PYTEST" not in name},
            "CUDA_COURSE_PROGRESS": str(home / "progress.json"),
            "PYTHONPATH": str(self.folder),
            "CUDA_COURSE_CPU": "1",
        }
        self.progress = home / "progress.json"

    def start(self):
        """The step of `make lab` that makes and renews the copies; what it prints."""
        command = [sys.executable, "-m", "course.copies"]
        done = completed(command, cwd=self.folder, env=self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def edit(self, change):
        """Open their copy, change it, and save it as JupyterLab does."""
        path = self.folder / MINE
        notebook = nbformat.read(path, 4)
        change(notebook)
        path.write_text(nbformat.writes(notebook), encoding="utf-8")

    def run(self):
        """Run those cells in a kernel in the notebook's folder, as their owner would; save."""
        code = (
            "import nbformat\n"
            "from pathlib import Path\n"
            "from course.record import client_for\n"
            f"path = {MINE!r}\n"
            "whole = nbformat.read(path, 4)\n"
            f"part = [cell for cell in whole.cells if cell.id in {CELLS!r} or cell.id == 'own']\n"
            "short = nbformat.v4.new_notebook(cells=part, metadata=whole.metadata)\n"
            "client_for(short, Path('my/chapters'), timeout=600).execute()\n"
            "nbformat.write(whole, path)\n"
        )
        done = completed([sys.executable, "-c", code], cwd=self.folder, env=self.environment)
        assert done.returncode == 0, done.stderr

    def cells(self):
        return {cell.id: cell for cell in nbformat.read(self.folder / MINE, 4).cells}

    def report(self, id):
        """What the check below an exercise said."""
        return "".join(str(output) for output in self.cells()[id].outputs)


def solve(notebook):
    """Type the answers to two exercises, a cell and a note of one's own."""
    cells = {cell.id: cell for cell in notebook.cells}
    for name, answer in ANSWERS.items():
        cells[f"start-{name}"].source = answer
    place = list(cells).index("hello") + 1
    own = nbformat.v4.new_code_cell("open('own.txt', 'w').write('mine')", id="own")
    notebook.cells.insert(place, own)
    notebook.cells.insert(place, nbformat.v4.new_markdown_cell("a note of mine", id="note"))


def new_version(upstream):
    """The course a week later: other text, outputs and starter, a cell more, one less."""
    path = upstream / CHAPTER
    notebook = nbformat.read(path, 4)
    cells = {cell.id: cell for cell in notebook.cells}
    cells["title"].source += "\n\nA newer sentence."
    cells["start-scale-guard"].source += "\n# a newer starter"
    cells["hello"].outputs = [nbformat.v4.new_output("stream", text="recorded anew")]
    cells["who-am-i"].source = "## 2 · Who are you?"
    notebook.cells.remove(cells["hello-explain"])
    notebook.cells.insert(3, nbformat.v4.new_markdown_cell("A newer cell.", id="newer"))
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    git(upstream, "commit", "-q", "-a", "-m", "second")


@pytest.mark.nightly("by day each of its steps is tried alone")
def test_a_learners_day(upstream, tmp_path):
    learner = Learner(upstream, tmp_path)
    learner.start()
    learner.edit(solve)
    learner.run()
    for check in ("check-scale-guard", "check-blocks-for"):
        assert "Solved" in learner.report(check), learner.report(check)
    solved = learner.progress.read_text()
    assert all(id in solved for id in SOLVED)
    assert git(learner.folder, "status", "--porcelain") == ""

    new_version(upstream)
    git(learner.folder, "pull", "-q", "--ff-only")
    assert "4 cells of yours stayed (the course changed 1 of them, too)" in learner.start()

    cells = learner.cells()
    assert {name: cells[f"start-{name}"].source for name in ANSWERS} == ANSWERS
    assert cells["note"].source == "a note of mine" and "own" in cells
    assert cells["title"].source.endswith("A newer sentence.")
    assert cells["newer"].source == "A newer cell." and "hello-explain" not in cells
    assert cells["who-am-i"].source == "## 2 · Who are you?"
    place = learner.folder / "my" / "chapters"
    assert (place / "own.txt").read_text() == "mine"
    assert (place / "build" / "vector_add.cu").is_file()
    assert learner.progress.read_text() == solved
    assert git(learner.folder, "status", "--porcelain") == ""

    if "CUDA_COURSE_FAULTS" in os.environ:  # `make faults`: and on with the newer chapter
        learner.run()
        assert "Solved" in learner.report("check-scale-guard")
