"""Kills at random moments, a full disk, a clock that jumps: nothing lost, nothing torn.

In the suite a few of each; `make faults` tries a hundred of each (CUDA_COURSE_FAULTS is how many).
The moment is drawn anew each time; a test that fails names its seed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import pytest

from course import leaderboard, progress
from course.copies import workspace
from utils import files
from utils.files import ROOT

ROUNDS = int(os.environ.get("CUDA_COURSE_FAULTS", 2))
KNOWN = 20  # what is there before anything is killed

# Each writes without end, and says a line after what is done is done.
WRITERS = {
    "progress": """
from course import progress
for n in range(10**9):
    progress.record_solved(f"first_kernels.{os.getpid()}_{n}")
    print(f"first_kernels.{os.getpid()}_{n}", flush=True)
""",
    "leaderboard": """
from course import leaderboard
from utils import engine
engine.gpu = lambda: engine.GPU("T4", (7, 5), 1, "580.1", (13, 0), "u")
for n in range(10**9):
    words = {"name": f"{os.getpid()}_{n}", "kernels": "head", "source": "source"}
    leaderboard.record({**words, "asked_kb": 1.0 + n})
    print(f"{os.getpid()}_{n}", flush=True)
""",
    "record": """
import json
from utils import results
file = next(results.FOLDER.glob("*.json"))
recorded = json.loads(file.read_text())
path = os.path.join(os.environ["TARGET"], file.name)
for n in range(10**9):
    results.write(recorded["gpu"], recorded["results"][: 1 + n % 50], path=path)
    print(n, flush=True)
""",
    "data": """
from utils import files
from utils.files import ROOT
content = (ROOT / "assets/data/mnist/t10k-images-idx3-ubyte.gz").read_bytes()
for n in range(10**9):
    files.write_whole(os.environ["TARGET"], content)
    print(n, flush=True)
""",
    "copies": """
import nbformat
from pathlib import Path
from course.copies import workspace
workspace.ROOT = Path(os.environ["TARGET"])
original = workspace.ROOT / "chapters/05_x.ipynb"
workspace.notebooks = lambda: [original]
for n in range(10**9):
    notebook = nbformat.read(original, 4)
    notebook.cells[0].source = f"version {n}"
    original.write_text(nbformat.writes(notebook))
    workspace.refresh(workspace.ROOT / "my")
    print(n, flush=True)
