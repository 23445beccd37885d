"""The exercises of the chapter on many GPUs."""

from course.checking.answers import but
from course.checking.inputs import arguments_of
from course.checking.model import Exercise, Hypothesis, Wrong
from course.checking.quiz import Quiz, one_of
from course.kernels.many_gpus.practice import Link, play

# ---- many_gpus.hop: who sends which part to whom in a ring


def hop(rank, step, ranks):
    return (rank + 1) % ranks, (rank - step) % ranks


def some_hop(rng):
    ranks = int(rng.integers(2, 80))
    return int(rng.integers(ranks)), int(rng.integers(2 * ranks - 2)), ranks


HOP = Exercise(
    id="many_gpus.hop",
    title="One hop of the ring",
    minutes=10,
    kind="function",
    task=(
        "In step 0 rank r sends its part number r to the next rank. In every later step it sends "
        "what came in the step before. Return (to whom, which part) for a rank and a step; there "
        "are two ranks or more."
    ),
    starter="""
def hop(rank, step, ranks):
    # to whom, which part
    ...
""",
    solution=hop,
    inputs=arguments_of(hop),
    reference=hop,
    shapes=((0, 0, 4), (3, 0, 4), (1, 1, 4), (0, 1, 4), (2, 5, 4), (1, 3, 3), (7, 9, 8), (1, 1, 2)),
    fresh=some_hop,
    hints=(
        "The last rank's next one is rank 0: `% ranks`.",
        "What rank r gets in step 0 is part r - 1. That is what it sends in step 1. In step 2?",
        "`(rank + 1) % ranks, (rank - step) % ranks`.",
    ),
    wrong=(
        (
            "(rank + 1) % ranks,",
            "rank + 1,",
            "wrong_value",
            "After the last rank comes rank 0: a ring has no end.",
        ),
        (
            "return (rank + 1)",
            "return (rank - 1)",
            "wrong_value",
            "That is the wrong neighbour: data goes to the next rank.",
        ),
        (
            "ranks, (rank - step)",
            "ranks, (rank + step)",
            "wrong_value",
            "What a rank sends came from the rank before it, so its number falls with the steps.",
        ),
        (
            "(rank - step) % ranks",
            "rank",
            "wrong_value",
            "Its own part leaves a rank in step 0 only.",
        ),
        ("rank - step", "rank - step * (ranks > 2)", "wrong_value"),
    ),
)


# ---- many_gpus.cost: what a ring costs


def cost(bytes, ranks):
    return 2 * (ranks - 1), 2 * (ranks - 1) * bytes // ranks


def some_message(rng):
    ranks = int(rng.integers(3, 65))
    return ranks * int(rng.integers(1, 1000)), ranks


COST = Exercise(
    id="many_gpus.cost",
    title="What a ring costs",
    minutes=8,
    kind="function",
    task=(
        "A message of so many bytes (a multiple of the ranks) goes round the ring, until every "
        "rank has the sum. Return (how many steps, how many bytes each rank sends in all)."
    ),
    starter="""
def cost(bytes, ranks):
    # steps, bytes that each rank sends
    ...
""",
    solution=cost,
    inputs=arguments_of(cost),
    reference=cost,
    shapes=((8, 2), (64, 4), (7, 1), (1 << 20, 8), (300, 3), (63, 9), (10**12, 10**4)),
    fresh=some_message,
    real=True,
    hints=(
        "After how many steps is the first part complete? It then has to reach all others.",
        "Each step sends one part, and there are as many parts as ranks.",
        "`2 * (ranks - 1), 2 * (ranks - 1) * bytes // ranks`.",
    ),
    wrong=(
        ("return 2 * (ranks - 1), 2", "return ranks - 1, 2", "wrong_value"),
        ("2 * (ranks - 1) * bytes // ranks", "2 * bytes", "wrong_value"),
        ("bytes // ranks", "bytes", "wrong_value"),
        ("2 * (ranks - 1), 2 *", "2 * ranks, 2 *", "wrong_value"),
        (
            "2 * (ranks - 1) * bytes // ranks",
            "(ranks - 1) * bytes // ranks",
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "After n - 1 steps each part is complete at one rank only: it must still go round.",
            but(cost, "return 2 * (ranks - 1), 2", "return ranks - 1, 2"),
        ),
        Hypothesis(
            "wrong_value",
            "A step sends one part, not the whole message.",
            but(cost, "bytes // ranks", "bytes"),
        ),
        Hypothesis(
            "wrong_value",
            "Parts go round twice, first growing, then complete: a rank sends in both.",
            but(cost, "2 * (ranks - 1) * bytes // ranks", "(ranks - 1) * bytes // ranks"),
        ),
    ),
)


