"""Sentences for learners in HTML: code, emphasis, nothing of theirs that a browser would run."""

import pytest

from course.checking.text import marked_up


@pytest.mark.parametrize(
    "text, html",
    [
        ("the *last* mode", "the <em>last</em> mode"),
        ("*first mode fastest*, then", "<em>first mode fastest</em>, then"),
        ("reads **and** writes, *both*", "reads <strong>and</strong> writes, <em>both</em>"),
        ("a**b**c", "a**b**c"),
        ("n * m * k", "n * m * k"),
        ("2*n*m", "2*n*m"),
        ("`float *a, *b`", "<code>float *a, *b</code>"),
        ("`a` *and* `b`", "<code>a</code> <em>and</em> <code>b</code>"),
        ("*<b>*", "<em>&lt;b&gt;</em>"),
    ],
)
def test_text_is_marked_up(text, html):
    assert marked_up(text) == html
