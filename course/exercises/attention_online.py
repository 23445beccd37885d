"""Exercises of the chapter Attention: softmax in one pass over a row."""

import math

import numpy as np
from numba import cuda

from course.checking.inputs import normal, some_numbers
from course.checking.model import (
    Demand,
    Exercise,
    Hypothesis,
    Launch,
    Out,
    Wrong,
)

# ---- attention.online: a row's scores and values in one pass

TILE = 8
WIDEST = 24  # columns of a value


@cuda.jit
def attend(out, scores, values, scale):
    row, x = cuda.blockIdx.x, cuda.threadIdx.x
    keys, dim = values.shape
    if x < dim:
        largest = np.float32(-math.inf)
        total = np.float32(0)
        result = np.float32(0)
        for first in range(0, keys, 8):
            end = min(first + 8, keys)
            new = largest
            for key in range(first, end):
                new = max(new, scores[row, key] * scale)
            if new != -math.inf:
                factor = math.exp(largest - new)
                total *= factor
                result *= factor
                for key in range(first, end):
                    weight = math.exp(scores[row, key] * scale - new)
                    total += weight
                    result += weight * values[key, x]
                largest = new
        out[row, x] = result / total if total > 0 else np.float32(0)


@cuda.jit
def attend_in_two_passes(out, scores, values, scale):
    row, x = cuda.blockIdx.x, cuda.threadIdx.x
    if x < values.shape[1]:
        largest = np.float32(-math.inf)
        for key in range(values.shape[0]):
            largest = max(largest, scores[row, key] * scale)
        total = np.float32(0)
        result = np.float32(0)
        for key in range(values.shape[0]):
            if largest != -math.inf:
                weight = math.exp(scores[row, key] * scale - largest)
                total += weight
                result += weight * values[key, x]
        out[row, x] = result / total if total > 0 else np.float32(0)


