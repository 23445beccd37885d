"""The exercises of the chapter Attention."""

import math
from dataclasses import replace as replaced

import numpy as np
from numba import cuda

from course.checking.answers import replace
from course.checking.inputs import exact, normal, some_numbers
from course.checking.model import (
    Demand,
    Exercise,
    Hypothesis,
    InOut,
    Launch,
    Out,
    Wrong,
    cover,
)
from course.exercises.attention_questions import QUIZZES as QUIZZES
from utils.occupancy import ceil_div

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
    scores, values, scale, *, tile=TILE, start=-np.inf, rescale_total=True, rescale_result=True
):
    """The same by online softmax in tiles, with a mistake where an option says so."""
    scores = scale * scores.astype(np.float64)
    rows, keys = scores.shape
    largest = np.full((rows, 1), start)
    total = np.zeros((rows, 1))
    result = np.zeros((rows, values.shape[1]))
    for first in range(0, keys, tile):
        part = scores[:, first : first + tile]
        new = np.maximum(largest, part.max(1, keepdims=True))
        shift = np.where(np.isinf(new), 0, new)
        weights = np.exp(part - shift)
        factor = np.exp(largest - shift)
        total = total * (factor if rescale_total else 1) + weights.sum(1, keepdims=True)
        result = result * (factor if rescale_result else 1)
        result += weights @ values[first : first + tile]
        largest = new
    return np.divide(result, total, out=np.zeros_like(result), where=total > 0)


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
    minutes=10,
    task=(
        "A block has one row of scores, and thread x column x of the result: the sum of"
        " `weight * values[key, x]` over all keys, divided by the sum of the weights. A weight is"
        " `exp(scale * score - largest)`, where `largest` is the row's largest scaled score. Walk"
        " through the keys *once*, in tiles of 8: keep the largest score so far, the sum of weights"
        " and the weighted sum of values, and correct both sums when a tile brings a larger score."
        " A score may be -inf: that key is masked, and weighs nothing. A row in which all keys are"
        " masked has the result 0. The starter subtracts nothing, so that large scores overflow."
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
        (
            "result / total if total > 0 else np.float32(0)",
            "result / np.float32(total)",
            "wrong_value",
        ),
        (("key] * scale)", "key])"), ("key] * scale -", "key] -"), "wrong_value"),
        ("key] * scale)", "key])", "wrong_value"),
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
            "The weighted sum is not divided by the sum of the weights.",
            undivided,
        ),
    ),
)


# ---- attention.tiles: which tiles of keys a causal tile of queries visits, and which it masks

TILES_CU = """
// height, width: queries and keys of a tile. most: tiles of queries of the longest sequence.
// out [sequence, tile of queries, 2]: tiles of keys that need no mask, and where the loop ends
__global__ void tiles(int* out, const int* queries, const int* keys, int most, int height,
                      int width) {
    int tile = blockIdx.x * blockDim.x + threadIdx.x;
    int sequence = blockIdx.y;
    if (tile >= most)
        return;
    int ahead = keys[sequence] - queries[sequence];
    int first = tile * height;
    int last = min(first + height, queries[sequence]) - 1;
    int unmasked = 0, end = 0;
    if (first <= last) {
        unmasked = max(0, first + 1 + ahead) / width;
        end = (max(0, last + 1 + ahead) + width - 1) / width;
    }
    out[(sequence * most + tile) * 2] = unmasked;
    out[(sequence * most + tile) * 2 + 1] = end;
}
"""


def some_sequences(rng, shape):
    """shape: (sequences, queries of the longest, queries of a tile, keys of a tile)."""
    count, longest, height, width = shape
    queries = rng.integers(0, longest + 1, count)
    queries[rng.integers(count)] = longest
    more = rng.choice([0, longest, -longest, 3 * width, 1], count)  # keys more than queries
    keys = np.maximum(0, queries + more + rng.integers(-2, 3, count))
    most = ceil_div(longest, height)
    return {
        "out": Out((count, most, 2), np.int32),
        "queries": queries.astype(np.int32),
        "keys": keys.astype(np.int32),
        "most": most,
        "height": height,
        "width": width,
    }


def bounds(out, queries, keys, most, height, width):
    """From how many keys each query sees: of a tile's queries the fewest and the most."""
    result = np.zeros((len(keys), most, 2), np.int32)
    for sequence, (n_q, n_k) in enumerate(zip(queries.tolist(), keys.tolist(), strict=True)):
        seen = np.clip(np.arange(n_q) + 1 + n_k - n_q, 0, n_k)
        tiles = np.arange(0, n_q, height)
        if len(tiles):
            fewest = np.minimum.reduceat(seen, tiles)
            result[sequence, : len(tiles), 0] = fewest // width
            largest = np.maximum.reduceat(seen, tiles)
            result[sequence, : len(tiles), 1] = ceil_div(largest, width)
    return result


def down(number, width):
    """How many whole tiles there are in so many keys."""
    return np.maximum(0, number) // width


def up(number, width):
    """How many tiles so many keys touch."""
    return ceil_div(np.maximum(0, number), width)


def cut(number, width):
    """A quotient as C has it, with no respect for numbers below 0."""
    return np.trunc(number / width).astype(int)


def bounds_if(
    *, first_sees=1, last_sees=1, moved=True, inside=True, behind=False, whole=down, end=up
):
    """What comes out of other bounds.

    first_sees, last_sees: keys that a query i sees, less i + keys - queries. moved: whether the
    diagonal is moved by keys - queries. inside: whether the last query is kept inside the sequence.
    behind: whether tiles behind the sequence are counted, too. whole, end: how tiles are counted.
    """

    def output(out, queries, keys, most, height, width):
        result = np.zeros((len(keys), most, 2), np.int32)
        for sequence, (n_q, n_k) in enumerate(zip(queries.tolist(), keys.tolist(), strict=True)):
            ahead = n_k - n_q if moved else 0
            tiles = most if behind else ceil_div(n_q, height)
            first = height * np.arange(tiles)
            last = np.minimum(first + height, n_q if inside else 1 << 30) - 1
            result[sequence, :tiles, 0] = whole(first + first_sees + ahead, width)
            result[sequence, :tiles, 1] = end(last + last_sees + ahead, width)
        return result

    return output


def of_the_last(out, queries, keys, most, height, width):
    """What comes out if a tile needs no mask where its last query sees all of it."""
    result = bounds(out, queries, keys, most, height, width)
    for sequence, (n_q, n_k) in enumerate(zip(queries.tolist(), keys.tolist(), strict=True)):
        after = np.minimum(height * np.arange(1, ceil_div(n_q, height) + 1), n_q)
        result[sequence, : len(after), 0] = down(after + n_k - n_q, width)
    return result


def of_the_first_sequence(out, queries, keys, **more):
    """What comes out if each sequence is taken to be as long as the first one."""
    lengths = [np.full_like(these, these[0]) for these in (queries, keys)]
    return bounds(out, *lengths, **more)


def a_thread_a_tile(shape):
    """`Exercise.extents`: a thread for each tile of queries of each sequence."""
    sequences, longest, height, _ = shape
    return ceil_div(longest, height), sequences, 1


