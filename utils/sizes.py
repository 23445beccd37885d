"""Sizes that know what they would be on a GPU, and launches that are noted with them.

Without a GPU `pick(gpu=1 << 25, cpu=5_000)` gives a `Size`: the number 5,000, and what is computed
from it is a Size, too. `(n + 255) // 256` is 20 here, and is known to be 131,072 there. So what a
cell launches here can be told, and estimated, as it would be launched on a GPU. Nothing is guessed:
what is not computed from a Size by + - * // % << >> | is a plain number.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

MOST_STEPS = 32  # of a calculation; a loop that goes on with its own result is none that counts
LONG = 64  # elements: an axis that is as long as a Size of another launch is hardly so by accident
MOST_KEPT = 1000
#: (number here, number on a GPU) -> a Size of this process: of long ones, and of each `pick`
long_ones: dict[tuple[int, int], "Size"] = {}
picks: dict[tuple[int, int], "Size"] = {}
_noting: ContextVar[list | None] = ContextVar("noting", default=None)


class Size(int):
    """A whole number that is another one on a GPU.

    at: function of a scale that gives its value: on a GPU for None, else where each `pick` gave
        `scale` times what it gave here. picks: the Sizes of `pick` that it was computed from.
    """

    at: Callable[[float | None], int]
    picks: tuple["Size", ...]
    steps: int

    def __new__(cls, value: int, at: Callable, picks: tuple = (), steps: int = 0) -> Self:
        self = super().__new__(cls, value)
        self.at = at
        self.picks = picks or (self,)
        self.steps = steps
        if value >= LONG and len(long_ones) < MOST_KEPT:
            long_ones.setdefault((value, at(None)), self)
        return self

    @property
    def gpu(self) -> int:
        """What it would be on a GPU."""
        return self.at(None)

    def __neg__(self) -> int:
        return 0 - self  # as in -(-n // 256)

    def __reduce__(self) -> tuple:
        return int, (int(self),)  # elsewhere it is a number


def picked(gpu: Any, cpu: Any) -> Any:
    """The Size that is `cpu` here and `gpu` on a GPU; of two tuples, of each pair of numbers.

    What is no whole number, or the same on both, is returned as it is here.
    """
    if type(gpu) is type(cpu) is tuple and len(gpu) == len(cpu):
        return tuple(map(picked, gpu, cpu))
    if not type(gpu) is type(cpu) is int or gpu == cpu:
        return cpu
    size = Size(cpu, lambda scale: gpu if scale is None else scale * cpu)
    picks[cpu, gpu] = size
    return size


def value_at(number: int, scale: float | None) -> int:
    """A number at a scale; what is no Size stays as it is."""
    return number.at(scale) if isinstance(number, Size) else number


def _computed(name: str, swapped: bool = False) -> Callable:
    """The method of Size for an operator: of whole numbers it makes a Size, else what int makes."""
    operation = getattr(operator, name)

    def method(self: Size, other: Any) -> Any:
        left, right = (other, self) if swapped else (self, other)
        if type(other) is not int and not isinstance(other, Size):
            plain = int(self)
            return operation(other, plain) if swapped else operation(plain, other)
        value = operation(int(left), int(right))
        steps = 1 + max(getattr(one, "steps", 0) for one in (left, right))
        if steps > MOST_STEPS:
            return value
        both = *getattr(left, "picks", ()), *getattr(right, "picks", ())
        sources = {id(one): one for one in both}  # equal ones need not be the same

        def at(scale: float | None) -> Any:
            return operation(value_at(left, scale), value_at(right, scale))

        return Size(value, at, tuple(sources.values()), steps)

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "or_"):
    _plain = _name.rstrip("_")
    setattr(Size, f"__{_plain}__", _computed(_name))
    setattr(Size, f"__r{_plain}__", _computed(_name, swapped=True))


# ---- launches


@dataclass(frozen=True)
class Noted:
    """A launch as it was made: of a Numba kernel, of one of `cuda_c.load` or of Triton's.

    grid, block: three numbers each, Sizes where they were. named: of Triton's, options by name.
    """

    kernel: object
    grid: tuple
    block: tuple
    shared_bytes: int
    args: tuple
    named: dict = field(default_factory=dict)


#: Stands among launches where arrays were copied
COPY = "copy"


@contextmanager
def noted(launches: list | None = None) -> Iterator[list]:
    """Within the `with`, the list of all launches of this Python thread on the CPU engines, and
    COPY for each copy of an array.

    launches: the list to which each is appended before it is made; a new one unless given.
    """
    launches = [] if launches is None else launches
    token = _noting.set(launches)
    try:
        yield launches
    finally:
        _noting.reset(token)


def noting() -> bool:
    """Whether somebody asks for launches."""
    return _noting.get() is not None


def note(
    kernel: object,
    grid: Any,
    block: Any,
    shared_bytes: int,
    args: Iterable,
    named: dict | None = None,
) -> None:
    """Tell of a launch; called by the engines."""
    launches = _noting.get()
    if launches is not None:
        shapes = _three(grid), _three(block)
        launches.append(Noted(kernel, *shapes, shared_bytes, tuple(args), named or {}))


def note_copy() -> None:
    """Tell of a copy between host and device; called by the engine."""
    launches = _noting.get()
    if launches is not None:
        launches.append(COPY)


def _three(shape: Any) -> tuple:
    """A launch dimension as three numbers."""
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return (*given, 1, 1)[:3]


def whole(number: Any) -> int:
    """A number as a plain int, but a Size as it is."""
    return number if isinstance(number, Size) else int(number)
