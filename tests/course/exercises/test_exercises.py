"""Exercises: solutions pass, wrong answers are rejected for their reason, starters are neither."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine
from tests.needs import cpp_compiler, without_gpu
from utils.files import ROOT

# isort: split
import ast
import dataclasses
import importlib.util
import json
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numba
import numpy as np
import pytest
from numba import cuda

from course import exercises
from course.chapters import CHAPTERS
from course.checking import cuda_c_files, engines, limits
from course.checking.answers import but, replace
from course.checking.checker import CHECKS, body_of, check_answer
from course.checking.diagnose import diagnose
from course.checking.engines import Run
from course.checking.model import REASONS, Exercise, InOut, Launch, Out
from course.checking.numba_kernels import FROM_OUTSIDE
from course.checking.rejected import OTHER_BARRIERS, OTHER_BLOCKS, Rejected, crashed, parameters
from course.checking.trials import cases
from course.exercises import (
    beating_pytorch,
    c_for_cuda,
    first_kernels,
    libraries,
    many_gpus,
    matmul,
    meet_the_gpu,
    mnist_cnn,
    reductions,
    synchronization,
    tensor_cores,
)
from utils import has_gpu
from utils.tools.nvcc import find_nvcc

ALL = list(exercises.EXERCISES.values())
KERNELS = [e for e in ALL if e.kind in ("numba", "cuda_c")]
CHAPTER_FILES = sorted((ROOT / "chapters").glob("*.ipynb"))


@pytest.fixture(scope="session")
def cuda_c_works():
    """Skip where there is neither a GPU nor a C++ compiler."""
    if not has_gpu():
        cpp_compiler()


def hand_in(exercise, answer, folder, request):
    """An answer as a learner hands it in: CUDA C and C++ as a file."""
    if not exercise.in_file:
        return answer
    if exercise.kind == "cuda_c":
        request.getfixturevalue("cuda_c_works")
    path = folder / Path(exercise.path).name
    path.write_text(answer)
    return path


def import_starter(exercise, folder):
    """What a notebook has after running the starter cell."""
    text = exercises.starter(exercise.id)
    if exercise.in_file:
        first, _, rest = text.partition("\n")
        assert first == f"%%writefile {exercise.path}"
        path = folder / Path(exercise.path).name
        path.write_text(rest)
        return path
    path = folder / "starter.py"
    header = "from numba import cuda\n"
    if exercise.kind == "triton":
        header = "import triton\nimport triton.language as tl\n"
    path.write_text(f"{header}\n\n{text}\n")
    spec = importlib.util.spec_from_file_location("starter", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = ("cuda", "triton", "tl")
    return next(v for k, v in vars(module).items() if not k.startswith("_") and k not in given)


def name_of(answer):
    return getattr(getattr(answer, "py_func", answer), "__name__", "")


OF_LARGE = "only_small", "few_rounds"  # reasons that large arrays alone tell
SAME_REASON = pytest.mark.nightly("by day another answer of its kind has the same reason")


def by_day():
    """{(exercise id, number of a wrong answer): why it is handed in by day}: one of every second
    exercise, with a reason that no earlier one of its kind has, where it can be; then what is left
    of each kind's reasons.
    """
    chosen, reasons = {}, set()
    for exercise in ALL[::2]:
        own = [(exercise.kind, wrong.reason) for wrong in exercise.wrong]
        number = next((n for n, reason in enumerate(own) if reason not in reasons), 0)
        chosen[exercise.id, number] = "of its exercise"
        reasons.add(own[number])
    for exercise in ALL:
        for number, wrong in enumerate(exercise.wrong):
            if (exercise.kind, wrong.reason) not in reasons:
                chosen[exercise.id, number] = "of its reason"
                reasons.add((exercise.kind, wrong.reason))
    return chosen


def wrong_answers():
    """pytest.param(exercise, wrong answer) of each; `make check` hands in one of every second
    exercise, `make test` for each kind of exercises one of each reason, too, and a chapter's author
    all (`make chapter`).
    """
    chosen = by_day()
    for exercise in ALL:
        for n, wrong in enumerate(exercise.wrong):
            why = chosen.get((exercise.id, n))
            marks = [pytest.mark.quick] if why == "of its exercise" else []
            marks += [] if why else [SAME_REASON]
            name = f"{exercise.id}-{n}-{wrong.reason}-{name_of(wrong.answer)}"
            yield pytest.param(exercise, wrong, id=name, marks=marks)


def test_by_day_each_kind_has_all_of_its_reasons():
    params = [param.values for param in wrong_answers() if SAME_REASON not in param.marks]
    assert {exercise.id for exercise, _ in params} >= {exercise.id for exercise in ALL[::2]}
    by_day = {(exercise.kind, wrong.reason) for exercise, wrong in params}
    assert by_day == {(e.kind, wrong.reason) for e in ALL for wrong in e.wrong}


@pytest.fixture
def nvcc_unasked(monkeypatch):
    """It is asked about all solutions at once, below."""
    monkeypatch.setattr(cuda_c_files, "reject_if_nvcc_does", lambda path: None)


@pytest.mark.quick
@pytest.mark.usefixtures("in_this_process", "few_draws", "nvcc_unasked")
@pytest.mark.parametrize("exercise", ALL)
def test_solution_passes(exercise, tmp_path, request, small):
    answer = hand_in(exercise, exercise.solution, tmp_path, request)
    if exercise.kind == "cuda_c":  # it is built for the check itself, there
        answer = cuda_c_files.solution_file(exercise)
    outcome = check_answer(dataclasses.replace(small(exercise), orders=1), answer)
    assert outcome.solved, repr(outcome)


def test_nvcc_takes_the_solutions(tmp_path):
    """All in one file, each in a namespace, behind what they include."""
    if not find_nvcc():
        pytest.skip("nvcc was not found")
    solutions = {e.id: e.solution for e in ALL if e.kind == "cuda_c"}
    include = re.compile(r"^#include .*$", re.M)
    includes = dict.fromkeys(include.findall("\n".join(solutions.values())))
    path = tmp_path / "solutions.cu"
    path.write_text("\n".join(includes))
    for id, text in solutions.items():
        name = id.replace(".", "_")
        with path.open("a") as file:
            file.write(f"\nnamespace {name} {{\n{include.sub('', text)}\n}}")
    cuda_c_files.reject_if_nvcc_does(path)
    path.write_text("__global__ void wrong() { nobody(); }\n")
    with pytest.raises(Rejected) as no:
        cuda_c_files.reject_if_nvcc_does(path)
    assert "nobody" in no.value.lines[0]


@pytest.mark.nightly("by day in one order of the threads, with few inputs, and no large ones")
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("exercise", ALL)
def test_solution_passes_as_often_as_a_learners_answer(exercise, tmp_path, request):
    answer = hand_in(exercise, exercise.solution, tmp_path, request)
    outcome = check_answer(exercise, answer)
    assert outcome.solved, repr(outcome)


@pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
@pytest.mark.parametrize("exercise, wrong", list(wrong_answers()))
def test_wrong_answer_is_rejected_for_its_reason(
    exercise, wrong, tmp_path, request, monkeypatch, small
):
    if wrong.reason not in OF_LARGE:
        exercise = small(exercise)
    if wrong.reason == "timeout":  # what never ends has not ended after a second either
        monkeypatch.setattr(limits, "EACH_SECONDS", 1)
        monkeypatch.setattr(engines, "LAUNCH_SECONDS", 1)
    answer = hand_in(exercise, wrong.answer, tmp_path, request)
    outcome = check_answer(exercise, answer)
    assert not outcome.solved
    # On a GPU a race can already have spoilt the result before it is looked for.
    spoilt = {"wrong_value"} if has_gpu() and wrong.reason == "race" else set()
    assert outcome.reason in {wrong.reason} | spoilt, repr(outcome)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("reason", ["wrong_value", "race", "uncoalesced", "bank_conflict"])
def test_a_rejection_shows_what_it_found(reason):
    known = [(e, w) for e in ALL if e.kind == "numba" for w in e.wrong if w.reason == reason]
    exercise, wrong = known[0]
    assert "<svg " in check_answer(exercise, wrong.answer).picture


OF_A_KIND = pytest.mark.nightly("by day a starter of each kind, and one chapter's notebook")


def starters():
    """pytest.param(exercise) of each; by day the first of a kind (at night notebooks, too)."""
    kinds = set()
    for exercise in ALL:
        marks = [OF_A_KIND] if exercise.kind in kinds else []
        kinds.add(exercise.kind)
        yield pytest.param(exercise, marks=marks)


@pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
@pytest.mark.parametrize("exercise", list(starters()))
def test_starter_is_not_solved_and_raises_nothing(exercise, tmp_path, request):
    if exercise.kind == "cuda_c":
        request.getfixturevalue("cuda_c_works")
    outcome = exercises.check(exercise.id, import_starter(exercise, tmp_path))
    assert outcome.status == "not yet"
    assert outcome.untouched
    assert "Not solved yet: this is still the starter." in repr(outcome)


@pytest.mark.usefixtures("in_this_process")
def test_a_starter_is_tried_with_small_arrays_alone(tmp_path, monkeypatch):
    exercise, tried = exercises.EXERCISES["first_kernels.grid_stride"], []
    monkeypatch.setitem(CHECKS, exercise.kind, lambda exercise, *_: tried.append(exercise.large))
    for answer in (import_starter(exercise, tmp_path), exercise.solution):
        check_answer(exercise, answer)
    assert tried == [None, exercise.large] and exercise.large


WRONG_AT_LEAST, HINTS_AT_LEAST = 3, 2


def missing(exercise):
    """What an exercise's entry lacks, in words."""
    reasons = {w.reason for w in exercise.wrong} | {h.reason for h in exercise.hypotheses}
    if exercise.chapter not in {"start", *(c.key for c in CHAPTERS)}:
        yield f"its id begins with {exercise.chapter!r}, which is no chapter"
    if len(exercise.wrong) < WRONG_AT_LEAST:
        yield f"{len(exercise.wrong)} wrong answers; it needs {WRONG_AT_LEAST}"
    if len(exercise.hints) < HINTS_AT_LEAST:
        yield f"{len(exercise.hints)} hints; it needs {HINTS_AT_LEAST}"
    if unknown := reasons - set(REASONS):
        yield f"reasons that course/checking/model.py does not know: {sorted(unknown)}"
    if exercise.minutes <= 0:
        yield f"{exercise.minutes} minutes"
    if exercise.kind == "cuda_c" and f"void {exercise.kernel_name}(" not in exercise.starter:
        yield f"its starter has no kernel called {exercise.kernel_name}"
    if exercise.in_file:
        if "%%writefile" in exercise.solution:
            yield "its solution is to begin after the line %%writefile"
        return
    if body_of(exercise.starter) == body_of(exercises.solution_source(exercise)):
        yield "its starter is its solution"
    starter = ast.parse(exercise.starter).body[-1]
    if starter.name != name_of(exercise.solution):
        yield f"starter {starter.name}, solution {name_of(exercise.solution)}"
    names = [argument.arg for argument in starter.args.args]
    if names != parameters(exercise):
        yield f"its starter takes {names}, its solution {parameters(exercise)}"


