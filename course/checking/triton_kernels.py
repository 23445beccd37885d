"""Exercises whose answer is a Triton kernel: run on the engine without a GPU, which sees mistakes.

With a GPU the check runs in a process of its own, on the CPU: there races between programs, values
that nobody wrote and accesses outside of a tensor are found, and harm nothing.
"""

import ast
import inspect
import itertools
import json
import linecache
import sys
import textwrap
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from course.checking import by_pattern, specials, triton_front
from course.checking.diagnose import FAR_FROM_1
from course.checking.limits import time_limit
from course.checking.model import Exercise, InOut, Out
from utils import has_gpu
from utils.check.comparison import random_poison
from utils.cpu.triton import IN_STEP, KernelMistake, taking_turns, tensor_core_dots
from utils.cpu.triton.launches import LAUNCH
from utils.engine import FORCE_CPU
from utils.files import scratch_folder
from utils.tools import process

#: (reason, message, piece of code)
Problem = tuple[str, str, str]
SECONDS = 5  # of CPU time, for one launch
CHILD_SECONDS = 600  # by the clock, on a busy computer
ORDERS = (IN_STEP, 0)  # in which programs that use atomic operations take turns
SHOWN = 300  # characters of a compiler's message
FILE = "<the learner's kernel>"  # in tracebacks
LARGE = 1e9  # what outputs of floats hold before the launch, where it is not NaN
#: The engine's kinds of mistakes -> the reasons of ours
REASON = {
    "outside": "out_of_bounds",
    "undefined": "uninitialized",
    "race": "race",
    "overflow": "overflow",
    "deadlock": "timeout",
    "assertion": "crashed",
}


class InputChanged(Exception):
    """A kernel wrote to an array that it should only read: its name."""


@dataclass(frozen=True, kw_only=True)
class TritonExercise(Exercise):
    """An exercise whose answer is a kernel of `@triton.jit`.

    `inputs(rng, shape)` gives the arguments by name in the kernel's order but for the last, the
    size of a block (tl.constexpr), which `blocks` holds: each shape is tried with one of them.
    `grid(shape, block)` says how many programs are launched. rounds: whether `tl.dot` cuts to
    TF32. call: the name of what a right answer must call, in itself or in a kernel that it uses.
    """

    kind: str = "triton"
    blocks: tuple = ()
    grid: Callable
    rounds: bool = False
    call: str = ""


def name_kernels_as_numba_does() -> None:
    """Triton's kernels get `py_func`, their Python function, as Numba's have it."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    for kind in (InterpretedFunction, JITFunction):
        if not hasattr(kind, "py_func"):
            kind.py_func = property(lambda kernel: kernel.fn)


def run(exercise: TritonExercise, answer: Any, seed: int) -> Problem | None:
    """None where the answer is right, else (reason, message, piece of code)."""
    function = getattr(answer, "fn", None)
    if not inspect.isfunction(function) or not hasattr(answer, "run"):
        return "not_a_kernel", _what_it_is(answer), ""
    wanted = parameters_of(exercise.solution)
    has = list(inspect.signature(function).parameters)
    if len(has) != len(wanted):
        names = f"`{function.__name__}({', '.join(has)})`"
        return "wrong_arity", f"{names} is launched with ({', '.join(wanted)}).", ""
    if has_gpu():
        return _in_child(exercise.id, function, seed)
    return judge(exercise, answer, seed)


def what_was_left_out() -> str:
    """A sentence on what a check could not ask, or nothing."""
    if has_gpu() or triton_front.compiler.ready():
        return ""
    return " Whether a GPU could run it was not asked: Triton's compiler does not start here."


def _what_it_is(answer: Any) -> str:
    if inspect.isfunction(answer):
        return f"`{answer.__name__}` is a plain Python function: write `@triton.jit` above it."
    if answer is None or answer is Ellipsis:
        return f"check() got `{answer}`, not a kernel. Did the cell that defines it run?"
    return f"check() got an object of type {type(answer).__name__}; it takes the kernel itself."


def judge(exercise: TritonExercise, answer: Any, seed: int) -> Problem | None:
    """Launch in every shape on the engine: None, or (reason, message, piece of code)."""
    rng = np.random.default_rng(seed)
    shapes = exercise.all_shapes(rng)
    for shape, block in zip(shapes, itertools.cycle(exercise.blocks)):
        problem = one_launch(exercise, answer, shape, block, exercise.inputs(rng, shape), rng)
        if problem:
            return with_sizes(exercise, shape, block, problem)
    last, block = exercise.shapes[-1], exercise.blocks[-1]
    for inputs in specials.scaled_inputs(exercise, last, seed):
        problem = one_launch(exercise, answer, last, block, inputs, rng, scaled=True)
        if problem:
            reason, says, code = problem
            says = f"{says.rstrip('.')}. {FAR_FROM_1}"
            return with_sizes(exercise, last, block, (reason, says, code))
    for shape in exercise.large_shapes:
        problem = one_launch(exercise, answer, shape, block, exercise.inputs(rng, shape), rng)
        if problem:
            found, says, code = problem
            reason = found if found == "too_much_traffic" else "only_small"
            return with_sizes(exercise, shape, block, (reason, says, code))
    return without_call(exercise, answer)


def without_call(exercise: TritonExercise, answer: Any) -> Problem | None:
    """(reason, message, "") where a right answer leaves out the means of its task, or None."""
    if not exercise.call:
        return None
    nodes = ast.walk(ast.parse(whole_source(answer.fn)))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    called = {function.attr for function in calls if isinstance(function, ast.Attribute)}
    if exercise.call in called:
        return None
    return "other_means", f"`tl.{exercise.call}` is not called.", ""


def parameters_of(kernel: Any) -> list[str]:
    """The names of a kernel's parameters, in order."""
    return list(inspect.signature(kernel.fn).parameters)


