"""What the inputs of a check tell apart: read wrongly, each of them must change the result.

No kernel runs: the reference takes each input as a wrong kernel would have read it, without its
sign, cut to 8 bits, as far as 256 elements. Where no trial of a check then expects something else,
no check rejects a kernel that reads so. The tables name what the text of an exercise leaves out.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
from dataclasses import replace

import numpy as np
import pytest

from course import exercises
from course.checking import drawn, functions, specials, trials
from course.checking.engines import output_name
from course.checking.evidence import agrees, largest, plain
from course.checking.model import InOut, Out

#: Chapters that are being written
NOT_YET = {"attention", "estimates", "language_model"}
KINDS = ("numba", "cuda_c", "triton")
KERNELS = [e for e in exercises.EXERCISES.values() if e.kind in KINDS and e.chapter not in NOT_YET]
A_BYTE, SIXTEEN_BITS = 1 << 8, 1 << 16  # what an index of such a type can count
TINY = 2.0**-14  # the smallest normal number of float16
HUGE = {2: 2.0**8, 4: 2.0**15, 8: 2.0**15}  # bytes of a number -> far above 1


def cut_to(bits):
    """Numbers of which only so many bits are left."""
    return lambda x: (x.astype(np.int64) & (1 << bits) - 1).astype(x.dtype)


def read_as(narrow):
    """Numbers read as ones of a narrower type."""
    return lambda x: x.astype(np.int64).astype(narrow).astype(x.dtype)


#: How a wrong kernel reads an array -> what it then reads
FLOATS = {
    "without its sign": np.abs,
    "0 where it is below 0": lambda x: np.maximum(x, 0),
    "0 where it is above 0": lambda x: np.minimum(x, 0),
    "1 where it is 0": lambda x: np.where(x == 0, x.dtype.type(1), x),
    "0 where it is tiny": lambda x: np.where(np.abs(x) < TINY, x.dtype.type(0), x),
    "cut where it is huge": lambda x: np.clip(x, -HUGE[x.itemsize], HUGE[x.itemsize]),
}
INTEGERS = {
    "3 bits": (3, cut_to(3)),
    "8 bits": (8, cut_to(8)),
    "int8": (8, read_as(np.int8)),
    "int16": (16, read_as(np.int16)),
}
NUMBERS = {
    "without its sign": abs,
    "0 where it is below 0": lambda x: type(x)(max(x, 0)),
    "1 at most": lambda x: type(x)(min(x, 1)),
}


def ways_to_misread(value):
    """(name, change) of each way to read an input that is no output alone."""
    array = getattr(value, "array", value)
    if isinstance(value, float | np.floating):
        return NUMBERS
    if not isinstance(array, np.ndarray) or isinstance(value, Out):
        return {}
    if array.dtype.kind == "f":
        return FLOATS
    bits = 8 * array.itemsize
    return {name: change for name, (most, change) in INTEGERS.items() if most < bits}


class Trial:
    """The arguments of a launch, and what is expected of it: numbers of this size count."""

    def __init__(self, exercise, arguments, scaled=False):
        self.exercise, self.arguments, self.scaled = exercise, arguments, scaled
        self.expected = result(exercise, arguments)

    def tells(self, **instead):
        """Whether a launch that reads these instead gives something else."""
        try:
            got = result(self.exercise, self.arguments | instead)
        except (IndexError, ValueError):
            return True  # an index that leads out of an array
        expected = self.expected
        if got.shape != expected.shape:
            return True
        if self.exercise.kind == "triton":
            size = largest(self) if self.scaled else max(1.0, largest(self))
            agree = np.isclose(got, expected, self.exercise.rtol, self.exercise.rtol * size)
        else:
            agree = agrees(got, expected, self.exercise, largest(self) if self.scaled else 1)
        if expected.dtype.kind == "f":
            agree |= np.isnan(got) & np.isnan(expected)
        return not agree.all()


def result(exercise, arguments):
    """What the reference gives, in the output's type."""
    with np.errstate(all="ignore"):
        if exercise.kind == "triton":
            arguments = arguments | {"block": exercise.blocks[-1]}
            given = plain(arguments).values()
            return np.asarray(exercise.reference(*given))
        return trials.as_output(exercise, arguments)


