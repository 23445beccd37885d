"""Mistakes that readers of the chapter A language model made: the check says what each one is."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import pytest

from course.checking.answers import changed
from course.checking.checker import check_answer
from course.exercises import EXERCISES
from course.exercises import language_model as chapter
from course.exercises import language_model_waits as waits

pytestmark = pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
LOOKS = "atomicAdd(arrived, 0) < expected"
HALVES_IN = (
    ("left = x[begins + i]", "left = x[begins + 2 * i]"),
    ("right = x[begins + half + i]", "right = x[begins + 2 * i + 1]"),
)
SLIPS = [
    ("language_model.barrier", [(LOOKS, "*arrived < expected")], "keeps it in a register"),
    (
        "language_model.barrier",
        [(chapter.ALL_HERE, "    if (threadIdx.x == 0) {")],
        "Thread 0 count",
    ),
    ("language_model.barrier", [(chapter.GO_ON, "    }\n}")], "Only thread 0 waits"),
    ("language_model.barrier", [("    if (threadIdx.x == 0) {", "    {")], "Every thread counts"),
    ("language_model.barrier", [(chapter.ARRIVE, "        *arrived += 1;\n")], "is not counted"),
    (
        "language_model.barrier",
        [(chapter.FENCES + chapter.ARRIVE, chapter.ARRIVE)],
        "a __threadfence() must stand between",
    ),
    ("language_model.turn", HALVES_IN, "Results lie where they belong"),
    ("language_model.turn", [("-2.0f * i / size", "-2 * i / half")], "divided as whole numbers"),
    ("language_model.turn", [("-2.0f * i / size", "-2.0f * i / half")], "is twice what it has to"),
    (
        "language_model.top_p",
        [
            ("kept = 1\n", "kept = 0\n"),
            ("total = probabilities[row, 0]", "total = np.float32(0)"),
        ],
        "With a p of 0 no token is kept. One",
    ),
    (
        "language_model.accept",
        chapter.rest_is("rest = rest - q[row, taken, token]"),
        "takes from the running sum",
    ),
]


@pytest.mark.one_in(4, "each is another reader's mistake, found by the same means")
@pytest.mark.parametrize("id, changes, words", SLIPS, ids=[f"{s[0]}-{s[2]}" for s in SLIPS])
def test_a_reader_s_mistake_is_named(id, changes, words, tmp_path, small):
    exercise = small(EXERCISES[id])
    answer = changed(exercise.solution, *changes)
    if exercise.kind == "cuda_c":
        path = tmp_path / "answer.cu"
        path.write_text(answer)
        answer = path
    outcome = check_answer(exercise, answer, 1)
    assert not outcome.solved
    assert words in repr(outcome)


@pytest.mark.parametrize(
    "condition",
    [
        "*arrived < expected",
        "arrived[0] < expected",
        "expected > *arrived",
        "min(*arrived, expected) < expected",
    ],
)
def test_a_wait_that_a_compiler_reads_once_is_proved_by_its_text(condition):
    assert waits.slip(chapter.BARRIER_CU.replace(LOOKS, condition)) == (waits.READ_ONCE, "timeout")


def test_a_helper_of_the_file_is_seen_through():
    helper = "__device__ bool come(unsigned* a, unsigned n) { return *a >= n; }\n"
    source = helper + chapter.BARRIER_CU.replace(LOOKS, "!come(arrived, expected)")
    assert waits.slip(source) == (waits.READ_ONCE, "timeout")
    looks = helper.replace("*a >=", "atomicOr(a, 0u) >=")
    assert waits.slip(source.replace(helper, looks)) is None


@pytest.mark.parametrize(
    "condition",
    [
        LOOKS,
        "*(volatile unsigned*)arrived < expected",
        "cuda::atomic_ref<unsigned>(*arrived).load() < expected",
        "atomicCAS(arrived, 0, 0) < expected",
    ],
)
def test_a_wait_that_looks_again_is_not_refused_by_its_text(condition):
    assert waits.slip(chapter.BARRIER_CU.replace(LOOKS, condition)) is None


def test_a_comment_is_no_mistake():
    source = chapter.BARRIER_CU.replace(
        "    __syncthreads();", "// while (*arrived < 3);\n    __syncthreads();"
    )
    assert waits.slip(source) is None


@pytest.mark.parametrize(
    "before, after, says",
    [
        (LOOKS, "atomicAdd(arrived, 0) != expected", waits.EQUAL),
        (LOOKS, "atomicAdd(arrived, 0) <= expected", waits.ONE_MORE),
        (LOOKS, "atomicAdd(arrived, 0) <= expected - 1", None),
        (chapter.WAIT, chapter.WAIT + "        *arrived = 0;\n", waits.SET_BACK),
        (chapter.WAIT, chapter.WAIT + "        atomicSub(arrived, gridDim.x);\n", waits.SET_BACK),
    ],
)
def test_a_wait_without_end_is_told_by_its_text_once_a_run_has_shown_it(before, after, says):
    assert waits.slip(chapter.BARRIER_CU.replace(before, after)) == (says and (says, ""))