# ---- many_gpus.ring_sum: messages that are started and waited for


def ring_sum(link, mine):
    total, passing, arriving = mine, [mine], [0]
    for _ in range(link.ranks - 1):
        arrival = link.receive((link.rank - 1) % link.ranks, arriving)
        departure = link.send((link.rank + 1) % link.ranks, passing)
        arrival.wait()
        departure.wait()
        total += arriving[0]
        passing[0] = arriving[0]
    return total


def ring_sum_waits_first(link, mine):
    total, passing, arriving = mine, [mine], [0]
    for _ in range(link.ranks - 1):
        link.receive((link.rank - 1) % link.ranks, arriving).wait()
        link.send((link.rank + 1) % link.ranks, passing).wait()
        total += arriving[0]
        passing[0] = arriving[0]
    return total


def ring_sum_waits_for_its_send(link, mine):
    total, passing, arriving = mine, [mine], [0]
    for _ in range(link.ranks - 1):
        link.send((link.rank + 1) % link.ranks, passing).wait()
        link.receive((link.rank - 1) % link.ranks, arriving).wait()
        total += arriving[0]
        passing[0] = arriving[0]
    return total


def ring_sum_in(link, mine):
    """What the sum must be: the reference looks at all numbers."""
    return sum(link.numbers)


def ring_sum_of_totals(link, mine):
    """What comes of passing on the total."""
    totals = passing = list(link.numbers)
    for _ in range(link.ranks - 1):
        totals = [total + passing[rank - 1] for rank, total in enumerate(totals)]
        passing = totals
    return totals[link.rank]


def ring_sum_inputs(rng, shape):
    ranks, rank = shape
    numbers = rng.integers(1, 10**9, ranks).tolist()
    return {"link": Link(rank, numbers), "mine": numbers[rank]}


def some_ring(rng):
    ranks = int(rng.integers(3, 9))
    return ranks, int(rng.integers(ranks))


RING_SUM = Exercise(
    id="many_gpus.ring_sum",
    title="A turn that waits",
    minutes=10,
    kind="function",
    task=(
        "Every rank runs this function with its own number. `link.send(to, buffer)` and "
        "`link.receive(source, buffer)` start a message and return at once; `.wait()` on what they "
        "return ends when the buffer may be used again. Numbers go to the next rank, turn by turn, "
        "until every rank has added up all. One rank alone has its own number. The starter waits "
        "for ever: repair it."
    ),
    starter="""
def ring_sum(link, mine):
    total, passing, arriving = mine, [mine], [0]
    for _ in range(link.ranks - 1):
        link.receive((link.rank - 1) % link.ranks, arriving).wait()
        link.send((link.rank + 1) % link.ranks, passing).wait()
        total += arriving[0]
        passing[0] = arriving[0]
    return total
""",
    solution=ring_sum,
    inputs=ring_sum_inputs,
    reference=ring_sum_in,
    shapes=((2, 0), (2, 1), (1, 0), (4, 0), (4, 3), (8, 5)),
    fresh=some_ring,
    play=play,
    after=lambda arguments, expected: arguments["link"].left_open(),
    hints=(
        "What has every rank done when it waits for the first time? Who could have sent something?",
        "Start both messages of a turn, then wait for both.",
        "`departure = link.send(...)` goes before `arrival.wait()`; and `departure.wait()` before "
        "`passing` gets another number.",
    ),
    wrong=(
        Wrong(ring_sum_waits_first, "crashed"),
        Wrong(ring_sum_waits_for_its_send, "crashed"),
        ("link.send((link.rank + 1)", "link.send((link.rank - 1)", "crashed"),
        ("        arrival.wait()\n", "", "crashed"),
        ("        departure.wait()\n", "", "other_means"),
        ("passing[0] = arriving[0]", "passing[0] = total", "wrong_value"),
        ("range(link.ranks - 1)", "range(link.ranks)", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "What came goes on to the next rank, not the total: that holds numbers twice.",
            ring_sum_of_totals,
        ),
        Hypothesis(
            "wrong_value",
            "A number stands in its buffer when `.wait()` has returned, and not before.",
            lambda link, mine: mine,
        ),
        Hypothesis(
            "wrong_value",
            "One turn too many: after all the others' numbers a rank's own comes back to it.",
            lambda link, mine: sum(link.numbers) + mine,
        ),
    ),
)


# ---- many_gpus.share: which digits of a batch are a rank's


def share(count, rank, ranks):
    each, rest = divmod(count, ranks)
    first = rank * each + min(rank, rest)
    return first, first + each + (rank < rest)


def some_share(rng):
    ranks = int(rng.integers(1, 80))
    count = rng.integers(1 << rng.integers(18))  # few as often as many
    return int(count), int(rng.integers(ranks)), ranks


