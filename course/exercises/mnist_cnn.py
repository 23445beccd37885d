"""The exercises of the chapter A CNN by hand: gradients, and what goes wrong in them."""

import math

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_each,
    exact,
    lengths,
    normal,
    some_numbers,
    with_zeros,
)
from course.checking.model import Exercise, Hypothesis, InOut, Out, Wrong
from course.checking.quiz import Quiz, one_of
from course.kernels.mnist_cnn import EPS, layers

# ---- bias_gradient: a sum over the batch


@cuda.jit
def bias_gradient(db, dy):
    n = cuda.grid(1)
    if n < db.size:
        total = np.float32(0)
        for b in range(dy.shape[0]):
            total += dy[b, n]
        db[n] = total


@cuda.jit
def bias_starter(db, dy):
    i = cuda.grid(1)
    if i < dy.size:
        b, n = i // dy.shape[1], i % dy.shape[1]
        db[n] += dy[b, n]


@cuda.jit
def bias_atomic_on_anything(db, dy):
    i = cuda.grid(1)
    if i < dy.size:
        cuda.atomic.add(db, i % dy.shape[1], dy[i // dy.shape[1], i % dy.shape[1]])


@cuda.jit
def bias_clears_in_the_race(db, dy):
    i = cuda.grid(1)
    if i < dy.size:
        b, n = i // dy.shape[1], i % dy.shape[1]
        if b == 0:
            db[n] = 0
        cuda.atomic.add(db, n, dy[b, n])


def some_slopes(rng, shape):
    """A batch of slopes; those of many rows add up without rounding."""
    fill = exact if shape[0] > 1000 else normal
    return {"db": Out((shape[1],)), "dy": fill(rng, *shape)}


BIAS = Exercise(
    id="mnist_cnn.bias_gradient",
    title="The gradient of a bias",
    minutes=10,
    task=(
        "A linear layer adds `bias[n]` to column n of every row, so its gradient is the sum of"
        " column n of `dy` [B, N]. This kernel has a thread for every element of `dy`, and they"
        " race. Besides, `db` starts with whatever memory holds. Cure both. The launch has a thread"
        " for every element of `dy`; you need not use them all."
    ),
    starter="""
@cuda.jit
def bias_gradient(db, dy):
    i = cuda.grid(1)
    if i < dy.size:
        b, n = i // dy.shape[1], i % dy.shape[1]
        db[n] += dy[b, n]  # many threads, one element: cure it
""",
    solution=bias_gradient,
    inputs=some_slopes,
    reference=lambda db, dy: dy.astype(float).sum(0),
    large=(66_000, 1),
    shapes=((1, 1), (3, 10), (7, 33), (40, 5), (130, 2)),
    probe=(40, 5),  # in two columns one thread alone does only twice its share
    fresh=some_numbers((2, 30), (2, 40)),
    extents=a_thread_each,
    race_free=True,
    effort=3,  # the sum may be kept in `db`
    other_block=(96, 1, 1),
    hints=(
        "Who should own `db[n]`, so that nobody else writes it?",
        "One thread a column: n is its number, and it goes through the batch in a loop.",
        (
            "Add up in a variable of your own, `total = np.float32(0)`, and write `db[n] = total`"
            " once, at the end."
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is the mean over the batch. The loss has divided by the batch size already.",
            lambda db, dy: dy.astype(float).mean(0),
        ),
    ),
    wrong=(
        Wrong(bias_starter, "race"),
        (
            ("        total = np.float32(0)\n", ""),
            ("total += dy", "db[n] += dy"),
            ("        db[n] = total\n", ""),
            "reads_output",
        ),
        Wrong(bias_atomic_on_anything, "duplicate_work"),
        ("range(dy.shape[0])", "range(min(dy.shape[0], 4096))", "only_small"),
        ("db[n] = total", "db[n] = total / dy.shape[0]", "wrong_value"),
        Wrong(bias_clears_in_the_race, "race"),
    ),
)


# ---- conv_weight: the gradient of a convolution's weights


@cuda.jit
def conv_weight(dw, dy, x):
    n = cuda.grid(1)
    if n < dw.size:
        s, r, c, k = n % 3, n // 3 % 3, n // 9 % dw.shape[1], n // 9 // dw.shape[1]
        B, _, H, W = x.shape
        total = np.float32(0)
        for b in range(B):
            for i in range(H):
                for j in range(W):
                    u, v = i + r - 1, j + s - 1
                    if 0 <= u < H and 0 <= v < W:
                        total += dy[b, k, i, j] * x[b, c, u, v]
        dw[k, c, 3 * r + s] = total


def conv_weight_reference(dw, dy, x):
    """In float64, of the pixels that there are: a zero beside them would make infinity NaN."""
    dy, x = dy.astype(float), x.astype(float)
    gradient = np.zeros((*dw.shape[:2], 3, 3))
    for r, s in np.ndindex(3, 3):
        rows, rows_of_x = shifted(dy.shape[2], r - 1)
        columns, columns_of_x = shifted(dy.shape[3], s - 1)
        seen = x[:, :, rows_of_x, columns_of_x]
        gradient[:, :, r, s] = np.einsum("bkij,bcij->kc", dy[:, :, rows, columns], seen)
    return gradient.reshape(dw.shape)


def shifted(size, by):
    """Slices of the indices i and i + by for which both are within range(size)."""
    return slice(max(0, -by), size - max(0, by)), slice(max(0, by), size - max(0, -by))


def conv_weight_taps(turned, **arguments):
    """The reference with its taps moved: `turned` gets them as [K, C, 3, 3]."""
    dw = conv_weight_reference(**arguments)
    return turned(dw.reshape(*dw.shape[:2], 3, 3)).reshape(dw.shape)


def conv_weight_inputs(rng, shape):
    """shape: B, C, K, H, W. What a large picture gives adds up without rounding."""
    B, C, K, H, W = shape
    fill = exact if H * W > 1000 else normal
    return {"dw": Out((K, C, 9)), "dy": fill(rng, B, K, H, W), "x": fill(rng, B, C, H, W)}


CONV_WEIGHT = Exercise(
    id="mnist_cnn.conv_weight",
    title="The gradient of the weights",
    minutes=15,
    task=(
        "One thread per weight: the gradient of tap (r, s), `dw[k, c, 3 * r + s]`, is the sum over"
        " all images b and all places (i, j) of `dy[b, k, i, j] * x[b, c, i + r - 1, j + s - 1]`."
        " Outside the picture, x is 0."
    ),
    starter="""
@cuda.jit
def conv_weight(dw, dy, x):
    n = cuda.grid(1)
    if n < dw.size:
        s, r, c, k = n % 3, n // 3 % 3, n // 9 % dw.shape[1], n // 9 // dw.shape[1]
        B, _, H, W = x.shape
        dw[k, c, 3 * r + s] = B * H * W  # not this: three loops, one sum
""",
    solution=conv_weight,
    inputs=conv_weight_inputs,
    reference=conv_weight_reference,
    finite=("dy",),  # an infinite slope times the 0 outside of the picture: left out, or NaN
    shapes=(
        *((1, 1, 1, 4, 4), (2, 1, 3, 5, 3), (9, 1, 1, 3, 18)),
        *((3, 2, 2, 4, 6), (2, 2, 2, 3, 3), (2, 2, 2, 5, 5)),
    ),
    probe=(2, 2, 2, 5, 5),
    large=(1, 1, 1, 70, 300),
    fresh=some_numbers((2, 5), (2, 5), (2, 5), (2, 5), (2, 5)),
    is_square=lambda s: s[3] == s[4],
    elements=1,
    extents=lambda s: (9 * s[1] * s[2], 1, 1),
    rtol=1e-4,
    other_block=(96, 1, 1),
    hints=(
        (
            "Three loops inside each other, over b, i and j. What does a thread do at the border of"
            " the picture?"
        ),
        (
            "`u, v = i + r - 1, j + s - 1` may be -1 or H, W: there x is 0, so the product adds"
            " nothing. Skip it."
        ),
        (
            "Python's -1 means the last row. In a kernel too: without `0 <= u < H` the picture"
            " would wrap around."
        ),
    ),
    wrong=(
        ("i + r - 1, j + s - 1", "i - r + 1, j - s + 1", "wrong_value"),
        ("range(B)", "range(1)", "wrong_value"),
        ("range(H)", "range(min(H, 64))", "only_small"),
        ("range(W)", "range(min(W, 256))", "only_small"),
        (
            ("range(H)", "range(1, H - 1)"),
            ("range(W)", "range(1, W - 1)"),
            "wrong_value",
        ),
        (
            "i + r - 1, j + s - 1",
            "(i + r - 1) % H, (j + s - 1) % W",
            "wrong_value",
        ),
        ("i + r - 1, j + s - 1", "i + s - 1, j + r - 1", "wrong_value"),
        ("n < dw.size", "True", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The taps are turned by 180°: that belongs to the gradient of the input.",
            lambda **a: conv_weight_taps(lambda w: w[:, :, ::-1, ::-1], **a),
        ),
        Hypothesis(
            "wrong_value",
            "Rows and columns of the taps are swapped: r goes with the rows.",
            lambda **a: conv_weight_taps(lambda w: w.swapaxes(2, 3), **a),
        ),
        Hypothesis(
            "wrong_value",
            "Only the first image of the batch is summed.",
            lambda dw, dy, x: conv_weight_reference(dw, dy[:1], x[:1]),
        ),
    ),
)


# ---- norm_backward: the two subtracted terms


@cuda.jit
def norm_backward(dx, dy, normal, scale, dgamma, dbeta):
    n = cuda.grid(1)
    B, C, S = dx.shape
    if n < dx.size:
        b, c, p = n // (C * S), n // S % C, n % S
        N = B * S
        dx[b, c, p] = scale[c] * (dy[b, c, p] - dbeta[c] / N - normal[b, c, p] * dgamma[c] / N)


def norm_inputs(rng, shape):
    """shape: B, C, S. Everything that the forward pass and the sums have left behind."""
    B, C, S = shape
    x = rng.normal(size=shape)
    dy = with_zeros(rng, rng.normal(size=shape))
    invstd = 1 / np.sqrt(x.var((0, 2), keepdims=True) + EPS)
    normalized = (x - x.mean((0, 2), keepdims=True)) * invstd
    arrays = {
        "dy": dy,
        "normal": normalized,
        "scale": rng.uniform(0.5, 2, C) * invstd[0, :, 0],
        "dgamma": (dy * normalized).sum((0, 2)),
        "dbeta": dy.sum((0, 2)),
    }
    return {"dx": Out(shape), **{name: a.astype(np.float32) for name, a in arrays.items()}}


def norm_reference(dx, dy, normal, scale, dgamma, dbeta, mean_term=1, stretch_term=1, count=None):
    """dx in float64; the other parameters leave terms out, or divide by another count."""
    dy, normal, scale, dgamma, dbeta = (a.astype(float) for a in (dy, normal, scale, dgamma, dbeta))
    N = count or dy.shape[0] * dy.shape[2]
    terms = mean_term * dbeta[:, None] / N + stretch_term * normal * dgamma[:, None] / N
    return scale[:, None] * (dy - terms)


NORM = Exercise(
    id="mnist_cnn.norm_backward",
    title="Batch norm, backward",
    minutes=15,
    task=(
        "Write `dx`, the gradient of batch norm's input, one thread per element. Arrays are"
        " [B, C, S]. The forward pass left `normal`, the normalized x; `scale[c]` is gamma over the"
        " deviation; `dgamma[c]` and `dbeta[c]` are the two sums, already computed. Think of both"
        " terms that the mean and the deviation bring in."
    ),
    starter="""
@cuda.jit
def norm_backward(dx, dy, normal, scale, dgamma, dbeta):
    n = cuda.grid(1)
    B, C, S = dx.shape
    if n < dx.size:
        b, c, p = n // (C * S), n // S % C, n % S
        dx[b, c, p] = scale[c] * dy[b, c, p]  # two terms are missing
""",
    solution=norm_backward,
    inputs=norm_inputs,
    reference=norm_reference,
    specials="finite",  # the formula may be expanded
    shapes=((1, 1, 6), (3, 2, 5), (5, 7, 4), (4, 3, 9)),
    fresh=some_numbers((2, 9), (2, 9), (2, 9)),
    elements=1,
    extents=a_thread_each,
    rtol=1e-4,
    other_block=(96, 1, 1),
    hints=(
        "The formula stands in section 5: what is subtracted from dy, before the scale?",
        "The mean of dy over the channel, and normal times the mean of dy * normal.",
        (
            "`dbeta[c]` is the *sum* of dy over the channel. Its mean is `dbeta[c] / N`; how many"
            " numbers are in a channel?"
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Both terms are missing: every x also acts through the mean and the deviation.",
            lambda **a: norm_reference(**a, mean_term=0, stretch_term=0),
        ),
        Hypothesis(
            "wrong_value",
            "The term of the mean, dbeta / N, is missing.",
            lambda **a: norm_reference(**a, mean_term=0),
        ),
        Hypothesis(
            "wrong_value",
            "The term of the deviation, normal * dgamma / N, is missing.",
            lambda **a: norm_reference(**a, stretch_term=0),
        ),
        Hypothesis(
            "wrong_value",
            "dbeta and dgamma are sums: divide them by N, as many numbers as a channel has.",
            lambda **a: norm_reference(**a, count=1),
        ),
        Hypothesis(
            "wrong_value",
            "A channel has B * S numbers, not B: the sums are over the places, too.",
            lambda **a: norm_reference(**a, count=a["dy"].shape[0]),
        ),
        Hypothesis(
            "wrong_value",
            "A channel has B * S numbers, not S: the sums are over the batch, too.",
            lambda **a: norm_reference(**a, count=a["dy"].shape[2]),
        ),
        Hypothesis(
            "wrong_value",
            "N counts one channel's numbers, B * S: the other channels have sums of their own.",
            lambda **a: norm_reference(**a, count=a["dy"].size),
        ),
        Hypothesis(
            "wrong_value",
            "The factor scale[c] is missing.",
            lambda **a: norm_reference(**a) / a["scale"].astype(float)[:, None],
        ),
    ),
    wrong=(
        (
            "(dy[b, c, p] - dbeta[c] / N - normal[b, c, p] * dgamma[c] / N)",
            "dy[b, c, p]",
            "wrong_value",
        ),
        (" - dbeta[c] / N", "", "wrong_value"),
        (" - normal[b, c, p] * dgamma[c] / N", "", "wrong_value"),
        ("B * S", "B", "wrong_value"),
        ("N = B * S", "N = dx.size", "wrong_value"),
        ("scale[c] * ", "", "wrong_value"),
        ("n < dx.size", "True", "missing_guard"),
    ),
)


# ---- pool_backward: ties


@cuda.jit
def pool_backward(dx, dy, x):
    n = cuda.grid(1)
    N, h, w = dy.shape
    if n < dy.size:
        q, p, m = n % w, n // w % h, n // (w * h)
        best = 0
        for k in range(1, 4):
            if x[m, 2 * p + k // 2, 2 * q + k % 2] > x[m, 2 * p + best // 2, 2 * q + best % 2]:
                best = k
        for k in range(4):
            dx[m, 2 * p + k // 2, 2 * q + k % 2] = dy[m, p, q] if k == best else 0


def often_equal(rng, shape):
    """Numbers of which many are equal; sometimes all are large, or small, and most below zero."""
    return (rng.choice((1, 1e30, 1e-9)) * rng.integers(-3, 2, shape)).astype(np.float32)


def pool_reference(dx, dy, x):
    """The chapter's reference says who wins: a product with 0 would make infinity NaN."""
    _, winner = layers.maxpool2x2(x[None])
    wins = layers.maxpool2x2_backward(np.ones_like(dy[None]), winner, (1, *x.shape))[0]
    spread = np.repeat(np.repeat(dy.astype(float), 2, 1), 2, 2)
    return np.where(wins == 1, spread, 0)


def pool_to_all(dx, dy, x):
    """The gradient to every largest number of a window."""
    best, _ = layers.maxpool2x2(x[None])
    spread = np.repeat(np.repeat(best[0], 2, 1), 2, 2) == x
    return np.repeat(np.repeat(dy.astype(float), 2, 1), 2, 2) * spread


def pool_to_last(dx, dy, x):
    """The gradient to the last of several largest: read backwards, it is the first."""
    turned = (slice(None), slice(None, None, -1), slice(None, None, -1))
    return pool_reference(dx, dy[turned], x[turned])[turned]


POOL = Exercise(
    id="mnist_cnn.pool_backward",
    title="Who was the largest?",
    minutes=10,
    task=(
        "Max-pooling backward without the winners written down: `x` [N, 2h, 2w] is what was pooled,"
        " `dy` [N, h, w] the gradient of the result. One thread per window: find its largest number"
        " again, give it the gradient, and give the other three 0. Of several largest the first"
        " counts, row by row."
    ),
    starter="""
@cuda.jit
def pool_backward(dx, dy, x):
    n = cuda.grid(1)
    N, h, w = dy.shape
    if n < dy.size:
        q, p, m = n % w, n // w % h, n // (w * h)
        dx[m, 2 * p, 2 * q] = dy[m, p, q]  # only if the largest is here, in the window's corner
""",
    solution=pool_backward,
    inputs=lambda rng, s: {
        "dx": Out((s[0], 2 * s[1], 2 * s[2])),
        "dy": normal(rng, *s),
        "x": often_equal(rng, (s[0], 2 * s[1], 2 * s[2])),
    },
    reference=pool_reference,
    specials="no_nan",
    shapes=((1, 1, 5), (3, 4, 2), (5, 7, 7)),
    fresh=some_numbers((2, 8), (2, 8), (2, 8)),
    is_square=lambda s: s[1] == s[2],
    elements=4,
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        (
            "First find which of the four is the largest: number 0 to 3, at row 2 * p + k // 2,"
            " column 2 * q + k % 2."
        ),
        (
            "Start with best = 0 and replace it only by a number that is truly larger: then the"
            " first of equals stays."
        ),
        "Then write all four elements of dx: they hold whatever memory held before.",
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Where several numbers of a window are the largest, all get the gradient: only the"
            " first may.",
            pool_to_all,
        ),
        Hypothesis(
            "wrong_value",
            "Where several numbers of a window are the largest, the last of them got the gradient:"
            " let a later one win only if it is larger.",
            pool_to_last,
        ),
    ),
    wrong=(
        (
            "k == best else",
            "x[m, 2 * p + k // 2, 2 * q + k % 2] == x[m, 2 * p + best // 2, 2 * q + best % 2] else",
            "wrong_value",
        ),
        ("] > x", "] >= x", "wrong_value"),
        ("range(4)", "range(best, best + 1)", "unwritten"),
        ("dy[m, p, q] if k == best else 0", "dy[m, p, q] / 4", "wrong_value"),
        ("n < dy.size", "True", "missing_guard"),
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


SOFTMAX = Exercise(
    id="mnist_cnn.softmax",
    title="A softmax that does not overflow",
    minutes=10,
    task=(
        "One thread a row of ten logits: `p[b, k]` is exp(z[b, k]) over the sum of all ten. The"
        " logits come from a network in its first steps: some are in the hundreds, and some rows"
        " are far below zero. This kernel makes nan of them."
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


# ---- sgd: in CUDA C

SGD_SOLUTION = """
__global__ void sgd(float* w, const float* dw, float lr, float decay, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        w[i] -= lr * (dw[i] + decay * w[i]);
}
"""

SGD = Exercise(
    id="mnist_cnn.sgd",
    title="SGD with weight decay, in CUDA C",
    minutes=10,
    task=(
        "Weight decay adds `decay * w` to each gradient, so that weights that nothing needs shrink"
        " away. Write the update, one thread a weight: a step of length `lr` *against* the gradient"
        " dw + decay * w."
    ),
    starter="""
%%writefile build/sgd_decay.cu
// w -= lr * (dw + decay * w), one thread a weight
__global__ void sgd(float* w, const float* dw, float lr, float decay, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your code
}
""",
    solution=SGD_SOLUTION,
    kind="cuda_c",
    kernel_name="sgd",
    path="build/sgd_decay.cu",
    inputs=lambda rng, s: {
        "w": InOut(with_zeros(rng, normal(rng, s[0]))),
        "dw": with_zeros(rng, normal(rng, s[0])),
        "lr": np.float32(rng.uniform(0.05, 0.5)),
        "decay": np.float32(rng.uniform(0.05, 0.5)),
        "n": s[0],
    },
    reference=lambda w, dw, lr, decay, n: (
        w - np.float64(lr) * (dw.astype(float) + np.float64(decay) * w)
    ),
    specials="finite",  # the formula may be expanded
    shapes=lengths(1, 31, 256, 512, 1000),
    large=(66_000,),
    fresh=some_numbers((2, 2000), few=True),
    block=(256, 1, 1),
    elements=1,
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        "The guard first: n weights, and the last block has threads left over.",
        "The gradient points uphill, so subtract.",
        "`w[i] -= lr * (dw[i] + decay * w[i]);`",
    ),
    wrong=(
        ("-=", "+=", "wrong_value"),
        ("i < n", "i < n / blockDim.x * blockDim.x", "only_multiples"),
        (" + decay * w[i]", "", "wrong_value"),
        ("i < n", "i < n - 1", "off_by_one"),
        (
            "if (i < n)",
            "const int half = (n + 1) / 2;\n"
            "    for (int end = i < half ? n : 0; i < end; i += half)",
            "one_thread",
        ),
        (
            (";\n    if", ";\n    float* rate = new float(lr);\n    if"),
            ("lr * (dw", "*rate * (dw"),
            "leak",
        ),
        (
            "lr * (dw[i] + decay * w[i])",
            "lr * dw[i] + decay * w[i]",
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The step goes uphill: the gradient must be subtracted.",
            lambda w, dw, lr, decay, n: (
                w + np.float64(lr) * (dw.astype(float) + np.float64(decay) * w)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The decay belongs to the gradient: multiply it by lr, too.",
            lambda w, dw, lr, decay, n: w - np.float64(lr) * dw - np.float64(decay) * w,
        ),
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
        "It can, one a channel; PyTorch's `Conv2d` has one unless told otherwise.",
    ),
    (
        "To save memory: the biases would be the largest tensor",
        "There would be one a channel, 96 numbers in all.",
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
            "Rounding grows from step to step. How fast, float64 tells; a wrong gradient is "
            "off from"
            " the second step on."
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
    explain_right="And `one.a` and `one.d` are as large: together half of the memory, nearly.",
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
        "Batch 8 lies in the other slot, and says nothing of who still reads this one.",
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
    explain_right="The 96 digits that are left out are others in each epoch: it is shuffled.",
    explain={
        -(-60_000 // 256): "The last batch would not be full, and is left out.",
        None: "How many whole batches are in 60,000 digits?",
    },
)

EXERCISES = (BIAS, CONV_WEIGHT, NORM, POOL, SOFTMAX, SGD)
Q_LAUNCHES = Quiz(
    id="mnist_cnn.q_launches",
    question=(
        "A step is 60 kernels. Each keeps the GPU busy for 3 µs, and the CPU needs 5 µs to launch"
        " one. How long does the step take, about?"
    ),
    answer=300,
    unit="µs",
    explain_right="The CPU is the slower one: 60 · 5 µs, and the GPU waits in between.",
    explain={
        180: "So long the GPU is busy. It has nothing to do until the next kernel is launched.",
        480: "CPU and GPU work at the same time: only the slower one counts.",
        None: "60 launches one after another, while the GPU works on what it has.",
    },
)

QUIZZES = (Q_BIAS, Q_LAUNCHES, Q_WEIGHTS, Q_NORM, Q_CURVE, Q_MEMORY, Q_FEED, Q_STEPS)
