"""Play a class the day before: ``python -m course.hub.rehearsal --learners 30``.

Real accounts, servers and kernels on a Hub of its own, which is gone afterwards. Each learner signs
up, starts a server, joins, and does a part of First kernels: predicts, answers an exercise wrong
and then right, saves a notebook. In the middle the Hub is killed and started again. At the end all
raise their hands at once. Then the rehearsal compares what the board and each learner's progress
file say with what was done, and says how long the last answer took to the wall.

With root each learner is a Unix account, as in a class; else all are yours (--trusting).
"""

import argparse
import contextlib
import inspect
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from course.hub import __main__ as hub_command
from course.hub import accounts, settings, spawning
from course.hub.board import catalogue
from course.hub.settings import Settings
from course.hub.simulated import Failed, Learner, Visitor, follow

TEACHER = "teacher"
PREFIX = f"t{os.getpid() % 100_000}-"  # of Unix accounts: none of a class's, or another rehearsal's
PREDICTIONS = "predict-hello", "predict-guard"
LAST = "predict-break-stride"  # for which all raise their hands at once
EXERCISES = "first_kernels.scale_guard", "first_kernels.grid_stride"
SETUP = "from utils import cuda, np\nfrom course import classroom, exercises"
UP = 120  # seconds for a Hub to start
ON_TIME = 2.0  # seconds from the last answer to the wall
CHAPTER = "first_kernels"
GB = 1 << 30
INTERRUPTED = 130  # the status that shells give to what Ctrl-C ended


@dataclass
class Part:
    """What a learner does, drawn from their number, and what came of it."""

    number: int
    name: str
    picks: dict = field(default_factory=dict)
    mistakes: dict = field(default_factory=dict)  # {exercise: Wrong}
    solves: set = field(default_factory=set)
    wants_help: bool = False
    failed: bool = False
    start_seconds: float = 0.0


def part(number: int) -> Part:
    """The part of a learner: the same for the same number."""
    from course.exercises import EXERCISES as ENTRIES

    draw = random.Random(number)
    own = Part(number, f"learner{number:02}")
    questions = catalogue.contents(CHAPTER).questions
    for cell in (*PREDICTIONS, LAST):
        own.picks[cell] = draw.choice(questions[cell].choices)
    for id in EXERCISES:
        named = ENTRIES[id].solution.py_func.__name__
        wrong = [w for w in ENTRIES[id].wrong if w.answer.py_func.__name__ == named]
        own.mistakes[id] = draw.choice(wrong)
        if draw.random() < 0.6:
            own.solves.add(id)
    own.wants_help = draw.random() < 0.2
    return own


def first_half(learner: Learner, own: Part) -> None:
    """Sign up, start, join and predict."""
    learner.sign_up()
    learner.log_in()
    own.start_seconds = learner.start()
    learner.open()
    learner.run(SETUP)
    learner.run("classroom.join()", "join")
    learner.click("Join with my name")
    for cell in PREDICTIONS:
        learner.run(source(cell), cell)
        learner.click(own.picks[cell])
    learner.run(f"kept = {own.number}")
    learner.save(f"# {own.name} was here")


def second_half(learner: Learner, own: Part) -> None:
    """Go on in the same kernel: an exercise wrong, then perhaps right; perhaps ask for help."""
    from course.exercises import EXERCISES as ENTRIES

    learner.connect()
    if learner.run("print(kept)").strip() != str(own.number):
        raise Failed(f"{own.name} has lost what the kernel knew")
    for id in EXERCISES:
        entry = ENTRIES[id]
        answers = [own.mistakes[id].answer, *([entry.solution] if id in own.solves else [])]
        for answer in answers:
            code = textwrap.dedent(inspect.getsource(answer.py_func))
            learner.run(code)
            learner.run(f'exercises.check("{id}", {answer.py_func.__name__})', "check-of-" + id)
    if own.wants_help:
        learner.run("classroom.help()")
    learner.run(source(LAST), LAST)


def source(cell: str) -> str:
    """The code of a cell of the chapter."""
    (chapter,) = (each for each in catalogue.CHAPTERS if each.key == CHAPTER)
    book = json.loads((catalogue.FOLDER / f"{chapter.name}.ipynb").read_text(encoding="utf-8"))
    (text,) = (each["source"] for each in book["cells"] if each["id"] == cell)
    return "".join(text)


