"""The pictures of the chapter on language models: what they cut, follow and count is right."""

import dataclasses

import numpy as np
import pytest
import torch

from course.kernels.language_model import problem, reference
from course.kernels.language_model.problem import ONE_BILLION, TOY
from course.kernels.language_model.tokens import BYTES, Tokens
from course.pictures import language_model as pictures
from utils import results

KNOWN = Tokens([(ord(" "), ord("a")), (256, ord("b"))])


@pytest.fixture(scope="module")
def model():
    config = dataclasses.replace(TOY, vocabulary=len(KNOWN))
    return config, problem.weights(config, 5), KNOWN


def test_a_text_is_cut_with_the_merges_asked_for():
    assert pictures.cut(KNOWN, "ab ab").alt == "3 tokens: a | b | ␣ab"
    assert pictures.cut(KNOWN, "ab ab", 1).alt == "4 tokens: a | b | ␣a | b"
    assert pictures.cut(KNOWN, "ab ab", 0).alt.startswith("5 tokens")


def test_half_a_character_is_shown_as_its_byte():
    assert pictures.shown("µ".encode()[:1]) == "c2"
    assert pictures.shown(b"a\nb ") == "a¶b␣"


def test_boxes_stay_on_the_sheet():
    places = pictures.flowed(["word"] * 60)
    assert all(x + width <= pictures.WIDE for x, _, width in places)
    assert len(set(places)) == 60


def test_the_last_row_of_the_way_is_what_the_model_says(model):
    config, weights, known = model
    stops = pictures.on_the_way(model, "ab ab a")
    assert [name for name, _, _ in stops][:3] == [
        "embedding",
        "layer 1, attention",
        "layer 1, SwiGLU",
    ]
    assert len(stops) == 1 + 2 * config.layers
    tokens = torch.tensor([known.encode("ab ab a")])
    chances = reference.forward(config, weights, tokens)[0, -1].softmax(-1)
    best = int(chances.argmax())
    (_, row, likely) = stops[-1]
    assert likely[0][0] == pictures.shown(known.pieces[best])
    assert likely[0][1] == pytest.approx(float(chances[best]), rel=1e-4)
    assert np.allclose(stops[0][1], weights["embedding"][tokens[0, -1]])
    assert f"{likely[0][1]:.0%}" in pictures.through(model, "ab ab a").alt


def test_hands_turn_with_the_position_and_the_first_one_most():
    alt = pictures.hands(10_000.0, 6).alt
    turns = [float(turn) for turn in alt.rpartition(": ")[2].split(", ")]
    assert turns[0] == pytest.approx(6 / (2 * np.pi), abs=0.006)
    assert turns == sorted(turns, reverse=True)


def test_likely_tokens_are_sorted_and_cut_off():
    logits = torch.full((len(KNOWN),), -30.0)
    logits[[97, 98, 99]] = torch.log(torch.tensor([0.5, 0.3, 0.2]))
    drawing = pictures.likely(KNOWN, logits, 1.0, 0.8)
    assert drawing.alt.startswith("temperature 1, top-p 0.8: 2 tokens may come. a 50.0%, b 30.0%")
    colder = pictures.likely(KNOWN, logits, 0.5, 1.0).alt
    assert "a 65.8%" in colder  # 25 of 25 + 9 + 4


def test_the_bill_is_the_configs():
    alt = pictures.bill(ONE_BILLION, 1000, 16, 1).alt
    rate, _ = pictures.sheet()
    micro = ONE_BILLION.bytes_per_token(1000) / rate * 1e6
    assert f"{micro:,.0f} µs at least" in alt
    assert "weights 2.47 GB" in alt
    assert "weights 0.62 GB" in pictures.bill(ONE_BILLION, 1000, 4, 8).alt


def test_products_cross_bytes_where_the_sheet_says():
    rate, operations = pictures.sheet()
    fig = pictures.at_once(ONE_BILLION, 1)
    assert f"from {operations / rate:.0f} tokens on" in fig.alt
    below, above = (pictures.at_once(ONE_BILLION, n).alt.split(" ms")[0] for n in (1, 64))
    assert below.split()[-1] == above.split()[-3 if above.split()[-2] == "at" else -1]


def test_recorded_times_are_told_in_micro(monkeypatch):
    def entry(name, value):
        return {"name": f"llm/decode/1/{name}", "value": value, "unit": "ms", "gpu": "a GPU"}

    times = [entry("ours/time", 0.64), entry("eager/time", 10.6), entry("time", 0.64)]
    times += [entry("ours_plain/time", 2), entry("default_and_graph_cudnn/time", 1)]
    monkeypatch.setattr(results, "load", lambda: [*times, entry("ours/bandwidth", 1)])
    alt = pictures.decode_times().alt
    assert alt.endswith(
        "a GPU: PyTorch: eager 10,600 µs, ours: kernels in a graph 2,000 µs, "
        "PyTorch: compiled, in one graph (cudnn) 1,000 µs, ours: one kernel 640 µs"
    )
    monkeypatch.setattr(results, "load", list)
    assert pictures.decode_times() is None


def test_losses_are_told():
    fig = pictures.learned({"loss": [(1, 6.0), (2, 5.0)]}, "a toy", chance=6.0)
    assert "loss: from 6.00 to 5.00" in fig.alt
    assert "4 bits 3.20" in pictures.rounded_losses({8: 3.1, 4: 3.2}, 3.1).alt


def test_bytes_come_before_merges():
    assert len(KNOWN) == BYTES + 2


def test_on_the_toy_s_clock_a_row_goes_through_all_parts():
    for slots, ahead in ((1, True), (4, True), (8, False)):
        done = pictures.pieces_on_a_clock(0.5, slots, ahead)
        for n in range(1, len(done)):
            (_, copied, _, before), (begins, _, multiplies, _) = done[n - 1 : n + 1]
            new_part = n % pictures.PIECES == 0
            row = before + pictures.BARRIER * new_part
            assert multiplies >= row, "a part begins when its row is there"
            assert begins >= (row if new_part and not ahead else copied), "one copy at a time"
            assert n < slots or begins >= done[n - slots][3], "a slot is free once it is multiplied"


def test_a_ring_fills_at_barriers_and_then_the_row_sets_the_pace():
    took = {
        (slots, bits): pictures.pieces_on_a_clock(bits / 32, slots, ahead=True)[-1][3]
        for slots in (1, 4, 8)
        for bits in (16, 4)
    }
    kernels = {
        b: pictures.pieces_on_a_clock(b / 32, pictures.PIECES, False)[-1][3] for b in (16, 4)
    }
    assert took[1, 16] > kernels[16] > took[4, 16] == took[8, 16], "four slots are enough"
    assert took[8, 4] > took[8, 16] / 2, "a quarter of the bytes takes over half of the time"
    assert f"one kernel {took[4, 16]:.1f} ticks, 99% of them copying" in pictures.ring(4, 16).alt


def test_a_price_is_each_reader_s(monkeypatch):
    def known(*names):
        entry = {"value": 0.8, "unit": "ms", "gpu": "a GPU"}
        return [entry if "/8/" in name or "eager" in name else None for name in names]

    monkeypatch.setattr(results, "together", known)
    alt = pictures.price().alt
    assert alt.endswith("a GPU: PyTorch, as it comes 800 µs, one kernel, shared by 8 people 100 µs")
    monkeypatch.setattr(results, "together", lambda *names: [None] * len(names))
    assert pictures.price() is None