def scored_rows(rng, shape):
    """shape: (rows, keys, columns). Rows of rising, falling and masked scores of all sizes.

    Scores are multiples of 1/8, and the scale is a power of two, so that no product is rounded.
    Some rows lie far below 0, some far above; some begin with a masked tile, and some have no
    score but -inf.
    """
    rows, keys, dim = shape
    spread = rng.choice([2.0, 40.0, 4000.0], (rows, 1))
    scores = np.round(spread * rng.normal(size=(rows, keys)) * 8) / 8
    level = np.resize(rng.permutation([0.0, -30_000.0, 30_000.0]), (rows, 1))
    kind = np.arange(rows) % 6
    scores[kind == 1] = np.sort(scores[kind == 1])  # every tile brings a new maximum
    scores[kind == 2] = -np.sort(-scores[kind == 2])  # none does after the first
    scores += level
    scores[rng.random((rows, keys)) < 0.1] = -np.inf
    scores[kind == 3, : keys // 2] = -np.inf
    scores[(kind == 4) & (rows > 4)] = -np.inf
    return {
        "out": Out((rows, dim)),
        "scores": scores.astype(np.float32),
        "values": normal(rng, keys, dim),
        "scale": float(2.0 ** -rng.integers(1, 4)),
    }


def attended(out, scores, values, scale):
    """softmax(scale scores) values, row by row; 0 where all scores are -inf."""
    return walked(scores, values, scale)


def walked(
    scores,
    values,
    scale,
    *,
    tile=TILE,
    start=-np.inf,
    rescale_total=True,
    rescale_result=True,
    upside_down=False,
    unscaled=False,
    bare=False,
    empty=0,
):
    """The same by online softmax in tiles, with a mistake where an option says so.

    upside_down: the factor is exp(new - old). unscaled: the largest is one of the scores as they
    came. bare: so is each score of which there is a weight. empty: the result where no sum is
    above 0.
    """
    given = scores.astype(np.float64)
    scores = scale * given
    rows, keys = scores.shape
    largest = np.full((rows, 1), start)
    total = np.zeros((rows, 1))
    result = np.zeros((rows, values.shape[1]))
    for first in range(0, keys, tile):
        part = scores[:, first : first + tile]
        compared = given[:, first : first + tile] if unscaled else part
        new = np.maximum(largest, compared.max(1, keepdims=True))
        shift = np.where(np.isinf(new), 0, new)
        weights = np.exp((given[:, first : first + tile] if bare else part) - shift)
        factor = np.exp(shift - largest if upside_down else largest - shift)
        if unscaled:  # what overflows in a kernel, and what becomes 0
            weights, factor = (x.astype(np.float32).astype(np.float64) for x in (weights, factor))
        total = total * (factor if rescale_total else 1) + weights.sum(1, keepdims=True)
        result = result * (factor if rescale_result else 1)
        result += weights @ values[first : first + tile]
        largest = new
    return np.divide(result, total, out=np.full_like(result, empty), where=total > 0)


def upside_down(empty):
    """What comes out if the factor is exp(new - old): at the first score 0 times infinity, NaN.

    empty: what stands where no sum of weights is above 0, as a sum that is NaN never is.
    """

    def output(out, scores, values, scale):
        with np.errstate(all="ignore"):
            return walked(scores, values, scale, upside_down=True, empty=empty)

    return output


def unscaled_largest(out, scores, values, scale):
    """What comes out if the largest score is taken before the scale, and weights after it."""
    with np.errstate(all="ignore"):
        return walked(scores, values, scale, unscaled=True)


def unscaled_weights(out, scores, values, scale):
    """What comes out if the scale is in the largest score, and not in the weights."""
    with np.errstate(all="ignore"):
        return walked(scores, values, scale, bare=True)


def unshifted(out, scores, values, scale):
    """What comes out if no largest score is subtracted: weights overflow, or all become 0."""
    return plain_softmax(scale * scores.astype(np.float64), values, np.float64)


def plain_softmax(scores, values, kept):
    """The mean of values by weights exp(score), inf or 0 where a float64 cannot hold them; 0 where
    no sum of weights is above 0. kept: the type of the weighted sum of values.
    """
    total = np.zeros((len(scores), 1))
    result = np.zeros((len(scores), values.shape[1]), kept)
    with np.errstate(all="ignore"):
        for score, value in zip(scores.T, values, strict=True):
            weight = np.exp(score)[:, None]
            total += weight
            result = (result + weight * value).astype(kept)
        return np.divide(result, total, out=np.zeros(result.shape), where=total > 0)


def spoilt(scores, answer, empty, value=np.nan):
    """This answer with another value in the rows for which empty(where they are -inf) is true."""
    rows = [bool(empty(np.isneginf(row))) for row in scores]
    return np.where(np.reshape(rows, (-1, 1)), value, answer)


def begins_empty(masked):
    """Whether a row's first tile has no score but -inf."""
    return masked.size and masked[:TILE].all()


def last_tile_only(out, scores, values, scale):
    """What comes out if the largest score is not kept: then each tile wipes out those before."""
    answer = np.zeros((len(scores), values.shape[1]))
    for row, its_scores in enumerate(scores):
        for first in range(0, len(values), TILE):
            tile = its_scores[None, first : first + TILE]
            if np.isfinite(tile).any():
                answer[row] = walked(tile, values[first : first + TILE], scale)
    return answer


def of_each_tile_alone(out, scores, values, scale):
    """What comes out if each tile takes its own largest score: factors overflow where they fall."""
    scores = scale * scores.astype(np.float64)
    rows, keys = scores.shape
    largest, total = np.full((rows, 1), -np.inf), np.zeros((rows, 1))
    result = np.zeros((rows, values.shape[1]))
    with np.errstate(all="ignore"):
        for first in range(0, keys, TILE):
            part = scores[:, first : first + TILE]
            new = part.max(1, keepdims=True)
            empty = np.isneginf(new)  # such a tile is left out
            factor, weights = np.exp(largest - new), np.exp(part - new)
            total = np.where(empty, total, total * factor + weights.sum(1, keepdims=True))
            added = weights @ values[first : first + TILE]
            result = np.where(empty, result, result * factor + added)
            largest = np.where(empty, largest, new)
        return np.divide(result, total, out=np.zeros_like(result), where=total > 0)


def undivided(out, scores, values, scale):
    """What comes out if the weighted sum is not divided by the sum of the weights."""
    scores = scale * scores.astype(np.float64)
    largest = scores.max(1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    return weights @ values


def looks_back(trace):
    """A reason to reject a kernel that reads a score of a tile that it had left for another."""
    events = trace.events
    tiles = {}  # thread -> those that it has read, the newest last
    for i in events.accesses("global"):
        memory = events.memory_of(i)
        if memory.name != "scores":
            continue
        thread = int(events.thread[i])
        tile = int(events.offset[i]) // 4 % memory.shape[1] // TILE
        *left, now = tiles.setdefault(thread, [tile])
        if tile in left:
            says = (
                "A tile of scores is read again after another one. Take each tile once, and"
                " correct what you have when a larger score comes."
            )
            return "other_means", says, None
        if tile != now:
            tiles[thread].append(tile)


TOTAL_ONCE = "                total *= factor\n"
RESULT_ONCE = "                result *= factor\n"
ONLINE = Exercise(
    id="attention.online",
    title="One pass over a row",
    minutes=14,
    task=(
        "A block has one row of scores, and thread x column x of the result: the mean of"
        " `values[key, x]` over all keys, each weighted by `exp(scale * score - largest)`, where"
        " `largest` is the row's largest scaled score. Walk through the keys *once*, in tiles of"
        " 8, and repair both sums when a tile brings a larger score. A score of -inf is a masked"
        " key, which weighs nothing. A row whose keys are all masked has the result 0. The"
        " starter subtracts nothing."
    ),
    starter="""
@cuda.jit
def attend(out, scores, values, scale):
    row, x = cuda.blockIdx.x, cuda.threadIdx.x
    keys, dim = values.shape
    if x < dim:
        largest = np.float32(-math.inf)
        total = np.float32(0)
        result = np.float32(0)
        for first in range(0, keys, 8):
            end = min(first + 8, keys)
            # your code: the largest score so far, and what it changes
            for key in range(first, end):
                weight = math.exp(scores[row, key])
                total += weight
                result += weight * values[key, x]
        out[row, x] = result / total
""",
    solution=attend,
    inputs=scored_rows,
    reference=attended,
    rtol=1e-4,
    specials="finite",  # scores are infinite already, and a weight of 0 times infinity is NaN
    powers=(-100, 99),  # no score lies below -1e30: the largest may begin there
    shapes=(
        (6, 24, 3),
        (1, 1, 1),
        (2, 0, 3),
        (5, 8, 1),
        (6, 9, 4),
        (12, 31, 2),
        (3, 50, 24),
    ),
    fresh=some_numbers((1, 9), (1, 40), (1, 6)),
    large=(1, 1100, 2),
    launches=lambda shape: [
        Launch((shape[0], 1, 1), (32, 1, 1)),
        Launch((shape[0], 1, 1), (24, 1, 1), "blocks of another size"),
    ],
    extents=lambda shape: (shape[0] * WIDEST, 1, 1),
    is_square=lambda shape: False,
    race_free=True,
    orders=1,
    elements=1,
    demand=Demand((6, 24, 3), looks_back),
    probe=(6, 24, 3),
    hints=(
        "First find the largest scaled score of the tile and of all before it: `new`. The sums so"
        " far are relative to the old one. What turns `exp(s - old)` into `exp(s - new)`?",
        "Multiply `total` and `result` by `exp(largest - new)`. Then add the tile's weights,"
        " `exp(scale * score - new)`, and set `largest = new`.",
        "While all scores so far are -inf, `new` is -inf, and -inf - -inf is NaN: there is nothing"
        " to add, so skip the tile. At the end `total` may still be 0: then the result is 0.",
    ),
    wrong=(
        (TOTAL_ONCE, "", "wrong_value"),
        (RESULT_ONCE, "", "wrong_value"),
        ((TOTAL_ONCE, ""), (RESULT_ONCE, ""), "wrong_value"),
        ("np.float32(-math.inf)", "np.float32(0)", "wrong_value"),
        ("if new != -math.inf:", "if True:", "wrong_value"),
        ("            new = largest\n", "            new = np.float32(-math.inf)\n", "wrong_value"),
        (
            "result / total if total > 0 else np.float32(0)",
            "result / np.float32(total)",
            "wrong_value",
        ),
        (("key] * scale)", "key])"), ("key] * scale -", "key] -"), "wrong_value"),
        ("key] * scale)", "key])", "wrong_value"),
        (
            "new = max(new, scores[row, key] * scale)",
            "new = max(new, scores[row, key])",
            "wrong_value",
        ),
        (
            "math.exp(scores[row, key] * scale - new)",
            "math.exp(scores[row, key] - new)",
            "wrong_value",
        ),
        ("math.exp(largest - new)", "math.exp(new - largest)", "wrong_value"),
        (
            ("math.exp(largest - new)", "math.exp(new - largest)"),
            ("result / total if total > 0 else np.float32(0)", "result / np.float32(total)"),
            "wrong_value",
        ),
        ("                largest = new\n", "", "wrong_value"),
        ("result / total if total > 0 else np.float32(0)", "result", "wrong_value"),
        ("if x < dim:", "if True:", "out_of_bounds"),
        ("end = min(first + 8, keys)", "end = first + 8", "out_of_bounds"),
        Wrong(attend_in_two_passes, "other_means"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The old sum of weights is not rescaled: it is relative to a smaller score than the"
            " weights that are added to it.",
            lambda out, scores, values, scale: walked(scores, values, scale, rescale_total=False),
        ),
        Hypothesis(
            "wrong_value",
            "The old weighted sum of values is not rescaled: correct it by the same factor as the"
            " sum of weights.",
            lambda out, scores, values, scale: walked(scores, values, scale, rescale_result=False),
        ),
        Hypothesis(
            "wrong_value",
            "Neither sum is rescaled: when a tile brings a larger score, what was added up before"
            " is relative to the old one.",
            lambda out, scores, values, scale: walked(
                scores, values, scale, rescale_total=False, rescale_result=False
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The largest score begins at a number, such as 0. All scores of a row may be far below"
            " it, and then every weight is 0: begin at -inf.",
            lambda out, scores, values, scale: walked(scores, values, scale, start=0),
        ),
        Hypothesis(
            "wrong_value",
            "A row whose first tile is masked becomes NaN: there the largest score is still -inf,"
            " and -inf - -inf is NaN.",
            lambda out, scores, values, scale: spoilt(
                scores, attended(out, scores, values, scale), begins_empty
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A row whose first tile is masked becomes 0. Either the loop ends at such a tile, or"
            " -inf - -inf, which is NaN, gets into the sum, and NaN is not above 0.",
            lambda out, scores, values, scale: spoilt(
                scores, attended(out, scores, values, scale), begins_empty, 0
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Only the last tile is in the result: `largest` is not kept, so that each tile takes"
            " itself for the first one.",
            last_tile_only,
        ),
        Hypothesis(
            "wrong_value",
            "A row in which all keys are masked becomes NaN: its sum of weights is 0, and 0 / 0 is"
            " NaN. Its result is 0.",
            lambda out, scores, values, scale: spoilt(
                scores, attended(out, scores, values, scale), np.all
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The scale is missing: a weight is `exp(scale * score - largest)`, and `largest` is a"
            " scaled score, too.",
            lambda out, scores, values, scale: walked(scores, values, 1.0),
        ),
        Hypothesis(
            "wrong_value",
            "The largest score is taken before it is scaled, and the weights are of scaled scores:"
            " then exp(scale * score - largest) leaves what a number can hold.",
            unscaled_largest,
        ),
        Hypothesis(
            "wrong_value",
            "The largest score is scaled, and the scores in the weights are not: a weight is"
            " exp(scale * score - largest).",
            unscaled_weights,
        ),
        Hypothesis(
            "wrong_value",
            "The factor is upside down: old sums shrink by exp(largest - new). At a row's first"
            " score exp(new - largest) is infinite, and 0 times infinity is NaN.",
            upside_down(0),
        ),
        Hypothesis(
            "wrong_value",
            "The factor is upside down: old sums shrink by exp(largest - new). At a row's first"
            " score exp(new - largest) is infinite, and 0 times infinity stays NaN.",
            upside_down(np.nan),
        ),
        Hypothesis(
            "wrong_value",
            "Each tile takes its own largest score, and not the largest so far. Where scores fall,"
            " exp(largest - new) grows beyond what a number can hold.",
            of_each_tile_alone,
        ),
        Hypothesis(
            "wrong_value",
            "The weighted sum is not divided by the sum of the weights.",
            undivided,
        ),
        Hypothesis(
            "wrong_value",
            "No largest score is subtracted: exp(scale * score) leaves what a number can hold,"
            " above and below.",
            unshifted,
        ),
        Hypothesis(
            "wrong_value",
            "These are powers of 2. The mean is weighted by powers of e: take `math.exp`.",
            lambda out, scores, values, scale: walked(scores, values, scale * math.log(2)),
        ),
    ),
)
