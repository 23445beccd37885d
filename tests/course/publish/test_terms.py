"""Words of the glossary become links at their first use, and nothing else does."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from course import glossary
from course.publish import terms


def entry(name, *others):
    return glossary.Entry(name, others, f"what `{name}` means.", "Title", "Heading", "05_x", "cell")


ENTRIES = [entry("bank"), entry("bank conflict"), entry("CPU"), entry("warp", "wavefront")]


def page(*paragraphs):
    """What is left of paragraphs of nodes and words: links as [words -> entry]."""
    document = new_document("page")
    for content in paragraphs:
        paragraph = nodes.paragraph()
        for each in content:
            paragraph += nodes.Text(each) if isinstance(each, str) else each
        document += paragraph
    terms.add_links(document, terms.Words(ENTRIES), "../glossary.html")
    return [child.astext() for paragraph in document for child in paragraph.children]


def links(*paragraphs):
    return [text for text in page(*paragraphs) if text.startswith("<a")]


def test_the_first_use_is_a_link_that_knows_its_sentence():
    before, link, after = page(["A warp runs; another warp waits."])
    assert (before, after) == ("A ", " runs; another warp waits.")
    assert link == (
        '<a class="term" href="../glossary.html#term-warp" '
        'data-means="warp: what warp means.">warp</a>'
    )
    assert len(links(["One warp."], ["Another warp."])) == 1


@pytest.mark.parametrize(
    "words, linked",
    [
        ("Warps run.", "Warps"),
        ("a wavefront", "wavefront"),
        ("bank conflicts", "bank conflicts"),
        ("the CPU’s", "CPU"),
    ],
)
def test_plurals_other_names_and_beginnings_are_found(words, linked):
    (link,) = links([words])
    assert f">{linked}</a>" in link


@pytest.mark.parametrize(
    "chapter, text, found",
    [
        ("05_x", "The mean of four.", ["mean"]),
        ("05_x", "That means four.", []),
        ("06_y", "The mean of four.", []),
    ],
)
def test_an_everyday_word_is_a_link_only_in_its_own_chapter(chapter, text, found):
    words = terms.Words([entry("mean"), entry("warp")], chapter)
    assert [text[start:stop] for start, stop, _ in words.find(text)] == found


@pytest.mark.parametrize("words", ["warped", "warp-level", "a cpu", "WARP", "databank"])
def test_other_words_are_left(words):
    assert links([words]) == []


def test_the_longer_name_is_taken():
    (link,) = links(["a bank conflict"])
    assert "term-bank-conflict" in link


def test_code_links_and_bold_words_are_left():
    reference = nodes.reference("", "a warp", refuri="x.html")
    assert links([nodes.literal("", "warp"), reference]) == []
    assert links([nodes.strong("", "warp"), " and the warp again"]) == []
    assert len(links([nodes.emphasis("", "plain")], ["warp"])) == 1


def test_every_entry_of_the_glossary_has_an_anchor_of_its_own():
    anchors = [each.anchor for each in glossary.entries()]
    assert len(anchors) > 200
    assert sorted(set(anchors)) == sorted(anchors)
