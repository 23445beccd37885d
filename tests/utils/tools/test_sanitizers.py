"""A sanitizer's report is cut down to the lines about the program's own code."""

import pytest

from tests.needs import cpp_compiler
from tests.processes import completed
from utils.tools.sanitizers import caught

cpp_compiler()
PROGRAM = """
#include <cstdio>
int main() {
    int* a = new int[4]{};
    int* old = a;
    if (BROKEN)
        delete[] a;
    printf("%d\\n", old[0]);
    return 0;
}
"""


@pytest.fixture
def built(tmp_path):
    def build(broken):
        source = tmp_path / "freed.cpp"
        source.write_text(PROGRAM)
        program = tmp_path / f"freed{broken}"
        flags = ["-g", "-fsanitize=address", f"-DBROKEN={broken}"]
        completed(["c++", *flags, str(source), "-o", str(program)], check=True)
        return program.rename(tmp_path / "freed")

    return build


def test_the_mistake_and_its_lines_are_named(built):
    said = caught(built(1), "heap-use-after-free")
    assert "heap-use-after-free" in said and "freed.cpp:8" in said and "freed by" in said
    assert "SUMMARY" not in said and len(said.splitlines()) < 12


def test_a_program_without_the_mistake_says_what_it_printed(built):
    assert (
        caught(built(0), "heap-use-after-free") == "no mistake was found: no heap-use-after-free\n0"
    )


def test_another_mistake_than_the_expected_one_is_told(built):
    assert caught(built(1), "stack-overflow").startswith("this is no stack-overflow:")
