"""The kernels of the chapter's cells, as the course has them, are said to be right."""

import numpy as np
import pytest

from course.exercises.convolution import LAYER_CU
from course.kernels.convolution import tries
from course.kernels.convolution.shapes import Convolution
from tests.needs import cpp_compiler

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