TILES = Exercise(
    id="attention.tiles",
    title="Tiles to visit, tiles to mask",
    minutes=8,
    kind="cuda_c",
    kernel_name="tiles",
    path="build/tiles.cu",
    task=(
        "Causal query i of a sequence sees its keys 0 to i + keys - queries (and none, where that"
        " is below 0): the last query sees the last key. A block of attention has a tile of"
        " `height` queries, and walks through tiles of `width` keys from the first one on. Thread"
        " (x, y) has tile x of sequence y. Store how many tiles of keys need *no mask*, because"
        " each of the tile's queries sees all of their keys; and where the loop *ends*, behind the"
        " last tile of which some query sees a key. The last tile of queries may be partly filled."
        " A last tile of keys that is not full needs the mask. A tile behind a sequence's last"
        " query stores 0 and 0. The starter visits and masks every tile. An example: 6 queries, 10"
        " keys, tiles of 4 and 4. Queries 0 to 3 see 5 to 8 keys: one tile of keys needs no mask,"
        " and the loop ends at 2. Queries 4 and 5 see 9 and 10: 2 and 3."
    ),
    starter="""
%%writefile build/tiles.cu
// height, width: queries and keys of a tile. most: tiles of queries of the longest sequence.
// out [sequence, tile of queries, 2]: tiles of keys that need no mask, and where the loop ends
__global__ void tiles(int* out, const int* queries, const int* keys, int most, int height,
                      int width) {
    int tile = blockIdx.x * blockDim.x + threadIdx.x;
    int sequence = blockIdx.y;
    if (tile >= most)
        return;
    int unmasked = 0;
    int end = (keys[sequence] + width - 1) / width;  // your code: fewer
    out[(sequence * most + tile) * 2] = unmasked;
    out[(sequence * most + tile) * 2 + 1] = end;
}
""",
    solution=TILES_CU,
    inputs=some_sequences,
    reference=bounds,
    rtol=0,
    shapes=(
        (4, 64, 16, 8),
        (1, 1, 1, 1),
        (2, 1, 16, 8),
        (4, 20, 4, 1),
        (5, 40, 16, 16),
        (3, 33, 8, 5),
        (7, 100, 10, 24),
        (2, 500, 3, 7),
    ),
    large=(2, 66_000, 1, 3),
    fresh=some_numbers((1, 9), (1, 90), (1, 20), (1, 20)),
    launches=lambda shape: [
        Launch((ceil_div(a_thread_a_tile(shape)[0], 32), shape[0], 1), (32, 1, 1)),
        Launch(
            (ceil_div(a_thread_a_tile(shape)[0], 20), shape[0], 1), (20, 1, 1), "smaller blocks"
        ),
    ],
    extents=a_thread_a_tile,
    is_square=lambda shape: False,
    elements=2,
    hints=(
        "Which of the tile's queries sees the fewest keys, and which the most? How many are these?",
        "The first query, `tile * height`, sees `first + 1 + keys - queries` keys, or none where"
        " that is below 0. A tile of keys needs no mask if even the first query sees all of it.",
        "`unmasked` is the first query's number, divided by `width` and rounded down; `end` is the"
        " last query's, rounded up. The last one is `min(first + height, queries) - 1`.",
    ),
    wrong=(
        (
            ("first + 1 + ahead", "first + ahead"),
            ("last + 1 + ahead", "last + ahead"),
            "wrong_value",
        ),
        ("last + 1 + ahead", "last + ahead", "wrong_value"),
        ("first + 1 + ahead", "first + ahead", "wrong_value"),
        ("keys[sequence] - queries[sequence]", "0", "wrong_value"),
        (
            ("min(first + height, queries[sequence]) - 1", "first + height - 1"),
            ("first <= last", "first < queries[sequence]"),
            "wrong_value",
        ),
        ("min(first + height, queries[sequence]) - 1", "first + height - 1", "wrong_value"),
        ("if (first <= last)", "if (true)", "wrong_value"),
        ("+ width - 1) / width", ") / width", "wrong_value"),
        ("max(0, first + 1 + ahead)", "(width - 1 + max(0, first + 1 + ahead))", "wrong_value"),
        ("max(0, first + 1 + ahead)", "max(0, last + 1 + ahead)", "wrong_value"),
        (
            ("keys[sequence]", "keys[0]"),
            ("= keys[0] - queries[sequence]", "= keys[0] - queries[0]"),
            ("height, queries[sequence])", "height, queries[0])"),
            "wrong_value",
        ),
        ("max(0, last + 1 + ahead)", "(last + 1 + ahead)", "wrong_value"),
        (
            ("max(0, first + 1 + ahead)", "(first + 1 + ahead)"),
            ("max(0, last + 1 + ahead)", "(last + 1 + ahead)"),
            "wrong_value",
        ),
        ("    if (tile >= most)\n        return;\n", "", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A query sees one key more than you count: query i sees key i + keys - queries, too.",
            bounds_if(first_sees=0, last_sees=0),
        ),
        Hypothesis(
            "wrong_value",
            "The loop ends one key too early: the last query sees key last + keys - queries, too.",
            bounds_if(last_sees=0),
        ),
        Hypothesis(
            "wrong_value",
            "Tiles are masked that need no mask: the first query sees one key more than you count.",
            bounds_if(first_sees=0),
        ),
        Hypothesis(
            "wrong_value",
            "Right only where a sequence has as many keys as queries. In general the diagonal is"
            " moved by keys - queries.",
            bounds_if(moved=False),
        ),
        Hypothesis(
            "wrong_value",
            "The last tile of queries is partly filled, and you count a query behind the sequence's"
            " end: the loop goes on behind the last key.",
            bounds_if(inside=False),
        ),
        Hypothesis(
            "wrong_value",
            "A tile behind a sequence's last query has nothing to do: both its numbers are 0.",
            bounds_if(behind=True),
        ),
        Hypothesis(
            "wrong_value",
            "A tile behind a sequence's last query has nothing to do, and the last tile that has is"
            " partly filled: count no query behind the sequence's end.",
            bounds_if(inside=False, behind=True),
        ),
        Hypothesis(
            "wrong_value",
            "Tiles that the diagonal crosses are taken for tiles without a mask. In them the"
            " *first* query does not see all keys.",
            of_the_last,
        ),
        Hypothesis(
            "wrong_value",
            "A tile of which the first query sees only a part needs a mask: round down.",
            bounds_if(whole=up),
        ),
        Hypothesis(
            "wrong_value",
            "A tile of which only a part is seen must be visited as well: round up.",
            bounds_if(end=down),
        ),
        Hypothesis(
            "wrong_value",
            "A query that sees no key gives a number below 0: take 0 in its place.",
            bounds_if(whole=cut, end=lambda number, width: cut(number + width - 1, width)),
        ),
        Hypothesis(
            "wrong_value",
            "A query that sees no key gives an end below 0: take 0 in its place.",
            bounds_if(end=lambda number, width: cut(number + width - 1, width)),
        ),
        Hypothesis(
            "wrong_value",
            "A query that sees no key gives a number of tiles below 0 that need no mask: take 0 in"
            " its place.",
            bounds_if(whole=cut),
        ),
        Hypothesis(
            "wrong_value",
            "Every sequence gets the bounds of the first one: its lengths are its own.",
            of_the_first_sequence,
        ),
    ),
)

# ---- attention.flash: a block for each tile of queries, and no matrix of scores

FLASH_DIM = 4


