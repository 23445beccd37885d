"""The exercises of the chapter First kernels."""

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_each,
    arguments_of,
    columns_and_rows,
    factor,
    lengths,
    some_length,
    some_numbers,
    some_picture,
    some_zeros,
    uniform,
)
from course.checking.model import Exercise, Hypothesis, InOut, Launch, Out, Wrong, ceil_div
from course.checking.quiz import Quiz, one_of

# ---- scale_guard: change one line


@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor * a[i]


SCALE = Exercise(
    id="first_kernels.scale_guard",
    title="Repair the guard",
    minutes=3,
    task=(
        "This kernel multiplies every element of `a` by `factor`, and its guard lets one thread too"
        " many pass. Change one line so that it is right for every size and every grid that is"
        " large enough."
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
        "a": some_zeros(rng, *n),
        "factor": factor(rng),
    },
    reference=lambda out, a, factor: a.astype(np.float64) * factor,
    large=(66_000,),
    shapes=lengths(0, 1, 2, 31, 32, 33, 64, 97),
    fresh=some_length,
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        (
            "An array of `n` elements has the indices 0 to n - 1. What does `i <= out.size` say of"
            " `i == n`?"
        ),
        "The thread with `i == out.size` must not pass: which comparison leaves out equality?",
    ),
    wrong=(
        ("i < out.size", "i <= out.size", "off_by_one"),
        ("i < out.size", "True", "missing_guard"),
        ("out.size", "out.size - 1", "off_by_one"),
        (
            "out.size",
            "out.size // cuda.blockDim.x * cuda.blockDim.x",
            "only_multiples",
        ),
        ("cuda.grid(1)", "cuda.threadIdx.x", "first_block_only"),
        (
            "out[i] = factor * a[i]",
            "a[i] = factor * a[i]\n        out[i] = a[i]",
            "modifies_input",
        ),
        ("factor *", "factor +", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is `factor + a[i]`; it should be `factor * a[i]`.",
            lambda out, a, factor: a + factor,
        ),
    ),
)


# ---- blocks_for: a launch shape


def blocks_for(height, width, block_x, block_y):
    blocks_x = (width + block_x - 1) // block_x
    blocks_y = (height + block_y - 1) // block_y
    return blocks_x, blocks_y


