"""Programs of a grid that take turns, as they do on a GPU, instead of running one after another."""

import contextlib
import contextvars
import random
from dataclasses import dataclass

from ..greenlets import GreenletExit, getcurrent, greenlet
from .launches import LAUNCH

IN_STEP = "in step"
_seed = contextvars.ContextVar("seed", default=None)


@contextlib.contextmanager
def taking_turns(seed: int | str):
    """In this block any program may come between two loads or atomic operations of another.

    Two atomic operations are not one: what a program does by both, as if nobody came between, goes
    wrong here. seed: of a random order; or IN_STEP, where each program does one after all others
    did theirs: of many that try to exchange a value one succeeds, and tries that are counted end.
    """
    token = _seed.set(seed)
    try:
        yield
    finally:
        _seed.reset(token)


def in_turns(function, builder):
    """The function in place of a kernel's that the interpreter calls for each program."""
    return function if _seed.get() is None else Turns(function, builder, _seed.get())


@dataclass
class Program:
    """A started program: its place in the grid, where it is, and what it knows of the others."""

    place: tuple
    fibre: greenlet
    known: tuple


class Turns:
    """Called for one program after the other, it keeps them all and, with the last, runs them."""

    def __init__(self, function, builder, seed: int | str):
        self.function = function
        self.builder = builder
        self.in_step = seed == IN_STEP
        self.random = random.Random(seed)
        self.programs = []
        self.hub = None

    def __call__(self, **arguments):
        fibre = greenlet(lambda: self.function(**arguments))
        fibre.gr_context = contextvars.copy_context()
        self.programs.append(Program(LAUNCH.program, fibre, LAUNCH.clocks.state()))
        if len(self.programs) == LAUNCH.clocks.programs:
            self.run()

    def run(self) -> None:
        """Let a program go on for a while, and another one, until all have ended."""
        LAUNCH.turns, self.hub = self, getcurrent()
        try:
            while self.programs:
                program = self.next_one()
                self.builder.set_grid_idx(*program.place)
                LAUNCH.clocks.resume(program.known)
                program.fibre.switch()
                program.known = LAUNCH.clocks.state()
                if not program.fibre.dead:
                    self.programs.append(program)
        finally:
            LAUNCH.turns = None
            for program in self.programs:
                program.fibre.throw(GreenletExit)

    def next_one(self) -> Program:
        """Who goes on, taken out of the programs: a random one, or who has waited longest."""
        return self.programs.pop(0 if self.in_step else self.random.randrange(len(self.programs)))

    def give_way(self) -> None:
        """Perhaps let others go on before the running program does."""
        if self.in_step or self.random.random() < 0.5:
            self.hub.switch()
