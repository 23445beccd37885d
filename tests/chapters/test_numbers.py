"""What prose says of a measurement is what was measured.

A comment right behind the words, which no reader sees, names the results that they speak of, as
recorded on the GPU whose outputs the chapters show:

    about twice as fast<!-- of matmul/fp32/512/split_k/rate : matmul/fp32/512/tuned/rate -->

The number stands in the prose alone, and is read there (`tests/quantities.py`). Two names mean
their ratio; where the words say "fast" or "speed" it is that of speeds, where they say "time" or
"long" that of times, whichever was recorded. Behind the colon a plain number may stand instead, or
one of a data sheet with its unit ("989TFLOP/s").
Several comments side by side belong to the same words.

A ratio of two speeds or two times without such a comment is found. Taken for no measurement are:
questions, sentences with a link to a source, what stands in code, comparisons without a number
("faster", "as fast as"), and what NOT_MEASURED lists with its reason.
"""

import re

import pytest

from course.chapters import START, WRITTEN
from tests import hygiene
from tests.quantities import UNITS, last_in, ratios_in
from utils import results
from utils.files import ROOT
from utils.results.likeness import RECORDED_ON

CLAIM = re.compile(r"<!-- of ([^\s:]+)(?: : (\S+))? -->")
PLAIN = re.compile(r"([\d.]+)(\w+/s)?")  # no name of a result
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
BLOCK = re.compile(r"<!-- (\w+):.*?<!-- /\1 -->", re.DOTALL)  # written by `make tables`
SENTENCE = re.compile(r"[.?!:](?=\s)|\n\n")
PRAISE = re.compile(r"\b(?:times|twice|half|%) (?:as )?(?:fast|faster|more speed)\b")

SECONDS = {"s": 1, "ms": 1e-3, "µs": 1e-6, "us": 1e-6}
CURE = (
    'say it as "twice as fast", "about 36 times", "a third more", "82 %", "50 µs" or the like, '
    "right before the comment (tests/quantities.py)"
)

TEXTS = {
    f"{path.relative_to(ROOT)}": path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "course").glob("*.md")))
}


def recorded(name):
    """(value, unit) of a result, times in seconds. LookupError where there is none."""
    entry = results.find(name, gpu=RECORDED_ON)
    if entry is None:
        raise LookupError(f"nothing is recorded as {name}")
    value, unit = entry["value"], entry["unit"]
    if unit in SECONDS:
        return value * SECONDS[unit], "s"
    return value, unit


def measured(said, name, base):
    """What was measured of that of which words speak, in their unit. ValueError for another."""
    value, unit = recorded(name)
    if not base:
        return in_unit(said, value, unit)
    if plain := PLAIN.fullmatch(base):
        size, its_unit = UNITS.get(plain[2], (1, "1"))
        divisor = float(plain[1]) * size
    else:
        divisor, its_unit = recorded(base)
    if its_unit == "1":
        return in_unit(said, value / divisor, unit)
    if its_unit != unit:
        raise ValueError(f"{name} is in {unit}, {base} in {its_unit}")
    turned = said.of == "speed" and unit == "s" or said.of == "time" and unit.endswith("/s")
    return in_unit(said, divisor / value if turned else value / divisor, "1")


def in_unit(said, value, unit):
    """The value, if words and record have one unit."""
    if unit != said.unit:
        raise ValueError(f"{said.words!r} has the unit {said.unit}, what is recorded has {unit}")
    return value


def claims(text):
    """(words, comment) of each comment in a text: the words are those of its sentence before it."""
    words, end = "", 0
    for comment in COMMENT.finditer(text):
        between = text[end : comment.start()]
        if between:
            words = SENTENCE.split(between)[-1]
        yield words, comment[0]
        end = comment.end()


def problem(words, comment):
    """What is wrong with one claim, as a sentence; None if nothing is."""
    claim = CLAIM.fullmatch(comment)
    if not claim:
        return f"{comment}: not of the form <!-- of NAME : NAME -->"
    try:
        said = last_in(words)
    except ValueError as error:
        return f"{comment}: {error}: {CURE}"
    try:
        value = measured(said, *claim.groups())
    except (LookupError, ValueError) as error:
        return f"{comment}: {error}"
    if said.allows(value):
        return None
    allowed = f"{said.low:.4g} to {said.high:.4g}"
    return f"{comment}: {said.words!r} says {allowed}, and it is {value:.4g}: correct the words"


