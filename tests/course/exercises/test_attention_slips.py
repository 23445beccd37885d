"""Mistakes that readers of the chapter Attention made: the check says what each of them is."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import numpy as np
import pytest

from course.checking.answers import changed, source_of
from course.checking.checker import check_answer
from course.exercises import EXERCISES
from course.exercises.attention_backward import D_BY_A_WALK, a_way_back
from course.exercises.attention_flash import LEFT_EARLY

pytestmark = pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
OWN = "            float own = lse[part * rows + row];\n"
SKIP = "            if (own == -INFINITY)\n                continue;\n"
GUARDED = "result / total if total > 0 else np.float32(0)"
FACTOR = ("math.exp(largest - new)", "math.exp(new - largest)")
POWERS_OF_2 = [
    ("math.exp(largest - new)", "2.0 ** (largest - new)"),
    ("math.exp(scores[row, key] * scale - new)", "2.0 ** (scores[row, key] * scale - new)"),
]
#: Of flash attention: the tile's tail is filled with zeros, and then taken for keys
ZEROS_BEHIND = (
    "            if first + j // 4 < keys:\n",
    "            tile_k[j // 4, j % 4] = 0\n            tile_v[j // 4, j % 4] = 0\n"
    "            if first + j // 4 < keys:\n",
)
ALL_BUT_CAUSAL = (
    "range(min(8, sees - first))",
    "range(min(8, sees - first) if causal else 8)",
)
#: Of flash attention: nothing is repaired when a larger score comes
FORGOTTEN = [
    ("total * factor + weight", "total + weight"),
    ("result[x] * factor +", "result[x] +"),
]
GUARDED_ROW = "result[x] / total if total != 0 else np.float32(0)"
UNSCALED = ("new = max(new, scores[row, key] * scale)", "new = max(new, scores[row, key])")
AHEAD = "int ahead = keys[sequence] - queries[sequence];"
PLACE = "((sequence * capacity + key) * key_heads + key_head) * DIM + lane"
BARRIER_INSIDE = "        values[place] = new_v[mine];\n        __syncthreads();\n    }\n"
SLIPS = [
    ("attention.online", [UNSCALED], "taken before it is scaled"),
    (
        "attention.online",
        [("math.exp(scores[row, key] * scale - new)", "math.exp(scores[row, key] - new)")],
        "and the scores in the weights are not",
    ),
    ("attention.online", [FACTOR], "The factor is upside down"),
    (
        "attention.online",
        [FACTOR, (GUARDED, "result / np.float32(total)")],
        "The factor is upside down",
    ),
    (
        "attention.slope",
        [("math.exp(scale * score - lse[i])", "math.exp(scale * score) / lse[i]")],
        "which is the *logarithm* of the row's sum",
    ),
    (
        "attention.slope",
        [("weight * (dp - delta)", "weight * dp - delta")],
        "the weight multiplies both",
    ),
    (
        "attention.slope",
        [("math.exp(scale * score - lse[i])", "2.0 ** (scale * score - lse[i])")],
        "These are powers of 2",
    ),
    ("attention.cached", [(PLACE, "lane")], "Every key is read where the cache begins"),
    (
        "attention.merge",
        [
            (OWN + SKIP, OWN),
            ("expf(own - largest)", "own"),
            ("total > 0 ? result / total : 0", "result / total"),
        ],
        "A part weighs its lse here",
    ),
    (
        "attention.tiles",
        [
            (AHEAD, "int there = keys[sequence];"),
            ("max(0, first + 1 + ahead)", "min(there, first + 1)"),
            ("max(0, last + 1 + ahead)", "min(there, last + 1)"),
        ],
        "Right only where a sequence has as many keys as queries",
    ),
    (
        "attention.tiles",
        [
            (AHEAD, "int there = keys[sequence];"),
            ("max(0, first + 1 + ahead)", "(first + 1)"),
            ("max(0, last + 1 + ahead)", "min(there, last + 1)"),
        ],
        "query i sees keys up to i + keys - queries",
    ),
    ("attention.merge", [("expf(own - largest)", "exp2f(own - largest)")], "are powers of 2"),
    ("attention.merge", [("expf(own - largest)", "expf(own - lse[row])")], "the first part's lse"),
    ("attention.slope", [("dout[i, x] * out[i, x]", "out[i, x]")], "here dO is left out"),
    (
        "attention.paged",
        [("sequence * pages + key / page", "sequence + key / page")],
        "s * pages of the table",
    ),
    (
        "attention.paged",
        [("sequence * pages + key / page", "sequence * longest + key / page")],
        "it begins at `sequence * pages`",
    ),
    ("attention.online", [(UNSCALED[0], "new = np.float32(0)")], "is subtracted"),
    ("attention.cached", [("if (warp == 0)", "if (threadIdx.x == 0)")], "only the first number"),
    ("attention.cached", [("__syncthreads()", "__threadfence()")], "nobody waits for it"),
    ("attention.cached", [("key_head * group + warp", "warp")], "is still the starter's"),
    (
        "attention.cached",
        [
            ("sequence * capacity + length)", "sequence * length + length)"),
            ("sequence * capacity + key)", "sequence * length + key)"),
        ],
        "`capacity` positions apart",
    ),
    (
        "attention.cached",
        [("__syncthreads();", "__syncthreads();\n    ++length;")],
        "one key too many",
    ),
    (
        "attention.cached",
        [("        values[place] = new_v[mine];\n    }\n    __syncthreads();\n", BARRIER_INSIDE)],
        "inside a branch makes only those threads wait",
    ),
    (
        "attention.slope",
        [("math.exp(scale * score - lse[i])", "math.exp(scale * score) / math.exp(lse[i])")],
        "Right only while scores are small",
    ),
    (
        "attention.merge",
        [
            ("largest, lse[part * rows + row]", "largest, lse[part]"),
            ("own = lse[part * rows + row]", "own = lse[part]"),
        ],
        "weighed alike",
    ),
    ("attention.online", POWERS_OF_2, "These are powers of 2"),
    (
        "attention.online",
        [("            new = largest\n", "            new = np.float32(-math.inf)\n")],
        "Each tile takes its own largest score",
    ),
    ("attention.flash", [LEFT_EARLY], "neither loads for the others nor waits with them"),
    (
        "attention.paged",
        [
            ("sequence * pages + key / page", "sequence * pages + key % page"),
            ("where * page + key % page", "where * page + key / page"),
        ],
        "change places",
    ),
    (
        "attention.flash",
        [("range(min(8, sees - first))", "range(min(8, sees + 1 - first))")],
        "takes one key too many",
    ),
    ("attention.flash", [ZEROS_BEHIND, ALL_BUT_CAUSAL], "no zeros behind"),
    ("attention.flash", [("np.float32(-math.inf)", "np.float32(0)")], "begin at -inf"),
    ("attention.flash", FORGOTTEN, "Neither the sum of weights nor that of values is rescaled"),
    ("attention.flash", [FACTOR], "The factor is upside down"),
    (
        "attention.flash",
        [FACTOR, (GUARDED_ROW, "result[x] / np.float32(total)")],
        "The factor is upside down",
    ),
    ("attention.slope", [("result[x] += scale", "result[x] = scale")], "Only the last key"),
    ("attention.deal", [("        busy[sm] += lengths[tile]\n", "")], "All tiles go to one SM"),
    (
        "attention.flash",
        [("max(largest, score)", "np.float32(0)"), ("exp(largest - new)", "exp(new)")],
        "No largest score is subtracted",
    ),
    (
        "attention.deal",
        [
            ("        whose[tile] = sm\n", "        whose.append(sm)\n"),
            ("[0] * len(lengths)", "[]"),
        ],
        "in the order in which tiles are dealt out",
    ),
]


AGAIN = pytest.mark.nightly("by day on the inputs of one seed")


@pytest.mark.one_in(4, "each is another reader's mistake, found by the same means")
@pytest.mark.parametrize("id, changes, words", SLIPS, ids=[f"{s[0]}-{s[2]}" for s in SLIPS])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=AGAIN)])
def test_a_reader_s_mistake_is_named(id, changes, words, seed, tmp_path, small):
    exercise = small(EXERCISES[id])
    answer = changed(exercise.solution, *changes)
    if exercise.kind == "cuda_c":
        path = tmp_path / "answer.cu"
        path.write_text(answer)
        answer = path
    outcome = check_answer(exercise, answer, seed)
    assert not outcome.solved
    assert words in repr(outcome)


def said_of(exercise, answer, seed):
    """What a learner is told of an answer that was not accepted."""
    outcome = check_answer(exercise, answer, seed)
    assert not outcome.solved
    return repr(outcome)


def starter_of(exercise):
    """The starter as it stands in its cell."""
    solution = source_of(exercise.solution.py_func)
    return changed(exercise.solution, (solution, exercise.starter.strip() + "\n"))


MORE_SEEDS = [pytest.param(seed, marks=AGAIN) for seed in range(2, 8)]


@pytest.mark.parametrize("seed", [1, 240154427, *MORE_SEEDS])
def test_a_starter_that_adds_nothing_is_told_nothing_untrue(seed, small):
    """Of flash attention: it begins at -inf, and takes no zeros behind the last key for keys."""
    exercise = small(EXERCISES["attention.flash"])
    said = said_of(exercise, starter_of(exercise), seed)
    assert "no key gets into the sums" in said
    assert "begin at -inf" not in said and "factor" not in said


#: Of online softmax: the largest score begins far below all, and the scale is outside of it
BEGUN_LOW = [
    ("np.float32(-math.inf)", "np.float32(-1e30)"),
    ("if new != -math.inf:", "if True:"),
    ("new = max(new, scores[row, key] * scale)", "new = max(new, scores[row, key])"),
    ("math.exp(largest - new)", "math.exp(scale * (largest - new))"),
    ("math.exp(scores[row, key] * scale - new)", "math.exp(scale * (scores[row, key] - new))"),
]


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
def test_the_largest_score_may_begin_at_a_number_below_all_others(seed, small):
    exercise = small(EXERCISES["attention.online"])
    assert check_answer(exercise, changed(exercise.solution, *BEGUN_LOW), seed).solved


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
def test_a_second_walk_for_d_is_refused_as_such_and_its_values_are_right(seed, small):
    exercise = small(EXERCISES["attention.slope"])
    outcome = check_answer(exercise, changed(exercise.solution, D_BY_A_WALK), seed)
    assert outcome.reason == "other_means"
    assert "it is dO times O" in repr(outcome) and "expected" not in repr(outcome)


def test_far_from_0_an_lse_is_a_float_and_no_weight_is_nearly_1():
    """There D as the sum of P dP is as good as dO times O."""
    rng = np.random.default_rng(22)
    for shape in ((20, 33), (7, 64)):
        given = a_way_back(rng, shape)
        q, k, v, dout, out, lse = (
            given[name].astype(np.float64) for name in ("q", "k", "v", "dout", "out", "lse")
        )
        scores = given["scale"] * q @ k.T
        assert (np.abs(scores) > 900).all()
        weights = np.exp(scores - lse[:, None])
        assert weights.max() < 0.95 and np.abs(weights.sum(1) - 1).max() < 1e-6
        by_keys = (weights * (dout @ v.T)).sum(1)
        assert np.abs(by_keys - (dout * out).sum(1)).max() < 1e-6


NO_END = ("range(min(8, sees - first))", "range(8)")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=AGAIN) for seed in (1, 2, 3))])
def test_flash_attention_that_takes_whole_tiles_gets_a_reason(seed, small):
    """Which of its two mistakes shows depends on the first inputs that go wrong."""
    exercise = small(EXERCISES["attention.flash"])
    said = repr(check_answer(exercise, changed(exercise.solution, NO_END), seed))
    assert any(
        words in said
        for words in ("there is no mask", "left behind it is taken", "All 8 keys of each tile")
    )


EACH_QUERY = """
    int first = tile * height, unmasked = keys[sequence] / width, end = 0;
    if (first >= queries[sequence])
        unmasked = 0;
    for (int i = first; i < min((tile + 1) * height, queries[sequence]); ++i) {
        int sees = max(0, i + 1 + keys[sequence] - queries[sequence]);
        unmasked = min(unmasked, sees / width);
        end = max(end, (sees + width - 1) / width);
    }
"""


@pytest.mark.parametrize("seed", [1, *MORE_SEEDS])
def test_tiles_may_ask_each_query_and_read_the_lengths_again(seed, tmp_path):
    exercise = EXERCISES["attention.tiles"]
    head, tail = exercise.solution.index("        return;\n"), exercise.solution.rindex("    out[")
    tail = exercise.solution.rindex("    out[", 0, tail)
    answer = exercise.solution[:head] + "        return;\n" + EACH_QUERY + exercise.solution[tail:]
    path = tmp_path / "answer.cu"
    path.write_text(answer)
    assert check_answer(exercise, path, seed).solved
