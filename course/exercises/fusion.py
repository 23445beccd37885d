"""The exercises of the chapter Fusion."""

import math
from functools import partial

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_each,
    arguments_of,
    factor,
    lengths,
    some_numbers,
    uniform,
    with_small,
    with_zeros,
)
from course.checking.model import Exercise, Hypothesis, InOut, Launch, Out, Speed, Wrong
from course.checking.quiz import Quiz, one_of
from course.kernels.row_kernels.choosing import LANES, LONGEST, by_table, fits, share, turns
from course.kernels.row_kernels.numba_softmax import LOWEST, block_max, block_sum, larger

# ---- fuse: three steps in one kernel


@cuda.jit
def in_one(out, x, bias, residual):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        v = x[row, column] + bias[column]
        out[row, column] = max(v, 0) + residual[row, column]


@cuda.jit
def in_one_through_out(out, x, bias, residual):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = x[row, column] + bias[column]  # the mistake: each step goes to memory
        out[row, column] = max(out[row, column], 0)
        out[row, column] = out[row, column] + residual[row, column]


def three_matrices(rng, shape):
    """x and a residual, and a bias for each column."""
    x, residual = (4 * uniform(rng, *shape) for _ in range(2))
    return {"out": Out(shape), "x": x, "bias": 4 * uniform(rng, shape[1]), "residual": residual}


def three_steps(out, x, bias, residual, floor=0.0):
    """relu(x + bias) + residual, in float64. floor: from where on relu lets numbers through."""
    return np.maximum(np.asarray(x, np.float64) + bias, floor) + residual


