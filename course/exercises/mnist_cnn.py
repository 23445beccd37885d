"""The exercises of the chapter A CNN by hand: gradients, and what goes wrong in them."""

import math
from pathlib import Path

import numpy as np
from numba import cuda

from course.checking.answers import replace
from course.checking.cpp import CppExercise
from course.checking.inputs import (
    a_thread_each,
    exact,
    lengths,
    normal,
    some_numbers,
    uniform,
    with_small,
    with_zeros,
)
from course.checking.model import Exercise, Hypothesis, Out, Wrong
from course.checking.quiz import Quiz, one_of
from course.kernels.mnist_cnn import EPS, layers

NAIVE = Path(layers.__file__).parent / "naive"  # the trainer's files, one for each part

# ---- bias_gradient: a sum over the batch

SUM_OVER_BATCH = """
__global__ void sum_over_batch(float* total, const float* share, int B, int N) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < N) {
        float sum = 0;
        for (int b = 0; b < B; ++b)
            sum += share[b * N + n];
        total[n] = sum;
    }
}
"""
A_THREAD_EACH = """
__global__ void sum_over_batch(float* total, const float* share, int B, int N) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < B * N; i += blockDim.x * gridDim.x)
        total[i % N] += share[i];
}
"""
ATOMIC_ON_ANYTHING = replace(
    A_THREAD_EACH, "total[i % N] += share[i]", "atomicAdd(&total[i % N], share[i])"
)


def some_shares(rng, shape):
    """A batch of shares; those of many images add up without rounding."""
    fill = exact if shape[0] > 1000 else normal
    return {"total": Out((shape[1],)), "share": fill(rng, *shape), "B": shape[0], "N": shape[1]}


BIAS = Exercise(
    id="mnist_cnn.bias_gradient",
    title="The gradient of a bias",
    minutes=3,
    task=(
        "Write `sum_over_batch`: `total[n]` is the sum of column n of `share` [B, N]. The kernel"
        " below lets a thread work on each element of `share`, and all threads of a column add to"
        " the same `total[n]`: a race. `atomicAdd` would order them, but it adds to what `total`"
        " holds before the launch, and nobody has set that to 0. So give each column to one thread."
        " The trainer launches a thread per column, and a few more."
    ),
    starter="""
%%writefile build/sum_over_batch.cu
// total[n] = sum over b of share[b][n], a thread per column n
__global__ void sum_over_batch(float* total, const float* share, int B, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < B * N)
        total[i % N] += share[i];  // many threads, one element: cure it
}
""",
    solution=SUM_OVER_BATCH,
    kind="cuda_c",
    kernel_name="sum_over_batch",
    path="build/sum_over_batch.cu",
    inputs=some_shares,
    reference=lambda total, share, B, N: share.astype(float).sum(0),
    large=((66_000, 1), (1, 66_000)),
    shapes=((1, 1), (3, 10), (7, 33), (40, 5), (130, 300)),
    probe=(40, 70),
    fresh=some_numbers((2, 30), (2, 40)),
    extents=lambda shape: (shape[1], 1, 1),
    race_free=True,
    effort=3,  # the sum may be kept in `total`
    other_block=(96, 1, 1),
    hints=(
        "Who should own `total[n]`, so that nobody else writes it?",
        "One thread per column: n is its number, and it goes through the batch in a loop.",
        (
            "Add up in a variable of your own, `float sum = 0;`, and write `total[n] = sum;` once,"
            " at the end. Row b of column n is `share[b * N + n]`."
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is the mean over the batch. The loss has divided by the batch size already.",
            lambda total, share, B, N: share.astype(float).mean(0),
        ),
        Hypothesis(
            "wrong_value",
            "These are sums of rows: column n of row b is `share[b * N + n]`.",
            lambda total, share, B, N: share.astype(float).ravel()[: N * B].reshape(N, B).sum(1),
        ),
    ),
    wrong=(
        Wrong(A_THREAD_EACH, "race"),
        Wrong(ATOMIC_ON_ANYTHING, "reads_output"),
        (
            ("        float sum = 0;\n", ""),
            ("sum += share", "total[n] += share"),
            ("        total[n] = sum;\n", ""),
            "reads_output",
        ),
        ("b < B", "b < min(B, 4096)", "only_small"),
        ("= sum;", "= sum / B;", "wrong_value"),
        ("b * N + n", "n * B + b", "wrong_value"),
        ("b < B", "b < 64", "wrong_value"),
        ("n < N", "true", "missing_guard"),
    ),
)


# ---- conv_weight: the gradient of a convolution's weights

CONV_WEIGHT_SOLUTION = """
__global__ void conv_backward_weight(float* share, const float* dy, const float* x, int B, int C,
                                     int K, int H, int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= B * K * C * 3)
        return;
    int r = n % 3;
    int c = n / 3 % C;
    int k = n / (3 * C) % K;
    int b = n / (3 * C * K);
    for (int s = 0; s < 3; ++s) {
        float sum = 0;
        for (int i = 0; i < H; ++i)
            for (int j = 0; j < W; ++j) {
                int u = i + r - 1;
                int v = j + s - 1;
                if (u >= 0 && u < H && v >= 0 && v < W)
                    sum += dy[((b * K + k) * H + i) * W + j] * x[((b * C + c) * H + u) * W + v];
            }
        share[3 * n + s] = sum;
    }
}
"""


