"""Other inputs made of drawn ones: nearly the same, hostile, special, with fewer digits.

Each takes the arguments of a call and returns others, or None where there is nothing to change.
Arrays of whole numbers are left as they are where others are read, too: they may be indices.
"""

import numpy as np

from course.checking.specials import with_infinities, with_nan
from course.judge import sandbox
from course.judge.demands import InOut
from course.judge.values import plain_of

SPECIAL = {"any": with_nan, "no_nan": with_infinities}
STEP = 0.75  # by which one number is changed, relative to the others' size


def is_float(value):
    """Whether an argument is an array or tensor of floats with elements."""
    value = plain_of(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and value.size > 0
    return sandbox.is_tensor(value) and value.is_floating_point() and value.numel() > 0


def is_whole(value):
    """Whether an argument is an array or tensor of whole numbers with elements, and only read."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iu" and value.size > 0
    if not sandbox.is_tensor(value) or value.numel() == 0:
        return False
    return not value.is_floating_point() and not value.is_complex() and value.element_size() > 0


def is_read(value):
    """Whether an argument is an array or tensor that is only read."""
    return isinstance(value, np.ndarray) or sandbox.is_tensor(value)


def mapped(arguments, function, only=None, kind=is_float):
    """The arguments with `function(NumPy array) -> array` applied to the arrays of floats.

    only: the number of the one argument to change. kind: which arguments are changed.
    """
    return tuple(
        on_array(one, function) if kind(one) and only in (None, number) else copied(one)
        for number, one in enumerate(arguments)
    )


def beside(arguments):
    """The numbers of the arguments that are floats and no arrays."""
    return [number for number, one in enumerate(arguments) if isinstance(one, float)]


def scaled(arguments, factor, only=None):
    """The arguments with the floats that are no arrays times a factor; None where there are none.

    Arrays are the same ones. only: the number of the one argument to change.
    """
    places = [number for number in beside(arguments) if only in (None, number)]
    if not places:
        return None
    return tuple(
        type(one)(factor * one) if number in places else one for number, one in enumerate(arguments)
    )


def on_array(argument, function):
    """An argument with its values changed; a tensor stays one, in its type and place."""
    if isinstance(argument, InOut):
        return InOut(on_array(argument.array, function))
    if isinstance(argument, np.ndarray):
        return np.asarray(function(argument.copy()), argument.dtype)
    import torch

    values = argument.detach().cpu()
    values = values.float() if argument.is_floating_point() else values
    values = function(values.numpy().copy())
    changed = torch.from_numpy(np.ascontiguousarray(values))
    return changed.to(argument.dtype).to(argument.device)


def copied(argument):
    """The same values elsewhere."""
    if isinstance(argument, InOut):
        return InOut(copied(argument.array))
    if isinstance(argument, np.ndarray):
        return argument.copy()
    return argument.clone() if sandbox.is_tensor(argument) else argument


def exchangeable(arguments):
    """The numbers of two arrays of floats that are only read, of one type and shape, or None."""
    known = {}
    for number, one in enumerate(arguments):
        if is_float(one) and not isinstance(one, InOut):
            key = type(one), str(one.dtype), tuple(one.shape)
            if key in known:
                return known[key], number
            known[key] = number
    return None


def floats(arguments):
    """The numbers of the arguments that hold floats."""
    return [number for number, one in enumerate(arguments) if is_float(one)]


# ---- nearly the same


def one_changed(rng, arguments):
    """One number, somewhere in the middle, is another."""
    places = floats(arguments)
    if not places:
        return None

    def change(array):
        place = int(rng.integers(array.size))
        size = np.abs(array[np.isfinite(array)]).max(initial=0) or 1
        array.reshape(-1)[place] += array.dtype.type(STEP * size)
        return array

    return mapped(arguments, change, places[int(rng.integers(len(places)))])


def two_swapped(rng, arguments):
    """Two numbers have changed places: their sum and all that is sorted stay."""
    places = [number for number in floats(arguments) if size_of(arguments[number]) > 1]
    if not places:
        return None

    def swap(array):
        flat = array.reshape(-1)
        a, b = rng.choice(flat.size, 2, replace=False)
        flat[[a, b]] = flat[[b, a]]
        return array

    return mapped(arguments, swap, places[int(rng.integers(len(places)))])


def size_of(argument):
    """How many elements an array argument has."""
    value = plain_of(argument)
    return value.size if isinstance(value, np.ndarray) else value.numel()


# ---- hostile


def zeros(array):
    return np.zeros_like(array)


def all_alike(array):
    return np.full_like(array, array.reshape(-1)[0])


def all_like_the_least(array):
    """Each number is the one nearest to 0, so that sums stay small."""
    flat = array.reshape(-1)
    return np.full_like(array, flat[np.argmin(np.abs(flat.astype(np.float64)))])


def negative(array):
    return -np.abs(array)


def large(array):
    return array * array.dtype.type(8 if array.dtype.itemsize < 4 else 1024)


def large_negative(array):
    """All far below zero, and as far apart as they are large: who begins at 0 has lost them."""
    size = np.abs(array)
    factor = 8 if array.dtype.itemsize < 4 else 2048
    return -(size + np.median(size)) * array.dtype.type(factor)


def small(array):
    return array * array.dtype.type(1 / 8 if array.dtype.itemsize < 4 else 1 / 1024)


def some_zeros(array):
    flat = array.reshape(-1)
    flat[::3] = flat[-1] = 0
    return array


def nearly_sorted(array):
    """Ascending but for one number in the middle, which is the largest: samples may not show it."""
    array = np.sort(array)
    array[..., array.shape[-1] // 2 + 1 :][..., :1] = array[..., -1:] + abs(array[..., -1:])
    return array


def one_giant(array):
    """One number in the middle is far larger than all others."""
    array.reshape(-1)[array.size // 2] *= array.dtype.type(100)
    return array


def far(array):
    """Around a number far from zero: differences of squares cancel."""
    return array + array.dtype.type(30 if array.dtype.itemsize < 4 else 5000)


def to_halves(array):
    """Halves and whole numbers, among which are the edges of ranges and ties of roundings."""
    return np.round(2 * array) / 2


def last_bits(array):
    """Numbers that differ in their last bits only, in no order: a narrower type has one of them."""
    limits = np.finfo(array.dtype)
    steps = np.random.default_rng(array.size).permutation(array.size).reshape(array.shape)
    return (1 + limits.eps * (steps % MOST_STEPS)).astype(array.dtype)


def special_rows(array):
    """Of many rows one is zero, one of equal numbers, one all negative: as many as there is room
    for beside an ordinary one.
    """
    rows = array.reshape(-1, array.shape[-1])
    places = np.random.default_rng(rows.size).permutation(len(rows))[1:]
    for place, change in zip(places, (zeros, all_alike, negative), strict=False):
        rows[place] = change(rows[place])
    return rows.reshape(array.shape)


def has_rows(value):
    """Whether an argument is an array of floats with several rows."""
    return is_float(value) and len(plain_of(value).shape) > 1 and plain_of(value).shape[-2] > 1


def all_masked(array):
    """-infinity in all of the last row."""
    array.reshape(-1, array.shape[-1] if array.ndim else 1)[-1] = -np.inf
    return array


def masked(array):
    """-infinity in the first half of the last axis, as where something is masked."""
    array[..., : array.shape[-1] // 2] = -np.inf
    return array


MOST_STEPS = 4096
FAR = {"numbers far from zero": far}
SORTED = {"numbers that are nearly in order": nearly_sorted}
#: The same where nothing may be rounded: a difference of numbers that are nearly equal cancels
CLOSE = {"numbers that differ in their last bits": last_bits}
#: Of arrays of whole numbers, where there are no others: each stays one that was drawn
WHOLE = {"equal whole numbers": all_like_the_least}
#: By which floats that are no arrays are multiplied
FACTORS = {
    "larger numbers beside the arrays": 8,
    "numbers of the other sign beside the arrays": -1,
}
#: Changes of both: a sign is lost where arrays are large
TOGETHER = {
    "large arrays and numbers of the other sign beside them": (large, -1),
    "large negative arrays and larger numbers beside them": (large_negative, 8),
}
#: words -> change of an array
HOSTILE = {
    "zeros": zeros,
    "equal numbers": all_alike,
    "negative numbers": negative,
    "large numbers": large,
    "large negative numbers": large_negative,
    "small numbers": small,
    "some zeros": some_zeros,
    "halves and whole numbers": to_halves,
    "one large number": one_giant,
}


def giant_late(array):
    """A number late in the last axis is far larger than all others."""
    size = np.abs(array).max() * array.dtype.type(8 if array.dtype.itemsize < 4 else 100)
    array[..., array.shape[-1] * 7 // 8] = size
    return array


def two_values(array):
    """Each number has one of two values, so that all are tied."""
    size = 2.0 ** np.floor(np.log2(np.median(np.abs(array)) or 1))
    return np.copysign(array.dtype.type(size), array)


#: The same for the longest arrays; ties where nothing is rounded: a sum of equal terms is off
#: always the same way, by more than a bound allows that does not count its terms
FOR_LONG = {"one large number late in long rows": giant_late}
TIES = {"many equal numbers": two_values}


# ---- fewer digits


def rounded(bits, nearest=True):
    """A function that keeps this many bits behind a float32's first."""
    drop = np.uint64(23 - bits)

    def change(array):
        if array.dtype != np.float32:
            return array
        words = array.view(np.uint32).astype(np.uint64)
        if nearest:
            words += (1 << (int(drop) - 1)) - 1 + ((words >> drop) & 1)
        fewer = (words >> drop << drop).astype(np.uint32).view(np.float32)
        return np.where(np.isfinite(array), fewer, array)

    return change


#: words -> change of an array to what a float32 keeps in other types
FEWER = {
    "float16 or TF32": rounded(10),
    "bfloat16": rounded(7),
    "TF32, its last bits cut off": rounded(10, nearest=False),
}
