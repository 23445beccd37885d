"""The pictures of the chapter on attention: what they count, model and read is right."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

from course.exercises import EXERCISES
from course.kernels.attention import decode, hopper, ring
from course.kernels.attention.reference import seen
from course.pictures import attention as pictures
from utils import results


def test_weights_say_who_looks_at_whom():
    matrix = np.array([[1, 0], [0.25, 0.75]])
    words = ["bee", "flower"]
    assert "flower looks at bee 0.25, flower 0.75" in pictures.weights(words, matrix).alt
    drawing = pictures.looks(words, matrix[0], 0)
    assert drawing.alt == "bee looks at bee 1.00, flower 0.00"
    assert drawing.svg().count("<line") == 1  # a weight of 0 is no line
    asks = pictures.looks(words, matrix[1], 1, query=np.array([0.5, -1]))
    assert asks.alt.endswith("flower 0.75; it looks for 0.50 alive, -1.00 hollow")


@pytest.mark.parametrize(
    ("looks_for", "name", "place"),
    [([1, 0], "hungry", 2), ([0, 1], "empty", 2), ([1, 1], "it", 1), ([2, 0], "somebody", 2)],
)
def test_the_word_that_looks_is_named_by_what_it_looks_for(looks_for, name, place):
    row = np.array([0.5, 0.25, 0.25])
    drawing = pictures.who_looks(["bee", "it", "hungry"], row, looks_for)
    assert drawing.alt.startswith(f"{name} looks at bee 0.50")
    last = "hungry" if name == "it" else name
    assert drawing.alt.endswith(f"it 0.25, {last} 0.25")
    assert drawing.alt == pictures.looks(["bee", "it", last], row, place).alt


def test_a_book_says_which_page_gets_most_of_the_look():
    row = np.full(4000, 0.1 / 3999)
    row[120] = 0.9  # on the third page of 50 words
    drawing = pictures.book(row)
    assert drawing.alt == "the last page looks: page 3 gets 90.1%, each other page at most 0.1%"
    page = re.findall(r"<rect[^>]*>", drawing.svg())
    assert len(page) == 80
    blue, pale = pictures.lighter(pictures.BLUE, row[100:150].sum()), pictures.lighter("#000000", 0)
    assert blue in page[2] and pale not in page[2]
    assert pictures.YELLOW in page[79]  # it looks, from the last page
    assert [n for n, box in enumerate(page) if blue in box] == [2]


def test_a_weight_of_1_is_the_whole_colour():
    assert pictures.lighter("#56B4E9", 1) == "#56b4e9"
    assert pictures.lighter("#56B4E9", 0) == "#eeeeee"


def test_scores_grow_with_the_square_of_the_length():
    assert pictures.bytes_of_scores(2048) == 4 * pictures.bytes_of_scores(1024)
    assert pictures.bytes_of_rows(2048) == 2 * pictures.bytes_of_rows(1024)
    alt = pictures.scores_to_scale(16384).alt
    assert alt == "16 heads, 16,384 tokens: scores 16 GiB, q, k, v and out 512 MiB"


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 bytes"), (1023, "1,020 bytes"), (1024, "1 KiB"), (1 << 44, "16,400 GiB")],
)
def test_bytes_in_words(number, words):
    assert pictures.in_bytes(number) == words


def test_online_softmax_is_the_whole_rows_softmax_so_far():
    for tiles, state in enumerate(pictures.states()):
        past = slice(0, pictures.A_TILE * tiles)
        weight = np.exp(pictures.SCORES[past] - state.largest)
        assert state.total == pytest.approx(weight.sum())
        assert state.result == pytest.approx(weight @ pictures.VALUES[past])


@pytest.mark.parametrize("tiles", range(5))
def test_what_was_not_seen_is_not_drawn(tiles):
    drawing = pictures.online(tiles)
    hidden = 2 * (len(pictures.SCORES) - pictures.A_TILE * tiles)
    assert drawing.svg().count(">?<") == hidden
    assert ("at once" in drawing.alt) == (tiles == 4)


def test_a_block_has_one_tile_of_keys_and_no_scores_of_others():
    drawing = pictures.one_block(3)
    assert "keys and values 24 to 31 in shared memory" in drawing.alt
    assert drawing.svg().count(f"fill:{pictures.GREEN}") == 2  # the tile, and what the colour means
    assert drawing.svg().count(">scores<") == 1


def by_hand(first_query, first_key, tile, length, window):
    """The kind of a causal tile, pair by pair."""
    pairs = [
        first_key + x < seen(first_query + y, length, length)
        and (not window or first_key + x > first_query + y - window)
        for y in range(tile)
        for x in range(tile)
        if first_query + y < length
    ]
    if not any(pairs):
        return pictures.SKIPPED
    return pictures.WHOLE if all(pairs) else pictures.EDGE


@pytest.mark.parametrize("window", [None, 1, 10, 100])
@pytest.mark.parametrize("length", [1, 16, 33, 64])
def test_tiles_are_counted(length, window):
    tile = 8
    firsts = range(0, length, tile)
    kinds = [by_hand(q, k, tile, length, window) for q in firsts for k in firsts]
    alt = pictures.visits(length, tile, window=window).alt
    for kind in (pictures.WHOLE, pictures.EDGE, pictures.SKIPPED):
        assert f"{kinds.count(kind)} {kind}" in alt


def test_sums_lie_where_the_next_left_factor_has_to_lie():
    lanes = range(32)
    assert [pictures.sums_of(lane) for lane in lanes] == [
        pictures.factors_of(lane) for lane in lanes
    ]
    whole = {place for lane in lanes for place in pictures.sums_of(lane)}
    assert whole == {(row, column) for row in range(16) for column in range(16)}
    place = EXERCISES["tensor_cores.fragment"].solution
    for lane in lanes:
        asked = [place(lane, register, half) for register in range(4) for half in range(2)]
        assert pictures.factors_of(lane) == asked
    assert pictures.places(6).svg().count(">7</text>") == 2
    assert "weights that it hands in: (1, 4), (1, 5), (9, 4)" in pictures.places(6).alt


@pytest.mark.parametrize("scheme", pictures.SCHEMES)
@pytest.mark.parametrize("softmax", [300.0, 640.0, 2000.0])
def test_a_unit_serves_one_group_at_a_time(scheme, softmax):
    spans = pictures.timeline(scheme, 640.0, softmax, tiles=4)
    for group in pictures.GROUPS:
        own = [span for span in spans if span.group == group]
        assert sum(span.what == pictures.SOFTMAX for span in own) == 4
    whole = 1 if scheme != "at the same time" else 2  # at half the speed each
    cycles = {pictures.PRODUCT: 0.0, pictures.SOFTMAX: 0.0}
    for span in spans:
        cycles[span.what] += (span.end - span.start) / whole
    assert cycles == {pictures.PRODUCT: 16 * 640.0, pictures.SOFTMAX: 8 * softmax}
    if whole == 1:
        for what in cycles:
            same = sorted(
                (span for span in spans if span.what == what), key=lambda span: span.start
            )
            assert all(a.end <= b.start for a, b in zip(same, same[1:], strict=False))


def test_turns_keep_tensor_cores_busy():
    """A turn of two products hides a softmax that is no longer than they are."""
    assert pictures.busy("at the same time", 640, 640) == pytest.approx(2 / 3)
    assert pictures.busy("at the same time", 640, 1280) == pytest.approx(1 / 2)
    for scheme in ("in turns", "overlapped"):
        assert pictures.busy(scheme, 640, 640) == pictures.busy(scheme, 640, 1280) == 1
        assert pictures.busy(scheme, 640, 1920) == pytest.approx(2 / 3)
    assert "under way, tensor cores are 100% busy" in pictures.turns("in turns", 640, 1280).alt
    assert "3 tiles end after 11,520 cycles" in pictures.turns("at the same time", 640, 640).alt
    with pytest.raises(ValueError, match="must be one of"):
        pictures.timeline("somehow", 1, 1)


def boxes(scheme):
    """(x, y, width) of each box in the picture of a scheme, as drawn."""
    drawing = pictures.turns(scheme, 640.0, 640.0)
    rects = [tag for tag in drawing.elements if tag.startswith("<rect")]
    found = [re.findall(r' (?:x|y|width)="([\d.]+)"', tag) for tag in rects]
    return [tuple(map(float, numbers)) for numbers in found]


def test_boxes_of_a_scheme_hide_no_other_and_all_schemes_have_one_axis():
    for scheme in pictures.SCHEMES:
        for x, y, width in boxes(scheme):
            others = [box for box in boxes(scheme) if box[1] == y and x < box[0] < x + width - 0.1]
            assert others == []
    assert ">1,280<" in "".join(pictures.turns("at the same time", 640.0, 640.0).elements)
    assert len({boxes(scheme)[0][2] for scheme in pictures.SCHEMES[1:]}) == 1
    end = {scheme: max(x + width for x, _, width in boxes(scheme)) for scheme in pictures.SCHEMES}
    assert end["in turns"] < 0.8 * end["at the same time"]


def entry(name, value, gpu="NVIDIA X"):
    return {"name": name, "value": value, "unit": "FLOP/s", "gpu": gpu}


def test_the_ladder_is_a_share_of_cudnn(monkeypatch, capsys):
    known = {"attention/forward/4096/cudnn/rate": 4.0, "attention/ladder/4096/mma/rate": 3.0}
    monkeypatch.setattr(
        results,
        "together",
        lambda *names: [entry(name, known[name]) if name in known else None for name in names],
    )
    fig = pictures.ladder(["naive", "mma"])
    assert "NVIDIA X: tensor cores: mma 75.0%" in fig.alt and "three kernels" not in fig.alt
    assert pictures.ladder(["naive"], causal=True) is None
    assert "not recorded yet" in capsys.readouterr().out


def test_the_ladder_s_newest_rung_is_dark_and_no_number_lies_on_a_bar_or_on_the_line(monkeypatch):
    rates = {"cudnn": 4.0, "mma": 2.0, "turns": 3.9, "stay": 4.4}
    monkeypatch.setattr(
        results,
        "together",
        lambda *names: [entry(name, rates[name.split("/")[-2]]) for name in names],
    )
    axes = pictures.ladder(["mma", "turns", "stay"]).axes[0]
    dark = [to_hex(bar.get_facecolor()) == pictures.ACCENT.lower() for bar in axes.patches]
    assert dark == [False, False, True]
    numbers = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(numbers) == {"50.0 %", "97.5 %", "110.0 %"}
    assert len({x for x, _ in numbers.values()}) == 1  # one column
    assert all(x - 110 == pytest.approx(pictures.ROOM) for x, _ in numbers.values())
    assert axes.get_xlim()[1] == pytest.approx(110 + pictures.ROOM)


def test_rates_over_the_length_are_those_recorded(monkeypatch):
    name = "attention/forward_causal/8192/ours/rate"
    monkeypatch.setattr(
        results,
        "together",
        lambda *names: [entry(each, 7e14) if each == name else None for each in names],
    )
    assert "ours, fastest at 8,192 700" in pictures.lengths(causal=True).alt


def test_the_way_back_is_told_as_recorded(monkeypatch, capsys):
    known = {"attention/backward_causal/8192/ours/rate": 5e14}
    known["attention/backward_causal/8192/share_of_cudnn"] = 0.9
    monkeypatch.setattr(
        results,
        "together",
        lambda *names: [entry(name, known[name]) if name in known else None for name in names],
    )
    pictures.backward_table()
    said = capsys.readouterr().out
    assert "backward, causal  8,192 tokens: 500 TFLOP/s, 90% of cuDNN (NVIDIA X)" in said
    known.clear()
    pictures.backward_table()
    assert "not recorded yet" in capsys.readouterr().out


def test_a_block_holds_what_its_files_say():
    """Registers of stay.cu; bytes as the kernel is launched with; numbers of wgmma's fragments."""
    source = (hopper.KERNELS / "stay.cu").read_text()
    assert f"take_registers<{pictures.REGISTERS}>()" in source
    size, registers = pictures.held(160)
    assert size == hopper.FASTEST.shared and hopper.FASTEST.stages == 4
    assert registers == {
        "results": hopper.ROWS * 128 // 128,
        "scores": hopper.ROWS * 160 // 128,
        "weights": hopper.ROWS * 160 // 128 // 2,
    }