SHARE = Exercise(
    id="many_gpus.share",
    title="Everyone's share",
    minutes=8,
    kind="function",
    task=(
        "`count` digits, perhaps none, are shared out among the ranks: every digit to one rank, "
        "in order, no "
        "share more than one digit longer than another, the longer ones first. Return (first, "
        "end) of a rank's share, `end` being one past its last digit."
    ),
    starter="""
def share(count, rank, ranks):
    each = count // ranks
    return rank * each, (rank + 1) * each
""",
    solution=share,
    inputs=arguments_of(share),
    reference=share,
    shapes=(
        (8, 1, 2),
        (10, 0, 4),
        (10, 2, 4),
        (10, 3, 4),
        (3, 2, 4),
        (7, 6, 8),
        (5, 0, 1),
        (0, 1, 3),
        (100, 5, 7),
    ),
    fresh=some_share,
    real=True,
    hints=(
        "10 digits, 4 ranks: shares of 3, 3, 2, 2. Which ranks have a longer one?",
        "The first `count % ranks` ranks have one digit more. How many of those stand before a "
        "rank?",
        "`first = rank * each + min(rank, rest)`, where `each, rest = divmod(count, ranks)`.",
    ),
    wrong=(
        (
            "first, first + each + (rank < rest)",
            "rank * each, (rank + 1) * each",
            "wrong_value",
            "When the ranks do not divide the batch, its last digits belong to nobody.",
        ),
        (
            "first, first + each + (rank < rest)",
            "share(count, 0, ranks)",
            "wrong_value",
            "All ranks train on the first rank's share.",
        ),
        (
            "first, first + each + (rank < rest)",
            "rank * each, count if rank == ranks - 1 else (rank + 1) * each",
            "wrong_value",
            "The last rank gets all the rest, and everyone waits for it.",
        ),
        ("min(rank, rest)", "rest", "wrong_value"),
        ("divmod(count", "divmod(max(count, 1)", "wrong_value"),
    ),
)


# ---- many_gpus.step: one step with everyone's gradients


def step(weight, gradients):
    return weight - sum(gradients) // len(gradients)


STEP = Exercise(
    id="many_gpus.step",
    title="One step for all",
    minutes=6,
    kind="function",
    task=(
        "Each rank has divided its loss by its own batch, and `gradients` holds every rank's "
        "gradient of one weight. Return the weight after a step with learning rate 1, as one GPU "
        "would take it on the whole batch. (Whole numbers here: the ranks divide the sum.)"
    ),
    starter="""
def step(weight, gradients):
    return weight - gradients[0]
""",
    solution=step,
    inputs=lambda rng, shape: {
        "weight": shape[0],
        "gradients": some_gradients(rng, shape[1]),
    },
    reference=step,
    shapes=((5, 2), (0, 3), (9, 1), (-7, 4), (100, 8), (10**9, 64)),
    fresh=lambda rng: (int(rng.integers(-(10**9), 10**9)), int(rng.integers(2, 9))),
    real=True,
    hints=(
        "Two ranks, the same digits on both: what must the step be?",
        "The mean over a batch is the mean of its parts' means, if the parts are equally long.",
        "`weight - sum(gradients) // len(gradients)`.",
    ),
    wrong=(
        ("sum(gradients) // len(gradients)", "sum(gradients)", "wrong_value"),
        ("sum(gradients) // len(gradients)", "gradients[0]", "wrong_value"),
        (
            "sum(gradients) // len(gradients)",
            "(sum(gradients) + gradients[0] - gradients[-1]) // len(gradients)",
            "wrong_value",
        ),
        ("weight -", "weight +", "wrong_value"),
        ("return", "gradients = set(gradients)\n    return", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The gradients are added up and not averaged: the step grows with the ranks.",
            but(step, "sum(gradients) // len(gradients)", "sum(gradients)"),
        ),
        Hypothesis(
            "wrong_value",
            "Only the first rank's gradient counts: the others trained for nothing.",
            but(step, "sum(gradients) // len(gradients)", "gradients[0]"),
        ),
        Hypothesis(
            "wrong_value",
            "The first rank's gradient counts twice, the last one's not at all.",
            but(
                step,
                "sum(gradients) // len(gradients)",
                "(sum(gradients) + gradients[0] - gradients[-1]) // len(gradients)",
            ),
        ),
    ),
)


