"""Exercises of the chapter Attention: one new token, a cache, its parts and its pages."""

import math
import re

import numpy as np

from course.checking.answers import replace, with_mistakes
from course.checking.inputs import exact, normal, some_numbers
from course.checking.model import (
    Exercise,
    Hypothesis,
    InOut,
    Launch,
    Out,
)
from course.checking.text import COMMENTS
from utils.occupancy import ceil_div

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
    float query = 0.25f * q[(sequence * heads + head) * DIM + lane];  // any scale would do
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
    one_place=False,
    numbers=None,
):
    """Memory after the launch, or with a mistake.

    shift: how far from its place the token is appended. sees: how many keys more than `length` a
    query sees. key_head: whose keys a head of queries takes. stale: whether queries see the cache
    as it was before. value: whether the new value is appended. by_head: whether the cache is taken
    for [sequence, head, capacity]. one_place: whether each key is read where the cache begins.
    numbers: how many of a head's are appended, where not all are.
    """
    results, keys, values, after = parts_of(memory, q, new_k, lengths, capacity, by_head)
    sequences, heads = q.shape[:2]
    group = heads // new_k.shape[1]
    before = keys.copy(), values.copy()
    for sequence, length in enumerate(lengths.tolist()):
        keys[sequence, length + shift, :, :numbers] = new_k[sequence, :, :numbers]
        if value:
            values[sequence, length + shift, :, :numbers] = new_v[sequence, :, :numbers]
    seen_k, seen_v = before if stale else (keys, values)
    for sequence, length in enumerate(lengths.tolist()):
        for head in range(heads):
            own = key_head(head, new_k.shape[1], group)
            there = slice(0, min(length + sees, capacity))
            if one_place:  # all weights are equal then
                results[sequence, head] = seen_v[0, 0, 0]
                continue
            scores = 0.25 * seen_k[sequence, there, own] @ q[sequence, head].astype(np.float64)
            weights = np.exp(scores - scores.max())
            results[sequence, head] = weights @ seen_v[sequence, there, own] / weights.sum()
    return after


decoded_if = with_mistakes(decoded)

OVERLOOKED = (
    (
        r"\A(?!.*\b__syncthreads\b).*\b__threadfence",
        "The other warps may read before the new token is in memory. A fence only orders what one"
        " thread does: nobody waits for it. What makes a whole block wait is `__syncthreads()`.",
    ),
    (
        r"\bint\s+head\s*=\s*warp\s*;",
        "The line `int head = warp` is still the starter's, so that blocks of other heads of keys"
        " write to the same results. The group of key head h begins with query head `h * group`.",
    ),
    (
        r"\bsequence\s*\*\s*length\b",
        "Sequences lie `capacity` positions apart, however many keys are in them: with"
        " `sequence * length` one sequence's place may be another's.",
    ),
)