def conv_weight_reference(share, dy, x, B, C, K, H, W):
    """In float64, of the pixels that there are: a zero beside them would make infinity NaN."""
    dy, x = dy.astype(float), x.astype(float)
    gradient = np.zeros((B, K, C, 3, 3))
    for r, s in np.ndindex(3, 3):
        rows, rows_of_x = shifted(H, r - 1)
        columns, columns_of_x = shifted(W, s - 1)
        seen = x[:, :, rows_of_x, columns_of_x]
        gradient[..., r, s] = np.einsum("bkij,bcij->bkc", dy[:, :, rows, columns], seen)
    return gradient.reshape(share.shape)


def shifted(size, by):
    """Slices of the indices i and i + by for which both are within range(size)."""
    return slice(max(0, -by), size - max(0, by)), slice(max(0, by), size - max(0, -by))


def conv_weight_taps(turned, **arguments):
    """The reference with its taps moved: `turned` gets them as [B, K, C, 3, 3]."""
    share = conv_weight_reference(**arguments)
    return turned(share.reshape(*share.shape[:3], 3, 3)).reshape(share.shape)


def conv_weight_inputs(rng, shape):
    """shape: B, C, K, H, W. What a large picture gives adds up without rounding."""
    B, C, K, H, W = shape
    fill = exact if H * W > 1000 else normal
    sizes = dict(zip("BCKHW", shape, strict=True))
    return {
        "share": Out((B, K, C, 9)),
        "dy": fill(rng, B, K, H, W),
        "x": fill(rng, B, C, H, W),
        **sizes,
    }


CONV_WEIGHT = Exercise(
    id="mnist_cnn.conv_weight",
    title="The gradient of the weights",
    minutes=8,
    task=(
        "A thread has an image b, a filter k, a channel c and a row r of taps, and writes three"
        " numbers: for s = 0, 1, 2 the sum over all places (i, j) of"
        " `dy[b][k][i][j] * x[b][c][i + r - 1][j + s - 1]`. Outside the picture, x is 0."
    ),
    starter="""
%%writefile build/conv_backward_weight.cu
// Image b's share of the gradient of each weight, [B][K][C][3][3]
__global__ void conv_backward_weight(float* share, const float* dy, const float* x, int B, int C,
                                     int K, int H, int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= B * K * C * 3)
        return;
    int r = n % 3;
    int c = n / 3 % C;
    int k = n / (3 * C) % K;
    int b = n / (3 * C * K);
    for (int s = 0; s < 3; ++s)
        share[3 * n + s] = H * W;  // not this: two loops, one sum
}
""",
    solution=CONV_WEIGHT_SOLUTION,
    kind="cuda_c",
    kernel_name="conv_backward_weight",
    path="build/conv_backward_weight.cu",
    inputs=conv_weight_inputs,
    reference=conv_weight_reference,
    finite=("dy",),  # an infinite slope times the 0 outside of the picture: left out, or NaN
    shapes=(
        *((1, 1, 1, 4, 4), (2, 1, 3, 5, 3), (9, 1, 1, 3, 18)),
        *((3, 2, 2, 4, 6), (2, 2, 2, 3, 3), (2, 2, 2, 5, 5)),
    ),
    probe=(2, 2, 3, 5, 5),
    large=(
        (1, 1, 1, 70, 300),
        (66_000, 1, 1, 2, 2),
        (1, 300, 1, 2, 2),
        (1, 1, 300, 2, 2),
        (1, 1, 1, 66_000, 2),
        (1, 1, 1, 2, 66_000),
    ),
    fresh=some_numbers((2, 5), (2, 5), (2, 5), (2, 5), (2, 5)),
    is_square=lambda s: s[3] == s[4],
    elements=3,
    effort=3,
    extents=lambda s: (3 * s[0] * s[1] * s[2], 1, 1),
    rtol=1e-4,
    other_block=(96, 1, 1),
    hints=(
        (
            "Inside the loop over s, two loops over i and j. Where is `dy[b][k][i][j]` in memory?"
            " The last axis counts by one, the one before it by W, then by H * W."
        ),
        (
            "`dy[((b * K + k) * H + i) * W + j]`, and x likewise: C for K, `u = i + r - 1` for i,"
            " `v = j + s - 1` for j."
        ),
        (
            "u may be -1 or H, and v may be -1 or W: there x is 0, so the product adds nothing."
            " Skip it."
        ),
    ),
    wrong=(
        (("i + r - 1", "i - r + 1"), ("j + s - 1", "j - s + 1"), "wrong_value"),
        (("i + r - 1", "i + s - 1"), ("j + s - 1", "j + r - 1"), "wrong_value"),
        ("u >= 0 && u < H && v >= 0 && v < W", "true", "out_of_bounds"),
        ("i < H;", "i < min(H, 64);", "only_small"),
        ("j < W;", "j < min(W, 256);", "only_small"),
        (("i = 0; i < H", "i = 1; i < H - 1"), ("j = 0; j < W", "j = 1; j < W - 1"), "wrong_value"),
        (("i + r - 1", "(i + r - 1 + H) % H"), ("j + s - 1", "(j + s - 1 + W) % W"), "wrong_value"),
        ("s < 3", "s < 1", "unwritten"),
        ("    if (n >= B * K * C * 3)\n        return;\n", "", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The taps are turned by 180°: that belongs to the gradient of the input.",
            lambda **a: conv_weight_taps(lambda w: w[..., ::-1, ::-1], **a),
        ),
        Hypothesis(
            "wrong_value",
            "Rows and columns of the taps are swapped: r goes with the rows.",
            lambda **a: conv_weight_taps(lambda w: w.swapaxes(3, 4), **a),
        ),
        Hypothesis(
            "wrong_value",
            "The picture wraps around. But left of column 0 there are zeros, not the last column.",
            lambda share, dy, x, B, C, K, H, W: conv_weight_wrapped(share, dy, x),
        ),
        Hypothesis(
            "wrong_value",
            "The sum goes on from one s to the next: each of the three numbers has a sum of its"
            " own, which begins at 0.",
            lambda **a: conv_weight_taps(lambda w: w.cumsum(-1), **a),
        ),
        Hypothesis(
            "wrong_value",
            "The places at the border of the picture are missing: only the neighbours outside of"
            " it are 0.",
            lambda share, dy, x, B, C, K, H, W: conv_weight_reference(
                share, inside_alone(dy), x, B, C, K, H, W
            ),
        ),
    ),
)


