"""C for CUDA: pictures show what a program printed, and programs fail for the reason they teach."""

import re
import shutil
import subprocess

import nbformat
import pytest

from course.pictures import c_for_cuda
from tests.needs import cpp_compiler
from tests.processes import completed
from utils.files import ROOT

CELLS = {c.id: c for c in nbformat.read(ROOT / "chapters" / "03_c_for_cuda.ipynb", 4).cells}
# Each cell that fails on purpose, and a word of the failure that it is there for.
FAILURES = {
    "compile-error-run": "ten",
    "signs-run": "SIGSEGV",
    "null-run": "SIGSEGV",
    "enum-run": "invalid copy direction",
    "stack-overflow-run": "SIGSEGV",
    "files-missing": "No such file",
    "raii-copy-run": "delete",
    "link-error": "norm",
    "dangling-warning-run": "return",
}


def test_no_other_cell_fails():
    assert {
        c.id for c in CELLS.values() if "raises-exception" in c.metadata.get("tags", ())
    } == set(FAILURES)


@pytest.mark.parametrize("cell, word", FAILURES.items())
def test_a_cell_that_fails_does_so_for_its_reason(cell, word):
    said = "".join(
        o.get("text", "") + "\n".join(o.get("traceback", ())) for o in CELLS[cell].outputs
    )
    assert "NvccError" in said and word in said


def program(name):
    """The text of a program that the chapter writes."""
    first = f"%%writefile build/{name}\n"
    return next(c.source.removeprefix(first) for c in CELLS.values() if c.source.startswith(first))


def test_the_recorded_debugger_session_is_of_this_program(tmp_path):
    recorded = (ROOT / "assets" / "sessions" / "gdb.txt").read_text()
    source = program("debug_me.cpp").splitlines()
    quoted = re.findall(r"^(\d+)\t(.*)$", recorded, re.M)
    assert len(quoted) >= 3
    assert all(source[int(number) - 1] == line for number, line in quoted)
    commands = program("session.gdb").splitlines()[1:]
    assert re.findall(r"^\+(.*)$", recorded, re.M) == commands


def test_gdb_still_says_what_was_recorded(tmp_path):
    gdb = shutil.which("gdb")
    command = [*cpp_compiler(), "-std=c++17", "-g", "debug_me.cpp", "-o", "debug_me"]
    if not gdb:
        pytest.skip("gdb is not installed")
    for name in ("debug_me.cpp", "session.gdb"):
        (tmp_path / name).write_text(program(name))
    subprocess.run(command, cwd=tmp_path, check=True)
    session = [gdb, "-nx", "-q", "-batch", "-x", "session.gdb", "debug_me"]
    said = completed(session, cwd=tmp_path, timeout=600).stdout
    if "SIGSEGV" not in said:
        pytest.skip(f"gdb may not look into programs here: {said[-200:]}")
    for line in ("$1 = {inputs = 3, weights = 0x", "$2 = {0.5, 0.25, 2}", "#1 ", "weights = 0x0}"):
        assert line in said


POINTERS = """$ build/pointer
x  0x7ffe10  4  42
p  0x7ffe00  8  0x7ffe10
pp  0x7ffdf8  8  0x7ffe00
lost  0x7ffdf0  8  0x123
x is now 7
""".splitlines()


def test_memory_is_drawn_by_address_with_an_arrow_for_each_pointer_that_hits():
    alt = c_for_cuda.memory(POINTERS).alt
    assert alt == "Variables by address: lost, pp, p, x; pp points to p; p points to x."


def test_memory_says_when_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="name address size value"):
        c_for_cuda.memory(["x is now 7"])


def test_row_major_marks_the_element():
    assert "Row 1, column 2 is element 6" in c_for_cuda.row_major(list(range(12)), 4, 6).alt


def test_layout_counts_the_padding():
    lines = ["Mixed 16 tag 0 1", "Mixed 16 sum 8 8", "Packed 8 sum 0 8", "float3: 12 bytes"]
    assert (
        c_for_cuda.layout(lines).alt
        == "Mixed: 16 bytes, 7 of them padding. Packed: 8 bytes, 0 of them padding."
    )
