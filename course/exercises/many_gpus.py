"""The exercises of the chapter on many GPUs."""

import numpy as np

from course.checking.answers import but
from course.checking.inputs import arguments_of, normal, some_numbers
from course.checking.model import Exercise, Hypothesis, InOut, Launch, Out, Wrong
from course.checking.quiz import one_of
from course.kernels.many_gpus import trying
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
    minutes=6,
    kind="function",
    task=(
        "In step 0 rank r sends its part number r to the next rank. In every later step it sends "
        "the part that it received in the step before. Return (to whom, which part) for a rank and "
        "a step; there are two ranks or more."
    ),
    starter="""
def hop(rank, step, ranks):
    # to whom, which part
    ...
""",
    solution=hop,
    inputs=arguments_of(hop),
    reference=hop,
    shapes=(
        (0, 0, 4),
        (3, 0, 4),
        (1, 1, 4),
        (0, 1, 4),
        (2, 5, 4),
        (1, 3, 3),
        (7, 9, 8),
        (1, 1, 2),
        (999, 1497, 1000),
    ),
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
    minutes=4,
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
        (
            "2 * (ranks - 1), 2 * (ranks - 1) * bytes // ranks",
            "ranks - 1, (ranks - 1) * bytes // ranks",
            "wrong_value",
            "That brings each sum to one rank only: who tells the others?",
        ),
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
            "A step sends one part, not the whole message. (Or are these the bytes of all ranks?)",
            but(cost, "bytes // ranks", "bytes"),
        ),
        Hypothesis(
            "wrong_value",
            "Parts go round twice, first growing, then complete: a rank sends in both.",
            but(cost, "2 * (ranks - 1) * bytes // ranks", "(ranks - 1) * bytes // ranks"),
        ),
    ),
)


# ---- many_gpus.exchange: two ranks send each other words, and add

EXCHANGE_CU = trying.TWO_RANKS.read_text(encoding="utf-8")
WORDS = EXCHANGE_CU[EXCHANGE_CU.index("typedef") : EXCHANGE_CU.index("// numbers + r")]
EXCHANGE_HEAD = EXCHANGE_CU[EXCHANGE_CU.index("// numbers + r") : EXCHANGE_CU.index("    int rank")]
WAIT_FOR_WORD = """        while (w >> 32 != flag) {
            __nanosleep(20);
            w = load_word(&inbox[rank * n + i]);
        }
"""
SEND_WORD = "        store_word(&inbox[other * n + i], word(flag) << 32 | bits);\n"


def exchange_inputs(rng, shape):
    """shape: (ranks that run, numbers of a rank). In the inboxes lie older messages' words.

    Their flags are other ones: most are smaller, some larger, from before flags began anew. One
    rank alone finds the words of the other, which has sent them, and has other numbers by now.
    """
    ranks, n = shape
    flag = int(rng.integers(1 << 16, (1 << 32) - 1))
    older = rng.integers(1, flag, (2, n), dtype=np.uint64)
    older[rng.random((2, n)) < 0.5] = flag - 1
    older[rng.random((2, n)) < 0.1] = flag + 1
    stale = normal(rng, 2, n)
    if ranks == 1:
        older[0] = flag
    words = older << np.uint64(32) | stale.view(np.uint32).astype(np.uint64)
    return {
        "sum": Out((ranks, n)),
        "numbers": normal(rng, 2, n),
        "inbox": words,
        "flag": flag,
        "n": n,
    }


def exchanged(sum, numbers, inbox, flag, n):
    """Every rank that runs has the sum of its numbers and of those that it was sent."""
    if sum.shape[0] == 1:
        return numbers[:1].astype(float) + stale_words(inbox)[:1]
    return peeked(sum, numbers, inbox, flag, n)


def peeked(sum, numbers, inbox, flag, n):
    """What comes out if a rank adds what now lies among the other's numbers."""
    return np.tile(numbers.astype(float).sum(0), (sum.shape[0], 1))


def stale_words(inbox):
    """The numbers of the message before, which lie in the inboxes."""
    return (inbox & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)


def one_rank_did_not_wait(rank):
    """What comes out if a rank adds what lay in its inbox."""

    def output(sum, numbers, inbox, flag, n):
        sums = exchanged(sum, numbers, inbox, flag, n)
        if rank < len(sums):
            sums[rank] = numbers[rank].astype(float) + stale_words(inbox)[rank]
        return sums

    return output