def conv_weight_wrapped(share, dy, x):
    """With a picture whose rows and columns go on at the other side."""
    dy, x = dy.astype(float), x.astype(float)
    taps = [
        np.einsum("bkij,bcij->bkc", dy, np.roll(x, (1 - r, 1 - s), (2, 3)))
        for r, s in np.ndindex(3, 3)
    ]
    return np.stack(taps, -1).reshape(share.shape)


def inside_alone(dy):
    """dy without the places at the border."""
    kept = np.zeros_like(dy)
    kept[..., 1:-1, 1:-1] = dy[..., 1:-1, 1:-1]
    return kept


# ---- norm_backward: the two subtracted terms

NORM_SOLUTION = """
__global__ void norm_backward(float* dx, const float* dy, const float* x, const float* mean,
                              const float* invstd, const float* gamma, const float* dgamma,
                              const float* dbeta, int B, int C, int S) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= B * C * S)
        return;
    int c = n / S % C;
    float normal = (x[n] - mean[c]) * invstd[c];
    float N = B * S;
    float left = dy[n] - dbeta[c] / N - normal * dgamma[c] / N;
    dx[n] = gamma[c] * invstd[c] * left;
}
"""


def norm_inputs(rng, shape):
    """shape: B, C, S. Everything that the forward pass and the sums have left behind."""
    B, C, S = shape
    x = with_small(rng, rng.normal(size=shape) + rng.normal(size=(1, C, 1)))
    dy = with_small(rng, rng.normal(size=shape))
    mean = x.mean((0, 2))
    invstd = 1 / np.sqrt(x.var((0, 2)) + EPS)
    normalized = (x - mean[:, None]) * invstd[:, None]
    arrays = {
        "dy": dy,
        "x": x,
        "mean": mean,
        "invstd": invstd,
        "gamma": 2 * uniform(rng, C),
        "dgamma": (dy * normalized).sum((0, 2)),
        "dbeta": dy.sum((0, 2)),
    }
    narrow = {name: a.astype(np.float32) for name, a in arrays.items()}
    return {"dx": Out(shape), **narrow, "B": B, "C": C, "S": S}


def norm_reference(
    dx,
    dy,
    x,
    mean,
    invstd,
    gamma,
    dgamma,
    dbeta,
    B,
    C,
    S,
    *,
    mean_term=1,
    stretch_term=1,
    count=None,
    scale=lambda gamma, invstd: gamma * invstd,
):
    """dx in float64; the last parameters leave terms out, or divide by another count."""
    dy, x = dy.astype(float), x.astype(float)
    mean, invstd, gamma, dgamma, dbeta = (
        a.astype(float)[:, None] for a in (mean, invstd, gamma, dgamma, dbeta)
    )
    N = count or B * S
    terms = mean_term * dbeta / N + stretch_term * (x - mean) * invstd * dgamma / N
    return scale(gamma, invstd) * (dy - terms)


