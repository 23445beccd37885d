"""The learner's kernels in the finale: which are right, which lines are theirs, and a leaderboard
on which they are counted, and timed where a GPU is.

Kept in the user's own data folder as one JSON line an entry; lines are only ever added.
`CUDA_COURSE_LEADERBOARD` names another file.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from utils import has_gpu

FIELDS = ("name", "kernels", "asked_kb", "date", "source")
TIMES = ("yours_us", "ours_us", "gpu")  # of entries from a GPU


# ---- what is theirs


def mine(trainer: bool = False) -> dict[str, Path]:
    """The kernels that the learner has written in the finale's exercises, and that are right.

    trainer: only those that the finished trainer has a socket for. Of a file that is not right, or
    that does not compile, one line says so: ours stands in for it.
    """
    found = {}
    for exercise in _of_the_finale():
        if trainer and exercise.kernel_name not in dict(_sockets()):
            continue
        path = Path(exercise.path)
        if not path.is_file() or not own_lines(exercise, path):
            continue
        wrong = _wrong(exercise, path)
        if wrong:
            name = exercise.kernel_name
            print(f"{name}: yours is not right yet, so the course's stands in ({wrong})")
        else:
            found[exercise.kernel_name] = path
    return found


def _of_the_finale():
    """The exercises whose kernels the step or the trainer takes."""
    from course.exercises import beating_pytorch
    from course.kernels.mnist_cnn.steps import THEIRS

    return [one for one in beating_pytorch.EXERCISES if one.kernel_name in THEIRS]


def _wrong(exercise, path) -> str:
    """In a few words why the kernel in a file is not right; "" if it is, as far as one sees."""
    from course.checking.model import InOut, Out
    from course.kernels.mnist_cnn import sockets
    from utils import check, cuda_c
    from utils.tools.diagnostics import LearnerError

    try:
        module = cuda_c.load(path)
        given = exercise.inputs(np.random.default_rng(1), exercise.shapes[1])
        plain = {k: v.array if isinstance(v, InOut) else v for k, v in given.items()}
        arguments = {
            k: check.poison(v.shape) if isinstance(v, Out) else v for k, v in plain.items()
        }
        expected = exercise.reference(**arguments)
        launch = exercise.launches(exercise.shapes[1])[0]
        how = exercise.kernel_name, arguments, launch.grid, launch.block
        got = sockets.run(module, *how)
        check.close(got, expected, rtol=1e-3, atol=1e-4, quiet=True)
    except (LearnerError, check.CheckError, AttributeError, TypeError) as error:
        return str(error).strip().splitlines()[0]
    return ""


def own_lines(exercise, path) -> list[str]:
    """Lines of code in a file that its exercise's starter does not have."""
    given = {line.strip() for line in exercise.starter.splitlines()}
    lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    code = [line for line in lines if line.strip("{}; ") and not line.startswith("//")]
    return [line for line in code if line not in given]


class Lines:
    """Which lines of the finished trainer are the learner's, kernel by kernel."""

    def __init__(self, mine: Mapping[str, Path]):
        by_name = {exercise.kernel_name: exercise for exercise in _of_the_finale()}
        sockets = dict(_sockets())
        fits = {name: path for name, path in mine.items() if name in sockets}
        self.lines = {name: own_lines(by_name[name], path) for name, path in fits.items()}

    def __repr__(self):
        if not self.lines:
            return "None yet: all kernels are the course's. Solve one of the exercises above."
        total = sum(map(len, self.lines.values()))
        rows = [f"{total} lines are yours:"]
        for name, lines in self.lines.items():
            rows += [f"  {name}", *(f"      {line}" for line in lines)]
        return "\n".join(rows)


# ---- what they ask of memory


class Asked:
    """Bytes that the trainer's four kernels ask of global memory for a digit: the learner's, where
    there are any, beside ours.
    """

    def __init__(self, mine: Mapping[str, str | Path]):
        from course.kernels.mnist_cnn import sockets

        self.ours = {name: sockets.asked(name, s.good) for name, s in _sockets()}
        own = {name: sockets.asked(name, path) for name, path in mine.items() if name in self.ours}
        self.yours = self.ours | own
        self.mine = tuple(own)

    @property
    def kilobytes(self) -> float:
        """All four together."""
        return sum(self.yours.values()) / 1e3

    def __repr__(self):
        rows = ["bytes asked of global memory, kB per digit"]
        for name, asked in self.yours.items():
            whose = "yours" if name in self.mine else "the course's"
            rows.append(f"{name:14} {asked / 1e3:8,.1f}   {whose}")
            if name in self.mine:
                rows[-1] += f" (the course's: {self.ours[name] / 1e3:,.1f})"
        rows.append(f"{'together':14} {self.kilobytes:8,.1f}")
        return "\n".join(rows)


