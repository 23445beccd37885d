"""Are a kernel's times in a class of eight on one GPU those of a learner alone?

    python -m course.kernels.bench.in_class --out FILE [--budget 55] [--learners 8]
    python -m course.kernels.bench.report FILE.jsonl

Eight processes, each with a context of its own, time the same kernels: one of them alone, all of
them by turns (`utils.gpu_queue`), all of them as they come, and one of them while seven launch
kernels untimed, as a check does. Recorded as gpu_queue/KERNEL/...: the times in ms, and how they
compare with those alone. Besides: that no two turns overlap, that all had the same number of them,
the longest wait, that PyTorch keeps to a learner's share of memory, and that a learner whose
context is broken harms no other. Without a GPU the same is played with the CPU engines, and
nothing is recorded.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from multiprocessing.connection import Connection

from course.kernels.bench.command import command_line
from course.kernels.bench.report import Report
from utils import gpu_queue, has_gpu
from utils.gpu_queue import sharing, tickets
from utils.timing import median_and_spread

KERNELS = "memory", "arithmetic"
ALONE, TOGETHER = 4, 3  # rounds of one learner, of each of all
GOAL = 0.03
PATIENCE = 50  # seconds without a result
SLACK = 0.05  # seconds from a request to its place in the queue
MOST = 10  # seconds that a part may take
CHECKING = 4.0  # seconds that the others launch untimed kernels
OVER = 1.5  # shares of memory that PyTorch is asked for

TRY_MEMORY = """
import torch
whole = torch.cuda.get_device_properties(0).total_memory
share = {fraction} * whole
kept = torch.empty(int(share / 2), dtype=torch.uint8, device="cuda")
try:
    torch.empty(int({over} * share), dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    print("refused")
else:
    print("given")
"""


class Member:
    """One learner's process."""

    def __init__(self, variables):
        ours, theirs = socket.socketpair()
        self.line = Connection(ours.detach())
        command = [sys.executable, "-m", "course.kernels.bench.learner", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env=os.environ | variables,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()

    def ask(self, *words):
        """Say what to do; `answer` has what came of it."""
        self.line.send(words)

    def answer(self):
        return self.line.recv()

    def close(self):
        self.line.close()
        self.process.kill()
        self.process.wait()


def together(members, *words):
    """What all of them answer, who begin at the same time."""
    for member in members:
        member.ask(*words)
    return [member.answer() for member in members]


def medians(rows):
    """The times among what a learner's clock gave."""
    return [median for median, *_ in rows]


# ---- parts


def alone(report, member, when):
    """{kernel: medians} of one learner while no other does anything."""
    found = {}
    for kernel in KERNELS:
        member.ask("clock", kernel, ALONE)
        found[kernel] = medians(member.answer())
        report.put("notes", f"{kernel}, {when}", [round(ms, 5) for ms in found[kernel]])
    return found


def in_turns(report, members):
    """{kernel: medians of all} by turns; what was seen of the turns is checked and kept."""
    found = {}
    turns = []
    for kernel in KERNELS:
        rows = together(members, "clock", kernel, TOGETHER)
        found[kernel] = [ms for one in rows for ms in medians(one)]
        turns += [turn[1:] for one in rows for turn in one]
    turns.sort()
    overlaps = sum(later[0] < turn[1] for turn, later in pairwise(turns))
    overtaken = sum(later[2] < turn[2] - SLACK for turn, later in pairwise(turns))
    if overlaps or overtaken:
        raise AssertionError(f"of {len(turns)} turns {overlaps} overlap, {overtaken} are overtaken")
    longest = max(began - drawn for began, _, drawn in turns)
    share = statistics.median(ended - began for began, ended, _ in turns)
    report.put("notes", "turns", f"{len(turns)}, one at a time, as they came, {share:.2f} s each")
    keep(report, "gpu_queue/turn", share, "s")
    keep(report, "gpu_queue/longest_wait", longest, "s")
    return found


def as_they_come(members):
    """{kernel: medians of all} with no queue, from now on."""
    together(members, "without_queue")
    found = {}
    for kernel in KERNELS:
        rows = together(members, "clock", kernel, TOGETHER)
        found[kernel] = [ms for one in rows for ms in medians(one)]
    return found


def while_others_check(report, member, others):
    """{kernel: medians} of one learner while others launch a kernel now and then, untimed."""
    found = {}
    for kernel in KERNELS:
        for other in others:
            other.ask("check", kernel, CHECKING / len(KERNELS))
        member.ask("clock", kernel, TOGETHER)
        found[kernel] = medians(member.answer())
        launched = sum(other.answer() for other in others)
        report.put("notes", f"{kernel}, launched untimed meanwhile", launched)
    return found


def broken_context(report, members):
    """One learner's illegal access; then the others take their turns."""
    *others, unlucky = members
    unlucky.ask("poison")
    error = unlucky.answer()
    if has_gpu() and not error:
        raise AssertionError("an access to no memory was not noticed")
    rows = together(others, "clock", KERNELS[0], 1)
    report.put("checks", "a broken context", f"{error}; {len(rows)} others timed on")


def memory_is_limited(report, learners):
    """PyTorch, asked for more than a learner's share."""
    card = sharing.cards()[0]
    variables = sharing.environment(0, learners, "", [card])
    fraction = sharing.share(card.parts[0], sharing.neighbours(0, learners, len(card.parts)))
    code = TRY_MEMORY.format(fraction=fraction, over=OVER)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.stdout.strip() != "refused":
        raise AssertionError(f"{done.stdout} {done.stderr[-500:]}")
    report.put("checks", "memory", f"PyTorch refused {OVER:g} shares of {fraction:.1%}")


# ---- what follows


def keep(report, name, value, unit="1", spread=0.0):
    """Record a number of a GPU; one that was played is only noted."""
    if has_gpu():
        report.record(name, value, unit, spread)
    else:
        report.put("notes", name, value)


def compared(report, how, found, reference):
    """Record the times of a way to share, and by how much they differ from those alone."""
    for kernel, times in found.items():
        median, spread = median_and_spread(times)
        ratio = median / reference[kernel]
        worst = max(times, key=lambda ms, alone=reference[kernel]: abs(ms / alone - 1))
        keep(report, f"gpu_queue/{kernel}/{how}/time", median, "ms", spread)
        keep(report, f"gpu_queue/{kernel}/{how}/ratio", ratio, "1", spread / reference[kernel])
        keep(report, f"gpu_queue/{kernel}/{how}/worst_ratio", worst / reference[kernel], "1")
        report.say(f"{kernel:10} {how:18} {median:.4f} ms, {ratio:.3f} of alone")
        if how == "in_turns" and has_gpu() and abs(ratio - 1) > GOAL:
            report.failed(f"{kernel} in turns", AssertionError(f"{ratio:.3f} of alone"))


def play(report, members, first):
    """All parts, while the budget lasts. first: medians of one learner before the others came."""
    member, *others = members
    idle = alone(report, member, "alone, others idle")
    reference = {k: statistics.median(first[k] + idle[k]) for k in KERNELS}
    compared(report, "alone", {k: first[k] + idle[k] for k in KERNELS}, reference)
    shared = report.attempt("in turns", in_turns, report, members)
    if shared:
        compared(report, "in_turns", shared, reference)
    parts = {
        "others_checking": lambda: while_others_check(report, member, others),
        "alone_afterwards": lambda: alone(report, member, "alone, afterwards"),
        "no_queue": lambda: as_they_come(members),
    }
    for how, part in parts.items():
        found = report.attempt(how, part) if report.left() > MOST else None
        if found:
            compared(report, how, found, reference)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, budget=55)
    parser.add_argument("--learners", type=int, default=8)
    options = parser.parse_args()
    report = Report(options.out, options.budget, PATIENCE)
    report.watch()
    with tempfile.TemporaryDirectory(prefix="gpu-queue-") as queue:
        tickets.make_folder(queue)
        play_with({gpu_queue.FOLDER: queue}, report, options.learners)
    print(f"done, {report.left():.0f} s left; errors: {list(report.entries['errors']) or 'none'}")


def play_with(queued, report, learners):
    """Start one learner, then the others, and play."""
    members = [Member(queued)]
    begin = time.monotonic()
    try:
        together(members, "ready")
        first = alone(report, members[0], "alone, before others came")
        members += [Member(queued) for _ in range(learners - 1)]
        if has_gpu():
            report.attempt("memory", memory_is_limited, report, learners)
        together(members, "ready")
        report.say(f"{len(members)} processes after {time.monotonic() - begin:.0f} s")
        play(report, members, first)
        report.attempt("broken context", broken_context, report, members)
    finally:
        for member in members:
            member.close()


if __name__ == "__main__":
    main()
