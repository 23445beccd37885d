"""The reading list: a section for every chapter, every lecture once, no link twice, no line without
a reason.
"""

import re
from collections import Counter
from urllib.parse import urlsplit

import pytest

from course.chapters import CHAPTERS
from utils.files import ROOT

READING = ROOT / "course" / "reading.md"
LECTURES = range(1, 80)
LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]*)\)")


@pytest.fixture(scope="module")
def text():
    return READING.read_text(encoding="utf-8")


def items(text):
    """The lines of the lists."""
    return [line for line in text.splitlines() if line.startswith("- ")]


def lecture_numbers(text):
    """The numbers of all lectures in the lists, in the order of the file."""
    return [
        int(number)
        for number in re.findall(
            r"^- \*\*Lecture (\d+)\*\*, \*[^*]+\*(?: \([^()]+\))?: ", text, re.M
        )
    ]


def bad_links(text):
    """What is bracketed like a link and is none, and targets that are neither a file here nor a
    plain web address.
    """
    problems = ["not a link: " + rest for rest in re.findall(r"\]\([^)]*\)?", LINK.sub("", text))]
    for _, target in LINK.findall(text):
        parts = urlsplit(target)
        web = parts.scheme in ("http", "https") and re.fullmatch(
            r"(?:[\w-]+\.)+[a-z]{2,}", parts.netloc
        )
        if not web and not (not parts.scheme and target and (READING.parent / target).is_file()):
            problems.append(target)
    return problems


def duplicates(text):
    """Web addresses that stand twice, whatever their scheme and last slash."""
    counts = Counter(
        re.sub(r"^https?://(?:www\.)?|/$", "", target) for _, target in LINK.findall(text)
    )
    return [target for target, count in counts.items() if count > 1]


def without_reason(text):
    """List items in which no words follow a colon behind what is named."""
    return [
        item
        for item in items(text)
        if not re.search(r": .{15,}", LINK.sub("x", item).replace("**", ""))
    ]


def test_every_chapter_has_its_section_in_order(text):
    assert re.findall(r"^## (.*)$", text, re.M) == [chapter.title for chapter in CHAPTERS]


def test_every_section_names_something(text):
    sections = re.split(r"^## ", text, flags=re.M)[1:]
    assert [section.splitlines()[0] for section in sections if not items(section)] == []


def test_every_lecture_stands_once(text):
    assert sorted(lecture_numbers(text)) == list(LECTURES)


def test_links_are_well_formed_and_unique(text):
    assert bad_links(text) == []
    assert duplicates(text) == []


def test_every_item_says_why(text):
    assert without_reason(text) == []


# ---- the rules themselves ---


@pytest.mark.parametrize(
    "defect",
    ["[a](http//x.org)", "[a](https://x y.org)", "[a]()", "[a](gone.md)", "[a](https://localhost)"],
)
def test_a_bad_link_is_found(defect):
    assert bad_links("[a](https://x.org/y), [b](glossary.md)") == []
    assert len(bad_links(defect)) == 1


def test_a_link_that_stands_twice_is_found():
    assert duplicates("[a](https://x.org/y) [b](http://www.x.org/y/) [c](https://x.org/z)") == [
        "x.org/y"
    ]


def test_a_lecture_out_of_form_and_an_item_without_reason_are_found():
    assert lecture_numbers(
        "- **Lecture 1**, *A title* (Somebody): a reason\n- **Lecture 2**: a reason"
    ) == [1]
    assert without_reason(
        "- [a](https://x.org)\n- [b](https://y.org): a good reason to read it"
    ) == ["- [a](https://x.org)"]