@pytest.mark.quick
def test_entries_are_complete():
    found = {exercise.id: list(missing(exercise)) for exercise in ALL}
    assert {id: lacks for id, lacks in found.items() if lacks} == {}


@pytest.mark.parametrize(
    "change, said",
    [
        ({"wrong": ()}, "0 wrong answers; it needs 3"),
        ({"hints": ("Look.",)}, "1 hints; it needs 2"),
        ({"id": "nowhere.scale_guard"}, "its id begins with 'nowhere'"),
        ({"minutes": 0}, "0 minutes"),
        ({"starter": "def other(a):\n    ..."}, "starter other, solution scale"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_what_an_entry_lacks_is_said(change, said):
    entry = dataclasses.replace(exercises.EXERCISES["first_kernels.scale_guard"], **change)
    assert said in "\n".join(missing(entry))


def blocks_of(exercise):
    """The blocks with which a kernel is launched."""
    launches = (launch for s in exercise.shapes for launch in exercise.launches_for(s))
    return {launch.block for launch in launches}


@pytest.mark.quick
def test_kernels_are_launched_with_blocks_of_two_sizes():
    blocks = {e.id: blocks_of(e) for e in KERNELS}
    wrong = {e.id: blocks[e.id] for e in KERNELS if (len(blocks[e.id]) == 1) != e.one_block}
    assert wrong == {}, "they need `other_block` or, where a text names the size, `one_block=True`"


def test_a_shape_is_a_tuple():
    with pytest.raises(TypeError, match="such as \\(33,\\), and not 8"):
        shift_exercise(shapes=((40,), 8), starter="", solution="", inputs=None, reference=None)


def test_first_kernels_reject_the_classic_mistakes():
    rejected = {w.reason for e in first_kernels.EXERCISES for w in e.wrong}
    assert {
        "missing_guard",
        "swapped_axes",
        "off_by_one",
        "only_square",
        "only_multiples",
    } <= rejected


BIAS_IN_THE_LOOP = but(
    first_kernels.linear,
    ("total = bias[column]", "total = np.float32(0)"),
    ("* weight[column, k]", "* weight[column, k] + bias[column]"),
)
WEIGHT_TURNED = but(first_kernels.linear, ("weight[column, k]", "weight[k, column]"))
BIAS_OF_THE_ROW = but(first_kernels.linear, ("bias[column]", "bias[row]"))
FIRST_OF_THE_BATCH = but(first_kernels.linear, ("x[batch, row, k]", "x[0, row, k]"))


def blocks_of_the_picture_on_its_side(height, width, block_x, block_y):
    return (height + block_x - 1) // block_x, (width + block_y - 1) // block_y


@cuda.jit
def mean_of_four(out, picture):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        upper = picture[2 * y, 2 * x] + picture[2 * y, 2 * x + 1]
        out[y, x] = (upper + picture[2 * y + 1, 2 * x] + picture[2 * y + 1, 2 * x + 1]) / 4


ONE_PART = replace(beating_pytorch.UPDATE_CU, "s < splits", "s < 1")
IN_LANE_0 = replace(beating_pytorch.HEAD_CU, "  gradient[k] =", "  if (lane == 0) gradient[k] =")
NO_RELU = replace(beating_pytorch.PLAIN_BN_RELU_POOL, "best = 0", "best = -1e30f")
ONE_PER_OUTPUT = replace(
    first_kernels.ROTATE_CU,
    ("x < width && y < height", "x < height && y < width"),
    ("dst[x * height + (height - 1 - y)]", "dst[y * height + x]"),
    ("src[y * width + x]", "src[(height - 1 - x) * width + y]"),
)
LARGEST_FROM_ZERO = but(
    mnist_cnn.softmax,
    ("largest = z[b, 0]", "largest = np.float32(0)"),
    ("range(1, 10)", "range(10)"),
)
WRAPPED = replace(
    mnist_cnn.CONV_WEIGHT_SOLUTION,
    ("i + r - 1", "(i + r - 1 + H) % H"),
    ("j + s - 1", "(j + s - 1 + W) % W"),
)
SCAN_TOO_LATE = but(reductions.scan, ("t >= step else 0", "t > step else 0"))
SCAN_TOO_SHORT = but(reductions.scan, ("step < 128", "step < 64"))
SCAN_REPLACED = but(reductions.scan, ("row[t] += left", "row[t] = left"))
LAST_LEFT_OUT = but(libraries.spmv, ("offsets[row + 1])", "offsets[row + 1] - 1)"))
SUM_REPLACED = but(libraries.spmv, ("total += values", "total = values"))
NO_VALUES = but(libraries.spmv, ("values[i] * x[columns[i]]", "x[columns[i]]"))
SOFTMAX_FROM_ZERO = replace(libraries.SOFTMAX_CU, "largest = -INFINITY", "largest = 0")
SOFTMAX_WITHOUT_TOP = replace(libraries.SOFTMAX_CU, "        top = largest;", "        top = 0;")
COLUMNS_4_APART = replace(matmul.BEAT_CU, "b_tile[q][x + 16 * i]", "b_tile[q][x + 4 * i]")
TILES_TURNED = replace(tensor_cores.WMMA_CU, "mem_row_major", "mem_col_major")
ROWS_16_APART = replace(tensor_cores.WMMA_CU, "a + row * k + i, k", "a + row * k + i, 16")
PAIRS_OF_A_ROW = replace(tensor_cores.REGISTERS_CU, "two(down, n)", "two(down, 1)")
EXCHANGED = replace(
    tensor_cores.REGISTERS_CU, "two(upper, 1), two(lower, 1)", "two(lower, 1), two(upper, 1)"
)
NO_N = replace(tensor_cores.WMMA_CU, "b + i * n + column", "b + i + column")
NO_K = replace(tensor_cores.WMMA_CU, "a + row * k + i", "a + row + i")
NO_16_DOWN = replace(tensor_cores.WMMA_CU, "a + row * k + i", "a + blockIdx.y * k + i")
NO_16_ACROSS = replace(tensor_cores.WMMA_CU, "b + i * n + column", "b + i * n + blockIdx.x")
FIRST_COLUMN = replace(tensor_cores.REGISTERS_CU, "n + column + threadIdx.x / 4;", "n + column;")
HALVES_SWAPPED = replace(many_gpus.EXCHANGE_CU, "flag) << 32 | bits", "bits) << 32 | flag")
SPIES = replace(many_gpus.EXCHANGE_CU, "__uint_as_float(unsigned(w))", "numbers[other * n + i]")
SUM_UNSET = replace(c_for_cuda.MEAN_MAX, "long long sum = 0", "double sum")
SUM_IN_FLOATS = replace(c_for_cuda.MEAN_MAX, "long long sum", "float sum")
LAST_BYTE_LEFT_OUT = replace(c_for_cuda.MISTAKES, "i < n", "i < n - 1")
SLIPS = [
    ("c_for_cuda.mistakes", LAST_BYTE_LEFT_OUT, "the first and the last too"),
    ("c_for_cuda.mean_max", SUM_UNSET, "`sum` may be read in line"),
    ("c_for_cuda.mean_max", SUM_IN_FLOATS, "first 24 bits"),
    ("c_for_cuda.allocate", replace(c_for_cuda.ALLOCATE, "(*out)[i]", "*out[i]"), "(*out)[i]`"),
    ("c_for_cuda.try", replace(c_for_cuda.TRY, "return error_", "exit(error_)"), "whole program"),
    ("many_gpus.exchange", HALVES_SWAPPED, "lies none yet: the upper half"),
    ("many_gpus.exchange", SPIES, "looked at the other's numbers"),
    ("libraries.spmv", LAST_LEFT_OUT, "last element of each row is left out"),
    ("libraries.spmv", SUM_REPLACED, "Only the last element of each row"),
    ("libraries.spmv", NO_VALUES, "without the matrix's values"),
    ("libraries.softmax", SOFTMAX_FROM_ZERO, "begins at 0"),
    ("libraries.softmax", SOFTMAX_WITHOUT_TOP, "is not subtracted"),
    ("reductions.scan", SCAN_TOO_LATE, "thread `step` adds nothing"),
    ("reductions.scan", SCAN_TOO_SHORT, "the sum of 64 elements"),
    ("reductions.scan", SCAN_REPLACED, "must add it instead"),
    ("reductions.look_back", but(reductions.look_back, ("t >= 0:", "t > 0:")), "Tile 0"),
    ("matmul.beat", COLUMNS_4_APART, "are read 4 apart"),
    ("tensor_cores.wmma", TILES_TURNED, "rows and columns exchanged"),
    ("tensor_cores.wmma", ROWS_16_APART, "how far apart the rows lie"),
    ("tensor_cores.registers", PAIRS_OF_A_ROW, "dealt by columns"),
    ("tensor_cores.registers", EXCHANGED, "are exchanged"),
    ("tensor_cores.registers", FIRST_COLUMN, "the first column of B's tile"),
    ("tensor_cores.wmma", NO_N, "a row has n numbers"),
    ("tensor_cores.wmma", NO_K, "a row of `a` has k numbers"),
    ("tensor_cores.wmma", NO_16_DOWN, "the rows of `a` from `16 * blockIdx.y` on"),
    ("tensor_cores.wmma", NO_16_ACROSS, "the columns of `b` from `16 * blockIdx.x` on"),
    ("first_kernels.blocks_for", blocks_of_the_picture_on_its_side, "sides of the picture"),
    ("first_kernels.batched_linear", BIAS_IN_THE_LOOP, "outside of the loop"),
    ("first_kernels.batched_linear", WEIGHT_TURNED, "axes of `weight` are exchanged"),
    ("first_kernels.batched_linear", BIAS_OF_THE_ROW, "belongs to the column"),
    ("first_kernels.batched_linear", FIRST_OF_THE_BATCH, "computed from `x[0]`"),
    ("first_kernels.max_pool", mean_of_four, "the mean of the four pixels"),
    ("first_kernels.rotate", ONE_PER_OUTPUT, "more along one of them, and for fewer"),
    ("synchronization.count", but(synchronization.count, "values[i], 1", "i, 1"), "which counter"),
    ("mnist_cnn.norm_backward", replace(mnist_cnn.NORM_SOLUTION, "B * S;", "S;"), "over the batch"),
    ("mnist_cnn.norm_backward", replace(mnist_cnn.NORM_SOLUTION, "B * S;", "1;"), "are sums"),
    ("mnist_cnn.softmax", LARGEST_FROM_ZERO, "far below zero"),
    ("mnist_cnn.conv_weight", WRAPPED, "wraps around"),
    ("beating_pytorch.update", ONE_PART, "Only the first part is taken"),
    ("beating_pytorch.head", IN_LANE_0, "right in lane 0 alone"),
    ("beating_pytorch.bn_relu_pool", NO_RELU, "ReLU is missing"),
    ("meet_the_gpu.amdahl", but(meet_the_gpu.needed, ") / (", ") // ("), "behind the point"),
]


ANOTHER_SLIP = pytest.mark.nightly("by day one slip of each exercise is told by name")


def slips():
    """pytest.param(exercise's id, answer, words) of each."""
    told = set()
    for id, answer, words in SLIPS:
        marks = [ANOTHER_SLIP] if id in told else []
        told.add(id)
        yield pytest.param(id, answer, words, id=words, marks=marks)


@pytest.mark.one_in(3, "each is another exercise's slip")
@pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
@pytest.mark.parametrize("id, answer, words", list(slips()))
def test_a_natural_slip_is_told_by_name(id, answer, words, tmp_path, request, small):
    exercise = small(exercises.EXERCISES[id])
    assert words in repr(check_answer(exercise, hand_in(exercise, answer, tmp_path, request)))


@pytest.mark.parametrize("path", CHAPTER_FILES)
def test_notebook_holds_each_starter_and_its_check(path):
    cells = [c.source.strip() for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    for exercise in ALL:
        if exercise.chapter == {"index": "start"}.get(path.stem, path.stem[3:]):
            assert exercises.starter(exercise.id) in cells
            assert any(f'exercises.check("{exercise.id}"' in cell for cell in cells)


# ---- right answers that are written differently must pass


@cuda.jit
def scale_by_hand(out, a, factor):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i >= a.shape[0]:
        return
    out[i] = a[i] * factor


@cuda.jit
def scale_grid_stride(result, values, by):
    for i in range(cuda.grid(1), len(result), cuda.gridsize(1)):
        result[i] = values[i]
        result[i] *= by


@cuda.jit(device=True)
def largest(a, b, c, d):
    return max(max(a, b), max(c, d))


@cuda.jit
def pool_with_rows(out, picture):
    x, y = cuda.grid(2)
    if y < out.shape[0]:
        if x < out.shape[1]:
            upper, lower = picture[2 * y], picture[2 * y + 1]
            out[y, x] = largest(upper[2 * x], upper[2 * x + 1], lower[2 * x], lower[2 * x + 1])


@cuda.jit
def linear_sums_in_place(out, x, weight, bias):
    j, i, n = cuda.grid(3)
    if n < out.shape[0] and i < out.shape[1] and j < out.shape[2]:
        out[n, i, j] = bias[j]
        for k in range(weight.shape[1]):
            out[n, i, j] += x[n, i, k] * weight[j, k]


@cuda.jit
def axpy_while(y, x, a):
    i = cuda.grid(1)
    while i < y.size:
        y[i] = a * x[i] + y[i]
        i += cuda.blockDim.x * cuda.gridDim.x


def blocks_by_rounding_up(height, width, block_x, block_y):
    return [-(-width // block_x), (height + block_y - 1) // block_y]


OF_ITS_KIND = pytest.mark.nightly("by day a right answer of each kind, in test_more_answers.py")


@OF_ITS_KIND
@pytest.mark.parametrize(
    "id, answer",
    [
        ("first_kernels.scale_guard", scale_by_hand),
        ("first_kernels.scale_guard", scale_grid_stride),
        ("first_kernels.max_pool", pool_with_rows),
        ("first_kernels.batched_linear", linear_sums_in_place),
        ("first_kernels.grid_stride", axpy_while),
        ("first_kernels.blocks_for", blocks_by_rounding_up),
    ],
    ids=lambda v: v if isinstance(v, str) else name_of(v),
)
def test_another_right_answer_passes(id, answer):
    exercises.check(id, answer, strict=True)


@OF_ITS_KIND
def test_another_right_answer_in_cuda_c_passes(tmp_path, cuda_c_works):
    path = tmp_path / "rotate.cu"
    path.write_text("""
__device__ int where(int row, int column, int row_length) {
    return row * row_length + column;
}

__global__ void rotate(float* out, const float* picture, int rows, int columns) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    for (int r = y; r < rows; r += blockDim.y * gridDim.y)
        for (int c = x; c < columns; c += blockDim.x * gridDim.x)
            out[where(c, rows - 1 - r, rows)] = picture[where(r, c, columns)];
}
""")
    exercises.check("first_kernels.rotate", str(path), strict=True)


# ---- answers that are no answers


@cuda.jit(device=True)
def device_function(out, a, factor):
    return a[0]


@cuda.jit
def too_few_parameters(out, a):
    out[0] = a[0]


def not_jitted(out, a, factor):
    out[0] = a[0]


@pytest.mark.parametrize(
    "answer, reason, word",
    [
        (None, "not_a_kernel", "None"),
        (..., "not_a_kernel", "Ellipsis"),
        (not_jitted, "not_a_kernel", "@cuda.jit"),
        ("scale", "not_a_kernel", "without quotes"),
        (42, "not_a_kernel", "int"),
        (SimpleNamespace(py_func=3), "not_a_kernel", "SimpleNamespace"),
        (device_function, "not_a_kernel", "device=True"),
        (first_kernels.scale[1, 32], "not_a_kernel", "launch"),
        (too_few_parameters, "wrong_arity", "(out, a, factor)"),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, str) else v,
)
def test_what_is_no_kernel_is_named(answer, reason, word):
    outcome = exercises.check("first_kernels.scale_guard", answer)
    assert (outcome.status, outcome.reason) == ("broken", reason)
    assert word in repr(outcome)


@cuda.jit
def misspelt(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = fcator * a[i]  # noqa: F821


@cuda.jit
def float_index(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i / 1] = factor * a[i]


@cuda.jit
def whole_arrays(out, a, factor):
    out[:] = a @ out


@cuda.jit
def endless(out, a, factor):
    i = cuda.grid(1)
    while i < out.size:
        out[i] = factor * a[i]


@pytest.mark.parametrize(
    "kernel, line, word",
    [
        (misspelt, "out[i] = fcator * a[i]", "fcator"),
        (float_index, "out[i / 1] = factor * a[i]", "integer"),
        (whole_arrays, "out[:] = a @ out", "for @: an array and an array"),
    ],
)
def test_a_crash_shows_the_line_and_the_thread(kernel, line, word):
    outcome = exercises.check("first_kernels.scale_guard", kernel)
    assert (outcome.status, outcome.reason) == ("broken", "crashed")
    assert line in outcome.code
    assert word in outcome.lines[0]
    assert "thread (0, 0, 0) of block (0, 0, 0)" in outcome.lines[0]


def adds_text(out, a, factor):
    i = 0
    out[i] = a + "x"


def test_a_compiler_error_is_shortened_to_the_line():
    with pytest.raises(numba.core.errors.TypingError) as caught:
        numba.njit(adds_text)(np.zeros(3), np.zeros(3), 2.0)
    rejected = crashed(engines.Stopped(caught.value), adds_text)
    assert rejected.code == 'out[i] = a + "x"'
    assert len(str(caught.value)) > 3 * len(rejected.lines[0])
    assert "add(array(float64, 1d, C), Literal[str](x))" in rejected.lines[0]


@cuda.jit
def barrier_in_a_branch(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        cuda.syncthreads()
        out[i] = factor * a[i]


@cuda.jit
def shared_without_barrier(out, a, factor):
    tile = cuda.shared.array(32, np.float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if i < out.size:
        tile[31 - t] = a[i]
        out[i] = factor * tile[t]


@cuda.jit
def uses_what_was_there(out, a, factor):
    i = cuda.grid(1)
    if i < out.size and out[i] != out[i]:
        out[i] = factor * a[i]


@pytest.mark.parametrize(
    "kernel, reason, line",
    [
        (barrier_in_a_branch, "barrier", "cuda.syncthreads()"),
        (shared_without_barrier, "uninitialized", "out[i] = factor * tile[t]"),
        (uses_what_was_there, "reads_output", ""),
    ],
    ids=name_of,
)
def test_what_only_the_cpu_engine_sees_is_named(kernel, reason, line):
    for seed in range(3):
        outcome = check_answer(exercises.EXERCISES["first_kernels.scale_guard"], kernel, seed)
        assert (outcome.status, outcome.reason) == ("not yet", reason), repr(outcome)
        assert outcome.code == line


def as_text(parameters, ranks, stage):
    return str(16 * parameters)


def one_by_one(parameters, ranks, stage):
    yield 16 * parameters


async def later(parameters, ranks, stage):
    return 16 * parameters


@pytest.mark.parametrize(
    "answer, word",
    [(as_text, "`str`: numbers"), (one_by_one, "`return`"), (later, "write `def`")],
    ids=name_of,
)
def test_what_is_no_number_is_a_wrong_type(answer, word):
    outcome = exercises.check("many_gpus.memory", answer)
    assert outcome.reason == "wrong_dtype"
    assert word in outcome.lines[0]


class Silent:
    """What tells nothing of itself: neither its text nor how long it is."""

    def tells(self):
        raise RuntimeError

    __repr__ = __str__ = __len__ = tells


class SilentError(Silent, Exception):
    pass


class SilentTuple(Silent, tuple):
    pass


def fails_silently(parameters, ranks, stage):
    raise SilentError


@pytest.mark.parametrize(
    "answer, reason",
    [
        (lambda parameters, ranks, stage: 10**5000, "wrong_value"),
        (lambda parameters, ranks, stage: Silent(), "wrong_dtype"),
        (lambda parameters, ranks, stage: (Silent(),), "wrong_dtype"),
        (lambda parameters, ranks, stage: SilentTuple(), "crashed"),
        (fails_silently, "crashed"),
    ],
)
def test_what_cannot_be_shown_has_an_outcome(answer, reason):
    outcome = exercises.check("many_gpus.memory", answer)
    assert outcome.reason == reason
    assert "something of type" in repr(outcome) or reason == "crashed"


def test_floats_are_told_by_a_guess_where_floats_may_be_returned():
    def cost(bytes, ranks):
        return 2 * (ranks - 1), (ranks - 1) * bytes / ranks

    outcome = exercises.check("many_gpus.cost", cost)
    assert outcome.reason == "wrong_value" and "go round twice" in repr(outcome)


def test_a_loop_that_waits_for_nothing_is_no_barrier(tmp_path, cuda_c_works, monkeypatch):
    monkeypatch.setattr(engines, "LAUNCH_SECONDS", 1)
    path = tmp_path / "answer.cu"
    head = ROTATE[: ROTATE.index("{")]
    path.write_text(head + "{ volatile int go = 1; while (go) {} }")
    assert exercises.check("first_kernels.rotate", path).reason == "timeout"


class Kept:
    """A class, of which Numba knows no type; its attribute is every thread's."""

    factor = 0


@cuda.jit
def keeps_in_a_class(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        Kept.factor = factor
        cuda.syncwarp()
        out[i] = Kept.factor * a[i]
        Kept.factor = 0


@without_gpu("a GPU's compiler has the first word")
def test_what_numba_cannot_type_is_told_before_what_comes_of_it():
    outcome = exercises.check("first_kernels.scale_guard", keeps_in_a_class)
    assert outcome.reason == "does_not_compile"
    assert "'Kept'" in outcome.lines[0]
    assert outcome.lines[1] == FROM_OUTSIDE
    assert outcome.code == "Kept.factor = factor"


def test_an_endless_kernel_is_stopped(monkeypatch):
    monkeypatch.setattr(limits, "EACH_SECONDS", 0.3)
    outcome = exercises.check("first_kernels.scale_guard", endless)
    assert (outcome.status, outcome.reason) == ("broken", "timeout")


@pytest.mark.parametrize(
    "answer, reason, word",
    [
        (None, "not_a_kernel", "build/rotate.cu"),
        (first_kernels.scale, "not_a_kernel", "build/rotate.cu"),
        ("nowhere/rotate.cu", "missing_file", "%%writefile"),
        ("rotate.cu\0", "missing_file", "%%writefile"),
        ("r" * 5000, "missing_file", "%%writefile"),
        (first_kernels.ROTATE_CU, "not_a_kernel", "build/rotate.cu"),
    ],
    ids=["None", "a kernel", "no file", "a null byte", "a long name", "the text itself"],
)
def test_what_is_no_cuda_file_is_named(answer, reason, word):
    outcome = exercises.check("first_kernels.rotate", answer)
    assert outcome.reason == reason
    assert word in repr(outcome)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "rotate.cu"
    path.write_bytes(b"int a;\xff\xfe")
    outcome = exercises.check("first_kernels.rotate", path)
    assert outcome.reason == "does_not_compile"
    assert "UTF-8 from byte 6 on" in outcome.lines[0]


@pytest.mark.parametrize("seed", ["7", -1, 1.5, 1 << 31])
def test_a_seed_that_is_none_is_named(seed):
    outcome = exercises.check("first_kernels.scale_guard", first_kernels.scale, seed=seed)
    assert outcome.reason == "not_a_kernel"
    assert "a seed is a whole number from 0" in outcome.lines[0]


def test_a_kernel_without_its_source_is_named():
    names = {"cuda": cuda}
    exec("@cuda.jit\ndef scale(out, a, factor):\n    pass\n", names)
    outcome = exercises.check("first_kernels.scale_guard", names["scale"])
    assert outcome.reason == "not_a_kernel"
    assert "exec" in outcome.lines[0]


def test_a_kernel_of_a_lambda_has_an_outcome():
    kernel = cuda.jit(lambda out, a, factor: None)
    assert exercises.check("first_kernels.scale_guard", kernel).reason == "unwritten"


ROTATE = first_kernels.ROTATE_CU


@pytest.mark.parametrize(
    "source, reason, word",
    [
        (ROTATE.replace("height + ", "height + ;"), "does_not_compile", "answer.cu"),
        (ROTATE.replace("void rotate", "void turn"), "missing_kernel", "turn"),
        (ROTATE.replace(", int width)", ")").replace("width", "height"), "wrong_arity", "4"),
        (ROTATE.replace("dst[", "((float*)0)["), "crashed", ""),
    ],
    ids=["syntax error", "another name", "another signature", "null pointer"],
)
def test_a_broken_cuda_file_is_named(source, reason, word, tmp_path, cuda_c_works):
    assert source != ROTATE
    path = tmp_path / "answer.cu"
    path.write_text(source)
    outcome = exercises.check("first_kernels.rotate", path)
    assert (outcome.status, outcome.reason) == ("broken", reason), repr(outcome)
    assert word in repr(outcome)
    assert path.read_text() == source


def test_a_pointer_of_another_type_is_named(tmp_path, cuda_c_works):
    path = tmp_path / "answer.cu"
    path.write_text(ROTATE.replace("float*", "double*"))
    outcome = exercises.check("first_kernels.rotate", path)
    assert outcome.reason == "wrong_dtype", repr(outcome)
    assert "float64" in repr(outcome)


def test_without_a_compiler_it_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_COURSE_CPU", "1")
    monkeypatch.delenv("CXX", raising=False)
    path = tmp_path / "answer.cu"
    path.write_text(ROTATE)
    outcome = exercises.check("first_kernels.rotate", path)
    assert (outcome.status, outcome.reason) == ("broken", "not_checked"), repr(outcome)
    assert "sudo apt install g++" in repr(outcome)


def test_an_endless_cuda_kernel_is_stopped_and_not_tried_again(tmp_path, cuda_c_works, monkeypatch):
    tries, run = [], engines.run_cuda_c
    monkeypatch.setattr(engines, "LAUNCH_SECONDS", 1)
    monkeypatch.setattr(engines, "run_cuda_c", lambda *a, **k: tries.append(1) or run(*a, **k))
    path = tmp_path / "answer.cu"
    path.write_text(ROTATE.replace("if (x <", "while (x <"))
    outcome = exercises.check("first_kernels.rotate", path)
    assert outcome.reason == "timeout", repr(outcome)
    assert len(tries) == 1


# ---- what the checker itself promises


@cuda.jit
def shift_left(out):
    i = cuda.grid(1)
    if i < out.size - 1:
        out[i] = out[i + 1]


SHIFT_LEFT_CU = """
__global__ void shift_left(float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) out[i] = out[i + 1];
}
"""


def shift_exercise(**details):
    """Shift to the left, in place: right only if the threads happen to run in the order of their
    elements.
    """
    return Exercise(
        id="test.shift",
        title="",
        minutes=1,
        task="",
        hints=(),
        extents=lambda n: (*n, 1, 1),
        orders=4,
        **{"shapes": ((8,), (40,)), **details},
    )


def shifted(out, n=None):
    return np.append(out[1:], out[-1:])


@pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
def test_a_result_that_depends_on_the_order_of_threads_is_a_race():
    exercise = shift_exercise(
        starter="def shift_left(out):\n    ...",
        solution=shift_left,
        inputs=lambda rng, n: {"out": InOut(rng.uniform(size=n).astype(np.float32))},
        reference=shifted,
    )
    assert {check_answer(exercise, shift_left, seed).reason for seed in range(10)} == {"race"}


@pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
def test_a_race_in_cuda_c_is_found_too(tmp_path, cuda_c_works):
    exercise = shift_exercise(
        kind="cuda_c",
        kernel_name="shift_left",
        starter="",
        solution=SHIFT_LEFT_CU,
        inputs=lambda rng, n: {"out": InOut(rng.uniform(size=n).astype(np.float32)), "n": n[0]},
        reference=shifted,
    )
    path = tmp_path / "shift.cu"
    path.write_text(SHIFT_LEFT_CU)
    assert {check_answer(exercise, path, seed).reason for seed in range(2)} == {"race"}


@pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
def test_the_advice_for_a_race_does_not_contradict_the_exercise(tmp_path, cuda_c_works):
    exercise = exercises.EXERCISES["tensor_cores.ring"]
    used, given_back = tensor_cores.ADDS, tensor_cores.CONSUMER_ARRIVES
    path = tmp_path / "answer.cu"
    path.write_text(replace(exercise.solution, used + given_back, given_back + used))
    outcome = check_answer(exercise, path)
    assert outcome.reason == "race" and OTHER_BARRIERS in repr(outcome)
    assert "__syncthreads() between" not in repr(outcome)


@pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
def test_a_race_between_blocks_may_be_a_wrong_index(tmp_path, cuda_c_works):
    """An index that leads into another sequence's cache has no cure by atomics or a barrier."""
    exercise = exercises.EXERCISES["attention.cached"]
    own, another = "(sequence * capacity + ", "(sequence * (length + 1) + "
    path = tmp_path / "answer.cu"
    path.write_text(exercise.solution.replace(own, another))
    assert OTHER_BLOCKS in repr(check_answer(exercise, path))
    path.write_text(exercise.solution.replace("__syncthreads();", ""))  # in a block
    outcome = check_answer(exercise, path)
    assert outcome.reason == "race" and OTHER_BLOCKS not in repr(outcome)


def test_outputs_never_start_as_the_right_answer():
    rng = np.random.default_rng(0)
    expected = rng.integers(0, 256, 4096).astype(np.uint8)
    for dtype in (np.uint8, np.int32, np.float32, bool):
        right = (expected > 127) if dtype is bool else expected.astype(dtype)
        for _ in range(8):
            start = engines.initial_output(Out(right.shape, dtype), right, rng)
            assert start.dtype == right.dtype
            assert not (start == right).any()


def test_nan_never_passes():
    expected = np.array([1.0, np.nan, 3.0], np.float32)
    arguments = {"out": Out((3,)), "a": expected, "factor": 1.0}
    launch = Launch((1, 1, 1), (32, 1, 1))
    run = Run((3,), launch, "CPU", expected, expected.copy(), np.zeros(3, np.float32), arguments)
    assert diagnose([run], first_kernels.SCALE).reason == "wrong_value"


def test_nan_passes_for_no_number():
    expected = np.array([1, 2, 3], np.float32)
    actual = np.array([1, np.nan, 3], np.float32)
    arguments = {"out": Out((3,)), "a": expected, "factor": 1.0}
    launch = Launch((1, 1, 1), (32, 1, 1))
    run = Run((3,), launch, "CPU", expected, actual, np.zeros(3, np.float32), arguments)
    assert diagnose([run], first_kernels.SCALE).reason == "wrong_value"


def test_no_reference_is_nan():
    """What is to be computed is always a number, so NaN is never right."""
    expected = ((e.id, case[-1]) for e in KERNELS for case in cases(e, 0))
    assert {id for id, numbers in expected if np.isnan(numbers).any()} == set()


def test_the_same_seed_gives_the_same_report():
    wrong = but(first_kernels.max_pool, "max(upper, lower)", "upper")
    first, again = (exercises.check("first_kernels.max_pool", wrong, seed=7) for _ in range(2))
    assert repr(first) == repr(again)
    assert "seed=7" in repr(first)
    assert repr(first) != repr(exercises.check("first_kernels.max_pool", wrong, seed=8))


def test_strict_raises_what_it_would_report():
    unguarded = but(first_kernels.scale, "i < out.size", "True")
    with pytest.raises(exercises.NotSolved, match=re.escape(REASONS["missing_guard"])):
        exercises.check("first_kernels.scale_guard", unguarded, strict=True)


def test_an_unknown_id_suggests_the_nearest():
    with pytest.raises(ValueError, match="first_kernels.max_pool"):
        exercises.check("first_kernels.maxpool", None)


def test_a_report_is_safe_html_with_a_described_picture():
    swapped = but(first_kernels.max_pool, "x, y = cuda", "y, x = cuda")
    outcome = exercises.check("first_kernels.max_pool", swapped)
    html = outcome._repr_html_()
    assert 'aria-label="Map of the output' in html
    assert "&#x27;" not in outcome.headline
    assert (
        "<script>"
        not in exercises.check(
            "first_kernels.scale_guard", "<script>alert(1)</script>"
        )._repr_html_()
    )


def test_only_a_solved_exercise_is_recorded(tmp_path, monkeypatch):
    file = tmp_path / "progress.json"
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(file))
    exercises.check("first_kernels.grid_stride", but(first_kernels.add_scaled, "+=", "="))
    assert not file.exists()
    exercises.check("first_kernels.grid_stride", first_kernels.add_scaled)
    assert list(json.loads(file.read_text())["exercises"]) == ["first_kernels.grid_stride"]


def test_hints_come_one_at_a_time(monkeypatch):
    monkeypatch.setattr(exercises, "_hints_shown", {})
    hints = exercises.EXERCISES["first_kernels.max_pool"].hints
    shown = [repr(exercises.hint("first_kernels.max_pool")) for _ in range(len(hints) + 1)]
    for n, text in enumerate(shown[:-1], 1):
        assert all(hint in text for hint in hints[:n])
        assert not any(hint in text for hint in hints[n:])
    assert shown[-1] == shown[-2]
    assert 'exercises.solution("first_kernels.max_pool")' in shown[-1]


def test_the_solution_shown_is_the_one_that_runs():
    assert "out[i] = factor * a[i]" in repr(exercises.solution("first_kernels.scale_guard"))
    assert repr(exercises.solution("first_kernels.scale_guard")).startswith(
        "```python\n@cuda.jit\ndef scale("
    )
    assert ROTATE.strip() in repr(exercises.solution("first_kernels.rotate"))


def test_a_solved_exercise_unfolds_its_solution_and_what_goes_wrong(monkeypatch):
    monkeypatch.setattr("course.progress.record_solved", lambda id: None)
    exercise = exercises.EXERCISES["first_kernels.scale_guard"]
    solved = exercises.check(exercise.id, exercise.solution)
    assert f'exercises.solution("{exercise.id}")' in repr(solved)
    shown = solved._repr_html_()
    folded = shown[shown.index("<details") :]
    assert "out[i] = factor * a[i]" in folded and REASONS["missing_guard"] in folded
    assert REASONS["missing_guard"] in repr(exercises.solution(exercise.id))
    for unsolved in (
        exercises.check(exercise.id, exercise.wrong[0].answer),
        exercises.check(exercise.id, exercise.starter),
    ):
        assert "solution(" not in repr(unsolved) + unsolved._repr_html_()


# ---- questions


def unexplained(quiz):
    """The answers of a question to which it does not reply as it should."""
    right, text = quiz.reply(quiz.answer)
    if not right or quiz.explain_right not in text:
        yield quiz.answer
    wrong = {*quiz.choices, *quiz.explain, *([] if quiz.choices else [-1])} - {None, quiz.answer}
    for answer in wrong:
        right, text = quiz.reply(answer)
        if right or quiz.explain.get(answer, quiz.explain.get(None)) not in text:
            yield answer


@pytest.mark.quick
def test_each_answer_of_a_question_is_explained():
    found = {id: list(unexplained(quiz)) for id, quiz in exercises.QUIZZES.items()}
    assert {id: answers for id, answers in found.items() if answers} == {}


def test_a_question_takes_an_answer_as_people_write_it():
    assert exercises.QUIZZES["ecosystem.q_fused"].reply("24,000")[0]
    assert exercises.QUIZZES["ecosystem.q_place"].reply(" A")[0]
    assert not exercises.QUIZZES["ecosystem.q_place"].reply("B")[0]
    about = exercises.QUIZZES["mnist_cnn.q_launches"]
    assert about.reply("303")[0] and not about.reply("311")[0]


def test_a_question_renders_as_text_and_as_widgets(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    view = exercises.quiz("first_kernels.q_async")
    bundle = view._repr_mimebundle_()
    assert "a) At the line that launches it" in bundle["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    box = view.widget()
    _, field, button, reply = box.children
    field.value = "a"
    button.click()
    assert "Not this" in reply.value
    assert not (tmp_path / "progress.json").exists()
    field.value = "b"
    button.click()
    assert "Right" in reply.value
    assert "first_kernels.q_async" in (tmp_path / "progress.json").read_text()