def problems(text):
    """What is wrong with the claims of a text, a line each."""
    return [line for claim in claims(text) if (line := problem(*claim))]


#: Ratios that are reasoned or given, not measured: (chapter, cell) -> why
NOT_MEASURED = {
    ("estimates", "bandwidth-explain"): "of a GPU that the model is given",
    ("estimates", "next-explain"): "the rates in NVIDIA's data sheet",
    ("estimates", "ex6"): "what is asked of an answer",
    ("not_written", "asking-title"): "what is boasted in a dialogue that is made up",
    ("ecosystem", "break-type-explain"): "twice the bytes at the rate of memory: arithmetic",
    ("meet_the_gpu", "break-walk-explain"): "16 loads one behind the other: arithmetic",
    ("meet_the_gpu", "amdahl-title"): "the factor of an example",
    ("meet_the_gpu", "little-title"): "the share of an example",
    ("meet_the_gpu", "doubling-explain"): "years until something doubles; the figure computes them",
    ("memory", "stride-explain"): "half of the bytes are wasted: arithmetic",
    ("matmul", "l2-explain"): "a bound, computed in the sentence before it",
    ("tensor_cores", "mma-feed-explain"): "the rates in NVIDIA's data sheets",
    ("tensor_cores", "tf32-predict"): "the rates in NVIDIA's data sheet, given for a prediction",
    ("tensor_cores", "clock-explain"): "a share of cycles, counted in the same paragraph",
    ("attention", "turns-explain"): "two consumers share each unit of the model: arithmetic",
    ("attention", "break-heads-explain"): "half the work of a product: computed by the cell above",
    ("fusion", "softmax-three-why"): "a bound: four times 4 bytes per value, where a copy has two",
    ("low_precision", "int4-race-title"): "what the bytes let expect, before the race",
    ("low_precision", "int8-why"): "the rates in NVIDIA's data sheet",
    ("low_precision", "fp8-title"): "the rates in NVIDIA's data sheet",
    ("low_precision", "fp8-late"): "the same data sheet: half the time for the same products",
    ("beating_pytorch", "master-title-text"): "the rates in NVIDIA's data sheet",
    ("beating_pytorch", "race-explain"): "how to read the chart, and no value of it",
    ("many_gpus", "break-mean-explain"): "gradients added up, and not averaged: arithmetic",
    ("many_gpus", "training-explain"): "the next sentence has the number and its record",
}
SAID_BY = re.compile(r".*?(?:[.?!:;](?=\s)|\n\n|\Z)", re.DOTALL)  # a sentence, with its end
FENCED = re.compile(r"```.*?```", re.DOTALL)
PROVED = "†"  # in place of a comment, while sentences are told apart


def unproved(text):
    """The ratios of a text that stand in sentences without a record, a source or a question."""
    text = CLAIM.sub(PROVED, FENCED.sub("", text))
    found = []
    for sentence in SAID_BY.findall(COMMENT.sub("", text)):
        is_question = sentence.rstrip().endswith("?")
        if not is_question and PROVED not in sentence and "](http" not in sentence:
            found += ratios_in(sentence)
    return found


def test_a_share_of_a_data_sheets_number_is_one_in_its_unit():
    said, name = last_in("it reaches 61 %"), "attention/ladder/4096/wgmma/rate"
    assert said.allows(measured(said, name, "989TFLOP/s"))
    with pytest.raises(ValueError, match="is in FLOP/s"):
        measured(said, name, "989GB/s")


def test_a_ratio_has_its_record_or_stands_in_the_list_of_what_is_not_measured():
    cells = {
        (chapter.key, id): found
        for chapter in WRITTEN
        for id, text in prose(chapter.path).items()
        if (found := unproved(text))
    }
    new = {at: found for at, found in cells.items() if at not in NOT_MEASURED}
    assert new == {}, "measured: a comment <!-- of NAME : NAME -->; else a line in NOT_MEASURED"
    assert NOT_MEASURED.keys() <= cells.keys(), "nothing there is left to excuse"


@pytest.mark.parametrize(
    "text, ratios",
    [
        ("The first takes twice as long.", ["twice as long"]),
        ("It is 3 times as fast, or so.", ["3 times as fast"]),
        (
            "Half of the time goes there; a third more speed.",
            ["Half of the time", "a third more speed"],
        ),
        ("It takes twice as long<!-- of a/time : b/time -->, at least.", []),
        ("Is it twice as fast?", []),
        ("Twice as fast, says [its author](https://a.b).", []),
        ("Twice as many bytes. It is faster, as long as they come; 5 ms later.", []),
        ("```\ntwice as fast\n```", []),
    ],
)
def test_a_ratio_without_a_record_is_seen(text, ratios):
    assert unproved(text) == ratios


