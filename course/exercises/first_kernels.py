"""The exercises of chapter 05, First kernels."""

import numpy as np
from numba import cuda

from course.checking.model import Exercise, Hypothesis, InOut, Launch, Out, Wrong, ceil_div
from course.checking.quiz import Quiz


def uniform(rng, *shape):
    """Random float32 values between -1 and 1."""
    return rng.uniform(-1, 1, size=shape).astype(np.float32)


def some_length(rng):
    """The shape of an array, never a multiple of 32."""
    return (int(rng.integers(3, 8) * 32 + rng.integers(1, 32)),)


def some_picture(rng):
    """(height, width) of a picture, never square."""
    width = int(rng.integers(2, 25))
    return width + int(rng.integers(1, 10)), width


def replace(source, old, new):
    """A wrong CUDA C answer: the solution with one piece exchanged."""
    assert old in source, f"not in the solution: {old}"
    return source.replace(old, new)


# ---- 05.scale_guard: change one line


@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor * a[i]


@cuda.jit
def scale_one_too_many(out, a, factor):
    i = cuda.grid(1)
    if i <= out.size:
        out[i] = factor * a[i]


@cuda.jit
def scale_without_guard(out, a, factor):
    i = cuda.grid(1)
    out[i] = factor * a[i]


@cuda.jit
def scale_one_too_few(out, a, factor):
    i = cuda.grid(1)
    if i < out.size - 1:
        out[i] = factor * a[i]


@cuda.jit
def scale_whole_blocks(out, a, factor):
    i = cuda.grid(1)
    if i < out.size // cuda.blockDim.x * cuda.blockDim.x:
        out[i] = factor * a[i]


@cuda.jit
def scale_first_block(out, a, factor):
    i = cuda.threadIdx.x
    if i < out.size:
        out[i] = factor * a[i]


