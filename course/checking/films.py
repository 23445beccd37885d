"""Watch it go wrong: the film of an answer whose mistake has a place in time."""

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from course.checking import engines, limits
from course.checking.model import Exercise, InOut, Launch, Out
from course.checking.trials import TRACED_THREADS, cases
from course.checking.triton_kernels import TritonExercise
from utils import cuda_c, has_gpu
from utils.cpu import numba_cuda
from utils.tracer import Trace, trace

#: Reasons that happen at one step of a launch; what leaves its array ends the record of CUDA C
IN_TIME = {
    "numba": ("race", "barrier", "uninitialized", "out_of_bounds"),
    "cuda_c": ("race", "barrier", "uninitialized"),
    "triton": ("race", "out_of_bounds"),
}
WITHOUT_GPU = "cuda_c", "triton"  # what is traced where no GPU is
LANES = 32  # to which the elements of a Triton program are dealt
SUMMARY = "Watch it go wrong"
SECONDS = 4  # of CPU time, for launches that go well, until one goes wrong
MOST_STEPS = 300


def film_of(exercise: Exercise, answer: Any, seed: int, reason: str) -> str:
    """HTML that unfolds to the film, stopped where it goes wrong; "" where there is none.

    The launches that the check made are made again, the smallest first, their threads in a drawn
    order: so a race shows what it can do.
    """
    if reason not in IN_TIME.get(exercise.kind, ()) or exercise.kind in WITHOUT_GPU and has_gpu():
        return ""
    if isinstance(exercise, TritonExercise):
        return of_triton(exercise, answer, seed)
    try:
        kernel = kernel_of(exercise, answer)
    except Exception:  # the check has told why it is none
        return ""
    small = [case for case in cases(exercise, seed) if np.prod(case[1].threads) <= TRACED_THREADS]
    small.sort(key=lambda case: np.prod(case[1].threads))

    def made_again(launch: Launch, arrays: Iterable) -> Trace:
        with numba_cuda.schedule(seed if reason == "race" else None):
            return trace(kernel, launch.grid, launch.block, *arrays, seconds=limits.EACH_SECONDS)

    def launches() -> Iterator[Callable[[], Trace]]:
        for number, (_, launch, arguments, expected) in enumerate(small):
            rng = np.random.default_rng((seed, number))
            arrays = engines.host_arrays(arguments, expected, rng)
            yield functools.partial(made_again, launch, arrays.values())

    return first_film(launches())


def of_triton(exercise: TritonExercise, answer: Any, seed: int) -> str:
    """The film of a Triton kernel in the first of the check's launches that goes wrong."""
    rng = np.random.default_rng(seed)
    shapes = exercise.all_shapes(rng)

    def launches() -> Iterator[Callable[[], Trace]]:
        for shape, block in zip(shapes, itertools.cycle(exercise.blocks)):
            given = [tensor_of(value) for value in exercise.inputs(rng, shape).values()]
            grid = exercise.grid(shape, block)
            yield functools.partial(trace, answer, grid, LANES, *given, block)

    return first_film(launches())


def first_film(launches: Iterable[Callable[[], Trace]]) -> str:
    """HTML that unfolds to the first of some launches that goes wrong; "" where none does in time.

    launches: functions, each of which makes one and returns its trace.
    """
    until = time.process_time() + SECONDS
    for launch in launches:
        try:
            player = launch().play(most=MOST_STEPS, wrong=True)
        except Exception:  # the check has told what stops it
            return ""
        if player.films[0].stop is not None:
            shown: str = player.folded(SUMMARY)
            return shown
        if time.process_time() > until:
            break
    return ""


def tensor_of(value: Any) -> Any:
    """An argument as a launch takes it."""
    import torch

    array = value.array if isinstance(value, InOut) else value
    if isinstance(value, Out):
        array = np.zeros(value.shape, value.dtype)
    return torch.from_numpy(array.copy()) if isinstance(array, np.ndarray) else array


def kernel_of(exercise: Exercise, answer: Any) -> Any:
    """What is traced: the answer itself, or the kernel in its file."""
    if exercise.kind == "numba":
        return answer
    return getattr(cuda_c.load(answer, check=True), exercise.kernel_name)
