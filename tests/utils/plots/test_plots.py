"""Pictures show what they claim, and describe it in words."""

import numpy as np
import pytest

from utils import plots
from utils.quantities import format_ms
from utils.timing import Timing


def colours(fig):
    """Face colours of the cells, in drawing order."""
    from matplotlib.colors import to_hex

    return [to_hex(p.get_facecolor()).upper() for p in fig.axes[0].patches if p.get_fill()]


def test_index_map_counts_idle_threads_and_missed_elements():
    assert (
        plots.index_map(3, 8, (20,)).alt
        == "3 blocks × 8 threads = 24 threads for 20 elements · 4 idle (hollow)"
    )
    assert plots.index_map(2, 8, (20,)).alt.endswith("4 NOT REACHED (red)")
    assert plots.index_map((3, 2), (4, 3), (5, 10)).alt.startswith(
        "6 blocks × 12 threads = 72 threads for 50 elements · 22 idle"
    )
    assert plots.index_map(1, 1).alt == "1 block × 1 threads = 1 threads for 1 elements"


def test_index_map_draws_what_the_kernel_recorded():
    owner = np.array([0, 0, 1, 1, -1])
    assert colours(plots.index_map(2, 2, (5,), owner=owner)) == [
        plots.BLOCK_COLOURS[0],
        plots.BLOCK_COLOURS[0],
        plots.BLOCK_COLOURS[1],
        plots.BLOCK_COLOURS[1],
        plots.IDLE,
    ]


def test_index_map_2d_colours_blocks_row_by_row():
    cells = np.array(colours(plots.index_map((2, 2), (2, 1)))).reshape(2, 4)
    assert cells.tolist() == [
        [plots.BLOCK_COLOURS[i] for i in row] for row in ((0, 0, 1, 1), (2, 2, 3, 3))
    ]


def test_too_much_to_look_at_is_refused():
    with pytest.raises(ValueError, match="too many to draw"):
        plots.index_map(100, 256)
    with pytest.raises(ValueError, match="1-D and 2-D"):
        plots.index_map((1, 1, 2), (8, 8, 1))


def test_pictures_are_shown_with_a_description():
    data = plots.images([np.zeros((4, 6), np.uint8)], ["a"], alt="a < b")._repr_mimebundle_()
    assert data["text/plain"] == "a < b"
    assert 'aria-label="a &lt; b"' in data["text/html"]
    assert 'alt="a &lt; b"' in data["text/html"]


def test_timing_bars():
    fig = plots.timing_bars(
        {
            "a": Timing("x/a", (1.0, 1.0, 1.1)),
            "b": Timing("x/b", (2.0, 2.0, 2.0)),
            "none": Timing("x/c", ()),
        }
    )
    widths = [p.get_width() for p in fig.axes[0].patches]
    assert widths == [1.0, 2.0]
    assert "a 1 ms" in fig.alt
    assert colours(fig) == [plots.ACCENT, plots.OTHERS], "the quickest is highlighted"


def test_timing_bars_say_what_the_text_says():
    fig = plots.timing_bars({"a": Timing("x/a", (0.00461,) * 3)}, format_ms)
    assert "a 4.61 µs" in fig.alt
    assert [text.get_text() for text in fig.axes[0].texts][-1] == "4.61 µs"


def test_timing_bars_far_apart_say_that_their_axis_is_logarithmic():
    apart = plots.FAR_APART + 1
    timings = {f"{ms} ms": Timing(f"x/{ms}", (float(ms),) * 3) for ms in (1, apart)}
    assert "logarithmic" in plots.timing_bars(timings).axes[0].get_xlabel()
    near = {"1 ms": timings["1 ms"]}
    assert "logarithmic" not in plots.timing_bars(near).axes[0].get_xlabel()


def test_words_under_bars_and_the_mark_of_a_copy_stand_apart():
    label = "a language, and a thread for each element"
    fig = plots.timing_bars(
        {label: Timing("x/a", (2.0,) * 3, bytes=1e6, copy_bytes_per_second=1e9)}
    )
    fig.canvas.draw()
    (axes,) = fig.axes
    words, marks = axes.xaxis.label, axes.get_legend()
    assert not words.get_window_extent().overlaps(marks.get_window_extent())


def test_timing_bars_mark_what_a_copy_takes():
    half = Timing("x/a", (2.0,) * 3, bytes=1e6, copy_bytes_per_second=1e9)
    fig = plots.timing_bars({"a": half})
    (mark,) = [line for line in fig.axes[0].lines if line.get_label().startswith("a copy")]
    assert mark.get_xdata()[0] == pytest.approx(1.0)  # ms: half of its copy speed
    assert mark.get_ydata()[0] == 0