def some_gradients(rng, count):
    """Whole numbers, of three or more some equal; their count divides their sum."""
    different = rng.integers(-(10**9), 10**9, count // 2 + 1)
    *numbers, last = rng.choice(different, count).tolist()
    return [*numbers, last - (sum(numbers) + last) % count]


# ---- many_gpus.memory: what sharding saves


def memory(parameters, ranks, stage):
    weights, gradients, state = 2 * parameters, 2 * parameters, 12 * parameters
    if stage >= 1:
        state //= ranks
    if stage >= 2:
        gradients //= ranks
    if stage >= 3:
        weights //= ranks
    return weights + gradients + state


def memory_one_stage_only(parameters, ranks, stage):
    parts = [12 * parameters, 2 * parameters, 2 * parameters]
    if stage:
        parts[stage - 1] //= ranks
    return sum(parts)


def some_memory(rng):
    ranks = int(rng.choice([rng.integers(2, 9), rng.integers(9, 20_000)]))
    return ranks * int(rng.integers(1, 10**9)), ranks, int(rng.integers(0, 4))


MEMORY = Exercise(
    id="many_gpus.memory",
    title="What sharding saves",
    minutes=10,
    kind="function",
    task=(
        "A parameter takes 2 bytes (bf16), its gradient 2, and Adam's state 12: the weight in "
        "float32 and two moments. Stage 0: every rank has all. Stage 1: the state is shared out "
        "among the ranks. Stage 2: the gradients, too. Stage 3: the parameters, too. Return the "
        "bytes on each rank. (The ranks divide the parameters.)"
    ),
    starter="""
def memory(parameters, ranks, stage):
    return 16 * parameters
""",
    solution=memory,
    inputs=arguments_of(memory),
    reference=memory,
    shapes=(
        *((800, 8, 0), (800, 8, 1), (800, 8, 2), (800, 8, 3), (64, 2, 1), (64, 2, 3), (7, 1, 3)),
        *((10**10, 1000, 2), (5 * 2**40, 1 << 14, 1), (5 * 2**40, 1 << 14, 2)),
    ),
    fresh=some_memory,
    real=True,
    hints=(
        "Stage 1 leaves 4 bytes a parameter on every rank. What becomes of the other 12?",
        "Each stage keeps what the one before it shared out.",
        "Begin with three sums, and divide: the state from stage 1 on, the gradients from 2 on, "
        "the parameters in 3.",
    ),
    wrong=(
        (
            "weights + gradients + state",
            "16 * parameters // (ranks if stage else 1)",
            "wrong_value",
            "Everything is shared out as soon as anything is: stages 1 and 2 keep the parameters.",
        ),
        Wrong(
            memory_one_stage_only,
            "wrong_value",
            "A stage keeps what those before it have shared out.",
        ),
        ("12 * parameters", "8 * parameters", "wrong_value"),
        ("stage >= 2", "stage >= 1", "wrong_value"),
    ),
)

EXERCISES = (HOP, COST, RING_SUM, SHARE, STEP, MEMORY)

QUIZZES = (
    one_of(
        "many_gpus.q_short",
        "Predict: two GPUs add up 8 bytes. What costs most?",
        ("The link's bandwidth", "At hundreds of gigabytes a second, 8 bytes take nothing."),
        (
            "Launching, and the trip over the link",
            "8 bytes take no time on any link. Starting and arriving do.",
        ),
        ("The addition", "Two additions, among thousands of processors."),
        answer="b",
    ),
    Quiz(
        id="many_gpus.q_parts",
        question="8 ranks add up 80 MB in two shots: part r goes to rank r, the sums come back. "
        "How many MB does each rank send?",
        answer=140,
        unit="MB",
        explain_right="7 parts of 10 MB to the owners, and its own sum to 7 others.",
        explain={
            70: "That is the first shot. The sums must come back.",
            160: "A rank sends nothing to itself.",
            None: "A part has 10 MB. Seven go out, and then one sum goes to seven others.",
        },
    ),
    one_of(
        "many_gpus.q_dead",
        (
            "Every rank of a ring first sends to the next one, and each send waits until it "
            "is received. What happens?"
        ),
        ("The data goes round once", "For that somebody would have to receive."),
        (
            "Nothing, for ever: all send, nobody receives",
            (
                "A deadlock. Let even ranks send first and odd ones receive first, or start "
                "both at once."
            ),
        ),
        ("The last rank breaks the ring", "It has a next rank like all others: rank 0."),
        answer="b",
    ),
    one_of(
        "many_gpus.q_overlap",
        (
            "Backward goes from the last layer to the first. Whose gradient can be summed "
            "over the GPUs while most of the pass still runs?"
        ),
        (
            "The last layer's",
            (
                "It is complete first. So the order in which a pass ends decides what can "
                "travel beside it; in our network the linear layer fc1, one step further, "
                "has nearly all "
                "bytes, and the convolutions' long backward pass still comes."
            ),
        ),
        ("The first layer's", "That one is complete when the pass is over."),
        ("None", "A gradient is complete when its layer's part of the pass is done."),
        answer="a",
    ),
)
