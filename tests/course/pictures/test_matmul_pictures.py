"""The pictures of the chapters on matrix products: drawn from sizes, and saying what they show."""

import itertools

import numpy as np
import pytest

from course.kernels.matmul import numba_rungs
from course.kernels.matmul.ladder import Asked
from course.pictures import matmul
from utils.tools import source
from utils.tracer import trace

KERNELS = source.Path(__file__).parents[3] / "course" / "kernels" / "matmul" / "kernels"


def test_the_ladder_has_a_bar_a_rung_and_says_its_share():
    figure = matmul.ladder_chart({"naive": 0.012, "tile": 0.17}, "a GPU")
    assert "naive 1.2%, tile 17.0%" in figure.alt
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx([1.2, 17.0])


def test_tables_lie_on_each_other_and_say_what_they_need():
    wants, prices = np.array([[2, 1], [3, 1], [0, 4]]), np.array([[1, 2, 3], [4, 2, 1]])
    picture = matmul.tables(wants, prices, names=("apples", "bread"), rows=("Ada", "Ben", "Cem"))
    assert picture.alt.endswith("their sum: [[6, 6, 7], [7, 8, 10], [16, 8, 4]]")
    one = matmul.tables(np.array([[2], [3]]), np.array([[5, 7]]))
    assert one.alt == "4 numbers, 4 products; numbers per product: 1"
    assert all(f">{number}<" in one.svg() for number in (2, 3, 5, 7, 10, 14, 15, 21))


def test_a_hundred_squares_belong_to_the_rung_that_first_reaches_them():
    picture = matmul.hundred("a GPU", {"naive": 0.012, "tile": 0.17, "banks": 0.16, "ahead": 1.02})
    assert picture.alt.endswith("naive 1, tile 17, banks 16, ahead 102; 0 are missing")
    sides = [part.count("M") for part in picture.elements if part.startswith("<path")]
    assert sides == [1, 16, 83]
    assert matmul.hundred("a GPU", {"naive": 0.012}).alt.endswith("naive 1; 99 are missing")


def test_a_guess_is_a_diamond_beside_its_bar():
    figure = matmul.ladder_chart({"naive": 0.01, "tile": 0.17}, "a GPU", guessed={"tile": 0.5})
    (line,) = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert list(line.get_xdata()) == [50] and list(line.get_ydata()) == [1]


def test_the_size_chart_has_a_line_a_rung():
    figure = matmul.size_chart({"tile": {256: 1e12, 512: 2e12}, "cuBLAS": {256: 3e12}}, "a GPU")
    assert "tile 256: 1, 512: 2; cuBLAS 256: 3" in figure.alt
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "--"]


def test_the_size_charts_lines_have_colours_apart():
    from matplotlib.colors import to_rgb

    colours = map(to_rgb, (*matmul._LINES, matmul.INK))
    apart = [np.linalg.norm(np.subtract(*pair)) for pair in itertools.combinations(colours, 2)]
    assert min(apart) > 0.2  # of 1.7 from black to white


def test_the_roofline_bends_where_the_roofs_meet():
    figure = matmul.roofline(
        60e12, 4e12, {"tile": (0.25, 5e11), "banks": (32, 36e12), "vector": (32, 36.1e12)}, "a GPU"
    )
    assert "meeting at 15.0 FLOPs per byte" in figure.alt
    assert max(figure.axes[0].lines[0].get_ydata()) == 60
    heights = [
        text.xyann[1] for text in figure.axes[0].texts if text.get_text() in ("banks", "vector")
    ]
    assert max(heights) > 1.3 * min(heights)  # names of equals do not lie on each other


def test_the_search_map_leaves_what_did_not_run_empty():
    figure = matmul.search_map(
        {("64", "3"): 1e12, ("64", "4"): 3e12, ("128", "3"): 2e12}, "tile", "stages", "a GPU"
    )
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(shown) == ["1.0", "2.0", "3.0"]
    bold = [text.get_text() for text in figure.axes[0].texts if text.get_fontweight() == "bold"]
    assert bold == ["3.0"]


# ---- tiles, lanes and stages


def areas(axes, colour):
    """(x, y) of the patches of one colour."""
    from matplotlib.colors import to_rgba

    wanted = to_rgba(colour)
    return [p.get_xy() for p in axes.patches if p.get_facecolor() == wanted]


def test_the_longer_bar_is_what_decides():
    figure = matmul.feeding(((1, 1), (16, 8)))
    assert "1 × 1: 2 cycles of loads, 0.25 of arithmetic" in figure.alt
    assert "16 × 8: 24 cycles of loads, 32 of arithmetic" in figure.alt


