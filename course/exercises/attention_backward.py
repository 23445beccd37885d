"""Exercises of the chapter Attention: gradients without the matrix of scores."""

import math

import numpy as np
from numba import cuda

from course.checking.answers import with_mistakes
from course.checking.inputs import normal, some_numbers
from course.checking.model import (
    Demand,
    Exercise,
    Hypothesis,
    Out,
)
from course.exercises.attention_flash import FLASH_DIM

# ---- attention.slope: the gradient of the queries, with weights that are brought back from lse


@cuda.jit
def slope(dq, q, k, v, dout, out, lse, scale):
    i = cuda.grid(1)
    if i < q.shape[0]:
        result = cuda.local.array(4, np.float32)
        delta = np.float32(0)
        for x in range(4):
            delta += dout[i, x] * out[i, x]
            result[x] = 0
        for key in range(k.shape[0]):
            score = np.float32(0)
            dp = np.float32(0)
            for x in range(4):
                score += q[i, x] * k[key, x]
                dp += dout[i, x] * v[key, x]
            weight = math.exp(scale * score - lse[i])
            ds = weight * (dp - delta)
            for x in range(4):
                result[x] += scale * ds * k[key, x]
        for x in range(4):
            dq[i, x] = result[x]


#: D as the sum of P dP, in a walk of its own
D_BY_A_WALK = (
    """            delta += dout[i, x] * out[i, x]
            result[x] = 0
""",
    """            result[x] = 0
        for key in range(k.shape[0]):
            score = np.float32(0)
            dp = np.float32(0)
            for x in range(4):
                score += q[i, x] * k[key, x]
                dp += dout[i, x] * v[key, x]
            delta += math.exp(scale * score - lse[i]) * dp
""",
)


NEAR = 32  # keys: with more of them scores are far from 0
FAR = 1000  # so large a score has no exp in a float64 either, and -FAR has 0
DRAWN = 1024  # queries far from 0, of which one is taken


def quarters(rng, *shape):
    """Random multiples of 1/4."""
    return np.round(rng.normal(size=shape) * 4) / 4


def logs_of_sums(scores):
    """lse along the last axis: the logarithm of the sum of exponentials; -inf without a score."""
    most = scores.max(axis=-1, initial=-FAR)
    with np.errstate(divide="ignore"):
        return most + np.log(np.exp(scores - most[..., None]).sum(-1))


def far_queries(rng, queries, k, scale):
    """Queries whose scores are all far from 0, by which no weight changes; k ends in ones.

    A float of that size is a multiple of 2 ** -14, and what is rounded off an lse is in each of its
    row's weights. Then D as the sum of P dP is a little off, while dO times O is not. So that
    either passes, the queries are those of many whose lse loses least.
    """
    some = quarters(rng, queries, DRAWN, FLASH_DIM)
    some[..., -1] = rng.choice((-FAR, FAR), (queries, 1)) / scale
    lse = logs_of_sums(scale * some @ k.T)
    lost = np.abs(lse - lse.astype(np.float32))
    return some[np.arange(queries), lost.argmin(1)]


def a_way_back(rng, shape):
    """shape: (queries, keys). What a forward pass has left, and a gradient of its result.

    Numbers of q and k are multiples of 1/4, and the scale is a power of two, so that no score is
    rounded. Scores are small, so that no weight is nearly 1: then dP - D is what rounding leaves.
    With more than `NEAR` keys all scores of a row are far from 0.
    """
    queries, keys = shape
    q, k = (quarters(rng, rows, FLASH_DIM) for rows in shape)
    v = normal(rng, keys, FLASH_DIM)
    scale = float(2.0 ** -rng.integers(1, 3))
    if keys > NEAR:
        k[:, -1] = 1
        q = far_queries(rng, queries, k, scale)
    scores = scale * q @ k.T
    lse = logs_of_sums(scores)
    weights = np.exp(scores - lse[:, None])
    return {
        "dq": Out((queries, FLASH_DIM)),
        "q": q.astype(np.float32),
        "k": k.astype(np.float32),
        "v": v,
        "dout": normal(rng, queries, FLASH_DIM),
        "out": (weights @ v).astype(np.float32),
        "lse": lse.astype(np.float32),
        "scale": scale,
    }


