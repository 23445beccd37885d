"""What a solved kernel takes at a GPU's size: measured on a GPU, elsewhere estimated.

A learner without a GPU gets a number, a reason and something to compare it with. An estimate
refuses nothing: what an exercise demands of memory it counts (`Exercise.demand`).
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checking.cuda_c_files import solution_file
from course.checking.model import Exercise, Out, Speed, cover
from course.checking.rejected import Rejected
from course.checking.triton_kernels import TritonExercise
from utils import compare, cuda_c, has_gpu, pick
from utils.estimate import Blank, Estimate, Launch, Unknown, estimate
from utils.estimate.gpus import with_article
from utils.estimate.model import WORDS
from utils.quantities import format_ms

TRITON_THREADS = 128  # of a program, unless a launch says how many warps
ALIKE = 1.1  # of two times: what lies closer is told as equally long
ANSWER, SOLUTION = "yours", "the solution here"


@dataclass(frozen=True)
class Report:
    """What is told of a solved kernel's time.

    lines: sentences. estimated: whether they are estimates, which are marked as such.
    """

    lines: tuple
    estimated: bool


def speed_told(exercise: Exercise) -> Speed:
    """At which size an exercise's time is told. TypeError of one that does not say so."""
    if exercise.speed is None:
        raise TypeError(f"{exercise.id} says no size at which its time is told")
    return exercise.speed


def speed_of(exercise: Exercise, answer: Any) -> Report | None:
    """The Report of an answer that was accepted; None where there is nothing to tell."""
    if getattr(exercise, "speed", None) is None:
        return None
    try:
        if has_gpu():
            return Report(measured(exercise, answer), estimated=False)
        return Report(sentences(exercise, estimate_of(exercise, answer)), estimated=True)
    except Unknown as unknown:
        return Report((f"There is no estimate of its time: {unknown}.",), estimated=True)


def reject_over_goal(exercise: Exercise, answer: Any) -> None:
    """Reject a right answer whose estimate is longer than the text allows."""
    told_at = getattr(exercise, "speed", None)
    goal = told_at and told_at.goal
    if not goal or answer is exercise.solution:  # which the goal is counted from
        return
    try:
        mine = estimate_of(exercise, answer)
    except Unknown:  # what cannot be estimated is refused by nobody
        return
    if mine.seconds > goal * of_solution(exercise).seconds:
        raise Rejected("over_goal", " ".join(sentences(exercise, mine)))


def measured(exercise: Exercise, answer: Any) -> tuple:
    """Sentences about the times of an answer and of the solution, taken in turn on this GPU."""
    launch = launch_of(exercise, speed_told(exercise).size)
    rivals = {ANSWER: answer, SOLUTION: exercise.solution}
    if exercise.kind == "triton":
        arrays = [tensor_on_device(arg) for arg in launch.args]
        shape: tuple = (launch.grid,)
    else:
        arrays = [on_device(arg) for arg in launch.args]
        shape = launch.grid, launch.block
    works = {
        label: functools.partial(configured(kernel_of(exercise, one), shape), *arrays)
        for label, one in rivals.items()
    }
    taken = compare(works).timings
    mine, ours = (taken[label].median for label in (ANSWER, SOLUTION))
    return (
        f"With {speed_told(exercise).of} your kernel takes {format_ms(mine)} on this GPU"
        f"{beside(mine, ours)}",
    )


def sentences(exercise: Exercise, mine: Estimate) -> tuple:
    """Sentences about an answer's estimate, beside the solution's. Raises Unknown."""
    ours = of_solution(exercise)
    speed = speed_told(exercise)
    where = with_article(speed.gpu)
    first = (
        f"On {where}, with {speed.of}, your kernel would take about "
        f"{format_ms(1e3 * mine.seconds)}{beside(1e3 * mine.seconds, 1e3 * ours.seconds)}"
    )
    why = f"What takes longest is {WORDS[mine.limit]}."
    changes = [
        f"{words.capitalize()} it would take about {format_ms(1e3 * seconds)}."
        for words, seconds in mine.changes().items()
    ]
    how_far = (
        "This is an estimate and not a measurement: nine in ten of such estimates lie within a "
        f"factor of {mine.factor:.1f} of the time that was measured."
    )
    return (first, " ".join([why, *changes]), how_far)