def awaited_word(sum, numbers, inbox, flag, n):
    """Which word a rank waits for, and what lies there."""
    for rank, words in enumerate(inbox[: len(sum)]):
        flags = words >> np.uint64(32)
        missing = np.flatnonzero(flags != flag)
        if missing.size:
            i = missing[0]
            return (
                f"Rank {rank} waits for words with the flag {flag:#x} in the upper half. At index"
                f" {i} of its inbox lies none yet: the upper half of the word there is"
                f" {flags[i]:#x}, the lower {words[i] & np.uint64(0xFFFFFFFF):#x}."
            )
    return (
        "All words that were sent lay in the inboxes, with this message's flag. Does the loop that"
        " waits load its word again?"
    )


DID_NOT_WAIT = "A rank added what lay in its inbox before: it did not wait for this message's flag."
EXCHANGE = Exercise(
    id="many_gpus.exchange",
    title="Two ranks exchange",
    minutes=12,
    kind="cuda_c",
    kernel_name="exchange",
    path="build/exchange.cu",
    task=(
        "Two blocks play two ranks, and block r is rank r. Send each of your numbers to the other"
        " rank, as a word of its bits and the message's flag, into the other's inbox. Then wait"
        " for the other's words in your own inbox, and store the sum of both numbers. A rank reads"
        " only what is its own: its numbers and its inbox. An inbox"
        " still holds words of older messages, with other flags; a wait that takes long lets the"
        " others go on with `__nanosleep(20)`."
    ),
    starter=f"""
%%writefile build/exchange.cu
{WORDS}{EXCHANGE_HEAD}    int rank = blockIdx.x;
    int other = 1 - rank;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {{
        unsigned bits = __float_as_uint(numbers[rank * n + i]);
        // your code: send `bits` and `flag` as one word
    }}
    for (int i = threadIdx.x; i < n; i += blockDim.x) {{
        word w = load_word(&inbox[rank * n + i]);
        // your code: wait for the word with this flag
        sum[rank * n + i] = numbers[rank * n + i];  // and add the other's number
    }}
}}
""",
    solution=EXCHANGE_CU,
    inputs=exchange_inputs,
    reference=exchanged,
    shapes=((2, 1), (2, 32), (2, 7), (1, 40), (2, 50), (2, 64), (2, 65)),
    fresh=some_numbers((2, 3), (2, 60)),
    large=(2, 300),
    launches=lambda shape: [
        Launch((shape[0], 1, 1), (32, 1, 1)),
        Launch((shape[0], 1, 1), (64, 1, 1), "blocks of another size"),
    ],
    extents=lambda shape: (64, 1, 1),
    is_square=lambda shape: False,
    workspace=("inbox",),
    waits=True,
    awaited=awaited_word,
    race_free=True,
    effort=10**6,  # who waits looks often
    traffic=10**6,
    hints=(
        "Whose inbox does a rank write, and whose does it read?",
        "A word: `word(flag) << 32 | bits`. Its flag is `w >> 32`, its bits are `unsigned(w)`.",
        "While the flag is not this message's, sleep a little, and load the word again.",
        "The number in a word: `__uint_as_float(unsigned(w))`.",
    ),
    wrong=(
        (WAIT_FOR_WORD, "", "wrong_value"),
        ("w >> 32 != flag", "w >> 32 == 0", "wrong_value"),
        ("w >> 32 != flag", "w >> 32 < flag", "wrong_value"),
        (
            (SEND_WORD, ""),
            (WAIT_FOR_WORD, ""),
            ("__uint_as_float(unsigned(w))", "numbers[other * n + i]"),
            "wrong_value",
        ),
        ("__uint_as_float(unsigned(w))", "numbers[other * n + i]", "wrong_value"),
        ("inbox[other * n + i]", "inbox[rank * n + i]", "wrong_value"),
        (
            (SEND_WORD, ""),
            (
                WAIT_FOR_WORD,
                WAIT_FOR_WORD
                + "        unsigned bits = __float_as_uint(numbers[rank * n + i]);\n"
                + SEND_WORD,
            ),
            "timeout",
        ),
        ("            w = load_word(&inbox[rank * n + i]);\n        }", "        }", "timeout"),
        (
            "store_word(&inbox[other * n + i], word(flag) << 32 | bits)",
            "inbox[other * n + i] = word(flag) << 32 | bits",
            "race",
        ),
        ("word(flag) << 32 | bits", "word(flag) | word(bits) << 32", "timeout"),
        ("numbers[rank * n + i] + __uint", "__uint", "wrong_value"),
        ("__uint_as_float(unsigned(w))", "float(unsigned(w))", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis("wrong_value", DID_NOT_WAIT, one_rank_did_not_wait(0)),
        Hypothesis("wrong_value", DID_NOT_WAIT, one_rank_did_not_wait(1)),
        Hypothesis(
            "wrong_value",
            DID_NOT_WAIT,
            lambda sum, numbers, inbox, flag, n: numbers.astype(float) + stale_words(inbox),
        ),
        Hypothesis(
            "wrong_value",
            "A rank looked at the other's numbers. It has only what comes into its inbox: here the"
            " other rank has sent its words, and has other numbers by now.",
            peeked,
        ),
        Hypothesis(
            "wrong_value",
            "A rank's words came back to itself: it wrote its own inbox, and not the other's.",
            lambda sum, numbers, inbox, flag, n: 2 * numbers.astype(float),
        ),
        Hypothesis(
            "wrong_value",
            "What came is there, and a rank's own number is missing in its sum.",
            lambda sum, numbers, inbox, flag, n: numbers[::-1],
        ),
        Hypothesis(
            "wrong_value",
            "A number's bits were taken as a whole number: `__uint_as_float` says what they mean.",
            lambda sum, numbers, inbox, flag, n: (
                numbers.astype(float) + np.ascontiguousarray(numbers[::-1]).view(np.uint32)
            ),
        ),
    ),
)


# ---- many_gpus.ring: a ring of ranks as a kernel

RING_CU = trying.RING_OF_BLOCKS.read_text(encoding="utf-8")
FLAGS = RING_CU[RING_CU.index("// Whoever sees") : RING_CU.index("// Block r is")]
RING_HEAD = RING_CU[RING_CU.index("// Block r is") : RING_CU.index("    for (int step")]
WAIT_FOR_PART = """            if (threadIdx.x == 0)
                while (load_acquire(&flags[rank]) < step)
                    __nanosleep(20);
            __syncthreads();
"""
TELL_NEXT = """        __syncthreads();
        if (threadIdx.x == 0)
            store_release(&flags[next], step + 1);
"""


def ring_inputs(rng, shape):
    """shape: (ranks, numbers of a part). Where parts arrive lies garbage."""
    ranks, size = shape
    n = ranks * size
    return {
        "numbers": InOut(rng.integers(-1000, 1000, (ranks, n)).astype(np.float32)),
        "arrived": rng.integers(5000, 9000, (ranks, n)).astype(np.float32),
        "flags": np.zeros(ranks, np.uint32),
        "n": n,
    }


def summed(numbers, arrived, flags, n):
    """Every rank has the sums."""
    return np.tile(numbers.astype(float).sum(0), (len(numbers), 1))


def summed_and_added(numbers, arrived, flags, n):
    """What comes out if a complete sum is added to what a rank has, and not taken instead."""
    ranks = len(numbers)
    size = n // ranks
    now = numbers.astype(float)
    for part in range(ranks):
        place = slice(part * size, (part + 1) * size)
        sum = now[part, place]
        for step in range(1, 2 * ranks - 1):
            rank = (part + step) % ranks
            sum = now[rank, place] = now[rank, place] + sum
    return now


def half_a_ring(numbers, arrived, flags, n):
    """What comes out if nothing is handed round: a rank has what it had added up."""
    ranks = len(numbers)
    size = n // ranks
    now = numbers.astype(float)
    for part in range(ranks):
        place = slice(part * size, (part + 1) * size)
        for step in range(1, ranks):
            now[(part + step) % ranks, place] += now[(part + step - 1) % ranks, place]
    return now


def awaited_part(numbers, arrived, flags, n):
    """What the flags say of parts that are waited for."""
    due = 2 * len(flags) - 2
    found = ", ".join(f"{left} for rank {rank}" for rank, left in enumerate(flags))
    if all(flags == due):
        return (
            f"By the flags all parts, {due} for each rank, had been left. Does a rank wait for one"
            " more, or for the very number of an earlier part, which has grown?"
        )
    return (
        f"By the flags so many parts had been left: {found}; {due} are due to each. A rank waits"
        " until its flag is the step's number or larger. Does the rank before it tell, and whom?"
    )


RING = Exercise(
    id="many_gpus.ring",
    title="The ring as a kernel",
    minutes=15,
    kind="cuda_c",
    kernel_name="ring",
    path="build/ring.cu",
    task=(
        "Each block plays a rank. In step s a rank deals with part `rank - s`. In step 0 it"
        " sends its own numbers of that part to the next rank. In steps 1 to n - 1 it waits for the"
        " part, adds its own numbers, and sends the sum on. From step n on what arrives is"
        " complete: keep it and send it on. The last step sends nothing. After a part comes its"
        " flag: `flags[next]` says how many parts have been left there. The starter ends after one"
        " turn, waits for nobody and adds nothing."
    ),
    starter=f"""
%%writefile build/ring.cu
{FLAGS}{RING_HEAD}    for (int step = 0; step < ranks; ++step) {{
        int part = (rank - step + 2 * ranks) % ranks;
        // your code: from step 1 on, wait for the part
        for (int i = part * size + threadIdx.x; i < (part + 1) * size; i += blockDim.x) {{
            float sum = numbers[rank * n + i];
            // your code: add what has arrived, or take it
            numbers[rank * n + i] = sum;
            arrived[next * n + i] = sum;
        }}
        // your code: tell the next rank
    }}
}}
""",
    solution=RING_CU,
    inputs=ring_inputs,
    reference=summed,
    rtol=0,
    shapes=((2, 1), (1, 5), (2, 40), (3, 7), (4, 33), (5, 2), (8, 4), (2, 150)),
    fresh=some_numbers((2, 6), (1, 40)),
    launches=lambda shape: [
        Launch((shape[0], 1, 1), (32, 1, 1)),
        Launch((shape[0], 1, 1), (64, 1, 1), "blocks of another size"),
    ],
    extents=lambda shape: (32 * shape[0], 1, 1),
    is_square=lambda shape: False,
    workspace=("arrived", "flags"),
    waits=True,
    awaited=awaited_part,
    shared_output=True,
    race_free=True,
    specials="finite",
    effort=10**6,
    traffic=10**6,
    hints=(
        "How many steps are there, if the last one only receives? The picture of the ring has"
        " 2 (n - 1) messages of each rank.",
        "Thread 0 waits while `load_acquire(&flags[rank]) < step`, with `__nanosleep(20)` in the"
        " loop; a barrier behind it lets the others go on.",
        "`if (step > 0)`: below step `ranks` add what has arrived to `sum`; from there on it *is*"
        " the sum.",
        "All threads must have stored their numbers before one of them tells: `__syncthreads()`,"
        " then thread 0's `store_release(&flags[next], step + 1)`.",
    ),
    wrong=(
        ("step < 2 * ranks - 1;", "step < ranks;", "wrong_value"),
        ("(step < ranks ? sum : 0)", "sum", "wrong_value"),
        (TELL_NEXT, TELL_NEXT.replace("        __syncthreads();\n", ""), "race"),
        (WAIT_FOR_PART, "", "race"),
        (WAIT_FOR_PART, WAIT_FOR_PART.replace("            __syncthreads();\n", ""), "race"),
        ("< step)", "< step + 1)", "timeout"),
        ("store_release(&flags[next], step + 1)", "flags[next] = step + 1", "race"),
        ("store_release(&flags[next]", "store_release(&flags[rank]", "race"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Sums are formed and not handed round: each rank has the sum of one part only.",
            half_a_ring,
        ),
        Hypothesis(
            "wrong_value",
            "From step n on what arrives is the whole sum: take it, and add nothing to it.",
            summed_and_added,
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
    minutes=8,
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
    minutes=5,
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
        (
            ("2 * parameters, 12 * parameters", "2 * parameters, 12"),
            ("gradients + state", "gradients + parameters * state"),
            "wrong_value",
            "`12 // ranks` is rounded down before it is multiplied: divide the whole sum.",
        ),
        (
            "12 * parameters",
            "8 * parameters",
            "wrong_value",
            "Adam's state is 12 bytes per parameter: the weight in float32 and two moments.",
        ),
        (
            "stage >= 2",
            "stage >= 1",
            "wrong_value",
            "The gradients are cut from stage 2 on: in stage 1 every rank keeps all of them.",
        ),
        (
            "stage >= 3",
            "stage >= 2",
            "wrong_value",
            "The parameters are cut in stage 3 only: in stage 2 every rank keeps all of them.",
        ),
        (
            ("stage >= 1:\n        state", "stage >= 3:\n        state"),
            ("stage >= 3:\n        weights", "stage >= 1:\n        weights"),
            "wrong_value",
            "The largest part is cut first: the state in stage 1, the parameters in stage 3.",
        ),
    ),
)

EXERCISES = (HOP, COST, EXCHANGE, RING, RING_SUM, MEMORY)

QUIZZES = (
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
