"""The pictures of the Fourier transform: what they draw is right, and shows what is recorded."""

import json

import numpy as np
import pytest

from course.kernels.fft import phone
from course.pictures import fourier
from utils import results


@pytest.mark.parametrize("passes", [fourier.passes_in_place, fourier.passes_of_stockham])
@pytest.mark.parametrize("n", [2, 8, 32])
def test_every_result_comes_from_every_point(passes, n):
    reached = [{i} for i in range(n)]
    for sources in passes(n):
        reached = [set().union(*(reached[place] for place in places)) for places in sources]
    assert all(origins == set(range(n)) for origins in reached)


def test_reading_bits_backwards():
    assert [fourier.bits_reversed(i, 3) for i in range(8)] == [0, 4, 2, 6, 1, 5, 3, 7]


TIME = np.arange(400) / 8000


@pytest.mark.parametrize(
    "draw",
    [
        lambda: fourier.turning(np.ones(8), (0, 1)),
        lambda: fourier.matrix(5),
        lambda: fourier.halves(8),
        lambda: fourier.hand(3),
        lambda: fourier.keypad(phone.somebody()),
        lambda: fourier.strengths(np.ones(40), 10),
        lambda: fourier.spectra({"a tone": np.cos(2 * np.pi * 440 * TIME)}, 8000),
        lambda: fourier.aliases((1000, 7000), 8000, 0.001),
        fourier.orders,
        fourier.two_points,
        fourier.exchange,
        fourier.two_passes,
        fourier.speeds,
        fourier.crossover,
    ],
)
def test_pictures_are_drawn_and_described(draw):
    picture = draw()
    assert picture.alt
    assert picture._repr_mimebundle_()["text/html"]


def test_a_picture_says_what_is_loudest():
    picture = fourier.spectra({"a tone": np.cos(2 * np.pi * 440 * TIME)}, 8000)
    assert "loudest at 440 Hz" in picture.alt


def test_a_picture_says_where_the_peaks_are():
    found = np.fft.fft(np.cos(2 * np.pi * 440 * TIME) + np.cos(2 * np.pi * 1000 * TIME))
    assert "the peaks are at 440 and 1,000 Hz" in fourier.strengths(found, hertz=20).alt


def test_a_hand_reaches_to_the_right_and_up():
    said = fourier.hand(2).alt
    assert "right it reaches 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, 0.0;" in said
    assert "up it reaches 0.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0." in said


@pytest.mark.parametrize("n", [4, 8, 16])
def test_halves_repeat_or_point_the_other_way(n):
    """What the picture is drawn to show."""
    first, second = fourier.halves(n).axes[0].collections[1::2]
    for hands, sign in ((first, 1), (second, -1)):
        right, up = np.reshape(hands.U, (n, -1)), np.reshape(hands.V, (n, -1))
        np.testing.assert_allclose(right[n // 2 :], sign * right[: n // 2], atol=1e-12)
        np.testing.assert_allclose(up[n // 2 :], sign * up[: n // 2], atol=1e-12)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Puts entries {name: value} in the place of what is recorded."""

    def put(values):
        original = json.loads((results.FOLDER / "nvidia-h200.json").read_text())
        like = original["results"][0]
        original["results"] = [
            {**like, "name": name, "value": value, "unit": "1"} for name, value in values.items()
        ]
        (tmp_path / "nvidia-h200.json").write_text(json.dumps(original))
        monkeypatch.setattr(results, "FOLDER", tmp_path)

    return put


def test_nothing_recorded_is_said(recorded):
    recorded({"some/other": 1.0})
    assert fourier.ladder() == fourier.share("fft/2^16/share_of_cufft") == fourier.NOT_YET
    assert fourier.crossing() is None
    assert fourier.NOT_YET in fourier.crossover().alt


def test_the_crossing_is_where_ours_begins_to_win(recorded):
    times = {"direct_8": (0.2, 0.6, 1.1), "direct_16": (0.3, 0.5, 0.9), "ours": (0.55, 0.55, 0.55)}
    recorded(
        {
            f"fft/filter/{size}/{way}/time": value
            for way, values in times.items()
            for size, value in zip((3, 7, 11), values, strict=True)
        }
    )
    assert fourier.filter_times()["direct"] == {3: 0.2, 7: 0.5, 11: 0.9}
    assert fourier.crossing() == 11
    assert "from 11 × 11 on" in fourier.crossover().alt


def test_the_ladder_compares_with_the_fastest(recorded):
    recorded({"fft/ladder/256/sum/time": 8.0, "fft/ladder/256/block/time": 2.0})
    lines = fourier.ladder().splitlines()
    assert len(lines) == 3
    assert lines[1].endswith("4.0 ×")
    assert lines[2].endswith("1.0 ×")


def test_a_thread_always_reads_the_same_two_places_and_writes_further_apart():
    said = fourier.two_points(1).alt
    assert "pass 1: reads 1 and 5, writes 2 and 3" in said
    assert "pass 3: reads 1 and 5, writes 1 and 5" in said