def on_device(arg: Any) -> Any:
    """An argument of a launch on the GPU."""
    from numba import cuda

    if isinstance(arg, Blank):
        return cuda.device_array(arg.shape, arg.dtype)
    return cuda.to_device(arg) if np.ndim(arg) else arg


def tensor_on_device(arg: Any) -> Any:
    """The same for a Triton kernel."""
    import torch

    if isinstance(arg, Blank):
        arg = torch.from_numpy(np.empty(arg.shape, arg.dtype))
    return arg.to(pick(gpu="cuda", cpu="cpu")) if isinstance(arg, torch.Tensor) else arg


def configured(kernel: Any, shape: tuple) -> Any:
    """kernel[grid], or kernel[grid, block]."""
    return kernel[shape if len(shape) > 1 else shape[0]]


def beside(mine: float, ours: float) -> str:
    """The end of the first sentence: how a time compares with the solution's."""
    if max(mine, ours) <= ALIKE * min(mine, ours):
        return ", as long as the solution of this exercise."
    ratio = f"{max(mine, ours) / min(mine, ours):.1f} times"
    if mine > ours:
        return f", {ratio} as long as the solution of this exercise ({format_ms(ours)})."
    return f"; the solution of this exercise takes {ratio} as long ({format_ms(ours)})."


def kernel_of(exercise: Exercise, answer: Any) -> Any:
    """What is launched: a Numba kernel, or the kernel of a CUDA C file."""
    if exercise.kind != "cuda_c":
        return answer
    path = solution_file(exercise) if answer is exercise.solution else answer
    return cuda_c.load(path)[exercise.kernel_name]


@functools.cache
def of_solution(exercise: Exercise) -> Estimate:
    """The estimate for the solution, once in a process."""
    return estimate_of(exercise, exercise.solution)


def estimate_of(exercise: Exercise, answer: Any) -> Estimate:
    """The estimate for an answer at the exercise's GPU size. Raises Unknown."""
    speed = speed_told(exercise)
    kernel = kernel_of(exercise, answer)

    def launch(size: int) -> Launch:
        return launch_of(exercise, size, kernel)

    return estimate(launch, speed.gpu, speed.size, speed.small)


def launch_of(exercise: Exercise, size: int, kernel: Any = None) -> Launch:
    """A launch of a kernel, with the exercise's own inputs, of a size."""
    speed = speed_told(exercise)
    shape = speed.shape(size)
    block = speed.block
    if isinstance(exercise, TritonExercise):
        args = (*map(tensor, inputs_of(exercise, shape).values()), block)
        return Launch(kernel, exercise.grid(shape, block), TRITON_THREADS, args)
    if isinstance(block, tuple):
        launch = cover(exercise.extents(shape), block)[0]
    else:
        launch = exercise.launches_for(shape)[0]
    args = tuple(map(argument, inputs_of(exercise, shape).values()))
    return Launch(kernel, launch.grid, launch.block, args)


def tensor(value: Any) -> Any:
    """An input as an estimate of a Triton kernel takes it."""
    import torch

    value = argument(value)
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


@functools.lru_cache(maxsize=2)
def inputs_of(exercise: Exercise, shape: tuple) -> dict[str, Any]:
    """The exercise's own inputs: the answer and the solution take copies of the same ones."""
    given: dict[str, Any] = exercise.inputs(np.random.default_rng(0), shape)
    return given


def argument(value: Any) -> Any:
    """An input as an estimate takes it: the arrays that a kernel fills are Blank."""
    if isinstance(value, Out):
        return Blank(value.shape, value.dtype)
    value = getattr(value, "array", value)
    return value.copy() if isinstance(value, np.ndarray) else value
