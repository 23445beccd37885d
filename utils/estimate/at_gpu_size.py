"""Estimates of what a cell launched here, at the size that it has on a GPU.

A cell is small without a GPU: `pick(gpu=1 << 25, cpu=5_000)`. What it launches is noted
(`utils.sizes`), with what each number would be on a GPU. The rules by which a launch of a GPU's
size follows from the one that was seen:

- grid, block and numbers are what they were computed to be;
- an axis of an array that is as long as one of the launch's sizes is that size, and so is a long
  axis that is as long as another size of the notebook; where a short axis is as long as a `pick` of
  another launch, nobody knows, and there is no estimate;
- arrays of another size than here hold zeros. Where the block in the middle does something else
  with zeros than with the cell's data, what it does depends on data: there is no estimate;
- a grid that was not computed from a size is taken as it is where it cannot have been: where it has
  more threads than the arrays have elements, or is one block for many. Else there is no estimate;
- at a GPU's size blocks have to reach as large a share of each array as they do here. Else the
  sizes were not understood, and there is no estimate either.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from utils.quantities import format_ms
from utils.sizes import COPY, Noted, Size, long_ones, picks, value_at
from utils.tracer import TooManyEvents, is_triton
from utils.tracer.cuda_c import copied, is_cuda_c

from .gpus import gpu, with_article
from .model import WORDS, Counts, seconds_of, terms
from .sampling import Blank, Block, Launch, NotAgain, Unknown, middle
from .statement import Estimate, estimate, factor_of, language_of
from .totals import carried, reached_by, totals

GPU = "H200"
SCALES = (1, 4, 16, 64)  # of three small sizes: so many times the sizes here, twice and three times
MANY = 16  # elements for each thread of a single block, which nobody computed from their number
REACHED = 0.9  # of the share of an array that is reached here
MOST_LAUNCHES = 8  # of one work
DEPENDS = "what it does depends on its data, and a GPU's data are not here"
UNCLEAR = "how large it would be on a GPU cannot be told from this cell"
TOO_LONG = "a block of it does too much to be followed"


class Unclear(Unknown):
    """What a GPU would have to do cannot be told from the cell, whatever its kernels are."""


@dataclass(frozen=True)
class Said:
    """The estimates of the launches of one work, one after the other.

    scaled: whether they are of another size than here.
    """

    estimates: tuple[Estimate, ...]
    launches: tuple[Launch, ...]
    scaled: bool = True

    @property
    def seconds(self) -> float:
        return seconds_of([one.terms for one in self.estimates])

    @property
    def longest(self) -> Estimate:
        return max(self.estimates, key=lambda one: one.seconds)

    @property
    def factor(self) -> float:
        return max(one.factor for one in self.estimates)

    def __repr__(self) -> str:
        return f"{self.head()}: {self.row()}"

    def head(self) -> str:
        """On which GPU, and that it is an estimate."""
        card = with_article(self.longest.gpu.name)
        return (
            f"these kernels, estimated for {card} and not measured (nine in ten within a factor of "
            f"{self.factor:.1f})"
        )

    def row(self) -> str:
        """The time, what limits it, and which launches were counted."""
        longest = self.longest
        said = f"about {format_ms(1e3 * self.seconds)}, limited by {WORDS[longest.limit]}"
        if len(self.estimates) == 1:
            changes = longest.changes().items()
            said += "".join(f"; {what} about {format_ms(1e3 * s)}" for what, s in changes)
        return f"{said} ({self.launch()})"

    def launch(self) -> str:
        """The launches in words."""
        if len(self.launches) > 1:
            return f"{len(self.launches)} launches"
        blocks, threads = self.launches[0].blocks, self.launches[0].threads
        as_here = "" if self.scaled else ", as launched here"
        return f"{counted(blocks, 'block')} of {counted(threads, 'thread')}{as_here}"


def counted(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def said(noted: Sequence, name: str = GPU) -> Said:
    """What noted launches would take on a GPU, one after the other. Raises Unknown."""
    if COPY in noted or any(map(has_host_arrays, noted)):
        raise Unclear("arrays are copied between host and GPU, and copies are not in the model")
    if len(noted) > MOST_LAUNCHES:
        raise Unknown(f"{len(noted)} launches are too many")
    card = gpu(name)
    works = [AtScale(one) for one in noted]
    estimates = []
    for one in works:
        asked = counts_of(one)
        factor = factor_of(card.name, language_of(one.noted.kernel))
        estimates.append(Estimate(card, asked, terms(asked, card), factor))
    launches = tuple(one.at(None) for one in works)
    return Said(tuple(estimates), launches, any(one.changes for one in works))


def of_launch(launch: Launch, name: str = GPU) -> Said:
    """The same of one launch that is given. Raises Unknown."""
    return Said((estimate(launch, name),), (launch,))


def has_host_arrays(noted: Noted) -> bool:
    """Whether a launch is given arrays that are not in a GPU's memory."""
    return any(isinstance(arg, np.ndarray) and arg.ndim for arg in noted.args)