def trials_of(exercise, seed=0):
    """What a check tries, in a list."""
    rng = np.random.default_rng(seed)
    shapes = (*exercise.all_shapes(rng), *exercise.large_shapes)
    last = exercise.shapes[-1]
    tried = [exercise.inputs(rng, shape) for shape in shapes]
    if exercise.kind != "triton":
        tried += [arguments for _, _, arguments, _ in trials.special_trials(exercise, seed)]
    scaled = specials.scaled_inputs(exercise, last, seed)
    return [
        *(Trial(exercise, arguments) for arguments in tried),
        *(Trial(exercise, arguments, scaled=True) for arguments in scaled),
    ]


def changed(value, change):
    """An argument whose numbers are others."""
    return InOut(change(value.array)) if isinstance(value, InOut) else change(value)


def array_of(value):
    return getattr(value, "array", value)


def is_looked_at(name, tried):
    """Whether the reference's result depends on an input: else the input follows from others."""
    return any(
        trial.tells(**{name: changed(trial.arguments[name], np.ones_like)})
        for trial in tried
        if array_of(trial.arguments[name]).size
    )


def misread(exercise, tried):
    """ "input: how" of each way to misread an input that no trial tells."""
    for name, value in tried[0].arguments.items():
        if name in exercise.workspace:
            continue
        ways = ways_to_misread(value)
        looked_at = not ways or np.isscalar(value) or is_looked_at(name, tried)
        for how, change in ways.items():
            others = ((t, changed(t.arguments[name], change)) for t in tried)
            if looked_at:
                told = any(trial.tells(**{name: other}) for trial, other in others)
            else:
                told = any((array_of(o) != array_of(t.arguments[name])).any() for t, o in others)
            if not told:
                yield f"{name}: {how}"


def short(exercise, tried, most):
    """ "array, axis" of each axis that the trials leave open, and of which none needs more."""
    for name, value in tried[0].arguments.items():
        if name in exercise.workspace or not hasattr(array_of(value), "shape"):
            continue
        for axis in range(len(array_of(value).shape)):
            lengths = {array_of(trial.arguments[name]).shape[axis] for trial in tried}
            if len(lengths) > 1 and not needs_more(name, axis, tried, most):
                yield f"{name}, axis {axis}"


def needs_more(name, axis, tried, most):
    """Whether a trial is wrong for who reads or writes so many elements along an axis."""
    looked_at = isinstance(tried[0].arguments[name], Out) or is_looked_at(name, tried)
    for trial in tried:
        value = trial.arguments[name]
        if array_of(value).shape[axis] <= most:
            continue
        if isinstance(value, Out) or name == output_name(trial.arguments) or not looked_at:
            return True
        if trial.tells(**{name: changed(value, without_the_rest(axis, most))}):
            return True
    return False


def without_the_rest(axis, most):
    """What leaves zeros beyond so many elements along an axis."""

    def change(array):
        rest = array.copy()
        np.moveaxis(rest, axis, 0)[most:] = 0
        return rest

    return change


