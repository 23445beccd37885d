"""Exercises of the chapter Attention: tiles of queries and keys, and no matrix of scores."""

import math
from dataclasses import replace as replaced

import numpy as np
from numba import cuda

from course.checking.inputs import normal, some_numbers
from course.checking.model import (
    Demand,
    Exercise,
    Hypothesis,
    Launch,
    Out,
    cover,
)
from course.exercises.attention_online import TILE, plain_softmax, walked
from utils.occupancy import ceil_div

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
    *,
    first_sees=1,
    last_sees=1,
    moved=True,
    clipped=False,
    inside=True,
    behind=False,
    whole=down,
    end=up,
):
    """What comes out of other bounds.

    first_sees, last_sees: keys that a query i sees, less i + keys - queries. moved: whether the
    diagonal is moved by keys - queries. clipped: whether no query sees more keys than there are;
    "end": whether that is so where the loop ends, and not of tiles without a mask.
    inside: whether the last query is kept inside the sequence.
    behind: whether tiles behind the sequence are counted, too. whole, end: how tiles are counted.
    """

    def output(out, queries, keys, most, height, width):
        result = np.zeros((len(keys), most, 2), np.int32)
        for sequence, (n_q, n_k) in enumerate(zip(queries.tolist(), keys.tolist(), strict=True)):
            ahead = n_k - n_q if moved else 0
            tiles = result.shape[1] if behind else ceil_div(n_q, height)
            first = height * np.arange(tiles)
            last = np.minimum(first + height, n_q if inside else 1 << 30) - 1
            first_most = n_k if clipped is True else 1 << 30
            last_most = n_k if clipped else 1 << 30
            fewest = np.minimum(first + first_sees + ahead, first_most)
            largest = np.minimum(last + last_sees + ahead, last_most)
            result[sequence, :tiles, 0] = whole(fewest, width)
            result[sequence, :tiles, 1] = end(largest, width)
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
    minutes=12,
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
    effort=20,  # a length read again in each round of a loop is right, too
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
            ("int ahead = keys[sequence] - queries[sequence]", "int there = keys[sequence]"),
            ("max(0, first + 1 + ahead)", "min(there, first + 1)"),
            ("max(0, last + 1 + ahead)", "min(there, last + 1)"),
            "wrong_value",
        ),
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
            "Right only where a sequence has as many keys as queries. In general the diagonal is"
            " moved: query i sees keys up to i + keys - queries.",
            bounds_if(moved=False, clipped=True),
        ),
        Hypothesis(
            "wrong_value",
            "Right only where a sequence has as many keys as queries. In general the diagonal is"
            " moved: query i sees keys up to i + keys - queries.",
            bounds_if(moved=False, clipped="end"),
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
FLOAT_VANISHES = -104  # exp of less is 0 in a float32
SPLIT = 6  # queries: of every second one all scores are far above 0, of the others far below
SPREADS = {SPLIT: 30.0, 12: 1.0}  # of their numbers, where it is not drawn: scores of either kind


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
            out[i, x] = result[x] / total if total != 0 else np.float32(0)


def heads_of_rows(rng, shape):
    """shape: (queries, keys, whether it is causal). Scores of all sizes, on both sides of 0.

    Numbers of q and k are small multiples of 1/4, and the scale is a power of two, so that no score
    is rounded. `SPLIT` queries always have scores far below 0 and far above it in turn, so that a
    kernel in which the largest score begins at 0 is not taken for one that stores zeros.
    """
    queries, keys, causal = shape
    spread = SPREADS.get(queries) or rng.choice([1.0, 30.0])
    q = np.round(spread * rng.normal(size=(queries, FLASH_DIM)) * 4) / 4
    k = np.round(spread * rng.normal(size=(keys, FLASH_DIM)) * 4) / 4
    if queries == SPLIT or rng.random() < 0.5:  # scores far below 0
        q, k = -np.abs(q) - spread, np.abs(k) + spread
    if queries == SPLIT:
        q[1::2] *= -1
    if queries > 6 and rng.random() < 0.3:  # below every int32, and above; not in a first launch
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
    return walked(scores_of(q, k, scale, causal, sees), v, 1.0, **wrong)


def scores_of(q, k, scale, causal, sees=lambda row, queries, keys: row + 1 + keys - queries):
    """The scores of one head, in float64; -inf of keys that a causal query does not see."""
    scores = scale * q.astype(np.float64) @ k.astype(np.float64).T
    if causal:
        row = np.arange(len(q))[:, None]
        scores[np.arange(len(k)) >= sees(row, len(q), len(k))] = -np.inf
    return scores


def head_if(**mistake):
    """What comes out of `one_head` with a mistake."""
    return lambda out, q, k, v, scale, causal: one_head(
        out, q, k, v, **{"scale": scale, "causal": causal, **mistake}
    )


def begun_at_0(out, q, k, v, scale, causal):
    """What comes out if the largest score begins at 0: nothing of a row far below it."""
    answer = one_head(out, q, k, v, scale, causal, start=0)
    most = scores_of(q, k, scale, causal).max(1, initial=-np.inf)
    answer[most < FLOAT_VANISHES] = 0
    return answer


def upside_down(without):
    """What comes out if the factor is exp(new - largest): NaN, from the first key on.

    without: the result of a query that sees no key.
    """

    def output(out, q, k, v, scale, causal):
        answer = np.full(out.shape, np.nan)
        answer[: keyless(q, k, causal)] = without
        return answer

    return output


def keyless(q, k, causal):
    """How many queries see no key: the first ones."""
    return max(0, len(q) - len(k)) if causal or not len(k) else 0


def nothing_subtracted(out, q, k, v, scale, causal):
    """What comes out if weights are exp(score): sums of values, in float32, overflow."""
    return plain_softmax(scores_of(q, k, scale, causal), v, np.float32)


def nan_without_keys(out, q, k, v, scale, causal):
    """What comes out if a query that sees no key divides 0 by 0."""
    answer = one_head(out, q, k, v, scale, causal)
    answer[: keyless(q, k, causal)] = np.nan
    return answer


def with_tail(tail_of, masked=True):
    """What comes out if the last tile's tail is taken for keys: tail_of(k or v, how many rows).

    masked: whether causal queries see none of it, nor other later keys.
    """

    def output(out, q, k, v, scale, causal):
        rows = -len(k) % TILE
        causal = causal and masked
        if causal or not len(k):
            return one_head(out, q, k, v, scale, causal)
        k, v = (np.concatenate([these, tail_of(these, rows)]) for these in (k, v))
        return one_head(out, q, k, v, scale, causal)

    return output


def left_behind(rows_of_keys, rows):
    """What a last tile of so few keys still holds of the tile before; nothing where it is first."""
    first = len(rows_of_keys) - TILE
    return rows_of_keys[first : first + rows] if first >= 0 else rows_of_keys[:0]


def one_too_many(out, q, k, v, scale, causal):
    """What comes out if a query takes sees + 1 keys, of a last tile's tail one that was left."""
    queries, keys = len(q), len(k)
    k, v = (np.concatenate([these, left_behind(these, min(1, -keys % TILE))]) for these in (k, v))
    scores = scores_of(q, k, scale, causal, lambda row, *_: row + 2 + keys - queries)
    return walked(scores, v, 1.0)


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
LEFT_EARLY = (
    "    for first in range(0, keys, 8):\n",
    "    if i >= queries:\n        return\n    for first in range(0, keys, 8):\n",
)
NEITHER_SUM = "Neither the sum of weights nor that of values is rescaled"
FLASH = Exercise(
    id="attention.flash",
    title="Flash attention",
    minutes=15,
    task=(
        "One head with 4 columns: thread i has query i, and writes row i of `out`, the mean of"
        " the rows of `v` that it sees, weighted by `exp(score - largest)`. A score is `scale`"
        " times the product of `q[i]` and `k[key]`. In the loop all threads of a block first"
        " bring a tile of 8 keys and 8 values together: that is written. Then they wait. Then"
        " each takes the keys that its query sees into its sums, as in *One pass over a row*."
        " The last tile may be partly filled. A query that sees no key has the result 0."
    ),
    starter="""
@cuda.jit
def flash(out, q, k, v, scale, causal):
    tile_k = cuda.shared.array((8, 4), np.float32)
    tile_v = cuda.shared.array((8, 4), np.float32)
    own = cuda.local.array(4, np.float32)
    result = cuda.local.array(4, np.float32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    i = cuda.grid(1)
    queries, keys = q.shape[0], k.shape[0]
    sees = min(keys, i + 1 + keys - queries) if causal else keys  # how many keys query i sees
    largest = np.float32(-math.inf)
    total = np.float32(0)
    for x in range(4):
        own[x] = q[i, x] if i < queries else np.float32(0)
        result[x] = 0
    for first in range(0, keys, 8):
        # 1. Together: a tile has 8 * 4 numbers. Number j is column j % 4 of key first + j // 4
        for j in range(t, 8 * 4, threads):
            if first + j // 4 < keys:
                tile_k[j // 4, j % 4] = k[first + j // 4, j % 4]
                tile_v[j // 4, j % 4] = v[first + j // 4, j % 4]
        # 2. your code: nobody goes on before all have loaded
        # 3. your code: of the tile, the keys that query i sees; nobody loads before all are done
    if i < queries:
        for x in range(4):
            out[i, x] = result[x] / total if total != 0 else np.float32(0)
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
        "Who uses a tile must wait until all have loaded it, and who loads the next one until all"
        " have used this one: two barriers, to which threads without a query must come as well.",
        "So step 3 begins with `if i < queries:`, and the second barrier stands behind it, at"
        " the end of the loop, outside of that `if`.",
        "Of a tile query i takes `for key in range(min(8, sees - first))`: that masks the diagonal"
        " and the tail of the last tile at once, and is no key at all where the number is below 0.",
        "For each key: the score, `new = max(largest, score)`, `factor = math.exp(largest - new)`,"
        " `weight = math.exp(score - new)`. Then `total = total * factor + weight`, the same for"
        " each `result[x]` with `weight * tile_v[key, x]`, and `largest = new`.",
    ),
    wrong=(
        ("i + 1 + keys - queries", "i + keys - queries", "wrong_value"),
        ("i + 1 + keys - queries", "i + 2 + keys - queries", "wrong_value"),
        ("i + 1 + keys - queries", "i + 1", "wrong_value"),
        ("min(keys, i + 1 + keys - queries) if causal else keys", "keys", "wrong_value"),
        (
            "range(min(8, sees - first))",
            "range(8)",
            "wrong_value",
        ),
        ("range(min(8, sees - first))", "range(min(8, sees + 1 - first))", "wrong_value"),
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
        (
            ("total * factor + weight", "total + weight"),
            ("result[x] * factor +", "result[x] +"),
            "wrong_value",
        ),
        ("math.exp(largest - new)", "math.exp(new - largest)", "wrong_value"),
        ("np.float32(-math.inf)", "np.float32(0)", "wrong_value"),
        (
            "result[x] / total if total != 0 else np.float32(0)",
            "result[x] / np.float32(total)",
            "wrong_value",
        ),
        ("weight * tile_v[key, x]", "weight * v[first + key, x]", "too_much_traffic"),
        ("range(t, 8 * 4, threads)", "range(8 * 4)", "race"),
        ("range(0, keys, 8)", "range(0, keys if i < queries else 0, 8)", "barrier"),
        (
            (SYNC + FLASH_LOAD, FLASH_LOAD),
            ("largest = new\n", "largest = new\n            cuda.syncthreads()\n"),
            "barrier",
        ),
        (*LEFT_EARLY, "uninitialized"),
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
            "Every query takes one key too many: it sees the first `sees` keys, 0 to sees - 1. Of"
            " the last tile that is what the tile before left.",
            one_too_many,
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
            NEITHER_SUM + " when a larger score comes: what was added up before it is relative to"
            " a smaller one.",
            head_if(rescale_total=False, rescale_result=False, tile=1),
        ),
        Hypothesis(
            "wrong_value",
            NEITHER_SUM + " when a tile brings a larger score: what was added up before it is"
            " relative to a smaller one.",
            head_if(rescale_total=False, rescale_result=False),
        ),
        Hypothesis(
            "wrong_value",
            "Where all scores are far below 0 every weight is 0, as if a score of 0 were among"
            " them. The largest score has to begin at -inf, and not at 0; and no zeros behind the"
            " keys of the last tile may count as keys.",
            begun_at_0,
        ),
        Hypothesis(
            "wrong_value",
            "No largest score is subtracted: exp(score), and its sums, leave what a number can"
            " hold, above and below.",
            nothing_subtracted,
        ),
        Hypothesis(
            "wrong_value",
            "The last tile is partly filled, and what the tile before has left behind it is taken"
            " for keys: mask it.",
            with_tail(left_behind),
        ),
        Hypothesis(
            "wrong_value",
            "All 8 keys of each tile are taken. Two things are missing: the mask of a causal"
            " launch, and the end of the last tile, behind whose keys stands what the tile"
            " before left.",
            with_tail(left_behind, masked=False),
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
        *(
            Hypothesis(
                "wrong_value",
                "The factor is upside down: old sums shrink by exp(largest - new). At a row's first"
                " key exp(new - largest) is infinite, and 0 times infinity stays NaN.",
                upside_down(without),
            )
            for without in (0, np.nan)
        ),
        Hypothesis(
            "wrong_value",
            "Every result is 0: no key gets into the sums.",
            lambda out, q, k, v, scale, causal: np.zeros(out.shape),
        ),
    ),
)