BLOCKS_FOR = Exercise(
    id="first_kernels.blocks_for",
    title="How many blocks?",
    minutes=5,
    kind="function",
    task=(
        "Return the grid `(blocks along x, blocks along y)` with which blocks of `block_x` by"
        " `block_y` threads cover a picture of `height` rows and `width` columns, at least one of"
        " each. There must be a thread for every pixel and no block without any."
    ),
    starter="""
def blocks_for(height, width, block_x, block_y): ...  # return (blocks along x, blocks along y)
""",
    solution=blocks_for,
    inputs=arguments_of(blocks_for),
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
        (7, 1025, 1024, 1),
        (1080, 1920, 32, 32),
        (33, 32, 32, 32),
        (2**24 + 1, 2**25 + 2, 1, 2),  # a float32 has not as many digits
    ),
    fresh=some_numbers((1, 5000), (1, 5000), (1, 65), (1, 17)),
    draws=some_numbers((1, 1 << 20), (1, 1 << 20), (1, 1025), (1, 1025)).draws,
    hints=(
        (
            "Along x there are `width` columns and each block covers `block_x` of them. If the last"
            " block is only partly used, it is still needed."
        ),
        (
            "`width // block_x` rounds down. Add just enough before dividing that anything left"
            " over counts as one more: `block_x - 1`."
        ),
        "`(width + block_x - 1) // block_x`, and the same along y with `height` and `block_y`.",
    ),
    wrong=(
        (
            ("(width + block_x - 1) // block_x", "width // block_x"),
            ("(height + block_y - 1) // block_y", "height // block_y"),
            "only_multiples",
            "Rounded down, the last and partly used block is missing.",
        ),
        (
            ("(width + block_x - 1) // block_x", "width // block_x + 1"),
            ("(height + block_y - 1) // block_y", "height // block_y + 1"),
            "off_by_one",
            "When the size is a multiple of the block, this is one block too many.",
        ),
        (
            "return blocks_x, blocks_y",
            "return blocks_y, blocks_x",
            "swapped_axes",
            "x runs along a row, so blocks along x come from the width.",
        ),
        (
            ("(width + block_x - 1) // block_x", "np.ceil(width / block_x)"),
            ("(height + block_y - 1) // block_y", "np.ceil(height / block_y)"),
            "wrong_dtype",
        ),
        (
            ("(width + block_x - 1) // block_x", "(width + 15) // 16"),
            ("(height + block_y - 1) // block_y", "(height + 15) // 16"),
            "fixed_block",
            "The 16 of one launch is written where `block_x` and `block_y` belong.",
        ),
        (
            ("(width + block_x - 1) // block_x", "max(1, width // block_x)"),
            ("(height + block_y - 1) // block_y", "max(1, height // block_y)"),
            "only_multiples",
            "Rounded down but for the 1, the last and partly used block is missing.",
        ),
        (
            ("(width + block_x - 1) // block_x", "round(width / block_x)"),
            ("(height + block_y - 1) // block_y", "round(height / block_y)"),
            "only_multiples",
            "`round` goes down where less than half a block is left over: round up instead.",
        ),
        (
            "(height + block_y",
            "(width + block_y",
            "only_square",
            "Blocks along y come from the height.",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "swapped_axes",
            "The sides of the picture are exchanged: blocks along x come from the width.",
            lambda height, width, block_x, block_y: (
                ceil_div(height, block_x),
                ceil_div(width, block_y),
            ),
        ),
        Hypothesis(
            "swapped_axes",
            "The sides of the block are exchanged.",
            lambda height, width, block_x, block_y: (
                ceil_div(width, block_y),
                ceil_div(height, block_x),
            ),
        ),
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


# ---- max_pool: two axes, and an output smaller than the input


@cuda.jit
def max_pool(out, picture):
    x, y = cuda.grid(2)
    height, width = out.shape
    if x < width and y < height:
        upper = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
        lower = max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
        out[y, x] = max(upper, lower)


def four_of_each_square(picture, step=2):
    """The four pixels of each 2 x 2 square as a new first axis. No square sticks out.

    step: how far the squares of neighbours are apart.
    """
    height, width = picture.shape[0] // 2, picture.shape[1] // 2
    shifted = [picture[dy:, dx:][::step, ::step] for dy in (0, 1) for dx in (0, 1)]
    return np.stack([pixels[:height, :width] for pixels in shifted])


@cuda.jit
def pool_loops_over_rows(out, picture):
    x = cuda.grid(2)[0]
    if cuda.blockIdx.y == 0 and cuda.threadIdx.y == 0 and x < out.shape[1]:
        for y in range(out.shape[0]):
            best = picture[2 * y, 2 * x]
            for i in range(2):
                for j in range(2):
                    best = max(best, picture[2 * y + i, 2 * x + j])
            out[y, x] = best


def some_pixels(rng, shape):
    """Pixels near 0, far from it or very far; or of three values only, so that many are equal.

    Those of pictures of 32 columns are all but equal.
    """
    if shape[1] == 32:
        return uniform(rng, *shape) * np.float32(1e-5)
    if rng.random() < 0.5:
        return rng.choice(np.float32([-1.5, -1, 2]), shape)
    return uniform(rng, *shape) + np.float32(rng.choice([0, 3000, -3000, -2e30]))


MAX_POOL = Exercise(
    id="first_kernels.max_pool",
    title="Half the picture",
    minutes=10,
    task=(
        "Shrink a picture to half its size: `out[y, x]` is the largest of the four pixels of"
        " `picture` in rows 2y and 2y + 1 and columns 2x and 2x + 1. Use one thread per element"
        " of `out`. An odd last row or column of the picture is left out. (A network that reads"
        " digits does exactly this, twice.)"
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
        "picture": some_pixels(rng, shape),
    },
    reference=lambda out, picture: four_of_each_square(picture).max(axis=0),
    specials="no_nan",
    rtol=0,
    shapes=((2, 2), (8, 16), (16, 16), (16, 32), (18, 18), (10, 26), (23, 7), (3, 35), (38, 2)),
    block=(8, 4, 1),
    is_square=lambda shape: shape[0] // 2 == shape[1] // 2,
    elements=1,
    extents=lambda shape: (shape[1] // 2, shape[0] // 2, 1),
    swapped=(0, 1),
    other_block=(3, 16, 1),
    fresh=some_numbers((2, 40), (2, 40)),
    large=((2, 131_080), (131_080, 2)),
    hints=(
        "The guard compares with `out.shape`, since there is a thread for each element of `out`.",
        "`height, width = out.shape`: the first axis counts rows, which is y.",
        (
            "The upper two pixels are `picture[2 * y, 2 * x]` and `picture[2 * y, 2 * x + 1]`;"
            " `max(a, b)` works in kernels."
        ),
    ),
    wrong=(
        Wrong(pool_loops_over_rows, "one_thread"),
        ("x < width and y < height", "True", "missing_guard"),
        ("x < width and y < height", "x < width", "missing_guard"),
        ("x, y = cuda", "y, x = cuda", "swapped_axes"),
        (
            "height, width = out.shape",
            "height = width = out.shape[0]",
            "only_square",
        ),
        ("x < width and y < height", "x <= width and y <= height", "off_by_one"),
        (
            ("x < width", "x < width // cuda.blockDim.x * cuda.blockDim.x"),
            ("y < height", "y < height // cuda.blockDim.y * cuda.blockDim.y"),
            "only_multiples",
        ),
        (
            (
                "max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])",
                "max(picture[y, x], picture[y, x + 1])",
            ),
            (
                "max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])",
                "max(picture[y + 1, x], picture[y + 1, x + 1])",
            ),
            "wrong_value",
        ),
        ("max(upper, lower)", "upper", "wrong_value"),
        ("max(upper, lower)", "max(upper, lower, np.float32(0))", "wrong_value"),
        (
            "max(picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])",
            "picture[2 * y + 1, 2 * x]",
            "wrong_value",
        ),
        (
            ("upper = max(", "upper = min("),
            ("lower = max(", "lower = min("),
            ("max(upper, lower)", "min(upper, lower)"),
            "wrong_value",
        ),
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
        Hypothesis(
            "wrong_value",
            "This is 0 where all four pixels are below 0: a maximum must begin at one of them.",
            lambda out, picture: four_of_each_square(picture).max(axis=0, initial=0),
        ),
        Hypothesis(
            "wrong_value",
            "Only three of the four pixels are compared: the one at the lower right is missing.",
            lambda out, picture: four_of_each_square(picture)[:3].max(axis=0),
        ),
        Hypothesis(
            "wrong_value",
            "This is the smallest of the four pixels, not the largest.",
            lambda out, picture: four_of_each_square(picture).min(axis=0),
        ),
        Hypothesis(
            "wrong_value",
            "This is the mean of the four pixels, not the largest of them.",
            lambda out, picture: sum(four_of_each_square(picture)) / np.float32(4),
        ),
    ),
)


# ---- batched_linear: the batch as a grid axis


@cuda.jit
def linear(out, x, weight, bias):
    column, row, batch = cuda.grid(3)
    if batch < out.shape[0] and row < out.shape[1] and column < out.shape[2]:
        total = bias[column]
        for k in range(x.shape[2]):
            total += x[batch, row, k] * weight[column, k]
        out[batch, row, column] = total


def affine(x, weight, bias):
    """x @ weight.T + bias in float64."""
    return x.astype(np.float64) @ weight.astype(np.float64).T + bias


def weight_turned(weight):
    """What `weight[k, column]` reads, where it stays inside the array."""
    return weight.T if weight.shape[0] == weight.shape[1] else weight


def bias_of_rows(bias, rows):
    """What `bias[row]` reads, as a column, where it stays inside the array."""
    return bias[:rows, None] if rows <= len(bias) else bias


LINEAR = Exercise(
    id="first_kernels.batched_linear",
    title="A linear layer, for a whole batch",
    minutes=15,
    task=(
        "`torch.nn.Linear` computes `x @ weight.T + bias`. Do it for a batch: out[batch, row,"
        " column] is bias[column] plus the sum over k of x[batch, row, k] * weight[column, k]. All"
        " batches share one weight, and row c of it makes column c of the output. The grid's x"
        " counts the columns, its y the rows and its z the batch; nothing is square."
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
        (2, 7, 2, 3),
        (5, 2, 11, 4),
        (1, 2, 70, 3),  # a long sum
    ),
    block=(4, 4, 2),
    elements=1,
    extents=lambda s: (s[3], s[1], s[0]),
    is_square=lambda s: s[1] == s[2] == s[3],
    swapped=(1, 2),
    other_block=(8, 2, 1),
    probe=(2, 9, 4, 6),
    fresh=some_numbers((1, 5), (1, 9), (1, 12), (1, 9)),
    large=((300, 1, 3, 1), (1, 66_000, 3, 1), (1, 1, 300, 2), (1, 1, 3, 66_000)),
    hints=(
        (
            "Start with the guard: three axes, three comparisons, each against one side of"
            " `out.shape`."
        ),
        (
            "Sum in a variable of the thread's own, beginning with the bias, and write it to `out`"
            " once, at the end."
        ),
        "k runs over the side that both share: `x.shape[2]`, which is also `weight.shape[1]`.",
    ),
    wrong=(
        (
            "batch < out.shape[0] and row < out.shape[1] and column < out.shape[2]",
            "True",
            "missing_guard",
        ),
        ("batch < out.shape[0] and ", "", "missing_guard"),
        ("column, row, batch", "row, column, batch", "swapped_axes"),
        (
            ("row < out.shape[1]", "row < out.shape[2]"),
            ("x.shape[2]", "out.shape[2]"),
            "only_square",
        ),
        ("x.shape[2]", "x.shape[2] - 1", "off_by_one"),
        ("bias[column]", "np.float32(0)", "wrong_value"),
        ("total += x", "total = x", "wrong_value"),
        (
            ("total += x", "total = x"),
            ("weight[column, k]", "weight[column, k] + bias[column]"),
            "wrong_value",
        ),
        (
            ("        total = bias[column]\n", ""),
            ("total += x", "out[batch, row, column] += x"),
            ("] = total", "] += bias[column]"),
            "reads_output",
        ),
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
            "Each turn of the loop overwrites the one before, so only the last product is left:"
            " add with `+=`. The bias is lost with the others.",
            lambda out, x, weight, bias: affine(x[:, :, -1:], weight[:, -1:], 0 * bias),
        ),
        Hypothesis(
            "wrong_value",
            "Each turn of the loop overwrites the one before, so only the last product is left:"
            " add with `+=`.",
            lambda out, x, weight, bias: affine(x[:, :, -1:], weight[:, -1:], bias),
        ),
        Hypothesis(
            "wrong_value",
            "The bias is missing.",
            lambda out, x, weight, bias: affine(x, weight, 0 * bias),
        ),
        Hypothesis(
            "wrong_value",
            "The bias is added once for each k: it belongs outside of the loop.",
            lambda out, x, weight, bias: affine(x, weight, x.shape[2] * bias),
        ),
        Hypothesis(
            "wrong_value",
            "Every batch is computed from `x[0]`.",
            lambda out, x, weight, bias: affine(0 * x + x[:1], weight, bias),
        ),
        Hypothesis(
            "swapped_axes",
            "The axes of `weight` are exchanged: it is `weight[column, k]`.",
            lambda out, x, weight, bias: affine(x, weight_turned(weight), bias),
        ),
        Hypothesis(
            "swapped_axes",
            "The bias of the row is added: it belongs to the column, `bias[column]`.",
            lambda out, x, weight, bias: affine(x, weight, bias_of_rows(bias, x.shape[1])),
        ),
    ),
)


# ---- rotate: index arithmetic in CUDA C

ROTATE_CU = """
// Turn a picture by 90 degrees clockwise.
// src has height rows of width, dst has width rows of height.
__global__ void rotate(float* dst, const float* src, int height, int width) {
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
        "Write the kernel `rotate` that turns a picture by 90 degrees clockwise: its top row"
        " becomes the right-hand column. The launch has a thread for each pixel of the input. In C"
        " there are only flat arrays, so row y, column x of the input is `src[y * width + x]`, and"
        " the output has `width` rows of `height` elements."
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
        "src": some_zeros(rng, *s),
        "height": s[0],
        "width": s[1],
    },
    reference=lambda dst, src, height, width: np.rot90(src, k=-1),
    copies=True,
    shapes=(
        (1, 1),
        (4, 8),
        (8, 8),
        (8, 16),
        (9, 9),
        (5, 13),
        (11, 3),
        (1, 17),
        (2, 140),
        (150, 1),
    ),
    large=((1, 66_000), (66_000, 1), (260, 270)),
    fresh=some_picture,
    block=(8, 4, 1),
    extents=columns_and_rows,
    other_block=(3, 16, 1),
    hints=(
        (
            "Follow one pixel on paper: the top left one, (x = 0, y = 0), moves to the top right"
            " corner of the output."
        ),
        (
            "The input's column x becomes the output's row x, and the input's row y the output's"
            " column height - 1 - y."
        ),
        "The output's rows are `height` long, so its row r, column c is `dst[r * height + c]`.",
    ),
    wrong=(
        (GUARD, "", "missing_guard"),
        ("x < width && y < height", "x < width", "missing_guard"),
        ("x < width && y < height", "x <= width && y < height", "off_by_one"),
        (TARGET, "dst[x * height + (height - y)]", "off_by_one"),
        (TARGET, "dst[x * height + y]", "swapped_axes"),
        (TARGET, "dst[(width - 1 - x) * height + y]", "wrong_value"),
        (TARGET, "dst[x * width + (height - 1 - y)]", "only_square"),
        (
            "x < width && y < height",
            "x < width / blockDim.x * blockDim.x && y < height / blockDim.y * blockDim.y",
            "only_multiples",
        ),
        ("src[y * width + x]", "src[x * height + y]", "swapped_axes"),
        (
            "dst[x * height + (height - 1 - y)] = src[y * width + x]",
            "dst[y * width + x] = src[x * height + (height - 1 - y)]",
            "swapped_axes",
        ),
        (TARGET, "dst[(height - 1 - y) * width + width - 1 - x]", "wrong_value"),
        (TARGET, "dst[y * width + x]", "wrong_value"),
        (
            TARGET,
            "dst[(unsigned short)(x * height + (height - 1 - y))]",
            "only_small",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "swapped_axes",
            "This is the transpose: rows and columns are exchanged, but nothing is turned around.",
            lambda dst, src, height, width: src.T,
        ),
        Hypothesis(
            "swapped_axes",
            "The input is read as `src[x * height + y]`; its rows are `width` long: `src[y * width"
            " + x]`.",
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
        Hypothesis(
            "wrong_value",
            "This is half a turn, and a quarter is asked for.",
            lambda dst, src, height, width: src[::-1, ::-1].reshape(dst.shape),
        ),
        Hypothesis(
            "wrong_value",
            "The numbers come out in their old order: nothing is turned.",
            lambda dst, src, height, width: src.reshape(dst.shape),
        ),
        Hypothesis(
            "swapped_axes",
            "The two indices are exchanged: `src[y * width + x]` is read, and the other one is"
            " where it goes in `dst`.",
            lambda dst, src, height, width: src.reshape(width, height).T[::-1].reshape(dst.shape),
        ),
    ),
)


# ---- grid_stride: any grid will do


@cuda.jit
def add_scaled(y, x, a):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, y.size, stride):
        y[i] += a * x[i]


MANY = (66_000,)


def grids(n):
    """Fewer threads than elements, one block, just enough, and more."""
    enough = max(1, ceil_div(n[0], 32))
    tried = {
        1: "one block",
        max(1, enough // 2): "fewer threads than elements",
        enough: "just enough blocks",
        enough + 2: "more blocks than needed",
    }
    launches = [Launch((g, 1, 1), (32, 1, 1), label) for g, label in sorted(tried.items())]
    if n == MANY:
        launches.append(Launch((1, 1, 1), (1, 1, 1), "one thread for everything"))
    return launches


GRID_STRIDE = Exercise(
    id="first_kernels.grid_stride",
    title="Any grid will do",
    minutes=10,
    task=(
        "Add `a * x[i]` to every `y[i]`, with a grid-stride loop: the kernel must be right for any"
        " number of blocks, from one to more than needed, and each element must be the work of"
        " exactly one thread."
    ),
    starter="""
@cuda.jit
def add_scaled(y, x, a):
    i = cuda.grid(1)
    if i < y.size:  # make this a loop that steps over the whole grid
        y[i] += a * x[i]
""",
    solution=add_scaled,
    inputs=lambda rng, n: {
        "y": InOut(uniform(rng, *n)),
        "x": uniform(rng, *n),
        "a": factor(rng),
    },
    reference=lambda y, x, a: y + a * x.astype(np.float64),
    shapes=lengths(0, 1, 31, 32, 64, 97, 128, 193, 1100),
    fresh=some_length,
    large=MANY,
    launches=grids,
    probe=(193,),  # the largest whose work is shared by several blocks and few enough threads
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        (
            "A thread starts at its own index `cuda.grid(1)`, and goes on at the next index that no"
            " other thread has."
        ),
        (
            "`cuda.gridsize(1)` is the number of threads in the whole grid: the step from one"
            " element to the next."
        ),
        "`for i in range(start, y.size, stride):` needs no other guard. Why?",
    ),
    wrong=(
        (
            ("cuda.grid(1)", "cuda.blockIdx.x * 32 + cuda.threadIdx.x"),
            ("cuda.gridsize(1)", "32 * cuda.gridDim.x"),
            "fixed_block",
        ),
        (
            "for i in range(start, y.size, stride):",
            "i = start\n    if i < y.size:",
            "needs_full_grid",
        ),
        ("y.size, stride", "start + 1", "missing_guard"),
        ("cuda.gridsize(1)", "cuda.blockDim.x", "duplicate_work"),
        (
            ("cuda.grid(1)", "cuda.threadIdx.x"),
            ("cuda.gridsize(1)", "cuda.blockDim.x"),
            "duplicate_work",
        ),
        ("y.size", "y.size + 1", "off_by_one"),
        ("y.size", "y.size - 1", "off_by_one"),
        ("y.size", "y.size // stride * stride", "only_multiples"),
        (
            ("range(start, y.size, stride)", "range(start, start + 100 * stride, stride)"),
            ("        y[i] +=", "        if i < y.size:\n            y[i] +="),
            "few_rounds",
        ),
        ("+=", "=", "wrong_value"),
        ("y[i] += a * x[i]", "y[i] = a * y[i] + x[i]", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value", "What `y` held is lost: add to it (`+=`).", lambda y, x, a: a * x
        ),
        Hypothesis(
            "wrong_value",
            "This is `a * y[i] + x[i]`: it is `x` that `a` multiplies.",
            lambda y, x, a: a * y + x.astype(np.float64),
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
        question="5,000 elements, blocks of 128 threads. How many threads have nothing to do?",
        answer=120,
        unit="threads",
        explain_right="40 blocks make 5,120 threads; the last 120 are stopped by the guard.",
        explain={
            0: "A grid is made of whole blocks: 39 of them are 4,992 threads, 40 are 5,120.",
            8: "That is how many threads of the last block work: 5,000 - 4,992.",
            None: "Round 5,000 / 128 up to whole blocks, then count the threads.",
        },
    ),
    one_of(
        "first_kernels.q_async",
        "A kernel writes out of bounds. When does Python raise the error?",
        (
            "At the line that launches it",
            (
                "A launch only hands the kernel over and returns before it has run. (Not so without"
                " a GPU: the CPU engine runs it at once, and stops there.)"
            ),
        ),
        (
            "At the next call that waits for the GPU, or later",
            (
                "A launch returns at once; the host hears of the error when it next waits, "
                "for instance"
                " in `cuda.synchronize()` or `copy_to_host()`."
            ),
        ),
        (
            "Never, out of bounds accesses are always ignored",
            (
                "An access to memory that the process does not own stops the kernel with an error."
                " One that lands in another array of yours raises nothing at all: that is why a"
                " guard matters."
            ),
        ),
        answer="b",
    ),
)
