"""An exercise of the chapter Attention: which SM works through which tiles of queries."""

from course.checking.inputs import arguments_of
from course.checking.model import Exercise, Hypothesis

# ---- attention.deal: the longest tile first, to the SM that is free first


def deal(lengths, sms):
    busy = [0] * sms
    whose = [0] * len(lengths)
    for tile in sorted(range(len(lengths)), key=lambda tile: -lengths[tile]):
        sm = busy.index(min(busy))
        whose[tile] = sm
        busy[sm] += lengths[tile]
    return whose


def dealt(lengths, sms, *, key=lambda length, tile: -length, pick=None):
    """As `deal`, or with a mistake.

    key: what tiles are ordered by, of (length, tile). pick: the SM of a deal, from (how busy each
    is, how many tiles were dealt before).
    """
    pick = pick or (lambda busy, before: busy.index(min(busy)))
    busy = [0] * sms
    whose = [0] * len(lengths)
    ordered = sorted(range(len(lengths)), key=lambda tile: key(lengths[tile], tile))
    for before, tile in enumerate(ordered):
        sm = pick(busy, before)
        whose[tile] = sm
        busy[sm] += lengths[tile]
    return whose


def dealt_if(**mistake):
    """What `dealt` returns with a mistake."""
    return lambda lengths, sms: dealt(lengths, sms, **mistake)


def there_and_back(busy, before):
    """SMs 0, 1, ... to the last, and from the last back to 0, as some deal cards."""
    there = before % (2 * len(busy))
    return min(there, 2 * len(busy) - 1 - there)


def last_of_the_free(busy, before):
    """Of SMs that are equally busy the one with the highest number."""
    return max(sm for sm, work in enumerate(busy) if work == min(busy))


def in_order_of_dealing(lengths, sms):
    """What is returned if SMs stand in the order in which tiles are dealt out."""
    whose = deal(lengths, sms)
    return [whose[tile] for tile in sorted(range(len(lengths)), key=lambda tile: -lengths[tile])]


def some_tiles(rng):
    """Another call: up to 24 tiles for up to 6 SMs, some of the same length."""
    lengths = rng.integers(1, 13, int(rng.integers(2, 25)))
    return lengths.tolist(), int(rng.integers(1, 7))


DEAL = Exercise(
    id="attention.deal",
    title="Deal out the tiles",
    minutes=7,
    kind="function",
    task=(
        "`lengths[t]` says how many tiles of keys the tile of queries number t needs. Deal"
        " these out to `sms` SMs: the longest first, each to the SM that has the least work so"
        " far. Among equals take the tile, and the SM, with the lowest number. Return a list"
        " that says of each tile, 0, 1, 2 and so on, which SM has it. The starter deals in turn."
    ),
    starter="""
def deal(lengths, sms):
    whose = [0] * len(lengths)  # of each tile of queries: its SM
    for tile in range(len(lengths)):
        whose[tile] = tile % sms  # your code: the longest first, to the SM with the least work
    return whose
""",
    solution=deal,
    inputs=arguments_of(deal),
    reference=deal,
    shapes=(
        ([1, 2, 3, 4, 5, 6, 7, 8], 4),
        ([5], 1),
        ([], 3),
        ([2, 7, 4], 5),
        ([3, 3, 3, 3, 3], 2),
        ([4, 9, 1, 9, 2, 6, 5], 3),
        (list(range(1, 33)) * 4, 10),
        ([1 << 40, (1 << 40) + 1, 3, 1 << 39], 2),
    ),
    fresh=some_tiles,
    draws=lambda some: some.tuples(
        some.lists(some.integers(1, 12), max_size=12), some.integers(1, 5)
    ),
    hints=(
        "Two things are needed: an order of the tiles, and for each SM its work so far.",
        "`sorted(range(len(lengths)), key=lambda tile: -lengths[tile])` has the tiles' numbers, the"
        " longest first. Equal ones stay in their order.",
        "With `busy = [0] * sms`, `busy.index(min(busy))` is the first SM with the least work. Note"
        " it in `whose[tile]`, and add the tile's length to `busy`.",
    ),
    wrong=(
        (
            "-lengths[tile])",
            "tile)",
            "wrong_value",
            "The tiles are dealt out in the order of their numbers. A long one that comes last has"
            " nobody left who could share the wait: begin with the longest.",
        ),
        (
            "-lengths[tile])",
            "lengths[tile])",
            "wrong_value",
            "The shortest tile is dealt out first here. The longest has to be.",
        ),
        (
            ("for tile in sorted(", "for before, tile in enumerate(sorted("),
            ("-lengths[tile]):", "-lengths[tile])):"),
            ("busy.index(min(busy))", "before % sms"),
            "wrong_value",
            "The longest come first, and the SMs in turn: the first SM gets the longest of each"
            " round. Take the SM with the least work.",
        ),
        (
            "min(busy)",
            "max(busy)",
            "wrong_value",
            "All tiles go to one SM. Add each tile's length to its SM's work, and give the next"
            " tile to the SM with the *least* work, not the most.",
        ),
        (
            "key=lambda tile: -lengths[tile])",
            "key=lambda tile: (-lengths[tile], -tile))",
            "wrong_value",
            "Of equally long tiles the last one comes first here. Sorted by their negative lengths"
            " they keep their order; a sorted list that is turned round does not keep it.",
        ),
        ("whose[tile] = sm", "whose[sm % len(whose)] = tile % sms", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The longest come first, and the SMs there and back. That is good where lengths fall"
            " evenly; here the next tile goes to the SM with the least work.",
            dealt_if(pick=there_and_back),
        ),
        Hypothesis(
            "wrong_value",
            "Of SMs with equal work the last one is taken: it should be the first.",
            dealt_if(pick=last_of_the_free),
        ),
        Hypothesis(
            "wrong_value",
            "The SMs stand in the order in which tiles are dealt out. Entry t has to be the SM of"
            " tile t: store it in `whose[tile]`.",
            in_order_of_dealing,
        ),
    ),
)
