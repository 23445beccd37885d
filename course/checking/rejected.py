"""Why an answer is not accepted, and what every kind of check rejects."""

import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from course.checking.diagnose import (
    OR_OUTSIDE,
    SOMETHING_ELSE,
    diagnose,
    may_have_read_outside,
)
from course.checking.engines import Run, Stopped
from course.checking.limits import TooLong
from course.checking.model import Exercise
from course.checking.text import COMMENTS, shown
from utils import has_gpu
from utils.tools.diagnostics import unstyled

#: Answers that ask which lanes are here run once more where that names a part of them only.
ASKS_WHO_IS_HERE = re.compile(r"activemask|coalesced_threads")
WHO_IS_HERE = (
    "It asks which lanes are here now. On a GPU that may be fewer than should take part,"
    " and then it goes wrong: write down the mask of those that should."
)


class Rejected(Exception):
    """The answer cannot be accepted: a reason key, lines for the learner, a piece of code."""

    def __init__(
        self, reason: str, *lines: str, code: str = "", run: Run | None = None, picture: str = ""
    ) -> None:
        super().__init__(reason)
        self.reason, self.lines, self.code = reason, lines, code
        self.run, self.picture = run, picture


def too_long(exercise: Exercise, long: TooLong) -> str:
    """A sentence about what was stopped."""
    one = "call" if exercise.kind in ("function", "torch") else "launch"
    return f"One {one} was stopped after {long.seconds:g} seconds. Does every loop end?"


SAME_PLACE = "Where two threads have chosen the same place to write to, that is the mistake."
TWO_LINES = (
    "Either a barrier is missing between the two lines, or two threads have chosen the same place."
)
#: What the CPU runtime says of any race in a block; of two writes it often is not true
BARRIER_CURES = " A __syncthreads() between the two, or an atomic operation, makes it right"
#: What is said in its place where the exercise takes no more of those barriers
OTHER_BARRIERS = (
    "Which of the kernel's own barriers is to order the two? Whoever comes first arrives at it only"
    " when it is done, and the other one waits for that before it begins."
)
#: And where the answer has such barriers, each of them inside a branch
IN_A_BRANCH = (
    " A __syncthreads() inside a branch makes only those threads wait that come to it: move it"
    " behind the branch, where all threads of the block come"
)
#: And where both are in one line and the memory is global, such as `out[i] += part`
IN_ONE_LINE = (
    " Both are in one line, and a barrier stands between lines. If these threads do the same work,"
    " give each of them elements of its own; if each has a part to add, an atomic operation makes"
    " it right"
)
ONE_LINE = re.compile(r":(\d+): .* the same global memory .* in line \1\.")
#: What it says of one between two blocks: no cure where an index leads to another block's place
BLOCKS_CURES = "use atomic operations, or two kernels"
OTHER_BLOCKS = (
    "If each block has places of its own in this array, an index is wrong: it leads to another's."
)


def tally(runs: Sequence[Run]) -> str:
    """How much was tried."""
    sizes = len({run.shape for run in runs})
    on_gpu = ", and on the GPU" if has_gpu() else ""
    return (
        f"{len(runs)} launches with {sizes} sizes gave what they should and touched nothing else, "
        f"with the threads in order and shuffled{on_gpu}."
    )


def reject_if_wrong(
    runs: list[Run], exercise: Exercise, watched: tuple[str, str] | None = None
) -> None:
    """Reject if a run is wrong. watched: what stopped CUDA C, which may tell why."""
    finding = diagnose(runs, exercise)
    if not finding:
        return
    says = finding.says
    if says.startswith(SOMETHING_ELSE):
        reject_mistake(watched, OUTSIDE)
        if may_have_read_outside(finding.run, exercise):
            says = says.replace(SOMETHING_ELSE, OR_OUTSIDE)
    raise Rejected(finding.reason, says, run=finding.run)


def parameters(exercise: Exercise) -> list[str]:
    """The parameter names that the answer must take, in order."""
    if exercise.kind == "cuda_c":
        return list(exercise.inputs(np.random.default_rng(0), exercise.shapes[-1]))
    function: Any = getattr(exercise.solution, "py_func", exercise.solution)
    return list(inspect.signature(function).parameters)


def check_arity(function: Callable, wanted: Sequence[str]) -> None:
    try:
        inspect.signature(function).bind(*wanted)
    except TypeError:
        has = list(inspect.signature(function).parameters)
        raise Rejected(
            "wrong_arity",
            f"`{function.__name__}({', '.join(has)})` is called with {len(wanted)} arguments: "
            f"`({', '.join(wanted)})`.",
        ) from None