# ---- the board


def file() -> Path:
    """The leaderboard's path."""
    given = os.environ.get("CUDA_COURSE_LEADERBOARD")
    if given:
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("cuda-course")) / "leaderboard.jsonl"


def entries() -> list[dict]:
    """All entries so far, the best first: by time where there are times, then by bytes. A line that
    is not an entry is left out, and stays in the file.
    """
    try:
        lines = file().read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return sorted(filter(None, map(_entry, lines)), key=_place)


def _place(entry):
    if "gpu" in entry:
        return 0, entry["yours_us"] / entry["ours_us"]
    return 1, entry["asked_kb"]


def _entry(line: bytes) -> dict | None:
    """The entry of one line, or None if it is none: torn, edited, of another encoding."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not all(field in entry for field in FIELDS):
        return None
    timed = [name for name in TIMES if name in entry]
    if timed and len(timed) < len(TIMES):
        return None
    numbers = [entry[name] for name in ("asked_kb", *timed[:2])]
    if not all(isinstance(number, int | float) and 0 < number < math.inf for number in numbers):
        return None
    words = [entry[name] for name in ("name", "kernels", "date", "source", *timed[2:])]
    return entry if all(isinstance(word, str) for word in words) else None


class Board:
    """The entries as a notebook or a terminal shows them, with a line on the newest one."""

    def __init__(self, says: str = ""):
        self.says = says
        try:
            self.entries = entries()
        except OSError as error:
            self.entries = []
            self.says += f" The board in {file()} cannot be read ({error.strerror})."

    def __repr__(self):
        rows = [f"{n:2}. {_row(entry)}" for n, entry in enumerate(self.entries, 1)]
        return "\n".join([*filter(None, [self.says]), *(rows or ["Nobody is on the board yet."])])


def _row(entry):
    text = f"{entry['name']:16} {entry['asked_kb']:8,.0f} kB per digit   {entry['kernels']}"
    if "gpu" in entry:
        text += f"   {entry['yours_us']:.1f} µs per step, ours {entry['ours_us']:.1f} µs"
        text += f" ({entry['gpu']}, {entry['date'][:10]})"
    return text


def enter(mine: Mapping[str, str | Path], name: str = "me") -> Board:
    """Check kernels for the fast trainer's sockets, count and time them, and put them on the board.

    mine: files by socket, as fast.Trainer takes them; the others are ours. Counted are the bytes
    that the four kernels' threads ask of global memory for a digit. On a GPU the whole step is
    timed, too, beside ours. name: what to call this version. Raises sockets.SocketError for a
    kernel that is not right.
    """
    from course.kernels.mnist_cnn import sockets

    files = sockets.checked({k: v for k, v in mine.items() if k in sockets.SOCKETS})
    if not files:
        raise ValueError("there is no kernel of yours to enter: solve one of the exercises first")
    asked = Asked(files)
    entry = {
        "name": name,
        "kernels": ", ".join(files),
        "asked_kb": asked.kilobytes,
        "source": _digest(files),
    }
    says = f"Right. With yours the four kernels ask for {asked.kilobytes:,.0f} kB per digit, "
    says += f"without for {sum(asked.ours.values()) / 1e3:,.0f} kB."
    if has_gpu():
        entry |= _timed(files)
        says += f" A step takes {entry['yours_us']:.1f} µs, ours {entry['ours_us']:.1f} µs."
    try:
        record(entry)
    except OSError as error:
        says += f" It could not be entered in {file()} ({error.strerror})."
    return Board(says)


def _sockets():
    from course.kernels.mnist_cnn.sockets import SOCKETS

    return SOCKETS.items()


def _timed(files) -> dict:
    """Microseconds a step of the trainer with these kernels and with ours, and whose GPU it was."""
    from course.kernels.mnist_cnn import race
    from utils import engine

    times = race.short(files, modes=())
    ours = next(name for name in times if name.startswith("ours/"))
    return {
        "yours_us": times["yours"][0],
        "ours_us": times[ours][0],
        "gpu": engine.gpu().name,
    }


def _digest(files) -> str:
    texts = (path.read_text(encoding="utf-8") for path in files.values())
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:12]


def record(entry: dict) -> dict:
    """Add one line to the file, with the day."""
    from utils import results

    entry = {**entry, "date": results.now()}
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as board:
        torn = board.tell() and not _ends_a_line(board)
        board.write(b"\n" * bool(torn) + json.dumps(entry).encode() + b"\n")
    return entry


def _ends_a_line(board) -> bool:
    """Whether the file's last byte ends a line: a crash may have torn the last one."""
    board.seek(-1, os.SEEK_END)
    return board.read(1) == b"\n"