#: Why no trial tells a misread input, of whom: "exercise input: how"
UNTOLD = {
    "it counts processors, or says how many times faster": (
        "meet_the_gpu.amdahl processors: without its sign",
        "meet_the_gpu.amdahl processors: 0 where it is below 0",
        "meet_the_gpu.amdahl processors: 1 where it is 0",
        "meet_the_gpu.amdahl wanted: without its sign",
        "meet_the_gpu.amdahl wanted: 0 where it is below 0",
        "meet_the_gpu.amdahl wanted: 1 where it is 0",
    ),
    "it is a scale, a rate or a deviation's inverse, and positive": (
        "low_precision.saturate scale: without its sign",
        "low_precision.saturate scale: 0 where it is below 0",
        "low_precision.zero_point x_scales: without its sign",
        "low_precision.zero_point x_scales: 0 where it is below 0",
        "low_precision.zero_point x_scales: 1 where it is 0",
        "low_precision.zero_point w_scales: without its sign",
        "low_precision.zero_point w_scales: 0 where it is below 0",
        "low_precision.zero_point w_scales: 1 where it is 0",
        "low_precision.four_bits scales: without its sign",
        "low_precision.four_bits scales: 0 where it is below 0",
        "low_precision.four_bits scales: 1 where it is 0",
        "mnist_cnn.norm_backward invstd: without its sign",
        "mnist_cnn.norm_backward invstd: 0 where it is below 0",
        "mnist_cnn.norm_backward invstd: 1 where it is 0",
        "beating_pytorch.update rate: without its sign",
        "beating_pytorch.update rate: 0 where it is below 0",
        "beating_pytorch.update rate: 1 at most",
    ),
    "it is a sum of exponentials, 1 at least, or 0 beside a largest value of -inf": (
        "fusion.online sums: without its sign",
        "fusion.online sums: 0 where it is below 0",
        "fusion.online sums: 1 where it is 0",
        "fusion.online sums: 0 where it is tiny",
    ),
    "the task asks for its square, or its magnitude": (
        "low_precision.squares x: without its sign",
        "low_precision.balance x: without its sign",
        "low_precision.balance w: without its sign",
    ),
    "it comes out of a ReLU": (
        "beating_pytorch.head hidden: without its sign",
        "beating_pytorch.head hidden: 0 where it is below 0",
    ),
    "the text says that sums begin at 0": (
        "beating_pytorch.patch_moments moments: without its sign",
        "beating_pytorch.patch_moments moments: 0 where it is below 0",
        "beating_pytorch.patch_moments moments: 0 where it is above 0",
        "beating_pytorch.patch_moments moments: 0 where it is tiny",
        "beating_pytorch.patch_moments moments: cut where it is huge",
        "beating_pytorch.head out: without its sign",
        "beating_pytorch.head out: 0 where it is below 0",
        "beating_pytorch.head out: 0 where it is above 0",
        "beating_pytorch.head out: 0 where it is tiny",
        "beating_pytorch.head out: cut where it is huge",
        "beating_pytorch.split_sums out: without its sign",
        "beating_pytorch.split_sums out: 0 where it is below 0",
        "beating_pytorch.split_sums out: 0 where it is above 0",
        "beating_pytorch.split_sums out: 0 where it is tiny",
        "beating_pytorch.split_sums out: cut where it is huge",
    ),
    "in an exponent it is the same as 0, up to the rounding that is allowed": (
        "libraries.softmax x: 0 where it is tiny",
        "triton.log_sum x: 0 where it is tiny",
        "triton.log_sum x: 1 where it is 0",
        "fusion.online largest: 0 where it is tiny",
        "fusion.loss scores: 0 where it is tiny",
        "mnist_cnn.softmax z: 0 where it is tiny",
        "beating_pytorch.head bias: 0 where it is tiny",
    ),
    "the text says that no score is further from 0 than 400": (
        "fusion.loss scores: cut where it is huge",
    ),
    "it has the code of 0, or the largest code, anyway": (
        "low_precision.saturate x: 0 where it is tiny",
        "low_precision.saturate x: cut where it is huge",
    ),
    "beside what it is subtracted from it is the same as 0, and it is no number's exact 0": (
        "mnist_cnn.norm_backward mean: 1 where it is 0",
        "mnist_cnn.norm_backward mean: 0 where it is tiny",
        "mnist_cnn.norm_backward dgamma: 1 where it is 0",
        "mnist_cnn.norm_backward dgamma: 0 where it is tiny",
        "mnist_cnn.norm_backward dbeta: 1 where it is 0",
        "mnist_cnn.norm_backward dbeta: 0 where it is tiny",
    ),
    "the text gives so few values: 16, 64, 4 shelves, codes of 8 bits, 4 places of a window": (
        "synchronization.count values: 8 bits",
        "synchronization.count values: int8",
        "synchronization.count values: int16",
        "synchronization.privatized values: 8 bits",
        "synchronization.privatized values: int8",
        "synchronization.privatized values: int16",
        "synchronization.at_most wishes: 3 bits",
        "synchronization.at_most wishes: 8 bits",
        "synchronization.at_most wishes: int8",
        "synchronization.at_most wishes: int16",
        "low_precision.zero_point zeros: 8 bits",
        "low_precision.zero_point zeros: int16",
        "mnist_cnn.pool_backward winner: 3 bits",
    ),
    "no more is there before: who tries every count from 0 on is right, and slow": (
        "synchronization.at_most taken: 3 bits",
        "synchronization.at_most taken: 8 bits",
        "synchronization.at_most taken: int8",
        "synchronization.at_most taken: int16",
    ),
    "it counts chunks of a block's size: 2^15 of them are more than a million threads": (
        "fusion.table chunks: int16",
    ),
    "it is a column, and a block takes seconds for a row of 2^15": ("fusion.loss right: int16",),
}

