"""The exercises of the chapter A language model."""

import numpy as np
from numba import cuda

from course.checking.answers import with_mistakes
from course.checking.inputs import normal, some_numbers, whole
from course.checking.model import Exercise, Hypothesis, InOut, Launch, Out, Wrong
from course.exercises.language_model_questions import QUIZZES as QUIZZES
from course.exercises.language_model_waits import slip
from utils.occupancy import ceil_div

PAGE = 16  # positions of a page

# ---- language_model.turn: rotary positions, in Llama's order of pairs

TURN_CU = """
// x, out [row, head, number]: a row is a token. position [row]. Block (x, y): head y of row x.
__global__ void turn(float* out, const float* x, const int* position, int size, float theta) {
    int half = size / 2;  // size: numbers of a head
    int begins = (blockIdx.x * gridDim.y + blockIdx.y) * size;
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        float angle = position[blockIdx.x] * powf(theta, -2.0f * i / size);
        float left = x[begins + i];
        float right = x[begins + half + i];
        out[begins + i] = left * cosf(angle) - right * sinf(angle);
        out[begins + half + i] = right * cosf(angle) + left * sinf(angle);
    }
}
"""


def some_heads(rng, shape):
    """shape: (rows, heads, pairs of a head). Positions of any order, small enough for float32."""
    rows, heads, pairs = shape
    return {
        "out": Out((rows, heads, 2 * pairs)),
        "x": normal(rng, rows, heads, 2 * pairs),
        "position": whole(rng, 0, 100, rows),
        "size": 2 * pairs,
        "theta": float(rng.choice([100.0, 10_000.0])),
    }


def in_halves(x):
    """(left, right) numbers of each pair."""
    return np.split(x, 2, -1)


def neighbours(x):
    """Pairs of numbers that lie side by side: another order, which other models have."""
    return x[..., ::2], x[..., 1::2]


def put_halves(left, right):
    """The pairs' numbers in their places again."""
    return np.concatenate([left, right], -1)


def put_neighbours(left, right):
    """The same where a pair's numbers are neighbours."""
    return np.stack([left, right], -1).reshape(*left.shape[:-1], -1)


def signs(first, second):
    """A turn with these signs of the two sines; a real one has -1 and 1."""

    def turn(left, right, cos, sin):
        return left * cos + first * right * sin, right * cos + second * left * sin

    return turn