@cuda.jit
def scale_in_place(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        a[i] = factor * a[i]
        out[i] = a[i]


@cuda.jit
def scale_adds(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor + a[i]


SCALE = Exercise(
    id="first_kernels.scale_guard",
    title="Repair the guard",
    minutes=3,
    task=(
        "This kernel multiplies every element of `a` by `factor`, and its guard lets one thread too many"
        " pass. Change one line so that it is right for every size and every grid that is large enough."
    ),
    starter="""
@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    if i <= out.size:  # change this line
        out[i] = factor * a[i]
""",
    solution=scale,
    inputs=lambda rng, n: {
        "out": Out(n),
        "a": uniform(rng, *n),
        "factor": np.float32(rng.uniform(1, 3)),
    },
    reference=lambda out, a, factor: a.astype(np.float64) * factor,
    shapes=((0,), (1,), (2,), (31,), (32,), (33,), (64,), (97,)),
    fresh=some_length,
    extents=lambda n: (n[0], 1, 1),
    hints=(
        "An array of `n` elements has the indices 0 to n - 1. What does `i <= out.size` say of `i == n`?",
        "The thread with `i == out.size` must not pass: which comparison leaves out equality?",
    ),
    wrong=(
        Wrong(scale_one_too_many, "off_by_one"),
        Wrong(scale_without_guard, "missing_guard"),
        Wrong(scale_one_too_few, "off_by_one"),
        Wrong(scale_whole_blocks, "only_multiples"),
        Wrong(scale_first_block, "first_block_only"),
        Wrong(scale_in_place, "modifies_input"),
        Wrong(scale_adds, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is `factor + a[i]`; it should be `factor * a[i]`.",
            lambda out, a, factor: a + factor,
        ),
    ),
)


# ---- 05.blocks_for: a launch shape


def blocks_for(height, width, block_x, block_y):
    return ceil_div(width, block_x), ceil_div(height, block_y)


def blocks_rounded_down(height, width, block_x, block_y):
    return width // block_x, height // block_y


def blocks_one_more(height, width, block_x, block_y):
    return width // block_x + 1, height // block_y + 1


def blocks_swapped(height, width, block_x, block_y):
    return ceil_div(height, block_y), ceil_div(width, block_x)


def blocks_as_floats(height, width, block_x, block_y):
    return np.ceil(width / block_x), np.ceil(height / block_y)


def blocks_from_width_only(height, width, block_x, block_y):
    return ceil_div(width, block_x), ceil_div(width, block_y)


BLOCKS_FOR = Exercise(
    id="first_kernels.blocks_for",
    title="How many blocks?",
    minutes=5,
    kind="function",
    task=(
        "Return the grid `(blocks along x, blocks along y)` with which blocks of `block_x` by `block_y`"
        " threads cover a picture of `height` rows and `width` columns. There must be a thread for every"
        " pixel and no block without any."
    ),
    starter="""
def blocks_for(height, width, block_x, block_y): ...  # return (blocks along x, blocks along y)
""",
    solution=blocks_for,
    inputs=lambda rng, shape: dict(
        zip(("height", "width", "block_x", "block_y"), shape, strict=True)
    ),
    reference=lambda height, width, block_x, block_y: (
        ceil_div(width, block_x),
        ceil_div(height, block_y),
    ),
    shapes=(
        (32, 48, 16, 8),
        (64, 64, 16, 16),
        (1, 1, 16, 16),
        (37, 101, 16, 8),
        (480, 641, 32, 8),
        (7, 1024, 256, 1),
        (1080, 1920, 32, 32),
        (33, 32, 32, 32),
    ),
    fresh=lambda rng: (
        *map(int, rng.integers(1, 5000, size=2)),
        int(rng.integers(1, 65)),
        int(rng.integers(1, 17)),
    ),
    hints=(
        (
            "Along x there are `width` columns and each block covers `block_x` of them. If the last block is"
            " only partly used, it is still needed."
        ),
        (
            "`width // block_x` rounds down. Add just enough before dividing that anything left over counts"
            " as one more: `block_x - 1`."
        ),
        "`(width + block_x - 1) // block_x`, and the same along y with `height` and `block_y`.",
    ),
    wrong=(
        Wrong(blocks_rounded_down, "only_multiples"),
        Wrong(blocks_one_more, "off_by_one"),
        Wrong(blocks_swapped, "swapped_axes"),
        Wrong(blocks_as_floats, "wrong_dtype"),
        Wrong(blocks_from_width_only, "only_square"),
    ),
    hypotheses=(
        Hypothesis(
            "only_multiples",
            "Rounded down, the last and partly used block is missing.",
            blocks_rounded_down,
        ),
        Hypothesis(
            "off_by_one",
            "When the size is a multiple of the block, this is one block too many.",
            blocks_one_more,
        ),
        Hypothesis(
            "swapped_axes",
            "x runs along a row, so blocks along x come from the width.",
            blocks_swapped,
        ),
        Hypothesis(
            "swapped_axes",
            "The sides of the block are exchanged.",
            lambda height, width, block_x, block_y: (
                ceil_div(width, block_y),
                ceil_div(height, block_x),
            ),
        ),
        Hypothesis("only_square", "Blocks along y come from the height.", blocks_from_width_only),
        Hypothesis(
            "only_square",
            "Blocks along x come from the width.",
            lambda height, width, block_x, block_y: (
                ceil_div(height, block_x),
                ceil_div(height, block_y),
            ),
        ),
    ),
)


# ---- 05.max_pool: two axes, and an output smaller than the input


@cuda.jit
def max_pool(out, picture):
    x, y = cuda.grid(2)
    height, width = out.shape
    if x < width and y < height:
        upper = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
        lower = max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
        out[y, x] = max(upper, lower)


@cuda.jit
def pool_without_guard(out, picture):
    x, y = cuda.grid(2)
    upper = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
    lower = max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
    out[y, x] = max(upper, lower)


@cuda.jit
def pool_guards_x_only(out, picture):
    x, y = cuda.grid(2)
    if x < out.shape[1]:
        upper = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
        lower = max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
        out[y, x] = max(upper, lower)


@cuda.jit
def pool_swapped(out, picture):
    row, column = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        upper = max(picture[2 * row, 2 * column], picture[2 * row, 2 * column + 1])
        lower = max(picture[2 * row + 1, 2 * column], picture[2 * row + 1, 2 * column + 1])
        out[row, column] = max(upper, lower)


@cuda.jit
def pool_square(out, picture):
    x, y = cuda.grid(2)
    n = out.shape[0]
    if x < n and y < n:
        upper = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
        lower = max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
        out[y, x] = max(upper, lower)


@cuda.jit
def pool_one_too_many(out, picture):
    x, y = cuda.grid(2)
    if x <= out.shape[1] and y <= out.shape[0]:
        upper = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
        lower = max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
        out[y, x] = max(upper, lower)


@cuda.jit
def pool_whole_blocks(out, picture):
    x, y = cuda.grid(2)
    height = out.shape[0] // cuda.blockDim.y * cuda.blockDim.y
    width = out.shape[1] // cuda.blockDim.x * cuda.blockDim.x
    if x < width and y < height:
        upper = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
        lower = max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
        out[y, x] = max(upper, lower)


@cuda.jit
def pool_step_of_one(out, picture):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        upper = max(picture[y, x], picture[y, x + 1])
        lower = max(picture[y + 1, x], picture[y + 1, x + 1])
        out[y, x] = max(upper, lower)


@cuda.jit
def pool_upper_row_only(out, picture):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])