def hands_of(name, shape, block, thread=37, step=3):
    """What the picture says of one thread of a rung in Numba; (m, n, k): one block's tile."""
    t = trace(getattr(numba_rungs, name), (1, 1), block, *numba_rungs.small(*shape))
    return matmul.hands(t, thread, step).alt


def test_a_threads_hands_are_what_the_trace_saw():
    assert hands_of("tile", (32, 32, 64), (32, 32)).endswith(
        "brings 1 of A and 1 of B, reads 1 of A and 1 of B in step 3, computes 1 of C's 1024"
    )
    assert hands_of("tile_1d", (64, 64, 8), 512).endswith(
        "brings 1 of A and 1 of B, reads 8 of A and 1 of B in step 3, computes 8 of C's 4096"
    )


def test_without_tiles_a_thread_is_shown_reading_the_matrices():
    said = hands_of("naive", (32, 8, 8), (32, 8), thread=1000, step=99)  # the last of each
    assert said.startswith("Thread 255 of naive: reads 1 of A and 1 of B in step 7")


@pytest.mark.nightly("a smaller tile by day")
def test_a_turned_tile_is_shown_as_rows_of_a():
    said = hands_of("unsigned", (128, 128, 8), 256)
    assert "reads 8 of A and 8 of B in step 3, computes 64 of C's 16384" in said


def test_the_readers_loops_are_run_and_their_cache_lines_counted():
    def loops(c, a, b):
        for row in range(a.shape[0]):
            for i in range(a.shape[1]):
                for column in range(b.shape[1]):
                    c[row, column] += a[row, i] * b[i, column]

    fixed = matmul.walks(steps=256).alt
    assert "row, i, column: 19" in fixed and "touch 19 cache" in matmul.walked(loops, 256).alt


def test_what_rungs_ask_for_is_told_as_work_for_each():
    asked = {"naive": Asked(8, 0), "tile": Asked(0.25, 2)}
    alt = matmul.asked_chart(asked, {"tile"}).alt
    assert alt.endswith("naive 0.125, 0; tile 4, 0.5")


def test_the_nested_tiles_are_those_of_the_file():
    figure = matmul.nested(source.constants(KERNELS / "warp_tile.cu"))
    assert "Block 128 × 256: 2 × 4 warps. Warp 64 × 64: 8 × 4 threads" in figure.alt
    assert [len(axes.patches) for axes in figure.axes] == [8, 32, 128]


def test_every_lane_has_its_own_place():
    lanes = np.arange(32)
    figure = matmul.lane_map(lanes // 4, lanes % 4, "a warp")
    assert figure.alt == "a warp: 32 places for 32 lanes"
    assert "31 places" in matmul.lane_map(np.minimum(lanes, 30), 0 * lanes, "a warp").alt


def test_a_stage_is_not_overwritten_before_its_step_is_done():
    for count in (1, 2, 3, 4):
        copies, work = matmul._schedule(count, 8, 1.6, 1.0)
        for step in range(8):
            assert work[step] >= copies[step] + 1.6
            if step >= count:
                assert copies[step] >= work[step - count] + 1.0
    assert matmul._schedule(1, 6, 1.6, 1.0)[1][-1] > matmul._schedule(3, 6, 1.6, 1.0)[1][-1]


def test_a_step_starts_the_copy_that_its_table_says():
    """With three pairs two are on their way before the loop; step 0 starts the third."""
    copies, work = matmul._schedule(3, 6, 1.6, 1.0)
    assert copies == [0, 0, *work[:4]]


def test_equal_shares_need_no_last_round():
    assert "4 rounds as whole tiles, 3.25 in equal shares" in matmul.rounds(13, 4).alt


def test_tiles_in_rows_want_more():
    assert "in rows they want 37" in matmul.tile_order(32, 64, 132, 8).alt


def test_cache_lines_of_three_loop_orders_are_counted():
    """One step: a line of each matrix. 32 steps of the first order walk down a column of B."""
    assert "row, column, i: 3, row, i, column: 3, in tiles: 3" in matmul.walks(steps=1).alt
    alt = matmul.walks(steps=32).alt
    assert "row, column, i: 35, row, i, column: 5" in alt  # 2 + 32 + 1; 1 + 2 + 2


@pytest.mark.parametrize("name", matmul.ORDERS)
def test_every_order_does_each_multiply_add_once(name):
    done = list(matmul.ORDERS[name](8))
    assert len(done) == len(set(done)) == 8**3
