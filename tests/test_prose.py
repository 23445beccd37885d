"""What the course says is plain English, as far as patterns can tell."""

import pytest

from tests import prose
from utils.files import ROOT


@pytest.fixture(scope="module")
def cases():
    """{file: {rule: [(where, words)]}}"""
    return {prose.name_of(path): prose.counted(path) for path in prose.read_aloud()}


def test_no_file_has_more_of_what_plain_english_has_not(cases):
    instead = {each.name: each.instead for each in prose.RULES}
    new = [
        f"{file}, {where}: {words!r} ({rule}): write {instead[rule]}"
        for file, rules in cases.items()
        for rule, places in rules.items()
        if len(places) > prose.KNOWN.get(file, {}).get(rule, 0)
        for where, words in places
    ]
    assert new == []


@pytest.mark.nightly("by day a mended sentence need not wait for the list")
def test_the_list_of_known_cases_shrinks_with_them(cases):
    mended = [
        f"{file}: {rule!r} {len(cases.get(file, {}).get(rule, []))} times, {known} in KNOWN"
        for file, rules in prose.KNOWN.items()
        for rule, known in rules.items()
        if len(cases.get(file, {}).get(rule, [])) < known
    ]
    assert mended == [], "python -m tests.prose takes these out of KNOWN"


def test_what_was_mended_leaves_the_list():
    known = {"a.md": {"per": 2, "shall": 1}, "b.md": {"else": 1}}
    cases = {"a.md": {"per": [("a.md", "bytes a second")], "else": [("a.md", "else")]}}
    assert prose.fewer(known, cases) == {"a.md": {"per": 1}}


# Sentences that the course once had, and the rule that each of them broke
ONCE = [
    ("the L2 cache, if the tensor cores shall never wait:", "shall"),
    ("Sections 12 and 13 do without section 11: draw a digit.", "do without"),
    ("Without a GPU the processor plays two. Else, as with four ranks, it says so.", "else"),
    ("One change, one number: else nobody knows what the gain was for.", "else"),
    ("A table shows whose is whose.", "whose is whose"),
    ("rounded to 10 bits behind the point.", "behind the point"),
    ("Each element becomes the sum of everything up to and with it.", "up to and with"),
    ("So many *additions* there are.", "so many there are"),
    ("So many threads it has: 32 in each warp.", "so many there are"),
    ("What does `cp.async` spare?", "spare"),
    ("Eight barriers became ten shuffles with one. What does it bring?", "bring"),
    ("Rung 10's three changes brought nothing.", "bring"),
    ("Below it stand the operands, `%0` first.", "below it stands"),
    ("and a million multiply-adds a second", "per"),
    ("Intensity is FLOPs a byte, not bytes a FLOP.", "per"),
    ("No error, no warning: the work went elsewhere.", "no x, no y"),
    ("Twice as many.", "telegram"),
    ("Nobody knows. One atomic per warp instead of one per thread. Note the guard.", "telegram"),
    ("The compiler keeps the the sums.", "doubled word"),
    ("This allows to skip the barrier.", "allows to"),
]


@pytest.mark.parametrize("text, rule", ONCE)
def test_a_sentence_that_the_course_once_had_is_found(text, rule):
    assert rule in {each.name for each, words in prose.found(text)}


@pytest.mark.parametrize(
    "text",
    [
        "Return 1 if its kernels run, else 0.",
        "What is `shall` in code is no word: `for a in b`, and `else:` neither.",
        "Give each of the 64 threads a row of the tile, and each row a thread.",
        "A thread has no registers to spare.",
        "One thread per element is not a law.",
        "No kernel is faster than the arithmetic.",
        "It said that that number had had no unit. In code `a` code follows.",
        "Half of the threads wait at the barrier.",
        "```\nshall else\n```\nIt brings the tile into shared memory.",
        "[what is read](else.md) at https://example.org/shall is an address",
    ],
)
def test_plain_sentences_are_left_alone(text):
    assert [(each.name, words) for each, words in prose.found(text)] == []


def test_notebooks_modules_and_markdown_are_read(tmp_path):
    book = tmp_path / "x.ipynb"
    cells = (
        '{"cells": [{"cell_type": "markdown", "id": "a", "source": ["It ", "shall be."]},'
        ' {"cell_type": "code", "id": "b", "source": "exercises.predict(\\"shall\\", \\"no\\")"},'
        ' {"cell_type": "code", "id": "c", "source": "shall = 1  # shall"}]}'
    )
    assert [where for where, text in prose.texts_of(book, cells)] == ["a", "b"]
    module = '"""It shall not be read."""\n\nsays = "It shall be read aloud."\nkey = "shall"\n'
    read = list(prose.texts_of(tmp_path / "x.py", module + 'more = f"{key} shall be read, too"\n'))
    assert read == [
        ("line 3", "It shall be read aloud."),
        ("line 5", "`…` shall be read, too"),
    ]
    assert list(prose.texts_of(tmp_path / "x.md", "# X")) == [("x.md", "# X")]


def test_what_is_read_is_what_readers_meet():
    names = {path.relative_to(ROOT).as_posix() for path in prose.read_aloud()}
    assert {"README.md", "course/glossary.md", "course/reading.md", "course/index.ipynb"} <= names
    assert sum(name.startswith("chapters/") for name in names) >= 20
    assert sum(name.startswith("course/exercises/") for name in names) >= 20


def test_chapters_are_known_by_name_without_their_number():
    path = ROOT / "chapters" / "06_memory.ipynb"
    assert prose.name_of(path) == "chapters/memory.ipynb"