def test_tiles_of_160_keys_are_the_longest_that_fit():
    said = {keys: pictures.room(keys).alt for keys in (128, 144, 160, 176)}
    assert said[160] == "tiles of 160 keys: 224 of 227 KiB, 184 of 232 registers: it fits"
    assert said[176].endswith("240 of 227 KiB, 196 of 232 registers: it does not fit")
    assert hopper.FASTEST.keys == max(keys for keys, says in said.items() if "it fits" in says)


@pytest.mark.parametrize("keys", [64, 160, 256])
def test_what_a_block_holds_is_drawn_to_scale(keys):
    drawing = pictures.room(keys)
    boxes = [tag for tag in drawing.elements if tag.startswith("<rect")]
    wide = [float(re.search(r' width="([\d.]+)"', tag)[1]) + 2 for tag in boxes]
    kept = wide[1:7]  # after the producer
    assert kept[:2] == pytest.approx([kept[0]] * 2) and kept[2:] == pytest.approx([kept[2]] * 4)
    assert kept[2] / kept[0] == pytest.approx(keys / hopper.QUERIES, rel=0.01)
    results, scores, weights = wide[7:10]
    assert scores / weights == pytest.approx(2, rel=0.05)
    assert results / scores == pytest.approx(pictures.RESULTS / (keys / 2), rel=0.05)
    ends = [
        float(re.search(r' x1="([\d.]+)"', tag)[1]) for tag in drawing.elements if "<line" in tag
    ]
    assert max(ends) <= 700