def with_sizes(exercise: TritonExercise, shape: tuple, block: int, problem: Problem) -> Problem:
    """The problem of a launch, its message with the sizes before it."""
    reason, says, code = problem
    name = parameters_of(exercise.solution)[-1]
    return reason, f"With {shape} and {name} = {block}: {says}", code


def one_launch(
    exercise: TritonExercise,
    answer: Any,
    shape: tuple,
    block: int,
    inputs: dict,
    rng: np.random.Generator,
    scaled: bool = False,
) -> Problem | None:
    """None, or (reason, message, piece of code) of one launch.

    scaled: whether one of the inputs holds very small or very large numbers.
    """
    names = parameters_of(exercise.solution)
    arguments = {**inputs, names[-1]: block}
    grid = exercise.grid(shape, block)
    least = 0.0 if scaled else 1.0
    problem = tried(exercise, answer, grid, arguments, rng, least)
    if not problem or problem[0] in ("crashed", "wrong_value"):
        return not_compiled(answer.fn, arguments) or problem
    return problem


def not_compiled(function: FunctionType, arguments: dict) -> Problem | None:
    """(reason, message, line) where Triton's compiler refuses this launch, or None."""
    refusal = triton_front.refused(function, arguments)
    if refusal is None:
        return None
    message, number = refusal
    message = " ".join(message.split())
    if len(message) > SHOWN:
        message = message[:SHOWN] + " …"
    line = linecache.getline(function.__code__.co_filename, number).strip() if number else ""
    says = f"a GPU cannot run it. Triton's compiler says: {message}"
    if NOT_A_CONSTANT in message and "make_tensor_descriptor" in line:
        says = LAST_STRIDE
    return "does_not_compile", says, f"line {number}: {line}" if line else ""


def tried(
    exercise: TritonExercise,
    answer: Any,
    grid: tuple,
    arguments: dict,
    rng: np.random.Generator,
    least: float = 1.0,
) -> Problem | None:
    """None, or (reason, message, piece of code) of one launch on the engine."""
    try:
        with time_limit(SECONDS):
            got, before, work = launched(exercise, answer, grid, arguments, rng)
        problem = different(exercise, arguments, got, before, least)
        if problem and right_on_zeros(exercise, answer, grid, arguments, rng):
            return "reads_output", ON_ZEROS, ""
        if not problem and LAUNCH.atomics:
            problem = interrupted(exercise, answer, grid, arguments, rng)
    except InputChanged as found:
        return "modifies_input", f"it writes to `{found}`.", ""
    except KernelMistake as found:
        line, _, says = str(found).partition("\n")
        return REASON[found.kind], says, line
    except Exception as error:
        return "crashed", _shortened(error), _line_of(error, answer)
    problem = problem or lazy(exercise, grid, arguments, work, rng)
    return (*problem, "") if problem else None


