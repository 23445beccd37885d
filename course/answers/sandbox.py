"""The process that checks a learner's answers, seen from outside.

Where the machine allows it the process has namespaces of its own (unshare, of util-linux): it sees
and signals no other process, has no network, and the kernel ends all that it started with it. In
any case it is watched: whoever starts hundreds of processes, fills the disk, or takes too long is
ended, and what it was at is told. It has the account's rights over files; a class that one would
not trust with these is checked in a container.
"""

import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import platformdirs
import psutil

from course.answers import outcomes
from utils import files
from utils.engine import FORCE_CPU
from utils.files import ROOT

OWN = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child"]
OWN += ["--mount-proc", "--net"]
PATIENCE = 450  # seconds without a word
GLANCE = 0.5  # seconds between two looks at what the process does
MOST_PROCESSES = 150
MOST_DISK = 2 << 30  # bytes in its folder
MOST_MEMORY = 8 << 30  # bytes of all that it started
MOST_WORDS = 4 << 20  # bytes that it may say


@functools.cache
def own_namespaces() -> tuple[str, ...]:
    """The command that gives a process namespaces of its own; empty where that is not possible."""
    if not shutil.which("unshare"):
        return ()
    done = subprocess.run([*OWN, "true"], capture_output=True)
    return tuple(OWN) if done.returncode == 0 else ()


def judged(tasks: list[dict], tell=lambda id: None) -> dict[str, dict]:
    """{exercise's id: its outcome} of one learner's tasks, as `judging.tried` gives it.

    tell: called with the id of each exercise that is begun.
    """
    found = {}
    left = list(tasks)
    built = None if all(task["name"] for task in tasks) else warm()
    while left:
        with tempfile.TemporaryDirectory(prefix="cuda-answers-", ignore_cleanup_errors=True) as at:
            process = Process(left, Path(at), built)
            try:
                found |= process.outcomes(tell)
            finally:
                process.end()
        stopped = process.at
        if stopped and stopped not in found:
            found[stopped] = process.trouble()
        still = [task for task in left if task["exercise"] not in found]
        if len(still) == len(left):  # it does not even start
            raise RuntimeError(f"answers cannot be checked here: {process.words()}")
        left = still
    return found


class Process:
    """One process of `course.answers.judging` with its folder. built: a cache to begin with: it is
    copied, never linked, or answers could change it for others.
    """

    def __init__(self, tasks, folder: Path, built: Path | None):
        self.folder = folder
        self.at = ""  # the exercise that it is at
        self.why = ""  # why it was ended
        self.home = home = folder / "home"
        home.mkdir()
        if built:
            shutil.copytree(built, home / "cache", symlinks=True)
        self.asked = [task["exercise"] for task in tasks]
        self.errors = open(folder / "errors", "w+b")
        command = [sys.executable, "-m", "course.answers.judging", str(folder)]
        self.process = subprocess.Popen(
            [*own_namespaces(), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=_environment(home),
            cwd=ROOT,
            start_new_session=True,
        )
        self.process.stdin.write(json.dumps(tasks).encode())
        self.process.stdin.close()

    def outcomes(self, tell) -> dict[str, dict]:
        """What it says, until it is done or ended."""
        found = {}
        for line in self._lines():
            if line.get("began") in self.asked:  # whoever wrote it may be anybody
                self.at = line["began"]
                tell(self.at)
            elif line.get("exercise") == self.at and outcomes.valid(line.get("outcome", "")):
                found[self.at] = outcomes.valid(line["outcome"])
        return found

    def _lines(self):
        """The lines that it writes, each a dict."""
        data, said, last = b"", 0, time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not self.why:
                if selector.select(GLANCE):
                    piece = os.read(self.process.stdout.fileno(), 1 << 16)
                    if not piece:
                        return
                    said, last = said + len(piece), time.monotonic()
                    *whole, data = (data + piece).split(b"\n")
                    yield from filter(None, map(_line, whole))
                self.why = self._too_much(said, time.monotonic() - last)

    def _too_much(self, said, silent) -> str:
        """The reason to end it; "" for none."""
        if silent > PATIENCE:
            return "timeout"
        if said > MOST_WORDS:
            return "flood"
        processes = self._all()
        if len(processes) > MOST_PROCESSES:
            return "forks"
        if sum(map(_memory_of, processes)) > MOST_MEMORY:
            return "memory"
        return "fills" if files.size(self.folder) > MOST_DISK else ""

    def _all(self):
        """The process and all that it started and that still belong to it."""
        try:
            mine = psutil.Process(self.process.pid)
            return [mine, *mine.children(recursive=True)]
        except psutil.Error:
            return []

    def _strays(self):
        """What it started and left behind, where no namespace of its own holds that together: known
        by the folder that was its home.
        """
        if own_namespaces():
            return []
        return [each for each in psutil.process_iter() if _home_of(each) == str(self.home)]

    def end(self) -> None:
        """End it with all that it started."""
        for _ in range(3):  # what is started meanwhile is ended, too
            for each in self._all() + self._strays():
                _kill(each.pid)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()

    def words(self) -> str:
        """The end of what it wrote about its own trouble."""
        self.errors.seek(0)
        return self.errors.read()[-1000:].decode(errors="replace").strip()

    def trouble(self) -> dict:
        """The outcome of the exercise at which it ended, or was ended."""
        reason = self.why or "crashed"
        return {"status": "broken", "reason": reason, "lines": [SAYS[reason]]}


# ---- what every CUDA C program needs


#: Checks an answer of our own, the solution of an exercise
WARM = """
import sys
from course import exercises
from course.checking.checker import check_answer
exercise = exercises.EXERCISES["first_kernels.rotate"]
path = sys.argv[1] + "/rotate.cu"
open(path, "w").write(exercise.solution)
check_answer(exercise, path)
"""


@functools.cache
def warm() -> Path:
    """A cache in which the CPU engine's runtime is built, and no answer but ours ever was."""
    place = Path(platformdirs.user_cache_dir("cuda-course")) / "answers"
    place.mkdir(parents=True, exist_ok=True)
    known = {FORCE_CPU: "1", "PYTHONPATH": str(ROOT), "CUDA_COURSE_CACHE": str(place)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", WARM, folder]
        subprocess.run(command, env=os.environ | known, cwd=ROOT, stdout=subprocess.DEVNULL)
    return place


SAYS = {
    "timeout": "It did not finish, and was ended.",
    "flood": "It wrote without end, and was ended.",
    "forks": "It started processes without end, and was ended with all of them.",
    "fills": "It filled the disk, and was ended.",
    "memory": "It took too much memory, and was ended.",
    "crashed": "It ended the process that checked it.",
}


def _line(data) -> dict | None:
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _memory_of(process):
    """Bytes of memory that a process has in use."""
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _home_of(process):
    """The home folder in a process's environment; "" where that cannot be seen."""
    try:
        return process.environ().get("HOME", "")
    except psutil.Error:
        return ""


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _environment(home) -> dict[str, str]:
    """What the process may know: nothing of the instructor's, no caches, no progress."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_COURSE_CACHE": str(home / "cache"),
        "CUDA_COURSE_PROGRESS": str(home / "progress.json"),
        FORCE_CPU: "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