#: Why no trial is longer than a byte can count along an axis
SHORT = {
    "the text gives one block the whole array": ("reductions.scan a, axis 0",),
    "a row has at most the columns of a block": ("triton.log_sum x, axis 1",),
    "shared memory has room for three slots": ("tensor_cores.ring out, axis 0",),
    "a rank is a block, and all of them run at once": (
        "many_gpus.exchange sum, axis 0",
        "many_gpus.ring numbers, axis 0",
    ),
    "300 rows with all their barriers take more than a second": (
        "fourier.exchange out, axis 0",
        "fourier.exchange x, axis 0",
        "fusion.loss scores, axis 0",
        "fusion.loss right, axis 0",
    ),
    "300 digits take more than four seconds, every access watched": (
        "beating_pytorch.conv1_pool pooled, axis 0",
        "beating_pytorch.conv1_pool images, axis 0",
    ),
}
#: Why no trial is longer than 16 bits can count along one of its axes
SHORT_OF_16_BITS = {
    "the text gives one block all": ("synchronization.rotate_left", "fusion.add_norm"),
    "threads that meet at barriers take seconds": (
        "first_kernels.batched_linear",
        "memory.rotate_tile",
        "synchronization.privatized",
        "synchronization.last_block",
        "libraries.softmax",
        "matmul.tile",
        "convolution.blur",
        "fusion.loss",
    ),
    "a warp of threads for each": ("synchronization.warp_sum",),
    "who tries every count from 0 on is right, and slow": ("synchronization.at_most",),
    "so many steps or programs take seconds": (
        "triton.log_sum",
        "triton.product",
        "triton.swiglu",
        "triton.described",
        "low_precision.four_bits",
        "beating_pytorch.patch_moments",
        "beating_pytorch.head",
        "beating_pytorch.split_sums",
        "many_gpus.exchange",
        "many_gpus.ring",
    ),
    "so many terms round to more than is allowed": (
        "matmul.beat",
        "tensor_cores.wmma",
        "tensor_cores.registers",
    ),
    "one side alone, squared, is as many elements": ("convolution.slopes", "fourier.back"),
    "a row of so many columns has 8 times as many threads in blocks of 8 rows": ("fusion.fuse",),
    "two numbers, or a chunk of them, in each": ("fusion.table", "low_precision.nibbles"),
    "more channels of as many places each": (
        "mnist_cnn.conv_weight",
        "mnist_cnn.norm_backward",
        "beating_pytorch.update",
    ),
}


def named(table):
    """What a table of reasons names, in a set."""
    return {name for names in table.values() for name in names}


@pytest.fixture(scope="module", params=KERNELS, ids=lambda exercise: exercise.id)
def tried(request):
    """(exercise, its trials)."""
    return request.param, trials_of(request.param)


def test_no_way_to_misread_an_input_goes_unnoticed(tried):
    exercise, those = tried
    found = {f"{exercise.id} {name}" for name in misread(exercise, those)}
    known = {name for name in named(UNTOLD) if name.startswith(f"{exercise.id} ")}
    assert found == known, (
        f"{sorted(found ^ known)}: let `inputs` draw such numbers, or give the text's reason in "
        "UNTOLD of this file"
    )


def test_each_open_axis_is_longer_than_a_byte_can_count(tried):
    exercise, those = tried
    found = {f"{exercise.id} {axis}" for axis in short(exercise, those, A_BYTE)}
    known = {name for name in named(SHORT) if name.startswith(f"{exercise.id} ")}
    assert found == known, (
        f"{sorted(found ^ known)}: add a shape to `large`, or give a reason in SHORT of this file"
    )


def test_each_open_axis_is_longer_than_16_bits_can_count(tried):
    exercise, those = tried
    too_short = {*short(exercise, those, SIXTEEN_BITS)} - {*short(exercise, those, A_BYTE)}
    known = exercise.id in named(SHORT_OF_16_BITS)
    assert bool(too_short) == known, f"{too_short}: `large`, or SHORT_OF_16_BITS of this file"


def test_tables_name_what_there_is():
    ids = {exercise.id for exercise in (*KERNELS, *FUNCTIONS)}
    tables = named(UNTOLD) | named(SHORT) | named(SHORT_OF_16_BITS) | named(BOUNDED)
    assert {name.split()[0] for name in tables} <= ids


def test_what_a_check_does_not_draw_is_found():
    """Positive numbers in one small array: each of the three says so."""
    scale = exercises.EXERCISES["first_kernels.scale_guard"]
    narrow = replace(
        scale,
        inputs=lambda rng, shape: {**scale.inputs(rng, shape), "a": np.ones(shape, np.float32)},
        specials="finite",
        powers=(),
        large=None,
    )
    those = trials_of(narrow)
    assert "a: without its sign" in [*misread(narrow, those)]
    assert "a: 1 where it is 0" in [*misread(narrow, those)]
    assert [*short(narrow, those, A_BYTE)] == ["out, axis 0", "a, axis 0"]


