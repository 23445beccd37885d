"""What an exercise is: its task, reference, inputs, launches, hints, solution and wrong answers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course.checking import answers
from utils.occupancy import ceil_div

# Why an answer was not accepted: key -> the sentence that the learner reads first.
REASONS = {
    "missing_guard": "Threads without an element to work on write or read anyway: a guard is "
    "missing, or lets them through.",
    "off_by_one": "A boundary is off by one.",
    "swapped_axes": "Two axes are swapped.",
    "only_square": "It works only when the sides are equal.",
    "only_multiples": "It works only when the size is a multiple of the block size.",
    "only_powers": "It works only when the size is a power of two.",
    "fixed_block": "It is right with blocks of one size only.",
    "only_small": "It is right with small arrays only.",
    "few_rounds": "It is right only while a thread has little to do.",
    "first_block_only": "Only the first block's share of the work is done.",
    "needs_full_grid": "It needs as many threads as there are elements, and this grid has fewer.",
    "reads_output": "It uses what the output held before the launch.",
    "duplicate_work": "Some elements are handled by more than one thread.",
    "unwritten": "Elements of the output were never written.",
    "out_of_bounds": "It touches memory outside an array.",
    "modifies_input": "It changes an array that it should only read.",
    "unannounced": "It changes something, and does not say so.",
    "remembers": "The values are right, but each run changes something that stays.",
    "barrier": "Some threads wait at a barrier that others never reach.",
    "warp_mask": "A warp operation's mask does not name the lanes that take part.",
    "uninitialized": "It reads shared or local memory that no thread has written yet.",
    "race": "Nothing says which thread comes first, and what comes out may depend on it.",
    "contention": "It goes wrong where many threads want the same element at once.",
    "no_return": "It returns nothing.",
    "wrong_value": "Some values are wrong.",
    "wrong_dtype": "A type is wrong.",
    "special_values": "It is right with ordinary numbers only.",
    "not_a_kernel": "This is not something that can be checked.",
    "wrong_arity": "It takes the wrong number of parameters.",
    "missing_file": "The file is not there yet.",
    "missing_kernel": "The file holds no kernel of the expected name.",
    "does_not_compile": "It does not compile.",
    "crashed": "It stopped with an error.",
    "overflow": "A number does not fit into its type.",
    "precedence": "The macro's text and the text around it mix: parentheses are missing.",
    "hidden": "A variable inside the macro hides one of the caller's.",
    "evaluated_twice": "What is given to the macro runs more than once.",
    "wrong_size": "The number of bytes is wrong.",
    "wrong_shape": "A shape is wrong.",
    "leak": "Memory is allocated and never given back.",
    "double_free": "The same memory is given back twice.",
    "wrong_free": "Memory is given back by another means than it was taken by.",
    "use_after_free": "It uses memory that is gone.",
    "dangling": "It gives away the address of something that goes, or that is not its own.",
    "null_pointer": "It reads or writes through a pointer to nothing.",
    "uncoalesced": "The values are right, but its warps move far more memory than they use.",
    "bank_conflict": "The values are right, but lanes of a warp queue for the same bank of shared "
    "memory.",
    "no_shared": "The values are right, but shared memory is not used.",
    "over_goal": "The values are right, but it would take longer than the text allows.",
    "for_a_moment": "The result is right, but on the way a promise was broken.",
    "one_thread": "The values are right, but one thread does the work of many.",
    "too_much_work": "The values are right, but the same work is done many times over.",
    "too_much_traffic": "The values are right, but more than needed goes through global memory.",
    "other_means": "The values are right, but not by the means that are asked for.",
    "flood": "It printed without end.",
    "timeout": "It did not finish.",
    "too_slow": "It finishes, but takes far too long.",
    "not_checked": "It could not be checked on this machine.",
}
# In a tile language a program is what one works with.
TILE_REASONS = {
    "uninitialized": "It uses values that were not loaded: masked off, without `other=`.",
    "one_thread": "The values are right, but one program does the work of many.",
}
# These mean that the answer did not run at all (outcome "broken"); the others that it ran and was
# not right.
BROKEN = {
    "not_a_kernel",
    "wrong_arity",
    "missing_kernel",
    "does_not_compile",
    "crashed",
    "flood",
    "timeout",
    "too_slow",
    "not_checked",
}


def sentence(reason: str, kind: str) -> str:
    """The sentence of REASONS, in the words of this kind of exercise."""
    return (TILE_REASONS if kind == "triton" else {}).get(reason, REASONS[reason])


@dataclass(frozen=True)
class Out:
    """An output argument: an array that the kernel must fill. It arrives filled with poison."""

    shape: tuple
    dtype: type = np.float32


@dataclass(frozen=True)
class InOut:
    """An argument that the kernel reads and updates in place."""

    array: np.ndarray


@dataclass(frozen=True)
class Launch:
    """One launch to try: grid and block as (x, y, z); how the grid compares with what is needed."""

    grid: tuple
    block: tuple
    label: str = "just enough blocks"

    @property
    def threads(self) -> tuple[int, ...]:
        """Threads along x, y and z."""
        return tuple(g * b for g, b in zip(self.grid, self.block, strict=True))


@dataclass(frozen=True)
class Wrong:
    """A known wrong answer and the reason by which the checker must reject it.

    An exercise says most of them by what differs from its solution: (old, new, reason), or
    ((old, new), (old, new), reason), as `answers.replace` takes them, and `says` where needed.

    says: for a plain function, the sentence that tells a learner who made this very mistake.
    """

    answer: object
    reason: str
    says: str = ""

    @classmethod
    def of(cls, entry: Any, solution: object) -> "Wrong":
        """The entry itself, or the solution changed as it says."""
        if isinstance(entry, cls):
            return entry
        if isinstance(entry[0], str):
            entry = (entry[:2], *entry[2:])
        changes = [part for part in entry if isinstance(part, tuple)]
        return cls(answers.changed(solution, *changes), *entry[len(changes) :])


@dataclass(frozen=True)
class Hypothesis:
    """A named guess: an output equal to `output(**arguments)` means this very mistake.

    by_blocks: it depends on how many blocks the kernel had, which `output` is given as `blocks`.
    """

    reason: str
    says: str
    output: Callable
    by_blocks: bool = False


@dataclass(frozen=True)
class Demand:
    """What a right Numba answer must also be.

    The tracer runs it once more, on inputs of this shape, and of one that is no multiple of the
    block. `unmet` takes the Trace and returns None, or a reason, the sentence that says it, and the
    array to draw.
    """

    shape: tuple
    unmet: Callable
    ragged: tuple | None = None


@dataclass(frozen=True)
class Speed:
    """At which size the time of a solved kernel is told; of CUDA C `small` is needed.

    of: the words for that size. shape: size -> the shape that `inputs` takes. block: its threads,
    unless the first of the exercise's launches is taken; of Triton the last argument. small: three
    sizes from which counts are carried on to the size, for kernels that loop for long. goal: as
    many times the solution's estimate an answer's may be, where the text asks for speed. gpu: of
    the estimates.
    """

    of: str
    size: int
    shape: Callable = lambda size: (size,)
    block: tuple | int | None = None
    small: tuple | None = None
    goal: float | None = None
    gpu: str = "H200"


@dataclass(frozen=True)
class Always:
    """What each value must be that is ever stored in the output, be it for a moment only.

    holds takes the stored value and the launch's arguments by name. says: to who breaks it.
    """

    holds: Callable
    says: str


def without_threads(shape: tuple) -> tuple[int, ...]:
    """The extents of an exercise that launches no kernel of its own."""
    raise TypeError("this exercise has no extents: nothing is launched over threads")


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise.

    `kind` says what the learner hands in: "numba" kernel, "cuda_c" file or plain "function" (and,
    in `cpp.CppExercise`, a "cpp" file).

    For kernels, `inputs(rng, shape)` gives the arguments by name in the kernel's order (arrays,
    scalars, one `Out` or `InOut`), `reference(**arguments)` the expected output, `extents(shape)`
    how many threads are needed along (x, y, z), `launches(shape)` the launches to try (by default
    just enough blocks, and one more each way), `swapped` the two axes of the output that learners
    mix up. For functions, `inputs(rng, shape)` gives the call's arguments and `reference` the
    expected return value.
    """

    id: str
    title: str
    minutes: int
    task: str
    starter: str
    solution: object
    reference: Callable
    inputs: Callable
    shapes: tuple
    hints: tuple
    fresh: Callable | None = None  # rng -> one more shape, another one each time
    draws: Callable | None = (
        None  # hypothesis.strategies -> the strategy of shapes, if not that of `fresh`
    )
    real: bool = False  # a function: a float will do where it is equal
    names: bool = False  # a function: its numbers are names, such as 1 for memory, and not sizes
    # a function: play(answer, *arguments) returns what it returns, where it is not just called
    play: Callable | None = None
    # a function: of its arguments by name after a call that was right, and what it had to return,
    # the sentence that says by which other means it was done; or None
    after: Callable | None = None
    # a CUDA C file: of its text, (the sentence for its mistake, a reason if the text alone proves
    # it), or None; what is not proved is said of a race and of a wait without end
    slip: Callable | None = None
    wrong: tuple = ()
    hypotheses: tuple = ()
    kind: str = "numba"
    block: tuple = (32, 1, 1)
    other_block: tuple | None = None  # unlike `block`, where the task leaves the size open
    one_block: bool = False  # the task, or the starter, names the block's size
    extents: Callable = without_threads
    launches: Callable | None = None
    is_square: Callable = lambda shape: len(set(shape)) == 1
    swapped: tuple | None = None  # the two axes of the output that learners swap
    kernel_name: str = ""  # of a CUDA C exercise
    path: str = ""  # where the CUDA C starter cell writes its file
    rtol: float = 1e-5  # 0: the very same values
    copies: bool = False  # floats are handed on as they are: each bit of them, a zero's sign, too
    # some more launches for each array of floats, with numbers that arithmetic treats apart: "any",
    # "no_nan" where the order of comparing decides, "finite" for none, where the task says so or
    # formulas that are equally right differ
    specials: str = "any"
    finite: tuple = ()  # names of arrays that stay so in these launches
    # two more launches for each array of floats, whose largest number is 2 to this power: () where
    # the text bounds numbers
    powers: tuple = (-100, 100)
    shared_output: bool = False  # several threads may write one element (a histogram, a reduction)
    demand: Demand | None = None  # of a right answer's accesses to memory
    race_free: bool = False  # watch every access: a race is rejected, even if the result is right
    orders: int = 2  # shuffled orders of the threads in which each launch is tried besides
    effort: float = 2  # as many times the solution's accesses the busiest thread may make
    # of the output, how many elements a thread may store to, where the text gives it so many
    elements: int | None = None
    traffic: float = 4  # as many times the solution's bytes may go to and from global memory
    workspace: tuple = ()  # names of arrays that a kernel may write, whatever it leaves there
    # threads may wait for what other blocks of the launch write: few enough, they run all at once
    waits: bool = False
    # where they do: of a launch's arguments by name, with the arrays as they lay when the launch
    # was stopped, the sentence that says who waits for what
    awaited: Callable | None = None
    always: Always | None = None  # a promise about every moment, held at each store
    probe: tuple | None = None  # the shape at which it is counted who does the work
    # a shape, or several, for one launch each: more than 16 bits, or a block, can count
    large: tuple | None = None
    speed: Speed | None = None  # at which size a right answer's time is told
    needs: tuple = ()  # keys of `work.MEANS`: what a right answer must use
    without: tuple = ()  # keys of `work.FORBIDDEN`: what it must not use
    no_more: tuple = ()  # keys of `work.NO_MORE`: what it must not use more often than the solution

    def __post_init__(self) -> None:
        odd = [shape for shape in self.shapes if not isinstance(shape, tuple)]
        if odd and self.kind in ("numba", "cuda_c"):
            raise TypeError(f"{self.id}: a shape is a tuple, such as (33,), and not {odd[0]!r}")
        wrong = tuple(Wrong.of(entry, self.solution) for entry in self.wrong)
        object.__setattr__(self, "wrong", wrong)  # the one field that is made of what was given

    @property
    def chapter(self) -> str:
        """The key of its chapter: "matmul" for "matmul.tile"."""
        return self.id.partition(".")[0]

    @property
    def large_shapes(self) -> tuple:
        """The shapes of `large`."""
        if not self.large:
            return ()
        return self.large if isinstance(self.large[0], tuple) else (self.large,)

    @property
    def guesses(self) -> tuple[Hypothesis, ...]:
        """What an answer is compared with to name its mistake: wrong functions, then hypotheses."""
        mistakes = tuple(Hypothesis(w.reason, w.says, w.answer) for w in self.wrong if w.says)
        return mistakes + self.hypotheses

    @property
    def in_file(self) -> bool:
        """Whether the answer is a file, of which the learner hands in the path."""
        return self.kind in ("cuda_c", "cpp")

    def all_shapes(self, rng: np.random.Generator) -> tuple:
        """The fixed shapes and, so that no answer can be made for them alone, some others."""
        drawn = [self.fresh(rng) for _ in range(3) if self.fresh]
        small = getattr(self.fresh, "small", lambda rng: ())(rng)
        return (*self.shapes, *drawn, *small)

    def launches_for(self, shape: tuple) -> list[Launch]:
        """The launches to try for a shape; by default just enough blocks, and one more each way."""
        if self.launches:
            launches = list(self.launches(shape))
        else:
            launches = cover(self.extents(shape), self.block)
        if self.other_block:
            launch = cover(self.extents(shape), self.other_block)[0]
            launches.append(replace(launch, label="blocks of another size"))
        return launches


def cover(extents: tuple[int, ...], block: tuple[int, ...]) -> list[Launch]:
    """Launches that cover (x, y, z) extents: just enough blocks, one more along each used axis."""
    needed = tuple(max(1, ceil_div(e, b)) for e, b in zip(extents, block, strict=True))
    more = tuple(g + (b > 1) for g, b in zip(needed, block, strict=True))
    return [Launch(needed, block), Launch(more, block, "more blocks than needed")]
