"""The exercises of the chapter Kernels that you did not write."""

import math
import statistics

import numpy as np

from course.checking.inputs import arguments_of, some_numbers
from course.checking.model import Exercise, Hypothesis, Wrong
from course.checking.quiz import one_of

# ---- roundings: the bound of an error


def roundings(n, threads):
    own = -(-n // threads)
    tree = threads.bit_length() - 1
    return 1 + (own - 1) + tree


def divided_as_floats(n, threads):
    return math.ceil(n / threads) + threads.bit_length() - 1


def some_sum(rng):
    """A number of products, and of threads: a power of two."""
    return int(rng.integers(1, 100_000)), 1 << int(rng.integers(0, 11))


ROUNDINGS = Exercise(
    id="not_written.roundings",
    title="How many roundings?",
    minutes=7,
    kind="function",
    task=(
        "A kernel sums `n` products with `threads` threads (a power of two). Each product is"
        " rounded once. Thread t has the products t, t + `threads`, t + 2 `threads` and so on: it"
        " begins with its first product and adds the others one after another, and each addition"
        " rounds. Then the threads' sums are added in pairs, these sums in pairs again, until one"
        " is left. Return the most roundings that any product goes through. (Where a thread has no"
        " product, its sum is 0; count its additions like any others.)"
    ),
    starter="""
def roundings(n, threads):
    return n  # one thread: a product, and n - 1 additions
""",
    solution=roundings,
    inputs=arguments_of(roundings),
    reference=lambda n, threads: -(-n // threads) + threads.bit_length() - 1,
    shapes=(
        *((1, 1), (1000, 1), (1000, 4), (1024, 32), (1025, 32), (1023, 32), (7, 8), (8, 8)),
        *((1, 256), (3, 64), (9, 8), ((1 << 60) + 1, 1024)),
        *(((1 << 59) + 1, 512), ((1 << 40) + 3, 1 << 35)),
    ),
    fresh=some_sum,
    draws=lambda some: some.tuples(
        some.integers(1, 1 << 40), some.integers(0, 10).map(lambda power: 1 << power)
    ),
    hints=(
        "Follow one product of the thread that has the most of them. It is rounded, then it is in"
        " a sum to which others are added.",
        "The busiest thread has `-(-n // threads)` products, and one addition fewer.",
        "Each step of the tree halves the number of sums: `threads.bit_length() - 1` steps for a"
        " power of two.",
    ),
    wrong=(
        (
            "-(-n // threads)",
            "n // threads",
            "wrong_value",
            "The busiest thread has one product more where `threads` does not divide `n`: round"
            " up.",
        ),
        (
            "1 + (own - 1) + tree",
            "own - 1 + tree",
            "wrong_value",
            "Each product is rounded, too, before anything is added.",
        ),
        (
            "1 + (own - 1) + tree",
            "1 + own + tree",
            "wrong_value",
            "This is one too many. A thread begins with its first product, so it adds one time"
            " fewer than it has products; and two sums take one step of the tree, four take two.",
        ),
        (
            "1 + (own - 1) + tree",
            "own",
            "wrong_value",
            "The threads' sums have to be added, too: one rounding for each step of the tree.",
        ),
        (
            "threads.bit_length() - 1",
            "threads - 1",
            "wrong_value",
            "The sums are added in pairs, all pairs at once: that takes log2(threads) steps.",
        ),
        (
            "-(-n // threads)",
            "n // threads + 1",
            "wrong_value",
            "Where `threads` divides `n`, no thread has one product more.",
        ),
        Wrong(
            divided_as_floats,
            "wrong_value",
            "`n / threads` is a float, and is rounded itself if `n` is large: `-(-n // threads)`"
            " rounds up without a float.",
        ),
        (
            "threads.bit_length() - 1",
            "(min(n, threads) - 1).bit_length()",
            "wrong_value",
            "Threads without a product are in the tree, too, each with a sum of 0: its steps"
            " depend on `threads` alone.",
        ),
        (
            "1 + (own - 1) + tree",
            "2 * n - 1",
            "wrong_value",
            "These are all roundings of all products. Count those that a single product goes"
            " through.",
        ),
    ),
)


# ---- telling: one row that gives three wrong kernels away


def from_zero(row, block):
    best, where = 0, 0
    for i, value in enumerate(row):
        if value > best:
            best, where = value, i
    return where


def last_of_equals(row, block):
    best, where = row[0], 0
    for i, value in enumerate(row):
        if value >= best:
            best, where = value, i
    return where


def whole_blocks(row, block):
    row = row[: len(row) // block * block]
    return row.index(max(row)) if row else 0


SUSPECTS = (from_zero, last_of_equals, whole_blocks)


def given_away(row, block):
    """Which of the suspects a row gives away, in their order."""
    right = row.index(max(row))
    return tuple(suspect(row, block) != right for suspect in SUSPECTS)


def told(answer, n, block):
    """Which of them an answer's row gives away. Raises ValueError for a row of another length."""
    row = [int(value) for value in answer(n, block)]
    if len(row) != n:
        raise ValueError(f"the row has {len(row)} numbers; n = {n} are asked for")
    return given_away(row, block)


def telling_row(n, block):
    return [-2] * (n - 2) + [-1, -1]


def once(n, block):
    return [-2] * (n - 1) + [-1]


def some_rest(rng):
    """A length that leaves two numbers or more after whole blocks."""
    block = int(rng.integers(3, 65))
    rest = int(rng.integers(2, block))
    return block * int(rng.integers(1, 9)) + rest, block


TELLING = Exercise(
    id="not_written.telling",
    title="One row that gives three away",
    minutes=8,
    kind="function",
    task=(
        "Three kernels return the place of a row's largest number, of equal ones the first."
        " `from_zero` begins with 0 as its largest number so far, at place 0. `last_of_equals`"
        " takes the last of equal ones. `whole_blocks` leaves out what remains after whole blocks"
        " of `block` numbers. Return a row of `n` whole numbers for which all three are wrong. (At"
        " least two numbers remain after the whole blocks. The check runs the three on your row"
        " and shows, in this order, which of them are wrong: all have to be `True`.)"
    ),
    starter="""
def telling_row(n, block):
    return list(range(n))
""",
    solution=telling_row,
    inputs=arguments_of(telling_row),
    play=told,
    reference=lambda n, block: (True, True, True),
    shapes=((5, 3), (7, 4), (34, 32), (95, 32), (3, 64), (40, 64), (1000, 7)),
    fresh=some_rest,
    hints=(
        "Take the kernels one by one: which rows are told right by each? Then avoid those.",
        "`from_zero` finds no number that is larger than 0 if there is none. `last_of_equals` needs"
        " the largest number twice.",
        "The *first* of the two largest numbers has to be among the last `n % block`, and not at"
        " place 0: put them at the end.",
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "`from_zero` is right about these rows. It goes wrong where no number is above 0.",
            lambda n, block: (False, True, True),
        ),
        Hypothesis(
            "wrong_value",
            "`last_of_equals` is right about these rows: their largest number stands there once.",
            lambda n, block: (True, False, True),
        ),
        Hypothesis(
            "wrong_value",
            "`whole_blocks` is right about these rows: the first of the largest numbers has to be"
            " among the last `n % block`.",
            lambda n, block: (True, True, False),
        ),
        Hypothesis(
            "wrong_value",
            "Only `whole_blocks` is wrong about these rows. The other two need numbers that are"
            " not above 0, and equal ones.",
            lambda n, block: (False, False, True),
        ),
        Hypothesis(
            "wrong_value",
            "`whole_blocks` finds the first of the largest numbers, since it stands before the"
            " last `n % block`.",
            lambda n, block: (True, True, n < block),
        ),
        Hypothesis(
            "wrong_value",
            "Place 0 is what `from_zero` and `whole_blocks` say where they find nothing: the first"
            " of the largest numbers must not stand there.",
            lambda n, block: (False, True, False),
        ),
        Hypothesis(
            "wrong_value",
            "All three are right about these rows: the largest number stands first, and alone.",
            lambda n, block: (False, False, False),
        ),
    ),
    wrong=(
        ("[-2] * (n - 2) + [-1, -1]", "[1] * (n - 2) + [2, 2]", "wrong_value"),
        Wrong(once, "wrong_value"),
        ("[-2] * (n - 2) + [-1, -1]", "[-2] + [-1] * (n - 1)", "wrong_value"),
        ("[-2] * (n - 2) + [-1, -1]", "[-1] + [-2] * (n - 1)", "wrong_value"),
        ("[-2] * (n - 2) + [-1, -1]", "[-1] * n", "wrong_value"),
        ("[-2] * (n - 2)", "[-2] * (n - 1)", "crashed"),
    ),
)


# ---- law: a property that needs no reference


def only_called(answer, suspect, *others):
    """What an answer returns that can call a suspect, and cannot look into it."""
    return answer(lambda x: suspect(x), *others)


class Layer:
    """What somebody calls a linear layer; its weights are not told."""

    def __init__(self, kind, weights):
        self.kind, self._weights = kind, weights

    def __repr__(self):
        return f"<{self.kind}>"

    def __call__(self, x):
        x = np.array(x, np.int64)
        exact = self._weights @ x
        if self.kind == "adds one":
            return exact + 1
        if self.kind == "cuts off what is negative":
            return np.maximum(exact, 0)
        if self.kind == "squares":
            return self._weights @ (x * x)
        if self.kind == "reads the largest number only":
            return self._weights[:, 0] * x.max()
        if self.kind == "stops at 100":
            return np.clip(exact, -100, 100)
        if self.kind == "one row of it adds one":
            exact[-1] += 1
        if self.kind == "two rows off, not their sum":
            exact[0] += 1
            exact[-1] -= 1
        return exact


LAYERS = (
    "as ordered",
    "adds one",
    "cuts off what is negative",
    "squares",
    "reads the largest number only",
    "stops at 100",
    "one row of it adds one",
    "two rows off, not their sum",
)


def linear(layer, x, y, factor):
    adds = np.array_equal(layer(x + y), layer(x) + layer(y))
    scales = np.array_equal(layer(factor * x), factor * layer(x))
    return adds and scales


def sums_only(layer, x, y, factor):
    return np.array_equal(layer(x + y), layer(x) + layer(y))


def scales_only(layer, x, y, factor):
    return np.array_equal(layer(factor * x), factor * layer(x))


def any_row(layer, x, y, factor):
    adds = np.any(layer(x + y) == layer(x) + layer(y))
    scales = np.any(layer(factor * x) == factor * layer(x))
    return bool(adds and scales)


def first_row(layer, x, y, factor):
    adds = layer(x + y)[0] == (layer(x) + layer(y))[0]
    scales = layer(factor * x)[0] == factor * layer(x)[0]
    return bool(adds and scales)


def sums_of_results(layer, x, y, factor):
    adds = layer(x + y).sum() == layer(x).sum() + layer(y).sum()
    scales = layer(factor * x).sum() == factor * layer(x).sum()
    return bool(adds and scales)


def in_one_law(layer, x, y, factor):
    return np.array_equal(layer(factor * x + y), factor * layer(x) + layer(y))


def in_one_law_from_zero(layer, x, y, factor):
    return in_one_law(layer, x, y, factor) and not np.any(layer(0 * x))


def either(layer, x, y, factor):
    return sums_only(layer, x, y, factor) or scales_only(layer, x, y, factor)


def layer_inputs(rng, shape):
    """A layer of a kind, and numbers for it. shape: kind, numbers, rows, kind of numbers."""
    kind, n, rows, numbers = shape
    weights = rng.integers(-9, 10, (rows, n))
    x, y = rng.integers(-9, 10, (2, n))
    if numbers == "zero":
        y = 0 * y
    if numbers == "alike":
        y = 2 * x
    factor = int(rng.choice([-3, -2, 2, 3]))
    if numbers == "positive factor":
        factor = 2
    if numbers == "cancelling":  # factor x + y is 0
        factor = -2
        y = 2 * x
    return {"layer": Layer(LAYERS[kind], weights), "x": x, "y": y, "factor": factor}


def some_layer(rng):
    kind, n, rows = int(rng.integers(len(LAYERS))), int(rng.integers(1, 9)), int(rng.integers(1, 5))
    return kind, n, rows, str(rng.choice(["any", "zero", "alike", "positive factor", "cancelling"]))


LAW = Exercise(
    id="not_written.law",
    title="A law in place of a reference",
    minutes=6,
    kind="function",
    task=(
        "Somebody hands you a linear layer without its weights, so you have nothing to compare"
        " with. But `layer` obeys two laws if it is linear: the layer of a sum is the sum of the"
        " layers, and the layer of `factor` times x is `factor` times the layer of x. Return"
        " whether `layer` obeys **both** for these `x`, `y` and `factor`, in all elements of its"
        " result. (`x` and `y` are arrays of whole numbers, so nothing is rounded.)"
    ),
    starter="""
def linear(layer, x, y, factor):
    return np.array_equal(layer(x), layer(x))  # a law that everybody obeys
""",
    solution=linear,
    inputs=layer_inputs,
    play=only_called,
    reference=lambda layer, x, y, factor: linear(layer, x, y, factor),
    shapes=tuple(
        (kind, n, rows, numbers)
        for kind in range(len(LAYERS))
        for n, rows, numbers in ((5, 3, "any"), (4, 2, "zero"), (6, 3, "alike"))
    )
    + tuple(
        (kind, n, 2, numbers)
        for kind in (2, 4)
        for n in (3, 4, 5)
        for numbers in ("positive factor", "cancelling")
    ),
    fresh=some_layer,
    hints=(
        "Call the layer on `x`, on `y` and on `x + y`. What must hold between the three results?",
        "`np.array_equal(layer(x + y), layer(x) + layer(y))` is the first law.",
        "The second law is `np.array_equal(layer(factor * x), factor * layer(x))`. Both have to"
        " hold.",
    ),
    wrong=(
        Wrong(
            sums_only,
            "wrong_value",
            "This is the first law alone. A layer can obey it for these numbers and break the"
            " second.",
        ),
        Wrong(
            scales_only,
            "wrong_value",
            "This is the second law alone. The largest number of a row obeys it, too, and is not"
            " linear.",
        ),
        Wrong(either, "wrong_value", "One of the two laws is not enough: both have to hold."),
        Wrong(
            any_row,
            "wrong_value",
            "A law has to hold in all elements of the result: compare the whole arrays.",
        ),
        Wrong(
            sums_of_results,
            "wrong_value",
            "Errors of two elements can cancel in their sum: compare the elements, not the sums.",
        ),
        *(
            Wrong(
                answer,
                "wrong_value",
                "Both laws in one equation: for these numbers one mistake can cancel the other."
                " Test each law by itself.",
            )
            for answer in (in_one_law, in_one_law_from_zero)
        ),
        Wrong(
            first_row,
            "wrong_value",
            "A law has to hold in all elements of the result: compare the whole arrays.",
        ),
    ),
)


# ---- moved: a law that finds what a linear one cannot


class Filter:
    """What somebody calls a filter; its taps are not told. It has a kind, and works in blocks."""

    def __init__(self, kind, taps):
        self.kind, self._taps = kind, taps

    def __repr__(self):
        return f"<{self.kind}>"

    def __call__(self, x):
        n = len(x)
        if self.kind == "forgets its neighbours at each fourth place":
            parts = [self._filtered(x[i : i + BLOCK]) for i in range(0, n, BLOCK)]
            return np.concatenate(parts)
        if self.kind == "reads the places to come":
            return self._filtered(x[::-1])[::-1]
        if self.kind == "goes on from the end":
            return self._filtered(np.concatenate([x, x]))[n:]
        exact = self._filtered(x)
        if self.kind == "adds one":
            return exact + 1
        if self.kind == "louder at each place":
            return exact * np.arange(1, n + 1)
        if self.kind == "leaves out the first place":
            return np.where(np.arange(n) == 0, 0, exact)
        if self.kind == "leaves out the last place":
            return np.where(np.arange(n) == n - 1, 0, exact)
        if self.kind == "squares":
            return exact * exact
        return exact

    def _filtered(self, x):
        return np.convolve(x, self._taps)[: len(x)]


BLOCK = 4
FILTERS = (
    "as ordered",
    "forgets its neighbours at each fourth place",
    "reads the places to come",
    "goes on from the end",
    "adds one",
    "louder at each place",
    "leaves out the first place",
    "leaves out the last place",
    "squares",
)


def moves(filter, x, d):
    none = np.zeros(d, x.dtype)
    later = filter(np.concatenate([none, x]))
    return np.array_equal(later, np.concatenate([none, filter(x)]))


def moves_from_d_on(filter, x, d):
    later = filter(np.concatenate([np.zeros(d, x.dtype), x]))
    return np.array_equal(later[d:], filter(x))


def starts_with_zeros(filter, x, d):
    later = filter(np.concatenate([np.zeros(d, x.dtype), x]))
    return not np.any(later[:d])


def moves_by_one(filter, x, d):
    none = np.zeros(1, x.dtype)
    later = filter(np.concatenate([none, x]))
    return np.array_equal(later, np.concatenate([none, filter(x)]))


def turns_round(filter, x, d):
    return np.array_equal(filter(np.roll(x, d)), np.roll(filter(x), d))


def in_the_same_room(filter, x, d):
    none = np.zeros(d, x.dtype)
    room = len(x) - d
    later = filter(np.concatenate([none, x[:room]]))
    return np.array_equal(later, np.concatenate([none, filter(x)[:room]]))


def sums_move(filter, x, d):
    later = filter(np.concatenate([np.zeros(d, x.dtype), x]))
    return bool(later.sum() == filter(x).sum())


def some_move(filter, x, d):
    none = np.zeros(d, x.dtype)
    later = filter(np.concatenate([none, x]))
    return bool(np.any(later == np.concatenate([none, filter(x)])))


def doubles(filter, x, d):
    return np.array_equal(filter(d * x), d * filter(x))


def zeros_behind(filter, x, d):
    none = np.zeros(d, x.dtype)
    longer = filter(np.concatenate([x, none]))
    return np.array_equal(longer[: len(x)], filter(x))


def filter_inputs(rng, shape):
    """A filter of a kind, and a signal for it. shape: kind, taps, places, by how many it moves."""
    kind, taps, n, d = shape
    values = rng.integers(1, 10, taps)
    return {"filter": Filter(FILTERS[kind], values), "x": rng.integers(1, 10, n), "d": d}


def some_filter(rng):
    kind, taps = int(rng.integers(len(FILTERS))), int(rng.integers(1, 5))
    return kind, taps, int(rng.integers(6, 15)), int(rng.integers(1, 6))


MOVES = Exercise(
    id="not_written.moves",
    title="A law that finds the border",
    minutes=6,
    kind="function",
    task=(
        "Each result of a filter is made of the number at its place and some before it, with zeros"
        " before the first. You do not know its taps. But if the signal comes `d` places later,"
        " behind `d` zeros, so must the result. Return whether `filter` obeys this law for this"
        " `x` and `d`, in all places. Keep all of `x`: the later signal is longer. (`x` is an array"
        " of whole numbers, and `filter(x)` is as long as `x`.)"
    ),
    starter="""
def moves(filter, x, d):
    return np.array_equal(filter(d * x), d * filter(x))  # a linear law: it finds no border
""",
    solution=moves,
    inputs=filter_inputs,
    play=only_called,
    reference=lambda filter, x, d: moves(filter, x, d),
    shapes=tuple(
        (kind, taps, n, d)
        for kind in range(len(FILTERS))
        for taps, n, d in ((3, 8, 1), (2, 9, 4), (3, 10, 3))
    ),
    fresh=some_filter,
    hints=(
        "`np.concatenate([np.zeros(d, x.dtype), x])` is the signal, `d` places later.",
        "What must the first `d` results be now, and what those behind them?",
        "`np.array_equal(later, np.concatenate([np.zeros(d, x.dtype), filter(x)]))`, where `later`"
        " is the result for the later signal.",
    ),
    wrong=(
        Wrong(
            moves_from_d_on,
            "wrong_value",
            "The first `d` results count, too: nothing has come yet, so they must be zeros.",
        ),
        Wrong(
            starts_with_zeros,
            "wrong_value",
            "These are the first `d` results alone. Those behind them must be the old ones.",
        ),
        Wrong(
            moves_by_one,
            "wrong_value",
            "This moves the signal by one place, whatever `d` is.",
        ),
        Wrong(
            turns_round,
            "wrong_value",
            "What `np.roll` pushes out at the end comes in again at the start. Put zeros before"
            " `x` instead.",
        ),
        Wrong(
            in_the_same_room,
            "wrong_value",
            "The last `d` numbers are lost here. Keep all of `x`: the later signal is longer.",
        ),
        Wrong(
            sums_move,
            "wrong_value",
            "A number at a wrong place leaves the sum as it is: compare the places, not the sums.",
        ),
        Wrong(
            some_move,
            "wrong_value",
            "The law has to hold in all places: compare the whole arrays.",
        ),
        Wrong(
            doubles,
            "wrong_value",
            "That is a linear law. A filter that forgets its neighbours at a border obeys it.",
        ),
        Wrong(
            zeros_behind,
            "wrong_value",
            "These zeros come behind `x`, so that nothing moves: put them before it.",
        ),
    ),
)


# ---- findings: what a call does besides returning the right values


class Guest:
    """A kernel that doubles each number and adds 1, and has a habit."""

    def __init__(self, habit):
        self.habit = habit
        self._kept = {}

    def __repr__(self):
        return f"<{self.habit}>"

    def __call__(self, x):
        if self.habit == "works in x":
            x *= 2
            x += 1
            return x
        if self.habit == "clears x":
            out = 2 * x + 1
            x[:] = 0
            return out
        if self.habit == "puts x back":
            x *= 2
            out = x + 1
            x //= 2
            return out
        if self.habit == "one array for all results":
            out = self._kept.setdefault(x.size, np.empty_like(x))
            np.add(2 * x, 1, out=out)
            return out
        if self.habit == "keeps results":
            return self._kept.setdefault(x.ctypes.data, 2 * x + 1)
        if self.habit == "keeps copies of results":
            return self._kept.setdefault(x.ctypes.data, 2 * x + 1).copy()
        return 2 * x + 1


#: A guest's habit -> whether it changes x, returns memory of x, returns the same memory again, and
#: returns an old answer for new numbers
HABITS = {
    "no habit": (False, False, False, False),
    "works in x": (True, True, True, False),
    "clears x": (True, False, False, False),
    "puts x back": (False, False, False, False),
    "one array for all results": (False, False, True, False),
    "keeps results": (False, False, True, True),
    "keeps copies of results": (False, False, False, True),
}


def findings(kernel, x):
    before = x.copy()
    first = kernel(x)
    changes = not np.array_equal(x, before)
    shares = np.shares_memory(first, x)
    answer = first.copy()
    x[:] = before + 1
    second = kernel(x)
    again = np.shares_memory(first, second)
    keeps = np.array_equal(second, answer)
    return changes, shares, again, keeps


def without_copies(kernel, x):
    first = kernel(x)
    changes = False
    shares = np.shares_memory(first, x)
    x += 1
    second = kernel(x)
    return changes, shares, np.shares_memory(first, second), np.array_equal(first, second)


def same_numbers_again(kernel, x):
    before = x.copy()
    first = kernel(x)
    changes = not np.array_equal(x, before)
    shares = np.shares_memory(first, x)
    answer = first.copy()
    x[:] = before
    second = kernel(x)
    return changes, shares, np.shares_memory(first, second), np.array_equal(second, answer)


def called_twice(kernel, x):
    before = x.copy()
    first = kernel(x)
    changes = not np.array_equal(x, before)
    shares = np.shares_memory(first, x)
    answer = first.copy()
    second = kernel(x)
    return changes, shares, np.shares_memory(first, second), np.array_equal(second, answer)


def the_other_way_round(kernel, x):
    before = x.copy()
    first = kernel(x)
    changes = not np.array_equal(x, before)
    shares = np.shares_memory(first, x)
    answer = first.copy()
    x[:] = before[::-1]
    second = kernel(x)
    return changes, shares, np.shares_memory(first, second), np.array_equal(second, answer)


def at_another_address(kernel, x):
    before = x.copy()
    first = kernel(x)
    changes = not np.array_equal(x, before)
    shares = np.shares_memory(first, x)
    answer = first.copy()
    second = kernel(before + 1)
    return changes, shares, np.shares_memory(first, second), np.array_equal(second, answer)


def by_name(kernel, x):
    first = kernel(x)
    second = kernel(x)
    return False, first is x, first is second, False


def what_is_found(kernel, x):
    """What must be found: `findings` by the habit."""
    return HABITS[kernel.habit]


def guest_inputs(rng, shape):
    habit, n = shape
    return {"kernel": Guest(list(HABITS)[habit]), "x": rng.integers(1, 100, n)}


FINDINGS = Exercise(
    id="not_written.findings",
    title="Catch the cheat",
    minutes=8,
    kind="function",
    task=(
        "`kernel(x)` returns the right numbers, as far as one call shows. `x` is an array of whole"
        " numbers, and the kernel should leave it as it is. Find out what else it does, and return"
        " four answers, each `True` or `False`: does it change `x`? Does its result share memory"
        " with `x`? Do the results of two calls share memory? Does it return the old answer when"
        " other numbers stand in the **same** array `x`? (Right results for other numbers differ."
        " `np.shares_memory(a, b)` looks at two arrays. You may change `x`.)"
    ),
    starter="""
def findings(kernel, x):
    before = x.copy()
    first = kernel(x)
    changes = not np.array_equal(x, before)
    return changes, False, False, False
""",
    solution=findings,
    inputs=guest_inputs,
    play=only_called,
    reference=what_is_found,
    shapes=tuple((habit, n) for habit in range(len(HABITS)) for n in (1, 7, 64)),
    fresh=some_numbers((0, len(HABITS)), (1, 200)),
    hints=(
        "You need two calls. Between them put other numbers into the same array: `x[:] = ...`.",
        "Take a copy of the first result at once: some kernels write their next result over it.",
        "`again = np.shares_memory(first, second)`, and `keeps` compares the second result with"
        " the copy of the first.",
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Kernels that keep answers are not found: put other numbers into the same array `x`,"
            " and call again.",
            lambda kernel, x: (*HABITS[kernel.habit][:3], False),
        ),
        Hypothesis(
            "wrong_value",
            "With the same numbers in `x` the old answer is the right one: put others there before"
            " the second call.",
            lambda kernel, x: (*HABITS[kernel.habit][:3], True),
        ),
        Hypothesis(
            "wrong_value",
            "The second call finds the numbers that the first one left, mostly the same: then the"
            " old answer is the right one. Put others into `x` between the calls.",
            lambda kernel, x: (
                *HABITS[kernel.habit][:3],
                kernel.habit not in ("works in x", "clears x"),
            ),
        ),
        Hypothesis(
            "wrong_value",
            "An `x` of one number is the same in reverse order: put other numbers into it.",
            lambda kernel, x: (*HABITS[kernel.habit][:3], HABITS[kernel.habit][3] or x.size == 1),
        ),
        Hypothesis(
            "wrong_value",
            "A kernel with one array for all results has overwritten the first when you compare:"
            " copy the first result before the second call.",
            lambda kernel, x: (*HABITS[kernel.habit][:3], any(HABITS[kernel.habit][2:])),
        ),
        Hypothesis(
            "wrong_value",
            "The second call gets an array of its own: change the numbers in `x` itself, and call"
            " the kernel on `x` again.",
            lambda kernel, x: (
                *HABITS[kernel.habit][:2],
                kernel.habit == "one array for all results",
                False,
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Nothing is copied: take a copy of `x` before the call, and of the first result right"
            " after it.",
            lambda kernel, x: (
                False,
                *HABITS[kernel.habit][1:3],
                any(HABITS[kernel.habit][2:]),
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Only the first question is answered: three are left.",
            lambda kernel, x: (HABITS[kernel.habit][0], False, False, False),
        ),
        Hypothesis(
            "wrong_value",
            "Only a change of `x` is missed: take a copy of `x` before the call.",
            lambda kernel, x: (False, *HABITS[kernel.habit][1:]),
        ),
    ),
    wrong=(
        Wrong(without_copies, "wrong_value"),
        Wrong(same_numbers_again, "wrong_value"),
        Wrong(called_twice, "wrong_value"),
        Wrong(the_other_way_round, "wrong_value"),
        Wrong(at_another_address, "wrong_value"),
        Wrong(by_name, "wrong_value"),
        ("answer = first.copy()", "answer = first", "wrong_value"),
        ("before = x.copy()", "before = x", "wrong_value"),
    ),
)


# ---- bench: a clock that is not fooled

FRESH, FLUSH, LAUNCH = 40, 300, 1  # ticks: to fill an input, to empty the cache, to launch


class Machine:
    """A GPU that counts ticks: what is launched is done later, one thing after another."""

    def __init__(self):
        self._now = self._done = self._inputs = self._calls = 0
        self._cached = None

    def __repr__(self):
        return "machine"

    def clock(self):
        """What time it is, in ticks."""
        return self._now

    def wait(self):
        """Wait until all is done that was launched."""
        self._now = max(self._now, self._done)

    def fresh(self):
        """A new input with other numbers. What was written last is in the cache."""
        self._inputs += 1
        self._launch(FRESH)
        self._cached = self._inputs
        return self._inputs

    def flush(self):
        """Empty the cache."""
        self._launch(FLUSH)
        self._cached = None

    def _launch(self, ticks):
        self._now += LAUNCH
        self._done = max(self._now, self._done) + ticks


class Guests:
    """A kernel on a Machine. cost: ticks of a call whose input is not in the cache."""

    def __init__(self, habit, machine, cost):
        self.habit, self._machine, self._cost = habit, machine, cost
        self._seen = set()

    def __repr__(self):
        return f"<{self.habit}, {self._cost} ticks>"

    def __call__(self, x):
        machine, calls = self._machine, self._machine._calls
        machine._calls += 1
        ticks = self._cost
        if machine._cached == x:
            ticks //= 4
        if calls % 3 == 2:  # somebody else used the machine
            ticks *= 3
        if calls % 5 == 4:  # the clock of the chip was higher for a moment
            ticks = ticks * 7 // 8
        if self.habit == "keeps answers" and x in self._seen:
            ticks = 1
        if self.habit == "compiles at first" and not calls:
            ticks += 9000
        if self.habit == "stops the clock":
            machine.clock = lambda: 0
        if self.habit == "lets nobody wait":
            machine.wait = lambda: None
        self._seen.add(x)
        machine._cached = x
        machine._launch(ticks)


KINDS = ("plain", "keeps answers", "compiles at first", "stops the clock", "lets nobody wait")


def bench(kernel, machine, rounds):
    clock, wait = machine.clock, machine.wait
    kernel(machine.fresh())
    times = []
    for _ in range(rounds):
        x = machine.fresh()
        machine.flush()
        wait()
        begin = clock()
        kernel(x)
        wait()
        times.append(clock() - begin)
    return statistics.median(times)


def bench_in_one(kernel, machine, rounds):
    clock, wait = machine.clock, machine.wait
    x = machine.fresh()
    kernel(x)
    wait()
    begin = clock()
    for _ in range(rounds):
        kernel(x)
    wait()
    return (clock() - begin) // rounds


def in_ticks(answer, *arguments):
    """What an answer returns; whole ticks as an int, be they np.median's."""
    ticks = only_called(answer, *arguments)
    return int(ticks) if isinstance(ticks, float) and ticks.is_integer() else ticks


def honest_time(kernel, machine, rounds):
    """Ticks of one call with a launch, from a cold cache, on a quiet machine."""
    return kernel._cost + LAUNCH


def bench_inputs(rng, shape):
    kind, cost, rounds = shape
    machine = Machine()
    return {
        "kernel": Guests(KINDS[kind], machine, cost),
        "machine": machine,
        "rounds": rounds,
    }


def some_bench(rng):
    rounds = int(rng.choice([5, 7, 9, 11]))
    return int(rng.integers(len(KINDS))), int(rng.integers(100, 2000)), rounds


BENCH = Exercise(
    id="not_written.bench",
    title="Repair the bench",
    minutes=10,
    kind="function",
    task=(
        "`machine` is a toy GPU that counts ticks. `machine.fresh()` gives a new input,"
        " `machine.flush()` empties the cache, `machine.wait()` waits for all that was launched,"
        " and `machine.clock()` tells the time. `kernel(x)` only launches, which takes a tick"
        " itself. Return the median time"
        " of `rounds` calls (an odd number), in ticks: each with a new input and an empty cache,"
        " from a machine that has nothing left to do until the kernel is done. Some kernels keep"
        " answers, and some put another clock or another `wait` into `machine` when they are"
        " called: take yours before you let them in."
    ),
    starter="""
def bench(kernel, machine, rounds):
    x = machine.fresh()
    kernel(x)  # warm-up
    begin = machine.clock()
    for _ in range(rounds):
        kernel(x)
    return (machine.clock() - begin) // rounds
""",
    solution=bench,
    inputs=bench_inputs,
    play=in_ticks,
    reference=honest_time,
    shapes=tuple(
        (kind, cost, rounds) for kind in range(len(KINDS)) for cost, rounds in ((800, 5), (123, 7))
    ),
    fresh=some_bench,
    real=True,
    hints=(
        "First `clock, wait = machine.clock, machine.wait`, and from then on only these two.",
        "In each round: a fresh input, `machine.flush()`, `wait()`, and only then the first look at"
        " the clock.",
        "After `kernel(x)` comes `wait()`, then `times.append(clock() - begin)`; at the end the"
        " middle one of `sorted(times)`.",
    ),
    wrong=(
        Wrong(bench_in_one, "wrong_value"),
        (
            "        kernel(x)\n        wait()\n",
            "        kernel(x)\n",
            "wrong_value",
            "The clock is read before the kernel is done: wait once more after the call.",
        ),
        (
            "        wait()\n        begin",
            "        begin",
            "wrong_value",
            "The time of filling and flushing is counted, too: wait before the first look at the"
            " clock.",
        ),
        (
            "        machine.flush()\n",
            "",
            "wrong_value",
            "The new input is still in the cache, where it was written last: flush after"
            " `machine.fresh()`.",
        ),
        (
            "statistics.median(times)",
            "sum(times) // rounds",
            "wrong_value",
            "This is the mean. Rounds in which somebody else used the machine pull it up: take the"
            " median.",
        ),
        (
            "statistics.median(times)",
            "min(times)",
            "wrong_value",
            "This is the shortest time. For a moment the chip ran faster than it usually does: take"
            " the median.",
        ),
        (
            "statistics.median(times)",
            "max(times)",
            "wrong_value",
            "This is the longest time, from a round in which somebody else used the machine: take"
            " the median.",
        ),
        (
            "        x = machine.fresh()\n        machine.flush()\n",
            "        machine.flush()\n        x = machine.fresh()\n",
            "wrong_value",
            "`machine.fresh()` comes after `machine.flush()`, so the new input is in the cache"
            " again: flush last.",
        ),
        (
            ("        x = machine.fresh()\n", ""),
            ("        kernel(x)\n", "        x = machine.fresh()\n        kernel(x)\n"),
            "wrong_value",
            "`machine.fresh()` comes after the first look at the clock: it is timed, too, and the"
            " new input is in the cache.",
        ),
        (
            "clock, wait = machine.clock",
            "clock, wait = lambda: machine.clock()",
            "wrong_value",
            "A kernel has put another clock into the machine: take `machine.clock` before the first"
            " call, and keep it.",
        ),
        (
            "machine.clock, machine.wait",
            "lambda: machine.clock(), lambda: machine.wait()",
            "wrong_value",
            "Kernels have put another clock and another `wait` into the machine: take both before"
            " the first call, and keep them.",
        ),
        (
            "machine.clock, machine.wait",
            "machine.clock, lambda: machine.wait()",
            "wrong_value",
            "A kernel has put another `wait` into the machine: take `machine.wait` before the first"
            " call, and keep it.",
        ),
        (
            "        x = machine.fresh()\n        machine.flush()",
            "        x = 1\n        machine.flush()",
            "wrong_value",
            "A kernel that keeps answers has seen this input before: give it a new one in each"
            " round.",
        ),
    ),
)


EXERCISES = (ROUNDINGS, TELLING, LAW, MOVES, FINDINGS, BENCH)

QUIZZES = (
    one_of(
        "not_written.q_tolerance",
        "A softmax of rows with 400,000 numbers is compared by `allclose(..., rtol=1e-2,"
        " atol=1e-2)`. What does this comparison accept?",
        (
            "Results with an error of at most 1 %",
            "Both tolerances are added. `atol` alone is far larger than any of the results here.",
        ),
        (
            "Zeros as well",
            "Each result is about 0.0000025, and may be wrong by 0.01: zero is near enough.",
        ),
        (
            "Only what is equal in the first two digits",
            "That would be `rtol` alone. `atol` comes on top, and it does not shrink with the"
            " results.",
        ),
        answer="b",
    ),
    one_of(
        "not_written.q_kept",
        "A kernel keeps its answers under the address of its input. Which test finds that?",
        (
            "The same call twice, compared bit for bit",
            "The kept answer is the right one for it, to the last bit.",
        ),
        (
            "A call with other numbers in the same array",
            "The address is the same, so it returns the answer for the old numbers.",
        ),
        (
            "Many calls, each with a new array of its own",
            "If the arrays live on, each has its own address, and each answer is computed.",
        ),
        answer="b",
    ),
    one_of(
        "not_written.q_fast",
        "A submission takes 0.02 ms. It has to move 268 MB, and the GPU copies 4.2 TB/s. What does"
        " that say?",
        (
            "It is fast: it must use the L2 cache well",
            "The L2 cache of this GPU holds a part of 268 MB, and the bench empties it.",
        ),
        (
            "It did not do this work in that time",
            "Moving the bytes alone takes 0.06 ms. The work was left out, or done at another time.",
        ),
        (
            "Nothing, before it was measured again",
            "A second measurement by the same clock says the same. The bytes already tell.",
        ),
        answer="b",
    ),
)
