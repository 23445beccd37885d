"""What is tried: an exercise's inputs and launches, for kernels in Python and in CUDA C."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course.checking import engines, specials
from course.checking.evidence import plain
from course.checking.model import Exercise, Launch

#: (shape, launch, arguments, expected)
Trial = tuple[tuple, Launch, dict[str, Any], np.ndarray]
TRACED_THREADS = 512  # launches up to this size are searched for races
PROBES = 2  # launches in which it is counted who does the work


def probes(exercise: Exercise) -> list[tuple[tuple, Launch]]:
    """(shape, launch) of the largest fixed shape's launches that are small enough to trace."""
    shapes = [exercise.probe] if exercise.probe else exercise.shapes
    for shape in sorted(shapes, key=np.prod, reverse=True):
        launches = exercise.launches_for(shape)
        small = [one for one in launches if np.prod(one.threads) <= TRACED_THREADS]
        if small:
            small.sort(key=lambda one: np.prod(one.threads), reverse=True)
            return [(shape, launch) for launch in small[:PROBES]]
    return []


def cases(exercise: Exercise, seed: int) -> Iterator[Trial]:
    """(shape, launch, arguments, expected) for every size and launch; the seed draws the inputs."""
    rng = np.random.default_rng(seed)
    for shape in exercise.all_shapes(rng):
        for launch in exercise.launches_for(shape):
            arguments = exercise.inputs(rng, shape)
            yield shape, launch, arguments, as_output(exercise, arguments)


def special_trials(exercise: Exercise, seed: int) -> list[Trial]:
    """Launches with inputs of special numbers, in a list."""
    if exercise.specials == "finite":
        return []
    last = exercise.shapes[-1]
    trials = []
    for shape, launch in ((last, exercise.launches_for(last)[0]), *probes(exercise)[:1]):
        with np.errstate(all="ignore"):
            for arguments in specials.special_inputs(exercise, shape, seed):
                trials.append((shape, launch, arguments, as_output(exercise, arguments)))
    return trials


def scaled_trials(exercise: Exercise, seed: int) -> list[Trial]:
    """Launches with an input of very small or of very large numbers, in a list."""
    shape = exercise.shapes[-1]
    launch = exercise.launches_for(shape)[0]
    inputs = specials.scaled_inputs(exercise, shape, seed)
    return [(shape, launch, arguments, as_output(exercise, arguments)) for arguments in inputs]


def large_trials(exercise: Exercise, seed: int) -> list[Trial]:
    """Launches with arrays that are larger than what 16 bits can count.

    Of each shape one has a thread for everything, or else the most threads, and, where others have
    far fewer, one the fewest: then each thread has more to do than a limit that somebody wrote in.
    """
    trials = []
    for shape in exercise.large_shapes:
        launches = exercise.launches_for(shape)
        launches = sorted(launches, key=lambda one: np.prod(one.threads))
        enough = [one for one in launches if has_enough(one, exercise.extents(shape))]
        fewest, most = launches[0], enough[0] if enough else launches[-1]
        chosen = [most]
        if 4 * np.prod(fewest.threads) <= np.prod(most.threads):
            chosen.append(fewest)
        arguments = exercise.inputs(np.random.default_rng(seed), shape)
        expected = as_output(exercise, arguments)
        trials += [(shape, launch, arguments, expected) for launch in chosen]
    return trials


def has_enough(launch: Launch, extents: Sequence[int]) -> bool:
    """Whether a launch has as many threads along x, y and z."""
    return all(n >= needed for n, needed in zip(launch.threads, extents, strict=True))


def probe_trials(exercise: Exercise) -> list[Trial]:
    """The probes with inputs that are always the same."""
    trials = []
    for shape, launch in probes(exercise):
        arguments = exercise.inputs(np.random.default_rng(0), shape)
        trials.append((shape, launch, arguments, as_output(exercise, arguments)))
    return trials


def as_output(exercise: Exercise, arguments: dict[str, Any]) -> np.ndarray:
    """What the output should be after a launch, in the output's type."""
    expected = np.asarray(exercise.reference(**plain(arguments)))
    output = arguments[engines.output_name(arguments)]
    dtype = output.dtype if hasattr(output, "dtype") else output.array.dtype
    with np.errstate(over="ignore"):  # beyond the type's largest number lies its infinity
        return expected.astype(dtype)