def test_blocks_find_sms():
    assert pictures.parts_on_sms(8).alt == "8 blocks: 8 of 132 SMs work, each with 1 at most"
    assert pictures.parts_on_sms(160).alt.endswith("132 of 132 SMs work, each with 2 at most")


def test_one_sequence_of_the_ladder_is_cut_into_sixteen_parts():
    """What the chapter says of the rung in parts: 32 heads, 132 SMs, four blocks on each."""
    step = decode.TILE * decode.SPLIT.warps
    words = pictures.LADDER_WORDS
    chunk = decode.chunk_for((words,), 32, 132 * decode.SPLIT.blocks, step)
    assert decode.parts_of((words,), chunk) == 16


def test_ways_to_decode_are_shares_of_a_copy(monkeypatch, capsys):
    known = {"attention/decode_ladder/32768/split/share_of_copy": 0.25}
    monkeypatch.setattr(
        results,
        "together",
        lambda *names: [entry(name, known[name]) if name in known else None for name in names],
    )
    known["attention/decode_ladder/32768/simple/share_of_copy"] = 0.01148
    drawn = pictures.decode_ladder()
    assert drawn.alt.endswith("NVIDIA X: a block for each head 1.15%, its keys in parts 25.0%")
    labels = [text.get_text() for text in drawn.axes[0].texts]
    assert labels == ["1.15 %", "25.0 %"]
    known.clear()
    assert pictures.decode_ladder() is None
    assert "not recorded yet" in capsys.readouterr().out


