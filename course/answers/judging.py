"""The process that checks one learner's answers: ``python -m course.answers.judging FOLDER``.

It reads tasks (JSON) from its input and writes a line of JSON for each: first that it begins, then
the outcome. Each answer is tried in a copy of this process, which loads the learner's code; what
comes back is a few words, and never an object. Whoever wrote them, "solved" is believed only of
an answer that is right apart from its check, too: see `apart`.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

# first: it puts Numba on the CPU engine
import utils  # noqa: F401  # isort: split
from course import exercises
from course.answers import apart as apart_from_check
from course.answers import outcomes
from course.checking import apart, checker, limits
from course.checking.model import sentence
from course.checking.text import shown
from course.judge.report import Reason

PATIENCE = 400  # seconds by the clock for one answer; the checks' own limits are shorter
CPU_SECONDS = 200
MOST_RESULT = 64 << 10  # bytes
MOST_FILE = 512 << 20
MORE_PROCESSES = 200  # than the account has anyway
APART = "Its check said solved; apart from it:"
#: Of Linux: options of prctl, and what capset calls the third version of its arguments
SET_DUMPABLE, DROP_FROM_BOUNDS, NO_NEW_PRIVILEGES = 4, 24, 38
CAPABILITIES, LAST_CAPABILITY = 0x20080522, 63


def main(folder: Path) -> None:
    """Check what the input asks for."""
    _give_up_privileges()  # first: the compilers that are asked are anybody's, too
    _guard_descriptors()
    tasks = json.load(sys.stdin)
    sink = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.chdir(folder)
    apart_from_check.get_ready(tasks)
    for task in tasks:
        _say(sink, {"began": task["exercise"]})
        outcome = tried(task, sink.fileno())
        if outcome["status"] == "solved":
            _say(sink, {"began": task["exercise"]})  # it is at work
            outcome = believed(task, outcome)
        _say(sink, {"exercise": task["exercise"], "outcome": json.dumps(outcome)})


def _say(sink, line) -> None:
    sink.write(json.dumps(line) + "\n")
    sink.flush()


def tried(task, secret: int) -> dict:
    """The outcome of an answer, tried in a copy of this process. secret: a descriptor that the copy
    must not have.
    """
    exercise = exercises.EXERCISES[task["exercise"]]
    checker.prepare(exercise)
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(secret)
            os.close(source)
            os.setpgid(0, 0)
            _limit(exercise)
            _give_up_privileges()
            os.write(sink, json.dumps(outcome_of(exercise, task)).encode()[:MOST_RESULT])
        finally:
            os._exit(0)
    os.close(sink)
    try:
        data = _received(source)
    finally:
        os.close(source)
        status = _end(pid)
    return outcomes.valid(data) or _ended(status)


def believed(task, outcome) -> dict:
    """The outcome of an answer whose check said that it is solved, or what speaks against that."""
    exercise = exercises.EXERCISES[task["exercise"]]
    if not apart_from_check.possible(exercise.id):
        return outcome

    def confine():
        _limit(exercise)
        _give_up_privileges()

    try:
        found = apart_from_check.contradiction(task, confine)
    except Exception as error:  # what came back was no result
        found = Reason("forged", f"{type(error).__name__} while its results were read.")
    if found is None:
        return outcome
    lines = [outcomes.short(f"{APART} {found.says}")]
    if found.key == "timeout":  # perhaps the machine's doing
        return {"status": "broken", "reason": "timeout", "lines": lines}
    return {"status": "not believed", "reason": "", "lines": lines}


def _received(source) -> bytes:
    """What the copy says, until it closes its end or time is up."""
    last = time.monotonic() + PATIENCE
    data = b""
    while len(data) < MOST_RESULT:
        ready, _, _ = select.select([source], [], [], max(0, last - time.monotonic()))
        piece = os.read(source, MOST_RESULT) if ready else b""
        if not piece:
            break
        data += piece
    return data


def _end(pid) -> int:
    """End the copy with all that it started; its exit status, or minus the signal."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _ended(status) -> dict:
    """The outcome of a copy that ended before it said one."""
    by_force = status in (-signal.SIGXCPU, -signal.SIGKILL)
    reason = "timeout" if by_force else "crashed"
    says = "It was ended by force, for its time or memory, or it ended itself."
    return {"status": "broken", "reason": reason, "lines": [says]}


# ---- in the copy


def _limit(exercise) -> None:
    """Limit time, memory, files and processes; no answer can lift what the system holds.

    Of C and C++, whose checks reserve more than there is, the memory that is used is watched from
    outside.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    bounds = {
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + CPU_SECONDS,
        resource.RLIMIT_FSIZE: MOST_FILE,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: _processes() + MORE_PROCESSES,
    }
    if not exercise.in_file:
        bounds[resource.RLIMIT_DATA] = apart.memory() + apart.MOST_BYTES
    for what, most in bounds.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _guard_descriptors() -> None:
    """Let nobody without privileges open this process's files anew (/proc/PID/fd), or read it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)


def _give_up_privileges() -> None:
    """Root's, too, and those of a namespace of one's own; what an answer starts gets none."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(DROP_FROM_BOUNDS, capability, 0, 0, 0)
    header, none = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    libc.capset(header, none)
    libc.prctl(SET_DUMPABLE, 1, 0, 0, 0)  # its own files are its own


def _processes() -> int:
    """How many processes and threads there are, which is at least as many as the account has."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def outcome_of(exercise, task) -> dict:
    """The outcome of an answer: its status, reason, and the first lines that the learner saw."""
    try:
        with limits.print_limit():
            answer = loaded(task)
            got = checker.check_answer(exercise, answer)
    except limits.TooMuch:
        return _broken("flood", "")
    except BaseException as error:  # also what ends a program
        return _broken("crashed", f"{type(error).__name__}: {shown(error, str)}")
    status = "untouched" if got.untouched else got.status
    if got.solved and not exercise.in_file and not _still_honest(exercise):
        says = "After this was loaded the check accepts a known wrong answer, too: look at it."
        return {"status": "not believed", "reason": "", "lines": [says]}
    lines = [outcomes.short(line) for line in (got.headline, *got.lines)][: outcomes.LINES]
    return {"status": status, "reason": got.reason, "lines": lines}


def _broken(reason, says):
    lines = [sentence(reason, ""), *filter(None, [outcomes.short(says)])]
    return {"status": "broken", "reason": reason, "lines": lines}


def loaded(task):
    """The answer that a task holds: a path, or what its name stands for once its code has run."""
    if not task["name"]:
        path = Path(task["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(task["source"], encoding="utf-8")
        return str(path)
    path = Path(f"answer_{task['exercise'].replace('.', '_')}.py")
    path.write_text(task["source"], encoding="utf-8")
    namespace = {"__name__": "__main__", "__file__": str(path)}
    exec(compile(task["source"], str(path), "exec"), namespace)
    return namespace[task["name"]]


def _still_honest(exercise) -> bool:
    """Whether the check rejects a known wrong answer, here where the learner's code is."""
    wrong = exercise.wrong[0]
    return not checker.check_answer(exercise, wrong.answer).solved


if __name__ == "__main__":
    main(Path(sys.argv[1]))
