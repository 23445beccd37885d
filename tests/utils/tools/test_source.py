"""Excerpts: the very lines of the file, with their comment, and an answer for a name that is not
there.
"""

import pytest

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


def test_what_is_not_there(file):
    with pytest.raises(LookupError, match="defines no 'later'; it defines add, scale, Pair, step"):
        source.function(file, "later")
    with pytest.raises(LookupError, match="no line with 'nowhere'"):
        source.function(file, "scale", start="nowhere")