NORM = Exercise(
    id="mnist_cnn.norm_backward",
    title="Batch norm, backward",
    minutes=7,
    task=(
        "Write `dx`, the gradient of batch norm's input, a thread per element of [B, C, S]."
        " `normal` is the normalized x. `dgamma[c]` and `dbeta[c]` are the two sums over the"
        " channel, already computed. The kernel below has forgotten both terms that the mean and"
        " the deviation bring in."
    ),
    starter="""
%%writefile build/norm_backward.cu
__global__ void norm_backward(float* dx, const float* dy, const float* x, const float* mean,
                              const float* invstd, const float* gamma, const float* dgamma,
                              const float* dbeta, int B, int C, int S) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= B * C * S)
        return;
    int c = n / S % C;
    float normal = (x[n] - mean[c]) * invstd[c];
    dx[n] = gamma[c] * invstd[c] * dy[n];  // two terms are missing
}
""",
    solution=NORM_SOLUTION,
    kind="cuda_c",
    kernel_name="norm_backward",
    path="build/norm_backward.cu",
    inputs=norm_inputs,
    reference=norm_reference,
    specials="finite",  # the formula may be expanded
    shapes=((1, 1, 6), (3, 2, 5), (5, 7, 4), (4, 3, 9), (2, 130, 2)),
    fresh=some_numbers((2, 9), (2, 9), (2, 9)),
    large=((33_000, 1, 2), (1, 33_000, 6), (1, 1, 66_000)),
    elements=1,
    extents=a_thread_each,
    rtol=1e-4,
    other_block=(96, 1, 1),
    hints=(
        "How much of dy is the same for all numbers of the channel? And how much is like normal?",
        "The mean of dy over the channel, and normal times the mean of dy * normal.",
        (
            "`dbeta[c]` is the *sum* of dy over the channel. Its mean is `dbeta[c] / N`; how many"
            " numbers are in a channel?"
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Both terms are missing, or are 0, as whole numbers' 1 / N is: every x also acts"
            " through the mean and the deviation.",
            lambda **a: norm_reference(**a, mean_term=0, stretch_term=0),
        ),
        Hypothesis(
            "wrong_value",
            "The term of the mean, dbeta / N, is missing, or is 0, as whole numbers' 1 / N is.",
            lambda **a: norm_reference(**a, mean_term=0),
        ),
        Hypothesis(
            "wrong_value",
            "The term of the deviation, normal * dgamma / N, is missing, or is 0, as whole numbers'"
            " 1 / N is.",
            lambda **a: norm_reference(**a, stretch_term=0),
        ),
        Hypothesis(
            "wrong_value",
            "dgamma / N is taken out of every dy alike. It says how much of dy is like normal: take"
            " out normal * dgamma / N.",
            lambda **a: norm_reference(**{**a, "dbeta": a["dbeta"] + a["dgamma"]}, stretch_term=0),
        ),
        Hypothesis(
            "wrong_value",
            "dbeta and dgamma are sums: divide them by N, as many numbers as a channel has.",
            lambda **a: norm_reference(**a, count=1),
        ),
        Hypothesis(
            "wrong_value",
            "A channel has B * S numbers, not B: the sums are over the places, too.",
            lambda **a: norm_reference(**a, count=a["B"]),
        ),
        Hypothesis(
            "wrong_value",
            "A channel has B * S numbers, not S: the sums are over the batch, too.",
            lambda **a: norm_reference(**a, count=a["S"]),
        ),
        Hypothesis(
            "wrong_value",
            "N counts one channel's numbers, B * S: the other channels have sums of their own.",
            lambda **a: norm_reference(**a, count=a["dy"].size),
        ),
        Hypothesis(
            "wrong_value",
            "dgamma and dbeta have changed places: dbeta is the sum of dy, and dgamma, the sum of"
            " dy * normal, goes with normal.",
            lambda **a: norm_reference(**{**a, "dgamma": a["dbeta"], "dbeta": a["dgamma"]}),
        ),
        Hypothesis(
            "wrong_value",
            "The term of the deviation is added here. Both are subtracted from dy.",
            lambda **a: norm_reference(**a, stretch_term=-1),
        ),
        Hypothesis(
            "wrong_value",
            "The term of the mean is added here. Both are subtracted from dy.",
            lambda **a: norm_reference(**a, mean_term=-1),
        ),
        Hypothesis(
            "wrong_value",
            "The factor gamma[c] is missing.",
            lambda **a: norm_reference(**a, scale=lambda gamma, invstd: invstd),
        ),
        Hypothesis(
            "wrong_value",
            "The factor invstd[c] is missing.",
            lambda **a: norm_reference(**a, scale=lambda gamma, invstd: gamma),
        ),
    ),
    wrong=(
        (" - dbeta[c] / N - normal * dgamma[c] / N", "", "wrong_value"),
        (
            "dbeta[c] / N - normal * dgamma[c] / N",
            "1 / (B * S) * (dbeta[c] + normal * dgamma[c])",  # 0 of whole numbers
            "wrong_value",
        ),
        (" - dbeta[c] / N", "", "wrong_value"),
        (" - normal * dgamma[c] / N", "", "wrong_value"),
        ("normal * dgamma[c]", "dgamma[c]", "wrong_value"),
        ("B * S;", "B;", "wrong_value"),
        ("N = B * S", "N = B * C * S", "wrong_value"),
        ("gamma[c] * invstd[c] * left", "invstd[c] * left", "wrong_value"),
        ("gamma[c] * invstd[c] * left", "gamma[c] * left", "wrong_value"),
        ("    if (n >= B * C * S)\n        return;\n", "", "missing_guard"),
    ),
)


# ---- pool_backward: who won?

POOL_SOLUTION = """
__global__ void pool_backward(float* dx, const float* dy, const unsigned char* winner, int N, int H,
                              int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= N * H * W)
        return;
    int h = H / 2;
    int w = W / 2;
    int v = n % W;
    int u = n / W % H;
    int m = n / (W * H);
    float gradient = 0;
    if (u < 2 * h && v < 2 * w) {
        int window = (m * h + u / 2) * w + v / 2;
        int place = u % 2 * 2 + v % 2;
        if (winner[window] == place)
            gradient = dy[window];
    }
    dx[n] = gradient;
}
"""


def pool_inputs(rng, shape):
    """shape: N, H, W, of which an odd last row or column is in no window."""
    N, H, W = shape
    windows = N, H // 2, W // 2
    return {
        "dx": Out(shape),
        "dy": normal(rng, *windows),
        "winner": rng.integers(0, 4, windows).astype(np.uint8),
        "N": N,
        "H": H,
        "W": W,
    }


def pool_reference(dx, dy, winner, N, H, W):
    """The chapter's reference says who wins: a product with 0 would make infinity NaN."""
    wins = layers.maxpool2x2_backward(np.ones_like(dy[None]), winner[None], (1, N, H, W))[0]
    return np.where(wins == 1, pool_spread(dy, H, W), 0)