def turned(
    out,
    x,
    position,
    size,
    theta,
    *,
    pairs=in_halves,
    put=put_halves,
    exponent=lambda i, size: -2 * i / size,
    at=lambda position: position,
    turn=None,
):
    """Each pair of each head turned by position * theta ** (-2 i / size), or with a mistake."""
    left, right = pairs(x.astype(np.float64))
    powers = float(theta) ** exponent(np.arange(size // 2), size)
    angle = (at(position)[:, None] * powers)[:, None]
    turn = turn or signs(-1, 1)
    return put(*turn(left, right, np.cos(angle), np.sin(angle)))


turned_if = with_mistakes(turned)


def one_after_the_other(left, right, cos, sin):
    """A turn whose second number is made with the first one's new value."""
    new = left * cos - right * sin
    return new, right * cos + new * sin


TURN = Exercise(
    id="language_model.turn",
    title="Turn the pairs",
    minutes=7,
    kind="cuda_c",
    kernel_name="turn",
    path="build/turn.cu",
    task=(
        "Turn queries and keys by their position. A head has `size` numbers. Pair i is number i and"
        " number i + size / 2 (Llama's order), and is turned by an angle of"
        " `position[row] * theta ** (-2 i / size)`: a pair (left, right) becomes (left cos - right"
        " sin, right cos + left sin). Block (x, y) has head y of row x, and any number of threads."
        " The starter takes neighbours as a pair, as some other models do, and as the weights do"
        " not expect it."
    ),
    starter="""
%%writefile build/turn.cu
// x, out [row, head, number]: a row is a token. position [row]. Block (x, y): head y of row x.
__global__ void turn(float* out, const float* x, const int* position, int size, float theta) {
    int half = size / 2;  // size: numbers of a head
    int begins = (blockIdx.x * gridDim.y + blockIdx.y) * size;
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        float angle = position[blockIdx.x] * powf(theta, -2.0f * i / size);
        float left = x[begins + 2 * i];  // your code: which two numbers are a pair?
        float right = x[begins + 2 * i + 1];
        out[begins + 2 * i] = left * cosf(angle) - right * sinf(angle);
        out[begins + 2 * i + 1] = right * cosf(angle) + left * sinf(angle);
    }
}
""",
    solution=TURN_CU,
    inputs=some_heads,
    reference=turned,
    rtol=2e-4,
    specials="finite",  # 0 times infinity is NaN, here or there
    powers=(),
    shapes=((3, 2, 4), (1, 1, 1), (5, 3, 8), (2, 7, 3), (9, 1, 33), (1, 4, 16)),
    fresh=some_numbers((1, 9), (1, 6), (1, 40)),
    launches=lambda shape: [
        Launch((shape[0], shape[1], 1), (32, 1, 1)),
        Launch((shape[0], shape[1], 1), (5, 1, 1), "blocks of another size"),
    ],
    extents=lambda shape: (shape[0] * 32, shape[1], 1),
    is_square=lambda shape: False,
    race_free=True,
    effort=4,
    hints=(
        "Write a head of 8 numbers on paper. Which number is turned together with number 1?",
        "Number 1 goes with number 5: `left = x[begins + i]`, `right = x[begins + half + i]`. The"
        " results go to the same two places.",
    ),
    wrong=(
        (
            ("left = x[begins + i]", "left = x[begins + 2 * i]"),
            ("right = x[begins + half + i]", "right = x[begins + 2 * i + 1]"),
            ("out[begins + i] =", "out[begins + 2 * i] ="),
            ("out[begins + half + i] =", "out[begins + 2 * i + 1] ="),
            "wrong_value",
        ),
        (
            ("out[begins + i] =", "out[begins + 2 * i] ="),
            ("out[begins + half + i] =", "out[begins + 2 * i + 1] ="),
            "wrong_value",
        ),
        (
            ("left = x[begins + i]", "left = x[begins + 2 * i]"),
            ("right = x[begins + half + i]", "right = x[begins + 2 * i + 1]"),
            "wrong_value",
        ),
        ("-2.0f * i / size", "-2.0f * i / half", "wrong_value"),
        ("-2.0f * i / size", "-2 * i / half", "wrong_value"),
        (("- right * sinf", "+ right * sinf"), ("+ left * sinf", "- left * sinf"), "wrong_value"),
        ("-2.0f * i / size", "-2 * i / size", "wrong_value"),
        ("-2.0f * i / size", "-1.0f * i / size", "wrong_value"),
        ("position[blockIdx.x]", "blockIdx.x", "wrong_value"),
        ("position[blockIdx.x]", "(position[blockIdx.x] + 1)", "wrong_value"),
        ("+ left * sinf", "+ out[begins + i] * sinf", "wrong_value"),
        ("+ left * sinf", "- left * sinf", "wrong_value"),
        (
            ("left * cosf(angle) - right * sinf", "left * sinf(angle) - right * cosf"),
            ("right * cosf(angle) + left * sinf", "right * sinf(angle) + left * cosf"),
            "wrong_value",
        ),
        ("i < half", "i < size", "race"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Numbers 2 i and 2 i + 1 are turned together here. In Llama's order number i goes with"
            " number i + size / 2.",
            turned_if(pairs=neighbours, put=put_neighbours),
        ),
        Hypothesis(
            "wrong_value",
            "The right pairs are turned, and stored elsewhere: number i and number i + size / 2 of"
            " `out` are their places, too.",
            turned_if(put=put_neighbours),
        ),
        Hypothesis(
            "wrong_value",
            "Results lie where they belong, but they are made of numbers 2 i and 2 i + 1 of `x`:"
            " take number i and number i + size / 2.",
            turned_if(pairs=neighbours),
        ),
        Hypothesis(
            "wrong_value",
            "-2 * i / half is divided as whole numbers, which cuts off all digits, and by half of"
            " `size`: write -2.0f * i / size.",
            turned_if(exponent=lambda i, size: np.trunc(-4 * i / size)),
        ),
        Hypothesis(
            "wrong_value",
            "The exponent is twice what it has to be: -2 i over `size`, and not over half of it.",
            turned_if(exponent=lambda i, size: -4 * i / size),
        ),
        Hypothesis(
            "wrong_value",
            "All pairs turn the other way: left becomes left cos *minus* right sin.",
            turned_if(turn=signs(1, -1)),
        ),
        Hypothesis(
            "wrong_value",
            "-2 * i / size is divided as whole numbers, which cuts off all digits: write -2.0f.",
            turned_if(exponent=lambda i, size: np.trunc(-2 * i / size)),
        ),
        Hypothesis(
            "wrong_value",
            "The exponent is half of what it has to be: -2 i / size, not -i / size.",
            turned_if(exponent=lambda i, size: -i / size),
        ),
        Hypothesis(
            "wrong_value",
            "A row's number is taken for its position: rows may be of many sequences, so look into"
            " `position`.",
            turned_if(at=lambda position: np.arange(len(position))),
        ),
        Hypothesis(
            "wrong_value",
            "All positions are too large by one: position 0 is not turned at all.",
            turned_if(at=lambda position: position + 1),
        ),
        Hypothesis(
            "wrong_value",
            "The second number of a pair is made with the first one's *new* value: keep the old"
            " one in a variable.",
            turned_if(turn=one_after_the_other),
        ),
        Hypothesis(
            "wrong_value",
            "That is no turn: one of the two sines has a minus, the other a plus.",
            turned_if(turn=signs(-1, -1)),
        ),
        Hypothesis(
            "wrong_value",
            "That is no turn: one of the two sines has a minus, the other a plus.",
            turned_if(turn=signs(1, 1)),
        ),
        Hypothesis(
            "wrong_value",
            "Sine and cosine are exchanged: an angle of 0 has to leave a pair as it is.",
            turned_if(turn=lambda left, right, cos, sin: signs(-1, 1)(left, right, sin, cos)),
        ),
    ),
)


# ---- language_model.top_p: which tokens may be drawn


@cuda.jit
def top_p(out, probabilities, p):
    row = cuda.grid(1)
    if row < out.shape[0]:
        vocabulary = out.shape[1]
        kept = 1
        total = probabilities[row, 0]
        while kept < vocabulary and total < p:
            total += probabilities[row, kept]
            kept += 1
        for i in range(vocabulary):
            out[row, i] = probabilities[row, i] / total if i < kept else np.float32(0)


WITH_NONE = 33  # rows with which p is 0: one token is kept all the same


def some_probabilities(rng, shape):
    """shape: (rows, vocabulary). Rows fall, and sum to 1; multiples of 1/1024, so sums are exact.

    p is a multiple of 1/64, or what the first few tokens of a row sum up to.
    """
    rows, vocabulary = shape
    weights = np.zeros((rows, vocabulary), np.int64)
    for row in range(rows):
        spread = rng.dirichlet(np.full(vocabulary, rng.choice([0.1, 1.0, 20.0])))
        weights[row] = rng.multinomial(1024, spread)
    weights = -np.sort(-weights)
    p = rng.integers(0, 65) / 64
    if rows == WITH_NONE:
        p = 0
    elif rng.random() < 0.6:
        p = weights[rng.integers(rows), : rng.integers(1, vocabulary + 1)].sum() / 1024
    return {
        "out": Out((rows, vocabulary)),
        "probabilities": (weights / 1024).astype(np.float32),
        "p": float(p),
    }


def its_fewest(sums, row, p):
    """How many tokens are kept: the fewest whose sum is at least p, and one at least.

    sums: of the first, the first two, and so on.
    """
    return max(1, min(int(np.searchsorted(sums, p)) + 1, len(sums)))


def cut_off(out, probabilities, p, *, fewest=its_fewest, over=lambda total, p: total):
    """What is left of each row, over its sum, or with a mistake.

    fewest: how many tokens are kept. over: by what is divided.
    """
    rows = probabilities.astype(np.float64)
    result = np.zeros_like(rows)
    with np.errstate(all="ignore"):
        for row, left in zip(rows, result, strict=True):
            kept = fewest(row.cumsum(), row, p)
            left[:kept] = row[:kept] / over(row[:kept].sum(), p)
    return result


def one_more(out, probabilities, p):
    """What comes out if the token behind those that are kept is stored, too."""
    result = cut_off(out, probabilities, p)
    for row, left in zip(probabilities.astype(np.float64), result, strict=True):
        kept = its_fewest(row.cumsum(), row, p)
        left[: kept + 1] = row[: kept + 1] / row[:kept].sum()
    return result


cut_off_if = with_mistakes(cut_off)


def below(sums, row, p):
    """Tokens that are kept if the one that crosses p is left out; one at least."""
    return max(1, int((sums <= p).sum()))


def none_at_all(sums, row, p):
    """The same, or none."""
    return int((sums <= p).sum())


def strictly_below(sums, row, p):
    """Tokens whose sum is still below p."""
    return int((sums < p).sum())


TOP_P_LOOP = "        while kept < vocabulary and total < p:\n"
TOP_P = Exercise(
    id="language_model.top_p",
    title="Top-p, to the boundary",
    minutes=7,
    task=(
        "Thread r has row r of `probabilities`, which is sorted, the largest first, and sums to 1."
        " Keep the *fewest* tokens, from the largest on, whose sum is at least `p`: the token with"
        " which the sum reaches p is kept, and one token at least. Store what is kept divided by"
        " its sum, so that it sums to 1 again, and 0 for all other tokens. The starter keeps"
        " everything. An example: of 0.5, 0.25, 0.125, 0.125 a p of 0.75 keeps two, and one of"
        " 0.8 keeps three."
    ),
    starter="""
@cuda.jit
def top_p(out, probabilities, p):
    row = cuda.grid(1)
    if row < out.shape[0]:
        vocabulary = out.shape[1]
        kept = vocabulary  # your code: how many, and what is their sum?
        total = np.float32(1)
        for i in range(vocabulary):
            out[row, i] = probabilities[row, i] / total if i < kept else np.float32(0)
""",
    solution=top_p,
    inputs=some_probabilities,
    reference=cut_off,
    rtol=1e-5,
    specials="finite",
    powers=(),
    shapes=((5, 4), (1, 1), (33, 7), (3, 50), (70, 3), (8, 200)),
    fresh=some_numbers((1, 50), (1, 60)),
    extents=lambda shape: (shape[0], 1, 1),
    other_block=(48, 1, 1),
    is_square=lambda shape: False,
    race_free=True,
    effort=4,
    elements=1 << 20,
    hints=(
        "Walk from the first token on, with the sum so far. When may you stop: before or after the"
        " token with which the sum reaches p?",
        "Begin with one token kept and its probability as `total`. While `total < p` and there are"
        " tokens left, take one more.",
    ),
    wrong=(
        ("total < p", "total <= p", "wrong_value"),
        ("total < p", "total + probabilities[row, kept] <= p", "wrong_value"),
        (
            ("kept = 1\n", "kept = 0\n"),
            ("total = probabilities[row, 0]", "total = np.float32(0)"),
            "wrong_value",
        ),
        (
            ("kept = 1\n", "kept = 0\n"),
            ("total = probabilities[row, 0]", "total = np.float32(0)"),
            ("total < p:", "total + probabilities[row, kept] <= p:"),
            "wrong_value",
        ),
        ("/ total if", "if", "wrong_value"),
        ("/ total if", "/ p if", "wrong_value"),
        (
            (
                "kept < vocabulary and total < p",
                "kept < vocabulary and probabilities[row, kept] >= p",
            ),
            "wrong_value",
        ),
        (
            ("kept = 1\n", "kept = 0\n"),
            ("total = probabilities[row, 0]", "total = np.float32(0)"),
            ("total < p:", "probabilities[row, kept] >= p:"),
            "wrong_value",
        ),
        (
            "        for i in range(vocabulary):\n",
            "        if kept < vocabulary:\n            total += probabilities[row, kept]\n"
            "            kept += 1\n        for i in range(vocabulary):\n",
            "wrong_value",
        ),
        ("kept < vocabulary and", "kept < vocabulary - 1 and", "wrong_value"),
        ("if i < kept else", "if i <= kept else", "wrong_value"),
        ("range(vocabulary)", "range(kept)", "unwritten"),
        ("if row < out.shape[0]:", "if True:", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "With a p of 0 no token is kept. One is kept at least, whatever p is.",
            cut_off_if(fewest=lambda sums, row, p: its_fewest(sums, row, p) if p > 0 else 0),
        ),
        Hypothesis(
            "wrong_value",
            "The token with which the sum reaches p is left out. It has to be kept: the sum has to"
            " be p at least.",
            cut_off_if(fewest=below),
        ),
        Hypothesis(
            "wrong_value",
            "Where a sum is exactly p, one token too many is kept: then there is nothing more to"
            " take.",
            cut_off_if(fewest=lambda sums, row, p: min(int((sums <= p).sum()) + 1, len(sums))),
        ),
        Hypothesis(
            "wrong_value",
            "The token with which the sum reaches p is left out, and where the first one alone"
            " does so nothing is left: keep it.",
            cut_off_if(fewest=none_at_all),
        ),
        Hypothesis(
            "wrong_value",
            "With a p of 0 no token is kept, and 0 / 0 is NaN: one is kept at least.",
            lambda out, probabilities, p: cut_off(
                out, probabilities, p, over=lambda total, p: total if p > 0 else np.nan
            ),
        ),
        Hypothesis(
            "wrong_value",
            "What is kept is not divided by its sum, and no longer sums to 1.",
            cut_off_if(over=lambda total, p: 1.0),
        ),
        Hypothesis(
            "wrong_value",
            "What is kept is divided by p. Its sum may be more than p: divide by the sum.",
            cut_off_if(over=lambda total, p: p),
        ),
        Hypothesis(
            "wrong_value",
            "Each probability alone is compared with p. It is the sum so far that has to reach p.",
            cut_off_if(fewest=lambda sums, row, p: 1 + int(np.cumprod(row[1:] >= p).sum())),
        ),
        Hypothesis(
            "wrong_value",
            "Each probability alone is compared with p, and where none is as large nothing is kept."
            " It is the sum so far that has to reach p.",
            cut_off_if(fewest=lambda sums, row, p: int(np.cumprod(row >= p).sum())),
        ),
        Hypothesis(
            "wrong_value",
            "One token more is kept than has to be: stop with the one with which the sum reaches"
            " p.",
            cut_off_if(fewest=lambda *known: min(its_fewest(*known) + 1, len(known[0]))),
        ),
        Hypothesis(
            "wrong_value",
            "The first token that is not kept is stored, too: those that are kept are 0 to"
            " kept - 1.",
            one_more,
        ),
        Hypothesis(
            "wrong_value",
            "The last token is never kept: with a p of 1 all are.",
            cut_off_if(
                fewest=lambda sums, row, p: max(1, min(its_fewest(sums, row, p), len(sums) - 1))
            ),
        ),
    ),
)


# ---- language_model.append: the cache's index

APPEND_CU = """
// cache [layer, page, slot, head, number], 16 slots to a page; all_pages: pages of a layer.
// keys [sequence, head, number]; table [sequence, pages]: which page holds positions 16 n to
// 16 n + 15. Block (x, y): head x of sequence y.
__global__ void append(float* cache, const float* keys, const int* table, const int* position,
                       int layer, int all_pages, int pages, int size) {
    int heads = gridDim.x;
    int sequence = blockIdx.y;
    int at = position[sequence];
    int page = table[sequence * pages + at / 16];
    int slot = (layer * all_pages + page) * 16 + at % 16;
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        cache[(slot * heads + blockIdx.x) * size + i] =
            keys[(sequence * heads + blockIdx.x) * size + i];
}
"""


def some_caches(rng, shape):
    """shape: (sequences, heads, numbers of a head, pages of a sequence's row, layers).

    Pages are dealt at random. Positions have slots of their own, so that no two sequences that
    share a page by mistake meet in one, and none is a row's last, so that who is off by one stays
    inside.
    """
    sequences, heads, size, pages, layers = shape
    all_pages = sequences * pages + 1
    slot = rng.permutation(PAGE - (pages == 1))[:sequences]
    column = rng.integers(pages - (slot == PAGE - 1))
    position = PAGE * column + slot
    table = rng.permutation(all_pages)[: sequences * pages].reshape(sequences, pages)
    return {
        "cache": InOut(normal(rng, layers, all_pages, PAGE, heads, size)),
        "keys": 10 + normal(rng, sequences, heads, size),
        "table": table.astype(np.int32),
        "position": position.astype(np.int32),
        "layer": int(rng.integers(layers)),
        "all_pages": all_pages,
        "pages": pages,
        "size": size,
    }


def its_slot(at, sequence, table, layer, all_pages, pages):
    """Where a position's key lies, counted in slots from the cache's beginning."""
    return (layer * all_pages + table[sequence, at // PAGE]) * PAGE + at % PAGE


def appended(
    cache,
    keys,
    table,
    position,
    layer,
    all_pages,
    pages,
    size,
    *,
    slot=its_slot,
    by_head=False,
):
    """The cache with each sequence's key in its place, or with a mistake.

    slot: where else it goes. by_head: whether a page is taken for [head, slot, number].
    """
    after = cache.copy()
    heads = keys.shape[1]
    slots = after.reshape(-1, heads, size)
    for sequence, at in enumerate(position.tolist()):
        place = slot(at, sequence, table, layer, all_pages, pages)
        if place >= len(slots):
            return np.full_like(after, np.nan)  # it would have left the cache
        if by_head:
            page = slots[place // PAGE * PAGE : place // PAGE * PAGE + PAGE]
            page.reshape(heads, PAGE, size)[:, place % PAGE] = keys[sequence]
        else:
            slots[place] = keys[sequence]
    return after


appended_if = with_mistakes(appended)


APPEND = Exercise(
    id="language_model.append",
    title="Where does this key go?",
    minutes=7,
    kind="cuda_c",
    kernel_name="append",
    path="build/append.cu",
    task=(
        "Put the new key of each sequence into the cache, [layer, page, slot, head, number], with"
        " 16 slots to a page. The sequence's position p lies in slot p % 16 of the page"
        " `table[sequence, p / 16]`, one of the `all_pages` pages of this `layer`. Block (x, y) has"
        " head x of sequence y, and any number of threads. The starter knows no pages: it takes"
        " the cache for [sequence, position, head, number]."
    ),
    starter="""
%%writefile build/append.cu
// cache [layer, page, slot, head, number], 16 slots to a page; all_pages: pages of a layer.
// keys [sequence, head, number]; table [sequence, pages]: which page holds positions 16 n to
// 16 n + 15. Block (x, y): head x of sequence y.
__global__ void append(float* cache, const float* keys, const int* table, const int* position,
                       int layer, int all_pages, int pages, int size) {
    int heads = gridDim.x;
    int sequence = blockIdx.y;
    int at = position[sequence];
    int slot = sequence * pages * 16 + at;  // your code: which page, and which of its slots?
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        cache[(slot * heads + blockIdx.x) * size + i] =
            keys[(sequence * heads + blockIdx.x) * size + i];
}
""",
    solution=APPEND_CU,
    inputs=some_caches,
    reference=appended,
    copies=True,
    shapes=((3, 2, 4, 2, 2), (1, 1, 1, 1, 1), (5, 2, 8, 3, 1), (2, 3, 33, 2, 3), (4, 1, 5, 4, 2)),
    fresh=some_numbers((1, 6), (1, 4), (1, 40), (1, 5), (1, 4)),
    launches=lambda shape: [
        Launch((shape[1], shape[0], 1), (32, 1, 1)),
        Launch((shape[1], shape[0], 1), (5, 1, 1), "blocks of another size"),
    ],
    extents=lambda shape: (shape[1] * 32, shape[0], 1),
    is_square=lambda shape: False,
    race_free=True,
    effort=4,
    hints=(
        "Take position 37. In which column of its row of the table does its page stand, and in"
        " which of the page's slots does it lie?",
        "The page is `table[sequence * pages + at / 16]`, and before it lie `layer * all_pages`"
        " pages of other layers. Count slots: 16 for each page, then at % 16.",
    ),
    wrong=(
        ("(layer * all_pages + page)", "page", "wrong_value"),
        ("layer * all_pages", "layer * pages", "wrong_value"),
        ("+ at % 16", "+ at / 16", "wrong_value"),
        ("table[sequence * pages + at / 16]", "(sequence * pages + at / 16)", "wrong_value"),
        ("table[sequence * pages + at / 16]", "table[at / 16]", "wrong_value"),
        ("int at = position[sequence]", "int at = position[sequence] + 1", "wrong_value"),
        ("table[sequence * pages + at / 16]", "table[sequence + at / 16]", "wrong_value"),
        ("(layer * all_pages + page) * 16", "layer * all_pages + page * 16", "wrong_value"),
        (
            "cache[(slot * heads + blockIdx.x) * size + i]",
            "cache[(slot / 16 * heads * 16 + blockIdx.x * 16 + slot % 16) * size + i]",
            "wrong_value",
        ),
        (
            "keys[(sequence * heads + blockIdx.x)",
            "keys[(blockIdx.x * gridDim.y + sequence)",
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The table is not asked: a sequence's pages are taken for neighbours.",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    (layer * all_pages + sequence * pages) * PAGE + at
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The table is not asked: a sequence's pages are taken for neighbours (and the layer is"
            " left out).",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    sequence * pages * PAGE + at
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The layer is left out: all layers' keys go into the first one's pages.",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    table[sequence, at // PAGE] * PAGE + at % PAGE
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A layer has `all_pages` pages, more than the `pages` of one sequence.",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    (layer * pages + table[sequence, at // PAGE]) * PAGE + at % PAGE
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The slot within a page is the position's remainder, at % 16; the quotient is for the"
            " page.",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    (layer * all_pages + table[sequence, at // PAGE]) * PAGE + at // PAGE
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "All sequences use the first one's row of the table.",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    (layer * all_pages + table[0, at // PAGE]) * PAGE + at % PAGE
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The table has a row of `pages` entries for each sequence: row s begins at s * pages.",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    (layer * all_pages + table.ravel()[sequence + at // PAGE]) * PAGE + at % PAGE
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The pages of the layers before have 16 slots each, too: put parentheses around the sum"
            " of pages before it is multiplied by 16.",
            appended_if(
                slot=lambda at, sequence, table, layer, all_pages, pages: (
                    layer * all_pages + table[sequence, at // PAGE] * PAGE + at % PAGE
                )
            ),
        ),
        Hypothesis(
            "wrong_value",
            "All positions are too large by one: position 16 is slot 0 of the second page.",
            appended_if(slot=lambda at, *more: its_slot(at + 1, *more)),
        ),
        Hypothesis(
            "wrong_value",
            "`keys` is [sequence, head, number]: a sequence's heads lie together.",
            lambda cache, keys, *more, **named: appended(
                cache, keys.reshape(keys.shape[1], -1, keys.shape[2]).swapaxes(0, 1), *more, **named
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A page is [slot, head, number]: all heads of a slot lie together.",
            appended_if(by_head=True),
        ),
    ),
)


# ---- language_model.barrier: all blocks of a launch wait for each other

BARRIER_CU = """
// Behind it every thread of the launch sees what all threads wrote before it. arrived: how many
// blocks have come, at all barriers so far; expected: how many have to.
__device__ void barrier(unsigned* arrived, unsigned expected) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < expected) {
        }
        __threadfence();
    }
    __syncthreads();
}

// work[0]: 0 before the launch; then two halves with a number for each thread of the launch.
__global__ void relay(unsigned* work, int rounds) {
    int size = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; ++round) {
        const unsigned* from = work + 1 + round % 2 * size;
        unsigned* to = work + 1 + (round + 1) % 2 * size;
        to[i] = from[(i + 1) % size] + 3 * from[(i + blockDim.x) % size];
        barrier(work, gridDim.x * (round + 1));
    }
}
"""


def some_work(rng, shape):
    """shape: (blocks, threads of a block, rounds)."""
    blocks, threads, rounds = shape
    work = rng.integers(0, 1 << 16, 1 + 2 * blocks * threads, dtype=np.uint32)
    work[0] = 0
    return {"work": InOut(work), "rounds": rounds}


def relayed(threads):
    """The reference of blocks of so many threads; the counter holds all arrivals."""

    def output(work, rounds):
        after = work.copy()
        size = len(work) // 2
        halves = after[1:].reshape(2, size)
        for number in range(rounds):
            before = halves[number % 2]
            halves[(number + 1) % 2] = np.roll(before, -1) + 3 * np.roll(before, -threads)
        after[0] = size // threads * rounds
        return after

    return output


def awaited_blocks(work, rounds):
    """What the counter says of the blocks that are waited for."""
    blocks = len(work) // 2 // RELAY_THREADS
    if 0 < work[0] == blocks * rounds:
        return (
            f"The counter says {work[0]}: all {blocks} blocks had come, to all {rounds} barriers."
            " Does the loop look again each time, and for a number that does come?"
        )
    return (
        f"The counter says {work[0]}, and at the last of {rounds} barriers {blocks * rounds} are"
        f" expected: {blocks} blocks, once at each. Who does not count, or sets it back?"
    )


RELAY_THREADS = 32
ARRIVE = "        atomicAdd(arrived, 1);\n"
WAIT = "        while (atomicAdd(arrived, 0) < expected) {\n        }\n"
FENCES = "        __threadfence();\n"
ALL_HERE = "    __syncthreads();\n    if (threadIdx.x == 0) {"
GO_ON = "    }\n    __syncthreads();\n}"
BARRIER = Exercise(
    id="language_model.barrier",
    title="The megakernel's barrier",
    minutes=10,
    one_block=True,
    kind="cuda_c",
    kernel_name="relay",
    path="build/relay.cu",
    task=(
        "`relay` hands numbers on, in rounds: each thread reads what two others wrote in the round"
        " before, one of them in another block. Write the `barrier` at which all blocks wait for"
        " each other. Each block counts itself *once*, with an atomic addition to `*arrived`, and"
        " goes on when `expected` blocks have been counted. The counter is never set back: at the"
        " second barrier twice as many are expected. To wait is to look *again* each time: a plain"
        " `*arrived` may be read once and kept in a register. All blocks run at once, so waiting is"
        " safe. The starter waits for its own block alone."
    ),
    starter="""
%%writefile build/relay.cu
// Behind it every thread of the launch sees what all threads wrote before it. arrived: how many
// blocks have come, at all barriers so far; expected: how many have to.
__device__ void barrier(unsigned* arrived, unsigned expected) {
    __syncthreads();  // your code: and the other blocks?
}

// work[0]: 0 before the launch; then two halves with a number for each thread of the launch.
__global__ void relay(unsigned* work, int rounds) {
    int size = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; ++round) {
        const unsigned* from = work + 1 + round % 2 * size;
        unsigned* to = work + 1 + (round + 1) % 2 * size;
        to[i] = from[(i + 1) % size] + 3 * from[(i + blockDim.x) % size];
        barrier(work, gridDim.x * (round + 1));
    }
}
""",
    solution=BARRIER_CU,
    inputs=some_work,
    reference=relayed(RELAY_THREADS),
    shapes=((2, 32, 2), (1, 32, 3), (4, 32, 3), (3, 32, 5), (6, 32, 1)),
    fresh=some_numbers((2, 6), (32, 33), (1, 6)),
    launches=lambda shape: [Launch((shape[0], 1, 1), (RELAY_THREADS, 1, 1))],
    extents=lambda shape: (shape[0] * RELAY_THREADS, 1, 1),
    is_square=lambda shape: False,
    shared_output=True,
    race_free=True,
    waits=True,
    awaited=awaited_blocks,
    slip=slip,
    effort=1e9,  # who waits reads as often as it takes
    traffic=1e9,
    hints=(
        "One thread speaks for its block. Before it counts the block all of the block's threads"
        " must have written, and nobody may go on before it has seen all others.",
        "`__syncthreads();` thread 0: `__threadfence(); atomicAdd(arrived, 1);` then it waits; at"
        " the end `__syncthreads();` again, for all.",
        "To wait is to read the counter again and again: `while (atomicAdd(arrived, 0) < expected)"
        " {}`. Then thread 0 fences once more, so that nothing old is read.",
    ),
    wrong=(
        ((ALL_HERE, "    if (threadIdx.x == 0) {"), "race"),
        ((GO_ON, "    }\n}"), "race"),
        (FENCES + ARRIVE, ARRIVE, "race"),
        (WAIT + FENCES, WAIT, "race"),
        (WAIT, "", "race"),
        (
            "while (atomicAdd(arrived, 0) < expected)",
            "if (atomicAdd(arrived, 0) < expected)",
            "race",
        ),
        ("arrived, 0) < expected", "arrived, 0) < gridDim.x", "wrong_value"),
        ("atomicAdd(arrived, 0) < expected", "*arrived < expected", "timeout"),
        (
            WAIT,
            "        unsigned seen = *arrived;\n        while (seen < expected)\n"
            "            seen = arrived[0];\n",
            "timeout",
        ),
        ("    if (threadIdx.x == 0) {", "    {", "race"),
        (ARRIVE, "        *arrived += 1;\n", "race"),
        ("if (threadIdx.x == 0) {", "if (blockIdx.x == 0 && threadIdx.x == 0) {", "timeout"),
        ("arrived, 0) < expected", "arrived, 0) <= expected", "timeout"),
        (
            WAIT,
            WAIT + "        if (blockIdx.x == 0)\n            atomicExch(arrived, 0);\n",
            "timeout",
        ),
    ),
)


# ---- language_model.accept: what of a draft's guesses the large model lets pass


@cuda.jit
def accept(out, p, q, guess, u):
    row = cuda.grid(1)
    if row < out.shape[0]:
        guesses, vocabulary = q.shape[1], q.shape[2]
        taken = 0
        while taken < guesses:
            token = guess[row, taken]
            if u[row, taken] * q[row, taken, token] >= p[row, taken, token]:
                break
            taken += 1
        total = np.float32(0)
        for token in range(vocabulary):
            rest = p[row, taken, token]
            if taken < guesses:
                rest = max(rest - q[row, taken, token], np.float32(0))
            total += rest
        reaches = u[row, guesses] * total
        total = np.float32(0)
        new = -1
        for token in range(vocabulary):
            rest = p[row, taken, token]
            if taken < guesses:
                rest = max(rest - q[row, taken, token], np.float32(0))
            total += rest
            if new < 0 and total > reaches:
                new = token
        out[row, 0] = taken
        out[row, 1] = new


@cuda.jit
def accept_one_by_one(out, p, q, guess, u):
    row = cuda.grid(1)
    if row < out.shape[0]:
        guesses, vocabulary = q.shape[1], q.shape[2]
        taken = 0
        for i in range(guesses):
            token = guess[row, i]
            if u[row, i] * q[row, i, token] < p[row, i, token]:
                taken += 1
        total = np.float32(0)
        for token in range(vocabulary):
            less = q[row, taken, token] if taken < guesses else np.float32(0)
            total += max(p[row, taken, token] - less, np.float32(0))
        reaches = u[row, guesses] * total
        total = np.float32(0)
        new = -1
        for token in range(vocabulary):
            less = q[row, taken, token] if taken < guesses else np.float32(0)
            total += max(p[row, taken, token] - less, np.float32(0))
            if new < 0 and total > reaches:
                new = token
        out[row, 0] = taken
        out[row, 1] = new


def some_guesses(rng, shape):
    """shape: (rows, guesses, vocabulary). Probabilities are multiples of 1/256.

    Random numbers are odd multiples of 1/512, so that no product meets a probability, and sums and
    products are exact. A tenth of those for guesses is 0, where the large model's probability is 0.
    """
    rows, guesses, vocabulary = shape

    def distributions(*sides):
        flat = [
            rng.multinomial(256, rng.dirichlet(np.full(vocabulary, rng.choice([0.3, 3.0]))))
            for _ in range(int(np.prod(sides)))
        ]
        return np.reshape(flat, (*sides, vocabulary)).astype(np.float32) / 256

    p = distributions(rows, guesses + 1)
    q = distributions(rows, guesses)
    alike = rng.random((rows, guesses)) < 0.6  # a good draft, most of the time
    near = p[:, :guesses]
    q[alike] = near[alike]
    guess = np.zeros((rows, guesses), np.int32)
    for place in np.ndindex(rows, guesses):
        guess[place] = rng.choice(vocabulary, p=q[place])
    u = (2 * rng.integers(0, 256, (rows, guesses + 1)) + 1) / 512
    for row, i in np.argwhere(rng.random((rows, guesses)) < 0.1):  # u may be 0, and p as well
        u[row, i], token = 0, guess[row, i]
        p[row, i, token - 1] += p[row, i, token]
        p[row, i, token] = 0
    return {
        "out": Out((rows, 2), np.int32),
        "p": p,
        "q": q,
        "guess": guess,
        "u": u.astype(np.float32),
    }


def its_rest(p, q):
    """The distribution, not yet of sum 1, that a rejected guess is replaced from."""
    return np.maximum(p - q, 0)


def accepted(
    out,
    p,
    q,
    guess,
    u,
    *,
    passes=lambda p, q, u: u * q < p,
    rest=its_rest,
    stops=True,
    scaled=True,
    last=lambda p, q: p[-1],
    draw=lambda u, taken: u[-1],
    which=0,
    more=0,
):
    """[taken, new token] of each row, or with a mistake.

    passes: whether a guess is accepted. rest: what a rejected one is replaced from. stops: whether
    the first rejection ends it. scaled: whether the rest is taken for a distribution of its own
    sum. last: from what the token behind all guesses comes. draw: the random number for it. which:
    of the tokens with which the sum is above it. more: what is added to the count.
    """
    p, q, u = (x.astype(np.float64) for x in (p, q, u))
    result = np.full(out.shape, -1, np.int32)
    guesses = guess.shape[1]
    for row in range(len(guess)):
        pairs = [(p[row, i, guess[row, i]], q[row, i, guess[row, i]]) for i in range(guesses)]
        good = [bool(passes(*pair, u[row, i])) for i, pair in enumerate(pairs)]
        taken = sum(good)
        if stops and not all(good):
            taken = good.index(False)
        left = last(p[row], q[row]) if taken == guesses else rest(p[row, taken], q[row, taken])
        sums = left.cumsum()
        reaches = draw(u[row], taken) * (sums[-1] if scaled else 1)
        over = np.flatnonzero(sums > reaches)
        result[row] = taken + more, over[which] if len(over) else -1
    return result


accepted_if = with_mistakes(accepted)


TEST = "u[row, taken] * q[row, taken, token] >= p[row, taken, token]"
REST = "rest = max(rest - q[row, taken, token], np.float32(0))"
SUMMED = "\n            total += rest\n"


def rest_is(new):
    """Two changes: of the rest in the loop that sums it up, and in the one that finds a token."""
    behind = SUMMED + "        reaches", SUMMED + "            if new"
    return tuple((REST + context, new + context) for context in behind)


ACCEPT = Exercise(
    id="language_model.accept",
    title="Accept or reject",
    minutes=11,
    task=(
        "A draft has guessed the next tokens of each row, one after the other: `guess[row, i]`,"
        " drawn from its distribution `q[row, i]`. The large model says `p[row, i]`, and one"
        " distribution more, for the token behind all guesses. Accept guesses from the first on,"
        " each if `u q < p`, where u is `u[row, i]` and q and p are those of the guessed token. The"
        " first rejected one ends it, and is replaced by a token drawn from what the draft has too"
        " little of, max(p - q, 0), divided by its sum. If all are accepted, one more comes from"
        " the last p. To draw: the first token with which the running sum is above `u[row,"
        " guesses]` times the whole sum. Store how many were accepted, and the token that was"
        " drawn. The starter accepts nothing, and draws from p."
    ),
    starter="""
@cuda.jit
def accept(out, p, q, guess, u):
    row = cuda.grid(1)
    if row < out.shape[0]:
        guesses, vocabulary = q.shape[1], q.shape[2]
        taken = 0  # your code: how many guesses pass?
        reaches = u[row, guesses]
        total = np.float32(0)
        new = -1
        for token in range(vocabulary):
            rest = p[row, taken, token]  # your code: not p, where a guess was rejected
            total += rest
            if new < 0 and total > reaches:
                new = token
        out[row, 0] = taken
        out[row, 1] = new
""",
    solution=accept,
    inputs=some_guesses,
    reference=accepted,
    rtol=0,
    specials="finite",
    powers=(),
    shapes=((6, 3, 5), (1, 1, 2), (40, 4, 7), (33, 1, 9), (7, 6, 3), (12, 2, 30)),
    fresh=some_numbers((1, 50), (1, 6), (2, 20)),
    extents=lambda shape: (shape[0], 1, 1),
    other_block=(48, 1, 1),
    is_square=lambda shape: False,
    race_free=True,
    effort=6,
    traffic=8,
    hints=(
        "First only count: walk through the guesses while `u * q < p` holds, and stop at the first"
        " that fails. All numbers are those of the guessed token.",
        "If you stopped early, what stands for p in the draw is `max(p - q, 0)`, at the place where"
        " you stopped. What is its sum, and what does `reaches` become?",
        "Two loops over the vocabulary: one for the sum, one to find the token. Behind the last"
        " guess there is no q.",
    ),
    wrong=(
        (TEST, "u[row, taken] * p[row, taken, token] >= q[row, taken, token]", "wrong_value"),
        (TEST, "u[row, taken] >= p[row, taken, token]", "wrong_value"),
        (TEST, TEST.replace(">=", ">"), "wrong_value"),
        (TEST, "q[row, taken, token] > p[row, taken, token]", "wrong_value"),
        (*rest_is("rest = p[row, taken, token]"), "wrong_value"),
        (*rest_is("rest = q[row, taken, token]"), "wrong_value"),
        (*rest_is("rest = abs(rest - q[row, taken, token])"), "wrong_value"),
        (*rest_is("rest = rest - q[row, taken, token]"), "wrong_value"),
        (*rest_is("rest = max(q[row, taken, token] - rest, np.float32(0))"), "wrong_value"),
        ("reaches = u[row, guesses] * total", "reaches = u[row, guesses]", "wrong_value"),
        ("reaches = u[row, guesses] * total", "reaches = u[row, taken] * total", "wrong_value"),
        Wrong(accept_one_by_one, "wrong_value"),
        ("new < 0 and total > reaches", "total > reaches", "wrong_value"),
        ("out[row, 0] = taken", "out[row, 0] = taken + 1", "wrong_value"),
        ("if row < out.shape[0]:", "if True:", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "p and q are exchanged in the test: a token that the large model likes better than the"
            " draft always passes.",
            accepted_if(passes=lambda p, q, u: u * p < q),
        ),
        Hypothesis(
            "wrong_value",
            "u is compared with p alone. The draft has drawn the token with probability q already:"
            " what is left is p / q.",
            accepted_if(passes=lambda p, q, u: u < p),
        ),
        Hypothesis(
            "wrong_value",
            "Where u is 0, a token passes whose p is 0, and which the large model never says: the"
            " test is `u q < p`, not `<=`.",
            accepted_if(passes=lambda p, q, u: u * q <= p),
        ),
        Hypothesis(
            "wrong_value",
            "A guess is rejected whenever the draft likes it better. It has to pass with"
            " probability p / q: that is what u is for.",
            accepted_if(passes=lambda p, q, u: q <= p),
        ),
        Hypothesis(
            "wrong_value",
            "A rejected guess is replaced from p. Tokens of which the draft has too many would come"
            " too often: draw from max(p - q, 0).",
            accepted_if(rest=lambda p, q: p),
        ),
        Hypothesis(
            "wrong_value",
            "A rejected guess is replaced from p, and not from max(p - q, 0); and p sums to 1.",
            accepted_if(rest=lambda p, q: p, scaled=False),
        ),
        Hypothesis(
            "wrong_value",
            "A rejected guess is replaced from q, the draft's own distribution.",
            accepted_if(rest=lambda p, q: q),
        ),
        Hypothesis(
            "wrong_value",
            "What the draft has too much of counts as well: take max(p - q, 0), not the distance.",
            accepted_if(rest=lambda p, q: abs(p - q)),
        ),
        Hypothesis(
            "wrong_value",
            "p - q is negative where the draft has too much, and takes from the running sum: there"
            " it counts as 0.",
            accepted_if(rest=lambda p, q: p - q),
        ),
        Hypothesis(
            "wrong_value",
            "q - p is what the draft has too much of. Draw from what it has too little of.",
            accepted_if(rest=lambda p, q: np.maximum(q - p, 0)),
        ),
        Hypothesis(
            "wrong_value",
            "max(p - q, 0) does not sum to 1: compare its running sum with u times its whole sum.",
            accepted_if(scaled=False),
        ),
        Hypothesis(
            "wrong_value",
            "The random number that rejected the guess draws the new token, too. It is no longer"
            " random: it is a large one. Take `u[row, guesses]`.",
            accepted_if(draw=lambda u, taken: u[taken]),
        ),
        Hypothesis(
            "wrong_value",
            "The last token is stored, and not the *first* with which the sum is above: take it"
            " once.",
            accepted_if(which=-1),
        ),
        Hypothesis(
            "wrong_value",
            "One accepted guess too many is counted: the token that is drawn is no guess.",
            accepted_if(more=1),
        ),
        Hypothesis(
            "wrong_value",
            "Guesses behind a rejected one are counted, too: they continue a text that is no more.",
            accepted_if(stops=False),
        ),
    ),
)


# ---- language_model.slots: the block table, for a step of rows of many sequences

SLOTS_CU = """
// Rows starts[s] to starts[s + 1] - 1 of this step are the next tokens of sequence s (none, where
// both are equal). cached [s]: its positions that are in the cache already. table [s, pages].
__global__ void slots(int* slot, const int* starts, const int* cached, const int* table, int rows,
                      int pages) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    int s = 0;
    while (starts[s + 1] <= row)
        ++s;
    int position = cached[s] + row - starts[s];
    slot[row] = table[s * pages + position / 16] * 16 + position % 16;
}
"""


def some_steps(rng, shape):
    """shape: (sequences, most rows of a sequence): a prompt's rows, one, or none."""
    sequences, most = shape
    counts = rng.choice([0, 1, 1, most], sequences)
    counts[rng.integers(sequences)] = most
    cached = rng.integers(0, 400, sequences)  # more than a byte can count
    pages = ceil_div(int((cached + counts).max()), PAGE) + 1
    table = rng.permutation(sequences * pages).reshape(sequences, pages)
    starts = np.concatenate([[0], counts.cumsum()])
    return {
        "slot": Out((int(starts[-1]),), np.int32),
        "starts": starts.astype(np.int32),
        "cached": cached.astype(np.int32),
        "table": table.astype(np.int32),
        "rows": int(starts[-1]),
        "pages": pages,
    }


def its_sequence(starts, row):
    """Whose row it is: the last sequence that begins at or before it."""
    return int(np.searchsorted(starts, row, "right")) - 1


def looked_up(
    slot,
    starts,
    cached,
    table,
    rows,
    pages,
    *,
    whose=its_sequence,
    position=lambda cached, row, start: cached + row - start,
    place=lambda table, entry, position: table[entry] * PAGE + position % PAGE,
):
    """Each row's slot in the pool, or with a mistake; -1 where that would leave an array."""
    result = np.full(rows, -1, np.int32)
    for row in range(rows):
        s = whose(starts, row)
        if not 0 <= s < len(cached):
            continue
        at = position(cached[s], row, starts[s])
        entry = s * pages + at // PAGE
        if 0 <= entry < table.size:
            result[row] = place(table.ravel(), entry, at)
    return result


looked_up_if = with_mistakes(looked_up)


SLOTS = Exercise(
    id="language_model.slots",
    title="A step's block table",
    minutes=7,
    kind="cuda_c",
    kernel_name="slots",
    path="build/slots.cu",
    task=(
        "In one step a server takes rows of many sequences: one row of each that is being answered,"
        " and many of a prompt. Rows `starts[s]` to `starts[s + 1] - 1` are the next tokens of"
        " sequence s, which has `cached[s]` positions in the cache already. A sequence may have no"
        " row: then both are equal. (With starts 0, 1, 1, 4 row 0 is sequence 0's, rows 1 to 3 are"
        " sequence 2's, and sequence 1 has none.) Thread r stores the slot of row r in the pool: 16"
        " times the page that `table[s, position / 16]` names, plus position % 16. The starter"
        " takes every row for sequence 0's first new one."
    ),
    starter="""
%%writefile build/slots.cu
// Rows starts[s] to starts[s + 1] - 1 of this step are the next tokens of sequence s (none, where
// both are equal). cached [s]: its positions that are in the cache already. table [s, pages].
__global__ void slots(int* slot, const int* starts, const int* cached, const int* table, int rows,
                      int pages) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    int s = 0;  // your code: whose row is it?
    int position = cached[s];  // your code: and which of its positions?
    slot[row] = table[s * pages + position / 16] * 16 + position % 16;
}
""",
    solution=SLOTS_CU,
    inputs=some_steps,
    reference=looked_up,
    rtol=0,
    shapes=((3, 5), (1, 1), (8, 20), (2, 70), (40, 3), (17, 33), (300, 2)),
    fresh=some_numbers((1, 20), (1, 50)),
    extents=lambda shape: (shape[0] * shape[1], 1, 1),
    launches=lambda shape: [
        Launch((ceil_div(shape[0] * shape[1], 32), 1, 1), (32, 1, 1)),
        Launch((ceil_div(shape[0] * shape[1], 48), 1, 1), (48, 1, 1), "blocks of another size"),
    ],
    is_square=lambda shape: False,
    race_free=True,
    effort=8,
    traffic=16,
    hints=(
        "Row r belongs to the sequence whose rows end behind it. Walk: while `starts[s + 1]` is not"
        " behind r, it is a later sequence's.",
        "`while (starts[s + 1] <= row) ++s;` also steps over sequences without a row. The row is"
        " number `row - starts[s]` of its sequence's new ones, and before them lie `cached[s]`.",
    ),
    wrong=(
        ("starts[s + 1] <= row", "starts[s + 1] < row", "wrong_value"),
        (
            "while (starts[s + 1] <= row)\n        ++s;",
            "if (starts[s + 1] <= row)\n        ++s;",
            "wrong_value",
        ),
        ("cached[s] + row - starts[s]", "row - starts[s]", "wrong_value"),
        ("cached[s] + row - starts[s]", "cached[s] + row", "out_of_bounds"),
        ("cached[s] + row - starts[s]", "cached[s] + row - starts[s] + 1", "wrong_value"),
        ("cached[s] + row - starts[s]", "cached[s]", "wrong_value"),
        ("table[s * pages + position / 16]", "(s * pages + position / 16)", "wrong_value"),
        ("+ position % 16", "+ position / 16", "wrong_value"),
        ("table[s * pages + position / 16]", "table[position / 16]", "wrong_value"),
        (" * 16 + position % 16", " + position % 16", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The first row of a sequence is taken for one more of the sequence before: row"
            " `starts[s + 1]` belongs to the next one already.",
            looked_up_if(whose=lambda starts, row: max(0, int(np.searchsorted(starts[1:], row)))),
        ),
        Hypothesis(
            "wrong_value",
            "The positions that are in the cache already are forgotten: new tokens come behind"
            " them.",
            looked_up_if(position=lambda cached, row, start: row - start),
        ),
        Hypothesis(
            "wrong_value",
            "All positions are too large by one: the first new token has position `cached[s]`.",
            looked_up_if(position=lambda cached, row, start: cached + row - start + 1),
        ),
        Hypothesis(
            "wrong_value",
            "All rows of a sequence get the slot of its first new token.",
            looked_up_if(position=lambda cached, row, start: cached),
        ),
        Hypothesis(
            "wrong_value",
            "The table is not asked: a sequence's pages are taken for neighbours.",
            looked_up_if(place=lambda table, entry, at: entry * PAGE + at % PAGE),
        ),
        Hypothesis(
            "wrong_value",
            "The slot within a page is the position's remainder, position % 16; the quotient is"
            " for the page.",
            looked_up_if(place=lambda table, entry, at: table[entry] * PAGE + at // PAGE),
        ),
        Hypothesis(
            "wrong_value",
            "All sequences use the first one's row of the table.",
            looked_up_if(place=lambda table, entry, at: table[at // PAGE] * PAGE + at % PAGE),
        ),
        Hypothesis(
            "wrong_value",
            "A page has 16 slots: its number counts 16 times.",
            looked_up_if(place=lambda table, entry, at: table[entry] + at % PAGE),
        ),
        Hypothesis(
            "wrong_value",
            "Only the second sequence is found: step on for as long as the row lies behind.",
            looked_up_if(whose=lambda starts, row: int(starts[1] <= row)),
        ),
    ),
)
EXERCISES = (TURN, TOP_P, APPEND, BARRIER, ACCEPT, SLOTS)