FUNCTIONS = [
    e for e in exercises.EXERCISES.values() if e.kind == "function" and e.chapter not in NOT_YET
]
DRAWN = 60  # calls of a function, besides the fixed ones
#: Why no call tells an argument from one of 32 bits, whose: "exercise argument"
BOUNDED = {
    "a GPU, a block or a warp has no more": (
        "your_gpu.bandwidth memory_khz",
        "your_gpu.bandwidth bus_bits",
        "meet_the_gpu.warp_and_lane x",
        "meet_the_gpu.warp_and_lane y",
        "meet_the_gpu.warp_and_lane block_x",
        "meet_the_gpu.divergence threads",
        "meet_the_gpu.divergence split",
        "meet_the_gpu.littles_law gb_per_s",
        "meet_the_gpu.littles_law latency_ns",
        "meet_the_gpu.littles_law sms",
        "meet_the_gpu.multiply_adds sms",
        "meet_the_gpu.multiply_adds mhz",
        "first_kernels.blocks_for height",
        "first_kernels.blocks_for width",
        "first_kernels.blocks_for block_x",
        "first_kernels.blocks_for block_y",
        "memory.occupancy threads",
        "memory.occupancy registers",
        "memory.occupancy shared",
        "memory.roofline gflop_per_s",
        "memory.roofline gb_per_s",
        "matmul.stages stages",
        "tensor_cores.fragment lane",
        "tensor_cores.fragment register",
        "tensor_cores.fragment half",
        "tensor_cores.ldmatrix lane",
        "tensor_cores.ldmatrix register",
        "tensor_cores.swizzle column",
    ),
    "a number has so many bytes, or a kernel so many inputs": (
        "ecosystem.bytes_moved distinct",
        "ecosystem.bytes_moved itemsize",
        "meet_the_gpu.littles_law bytes_per_thread",
        "your_gpu.bandwidth reads",
        "your_gpu.bandwidth writes",
        "meet_the_gpu.matmul_cost itemsize",
    ),
    "only its place within 16 bytes counts": ("fusion.cut place",),
    "the text says how many there may be": (
        "fusion.cut count",
        "fusion.choice rows",
        "fusion.choice columns",
    ),
    "a time in microseconds or cycles": (
        "meet_the_gpu.divergence then_cost",
        "meet_the_gpu.divergence else_cost",
        "synchronization.overlap copy_in",
        "synchronization.overlap compute",
        "synchronization.overlap copy_out",
    ),
    "each one is played, or computed": (
        "synchronization.overlap chunks",
        "profiling.honest_timer repeats",
        "libraries.linear rows",
        "libraries.linear n_in",
        "libraries.linear n_out",
        "libraries.draws count",
        "many_gpus.ring_sum mine",
        "not_written.telling n",
        "not_written.telling block",
        "not_written.law factor",
        "not_written.moves d",
        "not_written.bench rounds",
    ),
    "there are not so many ranks, or stages of sharding": (
        "many_gpus.hop rank",
        "many_gpus.hop step",
        "many_gpus.hop ranks",
        "many_gpus.cost ranks",
        "many_gpus.memory ranks",
        "many_gpus.memory stage",
    ),
}


def calls_of(exercise, seed=0):
    """The arguments of some calls that a check makes, by name."""
    rng = np.random.default_rng(seed)
    calls = [exercise.inputs(rng, shape) for shape in exercise.all_shapes(rng)]

    def note(shape, rng):
        calls.append(exercise.inputs(rng, shape))
        return False

    drawn.smallest_failure(exercise, note, seed, DRAWN)
    return calls


def cut_to_32_bits(exercise, calls):
    """Names of whole arguments of which 32 bits do as well as all of them."""
    for name in [name for name, value in calls[0].items() if type(value) is int]:
        wide = [given for given in calls if not -(1 << 31) <= given[name] < 1 << 31]
        if not any(told_from(exercise, given, name) for given in wide):
            yield name


def told_from(exercise, given, name):
    """Whether a call returns something else where an argument has 32 bits."""
    narrow = (given[name] + (1 << 31)) % (1 << 32) - (1 << 31)
    try:
        got = functions.call(exercise.reference, given | {name: narrow})
    except (ArithmeticError, ValueError):
        return True
    return not functions.same(got, functions.call(exercise.reference, given), exercise.real)


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda exercise: exercise.id)
def test_an_argument_without_a_bound_has_more_than_32_bits_once(exercise):
    found = {f"{exercise.id} {name}" for name in cut_to_32_bits(exercise, calls_of(exercise))}
    known = {name for name in named(BOUNDED) if name.startswith(f"{exercise.id} ")}
    assert found == known, "add such a shape, or give the text's reason in BOUNDED"