def pool_spread(values, H, W):
    """Each window's value at all of its places, 0 at those that are in no window."""
    spread = np.repeat(np.repeat(values.astype(float), 2, 1), 2, 2)
    return np.pad(spread, ((0, 0), (0, H % 2), (0, W % 2)))


def pool_transposed(dx, dy, winner, N, H, W):
    """With a window's places counted column by column."""
    turned = np.array([0, 2, 1, 3], np.uint8)[winner]
    return pool_reference(dx, dy, turned, N, H, W)


POOL = Exercise(
    id="mnist_cnn.pool_backward",
    title="Who was the largest?",
    minutes=6,
    task=(
        "Max-pooling backward, a thread per element of `dx` [N, H, W]: did this element win its"
        " window? Then it gets the window's gradient; all others get 0. `winner` and `dy` are"
        " [N, H / 2, W / 2]. The places of a window count 0, 1 in its upper row and 2, 3 in its"
        " lower row. An odd last row or column is in no window."
    ),
    starter="""
%%writefile build/pool_backward.cu
__global__ void pool_backward(float* dx, const float* dy, const unsigned char* winner, int N, int H,
                              int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= N * H * W)
        return;
    int v = n % W;  // column
    int u = n / W % H;  // row
    int m = n / (W * H);
    dx[n] = 0;  // your code: which window is this in, and which place of it?
}
""",
    solution=POOL_SOLUTION,
    kind="cuda_c",
    kernel_name="pool_backward",
    path="build/pool_backward.cu",
    inputs=pool_inputs,
    reference=pool_reference,
    specials="no_nan",
    shapes=((1, 2, 10), (3, 8, 4), (5, 7, 9), (2, 6, 6)),
    fresh=some_numbers((2, 8), (2, 9), (2, 9)),
    large=((66_000, 2, 2), (1, 132_000, 2), (1, 2, 132_000)),
    is_square=lambda s: s[1] == s[2],
    probe=(3, 8, 6),
    effort=3,
    elements=1,
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        "Row u and column v belong to the window in row u / 2 and column v / 2 of image m.",
        (
            "With `h = H / 2` and `w = W / 2`, the window is number `(m * h + u / 2) * w + v / 2`"
            " of `winner` and `dy`. Which of its four places is this?"
        ),
        (
            "Place `u % 2 * 2 + v % 2`. And where H is odd, `u / 2` is h in the last row: there is"
            " no such window."
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Every place of a window gets its gradient: only the winner may.",
            lambda dx, dy, winner, N, H, W: pool_spread(dy, H, W),
        ),
        Hypothesis(
            "wrong_value",
            "Places 1 and 2 of a window are swapped: 1 is to the right of 0, 2 below it.",
            pool_transposed,
        ),
        Hypothesis(
            "wrong_value",
            "n % 4 counts along a row of the picture. A window's places are in two rows of it: ask"
            " u and v.",
            lambda dx, dy, winner, N, H, W: np.where(
                pool_spread(winner, H, W) == np.arange(N * H * W).reshape(N, H, W) % 4,
                pool_spread(dy, H, W),
                0,
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The winner gets a quarter of the gradient, as in average pooling. It gets all of it.",
            lambda dx, dy, winner, N, H, W: pool_reference(dx, dy / 4, winner, N, H, W),
        ),
    ),
    wrong=(
        ("if (winner[window] == place)\n            ", "", "wrong_value"),
        ("u % 2 * 2 + v % 2", "v % 2 * 2 + u % 2", "wrong_value"),
        ("u % 2 * 2 + v % 2", "n % 4", "wrong_value"),
        ("if (u < 2 * h && v < 2 * w)", "", "out_of_bounds"),
        ("    dx[n] = gradient", "    if (gradient != 0)\n        dx[n] = gradient", "unwritten"),
        ("gradient = dy[window]", "gradient = dy[window] / 4", "wrong_value"),
        ("    if (n >= N * H * W)\n        return;\n", "", "missing_guard"),
    ),
)


# ---- softmax: without overflow


@cuda.jit
def softmax(p, z):
    b = cuda.grid(1)
    if b < z.shape[0]:
        largest = z[b, 0]
        for k in range(1, 10):
            largest = max(largest, z[b, k])
        total = np.float32(0)
        for k in range(10):
            total += math.exp(z[b, k] - largest)
        for k in range(10):
            p[b, k] = math.exp(z[b, k] - largest) / total


def logits(rng, rows):
    """Rows far above zero, far below, and with one large number: each breaks another half-cure."""
    z = normal(rng, rows, 10) + rng.choice([-2000, -400, 0, 400, 900], (rows, 1))
    z += 200 * (np.arange(10) == rng.integers(0, 20, (rows, 1)))
    return with_zeros(rng, z.astype(np.float32), 1 / 32)


def softmax_with(z, subtracted):
    """In float32, which overflows: what comes when another number is subtracted."""
    with np.errstate(all="ignore"):
        e = np.exp(z - np.float32(subtracted))
        return e / e.sum(1, keepdims=True)


