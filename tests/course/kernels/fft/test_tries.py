"""The kernels of the chapter's cells, as the course has them, are said to be right."""

import numpy as np
import pytest

from course.exercises.fourier import PASS_4_CU
from course.kernels.fft import tries
from tests.needs import cpp_compiler

cpp_compiler()


@pytest.mark.parametrize("count", [16, 256])
def test_rows_are_right(count, capsys):
    tries.rows(count)
    assert f"✓ right: {3 * count:,} values" in capsys.readouterr().out


def test_a_warp_is_right_and_in_order(capsys):
    tries.warp()
    said = capsys.readouterr().out
    assert "hold results 0 1 2 3" in said
    assert "✓ right" in said


def test_pictures_are_filtered_as_torch_filters_them(capsys):
    tries.filtered(side=32, size=3)
    assert "✓ right: 1,800 values" in capsys.readouterr().out


def test_a_transform_by_fours_moves_half_as_much(tmp_path, capsys):
    file = tmp_path / "pass_4.cu"
    file.write_text(PASS_4_CU)
    tries.by_fours(file, 256)
    said = capsys.readouterr().out
    assert "4 launches, 16,384 bytes" in said
    assert "8 launches, 32,768 bytes" in said
    file.write_text(PASS_4_CU.replace("b.y - d.y, d.x - b.x", "d.y - b.y, b.x - d.x"))
    tries.by_fours(file, 256)
    assert "not a transform yet" in capsys.readouterr().out


def test_numbers_are_always_the_same():
    np.testing.assert_array_equal(tries.points(4, 2), tries.points(4, 2))