@cuda.jit
def flash(out, q, k, v, scale, causal):
    tile_k = cuda.shared.array((8, 4), np.float32)
    tile_v = cuda.shared.array((8, 4), np.float32)
    own = cuda.local.array(4, np.float32)
    result = cuda.local.array(4, np.float32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    i = cuda.grid(1)
    queries, keys = q.shape[0], k.shape[0]
    sees = min(keys, i + 1 + keys - queries) if causal else keys
    largest = np.float32(-math.inf)
    total = np.float32(0)
    for x in range(4):
        own[x] = q[i, x] if i < queries else np.float32(0)
        result[x] = 0
    for first in range(0, keys, 8):
        cuda.syncthreads()
        for j in range(t, 8 * 4, threads):
            if first + j // 4 < keys:
                tile_k[j // 4, j % 4] = k[first + j // 4, j % 4]
                tile_v[j // 4, j % 4] = v[first + j // 4, j % 4]
        cuda.syncthreads()
        if i < queries:
            for key in range(min(8, sees - first)):
                score = np.float32(0)
                for x in range(4):
                    score += own[x] * tile_k[key, x]
                score *= scale
                new = max(largest, score)
                factor = math.exp(largest - new)
                weight = math.exp(score - new)
                total = total * factor + weight
                for x in range(4):
                    result[x] = result[x] * factor + weight * tile_v[key, x]
                largest = new
    if i < queries:
        for x in range(4):
            out[i, x] = result[x] / total if total > 0 else np.float32(0)


def heads_of_rows(rng, shape):
    """shape: (queries, keys, whether it is causal). Scores of all sizes, on both sides of 0.

    Numbers of q and k are small multiples of 1/4, and the scale is a power of two, so that no score
    is rounded.
    """
    queries, keys, causal = shape
    spread = rng.choice([1.0, 30.0])
    q = np.round(spread * rng.normal(size=(queries, FLASH_DIM)) * 4) / 4
    k = np.round(spread * rng.normal(size=(keys, FLASH_DIM)) * 4) / 4
    if rng.random() < 0.5:  # all scores far below 0
        q, k = -np.abs(q) - spread, np.abs(k) + spread
    if rng.random() < 0.3:  # below every int32, and above
        q = q * 2.0**40
    return {
        "out": Out((queries, FLASH_DIM)),
        "q": q.astype(np.float32),
        "k": k.astype(np.float32),
        "v": normal(rng, keys, FLASH_DIM),
        "scale": float(2.0 ** -rng.integers(1, 4)),
        "causal": bool(causal),
    }


def one_head(
    out,
    q,
    k,
    v,
    scale,
    causal,
    *,
    sees=lambda row, queries, keys: row + 1 + keys - queries,
    **wrong,
):
    """softmax(scale q kᵀ) v, in float64; 0 where a query sees no key.

    sees: how many keys a causal query sees. wrong: further options of `walked`.
    """
    scores = scale * q.astype(np.float64) @ k.astype(np.float64).T
    if causal:
        row = np.arange(len(q))[:, None]
        scores[np.arange(len(k)) >= sees(row, len(q), len(k))] = -np.inf
    return walked(scores, v, 1.0, **wrong)


def head_if(**mistake):
    """What comes out of `one_head` with a mistake."""
    return lambda out, q, k, v, scale, causal: one_head(
        out, q, k, v, **{"scale": scale, "causal": causal, **mistake}
    )


def nan_without_keys(out, q, k, v, scale, causal):
    """What comes out if a query that sees no key divides 0 by 0."""
    answer = one_head(out, q, k, v, scale, causal)
    without = len(q) - len(k) if causal or not len(k) else 0
    answer[: max(0, without)] = np.nan
    return answer


def with_tail(tail_of):
    """What comes out if the last tile's tail is taken for keys: tail_of(k or v, how many rows)."""

    def output(out, q, k, v, scale, causal):
        rows = -len(k) % TILE
        if causal or not len(k):
            return one_head(out, q, k, v, scale, causal)
        k, v = (np.concatenate([these, tail_of(these, rows)]) for these in (k, v))
        return one_head(out, q, k, v, scale, causal)

    return output


def left_behind(rows_of_keys, rows):
    """What a last tile of so few keys still holds of the tile before; nothing where it is first."""
    first = len(rows_of_keys) - TILE
    return rows_of_keys[first : first + rows] if first >= 0 else rows_of_keys[:0]


def few_threads(shape):
    """A block of 1 to 7 threads, which are fewer than a tile has keys: another for each shape."""
    queries, keys, _ = shape
    return 1 + (5 * queries + keys) % (TILE - 1), 1, 1


def loads_alone(trace):
    """A reason to reject a kernel in which few threads bring what all of a block use."""
    events = trace.events
    loads = [
        int(events.thread[i])
        for i in events.accesses("global")
        if events.memory_of(i).name in ("k", "v")
    ]
    keys = trace.results["k"].shape[0]
    if len(loads) > 2 * keys * FLASH_DIM:
        says = (
            f"A block loads {len(loads)} numbers of k and v from global memory, and"
            f" {2 * keys * FLASH_DIM} would do: each key and value once."
        )
        return "too_much_traffic", says, None
    most = int(np.bincount(loads).max(initial=0)) if loads else 0
    if most > len(loads) / 4:
        says = (
            f"Of {len(loads)} numbers of k and v that a block of {trace.threads_a_block} threads"
            f" loads one thread loads {most}: let all threads load a tile together."
        )
        return "one_thread", says, None


FLASH_LOAD = """        for j in range(t, 8 * 4, threads):
            if first + j // 4 < keys:
                tile_k[j // 4, j % 4] = k[first + j // 4, j % 4]
                tile_v[j // 4, j % 4] = v[first + j // 4, j % 4]
"""
LOAD_BY_ONE = """        for j in range(8 * 4 if t == 0 else 0):
            if first + j // 4 < keys:
                tile_k[j // 4, j % 4] = k[first + j // 4, j % 4]
                tile_v[j // 4, j % 4] = v[first + j // 4, j % 4]
"""
LOAD_BY_EIGHT = """        if t < 8 and first + t < keys:
            for x in range(4):
                tile_k[t, x] = k[first + t, x]
                tile_v[t, x] = v[first + t, x]
"""
SYNC = "        cuda.syncthreads()\n"
FLASH = Exercise(
    id="attention.flash",
    title="Flash attention",
    minutes=15,
    task=(
        "One head with 4 columns: thread i has query i, and writes row i of `out`, the sum of"
        " `weight * v[key]` over the keys that it sees, divided by the sum of the weights"
        " `exp(score - largest)`; a score is `scale` times the product of `q[i]` and `k[key]`."
        " There is no matrix of scores: all threads of a block together load a tile of 8 keys and 8"
        " values into shared memory, each key and value once a block, then each takes the tile into"
        " its sums as in *One pass over a row*. If `causal` is true, query i sees keys 0"
        " to i + keys - queries only, and none where that is below 0: then its result is 0. Blocks"
        " have any size, and the last tile may be partly filled."
    ),
    starter="""
@cuda.jit
def flash(out, q, k, v, scale, causal):
    tile_k = cuda.shared.array((8, 4), np.float32)
    tile_v = cuda.shared.array((8, 4), np.float32)
    own = cuda.local.array(4, np.float32)
    result = cuda.local.array(4, np.float32)
    i = cuda.grid(1)
    queries, keys = q.shape[0], k.shape[0]
    largest = np.float32(-math.inf)
    total = np.float32(0)
    for x in range(4):
        own[x] = q[i, x] if i < queries else np.float32(0)
        result[x] = 0
    for first in range(0, keys, 8):
        ...  # your code: load a tile together; then, of its keys, take those that query i sees
    if i < queries:
        for x in range(4):
            out[i, x] = result[x] / total if total > 0 else np.float32(0)
""",
    solution=flash,
    inputs=heads_of_rows,
    reference=one_head,
    rtol=1e-4,
    specials="finite",  # a weight of 0 times infinity is NaN
    powers=(-30, 30),  # a score is a sum of products: it has to fit into a float
    shapes=(
        (6, 20, 0),
        (12, 19, 1),
        (1, 1, 1),
        (20, 9, 1),
        (16, 16, 1),
        (3, 0, 0),
        (36, 9, 0),
        (7, 17, 0),
    ),
    fresh=some_numbers((1, 20), (1, 25), (0, 2)),
    block=(16, 1, 1),
    launches=lambda shape: [
        cover((shape[0], 1, 1), (16, 1, 1))[0],
        replaced(cover((shape[0], 1, 1), (40, 1, 1))[1], label="more than a warp in a block"),
        replaced(cover((shape[0], 1, 1), few_threads(shape))[0], label="small blocks"),
    ],
    extents=lambda shape: (shape[0], 1, 1),
    is_square=lambda shape: shape[0] == shape[1],
    race_free=True,
    needs=("shared", "barriers"),
    orders=1,
    elements=4,
    effort=3,
    traffic=3,
    demand=Demand((16, 24, 0), loads_alone),
    probe=(16, 21, 0),
    hints=(
        "A tile has 8 * 4 numbers, and a block any number of threads:"
        " `for j in range(cuda.threadIdx.x, 32, cuda.blockDim.x)`. Number j is column `j % 4` of"
        " key `first + j // 4`, if there is such a key.",
        "Who uses a tile must wait until all have loaded it, and who loads the next one until all"
        " have used this one: two barriers, to which threads without a query must come as well.",
        "Before the loop: `sees = min(keys, i + 1 + keys - queries) if causal else keys`. Of a tile"
        " query i takes `for key in range(min(8, sees - first))`: that masks the diagonal and the"
        " tail of the last tile at once, and is no key at all where the number is below 0.",
        "For each key: the score, `new = max(largest, score)`, `factor = math.exp(largest - new)`,"
        " `weight = math.exp(score - new)`. Then `total = total * factor + weight`, the same for"
        " each `result[x]` with `weight * tile_v[key, x]`, and `largest = new`.",
    ),
    wrong=(
        ("i + 1 + keys - queries", "i + keys - queries", "wrong_value"),
        ("i + 1 + keys - queries", "i + 2 + keys - queries", "wrong_value"),
        ("i + 1 + keys - queries", "i + 1", "wrong_value"),
        ("min(keys, i + 1 + keys - queries) if causal else keys", "keys", "wrong_value"),
        (SYNC + FLASH_LOAD, FLASH_LOAD, "race"),
        (FLASH_LOAD + SYNC, FLASH_LOAD, "race"),
        (
            "range(min(8, sees - first))",
            "range(min(8, sees - first) if causal else 8)",
            "wrong_value",
        ),
        (
            ("range(min(8, sees - first))", "range(min(8, sees - first) if causal else 8)"),
            (
                "            if first + j // 4 < keys:\n",
                "            tile_k[j // 4, j % 4] = 0\n            tile_v[j // 4, j % 4] = 0\n"
                "            if first + j // 4 < keys:\n",
            ),
            "wrong_value",
        ),
        ("            if first + j // 4 < keys:\n", "            if True:\n", "out_of_bounds"),
        ("                score *= scale\n", "", "wrong_value"),
        ("total * factor + weight", "total + weight", "wrong_value"),
        ("result[x] * factor +", "result[x] +", "wrong_value"),
        ("np.float32(-math.inf)", "np.float32(0)", "wrong_value"),
        (
            "result[x] / total if total > 0 else np.float32(0)",
            "result[x] / np.float32(total)",
            "wrong_value",
        ),
        ("weight * tile_v[key, x]", "weight * v[first + key, x]", "too_much_traffic"),
        ("range(t, 8 * 4, threads)", "range(8 * 4)", "race"),
        ("range(0, keys, 8)", "range(0, keys if i < queries else 0, 8)", "barrier"),
        (FLASH_LOAD, LOAD_BY_ONE, "one_thread"),
        (FLASH_LOAD, LOAD_BY_EIGHT, "uninitialized"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A causal query misses its last key: query i sees key i + keys - queries, too.",
            head_if(sees=lambda row, queries, keys: row + keys - queries),
        ),
        Hypothesis(
            "wrong_value",
            "A causal query sees one key too many: the last one is key i + keys - queries.",
            head_if(sees=lambda row, queries, keys: row + 2 + keys - queries),
        ),
        Hypothesis(
            "wrong_value",
            "The mask is right only with as many keys as queries: query i sees keys up to"
            " i + keys - queries.",
            head_if(sees=lambda row, queries, keys: row + 1),
        ),
        Hypothesis(
            "wrong_value",
            "A causal query sees later keys, too: there is no mask.",
            head_if(causal=False),
        ),
        Hypothesis(
            "wrong_value",
            "The scale is missing: a score is `scale` times the product.",
            head_if(scale=1.0),
        ),
        Hypothesis(
            "wrong_value",
            "The scale is in each score twice.",
            lambda out, q, k, v, scale, causal: one_head(out, q, k, v, scale * scale, causal),
        ),
        Hypothesis(
            "wrong_value",
            "Every launch is masked. Only where `causal` is true does a query see a part of the"
            " keys.",
            head_if(causal=True),
        ),
        Hypothesis(
            "wrong_value",
            "The sum of weights is not rescaled when a larger score comes.",
            head_if(rescale_total=False, tile=1),
        ),
        Hypothesis(
            "wrong_value",
            "The sum of weights is not rescaled when a tile brings a larger score.",
            head_if(rescale_total=False),
        ),
        Hypothesis(
            "wrong_value",
            "The weighted sum of values is not rescaled when a larger score comes.",
            head_if(rescale_result=False, tile=1),
        ),
        Hypothesis(
            "wrong_value",
            "The weighted sum of values is not rescaled when a tile brings a larger score.",
            head_if(rescale_result=False),
        ),
        Hypothesis(
            "wrong_value",
            "The largest score begins at a number, such as 0. All scores may be far below it, and"
            " then every weight is 0: begin at -inf.",
            head_if(start=0),
        ),
        Hypothesis(
            "wrong_value",
            "The last tile is partly filled, and what the tile before has left behind it is taken"
            " for keys: mask it.",
            with_tail(left_behind),
        ),
        Hypothesis(
            "wrong_value",
            "The last tile is partly filled, and the zeros behind its keys are taken for keys: a"
            " score of 0 has a weight as well. Mask it.",
            with_tail(lambda these, rows: np.zeros((rows, FLASH_DIM))),
        ),
        Hypothesis(
            "wrong_value",
            "A query that sees no key gets NaN, which is 0 / 0. Its result is 0.",
            nan_without_keys,
        ),
    ),
)


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


def a_way_back(rng, shape):
    """shape: (queries, keys). What a forward pass has left, and a gradient of its result.

    Numbers of q and k are multiples of 1/4, and the scale is a power of two, so that no score is
    rounded. Scores are small, so that no weight is nearly 1: then dP - D is what rounding leaves.
    """
    queries, keys = shape
    q, k = (np.round(rng.normal(size=(rows, FLASH_DIM)) * 4) / 4 for rows in shape)
    v = normal(rng, keys, FLASH_DIM)
    scale = float(2.0 ** -rng.integers(1, 3))
    scores = scale * q @ k.T
    with np.errstate(divide="ignore"):  # without a key lse is -inf
        lse = np.log(np.exp(scores).sum(1))
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
    weighted=True,
    of=None,
):
    """The gradient of q, or with a mistake.

    less: what is taken from dP. inside, outside: whether the scale is in the scores, and in the
    result. divided: whether lse is taken from a score. weighted: whether P stands before dP - D.
    of: "values" for dS times v, "keys" for dP from k.
    """
    q, k, v, dout, out, lse = (x.astype(np.float64) for x in (q, k, v, dout, out, lse))
    scores = (scale if inside else 1) * q @ k.T
    weights = np.exp(scores - (lse[:, None] if divided else 0))
    pulled = dout @ (k if of == "keys" else v).T - less(q, dout, out)[:, None]
    ds = (weights if weighted else 1) * pulled
    return (scale if outside else 1) * ds @ (v if of == "values" else k)


def slopes_if(**mistake):
    """What comes out of `slopes` with a mistake."""
    return lambda *given, **named: slopes(*given, **named, **mistake)


SLOPE = Exercise(
    id="attention.slope",
    title="The gradient of a query",
    minutes=8,
    task=(
        "One head with 4 columns, and no mask: thread i writes row i of `dq`, the gradient of query"
        " i, as the formulas above have it. Given are q, k, v and `scale`, which is 1 / √d, and"
        " what the forward pass left: `out`, O, and `lse`, one number for each row. `dout` is dO."
        " There is no matrix: walk through the keys, bring each weight back as you need it, and add"
        " this key's part of dS K / √d. D is the same for all keys of a row. The starter adds"
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
        ("weight * (dp - delta)", "dp - delta", "wrong_value"),
        ("ds * k[key, x]", "ds * v[key, x]", "wrong_value"),
        ("dout[i, x] * v[key, x]", "dout[i, x] * k[key, x]", "wrong_value"),
        ("(dp - delta)", "(dp + delta)", "wrong_value"),
        ("delta += dout[i, x] * out[i, x]", "delta += q[i, x] * out[i, x]", "wrong_value"),
        ("delta += dout[i, x] * out[i, x]", "delta += dout[i, x]", "wrong_value"),
        ("if i < q.shape[0]:", "if True:", "missing_guard"),
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
            "The weight is missing: dS is P times (dP - D).",
            slopes_if(weighted=False),
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
    ),
)


# ---- attention.cached: a new token's key and value, and a query against the cache

CACHED_CU = """
const int DIM = 32;  // numbers of a head: one for each lane
// Block (x, y): head x of keys, sequence y; a warp for each head of queries that shares these keys.
// memory: results [sequence, head, DIM], then keys and values [sequence, capacity, key head, DIM].
// q: as results. new_k, new_v [sequence, key head, DIM]. lengths: keys in the cache, by sequence.
__global__ void decode(float* memory, const float* q, const float* new_k, const float* new_v,
                       const int* lengths, int capacity) {
    int key_heads = gridDim.x, key_head = blockIdx.x, sequence = blockIdx.y;
    int group = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int heads = key_heads * group, length = lengths[sequence];
    float* keys = memory + gridDim.y * heads * DIM;
    float* values = keys + gridDim.y * capacity * key_heads * DIM;

    if (warp == 0) {
        int place = ((sequence * capacity + length) * key_heads + key_head) * DIM + lane;
        int mine = (sequence * key_heads + key_head) * DIM + lane;
        keys[place] = new_k[mine];
        values[place] = new_v[mine];
    }
    __syncthreads();
    int head = key_head * group + warp;
    float query = 0.25f * q[(sequence * heads + head) * DIM + lane];  // scaled by 1/4
    float largest = -INFINITY, total = 0, result = 0;
    for (int key = 0; key <= length; ++key) {
        int place = ((sequence * capacity + key) * key_heads + key_head) * DIM + lane;
        float score = query * keys[place];
        for (int other = 16; other > 0; other /= 2)
            score += __shfl_xor_sync(~0u, score, other);
        float next = fmaxf(largest, score), weight = expf(score - next);
        total = total * expf(largest - next) + weight;
        result = result * expf(largest - next) + weight * values[place];
        largest = next;
    }
    memory[(sequence * heads + head) * DIM + lane] = result / total;
}
"""
HEAD = 32  # numbers of a head


def caches(rng, shape):
    """shape: (sequences, heads of keys, heads of queries for each, capacity).

    Behind a sequence's keys lies garbage. Scores are not rounded: small multiples of 1/4. There is
    a key before the new one and room behind it, so that who is off by one stays in its sequence.
    """
    sequences, key_heads, group, capacity = shape
    lengths = rng.integers(1, capacity - 1, sequences)

    def some(*sides):
        return np.round(4 * rng.normal(size=(*sides, HEAD))).astype(np.float32) / 4

    cache = [
        some(sequences, capacity, key_heads),
        normal(rng, sequences, capacity, key_heads, HEAD),
    ]
    results = rng.uniform(50, 90, (sequences, key_heads * group, HEAD))
    memory = np.concatenate([part.ravel() for part in (results, *cache)])
    return {
        "memory": InOut(memory.astype(np.float32)),
        "q": some(sequences, key_heads * group),
        "new_k": some(sequences, key_heads),
        "new_v": normal(rng, sequences, key_heads, HEAD),
        "lengths": lengths.astype(np.int32),
        "capacity": capacity,
    }


def parts_of(memory, q, new_k, lengths, capacity, by_head=False):
    """(results, keys, values): views of a copy of memory, and last that copy itself.

    Keys and values are [sequence, capacity, head, number]. by_head: whether memory is taken to have
    them as [sequence, head, capacity, number].
    """
    memory = memory.astype(np.float64)
    sides = len(lengths), capacity, new_k.shape[1], HEAD
    results, keys, values = np.split(memory, [q.size, q.size + math.prod(sides)])
    if by_head:
        sides = sides[0], sides[2], sides[1], HEAD
    cache = [part.reshape(sides) for part in (keys, values)]
    if by_head:
        cache = [part.swapaxes(1, 2) for part in cache]
    return results.reshape(q.shape), *cache, memory


def decoded(
    memory,
    q,
    new_k,
    new_v,
    lengths,
    capacity,
    *,
    shift=0,
    sees=1,
    key_head=lambda head, key_heads, group: head // group,
    stale=False,
    value=True,
    by_head=False,
):
    """Memory after the launch, or with a mistake.

    shift: how far from its place the token is appended. sees: how many keys more than `length` a
    query sees. key_head: whose keys a head of queries takes. stale: whether queries see the cache
    as it was before. value: whether the new value is appended. by_head: whether the cache is taken
    for [sequence, head, capacity].
    """
    results, keys, values, after = parts_of(memory, q, new_k, lengths, capacity, by_head)
    sequences, heads = q.shape[:2]
    group = heads // new_k.shape[1]
    before = keys.copy(), values.copy()
    for sequence, length in enumerate(lengths.tolist()):
        keys[sequence, length + shift] = new_k[sequence]
        if value:
            values[sequence, length + shift] = new_v[sequence]
    seen_k, seen_v = before if stale else (keys, values)
    for sequence, length in enumerate(lengths.tolist()):
        for head in range(heads):
            own = key_head(head, new_k.shape[1], group)
            there = slice(0, min(length + sees, capacity))
            scores = 0.25 * seen_k[sequence, there, own] @ q[sequence, head].astype(np.float64)
            weights = np.exp(scores - scores.max())
            results[sequence, head] = weights @ seen_v[sequence, there, own] / weights.sum()
    return after


def decoded_if(**mistake):
    """What comes out of `decoded` with a mistake."""
    return lambda *given, **named: decoded(*given, **named, **mistake)


BY_HEAD = "(sequence * key_heads + key_head) * capacity + {})"  # another layout of the cache
CACHED_APPEND = CACHED_CU[CACHED_CU.index("    if (warp == 0)") : CACHED_CU.index("    __syncth")]
CACHED_STARTER = replace(
    CACHED_CU,
    (
        CACHED_APPEND + "    __syncthreads();\n",
        "    // your code: append the new key and value\n",
    ),
    ("key_head * group + warp;\n", "warp;  // your code: which one shares this head of keys?\n"),
    ("key <= length", "key < length"),
    (
        "int place = ((sequence * capacity + key) * key_heads + key_head) * DIM + lane;",
        "int place = lane;  // your code: where this key begins in `keys`, and its value",
    ),
)
CACHED = Exercise(
    id="attention.cached",
    title="A token and its cache",
    minutes=10,
    kind="cuda_c",
    kernel_name="decode",
    path="build/cached.cu",
    task=(
        "This kernel is one step of decoding. `lengths[sequence]` keys lie in a sequence's cache,"
        " which has room for `capacity`, more than there are. Append the new token's key and value"
        " behind them (one warp is enough); then each query sees all of them, the new one as well."
        " Heads of queries"
        " share heads of keys in groups: with 8 and 2, query heads 0 to 3 have key head 0, and 4 to"
        " 7 key head 1. A block has one head of keys, and a warp for each head of queries of its"
        " group. The softmax is written; what is missing is each place in memory, and whatever"
        " makes all warps see the new token."
    ),
    starter="\n%%writefile build/cached.cu" + CACHED_STARTER,
    solution=CACHED_CU,
    inputs=caches,
    reference=decoded,
    rtol=1e-4,
    specials="finite",  # a weight of 0 times infinity is NaN
    shapes=(
        (2, 2, 2, 5),
        (1, 1, 1, 3),
        (1, 1, 4, 7),
        (3, 2, 3, 4),
        (2, 3, 2, 9),
        (2, 1, 1, 300),
        (150, 1, 1, 3),
        (1, 150, 1, 4),
    ),
    fresh=some_numbers((1, 4), (1, 4), (1, 5), (3, 20)),
    launches=lambda shape: [Launch((shape[1], shape[0], 1), (32 * shape[2], 1, 1))],
    extents=lambda shape: (32 * shape[2] * shape[1], shape[0], 1),
    is_square=lambda shape: False,
    race_free=True,
    hints=(
        "`keys` is [sequence, capacity, key head, DIM]. How many numbers lie before position p of a"
        " sequence? It does not matter how many keys a sequence has.",
        "`((sequence * capacity + p) * key_heads + key_head) * DIM + lane`: with p = length the new"
        " token's place, with p = key a place in the loop. In `new_k` there is no position.",
        "One warp appends. The others must not read before it has written: `__syncthreads()`. Then"
        " the loop goes to `key <= length`.",
        "The group of key head h begins with query head `h * group`.",
    ),
    wrong=(
        ("key_head * group + warp", "warp * key_heads + key_head", "wrong_value"),
        ("    __syncthreads();\n", "", "race"),
        ("key <= length", "key < length", "wrong_value"),
        ("capacity + length)", "capacity + length - 1)", "wrong_value"),
        ("capacity + length)", "capacity + length + 1)", "wrong_value"),
        (
            ("sequence * capacity + length)", "sequence * length + length)"),
            ("sequence * capacity + key)", "sequence * length + key)"),
            "race",
        ),
        (
            (CACHED_APPEND + "    __syncthreads();\n", ""),
            ("/ total;\n", "/ total;\n    __syncthreads();\n" + CACHED_APPEND),
            "wrong_value",
        ),
        ("        values[place] = new_v[mine];\n", "", "wrong_value"),
        ("key <= length", "key < capacity", "wrong_value"),
        (
            ("length) * key_heads + key_head)", "length) + key_head * capacity)"),
            ("key) * key_heads + key_head)", "key) + key_head * capacity)"),
            "race",
        ),
        (
            ("(sequence * capacity + length) * key_heads + key_head)", BY_HEAD.format("length")),
            ("(sequence * capacity + key) * key_heads + key_head)", BY_HEAD.format("key")),
            "wrong_value",
        ),
        ("if (warp == 0) {", "{", "duplicate_work"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Query heads take key heads in turn, head % key heads. They share them in groups:"
            " key head h belongs to query heads h * group to h * group + group - 1.",
            decoded_if(key_head=lambda head, key_heads, group: head % key_heads),
        ),
        Hypothesis(
            "wrong_value",
            "The new token is in the cache, but its query does not see it: the loop ends one key"
            " too early.",
            decoded_if(sees=0),
        ),
        Hypothesis(
            "wrong_value",
            "The new token is appended after the queries have read its place: they saw what stood"
            " there before.",
            decoded_if(stale=True),
        ),
        Hypothesis(
            "wrong_value",
            "The new token stands one place too early: positions count from 0, so behind `length`"
            " keys comes position `length`.",
            decoded_if(shift=-1),
        ),
        Hypothesis(
            "wrong_value",
            "The new token stands one place too far: positions count from 0, so behind `length`"
            " keys comes position `length`.",
            decoded_if(shift=1),
        ),
        Hypothesis(
            "wrong_value",
            "The new key is in the cache, and the new value is not.",
            decoded_if(value=False),
        ),
        Hypothesis(
            "wrong_value",
            "The cache is taken for [sequence, key head, capacity]. It is [sequence, capacity, key"
            " head]: all heads of a position lie together, and a head's next position lies"
            " key_heads * DIM numbers further.",
            decoded_if(by_head=True),
        ),
        Hypothesis(
            "wrong_value",
            "Queries see the whole capacity: behind a sequence's last key lies garbage.",
            lambda *given, capacity, **named: decoded(
                *given, capacity=capacity, **named, sees=capacity
            ),
        ),
    ),
)


# ---- attention.merge: flash-decoding's second kernel

MERGE_CU = """
// parts [part, row, dim]: results of parts of the keys, each divided by its own sum of weights.
// lse [part, row]: the logarithm of that sum; -inf: this part had no key, and wrote no result.
__global__ void merge(float* out, const float* parts, const float* lse, int count, int rows,
                      int dim) {
    int row = blockIdx.x;
    float largest = -INFINITY;
    for (int part = 0; part < count; ++part)
        largest = fmaxf(largest, lse[part * rows + row]);
    for (int x = threadIdx.x; x < dim; x += blockDim.x) {
        float total = 0, result = 0;
        for (int part = 0; part < count; ++part) {
            float own = lse[part * rows + row];
            if (own == -INFINITY)
                continue;
            float weight = expf(own - largest);
            total += weight;
            result += weight * parts[(part * rows + row) * dim + x];
        }
        out[row * dim + x] = total > 0 ? result / total : 0;
    }
}
"""


def some_parts(rng, shape):
    """shape: (parts, rows, dim). Sums of all sizes; what an empty part's result holds is garbage.

    Of every fourth row one part alone is not empty, of another none; logarithms are multiples of
    1/64, so that no difference is rounded.
    """
    count, rows, dim = shape
    level = np.resize(rng.permutation([0.0, -300.0, 300.0, 40.0]), rows)
    lse = (
        np.round(64 * (level + rng.choice([0.5, 3, 30], rows) * rng.normal(size=(count, rows))))
        / 64
    )
    lse[rng.random((count, rows)) < 0.3] = -np.inf
    kind = (np.arange(rows) + rng.integers(4)) % 4
    lse[:, kind == 0] = -np.inf
    alone = kind == 1
    lse[:, alone] = -np.inf
    lse[rng.integers(count), alone] = level[alone]
    parts = normal(rng, count, rows, dim)
    parts[np.isneginf(lse)] = rng.choice([np.nan, np.inf, 1e4])
    return {
        "out": Out((rows, dim)),
        "parts": parts,
        "lse": lse.astype(np.float32),
        "count": count,
        "rows": rows,
        "dim": dim,
    }


def merged(
    out,
    parts,
    lse,
    count,
    rows,
    dim,
    *,
    weigh=lambda lse, largest: np.exp(lse - largest),
    divide=True,
):
    """The parts' results weighted by exp(lse); 0 where all parts are empty.

    weigh: other weights of parts that are not empty. divide: whether by the sum of the weights.
    """
    lse = lse.astype(np.float64)
    empty = np.isneginf(lse)
    largest = lse.max(0)
    weights = np.where(empty, 0, weigh(lse, np.where(np.isneginf(largest), 0, largest)))
    filled = np.where(empty[..., None], 0, parts.astype(np.float64))
    total = weights.sum(0)[:, None]
    result = (weights[..., None] * filled).sum(0)
    if not divide:
        return result
    return np.divide(result, total, out=np.zeros_like(result), where=total > 0)


def merged_if(**mistake):
    """What comes out of `merged` with a mistake."""
    return lambda *given, **named: merged(*given, **named, **mistake)


def in_float32(lse, largest):
    """Weights that underflow as a kernel's do."""
    return np.exp(lse - largest).astype(np.float32).astype(np.float64)


def from_zero(lse, largest):
    """Weights in float32 that are relative to 0 where the largest lse is below 0."""
    return in_float32(lse, np.maximum(largest, 0))


def last_left_out(out, parts, lse, **sizes):
    """What comes out without the last part."""
    return merged(out, parts[:-1], lse[:-1], **sizes) if len(lse) > 1 else np.zeros_like(parts[0])


def lse_turned(out, parts, lse, count, rows, dim):
    """What comes out if `lse` is taken for [row, part]; weights are float32, for 0 * inf is NaN."""
    turned = lse.reshape(rows, count).T
    with np.errstate(invalid="ignore"):
        return merged(out, parts, turned, count, rows, dim, weigh=in_float32)


def without_largest(out, parts, lse, count, rows, dim, *, empty=0, garbage=False):
    """What comes out of exp(lse) in float32, which overflows and underflows.

    empty: the result of a row whose weights are all 0. garbage: whether empty parts count, too.
    """
    with np.errstate(all="ignore"):
        weights = np.exp(lse.astype(np.float64)).astype(np.float32)
        filled = parts if garbage else np.where(np.isneginf(lse)[..., None], 0, parts)
        result = (weights[..., None] * filled).sum(0)
        total = weights.sum(0)[:, None]
        return np.where(total > 0, result / total, empty)


def nan_without_parts(out, parts, lse, **sizes):
    """What comes out if a row whose parts are all empty divides 0 by 0."""
    answer = merged(out, parts, lse, **sizes)
    answer[np.isneginf(lse).all(0)] = np.nan
    return answer


def garbage_counts(of_no_part):
    """What comes out if an empty part's result is multiplied by its weight, 0.

    of_no_part: the result of a row whose parts are all empty.
    """

    def output(out, parts, lse, **sizes):
        empty = np.isneginf(lse)
        with np.errstate(invalid="ignore"):
            garbage = np.where(empty[..., None], parts * 0, 0).sum(0)
        answer = merged(out, parts, lse, **sizes) + garbage
        answer[empty.all(0)] = of_no_part
        return answer

    return output


MERGE = Exercise(
    id="attention.merge",
    title="Merge the parts",
    minutes=10,
    kind="cuda_c",
    kernel_name="merge",
    path="build/merge.cu",
    task=(
        "The keys of each row (a query of a head) were shared out among `count` blocks. Part p has"
        " left its result, divided by its *own* sum of weights, and `lse`, the natural logarithm of"
        " that sum. Merge them: the result that one block would have had for all keys. A part"
        " without keys has an lse of -inf, and has written no result: anything may stand there, NaN"
        " as well. A row whose parts are all empty has the result 0. Logarithms may be far above"
        " 100 and far below -100. A block has a row, and its threads share the columns. The starter"
        " takes the mean."
    ),
    starter="""
%%writefile build/merge.cu
// parts [part, row, dim]: results of parts of the keys, each divided by its own sum of weights.
// lse [part, row]: the logarithm of that sum; -inf: this part had no key, and wrote no result.
__global__ void merge(float* out, const float* parts, const float* lse, int count, int rows,
                      int dim) {
    int row = blockIdx.x;
    for (int x = threadIdx.x; x < dim; x += blockDim.x) {
        float total = 0, result = 0;
        for (int part = 0; part < count; ++part) {
            float weight = 1;  // your code: `lse` says how much this part weighs
            total += weight;
            result += weight * parts[(part * rows + row) * dim + x];
        }
        out[row * dim + x] = result / total;
    }
}
""",
    solution=MERGE_CU,
    inputs=some_parts,
    reference=merged,
    rtol=1e-4,
    specials="finite",  # empty parts hold NaN and infinity already
    shapes=(
        (4, 8, 8),
        (1, 1, 1),
        (2, 5, 3),
        (7, 9, 33),
        (3, 12, 100),
        (150, 4, 2),
        (2, 150, 3),
        (2, 3, 150),
    ),
    fresh=some_numbers((1, 20), (1, 12), (1, 90)),
    launches=lambda shape: [
        Launch((shape[1], 1, 1), (32, 1, 1)),
        Launch((shape[1], 1, 1), (64, 1, 1), "blocks of another size"),
    ],
    extents=lambda shape: (shape[1] * 64, 1, 1),
    is_square=lambda shape: False,
    race_free=True,
    effort=4,
    hints=(
        "Undo the division: what did part p have before it? Its sum of weights is `exp(lse)`. What"
        " is the sum of all parts' sums?",
        "A part weighs `exp(lse)`. To stay inside float, subtract the largest lse of the row from"
        " each: that changes numerator and denominator by the same factor.",
        "Leave out parts whose lse is -inf: 0 times NaN is NaN. If all are, `total` is 0, and the"
        " result is 0.",
    ),
    wrong=(
        ("expf(own - largest)", "1", "wrong_value"),
        ("expf(own - largest)", "expf(own)", "wrong_value"),
        ("            if (own == -INFINITY)\n                continue;\n", "", "wrong_value"),
        (
            ("            if (own == -INFINITY)\n                continue;\n", ""),
            ("total > 0 ? result / total : 0", "result / total"),
            "wrong_value",
        ),
        ("total > 0 ? result / total : 0", "result / total", "wrong_value"),
        ("expf(own - largest)", "own", "wrong_value"),
        ("float largest = -INFINITY", "float largest = 0", "wrong_value"),
        ("expf(own - largest)", "expf(largest - own)", "wrong_value"),
        ("total > 0 ? result / total : 0", "result", "wrong_value"),
        (
            (
                "            float own",
                "            if (part == count - 1) break;\n            float own",
            ),
            ("        largest = fmaxf", "        if (part < count - 1) largest = fmaxf"),
            "wrong_value",
        ),
        (
            ("largest, lse[part * rows + row]", "largest, lse[part + row * count]"),
            ("own = lse[part * rows + row]", "own = lse[part + row * count]"),
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Every part that is not empty counts alike. A part weighs as much as its sum of"
            " weights, exp(lse).",
            merged_if(weigh=lambda lse, largest: 1.0),
        ),
        Hypothesis(
            "wrong_value",
            "exp(lse) leaves what a float can hold, above 88 and below -103: subtract the row's"
            " largest lse first.",
            without_largest,
        ),
        Hypothesis(
            "wrong_value",
            "exp(lse) leaves what a float can hold, above 88 and below -103: subtract the row's"
            " largest lse first. (And a row whose parts are all empty has the result 0.)",
            lambda *given, **named: without_largest(*given, **named, empty=np.nan),
        ),
        Hypothesis(
            "wrong_value",
            "exp(lse) leaves what a float can hold, above 88 and below -103: subtract the row's"
            " largest lse first. (And leave empty parts out: what stands there may be NaN, which it"
            " stays even times 0.)",
            lambda *given, **named: without_largest(*given, **named, empty=np.nan, garbage=True),
        ),
        Hypothesis(
            "wrong_value",
            "A row whose parts are all empty becomes NaN: -inf - -inf and 0 / 0 are NaN. Its result"
            " is 0.",
            nan_without_parts,
        ),
        Hypothesis(
            "wrong_value",
            "An empty part has written no result, and what stands there is used: even times 0 it"
            " may be NaN.",
            garbage_counts(0),
        ),
        Hypothesis(
            "wrong_value",
            "An empty part has written no result, and what stands there is used: even times 0 it"
            " may be NaN. (And a row whose parts are all empty has the result 0.)",
            garbage_counts(np.nan),
        ),
        Hypothesis(
            "wrong_value",
            "The largest lse begins at a number, such as 0. All of a row's may be far below it, and"
            " then every weight is 0: begin at -inf.",
            merged_if(weigh=from_zero),
        ),
        Hypothesis(
            "wrong_value",
            "A part weighs its lse here. That is the logarithm of its sum of weights: it weighs"
            " exp(lse).",
            merged_if(weigh=lambda lse, largest: lse),
        ),
        Hypothesis(
            "wrong_value",
            "The sum over the parts is not divided by the sum of their weights.",
            merged_if(divide=False),
        ),
        Hypothesis("wrong_value", "The last part is left out.", last_left_out),
        Hypothesis(
            "wrong_value",
            "`lse` is [part, row]: of a row, parts lie `rows` numbers apart.",
            lse_turned,
        ),
    ),
)


# ---- attention.paged: where a key lies, by way of the block table

PAGED_CU = """
// Thread (x, y): key x of sequence y. keys [page of the pool, slot, dim]; page: slots of a page.
// table [sequence, pages]: which page of the pool holds the sequence's first keys, its next ...
// scores [sequence, longest]: -inf where a sequence has no key. q [sequence, dim].
__global__ void score(float* scores, const float* q, const float* keys, const int* table,
                      const int* lengths, int longest, int pages, int page, int dim) {
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int sequence = blockIdx.y;
    if (key >= longest)
        return;
    float sum = -INFINITY;
    if (key < lengths[sequence]) {
        int where = table[sequence * pages + key / page];
        const float* row = keys + (where * page + key % page) * dim;
        sum = 0;
        for (int x = 0; x < dim; ++x)
            sum += q[sequence * dim + x] * row[x];
    }
    scores[sequence * longest + key] = sum;
}
"""


def some_pages(rng, shape):
    """shape: (sequences, keys of the longest, slots of a page, dim).

    The table has one column more than the longest sequence needs. What a sequence does not need of
    its row is left from others. Pages of the pool are dealt at random, and some belong to nobody.
    """
    sequences, longest, page, dim = shape
    lengths = rng.integers(0, longest + 1, sequences)
    lengths[rng.integers(sequences)] = longest
    pages = ceil_div(longest, page) + 1
    dealt = rng.permutation(sequences * pages + 2)[: sequences * pages]
    table = dealt.reshape(sequences, pages).astype(np.int32)
    return {
        "scores": Out((sequences, longest)),
        "q": exact(rng, sequences, dim),
        "keys": exact(rng, sequences * pages + 2, page, dim),
        "table": table,
        "lengths": lengths.astype(np.int32),
        "longest": longest,
        "pages": pages,
        "page": page,
        "dim": dim,
    }


def its_place(sequence, key, table, page, longest):
    """Where in the pool a key lies, counted in keys."""
    return table[sequence, key // page] * page + key % page


def looked_up(
    scores,
    q,
    keys,
    table,
    lengths,
    longest,
    pages,
    page,
    dim,
    *,
    place=its_place,
    most=lambda length, page: length,
    query=lambda sequence: sequence,
    behind=-np.inf,
):
    """Each sequence's scores, -inf behind its end.

    place: where else a key is looked for. most: how many keys a sequence is taken to have. query:
    whose query is taken. behind: what else stands behind its end.
    """
    rows = keys.reshape(-1, dim).astype(np.float64)
    result = np.full((len(lengths), longest), behind)
    for sequence, length in enumerate(lengths.tolist()):
        for key in range(min(longest, most(length, page))):
            at = place(sequence, key, table, page, longest)
            result[sequence, key] = rows[at] @ q[query(sequence)]
    return result


def looked_up_if(**mistake):
    """What comes out of `looked_up` with a mistake."""
    return lambda *given, **named: looked_up(*given, **named, **mistake)


def rows_too_near(sequence, key, table, page, longest):
    """A key's place if the table's rows have but the full pages of the longest sequence."""
    entry = table.ravel()[sequence * (longest // page) + key // page]
    return entry * page + key % page


PAGED = Exercise(
    id="attention.paged",
    title="Through the block table",
    minutes=7,
    kind="cuda_c",
    kernel_name="score",
    path="build/paged.cu",
    task=(
        "Keys lie in pages of `page` slots, anywhere in a pool; `table[sequence, n]` says which"
        " page of the pool holds a sequence's keys n * page to n * page + page - 1. Thread (x, y)"
        " stores the score of key x of sequence y: the sum of the products of `q[y]` and that key."
        " Where a sequence has no such key, store -inf: the rest of its last page, and of its row"
        " of the table, is left from older sequences. The starter takes a sequence's keys for"
        " neighbours, as if there were no table."
    ),
    starter="""
%%writefile build/paged.cu
// Thread (x, y): key x of sequence y. keys [page of the pool, slot, dim]; page: slots of a page.
// table [sequence, pages]: which page of the pool holds the sequence's first keys, its next ...
// scores [sequence, longest]: -inf where a sequence has no key. q [sequence, dim].
__global__ void score(float* scores, const float* q, const float* keys, const int* table,
                      const int* lengths, int longest, int pages, int page, int dim) {
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int sequence = blockIdx.y;
    if (key >= longest)
        return;
    const float* row = keys + key * dim;  // your code: where does this key begin, if there is one?
    float sum = 0;
    for (int x = 0; x < dim; ++x)
        sum += q[sequence * dim + x] * row[x];
    scores[sequence * longest + key] = sum;
}
""",
    solution=PAGED_CU,
    inputs=some_pages,
    reference=looked_up,
    specials="finite",  # the -inf of the result says that there is no key
    shapes=(
        (3, 20, 4, 4),
        (1, 1, 1, 1),
        (2, 33, 16, 8),
        (5, 9, 5, 3),
        (2, 64, 8, 2),
        (4, 70, 3, 5),
        (2, 290, 140, 130),
        (150, 9, 2, 2),
    ),
    fresh=some_numbers((1, 5), (1, 80), (1, 20), (1, 8)),
    extents=lambda shape: (shape[1], shape[0], 1),
    other_block=(48, 1, 1),
    is_square=lambda shape: False,
    elements=1,
    hints=(
        "Which page of the sequence has key x, and in which slot of it? Both are divisions by"
        " `page`, one of them with `%`.",
        "The sequence's row of the table begins at `table + sequence * pages`. The entry"
        " `key / page` in it names a page of the pool.",
        "Before that page lie `where * page` keys, and before the slot `key % page` more, each of"
        " `dim` numbers. And only if `key < lengths[sequence]`.",
    ),
    wrong=(
        ("where * page + key % page", "where + key % page", "wrong_value"),
        ("table[sequence * pages + key / page]", "table[key / page]", "wrong_value"),
        (
            "sequence * pages + key / page",
            "sequence * (longest / page) + key / page",
            "wrong_value",
        ),
        (
            "key < lengths[sequence]",
            "key / page * page < lengths[sequence]",
            "wrong_value",
        ),
        ("key < lengths[sequence]", "key <= lengths[sequence]", "wrong_value"),
        ("key < lengths[sequence]", "true", "wrong_value"),
        ("where * page + key % page", "where * page + key / page", "out_of_bounds"),
        ("where * page + key % page", "where * longest + key % page", "out_of_bounds"),
        ("where * page + key % page", "key", "wrong_value"),
        ("q[sequence * dim + x]", "q[x]", "wrong_value"),
        ("    if (key >= longest)\n        return;\n", "", "race"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The page's number is not multiplied by its slots: before page n of the pool lie"
            " n * page keys.",
            looked_up_if(
                place=lambda sequence, key, table, page, longest: (
                    table[sequence, key // page] + key % page
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "All keys of a page are taken for its first one: key x is in slot x % page.",
            looked_up_if(
                place=lambda sequence, key, table, page, longest: (
                    table[sequence, key // page] * page
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Behind a sequence's last key stands 0. A softmax would give such a key a weight:"
            " store -inf.",
            looked_up_if(behind=0.0),
        ),
        Hypothesis(
            "wrong_value",
            "Every sequence looks into the first one's row of the table: its own begins at"
            " sequence * pages.",
            looked_up_if(
                place=lambda sequence, key, table, page, longest: its_place(
                    0, key, table, page, longest
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The table's rows lie `pages` entries apart, however many of them a sequence needs.",
            looked_up_if(place=rows_too_near),
        ),
        Hypothesis(
            "wrong_value",
            "The last page is taken to be full: behind a sequence's last key lies an older"
            " sequence's. Store -inf there.",
            looked_up_if(most=lambda length, page: ceil_div(length, page) * page),
        ),
        Hypothesis(
            "wrong_value",
            "A sequence has one key too many: keys count from 0, so the last one is length - 1.",
            looked_up_if(most=lambda length, page: length + 1),
        ),
        Hypothesis(
            "wrong_value",
            "A sequence has the keys of the longest one: behind its own last key, store -inf.",
            looked_up_if(most=lambda length, page: 1 << 20),
        ),
        Hypothesis(
            "wrong_value",
            "The table is not used: a sequence's keys are taken for neighbours in the pool.",
            looked_up_if(place=lambda sequence, key, table, page, longest: key),
        ),
        Hypothesis(
            "wrong_value",
            "Every sequence's keys are multiplied by the first one's query: its own begins at"
            " sequence * dim.",
            looked_up_if(query=lambda sequence: 0),
        ),
    ),
)

EXERCISES = (ONLINE, TILES, FLASH, SLOPE, CACHED, MERGE, PAGED)