def slopes(
    dq,
    q,
    k,
    v,
    dout,
    out,
    lse,
    scale,
    *,
    less=lambda q, dout, out: (dout * out).sum(1),
    inside=True,
    outside=True,
    divided=True,
    by_logarithm=False,
    apart=False,
    weighted=True,
    inner=True,
    base=math.e,
    of=None,
):
    """The gradient of q, or with a mistake.

    less: what is taken from dP. inside, outside: whether the scale is in the scores, and in the
    result. divided: whether lse is taken from a score. by_logarithm: whether a weight is divided by
    lse itself in place of that. apart: whether it is divided by exp(lse). weighted: whether P
    stands before dP - D. inner: whether D is taken from dP, and not from P dP. base: of the powers.
    of: "values" for dS times v, "keys" for dP from k.
    """
    q, k, v, dout, out, lse = (x.astype(np.float64) for x in (q, k, v, dout, out, lse))
    scores = (scale if inside else 1) * q @ k.T
    gained = dout @ (k if of == "keys" else v).T
    mean = less(q, dout, out)[:, None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # far from 0, and lse of 0
        weights = base ** (scores - (lse[:, None] if divided else 0))
        if by_logarithm:
            weights = np.exp(scores) / lse[:, None]
        if apart:
            weights = np.exp(scores) / np.exp(lse[:, None])
        if not weighted:
            weights = 1
        ds = weights * (gained - mean) if inner else weights * gained - mean
        return (scale if outside else 1) * ds @ (v if of == "values" else k)


slopes_if = with_mistakes(slopes)


def of_the_last_key(dq, q, k, v, dout, out, lse, scale):
    """What comes out if each key's part replaces the one before."""
    return slopes(dq, q, k[-1:], v[-1:], dout, out, lse, scale)


def walks_again(trace):
    """A reason to reject a kernel in which a thread comes back to its first key after its last."""
    events = trace.events
    keys = trace.results["k"].shape[0]
    seen = {}  # thread -> the keys that it has read, in the order of their first reads
    for i in events.accesses("global"):
        memory = events.memory_of(i)
        if memory.name != "k":
            continue
        own = seen.setdefault(int(events.thread[i]), {})
        key = int(events.offset[i]) // 4 // memory.shape[1]
        if len(own) == keys > 1 and key == next(iter(own)):
            says = (
                "A thread walks through the keys a second time. If that is for D, the sum of P dP"
                " over all keys: it is dO times O, four products of what `dout` and `out` hold."
            )
            return "other_means", says, None
        own[key] = True


SLOPE = Exercise(
    id="attention.slope",
    title="The gradient of a query",
    minutes=10,
    task=(
        "One head with 4 columns, and no mask: thread i writes row i of `dq`, the gradient of"
        " query i. Given are q, k, v, `scale`, which is 1 / √d, and what the forward pass left:"
        " `out`, O, and `lse`, one number for each row. `dout` is dO. Walk through the keys"
        " once, load each value once, bring each weight back, and add this key's part of dS K /"
        " √d. D is the same for all keys of a row. Scores may be far from 0. The starter adds"
        " nothing."
    ),
    starter="""
@cuda.jit
def slope(dq, q, k, v, dout, out, lse, scale):
    i = cuda.grid(1)
    if i < q.shape[0]:
        result = cuda.local.array(4, np.float32)
        for x in range(4):
            result[x] = 0
        for key in range(k.shape[0]):
            ...  # your code: this key's weight, its dP, and what it adds
        for x in range(4):
            dq[i, x] = result[x]
""",
    solution=slope,
    inputs=a_way_back,
    reference=slopes,
    rtol=1e-4,
    specials="finite",  # a weight of 0 times infinity is NaN
    powers=(),  # q, k and lse belong together
    shapes=((6, 20), (1, 1), (3, 0), (12, 9), (20, 33), (16, 16), (36, 5), (7, 64)),
    fresh=some_numbers((1, 20), (1, 30)),
    block=(16, 1, 1),
    other_block=(40, 1, 1),
    extents=lambda shape: (shape[0], 1, 1),
    is_square=lambda shape: shape[0] == shape[1],
    race_free=True,
    elements=4,
    effort=3,
    demand=Demand((16, 24), walks_again),
    hints=(
        "Before the loop: D is the sum of `dout[i, x] * out[i, x]` over the columns.",
        "In the loop two sums over the columns: the score, of `q[i, x] * k[key, x]`, and dP, of"
        " `dout[i, x] * v[key, x]`. The weight is `math.exp(scale * score - lse[i])`.",
        "dS is `weight * (dP - D)`, and to each `result[x]` it adds `scale * dS * k[key, x]`.",
    ),
    wrong=(
        ("(dp - delta)", "dp", "wrong_value"),
        ("result[x] += scale * ds", "result[x] += ds", "wrong_value"),
        ("math.exp(scale * score", "math.exp(score", "wrong_value"),
        ("score - lse[i]", "score", "wrong_value"),
        ("math.exp(scale * score - lse[i])", "math.exp(scale * score) / lse[i]", "wrong_value"),
        (
            "math.exp(scale * score - lse[i])",
            "math.exp(scale * score) / math.exp(lse[i])",
            "wrong_value",
        ),
        ("weight * (dp - delta)", "dp - delta", "wrong_value"),
        ("weight * (dp - delta)", "weight * dp - delta", "wrong_value"),
        ("math.exp(scale * score - lse[i])", "2.0 ** (scale * score - lse[i])", "wrong_value"),
        ("ds * k[key, x]", "ds * v[key, x]", "wrong_value"),
        ("dout[i, x] * v[key, x]", "dout[i, x] * k[key, x]", "wrong_value"),
        ("(dp - delta)", "(dp + delta)", "wrong_value"),
        ("delta += dout[i, x] * out[i, x]", "delta += q[i, x] * out[i, x]", "wrong_value"),
        ("delta += dout[i, x] * out[i, x]", "delta += dout[i, x]", "wrong_value"),
        ("if i < q.shape[0]:", "if True:", "missing_guard"),
        (*D_BY_A_WALK, "other_means"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "D is missing: dS is P times (dP - D), and D is the row's sum of dO times O.",
            slopes_if(less=lambda q, dout, out: np.zeros(len(q))),
        ),
        Hypothesis(
            "wrong_value",
            "The result lacks the scale: dQ is dS K / √d.",
            slopes_if(outside=False),
        ),
        Hypothesis(
            "wrong_value",
            "The scale is missing in the scores: a weight is exp(scale * score - lse).",
            slopes_if(inside=False),
        ),
        Hypothesis(
            "wrong_value",
            "A weight is not divided by its row's sum: it is exp(scale * score - lse), and lse is"
            " that sum's logarithm.",
            slopes_if(divided=False),
        ),
        Hypothesis(
            "wrong_value",
            "exp(scale * score) is divided by lse, which is the *logarithm* of the row's sum. Take"
            " lse from the exponent: exp(scale * score - lse).",
            slopes_if(by_logarithm=True),
        ),
        Hypothesis(
            "wrong_value",
            "Right only while scores are small: exp(scale * score) and exp(lse) leave what a"
            " number can hold, above and below. Take lse from the score first:"
            " exp(scale * score - lse).",
            slopes_if(apart=True),
        ),
        Hypothesis(
            "wrong_value",
            "The weight is missing: dS is P times (dP - D).",
            slopes_if(weighted=False),
        ),
        Hypothesis(
            "wrong_value",
            "D is taken from P times dP. It is taken from dP, and the weight multiplies both: dS is"
            " P times (dP - D).",
            slopes_if(inner=False),
        ),
        Hypothesis(
            "wrong_value",
            "These are powers of 2, and lse is a natural logarithm: take `math.exp`.",
            slopes_if(base=2.0),
        ),
        Hypothesis(
            "wrong_value",
            "dS is multiplied by values: dQ is dS K / √d.",
            slopes_if(of="values"),
        ),
        Hypothesis(
            "wrong_value",
            "dP is dO times the values, and here keys stand in their place.",
            slopes_if(of="keys"),
        ),
        Hypothesis(
            "wrong_value",
            "D is added: it is taken from dP.",
            slopes_if(less=lambda q, dout, out: -(dout * out).sum(1)),
        ),
        Hypothesis(
            "wrong_value",
            "D is the sum of dO times O, and here q stands for dO.",
            slopes_if(less=lambda q, dout, out: (q * out).sum(1)),
        ),
        Hypothesis(
            "wrong_value",
            "D is the sum of dO times O, and here O is left out.",
            slopes_if(less=lambda q, dout, out: dout.sum(1)),
        ),
        Hypothesis(
            "wrong_value",
            "D is the sum of dO times O, and here dO is left out.",
            slopes_if(less=lambda q, dout, out: out.sum(1)),
        ),
        Hypothesis(
            "wrong_value",
            "Only the last key is in the result: what each key adds has to be summed (`+=`).",
            of_the_last_key,
        ),
    ),
)
