"""The exercises of the chapter Triton and tile languages."""

import math
from importlib.util import find_spec

from course.checking.inputs import of_any_size
from course.checking.model import Exercise, Wrong
from course.checking.quiz import Quiz, one_of

# ---- offset: what a layout is


def offset(i, shape, stride):
    place = 0
    for length, step in zip(shape, stride, strict=True):
        place += i % length * step
        i //= length
    return place


def modes(rng, count):
    """Arguments of `offset` for a layout of so many modes, with places or numbers beyond 32 bits.

    All of it fits in 64 bits.
    """
    shape = tuple(map(int, rng.integers(1, 6 if count < 12 else 3, count)))
    stride = tuple(map(int, rng.integers(1, 30, count)))
    kind = rng.choice(["near", "near", "far", "many"])
    if kind == "many":  # more numbers than a float counts
        shape = (*shape[:-1], shape[-1] << 56 - math.prod(shape).bit_length())
    if kind == "far":
        far = int(rng.integers(10, 36))
        stride = tuple(step << far for step in stride)
    i = int(rng.integers(math.prod(shape)))
    return {"i": i, "shape": shape, "stride": stride}


def rows_first(i, shape, stride):
    place = 0
    for length, step in zip(reversed(shape), reversed(stride), strict=True):
        place += i % length * step
        i //= length
    return place


OFFSET = Exercise(
    id="triton.offset",
    title="A layout is a function",
    minutes=10,
    kind="function",
    task=(
        "A layout is a shape and a stride for each axis, or *mode*. In the shape (4, 8) number 6 is"
        " row 2, column 1: the *first* mode goes fastest. With the strides (8, 1) it lies at place"
        " 2 · 8 + 1 · 1 = 17. Write `offset(i, shape, stride)`, which gives the place of number i,"
        " for any number of modes; numbers and places fit in 64 bits."
    ),
    starter="""
def offset(i, shape, stride):
    return ...
""",
    solution=offset,
    inputs=modes,
    reference=offset,
    shapes=(1, 2, 2, 3, 3, 4, 9, 30),
    draws=lambda some: of_any_size(some, 29).map(lambda fewer: fewer + 1),
    hints=(
        "For the shape (4, 8) and i = 13: which row, which column, if the first mode goes fastest?",
        "The first coordinate is `i % shape[0]`; what is left of i is `i // shape[0]`, and the next"
        " mode does the same with it.",
    ),
    wrong=(
        Wrong(
            rows_first,
            "wrong_value",
            "Your last mode goes fastest, as in C and NumPy; here the first one does.",
        ),
        (
            "zip(shape, stride, strict=True)",
            "zip(shape[:8], stride[:8], strict=True)",
            "wrong_value",
        ),
        (
            "        i //= length\n",
            "",
            "wrong_value",
            "Each mode takes its coordinate from all of i: divide what is left by the length.",
        ),
        (
            "i % length * step",
            "i % length",
            "wrong_value",
            "The coordinates are added without their strides.",
        ),
        (
            "i //= length",
            "i //= step",
            "wrong_value",
            "What is left of i is i divided by the mode's *length*, not by its stride.",
        ),
    ),
)

QUIZZES = (
    Quiz(
        id="triton.q_program",
        question=(
            "A Triton kernel has `tl.arange(0, 1024)` and `num_warps=4`. How many threads does a"
            " program have?"
        ),
        answer=128,
        unit="threads",
        explain_right=(
            "Four warps of 32. Each thread has 8 of the 1,024 elements; the compiler decides which."
        ),
        explain={
            1024: "So many *elements* the block has. `num_warps` says how many threads share them.",
            4: "So many warps. A warp has 32 threads.",
            None: "`num_warps` warps of 32 threads each.",
        },
    ),
    one_of(
        "triton.q_other",
        "`x = tl.load(p + i, mask=i < n)` without `other=`. When is that a mistake?",
        ("Always", "A store with the same mask drops what was not read: nothing is lost."),
        (
            "Never: the masked elements are zero",
            "On today's NVIDIA GPUs they happen to be. The language leaves them undefined.",
        ),
        (
            "When a masked element reaches a result: through a sum, a maximum, a product",
            "An element that is dropped again, by the store's mask or tl.where, may be anything.",
        ),
        answer="c",
    ),
    one_of(
        "triton.q_break",
        (
            "A compiled function prints a value of a tensor in its middle. What does torch.compile"
            " make of it?"
        ),
        ("An error", "Only with `fullgraph=True`, which is how one finds breaks."),
        (
            "Two graphs, with Python between them",
            "A graph break: nothing is fused across it, and Python waits for the GPU.",
        ),
        (
            "One graph, which prints at its end",
            "The value is not known while the graph is made, and printing cannot wait.",
        ),
        answer="b",
    ),
)

EXERCISES = (OFFSET,)
if find_spec("triton"):
    from course.exercises import triton_kernels

    EXERCISES = (*triton_kernels.EXERCISES, OFFSET)
