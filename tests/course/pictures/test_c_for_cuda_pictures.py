"""What is made from what, what arguments are, who lives how long: as pictures."""

import ctypes
import re

import pytest

from course.pictures import c_for_cuda

MAKEFILE = """
CXX = c++

a: a.o b.o
\t$(CXX) $^ -o $@

a.o: a.cpp b.h
\t$(CXX) -c $<
b.o: b.cpp b.h
\t$(CXX) -c $<
"""


def test_files_stand_right_of_what_they_are_made_from():
    drawn = c_for_cuda.made_from(MAKEFILE).svg()
    columns = {name: x for x, name in re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', drawn)}
    assert columns["a.cpp"] == columns["b.h"] == columns["b.cpp"]
    assert float(columns["b.h"]) < float(columns["b.o"]) < float(columns["a"])
    assert drawn.count("<polygon") == 6  # arrows
    assert len(columns) == 6, "variables are no files"


def test_bits_are_read_with_and_without_a_sign():
    drawing = c_for_cuda.readings(bits=3)
    words = re.findall(r"<text[^>]*>([^<]*)<", drawing.svg())
    assert words[3:] == [
        word
        for value, signed in enumerate((0, 1, 2, 3, -4, -3, -2, -1))
        for word in (f"{value:03b}", str(value), str(signed).replace("-", "\u2212"))
    ] + ["0 \u2212 1"]
    assert "pattern 111: unsigned 7, signed -1" in drawing.alt


# ---- pictures of what a program is made of, and of who lives how long


def test_every_step_of_the_compiler_is_drawn_with_its_size(tmp_path):
    source = tmp_path / "small.cpp"
    source.write_text("#include <cstdio>\nint main() { return 0; }\n")
    alt = c_for_cuda.stages(source).alt
    sizes = [int(size.replace(",", "")) for size in re.findall(r"([\d,]+) bytes", alt)]
    assert len(sizes) == 5 and sizes[0] == source.stat().st_size
    assert sizes[1] > sizes[0] and sizes[4] > sizes[3]  # headers, libraries
    source.write_text('int n = "ten";')
    with pytest.raises(RuntimeError, match="error"):
        c_for_cuda.stages(source)


def test_arguments_are_drawn_with_the_sizes_of_their_types():
    alt = c_for_cuda.arguments(out=ctypes.c_void_p, step=ctypes.c_float, flag=ctypes.c_bool).alt
    assert "3 pointers of 8 bytes" in alt
    assert "out, 8 bytes; step, 4 bytes; flag, 1 bytes" in alt


def test_memory_lives_from_its_plus_to_its_minus():
    lines = ["one", "", "  + 64 bytes", "  + 8 bytes", "  - 8 bytes", "  - 64 bytes", "two"]
    alt = c_for_cuda.lifetimes([*lines, "  + 64 bytes", "  - 64 bytes"]).alt
    assert "one: 64 bytes from 0 to 3, 8 bytes from 1 to 2; two: 64 bytes from 0 to 1" in alt
    with pytest.raises(ValueError, match="no lines"):
        c_for_cuda.lifetimes(["one"])


def test_a_pointer_goes_by_copy_and_by_address():
    assert "a stays nullptr" in c_for_cuda.by_copy_and_by_address().alt


def test_an_arrow_that_comes_does_not_touch_one_that_goes():
    figure = c_for_cuda.memory(["x 0x10 4 42", "p 0x14 8 0x10", "pp 0x1c 8 0x14"])
    ends = [path.get_ydata()[[0, -1]] for path in figure.axes[0].lines[::3]]
    (leaves_p, _), (_, comes_to_p) = sorted(ends, key=lambda end: end[0])
    assert abs(leaves_p - comes_to_p) > 0.2
