"""Checking an answer: can it run, does it run, and is what it does right every time?"""

import ast
import dataclasses
import inspect
import re
import signal
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from course.checking import apart, drawn, engines, report, triton_kernels, typing
from course.checking.cuda_c_files import check_cpp, check_cuda_c
from course.checking.films import film_of
from course.checking.functions import check_function
from course.checking.limits import TooLong, TooMuch, TooSlow, print_limit
from course.checking.model import BROKEN, Exercise
from course.checking.numba_kernels import check_numba, least_work
from course.checking.rejected import Rejected, crashed, too_long
from course.checking.report import Outcome, describe, draw
from course.checking.speed import of_solution, reject_over_goal
from course.checking.text import shown
from course.checking.triton_kernels import TritonExercise
from utils import has_gpu
from utils.cpu.numba_cuda import KernelError
from utils.tools import process

MOST_SEED = 1 << 31
WHAT_A_SEED_IS = (
    f"a seed is a whole number from 0 to {MOST_SEED - 1:,}, such as a report names; leave it out"
    " for fresh inputs."
)
_one_check = threading.RLock()


def check_answer(exercise: Exercise, answer: Any, seed: Any = None) -> Outcome:
    """The Outcome for an answer: a kernel, the path of a .cu file or a function.

    One at a time: what a check redirects and limits is the whole process's.
    """
    seed = fresh_seed() if seed is None else seed
    if not isinstance(seed, int | np.integer) or not 0 <= seed < MOST_SEED:
        no = Rejected("not_a_kernel", f"seed={shown(seed)}: {WHAT_A_SEED_IS}")
        return not_accepted(exercise, answer, None, no)
    with _one_check:
        return _check_answer(exercise, answer, int(seed))


def _check_answer(exercise: Exercise, answer: Any, seed: int) -> Outcome:
    if not apart.POSSIBLE or exercise.kind not in apart_kinds():
        outcome, printed = outcome_of(exercise, answer, seed)
    else:
        prepare(exercise, is_starter(exercise, answer))
        try:
            outcome, printed = apart.result_of(lambda: outcome_in_copy(exercise, answer, seed))
        except apart.Ended as ended:
            typing.compiler.forget()  # it may have been asked, and not have answered
            outcome, printed = not_accepted(exercise, answer, seed, died(ended.status)), ""
        except BaseException:  # Kernel > Interrupt
            typing.compiler.forget()
            raise
    if printed:
        sys.stdout.write(printed)
    return outcome


def fresh_seed() -> int:
    """A seed for a check that was given none: each learner's inputs are others."""
    return int(np.random.default_rng().integers(MOST_SEED))


def apart_kinds() -> tuple[str, ...]:
    """Kinds of exercises that are tried in a copy of this process: those without a GPU."""
    return ("function",) if has_gpu() else ("function", "numba")


def prepare(exercise: Exercise, untouched: bool = False) -> None:
    """Do here what serves the next checks, too, and is no answer's doing.

    untouched: the answer is the starter, of which nobody asks how fast it is.
    """
    drawn.get_ready()
    if exercise.kind == "numba":
        typing.compiler.ready()
        report.get_ready()
        least_work(exercise)
        if exercise.speed and exercise.speed.goal and not untouched:
            of_solution(exercise)


def died(status: int) -> Rejected:
    """The Rejected for a copy of this process that ended before the check did."""
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        says = "It was ended by force: by itself, or for the time or memory that it took."
        return Rejected("timeout", says)
    return Rejected("crashed", f"It ended the program ({process.exit_reason(status)}).")


def outcome_of(exercise: Exercise, answer: Any, seed: int) -> tuple[Outcome, str]:
    """(Outcome, what the answer printed, or the beginning of it)."""
    with print_limit() as printed:
        try:
            tried = judge(exercise, answer, seed)
            outcome = Outcome(status="solved", lines=(tried,), **about(exercise, seed))
        except Rejected as no:
            outcome = not_accepted(exercise, answer, seed, no)
    return outcome, printed.shown


