"""Byte-pair tokens: what is learned, that nothing is lost, that haste changes nothing."""

from collections import Counter

import pytest

from course.kernels.language_model.tokens import BYTES, WORD, Tokens, learn, merged

LINES = "the warp waits, the warps wait: the warpgroup waits for 16 threads\n" * 3


def learned_plainly(text: str, vocabulary: int) -> list:
    """The same, counting all pairs anew for each merge."""
    words = Counter(tuple(word.encode()) for word in WORD.findall(text))
    merges = []
    while len(merges) < vocabulary - BYTES:
        pairs = Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        new = BYTES + len(merges)
        merges.append(best)
        again = Counter()
        for word, count in words.items():
            again[tuple(merged(list(word), best, new))] += count
        words = again
    return merges


@pytest.mark.parametrize(
    "text", [LINES, "aaaa aaa aa a " * 4, "über Wärme · ΔΔΔ 🙂🙂 " * 2, "", "ab"]
)
def test_merges_are_those_of_counting_anew(text):
    assert learn(text, 300) == learned_plainly(text, 300)


@pytest.mark.parametrize("text", ["", " ", LINES, "Größe: 3 µs 🙂\n\n  x_1 = -7", "\x00\xff"])
def test_a_text_comes_back_whole_whatever_was_learned(text):
    known = Tokens(learn(LINES, 320))
    assert known.decode(known.encode(text)) == text


def test_a_frequent_word_becomes_one_token_and_an_unknown_one_its_pieces():
    known = Tokens(learn(LINES, 320))
    assert [known.pieces[token] for token in known.encode(" warp")] == [b" warp"]
    assert len(known.encode("zqj")) == 3


def test_merges_overlap_from_the_left():
    assert merged([1, 1, 1], (1, 1), 9) == [9, 1]
    assert merged([2, 1, 1, 2], (1, 1), 9) == [2, 9, 2]


def test_half_a_character_is_no_error():
    known = Tokens([])
    assert known.decode(list("µ".encode())[:1]) == "�"
    assert len(known) == BYTES
