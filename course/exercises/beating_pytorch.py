"""The exercises of the chapter Beating PyTorch."""

import numpy as np
from numba import cuda

from course.checking.answers import replace
from course.checking.inputs import (
    a_thread_a_row,
    a_thread_each,
    lengths,
    some_length,
    some_numbers,
    some_zeros,
    uniform,
)
from course.checking.model import Exercise, Hypothesis, InOut, Launch, Out, Wrong, ceil_div
from course.checking.quiz import Quiz, one_of

# ---- channel_statistics: batch norm's numbers without the convolution


@cuda.jit
def channel_statistics(out, weight, first, second):
    c = cuda.grid(1)
    if c < out.shape[0]:
        mean = square = 0.0
        for i in range(first.size):
            mean += weight[c, i] * first[i]
            for j in range(first.size):
                square += weight[c, i] * second[i, j] * weight[c, j]
        out[c, 0] = mean
        out[c, 1] = square - mean * mean


def moments_of_patches(rng, shape):
    """The first and second moments of random patches, and the weights of some channels."""
    channels, taps = shape
    patches = rng.normal(0.3, 1, (200, taps))
    return {
        "out": Out((channels, 2)),
        "weight": some_zeros(rng, channels, taps),
        "first": patches.mean(0).astype(np.float32),
        "second": (patches.T @ patches / len(patches)).astype(np.float32),
    }


def statistics_of(out, weight, first, second):
    """Mean and variance of each channel, in float64."""
    weight, first, second = (a.astype(np.float64) for a in (weight, first, second))
    mean = weight @ first
    return np.stack([mean, np.einsum("ci,ij,cj->c", weight, second, weight) - mean**2], 1)