def outcome_in_copy(exercise: Exercise, answer: Any, seed: int) -> tuple[Outcome, str]:
    """The same in a copy of this process, which no interrupt reaches: the answer raised it."""
    try:
        return outcome_of(exercise, answer, seed)
    except Exception:
        raise
    except BaseException as error:
        no = Rejected("crashed", f"It raised {type(error).__name__}, which ends a program.")
        return not_accepted(exercise, answer, seed, no), ""


def about(exercise: Exercise, seed: int | None) -> dict[str, Any]:
    """What every Outcome of an exercise says."""
    return {
        "exercise": exercise.id,
        "title": exercise.title,
        "kind": exercise.kind,
        "seed": seed,
    }


def not_accepted(exercise: Exercise, answer: Any, seed: int | None, no: Rejected) -> Outcome:
    """The Outcome for an answer that was Rejected."""
    untouched = is_starter(exercise, answer)
    broken = no.reason in BROKEN and not untouched
    lines, picture = list(no.lines), no.picture
    if no.run is not None:
        lines += describe(no.run, exercise)
        picture = draw(no.run, exercise)
    if untouched:
        lines = [first_sentence(exercise.task), *lines]
    return Outcome(
        status="broken" if broken else "not yet",
        reason=no.reason,
        untouched=untouched,
        lines=tuple(lines),
        code=no.code,
        picture=picture,
        film="" if untouched or seed is None else film_of(exercise, answer, seed, no.reason),
        **about(exercise, seed),
    )


def judge(exercise: Exercise, answer: Any, seed: int) -> str:
    """Say what was tried, or raise Rejected, whatever the answer raises, prints or waits for."""
    if is_starter(exercise, answer):  # what it lacks shows in small arrays
        exercise = dataclasses.replace(exercise, large=None)
    try:
        tried = CHECKS[exercise.kind](exercise, answer, seed)
        reject_over_goal(exercise, answer)
        return tried
    except TooMuch:
        raise Rejected("flood", "It was stopped after a million characters.") from None
    except TooLong as long:
        says = too_long(exercise, long)
        raise Rejected("timeout", says) from None
    except TooSlow as slow:
        says = f"{slow.done} runs with small sizes took {slow.seconds:.0f} seconds together."
        raise Rejected("too_slow", says) from None
    except SystemExit as error:
        raise Rejected(
            "crashed", f"It ended the program: SystemExit({shown(error, str)})."
        ) from None
    except KernelError as error:
        raise crashed(engines.Stopped(error), getattr(answer, "py_func", answer)) from None


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", text.strip(), maxsplit=1)[0]


def check_triton(exercise: TritonExercise, answer: Any, seed: int) -> str:
    """A Triton kernel, on the engine that names mistakes a GPU would make silently."""
    failure = triton_kernels.run(exercise, answer, seed)
    if failure:
        reason, message, code = failure
        raise Rejected(reason, message, code=code)
    says = "Every shape gave the right values, and no program got in another's way."
    return says + triton_kernels.what_was_left_out()


CHECKS: dict[str, Callable[[Any, Any, int], str]] = {
    "numba": check_numba,
    "triton": check_triton,
    "cuda_c": check_cuda_c,
    "cpp": check_cpp,
    "function": check_function,
}


def is_starter(exercise: Exercise, answer: Any) -> bool:
    """Whether the answer is the starter as given. Texts are compared; nothing is executed."""
    if exercise.in_file:
        try:
            return squeezed(Path(answer).read_text()) == squeezed(exercise.starter)
        except (OSError, TypeError, ValueError):
            return False
    try:
        text = textwrap.dedent(inspect.getsource(getattr(answer, "py_func", answer)))
        return body_of(text) == body_of(exercise.starter)
    except (OSError, TypeError, ValueError, SyntaxError, StopIteration):
        return False


def squeezed(text: str) -> str:
    """Text without `%%` lines and differences in spacing."""
    return " ".join(
        " ".join(line.split()) for line in text.splitlines() if not line.startswith("%%")
    ).strip()


def body_of(source: str) -> str:
    """What the first function of a source does: a syntax tree without its name and line numbers."""
    function = next(
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
    )
    return ast.dump(function.args) + "".join(map(ast.dump, function.body))