NOT_A_CONSTANT = "Did you forget to add @triton.jit"  # what Triton says where it needs a constant
LAST_STRIDE = (
    "a GPU cannot run it. The last of a descriptor's strides must be the number 1: neighbours in a"
    " row lie together. Describe the matrix as it lies, and turn the block that comes."
)
ON_ZEROS = (
    "it would be right if the output held zeros before the launch, and it holds anything there: "
    "store what you computed, and do not add it to what you find."
)


def right_on_zeros(
    exercise: TritonExercise, answer: Any, grid: tuple, arguments: dict, rng: np.random.Generator
) -> bool:
    """Whether an output that holds zeros, and not anything, would come out right."""
    zeros = {
        name: InOut(np.zeros(value.shape, value.dtype))
        for name, value in arguments.items()
        if isinstance(value, Out)
    }
    if not zeros:
        return False
    with time_limit(SECONDS):
        got, before, _ = launched(exercise, answer, grid, arguments | zeros, rng)
    return different(exercise, arguments, got, before) is None


INTERRUPTED = (
    "right when one program runs after the other, and wrong when another one comes between two of"
    " its atomic operations, which are each a step of its own: "
)


def interrupted(
    exercise: TritonExercise, answer: Any, grid: tuple, arguments: dict, rng: np.random.Generator
) -> tuple[str, str] | None:
    """(reason, message) where it goes wrong because programs take turns, or None."""
    for order in ORDERS:
        with time_limit(SECONDS), taking_turns(order):
            got, before, _ = launched(exercise, answer, grid, arguments, rng)
        problem = different(exercise, arguments, got, before)
        if problem:
            return "race", INTERRUPTED + problem[1]
    return None


def launched(
    exercise: TritonExercise, kernel: Any, grid: tuple, arguments: dict, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """(the output, what it held before, elements that each program touched) of a launch."""
    import torch

    tensors: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, InOut | Out):
            before = value.array if isinstance(value, InOut) else poisoned(value, rng)
            output = tensors[name] = torch.from_numpy(before.copy())
        else:
            is_array = isinstance(value, np.ndarray)
            tensors[name] = torch.from_numpy(value.copy()) if is_array else value
    with tensor_core_dots() if exercise.rounds else nullcontext():
        kernel[grid](*tensors.values())
    changed = [
        name
        for name, value in arguments.items()
        if isinstance(value, np.ndarray)
        and not np.array_equal(tensors[name].numpy(), value, equal_nan=value.dtype.kind == "f")
    ]
    if changed:
        raise InputChanged(changed[0])
    return output.numpy(), before, list(LAUNCH.work.values())


def poisoned(output: Out, rng: np.random.Generator) -> np.ndarray:
    """What an output holds before the launch: nothing that a kernel would compute."""
    if np.dtype(output.dtype).kind == "f" and rng.random() < 0.5:
        return np.full(output.shape, LARGE, output.dtype)
    return random_poison(output.shape, output.dtype, rng)