class Hub:
    """A Hub of its own, on free ports, in a folder of its own."""

    def __init__(self, place: Path):
        self.settings = Settings(
            port=free_port(),
            hub_port=free_port(),
            proxy_port=free_port(),
            board_port=free_port(),
            instructors=(TEACHER,),
            open=True,
            trusting=os.geteuid() != 0,
            place=str(place),
            prefix=PREFIX,
            queue=str(place / "gpu_queue"),
        )
        self.password = accounts.new_password()
        self.process = None

    def start(self) -> float:
        """Start it; the seconds until it and the board answer."""
        began = time.monotonic()
        settings.refuse_unsafe(self.settings, root=os.geteuid() == 0)
        hub_command.prepare(self.settings)
        told = {
            settings.SETTINGS: str(self.settings.write()),
            "CUDA_COURSE_FIRST_PASSWORD": self.password,
        }
        file = Path(hub_command.__file__).with_name("jupyterhub_config.py")
        with open(Path(self.settings.place) / "hub.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(file), "--log-level=WARN"],
                env=os.environ | told,
                cwd=self.settings.secret,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() - began > UP:
                log = Path(self.settings.place, "hub.log").read_text(errors="replace")
                raise Failed(f"the Hub does not start:\n{log[-2000:]}")
            time.sleep(0.3)
        return time.monotonic() - began

    def kill(self) -> None:
        """End the Hub's process as the kernel would for want of memory."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """End the Hub, all servers, and delete all accounts and files."""
        if self.process is not None:
            self.kill()
        hub_command.end_proxy(self.settings)
        if self.settings.trusting:
            end_below(self.settings.homes)
        else:
            accounts.remove(self.settings.homes, self.settings.board_account)

    def errors(self) -> str:
        """What the Hub's log says of errors, the last of it."""
        log = Path(self.settings.place, "hub.log").read_text(errors="replace")
        lines = [line for line in log.splitlines() if line.startswith(("[E", "    "))]
        for path in sorted(self.settings.homes.glob(f"*/{spawning.LOG}")):
            said = path.read_text(errors="replace").splitlines()
            lines += [f"{path.parent.name}: {line}" for line in said if line.startswith("[E")]
        return "\n".join(lines[-40:])

    def home(self, name: str) -> Path:
        """A learner's home."""
        if self.settings.trusting:
            return self.settings.homes / name
        return spawning.home(self.settings, accounts.unix_name(name, PREFIX))

    def _answers(self):
        """Whether the Hub and the board are there, by the proxy."""
        visitor = Visitor(self.settings.address, "", "")
        with contextlib.suppress(OSError):
            login = visitor.get("/hub/login").status_code == 200
            board = visitor.get("/services/board/api/board").status_code == 403
            return login and board
        return False


def end_below(homes: Path) -> None:
    """End all processes that work in a folder."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(homes):
                process.kill()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def all_at_once(parts: list, act, at_once: int) -> list[str]:
    """act(part) for all, `at_once` at a time; what went wrong, a line each.

    Who has failed once is left out from then on.
    """

    def tried(each):
        try:
            if not each.failed:
                act(each)
        except Exception as error:  # whatever it is, the others go on
            each.failed = True
            return f"{each.name}: {type(error).__name__}: {error}"
        return ""

    pool = ThreadPoolExecutor(at_once)
    try:
        return [said for said in pool.map(tried, parts) if said]
    finally:  # interrupted, nobody else begins, and who is at work fails once the Hub has ended
        pool.shutdown(wait=False, cancel_futures=True)


class Wall:
    """Reads along what the wall shows, and when."""

    def __init__(self, teacher: Visitor):
        self.shown = []
        self._enough = threading.Event()
        self._wanted = None
        reader = threading.Thread(target=self._read, args=(teacher,), daemon=True)
        reader.start()

    def _read(self, teacher):
        with contextlib.suppress(OSError):
            follow(teacher, "/services/board/api/wall", self._keep)

    def _keep(self, when, hands):
        self.shown.append((when, hands))
        if self._wanted is not None and hands.get("answers") == self._wanted:
            self._enough.set()
        return True

    def wait_for(self, answers: int, seconds: float) -> float | None:
        """When so many answers were on the wall; None if not within so many seconds."""
        self._wanted = answers
        deadline = time.time() + seconds
        while time.time() < deadline:
            for when, hands in list(self.shown):
                if hands.get("answers") == answers:
                    return when
            self._enough.wait(0.05)
            self._enough.clear()
        return None


class Memory:
    """How much of this machine's memory is in use, looked at again and again."""

    def __init__(self):
        self.before = self.most = self._used()
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def words(self) -> str:
        """What the class took, and what it took it from."""
        self._over.set()
        cores, total = os.cpu_count(), psutil.virtual_memory().total
        return (
            f"Memory: {self.before / GB:.1f} GB in use before, {self.most / GB:.1f} GB at most, of "
            f"{total / GB:.0f} GB; on {cores} cores"
        )

    def _watch(self):
        while not self._over.wait(1):
            self.most = max(self.most, self._used())

    def _used(self):
        now = psutil.virtual_memory()
        return now.total - now.available


def differences(parts: list[Part], hub: Hub, board: dict, hands: dict) -> list[str]:
    """In which the board, the wall or a progress file says other than what was done."""
    wrong = []
    solved = {own.name: own.solves for own in parts}
    told = {each["label"]: set(each["solved"]) for each in board["people"]}
    if told != solved:
        names = [name for name in solved if told.get(name) != solved[name]]
        wrong.append(f"the board has other exercises solved for {', '.join(names)}")
    for row in board["exercises"]:
        id = row["exercise"]
        stuck = Counter(own.mistakes[id].reason for own in parts if id not in own.solves)
        counted = sorted((each["count"] for each in row["reasons"]), reverse=True)
        if counted != sorted(stuck.values(), reverse=True)[:3] or row["tried"] != len(parts):
            wrong.append(f"{id}: the board's reasons are {row['reasons']}, done was {dict(stuck)}")
    asked = {own.name for own in parts if own.wants_help}
    if {each["label"] for each in board["help"]} != asked:
        wrong.append("the board shows others who asked for help")
    picked = Counter(own.picks[LAST] for own in parts)
    if {bar["label"]: bar["count"] for bar in hands["bars"] if bar["count"]} != picked:
        wrong.append(f"the wall shows {hands['bars']}, picked was {dict(picked)}")
    for own in parts:
        file = hub.home(own.name) / ".local/share/cuda-course/progress.json"
        kept = set(json.loads(file.read_text())["exercises"]) if file.is_file() else set()
        if kept != own.solves:
            wrong.append(f"{own.name}: progress says {sorted(kept)}, not {sorted(own.solves)}")
    return wrong


def play(count: int, at_once: int, hub: Hub, say=print) -> dict:
    """Play a class; {"wrong": lines, "delay": seconds, ...}."""
    began, memory = time.monotonic(), Memory()
    parts = [part(number) for number in range(1, count + 1)]
    say(f"The Hub and its board were up after {hub.start():.1f} s")
    address = hub.settings.address
    teacher = Visitor(address, TEACHER, hub.password)
    teacher.log_in()
    teacher.get("/services/board/")
    learners = {
        own.name: Learner(address, own.name, "of-no-use-" + secrets.token_hex(6)) for own in parts
    }

    wrong = all_at_once(parts, lambda own: first_half(learners[own.name], own), at_once)
    if len(wrong) == count:
        raise Failed("nobody could join:\n" + "\n".join(wrong))
    say(f"{count - len(wrong)} of {count} joined and predicted: {time.monotonic() - began:.0f} s")
    hub.kill()
    again = hub.start()
    say(f"The Hub was killed, and was up again after {again:.1f} s")
    wrong += all_at_once(parts, lambda own: second_half(learners[own.name], own), at_once)
    say(f"All have answered the exercises: {time.monotonic() - began:.0f} s")

    teacher.post("/services/board/api/show", {"chapter": CHAPTER, "subject": LAST})
    wall = Wall(teacher)
    clicked = []

    def click(own):
        learners[own.name].connect()
        learners[own.name].run(source(LAST), LAST)
        clicked.append(time.time())
        learners[own.name].click(own.picks[LAST])

    wrong += all_at_once(parts, click, at_once)
    present = [own for own in parts if not own.failed]
    complete = wall.wait_for(len(present), 60)
    delay = complete - max(clicked) if complete and clicked else None
    boards = []
    follow(teacher, "/services/board/api/board", lambda _, data: boards.append(data))
    hands = wall.shown[-1][1]
    wrong += differences(present, hub, boards[-1], hands)
    wrong += [
        f"{own.name}: the saved notebook is another"
        for own in present
        if learners[own.name].saved() != f"# {own.name} was here"
    ]
    return {
        "wrong": wrong,
        "delay": delay,
        "seconds": time.monotonic() - began,
        "starts": [own.start_seconds for own in parts],
        "again": again,
        "memory": memory.words(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course.hub.rehearsal", description="Play a class, the day before."
    )
    parser.add_argument("--learners", type=int, default=30)
    parser.add_argument("--at-once", type=int, default=2 * (os.cpu_count() or 1))
    options = parser.parse_args(arguments)
    with contextlib.suppress(ValueError):  # not in the main thread: whoever called ends it
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and cleans up before
    with tempfile.TemporaryDirectory(prefix="cuda-course-rehearsal-") as folder:
        Path(folder).chmod(0o755)
        hub = Hub(Path(folder))
        try:
            found = play(options.learners, options.at_once, hub)
            for line in found["wrong"]:
                print("wrong:", line)
            if found["wrong"]:
                print(hub.errors())
        except KeyboardInterrupt:
            print("\nInterrupted: this says nothing about your class. Cleaning up", flush=True)
            return INTERRUPTED
        finally:
            hub.end()
    late = found["delay"] is None or found["delay"] > ON_TIME
    if found["delay"] is None:
        print("wrong: not all answers came to the wall")
    else:
        print(f"The wall was complete {found['delay']:.2f} s after the last answer")
    print(f"The slowest server took {max(found['starts']):.0f} s to start")
    print(found["memory"])
    if not found["wrong"]:
        print("No progress was lost or mixed, and the board says what was done")
    print(f"{found['seconds']:.0f} s in all")
    return 1 if found["wrong"] or late else 0


if __name__ == "__main__":
    sys.exit(main())