CHANNEL_STATISTICS = Exercise(
    id="beating_pytorch.channel_statistics",
    title="Batch norm's numbers without the convolution",
    minutes=12,
    task=(
        "Thread c computes the mean and the variance of a convolution's channel c, without the"
        " convolution: into `out[c, 0]` and `out[c, 1]`. `weight[c]` holds the channel's taps,"
        " `first[i]` the mean over the batch of what tap i sees, and `second[i, j]` the mean of the"
        " product of what taps i and j see."
    ),
    starter="""
@cuda.jit
def channel_statistics(out, weight, first, second):
    pass  # your code: thread c writes out[c, 0], the mean, and out[c, 1], the variance
""",
    solution=channel_statistics,
    inputs=moments_of_patches,
    reference=statistics_of,
    specials="finite",  # the variance has several formulas
    shapes=((1, 9), (32, 9), (33, 9), (5, 4), (64, 9), (3, 1), (2, 25), (2, 49)),
    fresh=some_numbers((2, 60), (2, 10)),
    elements=2,
    extents=a_thread_a_row,
    rtol=2e-4,
    other_block=(96, 1, 1),
    hints=(
        (
            "One output is a sum over taps: weight[c, i] · x[i]. The mean of a sum is the sum of"
            " the means."
        ),
        (
            "The square of a sum of nine terms has 81: weight[c, i] · x[i] · weight[c, j] · x[j],"
            " for every i and j. Their means are in `second`."
        ),
        "The variance is the mean of the squares minus the square of the mean.",
    ),
    wrong=(
        (" - mean * mean", "", "wrong_value"),
        (
            "for j in range(first.size)",
            "for j in range(i, i + 1)",
            "wrong_value",
        ),
        (
            "for j in range(first.size)",
            "for j in range(i + 1)",
            "wrong_value",
        ),
        ("c < out.shape[0]", "True", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The second column is the mean of the squares; the square of the mean is still in it.",
            lambda out, weight, first, second: (
                statistics_of(out, weight, first, second)
                + np.stack([0 * weight[:, 0], (weight.astype(np.float64) @ first) ** 2], 1)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The square of a sum has a term for every two taps, i and j, not only for i = j.",
            lambda out, weight, first, second: statistics_of(
                out, weight, first, second * np.eye(first.size)
            ),
        ),
    ),
)


# ---- where_from: the address that an implicit GEMM reads


def where_from(row, column, height, width, channels):
    image, pixel = divmod(row, height * width)
    y, x = divmod(pixel, width)
    tap, channel = divmod(column, channels)
    y, x = y + tap // 3 - 1, x + tap % 3 - 1
    if not (0 <= y < height and 0 <= x < width):
        return -1
    return ((image * height + y) * width + x) * channels + channel


def entries_of_the_matrix(shape):
    """Row and column of the matrix that nobody stores, and the sizes of the images."""
    return dict(zip(("row", "column", "height", "width", "channels"), shape, strict=True))


WHERE_FROM = Exercise(
    id="beating_pytorch.where_from",
    title="The matrix that nobody stores",
    minutes=12,
    kind="function",
    task=(
        "Return the index, in the images' memory, of the number in this `row` and `column` of the"
        " matrix, or -1 where the tap looks outside of the image. The convolution is 3×3, with"
        " padding 1; the images lie as image, line, pixel, channel. A row stands for an output"
        " pixel: image after image, line by line. A column stands for a tap and a channel: all"
        " channels of tap 0, then of tap 1 … Tap 0 is above left, tap 2 above right."
    ),
    starter="""
def where_from(row, column, height, width, channels):
    pass  # which image, line and pixel is the row? which tap and channel the column?
""",
    solution=where_from,
    inputs=lambda rng, shape: entries_of_the_matrix(shape),
    reference=where_from,
    shapes=(
        (0, 0, 14, 14, 32),
        (0, 130, 14, 14, 32),
        (5, 40, 14, 14, 32),
        (15, 5, 14, 14, 32),
        (15, 70, 14, 14, 32),
        (195, 287, 14, 14, 32),
        (196, 159, 14, 14, 32),
        (250, 100, 14, 14, 32),
        (13, 5, 3, 5, 2),
        (22, 9, 3, 5, 2),
        (16, 15, 3, 5, 2),
        (33, 7, 4, 6, 1),
        (9, 8, 2, 3, 4),
    ),
    fresh=lambda rng: (int(rng.integers(0, 60)), int(rng.integers(0, 27)), 4, 5, 3),
    hints=(
        (
            "`divmod(row, height * width)` gives the image and the pixel within it; one more"
            " `divmod` gives line and place."
        ),
        (
            "`divmod(column, channels)` gives the tap and the channel. Tap t looks `t // 3 - 1`"
            " lines down and `t % 3 - 1` to the right."
        ),
        (
            "A tap may look outside at four sides. Inside, the index is `((image * height + y) *"
            " width + x) * channels + channel`."
        ),
    ),
    wrong=(
        (
            "y + tap // 3 - 1, x + tap % 3 - 1",
            "y + tap // 3, x + tap % 3",
            "off_by_one",
            "The middle tap, number 4, looks at the pixel itself: a tap's offset begins at -1.",
        ),
        (
            "y + tap // 3 - 1, x + tap % 3 - 1",
            "y + tap % 3 - 1, x + tap // 3 - 1",
            "swapped_axes",
            "Taps go line by line: tap 1 is above the pixel, tap 3 left of it.",
        ),
        (
            "tap, channel = divmod(column, channels)",
            "channel, tap = divmod(column, 9)",
            "swapped_axes",
            "The channels lie next to each other: first comes the tap, then the channel.",
        ),
        (
            "not (0 <= y < height and 0 <= x < width)",
            "False",
            "out_of_bounds",
            "At the edge of an image the tap looks outside, and there is nothing: not the next"
            " line's pixel.",
        ),
        ("0 <= y", "-1 <= y", "wrong_value"),
        ("+ channel", "+ float(channel)", "wrong_dtype"),
    ),
)


# ---- sgd_all: one update of everything


@cuda.jit
def sgd_all(state, rate):
    i = cuda.grid(1)
    if i < state.shape[1]:
        state[0, i] -= rate * state[1, i]
        state[1, i] = 0.0


def weights_and_gradients(rng, n):
    """Some gradients are infinite, as in a step that went wrong: the next one's begin at 0."""
    state = uniform(rng, 2, *n)
    state[1, rng.random(*n) < 0.02] = np.inf
    return {"state": InOut(state), "rate": np.float32(rng.uniform(0.1, 1))}


SGD_ALL = Exercise(
    id="beating_pytorch.sgd_all",
    title="One update of everything",
    minutes=6,
    task=(
        "All weights of the network lie one after the other in `state[0]`, their gradients in"
        " `state[1]`. One launch, a thread for each weight, moves it by `rate` times its gradient,"
        " downhill, and leaves every gradient zero for the next step."
    ),
    starter="""
@cuda.jit
def sgd_all(state, rate):
    pass  # your code: thread i has weight state[0, i] and its gradient state[1, i]
""",
    solution=sgd_all,
    inputs=weights_and_gradients,
    reference=lambda state, rate: np.stack(
        [state[0].astype(np.float64) - rate * state[1], np.zeros(state.shape[1])]
    ),
    shapes=lengths(1, 2, 3, 6, 13, 31, 66, 128, 129, 500),
    fresh=some_length,
    block=(128, 1, 1),
    elements=2,
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        (
            "The layers do not matter any more: weight i needs gradient i, whatever layer they"
            " belong to."
        ),
        "Downhill is minus: w = w - rate · g. Then the gradient has been used.",
        "Guard with `state.shape[1]`, the number of weights; `state.size` is twice that.",
    ),
    wrong=(
        ("-=", "+=", "wrong_value"),
        ("        state[1, i] = 0.0\n", "", "wrong_value"),
        (
            "state[0, i] -= rate * state[1, i]\n        state[1, i] = 0.0",
            "state[1, i] = 0.0\n        state[0, i] -= rate * state[1, i]",
            "wrong_value",
        ),
        ("i < state.shape[1]", "True", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The weights went uphill: the sign is wrong.",
            lambda state, rate: np.stack(
                [state[0].astype(np.float64) + rate * state[1], np.zeros(state.shape[1])]
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The gradients are still there: the next step would add its own to them.",
            lambda state, rate: np.stack([state[0].astype(np.float64) - rate * state[1], state[1]]),
        ),
        Hypothesis(
            "wrong_value",
            "No weight has moved: its gradient was cleared before it was used.",
            lambda state, rate: np.stack([state[0], np.zeros(state.shape[1])]),
        ),
    ),
)


# ---- bn_relu_pool: the leaderboard

BN_RELU_POOL_CU = """
// Batch norm (as scale and shift of each channel), ReLU and 2x2 max-pooling in one pass.
// y [rows, width, channels], out [rows / 2, width / 2, channels].
// width is even, channels a multiple of 4.
__global__ void bn_relu_pool(float* out, const float* y, const float* scale, const float* shift,
                             int rows, int width, int channels) {
    const float4* in = reinterpret_cast<const float4*>(y);
    int fours = channels / 4;
    int total = rows / 2 * (width / 2) * fours;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int c = i % fours;
        int x = i / fours % (width / 2);
        int row = i / fours / (width / 2);
        float4 s = reinterpret_cast<const float4*>(scale)[c];
        float4 t = reinterpret_cast<const float4*>(shift)[c];
        float4 best = make_float4(0, 0, 0, 0);
        for (int k = 0; k < 4; ++k) {
            float4 v = in[((2 * row + k / 2) * width + 2 * x + k % 2) * fours + c];
            best.x = fmaxf(best.x, fmaf(s.x, v.x, t.x));
            best.y = fmaxf(best.y, fmaf(s.y, v.y, t.y));
            best.z = fmaxf(best.z, fmaf(s.z, v.z, t.z));
            best.w = fmaxf(best.w, fmaf(s.w, v.w, t.w));
        }
        reinterpret_cast<float4*>(out)[i] = best;
    }
}
"""

PLAIN_BN_RELU_POOL = """
__global__ void bn_relu_pool(float* out, const float* y, const float* scale, const float* shift,
                             int rows, int width, int channels) {
    int total = rows / 2 * (width / 2) * channels;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int c = i % channels;
        int x = i / channels % (width / 2);
        int row = i / channels / (width / 2);
        float best = 0;
        for (int k = 0; k < 4; ++k) {
            float v = y[((2 * row + k / 2) * width + 2 * x + k % 2) * channels + c];
            best = fmaxf(best, scale[c] * v + shift[c]);
        }
        out[i] = best;
    }
}
"""
POOLED_FIRST = replace(
    PLAIN_BN_RELU_POOL,
    ("best = 0", "best = -1e30f"),
    ("scale[c] * v + shift[c]", "v"),
    ("out[i] = best", "out[i] = fmaxf(0, scale[c] * best + shift[c])"),
)


def feature_maps(rng, shape):
    """Outputs of a convolution, and the two numbers a channel that batch norm comes down to; some
    scales are negative.
    """
    rows, width, channels = shape
    return {
        "out": Out((rows // 2, width // 2, channels)),
        "y": some_zeros(rng, rows, width, channels),
        "scale": uniform(rng, channels),
        "shift": uniform(rng, channels) * np.float32(0.5),
        "rows": rows,
        "width": width,
        "channels": channels,
    }


def pooled(out, y, scale, shift, rows, width, channels, lowest=0):
    """Normalized, raised to `lowest` at least, the largest of each 2×2 window: in float64."""
    z = np.maximum(y.astype(np.float64) * scale + shift, lowest)
    return z.reshape(rows // 2, 2, width // 2, 2, channels).max((1, 3))


def few_and_enough_blocks(shape):
    """Two blocks for everything, and a thread for each output."""
    outputs = shape[0] // 2 * (shape[1] // 2) * shape[2]
    return [
        Launch((2, 1, 1), (64, 1, 1), "two blocks for everything"),
        Launch((ceil_div(outputs, 64), 1, 1), (64, 1, 1)),
    ]


BN_RELU_POOL = Exercise(
    id="beating_pytorch.bn_relu_pool",
    title="Beat our kernel",
    minutes=30,
    kind="cuda_c",
    kernel_name="bn_relu_pool",
    path="build/bn_relu_pool.cu",
    task=(
        "Batch norm, ReLU and max-pooling in one pass. `y` holds `rows` lines of `width` pixels"
        " with `channels` channels each; each value becomes `scale[c] * y + shift[c]`, what is"
        " negative becomes 0, and of each 2×2 window the largest goes to `out`. `rows` and `width`"
        " are even, `channels` is a multiple of 4. Any number of blocks must do, so loop with the"
        " grid's stride. Right first; then make it fast, and let the leaderboard time it beside"
        " ours."
    ),
    starter="""
%%writefile build/bn_relu_pool.cu
// y [rows, width, channels], scale and shift [channels], out [rows / 2, width / 2, channels]
__global__ void bn_relu_pool(float* out, const float* y, const float* scale, const float* shift,
                             int rows, int width, int channels) {
    int total = rows / 2 * (width / 2) * channels;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        // your code: which line, pixel and channel is output i? which four values does it look at?
    }
}
""",
    solution=BN_RELU_POOL_CU,
    inputs=feature_maps,
    reference=pooled,
    specials="finite",
    shapes=(
        (2, 2, 4),
        (4, 6, 4),
        (6, 4, 8),
        (28, 28, 4),
        (8, 14, 32),
        (2, 10, 12),
        (288, 2, 4),  # more lines, pixels, channels than a byte counts
        (2, 288, 4),
        (2, 2, 576),
    ),
    large=(64, 66, 64),
    fresh=lambda rng: (
        tuple(2 * int(n) for n in rng.integers(1, 6, 2)) + (4 * int(rng.integers(1, 5)),)
    ),
    block=(64, 1, 1),
    extents=lambda s: (s[0] // 2 * (s[1] // 2) * s[2], 1, 1),
    launches=few_and_enough_blocks,
    other_block=(96, 1, 1),
    is_square=lambda s: s[0] == s[1],
    swapped=(0, 1),
    effort=8,  # a float at a time, and scales read again, are right, too
    hints=(
        (
            "Output i: its channel is `i % channels`, its place in the line `i / channels % (width"
            " / 2)`, its line what is left."
        ),
        (
            "The window of output (r, x) is at lines 2r and 2r + 1, pixels 2x and 2x + 1. Starting"
            " the maximum at 0 is the ReLU."
        ),
        (
            "Faster: the channels of a pixel lie side by side, so a thread can take four of them,"
            " as a `float4`, in one load. Then it needs scale and shift once for four windows of"
            " four values."
        ),
    ),
    wrong=(
        ("int row =", "signed char row =", "out_of_bounds"),
        Wrong(POOLED_FIRST, "wrong_value"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "* v", "* fmaxf(0, v)"), "wrong_value"),
        Wrong(
            replace(PLAIN_BN_RELU_POOL, "i += gridDim.x * blockDim.x", "i += total"),
            "needs_full_grid",
        ),
        Wrong(replace(PLAIN_BN_RELU_POOL, "best = 0", "best = -1e30f"), "wrong_value"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "i < total; ", "i <= total; "), "off_by_one"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "2 * x + k % 2", "x + k % 2"), "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "It pools first and normalizes then. Where a channel's scale is negative, the largest"
            " becomes the smallest.",
            lambda out, y, scale, shift, rows, width, channels: np.maximum(
                y.astype(np.float64).reshape(rows // 2, 2, width // 2, 2, channels).max((1, 3))
                * scale
                + shift,
                0,
            ),
        ),
        Hypothesis(
            "wrong_value",
            "What is negative must become 0: the ReLU is missing.",
            lambda **a: pooled(**a, lowest=-np.inf),
        ),
    ),
)

EXERCISES = (CHANNEL_STATISTICS, WHERE_FROM, SGD_ALL, BN_RELU_POOL)

QUIZZES = (
    Quiz(
        id="beating_pytorch.q_moments",
        question="One weight, y = -2 p, and the pixels 1 and 5. What is the variance of y?",
        answer=16,
        explain_right="mean(y) = -2 · 3 = -6 and mean(y²) = 4 · 13 = 52: 52 - 36.",
        explain={
            52: "That is mean(y²). The square of mean(y) is still to be taken away.",
            4: "That is the variance of the pixels. The weight counts twice: squared.",
            None: "The pixels' moments are 3 and 13. With mean(y) and mean(y²): their difference.",
        },
    ),
    Quiz(
        id="beating_pytorch.q_lane",
        question="Lane 13 holds four numbers of c, in two rows. Which row is the upper one?",
        answer=3,
        explain_right="Four lanes share a row: lanes 12 to 15 have rows 3 and 11.",
        explain={
            13: "Only eight rows are dealt out among 32 lanes, and then the lower eight again.",
            11: "That is the lower one: eight rows further down.",
            None: "Four lanes share a row of c, two numbers each. In which four is lane 13?",
        },
    ),
    one_of(
        "beating_pytorch.q_graph",
        (
            "At batch 64 one CUDA graph makes PyTorch's step several times faster; at batch 4,096"
            " it hardly helps. Why?"
        ),
        (
            "A graph's kernels run on more SMs, and a large batch has them all already",
            "A graph does not change where a kernel runs.",
        ),
        (
            (
                "A graph removes the cost of launching, and with large kernels the GPU never waits"
                " for a launch"
            ),
            (
                "The same kernels run with the same speed. What a graph saves is the host's "
                "time, which"
                " only shows where the GPU is done before the next kernel has been launched."
            ),
        ),
        (
            "A large batch does not fit into a graph",
            "A graph holds kernels and addresses, not data: it is as large for every batch.",
        ),
        answer="b",
    ),
    one_of(
        "beating_pytorch.q_recompute",
        (
            "Our backward pass computes the first convolution twice more. Why is that faster than"
            " keeping its output?"
        ),
        (
            "The next time the results are in the cache",
            (
                "At large batches nothing of the forward pass is left in the cache when the"
                " backward pass comes."
            ),
        ),
        (
            "Tensor cores make multiplications free",
            (
                "They are fast, but the reason lies in the memory: what is never stored is never"
                " moved."
            ),
        ),
        (
            "Nine multiplications cost less than storing the result and reading it back",
            (
                "The output of conv1 is 32 times its input. Storing and reading it moves "
                "far more bytes"
                " than the small input, and the step is limited by bytes there."
            ),
        ),
        answer="c",
    ),
    one_of(
        "beating_pytorch.q_master",
        (
            "Weights in bf16 only, updated with a rate of 0.05: after a while the network stops"
            " learning. Why?"
        ),
        (
            "bf16 has a smaller range than fp32, so the weights overflow",
            "bf16 has fp32's exponent, so nearly the same range. What it lacks is digits.",
        ),
        (
            "An update smaller than 1/512 or so of the weight is rounded away",
            (
                "bf16 keeps 8 bits of a number. A weight of 1 plus 0.001 is 1 again, every "
                "time. So the"
                " updates go to a copy in fp32, and bf16 is made from that."
            ),
        ),
        (
            "Tensor cores cannot add",
            "They add in fp32; the update of a weight is not done by them at all.",
        ),
        answer="b",
    ),
    one_of(
        "beating_pytorch.q_gate",
        (
            "A trainer is twice as fast as PyTorch, and after the same epochs it is right on 97.9 %"
            " where PyTorch has 98.9 %. What does its time say?"
        ),
        ("Twice as fast", "With a gradient that is left out one could be ten times as fast."),
        (
            "Nothing yet: it computes something else",
            (
                "Dropping work is easy to make fast. Only among versions that learn equally "
                "well is a"
                " time a comparison."
            ),
        ),
        (
            "Twice as fast at large batches",
            "The batch size has nothing to do with it: it has another result.",
        ),
        answer="b",
    ),
)
