"""Excerpts: the very lines of the file, with their comment, and an answer for a name that is not
there.
"""

import pytest
from IPython.core.formatters import DisplayFormatter

from utils.tools import source

FILE = """#pragma once
#include <cstdio>
// A size.
constexpr int N = f(3);

// Adds.
template <class T>
__device__ inline T add(T a,
                        T b) {
  return a + b;
}

// Not a definition.
void later(int x);

// ---- part two

// The kernel.
// It has two lines of comment.
__global__ void __launch_bounds__(N * 32, 2) scale(float* a, int n) {
  int i = threadIdx.x;
  if (i < n)
    a[i] = add(a[i], 1.0f);
}
struct Pair { int a, b; };
bool Thing::step(const int* p) {
  return later(*p), true;
}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(FILE)
    return path


def test_a_function_with_its_comment(file):
    assert (
        source.function(file, "scale")
        == FILE[FILE.index("// The kernel.") : FILE.index("struct Pair")].rstrip()
    )
    assert source.function(file, "add") == FILE[FILE.index("// Adds.") : FILE.index("\n\n// Not a")]
    assert source.function(file, "step").splitlines()[0] == "bool Thing::step(const int* p) {"
    assert source.function(file, "Pair") == "struct Pair { int a, b; };"


def test_a_part_says_what_it_leaves_out(file):
    part = source.function(file, "scale", start="if (i < n)", lines=1)
    assert part.splitlines() == ["// …", "if (i < n)", "// …"]
    assert repr(part) == part


def test_code_is_shown_in_its_colours_and_other_listings_as_they_are(file):
    def shown(listing):
        return DisplayFormatter().format(listing)[0]

    pair = source.function(file, "Pair")
    coloured = {"text/plain": pair, "text/markdown": f"```cuda\n{pair}\n```"}
    assert shown(pair) == coloured
    assert shown(source.Listing("x = 1\n"))["text/markdown"] == "```python\nx = 1\n```"
    assert shown(source.Listing(".reg .b32 %r<9>;", "")) == {"text/plain": ".reg .b32 %r<9>;"}


def test_what_is_not_there(file):
    with pytest.raises(LookupError, match="defines no 'later'; it defines add, scale, Pair, step"):
        source.function(file, "later")
    with pytest.raises(LookupError, match="no line with 'nowhere'"):
        source.function(file, "scale", start="nowhere")


# ---- what changes


@pytest.fixture
def next_file(tmp_path):
    path = tmp_path / "next.cu"
    path.write_text(FILE.replace("a[i] = add(a[i], 1.0f);", "a[i] += 1.0f;  // <in place>"))
    return path


def test_a_change_shows_new_and_gone_lines_and_what_is_around_them(file, next_file):
    change = source.change(file, next_file)
    assert change.new == 1
    assert repr(change).splitlines() == [
        "…",
        "    if (i < n)",
        "-     a[i] = add(a[i], 1.0f);",
        "+     a[i] += 1.0f;  // <in place>",
        "  }",
        "…",
    ]


def test_lines_that_are_gone_can_be_left_out(file, next_file):
    marks = [mark for mark, _ in source.change(file, next_file, gone=False).lines]
    assert "+" in marks and "-" not in marks


def test_no_change_shows_nothing_but_the_file(file):
    change = source.change(file, file)
    assert change.new == 0 and repr(change) == "…"
    assert "the whole of k.cu" in change._repr_html_()


def test_a_change_within_one_function_leaves_out_the_others(file, next_file):
    next_file.write_text(next_file.read_text().replace("struct Pair { int a, b; };", ""))
    assert source.change(file, next_file, name="scale").new == 1
    assert "Pair" not in repr(source.change(file, next_file, name="scale"))
    assert "Pair" in repr(source.change(file, next_file))


def test_a_function_may_have_had_another_name(file, tmp_path):
    renamed = tmp_path / "renamed.cu"
    renamed.write_text(FILE.replace("scale(", "scaled("))
    change = source.change(file, renamed, name="scaled", old_name="scale")
    assert change.new == 1
    with pytest.raises(LookupError, match="no 'scaled'"):
        source.change(file, renamed, name="scaled")


def test_a_change_is_shown_in_parts(file, next_file):
    change = source.change(file, next_file)
    first, rest = change[:3], change[3:]
    assert first.lines + rest.lines == change.lines and len(first.lines) == 3
    assert first.new + rest.new == change.new and rest.whole == change.whole


def test_the_page_escapes_the_code_and_holds_the_whole_file(file, next_file):
    page = source.change(file, next_file)._repr_html_()
    assert "&lt;in place&gt;" in page and "<in place>" not in page
    assert "<details>" in page and "Not a definition" in page


def test_all_shown_new_lines_are_in_the_new_file_in_order(file, next_file):
    shown = [text for mark, text in source.change(file, next_file, context=99).lines if mark != "-"]
    assert shown == next_file.read_text().splitlines()


# ---- constants


def test_constants_are_read_with_what_is_worked_out_from_them(tmp_path):
    path = tmp_path / "sizes.cu"
    path.write_text(
        "#ifndef BM\n#define BM 128  // rows\n#endif\n"
        "constexpr int BN = 64, LANES = BM / (BN / 4);\n"
        "constexpr int UNKNOWN = sizeof(float), LAST = LANES % 3;\n"
    )
    assert source.constants(path) == {"BM": 128, "BN": 64, "LANES": 8, "LAST": 2}
    assert source.constants(path, BM=256)["LANES"] == 16
