"""What is tried: an exercise's inputs and launches, for kernels in Python and in CUDA C."""

import numpy as np

from course.checking import engines, specials
from course.checking.evidence import plain

TRACED_THREADS = 512  # launches up to this size are searched for races
PROBES = 2  # launches in which it is counted who does the work


def probes(exercise):
    """(shape, launch) of the largest fixed shape's launches that are small enough to trace."""
    shapes = [exercise.probe] if exercise.probe else exercise.shapes
    for shape in sorted(shapes, key=np.prod, reverse=True):
        launches = exercise.launches_for(shape)
        small = [one for one in launches if np.prod(one.threads) <= TRACED_THREADS]
        if small:
            small.sort(key=lambda one: np.prod(one.threads), reverse=True)
            return [(shape, launch) for launch in small[:PROBES]]
    return []


def cases(exercise, seed):
    """(shape, launch, arguments, expected) for every size and launch; the seed draws the inputs."""
    rng = np.random.default_rng(seed)
    for shape in exercise.all_shapes(rng):
        for launch in exercise.launches_for(shape):
            arguments = exercise.inputs(rng, shape)
            yield shape, launch, arguments, as_output(exercise, arguments)


def special_trials(exercise, seed):
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


def large_trial(exercise, seed):
    """Launches with arrays that are larger than what 16 bits can count.

    One has the most threads and, where others have far fewer, one the fewest: then each thread has
    more to do than a limit that somebody wrote in.
    """
    if not exercise.large:
        return []
    launches = exercise.launches_for(exercise.large)
    launches = sorted(launches, key=lambda one: np.prod(one.threads))
    fewest, most = launches[0], launches[-1]
    chosen = [most]
    if 4 * np.prod(fewest.threads) <= np.prod(most.threads):
        chosen.append(fewest)
    arguments = exercise.inputs(np.random.default_rng(seed), exercise.large)
    expected = as_output(exercise, arguments)
    return [(exercise.large, launch, arguments, expected) for launch in chosen]


def probe_trials(exercise):
    """The probes with inputs that are always the same."""
    trials = []
    for shape, launch in probes(exercise):
        arguments = exercise.inputs(np.random.default_rng(0), shape)
        trials.append((shape, launch, arguments, as_output(exercise, arguments)))
    return trials


def as_output(exercise, arguments):
    """What the output should be after a launch, in the output's type."""
    expected = np.asarray(exercise.reference(**plain(arguments)))
    output = arguments[engines.output_name(arguments)]
    dtype = output.dtype if hasattr(output, "dtype") else output.array.dtype
    return expected.astype(dtype)