""",
}


class Killed:
    """A writer that is killed at a random moment, again and again."""

    def __init__(self, name, folder, monkeypatch):
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.target = folder / "target"
        self.code = "import os\n" + WRITERS[name]
        self.acknowledged = []
        self.environment = {
            **os.environ,
            "TARGET": str(self.target),
            "TMPDIR": str(self.temporary),
            "CUDA_COURSE_PROGRESS": str(folder / "progress.json"),
            "CUDA_COURSE_LEADERBOARD": str(folder / "board.jsonl"),
            "CUDA_COURSE_CPU": "1",
        }
        for variable in ("CUDA_COURSE_PROGRESS", "CUDA_COURSE_LEADERBOARD"):
            monkeypatch.setenv(variable, self.environment[variable])

    def once(self, rng):
        """Start it, wait until it works, and kill it within the next twentieth of a second."""
        process = subprocess.Popen(
            [sys.executable, "-c", self.code],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        first = process.stdout.readline()
        time.sleep(rng.uniform(0, 0.05))
        os.killpg(process.pid, signal.SIGKILL)
        rest, _ = process.communicate()
        assert first, "the writer itself failed"
        whole = (first + rest).rpartition("\n")[0]
        self.acknowledged += whole.splitlines()

    def left(self):
        """What lies in the temporary folder."""
        return sorted(path.name for path in self.temporary.iterdir())


@pytest.fixture
def seed():
    """Drawn anew in each run; pytest shows it when the test fails."""
    return random.SystemRandom().randrange(1 << 30)


@pytest.fixture
def killed(tmp_path, monkeypatch):
    return lambda name: Killed(name, tmp_path, monkeypatch)


def torn(folder):
    """Half-written files."""
    return [path.name for path in folder.rglob("*.part")]


def test_progress(killed, seed, monkeypatch):
    monkeypatch.setattr(progress, "_unsaved", {section: {} for section in progress.SECTIONS})
    writer = killed("progress")
    before = [f"memory.{n}" for n in range(KNOWN)]
    for id in before:
        progress.record_solved(id)
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        writer.once(rng)
    assert set(before) | set(writer.acknowledged) <= progress.solved()
    progress.record_solved("memory.last")
    assert torn(writer.folder) == [] and writer.left() == []
    assert not list(writer.folder.glob("*.bak*")), "never was the file corrupt"


def test_leaderboard(killed, seed):
    writer = killed("leaderboard")
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        writer.once(rng)
    found = {entry["name"] for entry in leaderboard.entries()}
    assert set(writer.acknowledged) <= found
    assert writer.left() == []


def test_recorded_results(killed, seed):
    writer = killed("record")
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        writer.once(rng)
        (path,) = writer.target.glob("*.json")
        assert json.loads(path.read_text())["results"]
    files.write_whole(path, "{}")
    assert torn(writer.folder) == [] and writer.left() == []


def test_downloaded_data(killed, seed):
    writer = killed("data")
    rng = random.Random(seed)
    whole = (ROOT / "assets/data/mnist/t10k-images-idx3-ubyte.gz").read_bytes()
    for _ in range(ROUNDS):
        writer.once(rng)
        assert writer.target.read_bytes() == whole
    files.write_whole(writer.target, whole)
    assert torn(writer.folder) == [] and writer.left() == []


def test_working_copies(killed, seed, monkeypatch):
    """Killed while newer chapters come in: the learner's answer is there every time."""
    writer = killed("copies")
    chapters = writer.target / "chapters"
    for name in ("chapters", "course", "my/chapters"):
        (writer.target / name).mkdir(parents=True)
    cells = [nbformat.v4.new_code_cell(text, id=text) for text in ("text", "answer")]
    original = chapters / "05_x.ipynb"
    original.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))
    monkeypatch.setattr(workspace, "ROOT", writer.target)
    monkeypatch.setattr(workspace, "notebooks", lambda: [original])
    mine = writer.target / "my"
    workspace.refresh(mine)
    copy = mine / "chapters" / original.name
    notebook = nbformat.read(copy, 4)
    notebook.cells[1].source = "my answer"
    copy.write_text(nbformat.writes(notebook))
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        intact = original.read_text()
        writer.once(rng)
        assert nbformat.read(copy, 4).cells[1].source == "my answer"
        original.write_text(intact)  # which the writer itself may have torn
    workspace.refresh(mine)
    assert nbformat.read(copy, 4).cells[1].source == "my answer"


# ---- other faults


def test_a_clock_that_jumps(tmp_path, monkeypatch, seed):
    """Back to 1970 and on to 2100: what is solved stays solved, its first date is kept."""
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    rng = random.Random(seed)
    progress.record_solved("first_kernels.rotate")
    first = progress.load()["exercises"]["first_kernels.rotate"]
    real = progress.datetime

    class Jumping(real):
        @classmethod
        def now(cls, zone=None):
            return real.fromtimestamp(rng.uniform(0, 4e9), zone)

    monkeypatch.setattr(progress, "datetime", Jumping)
    for number in range(ROUNDS):
        progress.record_solved("first_kernels.rotate")
        progress.record_solved(f"first_kernels.{number}")
    solved = progress.load()["exercises"]
    assert solved["first_kernels.rotate"] == first and len(solved) == 1 + ROUNDS


@pytest.mark.parametrize("error", [28, 30, 5], ids=["full disk", "read-only", "I/O error"])
def test_a_write_that_fails_at_any_step(tmp_path, monkeypatch, capsys, error, seed):
    """The old file stays, and what could not be written is written as soon as that works again."""
    path = tmp_path / "progress.json"
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(path))
    monkeypatch.setattr(progress, "_unsaved", {section: {} for section in progress.SECTIONS})
    progress.record_solved("memory.before")
    rng = random.Random(seed)

    def failing(*_, **__):
        raise OSError(error, os.strerror(error))

    for number in range(ROUNDS):
        step = rng.choice([(os, "fsync"), (os, "replace"), (tempfile, "mkstemp")])
        with monkeypatch.context() as broken:
            broken.setattr(*step, failing)
            progress.record_solved(f"memory.{number}")
        assert "memory.before" in json.loads(path.read_text())["exercises"]
    progress.record_solved("memory.after")
    wanted = {"memory.before", "memory.after", *(f"memory.{n}" for n in range(ROUNDS))}
    assert json.loads(path.read_text())["exercises"].keys() == wanted
    assert torn(Path(tmp_path)) == []
    assert os.strerror(error) in capsys.readouterr().err