SOFTMAX = Exercise(
    id="mnist_cnn.softmax",
    title="A softmax that does not overflow",
    minutes=4,
    task=(
        "One thread per row of ten logits: `p[b, k]` is exp(z[b, k]) over the sum of all ten. The"
        " logits come from a network in its first steps: some are in the hundreds, and some rows"
        " are far below zero. This kernel makes NaN of those."
    ),
    starter="""
@cuda.jit
def softmax(p, z):
    b = cuda.grid(1)
    if b < z.shape[0]:
        total = np.float32(0)
        for k in range(10):
            total += np.float32(math.exp(z[b, k]))
        for k in range(10):
            p[b, k] = np.float32(math.exp(z[b, k])) / total
""",
    solution=softmax,
    inputs=lambda rng, s: {"p": Out((s[0], 10)), "z": logits(rng, s[0])},
    reference=lambda p, z: (
        np.exp(z.astype(float) - z.max(1, keepdims=True))
        / np.exp(z.astype(float) - z.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    specials="finite",
    shapes=lengths(1, 40, 64, 77),
    fresh=some_numbers((40, 100)),
    large=(66_000,),
    elements=10,
    extents=a_thread_each,
    rtol=1e-4,
    other_block=(96, 1, 1),
    hints=(
        (
            "exp(z - m) / sum(exp(z - m)) is the same number for every m. Which m keeps all of them"
            " in range?"
        ),
        (
            "With m the largest of the ten, every exponent is 0 or less, and one of them is exactly"
            " 0: no overflow, no 0 / 0."
        ),
        "Start `largest` with `z[b, 0]`, not with 0: all ten may be far below zero.",
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Where all ten logits are far below zero, every exponential is 0: begin `largest` with"
            " `z[b, 0]`, not with 0.",
            lambda p, z: softmax_with(z, np.maximum(z.max(1, keepdims=True), 0)),
        ),
        Hypothesis(
            "wrong_value",
            "Where all ten logits are in the thousands below zero, even float64's exponentials are"
            " 0: begin `largest` with `z[b, 0]`, not with 0.",
            lambda p, z: softmax_with(z.astype(float), np.maximum(z.max(1, keepdims=True), 0)),
        ),
        Hypothesis(
            "wrong_value",
            "Nothing is subtracted: the exponential of a large logit is infinite, and infinity over"
            " infinity is no number.",
            lambda p, z: softmax_with(z, 0),
        ),
        Hypothesis(
            "wrong_value",
            "This subtracts the row's first logit. Another one may be larger by hundreds: subtract"
            " the largest.",
            lambda p, z: softmax_with(z, z[:, :1]),
        ),
        Hypothesis(
            "wrong_value",
            "The search for the largest logit leaves out the last one, and that may be larger by"
            " hundreds.",
            lambda p, z: softmax_with(z, z[:, :-1].max(1, keepdims=True)),
        ),
        Hypothesis(
            "wrong_value",
            "This subtracts the row's mean. One logit may be hundreds above it: subtract the"
            " largest.",
            lambda p, z: softmax_with(z, z.mean(1, keepdims=True)),
        ),
        Hypothesis(
            "wrong_value",
            "What is subtracted in every row has to do with row 0. Each row has a largest logit of"
            " its own.",
            lambda p, z: softmax_with(z, z[0].max()),
        ),
        Hypothesis(
            "wrong_value",
            "These are the ten exponentials. Each must be divided by their sum.",
            lambda p, z: np.exp(z.astype(float) - z.max(1, keepdims=True)),
        ),
    ),
    wrong=(
        ("= max(largest, z[b, k])", "= np.float32(0)", "wrong_value"),
        ("largest = max(largest, z[b, k])", "pass", "wrong_value"),
        (" / total", "", "wrong_value"),
        (
            ("largest = z[b, 0]", "largest = np.float32(0)"),
            ("range(1, 10)", "range(10)"),
            "wrong_value",
        ),
        ("b < z.shape[0]", "True", "missing_guard"),
    ),
)


# ---- backward: the launches of the two linear layers

BACKWARD_SOLUTION = (NAIVE / "backward.cuh").read_text(encoding="utf-8")
BIAS2_LINE = "    sum_over_batch<<<LAUNCH(CLASSES)>>>(dw[BIAS2], dlogits, B, CLASSES);\n"
RELU_LINE = "    relu_backward<<<LAUNCH(hidden)>>>(dh, dh, h, hidden);\n"
INPUT_LINE = (
    "    linear_backward_input<<<LAUNCH(features)>>>(dp, dh, w[FC1], B, FEATURES, HIDDEN);\n"
)

BACKWARD = CppExercise(
    id="mnist_cnn.backward",
    title="The way back",
    minutes=5,
    path="build/backward.cuh",
    task=(
        "Three launches are missing from the way back through the two linear layers: the gradient"
        " of `fc2`'s bias, the ReLU between the layers, and the gradient `dp` of what `fc1` read."
        " Put each in its place. `LAUNCH(n)` gives a thread to each of n elements."
    ),
    starter="""
%%writefile build/backward.cuh
void Network::backward(const unsigned char* labels, int B) {
    int hidden = B * HIDDEN;
    int features = B * FEATURES;
    cross_entropy<<<LAUNCH(B)>>>(losses, dlogits, logits, labels, B);
    sum_over_batch<<<LAUNCH(1)>>>(loss, losses, B, 1);

    linear_backward_weight<<<LAUNCH(SIZE[FC2])>>>(dw[FC2], dlogits, h, B, HIDDEN, CLASSES);
    // missing: dw[BIAS2]
    linear_backward_input<<<LAUNCH(hidden)>>>(dh, dlogits, w[FC2], B, HIDDEN, CLASSES);
    // missing: dh, back through the ReLU

    linear_backward_weight<<<LAUNCH(SIZE[FC1])>>>(dw[FC1], dh, two.p, B, FEATURES, HIDDEN);
    sum_over_batch<<<LAUNCH(HIDDEN)>>>(dw[BIAS1], dh, B, HIDDEN);
    // missing: dp

    two.backward(one.p, dp, B);
    one.backward(x, two.dx, B);
    CHECK(cudaGetLastError());
}
""",
    solution=BACKWARD_SOLUTION,
    tests="backward.cpp",
    launches=True,
    hints=(
        (
            "The bias of `fc1` shows how a bias gets its gradient: which array is summed over the"
            " batch, and how many columns has it?"
        ),
        (
            "`relu_backward(dx, dy, y, n)` may write where it reads: dx and dy are both `dh`. y is"
            " what the ReLU gave, `h`."
        ),
        (
            "`linear_backward_input(dx, dy, w, B, K, N)`: K numbers go in, N come out. For `fc1`"
            " these are FEATURES and HIDDEN, and dx has `features` elements in all."
        ),
    ),
    wrong=(
        (BIAS2_LINE, "", "unwritten"),
        (RELU_LINE, "", "wrong_value"),
        (INPUT_LINE, "", "unwritten"),
        ("(dw[BIAS2], dlogits, B, CLASSES)", "(dw[BIAS2], dlogits, B, HIDDEN)", "out_of_bounds"),
        ("(dw[BIAS2], dlogits, B, CLASSES)", "(dw[BIAS2], losses, B, 1)", "unwritten"),
        ("(dw[BIAS2], dlogits, B, CLASSES)", "(dw[BIAS2], dh, B, CLASSES)", "unwritten"),
        ("(dh, dh, h, hidden)", "(dh, dh, dh, hidden)", "wrong_value"),
        (
            "(dp, dh, w[FC1], B, FEATURES, HIDDEN)",
            "(dp, dh, w[FC1], B, HIDDEN, FEATURES)",
            "out_of_bounds",
        ),
        ("LAUNCH(features)>>>", "LAUNCH(hidden)>>>", "unwritten"),
        (
            (RELU_LINE, ""),
            ("B, FEATURES, HIDDEN);\n\n    two", f"B, FEATURES, HIDDEN);\n{RELU_LINE}\n    two"),
            "wrong_value",
        ),
        ("LAUNCH(CLASSES)>>>", "1, 256>>>", "race"),
    ),
)


# ---- wait: the losses of the steps that are done

WAIT_SOLUTION = """
struct Losses {
    std::vector<float> values;

    void wait(size_t steps, Slot* slots) {
        while (values.size() < steps) {
            Slot& slot = slots[values.size() % 2];
            CHECK(cudaEventSynchronize(slot.done));
            float loss = *slot.loss;
            values.push_back(loss);
            if (!std::isfinite(loss))
                fail("step %zu: the loss is %g. Stopped; no checkpoint was written. A smaller lr?",
                     values.size(), loss);
        }
    }
};
"""

WAIT = CppExercise(
    id="mnist_cnn.wait",
    title="A loss that is not a number",
    minutes=7,
    path="build/losses.cuh",
    task=(
        "Write `Losses::wait`. It waits until `steps` steps are done, and appends the loss of each"
        " that is new to `values`. Step n, counted from 0, used `slots[n % 2]`. Once the event"
        " `done` of that slot has happened, its `*loss` is the step's loss, and"
        " `cudaEventSynchronize` waits for an event. A loss that is not a finite number ends the"
        " program with `fail`, which takes what printf takes; the message begins with the step,"
        " counted from 1: `step 7: the loss is nan`. Do not wait for a later step: it has only just"
        " begun."
    ),
    starter="""
%%writefile build/losses.cuh
struct Losses {
    std::vector<float> values;  // of the steps that are done

    void wait(size_t steps, Slot* slots) {
        // your code
    }
};
""",
    solution=WAIT_SOLUTION,
    tests="wait.cpp",
    hints=(
        "`values.size()` says how many steps have been looked at. While that is less than `steps`…",
        (
            "The next one is step `values.size()`: its slot is `slots[values.size() % 2]`. First"
            " `CHECK(cudaEventSynchronize(slot.done));`, then read `*slot.loss`."
        ),
        (
            '`if (!std::isfinite(loss)) fail("step %zu: the loss is %g", values.size(), loss);`'
            " after the loss is in `values`, so that the size is the step's number from 1."
        ),
    ),
    wrong=(
        ("            CHECK(cudaEventSynchronize(slot.done));\n", "", "race"),
        ("cudaEventSynchronize(slot.done)", "cudaEventSynchronize(slot.copied)", "race"),
        ("cudaEventSynchronize(slot.done)", "cudaDeviceSynchronize()", "other_means"),
        ("cudaEventSynchronize(slot.done)", "cudaEventQuery(slot.done)", "wrong_value"),
        (
            ("            CHECK(cudaEventSynchronize(slot.done));\n", ""),
            (
                "loss = *slot.loss;",
                "loss = *slot.loss;\n            cudaEventSynchronize(slot.done);",
            ),
            "race",
        ),
        ("while (values.size() < steps)", "if (values.size() < steps)", "wrong_value"),
        ("< steps", "<= steps", "wrong_value"),
        ("slots[values.size() % 2]", "slots[(values.size() + 1) % 2]", "wrong_value"),
        ("slots[values.size() % 2]", "slots[0]", "other_means"),
        ("slots[values.size() % 2]", "slots[values.size()]", "out_of_bounds"),
        ("!std::isfinite(loss)", "std::isnan(loss)", "special_values"),
        ("!std::isfinite(loss)", "loss == NAN", "special_values"),
        (
            ("            values.push_back(loss);\n", ""),
            ("values.size(), loss);", "values.size(), loss);\n            values.push_back(loss);"),
            "off_by_one",
        ),
        ("!std::isfinite(loss)", "!(loss < 100)", "wrong_value"),
    ),
)


# ---- recall questions

Q_BIAS = one_of(
    "mnist_cnn.q_bias",
    "Why have the convolutions of this network no bias?",
    (
        "The batch norm behind them subtracts the channel's mean, and with it any bias",
        (
            "What is added to a whole channel moves its mean, and the mean is taken out. "
            "`beta` is the"
            " bias."
        ),
    ),
    (
        "A convolution cannot have one",
        "It can, one per channel; PyTorch's `Conv2d` has one unless told otherwise.",
    ),
    (
        "To save memory: the biases would be the largest tensor",
        "There would be one per channel, 96 numbers in all.",
    ),
    answer="a",
)
Q_WEIGHTS = Quiz(
    id="mnist_cnn.q_weights",
    question=(
        "conv1 has 32 × 9 weights. Over how many products does each one's gradient add up, for a"
        " batch of 10 digits of 28 × 28, those with the zeros outside included?"
    ),
    answer=7840,
    unit="products",
    explain_right="One for each place of each image: 28 · 28 · 10.",
    explain={
        784: "That is one image: the batch has ten.",
        90: "Not the taps: the places at which this weight was used.",
        None: "At how many places of how many images is one weight used?",
    },
)
Q_NORM = Quiz(
    id="mnist_cnn.q_norm",
    question=(
        "All x of a channel grow by the same number. What happens to the output of its batch norm?"
    ),
    choices={
        "a": "Nothing",
        "b": "It grows by that number",
        "c": "It grows by gamma times that number",
    },
    answer="a",
    explain_right=(
        "The mean grows with them and is subtracted. So the gradients of a channel's x add up to 0."
    ),
    explain={None: "What does the channel's mean do?"},
)
Q_CURVE = one_of(
    "mnist_cnn.q_curve",
    (
        "Two trainers start from the same weights, and their losses differ in the seventh digit at"
        " step 1 and in the third at step 80. What do you conclude?"
    ),
    (
        "One of the gradients is wrong",
        "A wrong gradient would be seen at step 2, in the first digits.",
    ),
    (
        "It may be rounding: compare how far each is from a float64 run",
        (
            "Rounding may decide a near tie, and then the distance jumps. How far, float64 tells; a"
            " wrong gradient is off from the second step on."
        ),
    ),
    (
        "Both are right: nobody can tell more",
        "One can: a run in float64 shows where the exact curve is.",
    ),
    answer="b",
)
Q_MEMORY = Quiz(
    id="mnist_cnn.q_memory",
    question=(
        "`one.y` holds 32 planes of 28 × 28 float32 numbers for each digit. How many MB (10⁶ bytes)"
        " is it for a batch of 256, rounded down?"
    ),
    answer=32 * 28 * 28 * 4 * 256 // 10**6,
    unit="MB",
    explain_right="`one.a` and `one.d` are as large: the three take nearly half of the memory.",
    explain={
        32 * 28 * 28 * 256 // 10**6: "A float32 has 4 bytes.",
        None: "Planes times height times width times 4 bytes is one digit's; then times the batch.",
    },
)
Q_FEED = one_of(
    "mnist_cnn.q_feed",
    (
        "There are two slots for batches. Step 7 is training from one of them. When may the host"
        " write batch 9 into that slot?"
    ),
    (
        "At once: the copy has a stream of its own",
        "The step would read half of one batch and half of another.",
    ),
    (
        "When the copy of batch 8 is done",
        "Batch 8 lies in the other slot, and its copy does not wait for who reads this one.",
    ),
    (
        "When step 7 is done",
        "That is why the host waits for a step before it fills that step's slot again.",
    ),
    answer="c",
)
Q_STEPS = Quiz(
    id="mnist_cnn.q_steps",
    question="60,000 digits in batches of 256; the rest at the end is left out. How many steps?",
    answer=60_000 // 256,
    unit="steps an epoch",
    explain_right="96 digits are left out: others in each epoch, because each is shuffled anew.",
    explain={
        -(-60_000 // 256): "The last batch would not be full, and is left out.",
        None: "How many whole batches are in 60,000 digits?",
    },
)

EXERCISES = (BIAS, CONV_WEIGHT, NORM, POOL, SOFTMAX, BACKWARD, WAIT)
Q_LAUNCHES = Quiz(
    id="mnist_cnn.q_launches",
    question=(
        "A step is 60 kernels. Each keeps the GPU busy for 3 µs, and the CPU needs 5 µs to launch"
        " one. How long does the step take, about?"
    ),
    answer=300,
    also=range(301, 311),  # with what the last kernel takes
    unit="µs",
    explain_right="The CPU is the slower one: 60 · 5 µs, and the GPU waits in between.",
    explain={
        180: "That is how long the GPU is busy. But in between it waits for the next launch.",
        480: "CPU and GPU work at the same time: only the slower one counts.",
        None: "60 launches one after another, while the GPU works on what it has.",
    },
)

QUIZZES = (Q_BIAS, Q_LAUNCHES, Q_WEIGHTS, Q_NORM, Q_CURVE, Q_MEMORY, Q_FEED, Q_STEPS)