def overlooked(source: str) -> tuple[str, str] | None:
    """(the sentence for a line that explains a race, no reason: only a run proves it), or None."""
    code = COMMENTS.sub(" ", source)
    for pattern, says in OVERLOOKED:
        if re.search(pattern, code, re.DOTALL):
            return says, ""
    return None


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
    minutes=18,
    kind="cuda_c",
    kernel_name="decode",
    path="build/cached.cu",
    task=(
        "This kernel is one step of decoding. A sequence's cache holds `lengths[sequence]`"
        " keys, and has room for `capacity`. Append the new token's key and value (let one"
        " warp do it). Then each query sees all keys, the new one as well. Heads of queries share"
        " heads of keys in groups: with 8 and 2, query heads 0 to 3 have key head 0, and 4 to 7"
        " key head 1. A block has one head of keys, and a warp for each head of queries of its"
        " group. The softmax is written. What is missing is each place in memory, and whatever"
        " makes all warps see the new token."
    ),
    starter="\n%%writefile build/cached.cu" + CACHED_STARTER,
    solution=CACHED_CU,
    inputs=caches,
    reference=decoded,
    slip=overlooked,
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
        # A fence orders what one thread does: nobody waits for it
        ("__syncthreads()", "__threadfence()", "race"),
        ("__syncthreads()", "__threadfence_block()", "race"),
        ("    }\n    __syncthreads();\n", "        __threadfence();\n    }\n", "race"),
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
        (
            "((sequence * capacity + key) * key_heads + key_head) * DIM + lane",
            "lane",
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
            "A query sees one key too many: behind the new token, at position `length`, lies"
            " garbage. (Is `length` changed, and the loop's end as well?)",
            decoded_if(sees=2),
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
            "Every key is read where the cache begins: `place = lane` in the loop is still the"
            " starter's. Key number `key` of this head and sequence lies"
            " `((sequence * capacity + key) * key_heads + key_head) * DIM` numbers further.",
            decoded_if(one_place=True),
        ),
        Hypothesis(
            "wrong_value",
            "Of the new key and value only the first number is appended. A head has DIM numbers,"
            " one for each lane of the warp.",
            decoded_if(numbers=1),
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


merged_if = with_mistakes(merged)


def in_float32(lse, largest):
    """Weights that underflow as a kernel's do."""
    return np.exp(lse - largest).astype(np.float32).astype(np.float64)


def from_zero(lse, largest):
    """Weights in float32 that are relative to 0 where the largest lse is below 0."""
    return in_float32(lse, np.maximum(largest, 0))


def merged_from_the_first(*given, **named):
    """With weights relative to the first part's: NaN where it is empty, or far below another."""
    with np.errstate(all="ignore"):
        return merged(*given, **named, weigh=lambda lse, largest: in_float32(lse, lse[0]))


def last_left_out(out, parts, lse, **sizes):
    """What comes out without the last part."""
    return merged(out, parts[:-1], lse[:-1], **sizes) if len(lse) > 1 else np.zeros_like(parts[0])


def lse_turned(out, parts, lse, count, rows, dim):
    """What comes out if `lse` is taken for [row, part]; weights are float32, for 0 * inf is NaN."""
    turned = lse.reshape(rows, count).T
    with np.errstate(invalid="ignore"):
        return merged(out, parts, turned, count, rows, dim, weigh=in_float32)


def one_lse_for_all_rows(out, parts, lse, count, rows, dim):
    """What comes out if the row is left out of lse's place."""
    alike = np.repeat(lse.reshape(-1)[:count, None], rows, 1)
    with np.errstate(invalid="ignore"):
        return merged(out, parts, alike, count, rows, dim, weigh=in_float32)


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


def bare_logarithms(out, parts, lse, **sizes):
    """What comes out if each part weighs its lse, -inf as well, and none is left out."""
    weights = lse.astype(np.float64)[..., None]
    with np.errstate(all="ignore"):
        return (weights * parts).sum(0) / weights.sum(0)


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
    minutes=9,
    kind="cuda_c",
    kernel_name="merge",
    path="build/merge.cu",
    task=(
        "The keys of each row (a query of a head) were shared out among `count` blocks. Part p"
        " has left its result, divided by its *own* sum of weights, and `lse`, the natural"
        " logarithm of that sum. Merge them into the result that one block would have had. A"
        " part without keys has an lse of -inf, and no result: anything may stand there, NaN as"
        " well. A row whose parts are all empty has the result 0. Logarithms may be far above"
        " 100 and far below -100. The starter takes the mean."
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
        (
            ("            if (own == -INFINITY)\n                continue;\n", ""),
            ("expf(own - largest)", "own"),
            ("total > 0 ? result / total : 0", "result / total"),
            "wrong_value",
        ),
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
            "Weights are relative to the first part's lse. That part may be empty, or so far below"
            " the others that exp overflows: subtract the row's largest lse.",
            merged_from_the_first,
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
            "These are powers of 2. lse is the natural logarithm: a part weighs a power of e, which"
            " `expf` gives.",
            merged_if(weigh=lambda lse, largest: 2.0 ** (lse - largest)),
        ),
        Hypothesis(
            "wrong_value",
            "A part weighs its lse here. That is the logarithm of its sum of weights: it weighs"
            " exp(lse).",
            merged_if(weigh=lambda lse, largest: lse),
        ),
        Hypothesis(
            "wrong_value",
            "A part weighs its lse here. That is the logarithm of its sum of weights: it weighs"
            " exp(lse). (And leave empty parts out, whose lse is -inf.)",
            bare_logarithms,
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
        Hypothesis(
            "wrong_value",
            "All rows are weighed alike: `lse` is [part, row], and the row is left out of the place"
            " that is read.",
            one_lse_for_all_rows,
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


def row_not_multiplied(sequence, key, table, page, longest):
    """That place if a sequence's row of the table begins at entry `sequence`."""
    return table.flat[sequence + key // page] * page + key % page


MISREAD = (
    (
        r"\btable\s*\[[^][]*\bkey\s*%\s*page\s*\]",
        "/ and % change places: `key / page` says which of the sequence's pages it is, and so the"
        " entry of the table; `key % page` says in which slot of that page.",
    ),
    (
        r"\btable\s*(\[|\+)[^][]*\b(sequence\s*\*\s*longest|longest\s*\*\s*sequence)\b",
        "A sequence's row of the table has `pages` entries, one for each page, and not `longest`:"
        " it begins at `sequence * pages`.",
    ),
)


def misread(source: str) -> tuple[str, str] | None:
    """(the sentence for a line that looks into the table at a wrong place, its reason), or None.

    What such a kernel reads may lie behind an array's end, so that its values tell little.
    """
    code = COMMENTS.sub(" ", source)
    for pattern, says in MISREAD:
        if re.search(pattern, code):
            return says, "wrong_value"
    return None


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


looked_up_if = with_mistakes(looked_up)


def rows_too_near(sequence, key, table, page, longest):
    """A key's place if the table's rows have but the full pages of the longest sequence."""
    entry = table.ravel()[sequence * (longest // page) + key // page]
    return entry * page + key % page


PAGED = Exercise(
    id="attention.paged",
    title="Through the block table",
    minutes=8,
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
    slip=misread,
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
        ("sequence * pages + key / page", "sequence * longest + key / page", "wrong_value"),
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
            "The sequence is not multiplied by its row's length: sequence s begins at entry"
            " s * pages of the table.",
            looked_up_if(place=row_not_multiplied),
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