def crashed(stopped: Stopped, function: FunctionType) -> Rejected:
    """A Rejected that shows the one line of the learner's code where it was, and the thread."""
    error, file = stopped.error, function.__code__.co_filename
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:  # made by `exec`
        lines, first = [], 0
    line, inside = getattr(error, "lineno", None), False
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            inside = inside or first <= number < first + len(lines)
            if inside:  # a device function that it calls may lie elsewhere in the file
                line = number
    if line is None:  # a compiler's message names lines instead
        spoken_of = [int(n) for n in re.findall(r"line (\d+)", shown(error, str))]
        line = next((n for n in reversed(spoken_of) if first <= n < first + len(lines)), None)
    source = linecache.getline(file, line).strip() if line else ""
    where = ""
    if stopped.thread is not None and stopped.block is not None:
        where = f" (thread {stopped.thread} of block {stopped.block})"
    kind = type(error).__name__
    message = getattr(error, "problem", None) or short_message(error)
    if not hasattr(error, "problem") and not message.startswith(kind):
        message = f"{kind}: {message}"
    message = message.replace("'Watched'", "an array")
    reason = CRASHES.get(kind, "crashed")
    if kind == "BarrierError" and "mask" in message:
        reason = "warp_mask"
    return Rejected(reason, message + where, code=source)


# Mistakes that the CPU engine itself names -> the reason.
CRASHES = {
    "BarrierError": "barrier",
    "UninitializedError": "uninitialized",
    "KernelIndexError": "out_of_bounds",
}


def short_message(error: BaseException | str) -> str:
    """The first sentences of a message: Numba's compiler goes on with every failed overload."""
    plain = unstyled(shown(error, str))  # numba-cuda's compiler underlines
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Failed in ")]
    rest = ("There are ", "During: ", "File ")
    ends = [n for n, line in enumerate(lines) if line.startswith(rest)]
    return " ".join(lines[: min([*ends, 4])])[:500]


OUTSIDE = {"out-of-bounds": "out_of_bounds"}
# Kinds of mistakes that the CPU runtime names in brackets -> the reason.
KINDS = {
    "data-race": "race",
    "uninitialised-shared": "uninitialized",
    "barrier-divergence": "barrier",
    "deadlock": "barrier",
    "lane-not-in-mask": "warp_mask",
}


def barriers_in_branches(source: str) -> bool:
    """Whether CUDA C has a `__syncthreads()`, and none that stands outside of `if` and `else`."""
    source = COMMENTS.sub("", source)
    inside: list[bool] = []
    found: list[bool] = []
    for token in re.finditer(r"[{}]|__syncthreads\s*\(", source):
        before = re.split(r"[;{}]", source[: token.start()])[-1]
        in_branch = bool(re.search(r"\b(if|else)\b", before))
        if token[0] == "{":
            inside.append(in_branch)
        elif token[0] == "}":
            inside = inside[:-1]
        else:
            found.append(in_branch or any(inside))
    return bool(found) and all(found)


def reject_mistake(
    failure: tuple[str, str] | None,
    kinds: Mapping[str, str] = KINDS,
    exercise: Exercise | None = None,
    source: str = "",
) -> None:
    """Reject for a mistake that the CPU runtime has named, with its sentence and thread.

    exercise: whose rules the advice must not contradict. source: the answer, of CUDA C.
    """
    said = failure[1] if failure else ""
    for part in re.finditer(r"([^\n]*) \[([a-z-]+)\](?:\n *(in kernel [^\n]*))?", said):
        if part[2] in kinds:
            before = said[: part.start()].strip() if part[2] == "deadlock" else ""
            lines = [
                re.sub(r"^.*/", "", line)
                for line in (*before.splitlines(), part[1], part[3] or "")
                if line
            ]
            if re.search(r"this one writes it, and .* writes it", part[1]):
                lines = [line.replace(BARRIER_CURES, "") for line in lines]
                lines.append(SAME_PLACE)
            elif BARRIER_CURES in part[1] and exercise and "barriers" in exercise.no_more:
                lines = [line.replace(BARRIER_CURES, "") for line in lines]
                lines.append(OTHER_BARRIERS)
            elif BARRIER_CURES in part[1] and barriers_in_branches(source):
                lines = [line.replace(BARRIER_CURES, IN_A_BRANCH) for line in lines]
            elif BARRIER_CURES in part[1] and ONE_LINE.search(part[1]):
                lines = [line.replace(BARRIER_CURES, IN_ONE_LINE) for line in lines]
            elif BLOCKS_CURES in part[1]:
                lines.append(OTHER_BLOCKS)
            in_a_loop = part[2] == "deadlock" and "waits in this loop" in part[0]
            raise Rejected("timeout" if in_a_loop else kinds[part[2]], *lines)
