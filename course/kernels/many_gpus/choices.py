"""Which all-reduce is taken for a message: what a recording found best, else a rule.

The table (choices.json) is written from a recording's sweeps, never by hand:

    python -m course.kernels.many_gpus.recording RESULTS.json
"""

import ctypes
import functools
import json
import re
from dataclasses import astuple, dataclass
from pathlib import Path

ALGORITHMS = ("one_shot", "two_shot", "push", "ring", "pull")
CHANNELS = 256  # blocks at most
CHANNEL_BYTES = 16 << 10  # of a one_shot message, for each block
VECTOR = 16  # bytes that push, ring and pull move as one
TABLE = Path(__file__).parent / "choices.json"
#: A variant that is best by less than this is no reason to leave the one of the size before.
TIE = 0.01
SWEEP = re.compile(r"many_gpus/(?:(\d+)/)?all_reduce/(\d+)/sweep/(\w+)/(\d+)x(\d+)u(\d+)")


class How(ctypes.Structure):
    """How an all-reduce is run: kernels/communicator.cu, struct How. The same on all ranks."""

    _fields_ = [
        (name, ctypes.c_int) for name in ("algorithm", "type", "blocks", "threads", "unroll")
    ]


@dataclass(frozen=True)
class Choice:
    """An algorithm with its launch: see `choose`."""

    algorithm: str
    blocks: int
    threads: int = 512
    unroll: int = 1

    def how(self, kind: int) -> How:
        """As the kernels take it; kind: 0 for float32, 1 for bfloat16."""
        index = ALGORITHMS.index(self.algorithm)
        return How(
            index,
            kind,
            self.blocks,
            self.threads,
            self.unroll,
        )

    def fits(self, bytes: int) -> bool:
        """Can it take a message of so many bytes? The kernels refuse others."""
        if self.algorithm == "one_shot":
            units = -(-bytes // 8)
            return -(-units // self.blocks) * 8 <= CHANNEL_BYTES
        if self.algorithm == "two_shot":
            return True
        if self.algorithm == "pull" and bytes > VECTOR * self.blocks * self.threads:
            return False
        return bytes % VECTOR == 0


def label(choice: Choice) -> str:
    """A variant's name in results."""
    return f"{choice.algorithm}/{choice.blocks}x{choice.threads}u{choice.unroll}"


# ---- choosing ------------------------------------------------------------------------------------


def choose(
    bytes: int,
    ranks: int,
    anywhere: bool = False,
) -> Choice:
    """The variant for a message of so many bytes.

    anywhere: the message does not lie in the communicator's memory; then it must be sent in one
    shot, which can be refused where it is long. Else what was measured best with so many GPUs for
    the next longer message of the table, or where nothing was measured the rule.
    """
    if anywhere:
        return one_shot(bytes)
    measured = table().get(ranks, {})
    longer = [size for size in measured if size >= bytes]
    nearest = min(longer, default=max(measured, default=0))
    if nearest and measured[nearest].fits(bytes):
        return measured[nearest]
    return by_rule(bytes, ranks)


def one_shot(bytes: int) -> Choice:
    """One shot with a thread for each 8 bytes, as long as there are blocks."""
    threads = 128 if bytes <= 64 << 10 else 512
    units = -(-bytes // 8)  # a thread sends 8 bytes
    return Choice(
        "one_shot",
        blocks=max(1, min(128, -(-units // threads))),
        threads=threads,
    )


def by_rule(bytes: int, ranks: int) -> Choice:
    """Short messages cost trips, and one_shot needs one; for long ones the others send the least.

    The limits are what two H200 measured best.
    """
    if bytes <= (512 << 10) // (ranks - 1 or 1):
        return one_shot(bytes)
    if bytes <= 2 << 20:
        return Choice("two_shot", blocks=64, unroll=2)
    if bytes <= 4 << 20 or bytes % VECTOR:
        return Choice("two_shot", blocks=132, unroll=4)
    return Choice("push", blocks=132, unroll=4)


# ---- the table -----------------------------------------------------------------------------------


@functools.cache
def table() -> dict[int, dict[int, Choice]]:
    """{ranks: {bytes: the best variant}} of the recorded sweeps; empty where there are none."""
    if not TABLE.exists():
        return {}
    found = {}
    for ranks, sizes in json.loads(TABLE.read_text())["ranks"].items():
        of_size = found[int(ranks)] = {}
        for bytes, choice in sizes.items():
            of_size[int(bytes)] = Choice(*choice)
    return found


def sweeps(entries) -> dict[int, dict[int, dict[Choice, float]]]:
    """{ranks: {bytes: {variant: seconds}}} of a recording's float32 sweeps, the best of each."""
    times = {}
    for entry in entries:
        match = SWEEP.fullmatch(entry["name"])
        if not match or match[3] not in ALGORITHMS:
            continue
        ranks, bytes = int(match[1] or 2), int(match[2])
        launch = map(int, match.groups()[3:])
        choice = Choice(match[3], *launch)
        of_size = times.setdefault(ranks, {}).setdefault(bytes, {})
        before = of_size.get(choice, entry["value"])
        of_size[choice] = min(entry["value"], before)
    return times


def best(times: dict[int, dict[Choice, float]]) -> dict[int, Choice]:
    """The fastest variant for each size; of those that tie, the one of the next shorter size."""
    chosen, before = {}, None
    for bytes, variants in sorted(times.items()):
        fastest = min(variants, key=variants.get)
        if before in variants and variants[before] <= (1 + TIE) * variants[fastest]:
            fastest = before
        chosen[bytes] = before = fastest
    return chosen


def best_of_algorithms(times: dict[Choice, float]) -> dict[str, float]:
    """{algorithm: seconds of its fastest variant} of one size."""
    fastest = {}
    for choice, seconds in times.items():
        before = fastest.get(choice.algorithm, seconds)
        fastest[choice.algorithm] = min(seconds, before)
    return fastest


def _one_line(row: re.Match) -> str:
    """A variant's four words in one line of the file."""
    return "[" + re.sub(r"\s+", " ", row[1]) + "]"


def write(entries, machine: dict) -> None:
    """Put the best variants of a recording's sweeps into the table; other numbers of GPUs stay."""
    content = {"ranks": {}}
    if TABLE.exists():
        content = json.loads(TABLE.read_text())
    for ranks, times in sweeps(entries).items():
        of_size = content["ranks"][str(ranks)] = {}
        for bytes, choice in best(times).items():
            of_size[str(bytes)] = astuple(choice)
    content["gpu"] = machine["gpu"]
    rows = re.sub(r"\[\s+([^\]]+?)\s+\]", _one_line, json.dumps(content, indent=1))
    TABLE.write_text(rows + "\n")
    table.cache_clear()