def prose(path):
    """{id: source} of a notebook's text cells."""
    cells = hygiene.read(path).cells
    return {cell.id: cell.source for cell in cells if cell.cell_type == "markdown"}


@pytest.mark.parametrize("path", [START, *(chapter.path for chapter in WRITTEN)])
def test_prose_says_what_was_measured(path):
    assert [(at, line) for at, text in prose(path).items() for line in problems(text)] == []


def by_hand(name):
    """A text without the blocks that `make tables` writes from the results."""
    return BLOCK.sub("", TEXTS[name])


@pytest.mark.parametrize("name", TEXTS)
def test_other_texts_say_what_was_measured(name):
    assert problems(by_hand(name)) == []


@pytest.mark.parametrize("name", ["README.md", "course/instructors.md"])
def test_front_pages_praise_no_speed_without_a_record(name):
    sentences = re.split(r"[.?!](?=\s)|\n\n", by_hand(name))
    praise = [sentence for sentence in sentences if PRAISE.search(sentence)]
    unproved = [sentence for sentence in praise if not CLAIM.search(sentence)]
    assert unproved == [], "`make tables` writes such a number, or a comment says of what it is"


def test_some_prose_does():
    cells = [text for chapter in WRITTEN for text in prose(chapter.path).values()]
    assert sum(len(CLAIM.findall(text)) for text in cells) >= 12


def test_no_claim_is_so_loose_that_three_times_as_much_would_do():
    loose = []
    for chapter in WRITTEN:
        text = "\n\n".join(prose(chapter.path).values())
        for words, comment in claims(text):
            said = last_in(words)
            value = measured(said, *CLAIM.fullmatch(comment).groups())
            if said.allows(3 * value) or said.allows(value / 3):
                loose.append(words)
    assert loose == []


MEASURED = {
    "a/rate": (4.0, "B/s"),
    "b/rate": (2.0, "B/s"),
    "a/time": (0.004, "ms"),
    "b/time": (8.0, "µs"),
    "b/count": (4.0, "1"),
    "a/share": (0.125, "1"),
}


@pytest.fixture
def some_results(monkeypatch):
    def find(name, gpu):
        value, unit = MEASURED.get(name, (None, None))
        return value and {"value": value, "unit": unit}

    monkeypatch.setattr(results, "find", find)


@pytest.mark.parametrize(
    "text",
    [
        "It is twice as fast<!-- of a/rate : b/rate -->.",
        "It is twice as fast<!-- of a/rate : b/rate --><!-- of a/time : b/time -->.",
        "It takes half of the time<!-- of a/time : b/time --><!-- of a/rate : b/rate -->.",
        "An eighth<!-- of a/share --> of a copy, and twice<!-- of a/rate : b/rate --> as much.",
        "Each takes 2 µs<!-- of b/time : b/count --><!-- of b/time : 4 -->.",
    ],
)
def test_a_right_number_is_accepted(text, some_results):
    assert problems(text) == []


@pytest.mark.parametrize(
    "text, says",
    [
        ("three times as fast<!-- of a/rate : b/rate -->", "says 2.7 to 3.3, and it is 2"),
        ("twice as slow<!-- of a/rate : b/rate -->", "it is 0.5"),
        ("twice the time<!-- of a/time : b/time -->", "it is 0.5"),
        ("twice. Much more<!-- of a/rate : b/rate -->", "no number can be read"),
        ("it costs nothing<!-- of a/rate : b/rate -->", "right before the comment"),
        ("twice as fast<!-- of a/rate : c/rate -->", "nothing is recorded as c/rate"),
        ("twice as fast<!-- of a/rate : a/time -->", "a/rate is in B/s, a/time in s"),
        ("4 times<!-- of a/rate -->", "has the unit 1, what is recorded has B/s"),
        ("twice as fast<!-- = 2 of a/rate : b/rate -->", "not of the form"),
        ("twice as fast<!-- about 2 -->", "not of the form"),
    ],
)
def test_a_wrong_claim_is_found(text, says, some_results):
    (found,) = problems(text)
    assert says in found
