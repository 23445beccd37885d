"""The kernels of the chapter's cells, as the course has them, are said to be right."""

import numpy as np
import pytest

from course.exercises.convolution import LAYER_CU, SLOPES_CU
from course.kernels.convolution import plate, tries
from course.kernels.convolution.shapes import Convolution
from tests.needs import cpp_compiler
from utils.files import ROOT

cpp_compiler()


def test_each_rung_is_right_on_the_part_that_is_compared(capsys):
    ladder = tries.Pictures(13, 37)
    for name in ("naive", "constant", "tiled", "registers"):
        ladder.prove(name)
        ladder.tried(name, ladder.taps)
    assert capsys.readouterr().out.count("✓ right: 481 values") == 4
    assert [*ladder.rivals()] == ["naive", "constant", "tiled", "registers", "torch"]


@pytest.mark.parametrize("kind", ["y", "dx", "dw"])
def test_a_layer_is_right(kind, capsys):
    tries.layer(kind, Convolution(1, 8, 5, 4, 8, stride=2))
    assert "✓ right" in capsys.readouterr().out


def test_the_patch_is_right_or_cannot_run(capsys):
    tries.patch(Convolution(1, 64, 3, 4, 64))
    said = capsys.readouterr().out
    assert "✓ right" in said or tries.NO_WGMMA in said


def test_the_exercises_kernel_filters_a_picture(tmp_path):
    file = tmp_path / "layer.cu"
    file.write_text(LAYER_CU)
    grey = np.full((6, 7, 3), 0.5)
    (same,) = tries.filtered(file, grey, [[[0, 0, 0], [0, 1, 0], [0, 0, 0]]])
    np.testing.assert_allclose(same, 0.5, atol=1e-6)
    file.write_text(LAYER_CU.replace("number = x[", "number = 0 * x["))
    assert tries.filtered(file, grey, [np.ones((3, 3))]) == []


def taps_of(photo):
    """What the lamp has drawn, turned round, with the sum 1."""
    line = plate.around_lamp(photo)
    return np.rot90(line, 2) / line.sum()


def test_a_photograph_is_the_scene_correlated_with_what_its_lamp_drew():
    photo = plate.first()
    scene = np.zeros(plate.SIZE)
    scene[plate.PLATE] = plate.PAPER
    blank = plate.photograph("")
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(scene, plate.SIDE // 2), (plate.SIDE, plate.SIDE)
    )
    expected = np.einsum("yxrs,rs->yx", windows, taps_of(photo))
    below = slice(plate.PLATE[0].start, None)  # where the lamp has drawn nothing
    np.testing.assert_allclose(blank[below], expected[below], atol=0.01)


def test_the_chapter_tells_the_size_of_the_shake():
    chapter = (ROOT / "chapters" / "13_convolution.ipynb").read_text(encoding="utf-8")
    assert f"{plate.SIDE} × {plate.SIDE} taps" in chapter
    assert f"all {plate.MOMENTS} moments" in chapter


def test_the_exercises_kernel_takes_the_shake_out(tmp_path):
    file = tmp_path / "slopes.cu"
    photo = plate.second()
    file.write_text("__global__ void slopes(float*, const float*, const float*, int, int, int) {}")
    assert tries.undone(file, photo, taps_of(photo)) is None
    file.write_text(SLOPES_CU)
    sharp = plate.written(plate.SECOND, 38, 164)
    sharp = plate.PAPER + (plate.PAINT - plate.PAPER) * sharp

    def error(picture):
        return np.abs(picture[plate.PLATE] - sharp).mean()

    assert error(tries.undone(file, photo, taps_of(photo), rounds=5)) < 0.8 * error(photo)