def test_pages_are_in_their_sequences_order():
    drawing = pictures.pages({"A": [2, 0], "B": [1]}, 4)
    assert drawing.alt == "4 pages. A: pages 2, 0; B: pages 1"


def test_a_part_goes_one_rank_further_each_step():
    assert (
        pictures.ring(3, 0).alt == "step 0: rank 0 has part 0, rank 1 has part 1, rank 2 has part 2"
    )
    assert (
        pictures.ring(3, 1).alt == "step 1: rank 0 has part 2, rank 1 has part 0, rank 2 has part 1"
    )


def test_a_turn_lasts_as_long_as_its_slowest_rank():
    from_start = pictures.ring_turns(ring.steps(4, causal=True)).alt
    assert from_start.startswith("3.5 blocks of time for 8 of work, shared by 4 ranks")
    assert "turn 1: skipped, full, full, full" in from_start
    zigzag = pictures.ring_turns(ring.steps(4, causal=True, zigzag=True)).alt
    assert zigzag.startswith("2 blocks of time for 8 of work, shared by 4 ranks")


def test_a_timeline_draws_each_span_where_it_ran(monkeypatch):
    entries = {"work/0/begin": 0.0, "work/0/end": 2e-3, "copy/1/begin": 1e-3, "copy/1/end": 4e-3}

    def find(name):
        place = name.removeprefix("attention/ring/2/64/timeline/")
        return {"value": entries[place]} if place in entries else None

    monkeypatch.setattr(results, "find", find)
    spans = pictures.recorded_spans(64, 2)
    assert spans == [ring.Span("copy", 1, 1, 4), ring.Span("work", 0, 0, 2)]
    drawing = pictures.ring_timeline(spans)
    assert drawing.alt == "copy 1 from 1.0 to 4.0 ms; work 0 from 0.0 to 2.0 ms"
    work, copy = (tag for tag in drawing.elements if tag.startswith("<rect"))
    assert 'width="330"' in work
    assert 'width="495"' in copy and 'x="245"' in copy
    assert pictures.ring_timeline([]).alt == "nothing is recorded"