def four_of_each_square(picture, step=2):
    """The four pixels of each 2 x 2 square as a new first axis; squares that would stick out are
    left away.
    """
    height, width = picture.shape[0] // 2, picture.shape[1] // 2
    return np.stack([picture[dy : dy + step * height : step, dx : dx + step * width : step][:height, :width]
                     for dy in (0, 1) for dx in (0, 1)])  # fmt: skip


MAX_POOL = Exercise(
    id="first_kernels.max_pool",
    title="Half the picture",
    minutes=10,
    task=(
        "Shrink a picture to half its size: `out[y, x]` is the largest of the four pixels of `picture` in rows"
        " 2y and 2y + 1 and columns 2x and 2x + 1. One thread an element of `out`. An odd last row or column of"
        " the picture is left out. (A network that reads digits does exactly this, twice: chapter 16.)"
    ),
    starter="""
@cuda.jit
def max_pool(out, picture):
    x, y = cuda.grid(2)
    ...  # guard, then the largest of four pixels
""",
    solution=max_pool,
    inputs=lambda rng, shape: {
        "out": Out((shape[0] // 2, shape[1] // 2)),
        "picture": uniform(rng, *shape),
    },
    reference=lambda out, picture: four_of_each_square(picture).max(axis=0),
    shapes=((2, 2), (8, 16), (16, 16), (16, 32), (18, 18), (10, 26), (23, 7), (3, 35), (38, 2)),
    block=(8, 4, 1),
    extents=lambda shape: (shape[1] // 2, shape[0] // 2, 1),
    swapped=(0, 1),
    hints=(
        "The guard compares with `out.shape`, since there is a thread for each element of `out`.",
        "`height, width = out.shape`: the first axis counts rows, which is y.",
        "The upper two pixels are `picture[2 * y, 2 * x]` and `picture[2 * y, 2 * x + 1]`; `max(a, b)` works in kernels.",
    ),
    wrong=(
        Wrong(pool_without_guard, "missing_guard"),
        Wrong(pool_guards_x_only, "missing_guard"),
        Wrong(pool_swapped, "swapped_axes"),
        Wrong(pool_square, "only_square"),
        Wrong(pool_one_too_many, "off_by_one"),
        Wrong(pool_whole_blocks, "only_multiples"),
        Wrong(pool_step_of_one, "wrong_value"),
        Wrong(pool_upper_row_only, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The squares overlap: those of neighbouring threads must lie two pixels apart.",
            lambda out, picture: four_of_each_square(picture, step=1).max(axis=0),
        ),
        Hypothesis(
            "wrong_value",
            "Only the upper two of the four pixels are compared.",
            lambda out, picture: four_of_each_square(picture)[:2].max(axis=0),
        ),
    ),
)


# ---- 05.batched_linear: the batch as a grid axis


@cuda.jit
def linear(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    if batch < out.shape[0] and row < out.shape[1] and column < out.shape[2]:
        total = bias[column]
        for k in range(x.shape[2]):
            total += x[batch, row, k] * weight[column, k]
        out[batch, row, column] = total


@cuda.jit
def linear_without_guard(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    total = bias[column]
    for k in range(x.shape[2]):
        total += x[batch, row, k] * weight[column, k]
    out[batch, row, column] = total


@cuda.jit
def linear_batch_unguarded(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    if row < out.shape[1] and column < out.shape[2]:
        total = bias[column]
        for k in range(x.shape[2]):
            total += x[batch, row, k] * weight[column, k]
        out[batch, row, column] = total


@cuda.jit
def linear_swapped(out, x, weight, bias):
    row, column, batch = cuda.grid(3)
    if batch < out.shape[0] and row < out.shape[1] and column < out.shape[2]:
        total = bias[column]
        for k in range(x.shape[2]):
            total += x[batch, row, k] * weight[column, k]
        out[batch, row, column] = total


@cuda.jit
def linear_square(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    n = out.shape[2]
    if batch < out.shape[0] and row < n and column < n:
        total = bias[column]
        for k in range(n):
            total += x[batch, row, k] * weight[column, k]
        out[batch, row, column] = total


@cuda.jit
def linear_last_k_missing(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    if batch < out.shape[0] and row < out.shape[1] and column < out.shape[2]:
        total = bias[column]
        for k in range(x.shape[2] - 1):
            total += x[batch, row, k] * weight[column, k]
        out[batch, row, column] = total


@cuda.jit
def linear_without_bias(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    if batch < out.shape[0] and row < out.shape[1] and column < out.shape[2]:
        total = np.float32(0)
        for k in range(x.shape[2]):
            total += x[batch, row, k] * weight[column, k]
        out[batch, row, column] = total


@cuda.jit
def linear_adds_to_output(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    if batch < out.shape[0] and row < out.shape[1] and column < out.shape[2]:
        for k in range(x.shape[2]):
            out[batch, row, column] += x[batch, row, k] * weight[column, k]
        out[batch, row, column] += bias[column]


def affine(x, weight, bias):
    """x @ weight.T + bias in float64."""
    return x.astype(np.float64) @ weight.astype(np.float64).T + bias


LINEAR = Exercise(
    id="first_kernels.batched_linear",
    title="A linear layer, for a whole batch",
    minutes=15,
    task=(
        "`torch.nn.Linear` computes `x @ weight.T + bias`. Do it for a batch: out[batch, row, column] is"
        " bias[column] plus the sum over k of x[batch, row, k] * weight[column, k]. All batches share one"
        " weight, whose rows belong to the *columns* of the output. x runs along the columns, y along the rows"
        " and z along the batch; nothing is square."
    ),
    starter="""
@cuda.jit
def linear(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    ...  # one thread fills one element of out
""",
    solution=linear,
    inputs=lambda rng, s: {
        "out": Out((s[0], s[1], s[3])),
        "x": uniform(rng, s[0], s[1], s[2]),
        "weight": uniform(rng, s[3], s[2]),
        "bias": uniform(rng, s[3]),
    },
    reference=lambda out, x, weight, bias: affine(x, weight, bias),
    shapes=(
        (1, 1, 1, 1),
        (2, 4, 4, 4),
        (3, 5, 5, 5),
        (3, 4, 3, 8),
        (2, 5, 7, 3),
        (1, 3, 2, 9),
        (5, 2, 11, 4),
    ),
    block=(4, 4, 2),
    extents=lambda s: (s[3], s[1], s[0]),
    is_square=lambda s: s[1] == s[2] == s[3],
    swapped=(1, 2),
    hints=(
        "Start with the guard: three axes, three comparisons, each against one side of `out.shape`.",
        "Sum in a variable of the thread's own, beginning with the bias, and write it to `out` once, at the end.",
        "k runs over the side that both share: `x.shape[2]`, which is also `weight.shape[1]`.",
    ),
    wrong=(
        Wrong(linear_without_guard, "missing_guard"),
        Wrong(linear_batch_unguarded, "missing_guard"),
        Wrong(linear_swapped, "swapped_axes"),
        Wrong(linear_square, "only_square"),
        Wrong(linear_last_k_missing, "off_by_one"),
        Wrong(linear_without_bias, "wrong_value"),
        Wrong(linear_adds_to_output, "reads_output"),
    ),
    hypotheses=(
        Hypothesis(
            "off_by_one",
            "The last term of the sum is missing: `range(n)` already stops before n.",
            lambda out, x, weight, bias: affine(x[:, :, :-1], weight[:, :-1], bias),
        ),
        Hypothesis(
            "off_by_one",
            "The first term of the sum is missing: k starts at 0.",
            lambda out, x, weight, bias: affine(x[:, :, 1:], weight[:, 1:], bias),
        ),
        Hypothesis(
            "wrong_value",
            "The bias is missing.",
            lambda out, x, weight, bias: affine(x, weight, 0 * bias),
        ),
        Hypothesis(
            "wrong_value",
            "Every batch is computed from `x[0]`.",
            lambda out, x, weight, bias: affine(x[:1], weight, bias),
        ),
    ),
)


# ---- 05.rotate: index arithmetic in CUDA C

ROTATE_CU = """
// Turn a picture by 90 degrees clockwise.
// src has height rows of width, dst has width rows of height.
__global__ void rotate(float* dst, const float* src, int height, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        dst[x * height + (height - 1 - y)] = src[y * width + x];
}
"""
GUARD = "    if (x < width && y < height)\n"
TARGET = "dst[x * height + (height - 1 - y)]"

ROTATE = Exercise(
    id="first_kernels.rotate",
    title="Turn a picture, in CUDA C",
    minutes=15,
    kind="cuda_c",
    kernel_name="rotate",
    path="build/rotate.cu",
    task=(
        "Write the kernel `rotate` that turns a picture by 90 degrees clockwise: its top row becomes the"
        " right-hand column. In C there are only flat arrays, so row y, column x of the input is `src[y *"
        " width + x]`, and the output has `width` rows of `height` elements."
    ),
    starter="""
%%writefile build/rotate.cu
// Turn a picture by 90 degrees clockwise.
// src has height rows of width, dst has width rows of height.
__global__ void rotate(float* dst, const float* src, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    // your code: a guard, then one assignment
}
""",
    solution=ROTATE_CU,
    inputs=lambda rng, s: {
        "dst": Out((s[1], s[0])),
        "src": uniform(rng, *s),
        "height": s[0],
        "width": s[1],
    },
    reference=lambda dst, src, height, width: np.rot90(src, k=-1),
    shapes=((1, 1), (4, 8), (8, 8), (8, 16), (9, 9), (5, 13), (11, 3), (1, 17), (19, 1)),
    fresh=some_picture,
    block=(8, 4, 1),
    extents=lambda shape: (shape[1], shape[0], 1),
    hints=(
        (
            "Follow one pixel on paper: the top left one, (x = 0, y = 0), moves to the top right corner of"
            " the output."
        ),
        (
            "The input's column x becomes the output's row x, and the input's row y the output's column"
            " height - 1 - y."
        ),
        "The output's rows are `height` long, so its row r, column c is `dst[r * height + c]`.",
    ),
    wrong=(
        Wrong(replace(ROTATE_CU, GUARD, ""), "missing_guard"),
        Wrong(replace(ROTATE_CU, "x < width && y < height", "x < width"), "missing_guard"),
        Wrong(
            replace(ROTATE_CU, "x < width && y < height", "x <= width && y < height"), "off_by_one"
        ),
        Wrong(replace(ROTATE_CU, TARGET, "dst[x * height + (height - y)]"), "off_by_one"),
        Wrong(replace(ROTATE_CU, TARGET, "dst[x * height + y]"), "swapped_axes"),
        Wrong(replace(ROTATE_CU, TARGET, "dst[(width - 1 - x) * height + y]"), "wrong_value"),
        Wrong(replace(ROTATE_CU, TARGET, "dst[x * width + (height - 1 - y)]"), "only_square"),
        Wrong(
            replace(
                ROTATE_CU,
                "x < width && y < height",
                "x < width / blockDim.x * blockDim.x && y < height / blockDim.y * blockDim.y",
            ),
            "only_multiples",
        ),
        Wrong(replace(ROTATE_CU, "src[y * width + x]", "src[x * height + y]"), "swapped_axes"),
    ),
    hypotheses=(
        Hypothesis(
            "swapped_axes",
            "This is the transpose: rows and columns are exchanged, but nothing is turned around.",
            lambda dst, src, height, width: src.T,
        ),
        Hypothesis(
            "swapped_axes",
            "The input is read as `src[x * height + y]`; its rows are `width` long: `src[y * width + x]`.",
            lambda dst, src, height, width: src.reshape(width, height)[:, ::-1],
        ),
        Hypothesis(
            "wrong_value",
            "This is a quarter turn the other way, anticlockwise.",
            lambda dst, src, height, width: np.rot90(src, k=1),
        ),
        Hypothesis(
            "wrong_value",
            "This is the transpose across the other diagonal: turned and mirrored.",
            lambda dst, src, height, width: np.rot90(src, k=-1)[::-1],
        ),
    ),
)


# ---- 05.grid_stride: any grid will do


@cuda.jit
def axpy(y, x, a):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, y.size, stride):
        y[i] += a * x[i]


@cuda.jit
def axpy_without_loop(y, x, a):
    i = cuda.grid(1)
    if i < y.size:
        y[i] += a * x[i]


@cuda.jit
def axpy_without_guard(y, x, a):
    i = cuda.grid(1)
    y[i] += a * x[i]


@cuda.jit
def axpy_block_stride(y, x, a):
    for i in range(cuda.grid(1), y.size, cuda.blockDim.x):
        y[i] += a * x[i]


@cuda.jit
def axpy_starts_in_block(y, x, a):
    for i in range(cuda.threadIdx.x, y.size, cuda.blockDim.x):
        y[i] += a * x[i]


@cuda.jit
def axpy_one_too_many(y, x, a):
    for i in range(cuda.grid(1), y.size + 1, cuda.gridsize(1)):
        y[i] += a * x[i]


@cuda.jit
def axpy_one_too_few(y, x, a):
    for i in range(cuda.grid(1), y.size - 1, cuda.gridsize(1)):
        y[i] += a * x[i]


@cuda.jit
def axpy_whole_strides(y, x, a):
    stride = cuda.gridsize(1)
    for n in range(y.size // stride):
        i = cuda.grid(1) + n * stride
        y[i] += a * x[i]


@cuda.jit
def axpy_forgets_y(y, x, a):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] = a * x[i]


def grids(n):
    """Fewer threads than elements, one block, just enough, and more."""
    enough = max(1, ceil_div(n[0], 32))
    tried = {
        1: "one block",
        max(1, enough // 2): "fewer threads than elements",
        enough: "just enough blocks",
        enough + 2: "more blocks than needed",
    }
    return [Launch((g, 1, 1), (32, 1, 1), label) for g, label in sorted(tried.items())]


GRID_STRIDE = Exercise(
    id="first_kernels.grid_stride",
    title="Any grid will do",
    minutes=10,
    task=(
        "Add `a * x[i]` to every `y[i]`, with a grid-stride loop: the kernel must be right for any number of"
        " blocks, from one to more than needed, and each element must be the work of exactly one thread."
    ),
    starter="""
@cuda.jit
def axpy(y, x, a):
    i = cuda.grid(1)
    if i < y.size:  # make this a loop that steps over the whole grid
        y[i] += a * x[i]
""",
    solution=axpy,
    inputs=lambda rng, n: {
        "y": InOut(uniform(rng, *n)),
        "x": uniform(rng, *n),
        "a": np.float32(rng.uniform(1, 3)),
    },
    reference=lambda y, x, a: y + a * x.astype(np.float64),
    shapes=((0,), (1,), (31,), (32,), (64,), (97,), (128,), (193,)),
    fresh=some_length,
    launches=grids,
    extents=lambda n: (n[0], 1, 1),
    hints=(
        (
            "A thread starts at its own index `cuda.grid(1)`, and goes on at the next index that no other"
            " thread has."
        ),
        (
            "`cuda.gridsize(1)` is the number of threads in the whole grid: the step from one element to the"
            " next."
        ),
        "`for i in range(start, y.size, stride):` needs no other guard. Why?",
    ),
    wrong=(
        Wrong(axpy_without_loop, "needs_full_grid"),
        Wrong(axpy_without_guard, "missing_guard"),
        Wrong(axpy_block_stride, "duplicate_work"),
        Wrong(axpy_starts_in_block, "duplicate_work"),
        Wrong(axpy_one_too_many, "off_by_one"),
        Wrong(axpy_one_too_few, "off_by_one"),
        Wrong(axpy_whole_strides, "only_multiples"),
        Wrong(axpy_forgets_y, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value", "What `y` held is lost: add to it (`+=`).", lambda y, x, a: a * x
        ),
    ),
)

EXERCISES = (SCALE, BLOCKS_FOR, MAX_POOL, LINEAR, ROTATE, GRID_STRIDE)

QUIZZES = (
    Quiz(
        id="first_kernels.q_threads",
        question="A kernel is launched as `k[(4, 2), (16, 8)]`. How many threads run it?",
        answer=1024,
        unit="threads",
        explain_right="4 × 2 = 8 blocks of 16 × 8 = 128 threads.",
        explain={
            128: "That is one block. There are 4 × 2 of them.",
            8: "That is the number of blocks.",
            None: "Multiply blocks along x and y, and threads along x and y of a block.",
        },
    ),
    Quiz(
        id="first_kernels.q_guard",
        question="1,000 elements, blocks of 256 threads. How many threads have nothing to do?",
        answer=24,
        unit="threads",
        explain_right="4 blocks make 1,024 threads; the last 24 are stopped by the guard.",
        explain={
            0: "A grid is made of whole blocks: 3 of them are 768 threads, 4 are 1,024.",
            232: "That is how many threads of the last block work: 1,000 - 768.",
            None: "Round 1,000 / 256 up to whole blocks, then count the threads.",
        },
    ),
    Quiz(
        id="first_kernels.q_async",
        question="A kernel writes out of bounds. When does Python raise the error?",
        choices={
            "a": "At the line that launches it",
            "b": "At the next call that waits for the GPU, or later",
            "c": "Never, out of bounds accesses are always ignored",
        },
        answer="b",
        explain_right=(
            "A launch returns at once; the host hears of the error when it next waits, for instance in "
            "`cuda.synchronize()` or `copy_to_host()`."
        ),
        explain={
            "a": "A launch only hands the kernel over and returns before it has run.",
            "c": (
                "An access to memory that the process does not own stops the kernel with an error. One that"
                " lands in another array of yours raises nothing at all: that is why a guard matters."
            ),
        },
    ),
)
