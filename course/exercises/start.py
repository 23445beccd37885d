"""The one exercise of the start page: small enough to try the machinery."""

import numpy as np
from numba import cuda

from course.checking.inputs import a_thread_each, lengths, some_numbers
from course.checking.model import Exercise, Hypothesis, Out


@cuda.jit
def hello(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = i


HELLO = Exercise(
    id="start.hello",
    title="Hello, threads",
    minutes=2,
    task=(
        "Every thread of this kernel knows its number, `i`. Let each one write its number into its"
        " element of `out`."
    ),
    starter="""
@cuda.jit
def hello(out):
    i = cuda.grid(1)  # which thread am I?
    if i < out.size:  # is there an element for me?
        out[i] = 0  # change this line
""",
    solution=hello,
    inputs=lambda rng, n: {"out": Out(n, np.int32)},
    reference=lambda out: np.arange(*out.shape),
    shapes=lengths(1, 8, 32, 45, 64, 100),
    large=(66_000,),
    fresh=some_numbers((2, 200)),
    elements=1,
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=("Only the last line needs to change: what should stand where the 0 is?", "`out[i] = i`"),
    hypotheses=(
        Hypothesis(
            "off_by_one",
            "Counting starts at 0: `out[0]` is 0.",
            lambda out: np.arange(*out.shape) + 1,
        ),
        Hypothesis(
            "wrong_value",
            "`cuda.threadIdx.x` starts at 0 again in every block; `i` counts through all of them.",
            lambda out: np.arange(*out.shape) % 32,
        ),
        Hypothesis(
            "wrong_value", "Every element is still 0.", lambda out: np.zeros(out.shape, np.int32)
        ),
    ),
    wrong=(
        ("= i\n", "= 0\n", "wrong_value"),
        ("i < out.size", "True", "missing_guard"),
        ("= i\n", "= i + 1\n", "off_by_one"),
        ("= i\n", "= cuda.threadIdx.x\n", "wrong_value"),
    ),
)
EXERCISES = (HELLO,)
QUIZZES = ()