def test_blocks_start_in_their_order_on_whoever_is_free():
    lengths = [1, 2, 3, 4, 5, 6, 7, 8]
    whose = pictures.as_launched(lengths, 4)
    assert whose == [0, 1, 2, 3, 0, 1, 2, 3]
    assert pictures.as_launched([5, 1, 1, 1], 2) == [0, 1, 1, 1]
    assert pictures.last_end(lengths, whose, 4) == 12
    dealt = EXERCISES["attention.deal"].solution(lengths, 4)
    assert pictures.last_end(lengths, dealt, 4) == 9 == sum(lengths) / 4
    said = "SM 0: 1 + 5; SM 1: 2 + 6; SM 2: 3 + 7; SM 3: 4 + 8; the last ends after 12"
    assert pictures.handed_out(lengths, whose, 4).alt == said


def test_what_the_chapter_says_of_lists_for_132_sms_is_true(capsys):
    launched = 64 * pictures.needed(4096)
    assert launched[:3] == [1, 2, 3] and max(launched) == launched[31] == 26
    pictures.last_ends(launched, EXERCISES["attention.deal"].solution(launched, 132), 132)
    found = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert found == ["228", "212", "211"]
    order = sorted(launched, reverse=True)  # what the reader tries: the order alone does it
    assert pictures.last_end(order, pictures.as_launched(order, 132), 132) == 212
    starter = [tile % 132 for tile in range(len(launched))]
    assert pictures.last_end(launched, starter, 132) == 238


def test_the_course_s_own_lists_end_nearly_as_early():
    """hopper.plan keeps heads together whose keys fit into L2, which costs little."""
    launched = hopper.order((4, 16, 4096, 4096, 1, 128, True), 160)
    lengths = [cost for cost, _ in launched]
    assert pictures.last_end(lengths, pictures.as_launched(lengths, 132), 132) == 213
