"""What a whole launch asks for, from a few of its blocks, or from the same launch at small sizes.

Where a block is short, blocks of the real launch are run and nothing is guessed but that the others
are like the middle one. Where a block loops for long, the launch is made at three small sizes; each
count of a block has to lie on a straight line through them, and the line says what it is at the
real size. A count that does not lie on it makes the launch Unknown: a loop whose length depends on
data, for one.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from utils.tracer import TooManyEvents, is_cuda_c, is_triton

from .model import Amounts, Counts
from .sampling import PIECE, Block, Launch, Unknown, middle, sampled

#: Three sizes, from the smallest up
Small = tuple[float, float, float]
COMMON = 0.5  # of a block's counters that another one adds to, too: then all blocks share them
REUSED = 4  # reads of an array by all blocks, over its size, from which on L2 serves them
CLOSE = 0.02  # of a count, by which the third size may lie beside the line
LEAST = 2.5  # events of a block by which it may, too
REGULAR = "its {what} does not grow evenly with the size ({small}): the counts cannot be carried on"


def totals(launch: Launch) -> Counts:
    """Count a launch by three of its blocks. Raises Unknown, and TooManyEvents for long blocks."""
    blocks = sampled(launch)
    amounts: Amounts = Counter()
    for share, block in blocks:
        for name, amount in block.amounts.items():
            amounts[name] += share * amount
    typical = blocks[len(blocks) // 2][1]
    same = all(block.hottest.keys() == typical.hottest.keys() for _, block in blocks)
    if not same:
        raise Unknown("blocks of the launch do not add to the same arrays")
    return whole_launch(launch, typical, amounts, [block for _, block in blocks])


def whole_launch(
    launch: Launch, typical: Block, amounts: Amounts, others: Sequence[Block]
) -> Counts:
    """Counts of a launch whose blocks are like `typical`."""
    moved: dict[str, float] = {"read": 0, "write": 0}
    near = {}
    gathered = []
    reached = reached_by(typical, launch.blocks)
    once = 0
    for (name, what), (pieces, sectors, requests, size) in typical.arrays.items():
        once += sectors * launch.blocks if what == "read" else 0
        if name in typical.gathers and what == "read":
            gathered.append((pieces * launch.blocks, size))
            continue
        moved[what] += min(pieces * launch.blocks, size)
        if what == "read":
            reused = sectors * launch.blocks >= REUSED * size
            near[name] = 1.0 if reused else max(0.0, 1 - pieces / PIECE / requests)
    hottest = {}
    for name, (addresses, adds, elements, dtype, size) in typical.hottest.items():
        rest = [block.hottest[name][0] for block in others if block is not typical]
        common = max((np.isin(addresses, one).mean() for one in rest), default=1.0)
        lanes = amounts["atomic_lanes"] / max(1, len(typical.hottest))
        distinct = min(elements * launch.blocks, size)
        if common > COMMON:
            distinct = len(np.unique(np.concatenate([addresses, *rest])))
        hottest[name] = (max(adds, lanes / distinct), distinct, dtype)
    return Counts(
        launch.blocks,
        launch.threads,
        amounts,
        typical.waits,
        moved,
        near,
        tuple(gathered),
        hottest,
        typical.shared_bytes + launch.shared_bytes,
        typical.registers or launch.registers,
        reached,
        once,
    )


def reached_by(block: Block, blocks: int) -> dict:
    """Array and "read" or "write" -> the share of it that so many blocks like this one touch."""
    return {
        key: min(1.0, pieces * blocks / size) for key, (pieces, _, _, size) in block.arrays.items()
    }


def grown(make: Callable[[int], Launch], size: int, small: tuple) -> Counts:
    """Count make(size) by the middle blocks of make(s) for the three sizes in `small`."""
    return carried(make(size), [middle(make(s)) for s in small], size, small)


def carried(launch: Launch, blocks: list[Block], size: float, small: tuple) -> Counts:
    """Count a launch of a size by blocks of launches of three small ones."""
    amounts = carried_on([block.amounts for block in blocks], small, size)
    waits = carried_on([block.waits for block in blocks], small, size)
    arrays = {}
    names = parameters_of(launch.kernel)
    sizes = {
        name: arg.nbytes
        for name, arg in zip(names, launch.args, strict=False)
        if hasattr(arg, "nbytes")
    }
    for key in blocks[-1].arrays:
        touched = [
            Counter(dict(zip(("pieces", "sectors", "requests"), block.arrays[key], strict=False)))
            for block in blocks
        ]
        line = carried_on(touched, small, size)
        arrays[key] = (line["pieces"], line["sectors"], line["requests"], sizes[key[0]])
    hottest = {}
    for name in blocks[-1].hottest:
        adds = [Counter(adds=b.hottest[name][1], elements=b.hottest[name][2]) for b in blocks]
        line = carried_on(adds, small, size, even=False)
        addresses, *_, dtype, count = blocks[-1].hottest[name]
        hottest[name] = (addresses, line["adds"], min(line["elements"], count), dtype, count)
    typical = dataclasses.replace(
        blocks[-1], amounts=amounts, waits=waits, arrays=arrays, hottest=hottest
    )
    total = Counter({name: amount * launch.blocks for name, amount in amounts.items()})
    return whole_launch(launch, typical, total, blocks)


def parameters_of(kernel: Any) -> list[str]:
    """The names of a kernel's parameters, in order."""
    if is_cuda_c(kernel):
        return [parameter.name for parameter in kernel.signature.parameters]
    if is_triton(kernel):
        return list(kernel.arg_names)
    return list(kernel.py_func.__code__.co_varnames)


def carried_on(counted: list[Counter], small: Small, size: float, even: bool = True) -> Amounts:
    """Each count on its straight line, at `size`.

    even: whether a count beside its line makes the launch Unknown; else the last slope is taken.
    """
    line: Amounts = Counter()
    first, second, third = small
    for name in set().union(*counted):
        one, other, last = (float(counts[name]) for counts in counted)
        slope = (last - other) / (third - second)
        expected = other - slope * (second - first)
        if even and abs(expected - one) > max(LEAST, CLOSE * abs(last)):
            sizes = ", ".join(map(str, small))
            what = name.replace("_", " ")
            raise Unknown(REGULAR.format(what=f"count of {what}", small=sizes))
        line[name] = max(0.0, last + slope * (size - third))
    return line


def given(size: int | None) -> int:
    """The size of a launch that is a function of it. TypeError where there is none."""
    if size is None:
        raise TypeError("the launch is a function of its size, and no size is given")
    return size


def count(
    launch: Launch | Callable[[int], Launch], size: int | None = None, small: tuple | None = None
) -> Counts:
    """Count a Launch, or launch(size) where it is a function of the size.

    small: three sizes that are tried where blocks of the real size are too long; unless given,
    1/64, 1/32 and 1/16 of it. Raises Unknown.
    """
    if isinstance(launch, Launch):
        try:
            return totals(launch)
        except TooManyEvents:
            raise Unknown(
                "a block of it does too much to be followed; give a function of the size instead"
            ) from None
    try:
        if small is None:
            return totals(launch(given(size)))
    except TooManyEvents:
        small = (given(size) // 64, given(size) // 32, given(size) // 16)
    try:
        return grown(launch, given(size), small)
    except TooManyEvents:
        raise Unknown("a block of it does too much at small sizes, too") from None
