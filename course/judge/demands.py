"""What is demanded of a candidate beside being right, and how it is called."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from course.judge.errors import Bound

#: Sizes that are tried where nothing else is said: none, one, not a multiple of a warp or a block
SIZES = (0, 1, 7, 33, 64, 100)
#: The largest size that is drawn where nothing else is said
MOST = 200
#: From, to: lengths beyond a block of 128, beyond the largest block, thousands, a vocabulary
BEYOND = ((129, 200), (1025, 1300), (3000, 9000), (60_000, 100_000))
#: Names under which a submission's function is looked for, where none is demanded
ENTRIES = ("candidate", "kernel", "custom_kernel", "solve", "solution", "run")


def beyond(rng) -> list[int]:
    """Lengths far beyond those that are drawn otherwise, the shortest first."""
    return [int(rng.integers(low, high)) for low, high in BEYOND]


#: Sizes of blocks: a loop over blocks ends exactly there
EXACT = (256, 512, 1024)


def exact(rng, few=False) -> list[int]:
    """Lengths at which a loop over blocks ends exactly, or one before or after; few: no others."""
    near = set() if few else {one + step for one in EXACT for step in (-1, 1)}
    return sorted({*EXACT, *near, 512 * int(rng.integers(3, 6))})


@dataclass(frozen=True)
class Out:
    """An argument that the candidate must fill: an array that arrives poisoned.

    Where the inputs hold one or several, the candidate is called with all arguments in order, and
    what it returns is not looked at.
    """

    shape: tuple
    dtype: object = np.float32
    tensor: bool = False  # a torch tensor instead of a NumPy array


@dataclass(frozen=True)
class InOut:
    """An argument that the candidate reads and updates in place."""

    array: object


@dataclass(frozen=True)
class Property:
    """Something that holds for every right answer, whatever the reference says.

    change: (rng, arguments) -> other arguments, such as all of them doubled.
    then: (result, arguments) -> what the result for the other arguments must be.
    exact: without rounding, as where numbers are doubled or rows are swapped.
    """

    name: str
    change: Callable
    then: Callable
    exact: bool = False


@dataclass(frozen=True, kw_only=True)
class Demands:
    """What is demanded, and how a candidate is called. All of it may be left out.

    sizes: those to try first; `fresh(rng)` draws others, which no candidate can know.
    error: a Bound, how wrong a right result may be; None derives one from the result's type and
        8 operations an element.
    dtype, shape: of the result, where the reference's is not it: a name, a function of the
        arguments.
    properties: Property entries to hold.
    widen: the reference is given float64 instead of what the candidate is given.
    strided: arrays are also handed in as views: of larger arrays with gaps between their numbers,
        transposed, with their first axes exchanged, and (NumPy's) in reverse. An array of one axis
        has no gaps but in reverse, and begins one element later.
    hostile: any numbers may be handed in, so that single ones are changed, and all are made zero,
        equal, negative, very large or small, halves and whole numbers, numbers that differ in their
        last bits only where nothing is rounded, or put in order but for one, as far as the
        reference gives a finite result for them. Floats that are no arrays are made larger, and
        change their sign. Whole numbers are made equal where no other array is read. Two
        arrays of one shape become one and the same.
        False where inputs obey a law: probabilities, sorted numbers, permutations.
    large: also sizes far beyond the others, as far as time allows. True: lengths such as `beyond`
        draws them, where sizes are whole numbers; a function (rng) -> sizes, the cheapest first,
        where `inputs` takes others, such as (rows, columns); False: none.
    special: "any", "no_nan" or "finite": which special numbers (infinity, NaN, -0, the smallest)
        the floats may hold in some calls; in one of them -infinity in half of each row.
    deterministic: two calls with the same values must give the same bits.
    may_alias: the result may share memory with an argument. may_mutate: arguments may be changed.
    library: functions that the result must not be made by: names such as "numpy.matmul" or
        "aten.mm"; "reference" for those heavy ones that the reference itself calls; () for none.
    precision: the type in which the work must be done, such as "float32"; a cast to a narrower one
        is a finding. None asks nothing.
    init: for a submission that is a class: its first arguments and weights, packed (`tasks.py`).
    as_made: the reference for a class that has no place for these weights, but its own form.
    entry: the function's, class's or kernel's name in a submission.
    launch: for a bare kernel (Numba, CUDA C, Triton): (arguments) -> (grid, block), or (grid,
        block, shared bytes), or for Triton (grid, keywords).
    allow: keys of `words.py` that are no reason against a candidate here, such as "raw_memory"
        where it must call the driver.
    race_free: kernels are watched access by access, where an engine without a GPU runs them.
    seconds: of CPU time for one call.
    calls: how many drawn inputs are tried, beside the sizes.
    bytes, flops: functions of the arguments: what the work must move and compute, by which a time
        is held against what the GPU can do at all.
    rival: what to race, in its best mode: a callable, the path or the text of a submission, which
        is called or launched as the candidate is; None: the time is told, and compared with
        nothing.
    timed_size: the size at which it is timed.
    """

    sizes: tuple = SIZES
    fresh: Callable = lambda rng: int(rng.integers(2, MOST))
    error: Bound | None = None
    dtype: str | Callable | None = None
    shape: Callable | None = None
    properties: tuple[Property, ...] = ()
    widen: bool = True
    strided: bool = False
    hostile: bool = True
    large: bool | Callable = True
    special: str = "finite"
    deterministic: bool = True
    may_alias: bool = False
    may_mutate: bool = False
    library: tuple | str = "reference"
    precision: str | None = None
    init: dict | None = None
    as_made: Callable | None = None
    entry: str | None = None
    launch: Callable | None = None
    allow: tuple = ()
    race_free: bool = True
    seconds: float = 10
    calls: int = 6
    bytes: Callable | None = None
    flops: Callable | None = None
    rival: Callable | Path | str | None = None
    timed_size: object = None