class AtScale:
    """A noted launch at any scale: None for a GPU's sizes, else so many times those here."""

    def __init__(self, noted: Noted) -> None:
        self.noted = noted
        numbers = (*noted.grid, *noted.block, noted.shared_bytes, *noted.args)
        numbers += tuple(noted.named.values())
        known = [number for number in numbers if isinstance(number, Size)]
        self.sizes = {id(one): one for number in known for one in number.picks}
        self.changes = bool(known)
        self.args = [self.understood(arg) for arg in noted.args]
        self.blocks: dict[float | None, Block] = {}

    def understood(self, arg: Any) -> Any:
        """An argument with Sizes where it changes: a number, or (shape, dtype, what is here)."""
        if isinstance(arg, Size) or np.ndim(arg) == 0 and not hasattr(arg, "shape"):
            return arg
        if hasattr(arg, "base") and not hasattr(arg, "dtype"):
            raise Unknown("tensor descriptors are not counted")
        if not getattr(arg, "shape", ()):
            size = self.size_of(int(arg)) if isinstance(arg, np.integer) else None
            return arg if size is None else (size, arg.dtype)
        shape = tuple(self.size_of(length) or length for length in arg.shape)
        self.changes |= any(isinstance(length, Size) for length in shape)
        return shape, arg

    def size_of(self, length: int) -> Size | None:
        """The Size that gave a length; None where none did. Unknown where several did."""
        mine = [one for one in self.sizes.values() if one == length]
        if not mine:
            mine = [size for (here, _), size in long_ones.items() if here == length]
            self.sizes |= {id(one): one for size in mine for one in size.picks}
        if len({one.gpu for one in mine}) > 1:
            raise Unknown(f"two sizes of this notebook are both {length:,} here")
        if not mine and length > 1 and any(here == length for here, _ in picks):
            raise Unclear(UNCLEAR)
        return mine[0] if mine else None

    def at(self, scale: float | None) -> Launch:
        """The launch at a scale."""
        noted = self.noted
        grid, block = (
            tuple(int(value_at(one, scale)) for one in shape) for shape in (noted.grid, noted.block)
        )
        args = tuple(self.argument(arg, scale) for arg in self.args)
        named = {name: value_at(value, scale) for name, value in noted.named.items()}
        shared = int(value_at(noted.shared_bytes, scale))
        return Launch(noted.kernel, grid, block, args, shared, named=named)

    def argument(self, arg: Any, scale: float | None) -> Any:
        """An argument at a scale."""
        if not isinstance(arg, tuple):
            return int(value_at(arg, scale)) if isinstance(arg, Size) else arg
        first, second = arg
        if isinstance(first, Size):
            return second.type(first.at(scale))
        if not is_scaled(arg):
            return self.copy(second)
        shape = tuple(value_at(length, scale) for length in first)
        return Blank(shape, second.dtype if is_triton(self.noted.kernel) else dtype_of(second))

    def copy(self, array: Any) -> Any:
        """A copy of an array, as the kernel takes it."""
        return array.clone() if is_triton(self.noted.kernel) else copied(array)

    def block(self, scale: float | None) -> Block:
        """The block in the middle, at a scale; run once."""
        if scale not in self.blocks:
            self.blocks[scale] = middle(self.at(scale))
        return self.blocks[scale]

    def reached(self, scale: float | None) -> dict:
        """The share of each array that blocks like the middle one reach, at a scale."""
        return reached_by(self.block(scale), self.at(scale).blocks)

    def here(self) -> Launch:
        """The launch as it was made."""
        now = self.at(1)
        args = [
            self.copy(arg[1]) if isinstance(arg, tuple) and isinstance(arg[0], tuple) else made
            for arg, made in zip(self.args, now.args, strict=True)
        ]
        return dataclasses.replace(now, args=tuple(args))

    def check_grid(self) -> None:
        """Raise Unknown for a grid that may have been computed from a size in a way not seen."""
        noted = self.noted
        if any(isinstance(one, Size) for one in (*noted.grid, *noted.block)):
            return
        blocks, threads = math.prod(noted.grid), math.prod(noted.block)
        elements = max((math.prod(arg[0]) for arg in filter(is_scaled, self.args)), default=0)
        is_alone = blocks == 1 and elements >= MANY * threads
        if not is_alone and blocks * threads < elements + threads:
            raise Unclear(UNCLEAR)

    def ratio(self) -> float:
        """How many times larger a GPU's sizes are. Unknown where they grow differently."""
        ratios = {one.gpu / int(one) for one in self.sizes.values()}
        if len(ratios) != 1:
            raise Unknown("its sizes do not all grow alike from here to a GPU's")
        return ratios.pop()