def different(
    exercise: TritonExercise,
    arguments: dict,
    got: np.ndarray,
    before: np.ndarray,
    least: float = 1.0,
) -> tuple[str, str] | None:
    """(reason, message) where the output is not the reference, or None.

    least: the terms of a sum may be as large as that, whatever is left of them.
    """
    plain = {name: getattr(value, "array", value) for name, value in arguments.items()}
    expected = np.asarray(exercise.reference(**plain))
    scale = max(least, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
    allowed: dict[str, Any] = {
        "rtol": exercise.rtol,
        "atol": exercise.rtol * scale,
        "equal_nan": True,
    }
    bad = ~np.isclose(got.astype(float), expected, **allowed)
    bad |= np.isnan(expected) & same_bits(got, before)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    place = at[0] if len(at) == 1 else at
    many = f"{np.count_nonzero(bad)} of {bad.size} values are wrong; the first is at {place}: "
    if same_bits(got, before)[at]:
        says = many + f"nothing was written there, {expected[at]:.6g} belongs there"
        return "unwritten", says
    says = many + f"{got[at]:.6g} instead of {expected[at]:.6g}"
    for guess in exercise.hypotheses:
        guessed = np.asarray(guess.output(**plain))
        if np.isclose(got.astype(float), guessed, **allowed).all():
            return guess.reason, f"{says}. {guess.says}"
    seen = by_pattern.of_one(got.astype(float), expected.astype(float), bad, exercise)
    return "wrong_value", f"{says}. {seen}" if seen else says


def same_bits(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of each element whether it is the same in two arrays, NaN too."""
    bits = f"u{one.itemsize}"
    same: np.ndarray = one.view(bits) == other.view(bits)
    return same


def lazy(
    exercise: TritonExercise,
    grid: tuple,
    arguments: dict,
    work: list[int],
    rng: np.random.Generator,
) -> tuple[str, str] | None:
    """(reason, message) where programs do far more than in the solution, or None.

    work: elements that each program touched. Where all of them together touch more, some are
    touched too often; otherwise one program does what others should.
    """
    _, _, ours = launched(exercise, exercise.solution, grid, arguments, rng)
    most, enough = max(work, default=0), max(ours, default=0)
    if most <= exercise.effort * enough or int(np.prod(grid)) == 1:
        return None
    if sum(work) > exercise.effort * sum(ours):
        says = (
            f"all programs together touch {sum(work):,} elements; {sum(ours):,} are enough. Is"
            " something loaded or stored twice?"
        )
        return "too_much_traffic", says
    return "one_thread", f"the busiest program touches {most:,} elements; {enough:,} are enough."


NOT_ALIGNED = "must be 16-byte aligned"  # what Triton's interpreter says
AT_AN_ELEMENT = (
    "a descriptor's block begins at the *element* that is asked for: is that the program's number"
    " times the block's size? (The engine takes multiples of 16 bytes only.)"
)


def _shortened(error: Exception) -> str:
    cause = error.__cause__ or error
    if NOT_ALIGNED in str(cause):
        return AT_AN_ELEMENT
    return (
        f"{type(cause).__name__}: {str(cause).strip().splitlines()[0][:300] if str(cause) else ''}"
    )


def _line_of(error: Exception, answer: Any) -> str:
    """The line of the kernel that an error came from."""
    file = answer.fn.__code__.co_filename
    found = ""
    for frame, number in traceback.walk_tb((error.__cause__ or error).__traceback__):
        if frame.f_code.co_filename == file:
            found = f"line {number}: {linecache.getline(file, number).strip()}"
    return found


# ---- with a GPU: in a process of its own


def kernel_of(source: str) -> Any:
    """The kernel that a source defines, for this process's engine."""
    import torch
    import triton
    import triton.language as tl

    names = {"torch": torch, "triton": triton, "tl": tl}
    before = set(names)
    linecache.cache[FILE] = len(source), None, source.splitlines(True), FILE
    exec(compile(source, FILE, "exec"), names)
    defined = [
        value for name, value in names.items() if name not in before and hasattr(value, "fn")
    ]
    return defined[-1]


def whole_source(function: FunctionType) -> str:
    """The source of a kernel, behind those of the kernels and numbers that it uses."""
    parts, known = [], {function.__name__}

    def add(function: FunctionType) -> None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) else ""
            value = inspect.getclosurevars(function).globals.get(name)
            if not name or name in known or value is None:
                continue
            known.add(name)
            if inspect.isfunction(getattr(value, "fn", None)):
                add(value.fn)
            elif isinstance(value, int | float):
                parts.append(f"{name} = {value!r}\n")
            elif isinstance(getattr(value, "value", None), int | float):
                parts.append(f"{name} = tl.constexpr({value.value!r})\n")
        parts.append(textwrap.dedent(inspect.getsource(function)))

    add(function)
    return "\n\n".join(parts)


def _in_child(id: str, function: FunctionType, seed: int) -> Problem | None:
    request = {"id": id, "source": whole_source(function), "seed": seed}
    with scratch_folder() as folder:
        (folder / "request.json").write_text(json.dumps(request))
        command = [sys.executable, "-m", "course.exercises.triton_child", str(folder)]
        environment = process.python_environment(**{FORCE_CPU: "1"})
        try:
            done = process.run(command, timeout=CHILD_SECONDS, env=environment)
        except process.Timeout:
            return "timeout", f"It was stopped after {CHILD_SECONDS} seconds.", ""
        answer = folder / "answer.json"
        if not answer.exists():
            return "crashed", done.output.strip()[-800:], ""
        found = json.loads(answer.read_text())
        if not found:
            return None
        reason, message, code = found
        return reason, message, code