FUSE = Exercise(
    id="fusion.fuse",
    title="Three steps in one kernel",
    minutes=4,
    task=(
        "`out = max(x + bias, 0) + residual`, as the three kernels above compute it together. A"
        " thread has one element. It reads `x` and `residual` once each, writes `out` once, and"
        " sends nothing else through memory."
    ),
    starter="""
@cuda.jit
def in_one(out, x, bias, residual):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = x[row, column] + bias[column]  # the first step; two are missing
""",
    solution=in_one,
    inputs=three_matrices,
    reference=three_steps,
    specials="finite",  # a maximum of NaN and 0 is either, as one compares
    shapes=((1, 1), (3, 33), (33, 3), (8, 8), (20, 50)),
    fresh=some_numbers((1, 40), (1, 70)),
    large=((300, 2), (2, 300)),
    block=(8, 8, 1),
    other_block=(16, 2, 1),
    elements=1,
    extents=lambda shape: (shape[1], shape[0], 1),
    swapped=(0, 1),
    traffic=1.2,
    probe=(16, 30),
    hints=(
        "What does the second kernel read? Your thread has that number already.",
        "Put the first sum into a variable: `v = x[row, column] + bias[column]`.",
        "`max(v, 0)`, plus the residual of the same place, is what is stored.",
    ),
    wrong=(
        Wrong(in_one_through_out, "too_much_traffic"),
        ("max(v, 0) + residual[row, column]", "max(v + residual[row, column], 0)", "wrong_value"),
        (" + residual[row, column]", "", "wrong_value"),
        ("max(v, 0)", "v", "wrong_value"),
        ("max(v, 0)", "max(x[row, column], 0) + bias[column]", "wrong_value"),
        ("max(v, 0)", "min(v, 0)", "wrong_value"),
        (" and column < out.shape[1]", "", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The residual is added before the maximum is taken. It comes last, so that `out` may"
            " be negative.",
            lambda out, x, bias, residual: np.maximum(
                np.asarray(x, np.float64) + bias + residual, 0
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The residual is missing: it is the third step.",
            lambda residual, **given: three_steps(residual=0, **given),
        ),
        Hypothesis(
            "wrong_value",
            "The maximum with 0 is missing: it is the second step.",
            partial(three_steps, floor=-np.inf),
        ),
        Hypothesis(
            "wrong_value",
            "The maximum is that of x and 0, before the bias is added. It is that of their sum.",
            lambda bias, **given: three_steps(bias=0, **given) + bias,
        ),
        Hypothesis(
            "wrong_value",
            "This keeps what is negative and drops the rest: the maximum with 0 does the reverse.",
            lambda out, x, bias, residual: np.minimum(np.float64(x) + bias, 0) + residual,
        ),
    ),
)


# ---- online: the softmax states of two parts


@cuda.jit
def join_softmax(out, largest, sums):
    i = cuda.grid(1)
    if i < out.shape[0]:
        a, b = 2 * i, 2 * i + 1
        both = max(largest[a], largest[b])
        out[i, 0] = both
        out[i, 1] = 0
        if both != -math.inf:
            in_a = sums[a] * math.exp(largest[a] - both)
            in_b = sums[b] * math.exp(largest[b] - both)
            out[i, 1] = in_a + in_b


def parts_of_rows(rng, shape):
    """The largest value and the sum of exp(value - largest) of 2 shape[0] parts, some empty."""
    count = 2 * shape[0]
    largest = rng.uniform(-200, 200, count).astype(np.float32)
    largest[: count // 2] -= rng.choice((0, 20_000, 1e32))
    with_zeros(rng, largest)
    sums = rng.uniform(1, 50, count).astype(np.float32)
    empty = rng.random(count) < 0.3
    empty[:4] = [False, False, True, True][:count]
    largest[empty], sums[empty] = -np.inf, 0
    return {"out": Out((shape[0], 2)), "largest": largest, "sums": sums}


def joined_states(out, largest, sums):
    """The states of parts 0 and 1, 2 and 3 ... together."""
    largest, sums = (np.asarray(v, np.float64).reshape(-1, 2) for v in (largest, sums))
    both = largest.max(1, keepdims=True)
    apart = np.where(np.isinf(largest), -np.inf, largest - np.where(np.isinf(both), 0, both))
    return np.hstack([both, (sums * np.exp(apart)).sum(1, keepdims=True)])


def without_empty(out, largest, sums):
    """What comes out if -inf - -inf is computed."""
    states = joined_states(out, largest, sums)
    states[np.isinf(states[:, 0]), 1] = np.nan
    return states


def unscaled(out, largest, sums):
    """What comes out if the sums are added as they are."""
    states = joined_states(out, largest, sums)
    states[:, 1] = np.asarray(sums, np.float64).reshape(-1, 2).sum(1)
    return states


def from_zero(out, largest, sums):
    """What comes out if the common largest value begins at 0."""
    largest, sums = (np.asarray(v, np.float64).reshape(-1, 2) for v in (largest, sums))
    both = np.maximum(largest.max(1, keepdims=True), 0)
    return np.hstack([both, (sums * np.exp(largest - both)).sum(1, keepdims=True)])


def other_sign(out, largest, sums):
    """What comes out if the exponents have the other sign: soon infinity."""
    states = joined_states(out, largest, sums)
    largest, sums = (np.asarray(v, np.float64).reshape(-1, 2) for v in (largest, sums))
    both = states[:, :1]
    with np.errstate(over="ignore", invalid="ignore"):
        of_both = (sums * np.exp(both - largest)).sum(1).astype(np.float32)
    states[:, 1] = np.where(np.isinf(both[:, 0]), 0, of_both)
    return states


def by_factors(out, largest, sums, factors):
    """What comes out if each sum is multiplied by another factor, each a float32.

    factors: gives them, of the largest values [pair, part] and the common ones [pair, 1].
    """
    states = joined_states(out, largest, sums)
    largest, sums = (np.asarray(v, np.float64).reshape(-1, 2) for v in (largest, sums))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (sums * factors(largest, states[:, :1])).astype(np.float32).sum(1)
    states[:, 1] = np.where(np.isinf(states[:, 0]), 0, scaled)
    return states


def float32_exp(v):
    """exp(v) as a float32 holds it."""
    return np.exp(v).astype(np.float32)


def one_turned(own, both, part):
    """The factors of two parts, with the other sign in the exponent of this one."""
    return float32_exp(np.where(np.arange(2) == part, both - own, own - both))


def larger_sum(out, largest, sums):
    """What comes out if the larger of the two scaled sums is taken."""
    pairs = np.asarray(largest, np.float64).reshape(-1, 2), np.asarray(sums).reshape(-1, 2)
    alone = [joined_states(out, *one_part(*pairs, part))[:, 1] for part in (0, 1)]
    states = joined_states(out, largest, sums)
    states[:, 1] = np.maximum(*alone)
    return states


def one_part(largest, sums, part):
    """The states of parts where of each two one alone has a sum."""
    return largest, np.where(np.arange(2) == part, sums, 0)


def one_scaled(out, largest, sums, part):
    """What comes out if of the two sums only that of this part is brought to the common value."""
    pairs = np.asarray(largest, np.float64).reshape(-1, 2), np.asarray(sums).reshape(-1, 2)
    states = joined_states(out, largest, sums)
    other = np.where(np.isinf(states[:, 0]), 0, pairs[1][:, 1 - part])
    states[:, 1] = joined_states(out, *one_part(*pairs, part))[:, 1] + other
    return states


def none_beside_empty(out, largest, sums):
    """What comes out if a part beside an empty one counts for nothing."""
    states = joined_states(out, largest, sums)
    states[np.isinf(np.asarray(largest).reshape(-1, 2)).any(1), 1] = 0
    return states


def halves_joined(out, largest, sums):
    """What comes out if part i is joined with the one half the array behind it."""
    largest, sums = (np.asarray(v).reshape(2, -1).T for v in (largest, sums))
    return joined_states(out, largest, sums)


ONLINE = Exercise(
    id="fusion.online",
    title="Join two softmax states",
    minutes=10,
    task=(
        "Of each part of a row you know `largest`, its largest value, and `sums`, the sum of"
        " `exp(value - largest)` over the part. Thread i joins parts 2 i and 2 i + 1: `out[i, 0]`"
        " is the largest value of both, `out[i, 1]` the sum of `exp(value - that largest)` over"
        " both. A part may be empty: its largest value is -inf and its sum 0."
    ),
    starter="""
@cuda.jit
def join_softmax(out, largest, sums):
    i = cuda.grid(1)
    if i < out.shape[0]:
        a, b = 2 * i, 2 * i + 1
        out[i, 0] = max(largest[a], largest[b])
        out[i, 1] = sums[a] + sums[b]  # each is relative to another largest value
""",
    solution=join_softmax,
    inputs=parts_of_rows,
    reference=joined_states,
    specials="finite",  # sums of powers of finite numbers
    shapes=lengths(1, 2, 31, 33, 64, 100),
    fresh=some_numbers((2, 150)),
    large=(66_000,),
    elements=2,
    extents=a_thread_each,
    is_square=lambda shape: False,
    race_free=True,
    other_block=(96, 1, 1),
    hints=(
        (
            "`exp(v - new)` is `exp(v - old) * exp(old - new)`. So what must a sum that is relative"
            " to `old` be multiplied by?"
        ),
        "Multiply each sum by `exp(its own largest - the larger one)`. For one of the two that"
        " is 1.",
        (
            "An empty part beside one that is not does no harm, since exp(-inf) is 0. With two"
            " empty parts -inf - -inf is NaN: that case needs an answer of its own."
        ),
    ),
    wrong=(
        ("in_a + in_b", "sums[a] + sums[b]", "wrong_value"),
        ("largest[a] - both", "both - largest[a]", "wrong_value"),
        (
            ("largest[a] - both", "both - largest[a]"),
            ("largest[b] - both", "both - largest[b]"),
            "wrong_value",
        ),
        ("if both != -math.inf:", "if True:", "wrong_value"),
        ("in_a + in_b", "max(in_a, in_b)", "wrong_value"),
        (
            ("largest[a] - both", "largest[b] - both"),
            ("sums[b] * math.exp(largest[b] - both)", "sums[b] * math.exp(largest[a] - both)"),
            "wrong_value",
        ),
        (("largest[a] - both", "largest[a]"), ("largest[b] - both", "largest[b]"), "wrong_value"),
        ("i < out.shape[0]", "True", "missing_guard"),
        ("2 * i, 2 * i + 1", "i, i + out.shape[0]", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Two empty parts give NaN, since -inf - -inf is NaN. Joined, they are an empty part:"
            " -inf, with the sum 0.",
            without_empty,
        ),
        Hypothesis(
            "wrong_value",
            "The two sums are relative to different largest values: bring both to the common one"
            " before you add.",
            unscaled,
        ),
        Hypothesis(
            "wrong_value",
            "The common largest value begins at 0 here. In a part all values may be negative.",
            from_zero,
        ),
        *(
            Hypothesis(
                "wrong_value",
                f"Only the sum of part 2 i{plus} is brought to the common largest value. Either of"
                " the two may be the one with the smaller.",
                partial(one_scaled, part=part),
            )
            for part, plus in ((0, ""), (1, " + 1"))
        ),
        Hypothesis(
            "wrong_value",
            "Beside an empty part the other one counts for nothing here. Joined, they are what the"
            " other one is.",
            none_beside_empty,
        ),
        Hypothesis(
            "wrong_value",
            "The exponent has the wrong sign: its own largest value minus the common one.",
            other_sign,
        ),
        *(
            Hypothesis(
                "wrong_value",
                f"The exponent of part 2 i{plus} has the wrong sign: its own largest value minus"
                " the common one.",
                partial(by_factors, factors=partial(one_turned, part=part)),
            )
            for part, plus in ((0, ""), (1, " + 1"))
        ),
        Hypothesis(
            "wrong_value",
            "Each sum is multiplied by the factor of the other one.",
            partial(by_factors, factors=lambda own, both: float32_exp(own[:, ::-1] - both)),
        ),
        Hypothesis(
            "wrong_value",
            "The factor is exp(its own largest value), which may be infinite, or 0. It is"
            " exp(its own largest value - the common one), which is never over 1.",
            partial(by_factors, factors=lambda own, both: float32_exp(own)),
        ),
        Hypothesis(
            "wrong_value",
            "The larger of the two scaled sums is taken. Both parts count: add them.",
            larger_sum,
        ),
        Hypothesis(
            "wrong_value",
            "Thread i joins two neighbours, parts 2 i and 2 i + 1. You join parts that lie half the"
            " array apart.",
            halves_joined,
        ),
    ),
)


# ---- loss: a row's gradient, in place of its scores

SCORES_THREADS = 64


@cuda.jit
def loss_gradient(scores, right):
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = scores.shape[1]

    largest = LOWEST
    for c in range(t, columns, cuda.blockDim.x):
        largest = larger(scores[row, c], largest)
    largest = block_max(largest)

    total = np.float32(0)
    for c in range(t, columns, cuda.blockDim.x):
        total += math.exp(scores[row, c] - largest)
    total = block_sum(total)

    for c in range(t, columns, cuda.blockDim.x):
        p = math.exp(scores[row, c] - largest) / total
        scores[row, c] = p - 1 if c == right[row] else p


def rows_of_scores(rng, shape):
    """Rows of scores, most of them far from 0, and the right column of each."""
    scores = (4 * uniform(rng, *shape)).astype(np.float32)
    scores[2:3] *= 25  # one score has nearly all
    far = rng.choice(np.float32([-300, 0, 300]), (shape[0], 1))
    far[2:3], far[-1:] = 0, -300
    scores += far
    right = rng.integers(0, shape[1], shape[0]).astype(np.int32)
    right[1:2] = shape[1] - 1
    return {"scores": InOut(scores), "right": right}


def slopes_of(scores, right, ones=1.0, sign=1, floor=-np.inf, of="row"):
    """Softmax of each row, minus 1 at its right column, in float64: with mistakes, if asked.

    ones: what is taken away there. floor: at least this is subtracted. of: the sum's values, a
    "row", or "thread", each thread's own.
    """
    scores = np.asarray(scores, np.float64)
    rows, columns = scores.shape
    largest = np.maximum(scores.max(1, keepdims=True), floor)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        powers = np.exp(scores - largest).astype(np.float32).astype(np.float64)
        total = powers.sum(1, keepdims=True)
        if of == "thread":
            total = np.zeros_like(powers)
            for t in range(min(SCORES_THREADS, columns)):
                own = slice(t, None, SCORES_THREADS)
                total[:, own] = powers[:, own].sum(1, keepdims=True)
        slopes = powers / total
    slopes[np.arange(rows), right] -= ones
    return sign * slopes


def slopes_unlike(scores, right, powers=True, total=True, log=False):
    """slopes_of with other mistakes.

    powers, total: whether the largest score is subtracted in what is divided, and in the sum; a
    total of None divides by nothing. log: whether logarithms of probabilities are stored.
    """
    rows = np.arange(len(scores))
    scores = np.asarray(scores, np.float64)
    shifted = scores - scores.max(1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        divided, added = (
            np.exp(shifted if each else scores).astype(np.float32) for each in (powers, total)
        )
        slopes = divided if total is None else divided / added.sum(1, keepdims=True)
        if log:
            slopes = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    slopes[rows, right] -= 1
    return slopes


def slopes_by_thread(scores, right):
    """slopes_of where the 1 is taken from all columns of the thread that is numbered `right`."""
    ones = np.arange(SCORES_THREADS)[np.arange(scores.shape[1]) % SCORES_THREADS] == right[:, None]
    return slopes_of(scores, right, ones=0) - ones


LOSS = Exercise(
    id="fusion.loss",
    title="The gradient, in place of the scores",
    minutes=10,
    one_block=True,
    task=(
        "`scores` has a row for each token, and `right[row]` is the column of its right word. Put"
        " the gradient in place of the scores: each row's softmax, minus 1 at the right column. A"
        " block of 64 threads has a row, and each element is stored by one thread alone. The"
        " starter finds each row's largest score. `block_sum` adds up one number of each thread, as"
        " `block_max` finds the largest. Scores lie between -400 and 400."
    ),
    starter="""
@cuda.jit
def loss_gradient(scores, right):
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = scores.shape[1]

    largest = LOWEST
    for c in range(t, columns, cuda.blockDim.x):
        largest = larger(scores[row, c], largest)
    largest = block_max(largest)

    ...  # the row's sum, then the gradient
""",
    solution=loss_gradient,
    inputs=rows_of_scores,
    reference=slopes_of,
    specials="finite",  # the gradient of an infinite score is none
    powers=(),  # the text bounds scores
    rtol=1e-4,  # largest + log(sum) is rounded, at 400 by 1.5e-5, and may be subtracted, too
    shapes=((1, 1), (2, 64), (1, 65), (3, 33), (3, 200), (2, 511)),
    fresh=some_numbers((1, 4), (1, 200)),
    launches=lambda shape: [Launch((shape[0], 1, 1), (SCORES_THREADS, 1, 1))],
    extents=lambda shape: (shape[0] * SCORES_THREADS, 1, 1),
    is_square=lambda shape: False,
    race_free=True,
    effort=4,
    probe=(2, 300),
    hints=(
        "The row's softmax is the third loop of `three_reads`. What has to be changed in what it"
        " stores?",
        "The sum is as in `three_reads`: `total += math.exp(scores[row, c] - largest)` for the"
        " thread's own columns, then `block_sum(total)`.",
        "Let the thread that stores column `right[row]` take the 1 away itself:"
        " `p - 1 if c == right[row] else p`. Then no other thread has to wait for it.",
    ),
    wrong=(
        (
            "        scores[row, c] = p - 1 if c == right[row] else p",
            "        scores[row, c] = p\n    if t == 0:\n        scores[row, right[row]] -= 1",
            "race",
        ),
        (
            "        scores[row, c] = p - 1 if c == right[row] else p",
            (
                "        scores[row, c] = p\n    cuda.syncthreads()\n"
                "    if t == 0:\n        scores[row, right[row]] -= 1"
            ),
            "duplicate_work",
        ),
        ("p - 1 if c == right[row] else p", "p", "wrong_value"),
        ("p - 1 if", "1 - p if", "wrong_value"),
        ("    total = block_sum(total)\n", "", "wrong_value"),
        ("    largest = block_max(largest)\n", "    largest = np.float32(0)\n", "wrong_value"),
        ("largest = LOWEST", "largest = np.float32(0)", "wrong_value"),
        ("c == right[row]", "c == right[0]", "wrong_value"),
        ("c == right[row]", "t == right[row]", "wrong_value"),
        (" - largest)\n", ")\n", "wrong_value"),
        (" - largest) / total", ") / total", "wrong_value"),
        ((" - largest)\n", ")\n"), (" - largest) / total", ") / total"), "wrong_value"),
        (" / total", "", "wrong_value"),
        (
            "math.exp(scores[row, c] - largest) / total",
            "scores[row, c] - largest - math.log(total)",
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is softmax itself: the 1 at the right column is missing.",
            partial(slopes_of, ones=0),
        ),
        Hypothesis(
            "wrong_value",
            "At the right column the sign is turned: it is p - 1, which is negative.",
            lambda scores, right: np.abs(slopes_of(scores, right)),
        ),
        Hypothesis(
            "wrong_value",
            "All signs are turned: the gradient is softmax minus 1 at the right column.",
            partial(slopes_of, sign=-1),
        ),
        Hypothesis(
            "wrong_value",
            "Each thread divides by the sum of its own columns. `block_sum` adds up those of all.",
            partial(slopes_of, of="thread"),
        ),
        Hypothesis(
            "wrong_value",
            "The largest score is at least 0 here. In a row of scores far below 0 every"
            " exponential is then 0, and 0 / 0 is NaN.",
            partial(slopes_of, floor=0),
        ),
        Hypothesis(
            "wrong_value",
            "The 1 is taken from the same column of every row: row r has its own, `right[r]`.",
            lambda scores, right: slopes_of(scores, np.full_like(right, right[0])),
        ),
        Hypothesis(
            "wrong_value",
            "`right[row]` is a column, and is compared with the number of a thread here. A thread"
            " has several columns: compare `c`.",
            slopes_by_thread,
        ),
        Hypothesis(
            "wrong_value",
            "The largest score is not subtracted: exp(300) is infinite in float32 and exp(-300) is"
            " 0, so that infinity / infinity or 0 / 0 is NaN.",
            partial(slopes_unlike, powers=False, total=False),
        ),
        *(
            Hypothesis(
                "wrong_value",
                f"The largest score is subtracted in {one} and not in {other}: the exponentials of"
                " both must be relative to it.",
                partial(slopes_unlike, powers=powers, total=not powers),
            )
            for one, other, powers in (
                ("the sum", "what is divided by it", False),
                ("what is divided by the sum", "the sum", True),
            )
        ),
        Hypothesis(
            "wrong_value",
            "The exponentials are not divided by their sum: a row's probabilities add up to 1.",
            partial(slopes_unlike, total=None),
        ),
        Hypothesis(
            "wrong_value",
            "These are logarithms of probabilities. The gradient has the probabilities themselves.",
            partial(slopes_unlike, log=True),
        ),
    ),
)


# ---- add_norm: two steps and a row's sum in one kernel

ROW_THREADS = 64
KEPT = 8  # values of a thread: rows of up to 512


@cuda.jit
def add_norm(out, x, residual, gamma):
    sums = cuda.shared.array(64, np.float32)
    kept = cuda.local.array(8, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = x.shape[1]
    mine = np.float32(0)
    for k in range(8):
        c = t + 64 * k
        if c < columns:
            kept[k] = x[row, c] + residual[row, c]
            mine += kept[k] * kept[k]
    sums[t] = mine
    step = 32
    while step > 0:
        cuda.syncthreads()
        if t < step:
            sums[t] += sums[t + step]
        step //= 2
    cuda.syncthreads()
    scale = 1 / math.sqrt(sums[0] / columns + np.float32(1e-5))
    for k in range(8):
        c = t + 64 * k
        if c < columns:
            out[row, c] = kept[k] * scale * gamma[c]


@cuda.jit
def add_norm_in_out(out, x, residual, gamma):
    sums = cuda.shared.array(64, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = x.shape[1]
    mine = np.float32(0)
    for c in range(t, columns, 64):
        hidden = x[row, c] + residual[row, c]
        out[row, c] = hidden  # the mistake: it goes to memory and comes back
        mine += hidden * hidden
    sums[t] = mine
    step = 32
    while step > 0:
        cuda.syncthreads()
        if t < step:
            sums[t] += sums[t + step]
        step //= 2
    cuda.syncthreads()
    scale = 1 / math.sqrt(sums[0] / columns + np.float32(1e-5))
    for c in range(t, columns, 64):
        out[row, c] = out[row, c] * scale * gamma[c]


@cuda.jit
def add_norm_eight_side_by_side(out, x, residual, gamma):
    sums = cuda.shared.array(64, np.float32)
    kept = cuda.local.array(8, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = x.shape[1]
    mine = np.float32(0)
    for k in range(8):
        c = 8 * t + k  # neighbouring threads are 8 columns apart
        kept[k] = x[row, c] + residual[row, c] if c < columns else np.float32(0)
        mine += kept[k] * kept[k]
    sums[t] = mine
    step = 32
    while step > 0:
        cuda.syncthreads()
        if t < step:
            sums[t] += sums[t + step]
        step //= 2
    cuda.syncthreads()
    scale = 1 / math.sqrt(sums[0] / columns + np.float32(1e-5))
    for k in range(8):
        c = 8 * t + k
        if c < columns:
            out[row, c] = kept[k] * scale * gamma[c]


def rows_to_norm(rng, shape):
    """Rows of x and of a residual, and a factor for each column.

    In the last row squares are as small as the number added to their mean; of three rows or more
    one is all zeros.
    """
    sizes = np.full((shape[0], 1), 4, np.float32)
    sizes[1:][-1:] = 4e-3
    sizes[2:][:1] = 0
    x, residual = sizes * uniform(rng, *shape), sizes * uniform(rng, *shape)
    gamma = 2 * uniform(rng, shape[1])
    return {"out": Out(shape), "x": x, "residual": residual, "gamma": gamma}


def normed(
    out, x, residual, gamma, count=None, add=True, scale=True, inside=1e-5, behind=0, power=0.5
):
    """The RMS norm of each row of the sum, in float64.

    count: by how many the sum of squares is divided. inside, behind: added to the mean under the
    root, and to the root. power: 0.5 for a root; -0.5 multiplies by what should be divided by.
    """
    hidden = np.asarray(x, np.float64) + (residual if add else 0)
    squares = (hidden**2).sum(1, keepdims=True) / (count or x.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return hidden / ((squares + inside) ** power + behind) * (gamma if scale else 1)


ADD_NORM = Exercise(
    id="fusion.add_norm",
    title="Add and normalize, in one pass",
    minutes=12,
    one_block=True,
    task=(
        "With `hidden = x + residual` each row of `out` is hidden / sqrt(mean(hidden²) + 1e-5) ·"
        " gamma: a sum and an RMS norm. A block of 64 threads does a row, of up to 512 columns. The"
        " starter is right, and reads `x` and `residual` twice. Read each of them *once*: keep what"
        " a thread has added in registers, `cuda.local.array(8, np.float32)`. By its estimate your"
        " kernel takes at most one and a half times as long as ours."
    ),
    starter="""
@cuda.jit
def add_norm(out, x, residual, gamma):
    sums = cuda.shared.array(64, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = x.shape[1]
    mine = np.float32(0)
    for c in range(t, columns, 64):
        hidden = x[row, c] + residual[row, c]
        mine += hidden * hidden
    sums[t] = mine
    step = 32
    while step > 0:
        cuda.syncthreads()
        if t < step:
            sums[t] += sums[t + step]
        step //= 2
    cuda.syncthreads()
    scale = 1 / math.sqrt(sums[0] / columns + np.float32(1e-5))
    for c in range(t, columns, 64):
        out[row, c] = (x[row, c] + residual[row, c]) * scale * gamma[c]
""",
    solution=add_norm,
    inputs=rows_to_norm,
    reference=normed,
    specials="finite",  # the norm of an infinite row is none
    powers=(-100, 50),  # squares are to fit into a float32
    shapes=((1, 64), (2, 1), (3, 33), (2, 65), (1, 512), (4, 200), (5, 511)),
    fresh=some_numbers((1, 5), (1, 513)),
    large=(260, 3),
    launches=lambda shape: [Launch((shape[0], 1, 1), (ROW_THREADS, 1, 1))],
    extents=lambda shape: (shape[0] * ROW_THREADS, 1, 1),
    elements=KEPT,
    race_free=True,
    traffic=1.2,
    probe=(2, 300),
    speed=Speed("32,768 rows of 512", 1 << 15, lambda rows: (rows, 512), goal=1.5),
    hints=(
        "Which columns does thread t add up? It writes the same columns. What must it keep?",
        (
            "`kept = cuda.local.array(8, np.float32)`: its k-th value belongs to column"
            " `t + 64 * k`. If the loop over k has a fixed length, the compiler can keep the array"
            " in registers."
        ),
        (
            "First loop: `if c < columns:` fill `kept[k]` and add its square to `mine`. Last loop:"
            " the same guard, and `kept[k] * scale * gamma[c]`."
        ),
    ),
    wrong=(
        Wrong(add_norm_in_out, "too_much_traffic"),
        Wrong(add_norm_eight_side_by_side, "over_goal"),
        (
            "        if c < columns:\n            out",
            "        if True:\n            out",
            "uninitialized",
        ),
        ("    cuda.syncthreads()\n    scale", "    scale", "race"),
        ("sums[0] / columns", "sums[0]", "wrong_value"),
        (" + np.float32(1e-5)", "", "wrong_value"),
        ("x[row, c] + residual[row, c]", "x[row, c]", "wrong_value"),
        ("        cuda.syncthreads()\n        if", "        if", "race"),
        ("* scale * gamma[c]", "* scale", "wrong_value"),
        (
            "1 / math.sqrt(sums[0] / columns + np.float32(1e-5))",
            "1 / (math.sqrt(sums[0] / columns) + np.float32(1e-5))",
            "wrong_value",
        ),
        (
            "math.sqrt(sums[0] / columns + np.float32(1e-5))",
            "(sums[0] / columns + np.float32(1e-5))",
            "wrong_value",
        ),
        ("* scale * gamma[c]", "/ scale * gamma[c]", "wrong_value"),
        (
            "range(8):\n        c = t + 64 * k\n        if c < columns:\n            out",
            "range(4):\n        c = t + 64 * k\n        if c < columns:\n            out",
            "unwritten",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The norm needs the *mean* of the squares: divide their sum by the number of columns.",
            lambda **given: normed(**given, count=1),
        ),
        Hypothesis(
            "wrong_value",
            "The sum of squares is divided by 512, the most columns that there may be: divide it by"
            " the columns that a row has.",
            lambda **given: normed(**given, count=KEPT * ROW_THREADS),
        ),
        Hypothesis(
            "wrong_value",
            "Without the 1e-5 a row of zeros is divided by 0, and rows of small numbers come out"
            " too large.",
            lambda **given: normed(**given, inside=0),
        ),
        Hypothesis(
            "wrong_value",
            "1e-5 is added to the root. It belongs under it, to the mean of the squares.",
            lambda **given: normed(**given, inside=0, behind=1e-5),
        ),
        Hypothesis(
            "wrong_value",
            "The root is missing: each row is divided by the root of the mean square.",
            partial(normed, power=1),
        ),
        Hypothesis(
            "wrong_value",
            "Each row is multiplied by the root of its mean square. Divide by it.",
            partial(normed, power=-0.5),
        ),
        Hypothesis(
            "wrong_value",
            "The residual is missing: it is x + residual that is normalized.",
            lambda **given: normed(**given, add=False),
        ),
        Hypothesis(
            "wrong_value",
            "The norm is that of x + residual, and what is divided by it is x alone.",
            lambda x, residual, **given: (
                normed(x=x, residual=residual, **given)
                / np.where(x + residual == 0, 1, x + residual)
                * x
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Each column has a factor of its own, gamma. It is missing.",
            lambda **given: normed(**given, scale=False),
        ),
    ),
)


# ---- table: many tensors, one launch


@cuda.jit
def scale_all(values, starts, factors, chunks):
    tensor = chunks[cuda.blockIdx.x, 0]
    chunk = chunks[cuda.blockIdx.x, 1]
    i = starts[tensor] + chunk * cuda.blockDim.x + cuda.threadIdx.x
    if i < starts[tensor + 1]:
        values[i] *= factors[tensor]


@cuda.jit
def scale_all_by_search(values, starts, factors, chunks):
    i = cuda.grid(1)  # the mistake: the table is not asked
    if i < values.size:
        tensor = 0
        while starts[tensor + 1] <= i:
            tensor += 1
        values[i] *= factors[tensor]


def tensor_lengths(shape):
    """As many lengths as shape[0], always the same for a shape; the first is shape[1]."""
    lengths = np.random.default_rng(shape).integers(1, 100, shape[0])
    lengths[0] = shape[1]
    return lengths


def chunks_of(shape):
    """(tensor, number of the chunk) of every chunk, each of shape[2] elements.

    Of three tensors or more, the second is left as it is: none of its chunks is in the table.
    """
    lengths = tensor_lengths(shape)
    return [
        (tensor, chunk)
        for tensor, length in enumerate(lengths)
        for chunk in range(-(-length // shape[2]))
        if tensor != 1 or len(lengths) < 3
    ]


def many_tensors(rng, shape):
    """Tensors behind one another, their factors, and the chunks that cover them in any order."""
    lengths = tensor_lengths(shape)
    chunks = np.array(chunks_of(shape), np.int32)
    return {
        "values": InOut(4 * uniform(rng, lengths.sum())),
        "starts": np.concatenate([[0], lengths.cumsum()]).astype(np.int32),
        "factors": with_small(rng, factor(rng, shape[0])),
        "chunks": rng.permutation(chunks),
    }


def scaled_tensors(values, starts, factors, chunks):
    listed = np.isin(np.arange(len(factors)), chunks[:, 0])
    return values * np.repeat(np.where(listed, factors, 1), np.diff(starts))


TABLE = Exercise(
    id="fusion.table",
    title="Many tensors, one launch",
    minutes=5,
    task=(
        "Tensor t is `values[starts[t]:starts[t + 1]]`. Each block multiplies one chunk of one"
        " tensor by that tensor's factor. `chunks[block]` says which: (tensor, number of the chunk"
        " in it). A chunk is as long as the block has threads. A tensor's last chunk may be"
        " shorter."
    ),
    starter="""
@cuda.jit
def scale_all(values, starts, factors, chunks):
    tensor = chunks[cuda.blockIdx.x, 0]
    chunk = chunks[cuda.blockIdx.x, 1]
    i = ...  # which element is mine?
""",
    solution=scale_all,
    inputs=many_tensors,
    reference=scaled_tensors,
    shapes=((1, 1, 32), (1, 32, 32), (5, 64, 32), (7, 31, 32), (3, 70, 48), (2, 33, 32)),
    fresh=some_numbers((1, 8), (1, 100), (16, 65)),
    large=((300, 7, 16), (2, 66_000, 64)),
    launches=lambda shape: [Launch((len(chunks_of(shape)), 1, 1), (shape[2], 1, 1))],
    extents=lambda shape: (len(chunks_of(shape)) * shape[2], 1, 1),
    is_square=lambda shape: False,
    hints=(
        "Within its tensor a chunk begins at `chunk * cuda.blockDim.x`. Where does the tensor?",
        "What lies in `values` right behind the last element of tensor t?",
        "`i = starts[tensor] + chunk * cuda.blockDim.x + cuda.threadIdx.x`, guarded by the start of"
        " the next tensor.",
    ),
    wrong=(
        ("i < starts[tensor + 1]", "i < values.size", "duplicate_work"),
        ("starts[tensor] + ", "", "duplicate_work"),
        ("chunk * cuda.blockDim.x + ", "", "duplicate_work"),
        ("factors[tensor]", "factors[0]", "wrong_value"),
        ("*= factors", "= factors", "wrong_value"),
        Wrong(scale_all_by_search, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A tensor that has no chunk in the table is changed, too: `chunks` says what to do.",
            lambda values, starts, factors, chunks: values * np.repeat(factors, np.diff(starts)),
        ),
        Hypothesis(
            "wrong_value",
            "The factor takes the value's place: multiply the value by it.",
            lambda values, **given: np.where(
                np.isin(
                    np.repeat(np.arange(len(given["factors"])), np.diff(given["starts"])),
                    given["chunks"][:, 0],
                ),
                np.repeat(given["factors"], np.diff(given["starts"])),
                values,
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Every tensor got the first factor: tensor t has `factors[t]`.",
            lambda values, starts, factors, chunks: scaled_tensors(
                values, starts, np.full_like(factors, factors[0]), chunks
            ),
        ),
    ),
)


# ---- cut: a row that begins within an access


def cut(place, count):
    head = min(count, -place % 16 // 4)
    return head, (count - head) // 4, (count - head) % 4


def cut_at_multiples(place, count):
    """The same by the places of the first and the last access: the reference."""
    first, end = place // 4, place // 4 + count
    begin = min(end, -(-first // 4) * 4)
    last = max(begin, end // 4 * 4)
    return begin - first, (last - begin) // 4, end - last


def some_row(rng):
    """A row of up to 40 floats at some address."""
    return 4 * int(rng.integers(0, 1000)), int(rng.integers(0, 41))


CUT = Exercise(
    id="fusion.cut",
    title="An unaligned row",
    minutes=6,
    kind="function",
    task=(
        "A row of `count` floats, 1,000 at most, begins at the address `place`, a multiple of 4. A"
        " float has 4 bytes, and an access takes 16, from a multiple of 16 on. Return three"
        " numbers: the floats of the head, before the first multiple of 16; the whole accesses"
        " behind it; the floats of the tail. The starter takes the whole row for the head."
    ),
    starter="""
def cut(place, count):
    head = count  # your code: how far is the next multiple of 16?
    whole = 0
    tail = 0
    return head, whole, tail
""",
    solution=cut,
    inputs=arguments_of(cut),
    reference=cut_at_multiples,
    shapes=(
        (0, 8),
        (4, 13),
        (8, 13),
        (12, 13),
        (52, 13),
        (16, 4),
        (20, 2),  # all of it is head
        (20, 3),
        (24, 6),
        (12, 0),
        (12, 1),
        (48, 3),  # all of it is tail
        (20, 7),
        (4, 1000),
        ((1 << 40) + 4, 13),
    ),
    fresh=some_row,
    draws=lambda some: some.tuples(
        some.integers(0, 50).map(lambda floats: 4 * floats), some.integers(0, 30)
    ),
    hints=(
        "How many bytes is it from `place` to the next multiple of 16? None, if it is one itself.",
        "`-place % 16` says that: 12 for 20. A float has 4 of these bytes, and a short row may end"
        " before.",
        "What is left behind the head is `count - head` floats: whole accesses are `// 4` of them,"
        " the tail is `% 4`.",
    ),
    wrong=(
        (
            "-place % 16 // 4",
            "place % 16 // 4",
            "wrong_value",
            "`place % 16` is how far the row begins *behind* a multiple of 16. The head ends at the"
            " next one.",
        ),
        (
            "-place % 16 // 4",
            "(16 - place % 16) // 4",
            "wrong_value",
            "A row that begins at a multiple of 16 has no head.",
        ),
        (
            "min(count, -place % 16 // 4)",
            "-place % 16 // 4",
            "wrong_value",
            "A row may end before the first multiple of 16: its head has no more than `count`"
            " floats.",
        ),
        (
            "(count - head) // 4,",
            "count // 4,",
            "wrong_value",
            "The head's floats are not in the whole accesses: count what is left behind it.",
        ),
        (
            "(count - head) % 4",
            "count % 4",
            "wrong_value",
            "The tail is what is left behind the head *and* the whole accesses.",
        ),
        (
            ("(count - head) // 4", "count // 4"),
            ("(count - head) % 4", "count % 4"),
            "wrong_value",
            "Count accesses and tail in what is left behind the head: `count - head` floats.",
        ),
        (
            "(count - head) // 4",
            "(count - head) // 16",
            "wrong_value",
            "An access is 16 bytes, and `count - head` are floats: four of them fill one.",
        ),
        (
            ("(count - head) // 4", "(count - head) // 16"),
            ("(count - head) % 4", "(count - head) % 16 // 4"),
            "wrong_value",
            "An access is 16 bytes, and `count - head` are floats: four of them fill one.",
        ),
        (
            ("(count - head) // 4", "(count - head) // 16"),
            ("(count - head) % 4", "(count - head) % 16"),
            "wrong_value",
            "An access is 16 bytes, and `count - head` are floats: four of them fill one.",
        ),
        (
            "(count - head) // 4, (count - head) % 4",
            "-(-(count - head) // 4), 0",
            "wrong_value",
            "The last access is not whole where the row ends within it: its floats are the tail.",
        ),
        (
            "-place % 16 // 4",
            "0",
            "wrong_value",
            "This cuts each row as if it began at a multiple of 16.",
        ),
        (
            "-place % 16 // 4",
            "-place % 16",
            "wrong_value",
            "The head is counted in bytes here. A float has 4 of them.",
        ),
    ),
)


# ---- choice: a choice that holds for shapes not seen

ENOUGH = 1.05  # times the least turns


def lanes_for(rows, columns):
    able = [lanes for lanes in LANES if fits(columns, lanes)]
    return min(able, key=lambda lanes: turns(rows, columns, lanes))


def lanes_in_one_round(rows, columns):
    able = [lanes for lanes in LANES if columns <= 32 * lanes]
    return max(able[0], min(256, 132 * 2048 // rows))  # the mistake: no power of two, nor a model


def place_in_lanes(rows, columns):
    return LANES.index(lanes_for(rows, columns))  # the mistake: which one of LANES, not the lanes


def fewest_turns(rows, columns):
    able = [lanes for lanes in LANES if fits(columns, lanes)]
    return min(turns(rows, columns, lanes) for lanes in able)  # the mistake: turns, not lanes


def fastest(rows, columns):
    """The lanes of the fewest turns, by another way than the solution's."""
    return max(LANES, key=lambda lanes: share(rows, columns, lanes))


def graded(answer, rows, columns):
    """The lanes of the fewest turns if the answer's are as good, else the answer's."""
    lanes = answer(rows, columns)
    good = lanes in LANES and share(rows, columns, lanes) * ENOUGH >= 1
    return fastest(rows, columns) if good else lanes


def some_matrix(rng):
    """Rows and columns, even on a scale of powers."""
    return int((1 << 20) ** rng.random()), int(LONGEST ** rng.random())


def lanes_unlike(rows, columns, asked=None, may=fits, pick=min):
    """lanes_for with mistakes.

    asked: gives the rows and columns that the model is asked about. may: which lanes are left.
    """
    able = [lanes for lanes in LANES if may(columns, lanes)]
    shape = asked(rows, columns) if asked else (rows, columns)
    return pick(able, key=lambda lanes: turns(*shape, lanes))


#: Natural mistakes, and what is said of them
CHOSEN_OTHERWISE = (
    (
        partial(lanes_unlike, may=lambda columns, lanes: True),
        "A lane may keep 32 numbers. Leave out the lanes in which the row does not fit.",
    ),
    (
        partial(lanes_unlike, asked=lambda rows, columns: (1 << 15, columns)),
        "This is right for 32,768 rows. A single row has the whole GPU for itself: ask `turns`"
        " about `rows`.",
    ),
    (
        partial(lanes_unlike, asked=lambda rows, columns: (1 << 20, columns)),
        "This is right for a million rows. A single row has the whole GPU for itself: ask `turns`"
        " about `rows`.",
    ),
    (
        partial(lanes_unlike, asked=lambda rows, columns: (1, columns)),
        "This is right for a single row, which has the whole GPU for itself. Many rows share it:"
        " ask `turns` about `rows`.",
    ),
    (
        partial(lanes_unlike, asked=lambda rows, columns: (rows, 1024)),
        "This asks about rows of 1,024, however long they are.",
    ),
    (
        partial(lanes_unlike, asked=lambda rows, columns: (columns, rows)),
        "`turns` takes the rows first, then the columns.",
    ),
    (
        partial(lanes_unlike, may=lambda columns, lanes: lanes >= 32 and fits(columns, lanes)),
        "A short row may have fewer lanes than a warp: then a warp has several rows.",
    ),
    (partial(lanes_unlike, pick=max), "These lanes take the *most* turns."),
    (
        partial(lanes_unlike, pick=lambda able, key: able[0]),
        "These are the fewest lanes in which the row fits. Each keeps many numbers, so few of them"
        " have room in an SM, and a single row waits long.",
    ),
    (
        partial(lanes_unlike, pick=lambda able, key: able[-1]),
        "So many lanes suit a single row. Where rows are many, too few of them run at once.",
    ),
    (
        by_table,
        "This is the table's choice: best for the nearest of six shapes, not for this one.",
    ),
)


CHOICE = Exercise(
    id="fusion.choice",
    title="A choice for shapes not seen",
    minutes=6,
    kind="function",
    task=(
        "Return how many lanes are to share a row: one of `LANES`, so that the row fits, and so"
        " that `turns(rows, columns, lanes)` is at most 5 % above the least. The check tries"
        " matrices that nobody has seen before, up to a million rows, or up to 32,768 columns. The"
        " starter has what is best for 32,768 rows of 1,024."
    ),
    starter="""
def lanes_for(rows, columns):
    return 128  # your code: for any rows, not for those of a list
""",
    solution=lanes_for,
    inputs=arguments_of(lanes_for),
    reference=fastest,
    play=graded,
    shapes=(
        (1 << 15, 1024),
        (1, 1024),
        (1 << 20, 8),
        (1 << 20, 32),
        (64, 16_384),
        (1, 32_768),
        (244_066, 4488),  # the fewest turns are those of lanes that keep more than they may
        (1_412, 2_223),
        (265, 20_000),
        (2000, 500),
        (5000, 1000),
        (1, 1),
    ),
    fresh=some_matrix,
    draws=lambda some: some.tuples(some.integers(1, 1 << 20), some.integers(1, LONGEST)),
    hints=(
        "There are eleven choices only. What does the model say of each of them?",
        "Leave out the lanes in which the row does not fit: `fits(columns, lanes)`.",
        "`min(able, key=lambda lanes: turns(rows, columns, lanes))` is the one that takes the"
        " fewest turns.",
    ),
    wrong=(
        (
            "    able = [",
            "    if columns > 512:\n        return 1024\n    able = [",
            "wrong_value",
        ),
        (" if fits(columns, lanes)]", "]", "wrong_value"),
        (
            "return min(able, key=lambda lanes: turns(rows, columns, lanes))",
            "return able[0]",
            "wrong_value",
        ),
        (
            "return min(able, key=lambda lanes: turns(rows, columns, lanes))",
            "return able[-1]",
            "wrong_value",
        ),
        ("turns(rows, columns, lanes))", "turns(1 << 15, columns, lanes))", "wrong_value"),
        ("turns(rows, columns, lanes))", "turns(rows, 1024, lanes))", "wrong_value"),
        ("return min(", "return max(", "wrong_value"),
        Wrong(by_table, "wrong_value"),
        Wrong(
            place_in_lanes,
            "wrong_value",
            "This is the place in `LANES`. Return the lanes that stand there.",
        ),
        Wrong(
            fewest_turns,
            "wrong_dtype",
            "These are the turns. Return the lanes that take so few.",
        ),
        Wrong(lanes_in_one_round, "wrong_value"),
    ),
    # as graded: where a mistake comes near enough, it is right
    hypotheses=tuple(
        Hypothesis("wrong_value", says, partial(graded, mistake))
        for mistake, says in CHOSEN_OTHERWISE
    ),
)


EXERCISES = (FUSE, ONLINE, LOSS, ADD_NORM, TABLE, CUT, CHOICE)


QUIZZES = (
    Quiz(
        id="fusion.q_rows",
        question=(
            "A softmax reads each row three times and writes it once. If no cache helps: how many"
            " times as long does it take, at least, as one that reads each row once?"
        ),
        answer=2,
        unit="times",
        explain_right="Four passes over memory against two.",
        explain={
            3: "It *reads* three times as much. But both also write the result.",
            1.5: "Three reads and a write are four passes; one read and a write are two.",
            None: "Count passes over memory: reads and writes, of both.",
        },
    ),
    one_of(
        "fusion.q_norm",
        "Layer norm of the row (1, 3), without gamma, beta and ε?",
        ("(-1, 1)", "The mean is 2, the deviation 1."),
        (
            "(0.45, 1.34)",
            "That is RMS norm: it divides by the root mean square, and leaves the mean in.",
        ),
        (
            "(0.25, 0.75)",
            "That is each value's share of the sum. A norm looks at mean and deviation.",
        ),
        answer="a",
    ),
    Quiz(
        id="fusion.q_step",
        question=(
            "A model of a billion weights, on a GPU that moves 4 TB/s. How many milliseconds does"
            " a step of AdamW take at least?"
        ),
        answer=7,
        unit="ms",
        explain_right="28 bytes per weight are 28 GB, and 4 GB move in a millisecond.",
        explain={
            4: "16 GB are read. 12 GB are written besides.",
            28: "That is how many GB move. How many of them move in a millisecond?",
            None: "28 bytes per weight, a billion weights: how long does memory need for them?",
        },
    ),
    one_of(
        "fusion.q_bytes",
        (
            "y = relu(x + bias) + residual, n float32 numbers, bias small. Three kernels, one for"
            " each step, against one: how many times as many bytes do the three move?"
        ),
        (
            "1.5 times",
            "Each kernel writes its result and the next one reads it again: count all passes.",
        ),
        ("about 2.3 times", "2 + 2 + 3 passes over n numbers against 3: 28 n bytes against 12 n."),
        ("3 times", "Three launches, but the first two do not read the residual."),
        answer="b",
    ),
    one_of(
        "fusion.q_across",
        "Which pair can NOT become one kernel without changing the algorithm?",
        (
            "A matrix product, then a bias and GELU on its result",
            "That is an epilogue: a tile of the result is still in registers.",
        ),
        (
            "Softmax over rows of 100,000 scores, then a product with another matrix",
            (
                "The product needs probabilities, and these need the whole row's sum. Online"
                " softmax is another algorithm: it corrects what it has when the largest value"
                " changes."
            ),
        ),
        (
            "GELU of a matrix, then its product with weights",
            "That is a prologue: each tile is changed as it is loaded (and perhaps often).",
        ),
        answer="b",
    ),
)