def is_scaled(arg: Any) -> bool:
    """Whether an argument, as `understood` has it, is an array of another size on a GPU."""
    shape = arg[0] if isinstance(arg, tuple) else ()
    return isinstance(shape, tuple) and any(isinstance(length, Size) for length in shape)


def dtype_of(array: Any) -> np.dtype:
    """The type of an array's elements, as NumPy has it. Unknown where NumPy has none."""
    try:
        return np.dtype(str(array.dtype).removeprefix("torch."))
    except TypeError:
        raise Unknown(f"an array of {array.dtype} is not counted") from None


def counts_of(work: AtScale) -> Counts:
    """What a launch asks for at a GPU's size. Raises Unknown."""
    try:
        if not work.changes:
            return counts_here(work)
        work.check_grid()
        try:
            here = middle(work.here())
            zeros = work.block(1)
        except NotAgain:  # it came to its end in the cell, with what was in its arrays before
            raise Unknown(DEPENDS) from None
        if (zeros.amounts, zeros.waits) != (here.amounts, here.waits):
            raise Unknown(DEPENDS)
        asked, reached = directly(work) or along_scales(work)
    except TooManyEvents:
        raise Unknown(TOO_LONG) from None
    for key, share in reached.items():
        if asked.reached.get(key, 0.0) < REACHED * share:
            raise Unclear(UNCLEAR)
    return asked


def counts_here(work: AtScale) -> Counts:
    """What a launch asks for as it is. Raises Unknown, and TooManyEvents for long blocks."""
    if is_cuda_c(work.noted.kernel):
        raise Unclear("a launch of CUDA C is counted at small sizes, and this one has one size")
    return totals(work.here())


def directly(work: AtScale) -> tuple[Counts, dict] | None:
    """(counts by blocks of a GPU's size, what is reached here); None where that cannot be."""
    if is_cuda_c(work.noted.kernel):
        return None
    try:
        return totals(work.at(None)), work.reached(1)
    except TooManyEvents:
        return None


def along_scales(work: AtScale) -> tuple[Counts, dict]:
    """The same by small sizes and the line through them."""
    ratio = work.ratio()
    why: Unknown = Unclear(UNCLEAR)
    for scale in SCALES:
        small = (scale, 2 * scale, 3 * scale)
        reached = work.reached(scale)
        try:
            larger = work.reached(small[-1])
        except NotAgain as fails:  # it runs at this size: an array has to grow with it, unseen
            raise Unclear(UNCLEAR) from fails
        if not reached or not are_alike(reached, larger):
            continue
        blocks = [work.block(one) for one in small]
        try:
            return carried(work.at(None), blocks, ratio, small), reached
        except Unknown as uneven:  # a row may not fill a line of memory yet
            why = uneven
    raise why


def are_alike(one: dict, other: dict) -> bool:
    """Whether two launches reach the same shares of the same arrays."""
    return one.keys() == other.keys() and all(
        math.isclose(one[key], other[key], rel_tol=1 - REACHED) for key in one
    )
