"""The learner's leaderboard: their kernel against ours, timed side by side on their GPU.

Kept in the user's own data folder as one JSON line an entry; lines are only ever added.
`CUDA_COURSE_LEADERBOARD` names another file.
"""

import hashlib
import json
import math
import os
from pathlib import Path

import numpy as np

from utils import has_gpu

EXERCISE = "beating_pytorch.bn_relu_pool"
IMAGES, SIDE, CHANNELS, BLOCK = (
    2048,
    28,
    32,
    256,
)  # what is timed: conv1's outputs of so many digits
FIELDS = ("name", "yours_us", "ours_us", "gpu", "date", "source")


def file() -> Path:
    """The leaderboard's path."""
    given = os.environ.get("CUDA_COURSE_LEADERBOARD")
    if given:
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("cuda-course")) / "leaderboard.jsonl"


def entries() -> list[dict]:
    """All entries so far, the fastest first. A line that is not an entry is left out, and stays in
    the file.
    """
    try:
        lines = file().read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return sorted(filter(None, map(_entry, lines)), key=lambda e: e["yours_us"] / e["ours_us"])


def _entry(line: bytes) -> dict | None:
    """The entry of one line, or None if it is none: torn, edited, of another encoding."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not all(field in entry for field in FIELDS):
        return None
    times = entry["yours_us"], entry["ours_us"]
    if not all(isinstance(time, int | float) and 0 < time < math.inf for time in times):
        return None
    words = (entry[field] for field in FIELDS if not field.endswith("_us"))
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
        rows = [
            f"{n:2}. {e['name']:20} {e['yours_us']:8.1f} µs   ours {e['ours_us']:8.1f} µs   "
            f"{e['ours_us'] / e['yours_us']:5.2f}×   {e['gpu']}, {e['date'][:10]}"
            for n, e in enumerate(self.entries, 1)
        ]
        return "\n".join([*filter(None, [self.says]), *(rows or ["Nobody is on the board yet."])])


def enter(path, name: str = "me") -> Board:
    """Check the kernel in a file, time it against ours on this GPU, and put it on the board.

    path: the answer to exercise 17.bn_relu_pool. name: what to call this version.
    Raises exercises.NotSolved for a kernel that is not right. Without a GPU nothing is timed, and
    nothing entered.
    """
    from course import exercises

    outcome = exercises.check(EXERCISE, path, strict=True)
    if not has_gpu():
        return Board(
            f"{outcome.lines[0]} There is no GPU here to time it on, so it is not entered."
        )
    yours, ours = times(path)
    faster = ours / yours
    says = f"Right. It takes {1 / faster:.2f} times as long as ours."
    if faster > 1:
        says = f"Right, and {faster:.2f} times as fast as ours."
    try:
        record(name, yours, ours, Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        says += f" It could not be entered in {file()} ({error.strerror})."
    return Board(says)


def times(path) -> tuple[float, float]:
    """Median microseconds of the kernel in a file and of ours, measured in turn on the same data
    and checked before.
    """

    from numba import cuda

    from course.exercises.beating_pytorch import BN_RELU_POOL, pooled
    from utils import check, compare, cuda_c
    from utils.files import scratch_folder

    with scratch_folder() as folder:
        own = folder / "ours.cu"
        own.write_text(BN_RELU_POOL.solution, encoding="utf-8")
        kernels = {"yours": cuda_c.load(path).bn_relu_pool, "ours": cuda_c.load(own).bn_relu_pool}
    rng = np.random.default_rng()
    rows = IMAGES * SIDE
    y = rng.uniform(-1, 1, (rows, SIDE, CHANNELS)).astype(np.float32)
    scale, shift = rng.uniform(-1, 1, (2, CHANNELS)).astype(np.float32)
    out = cuda.to_device(check.poison((rows // 2, SIDE // 2, CHANNELS)))
    arguments = (
        out,
        cuda.to_device(y),
        cuda.to_device(scale),
        cuda.to_device(shift),
        rows,
        SIDE,
        CHANNELS,
    )
    blocks = 8 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    results = {}
    for label, kernel in kernels.items():
        out.copy_to_device(check.poison(out.shape))
        kernel[blocks, BLOCK](*arguments)
        results[label] = out.copy_to_host()
    few = 4 * SIDE  # the lines of the first images, which are quick to compute in float64
    check.close(
        results["ours"][: few // 2],
        pooled(None, y[:few], scale, shift, few, SIDE, CHANNELS),
        rtol=1e-5,
        quiet=True,
    )
    check.close(results["yours"], results["ours"], rtol=1e-5, quiet=True)
    measured = compare(
        {name: (lambda k=kernel: k[blocks, BLOCK](*arguments)) for name, kernel in kernels.items()},
        bytes=y.nbytes + out.nbytes,
    ).timings
    return measured["yours"].median * 1e3, measured["ours"].median * 1e3


def record(name: str, yours: float, ours: float, source: str) -> dict:
    """Add one line to the file: microseconds of both kernels, on which GPU, when, and the digest of
    the source.
    """
    from utils import engine, results

    entry = {
        "name": name,
        "yours_us": yours,
        "ours_us": ours,
        "gpu": engine.gpu().name,
        "date": results.now(),
        "source": hashlib.sha256(source.encode()).hexdigest()[:12],
    }
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
