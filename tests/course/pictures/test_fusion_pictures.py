"""The pictures of the chapter on fusion: what they count is right."""

import numpy as np
import pytest

from course.pictures import fusion as pictures
from utils import results


def test_passes_are_counted():
    alt = pictures.passes({"a": (1, 1), "b": (2, 1)}, fused=(2, 1)).alt
    assert "5 passes" in alt
    assert "reads 2, writes 1" in alt


def test_of_the_logits_one_chunk_exists_at_a_time():
    drawing = pictures.chunks_of_logits(tokens=8192, chunk=2048, now=1)
    assert "8,192 tokens in 4 chunks. Of the logits only the rows of chunk 2 exist." in drawing.alt
    assert drawing.svg().count("forgotten") == 1 and drawing.svg().count("not yet") == 2
    assert "in 3 chunks" in pictures.chunks_of_logits(tokens=21, chunk=8, now=0).alt


def test_what_is_recorded_is_printed(capsys, monkeypatch):
    entry = {"name": "a/share_of_copy", "value": 0.987, "unit": "1"}
    entry |= {"gpu": "NVIDIA X", "date": "2026-11-22T00:00:00Z"}
    monkeypatch.setattr(results, "find", {"a/share_of_copy": entry}.get)
    pictures.recorded("a/share_of_copy", "b/rate")
    told = capsys.readouterr().out
    assert "98.7% (NVIDIA X, 2026-11-22)" in told
    assert "b/rate: not recorded yet" in told


def test_online_softmax_ends_with_the_whole_row():
    states = pictures.online_states()
    row = np.array(pictures.ROW, float)
    for number, (largest, factor, total) in enumerate(states, 1):
        seen = row[: pictures.A_TILE * number]
        assert largest == seen.max()
        assert 0 <= factor <= 1
        np.testing.assert_allclose(total, np.exp(seen - seen.max()).sum())


@pytest.mark.parametrize("tiles", range(5))
def test_what_was_not_seen_is_not_drawn(tiles):
    fig = pictures.online(tiles)
    words = [text.get_text() for text in fig.axes[0].texts]
    assert words.count("?") == len(pictures.ROW) - pictures.A_TILE * tiles


def test_a_guess_is_moved_towards_the_right_word():
    words, scores = ("mat", "chair", "moon"), (2, 1, 0)
    assert pictures.guess(words, scores).alt == "The next word: mat 67%, chair 24%, moon 9%"
    alt = pictures.guess(words, scores, "moon").alt
    assert "the loss 2.41. Moved: mat -0.67, chair -0.24, moon +0.91" in alt
