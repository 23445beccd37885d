"""Kernels that a learner changes in a cell: where the text goes, and what is built from then on."""

from pathlib import Path

import pytest

from utils.tools import source, yours

KERNEL = """#include "tile.cuh"
#define SIZE 8

// Doubles.
__device__ int twice(int x) {
    return 2 * x;
}

__global__ void scale(int* out) {
    int i = threadIdx.x;
    for (int n = 0; n < 1; ++n) {
        // the part
        out[i] = twice(i);
        out[i] += offset();
    }
}
"""
TILE = "__device__ int offset() {\n    return 100;\n}\n"
TWICE = "// Doubles.\n__device__ int twice(int x) {\n    return 2 * x;\n}\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A course of one folder, and a notebook's folder to be in; its one file."""
    for name in ("_roots", "_caches"):
        monkeypatch.setattr(yours, name, [])
    for name in ("_edits", "_begun"):
        monkeypatch.setattr(yours, name, {})
    folder = tmp_path / "kernels" / "topic" / "cuda"
    folder.mkdir(parents=True)
    (folder / "scale.cu").write_text(KERNEL)
    (folder / "tile.cuh").write_text(TILE)
    (folder / "other.cu").write_text("__global__ void other() {}\n")
    yours.look_in(tmp_path / "kernels")
    notebook = tmp_path / "chapters"
    notebook.mkdir()
    monkeypatch.chdir(notebook)
    return folder / "scale.cu"


class Shell:
    """Keeps what a cell would get."""

    def set_next_input(self, text, replace):
        self.text = text
        assert replace


def test_a_cell_as_it_stands_changes_nothing(file, capsys):
    for line in ("topic/scale.cu", "topic/scale.cu twice", 'topic/scale.cu scale "the part" 2'):
        cell = yours.cell_text(yours.region_of(line))
        assert cell.startswith(f"%%cuda {line}\n")
        yours.run_cell(line, cell.partition("\n")[2] + "\n")
    assert yours.current(file) == file
    assert capsys.readouterr().out == ""
    assert not Path("build").exists()


def test_what_a_cell_changes_is_what_is_built(file, capsys):
    yours.run_cell("topic/scale.cu twice", TWICE.replace("2 * x", "x + x"))
    theirs = yours.current(file)
    assert theirs == Path("build/kernels/topic/cuda/scale.cu").resolve()
    assert theirs.read_text() == KERNEL.replace("2 * x", "x + x")
    assert yours.note(file) == "yours: 1 line of scale.cu"
    assert "x + x" in source.function(file, "twice")
    assert "1 line differs from the course's topic/scale.cu twice" in capsys.readouterr().out
    assert file.read_text() == KERNEL


def test_several_cells_of_one_file_and_lines_more_or_fewer(file):
    yours.run_cell("topic/scale.cu twice", "__device__ int twice(int x) { return x << 1; }")
    part = "out[i] = 0;\nfor (int k = 0; k < 2; ++k)\n    out[i] += i;\nout[i] += offset();"
    yours.run_cell('topic/scale.cu scale "out[i] = twice" 2', part)
    text = yours.current(file).read_text()
    assert "__device__ int twice(int x) { return x << 1; }\n\n__global__" in text
    assert "        // the part\n        out[i] = 0;\n        for" in text
    assert "            out[i] += i;\n        out[i] += offset();\n    }\n}\n" in text


def test_back_to_the_courses_text_by_hand(file):
    yours.run_cell("topic/scale.cu twice", TWICE.replace("2", "3"))
    assert yours.current(file) != file
    yours.run_cell("topic/scale.cu twice", TWICE)
    assert yours.current(file) == file


def test_a_header_reaches_those_that_include_it_and_no_others(file):
    yours.run_cell("topic/tile.cuh", TILE.replace("100", "200"))
    assert yours.current(file) != file
    assert yours.note(file) == "yours: 1 line of tile.cuh"
    assert yours.current(file.with_name("other.cu")) == file.with_name("other.cu")


def test_a_header_of_another_folder_comes_along_and_may_be_changed(file):
    other = file.parents[1] / "more"
    other.mkdir()
    (other / "far.cu").write_text('#include "../cuda/scale.cu"\n__global__ void far() {}\n')
    yours.run_cell("topic/far.cu far", "__global__ void far() { return; }")
    assert (yours.current(other / "far.cu").parent / "../cuda/tile.cuh").is_file()
    assert yours.current(file) == file
    yours.run_cell("topic/far.cu far", "__global__ void far() {}")
    yours.run_cell("topic/tile.cuh", TILE.replace("100", "200"))
    assert yours.note(other / "far.cu") == "yours: 1 line of tile.cuh"
    yours._begun.pop(other.resolve())
    assert yours.current(other / "far.cu") == Path("build/kernels/topic/more/far.cu").resolve()


def test_reset_keeps_what_it_takes_away(file, capsys):
    shell = Shell()
    yours.run_cell("topic/scale.cu twice", TWICE.replace("2", "3"))
    yours.run_cell("topic/scale.cu twice --reset", "lost?", shell)
    assert shell.text == "%%cuda topic/scale.cu twice\n" + TWICE.strip()
    assert yours.current(file) == file
    kept = Path("build/kernels/topic/cuda/.kept/scale-1.cu")
    assert "3 * x" in kept.read_text()
    assert str(kept) in capsys.readouterr().out


def test_a_whole_file_is_opened_and_changed_by_hand(file):
    opened = yours.open_file("topic/scale.cu")
    assert "(build/kernels/topic/cuda/scale.cu)" in opened._repr_markdown_()
    assert yours.current(file) == file
    opened.copy.write_text(KERNEL + "// mine\n")
    assert yours.current(file) == opened.copy
    with pytest.raises(yours.KernelCellError, match="changes of your own"):
        yours.run_cell("topic/scale.cu twice", TWICE.replace("2", "3"))
    assert opened.copy.read_text() == KERNEL + "// mine\n"
    yours.run_cell("topic/scale.cu --reset", "")
    assert yours.current(file) == file
    assert "// mine" in Path("build/kernels/topic/cuda/.kept/scale-1.cu").read_text()


def test_after_an_update_the_unchanged_follow_and_the_changed_stay(file):
    yours.open_file("topic/scale.cu").copy.write_text(KERNEL + "// mine\n")
    yours._begun.clear()  # another day
    file.write_text(KERNEL.replace("SIZE 8", "SIZE 16"))
    file.with_name("tile.cuh").write_text(TILE.replace("100", "300"))
    yours.open_file("topic/scale.cu")
    copies = Path("build/kernels/topic/cuda")
    assert (copies / "scale.cu").read_text() == KERNEL + "// mine\n"
    assert "300" in (copies / "tile.cuh").read_text()


def test_edits_of_a_cell_end_with_the_session(file):
    yours.run_cell("topic/scale.cu twice", TWICE.replace("2", "3"))
    yours._begun.clear()
    yours._edits.clear()
    assert yours.current(file) == file
    yours.open_file("topic/scale.cu")
    assert yours.current(file) == file


def test_two_cells_of_the_same_lines_are_told(file):
    yours.run_cell("topic/scale.cu scale", KERNEL[KERNEL.index("__global__") :].replace("1;", "2;"))
    with pytest.raises(yours.KernelCellError, match="change the same lines"):
        yours.run_cell('topic/scale.cu scale "out[i] = twice" 1', "out[i] = 7;")
    assert "= 7" not in yours.current(file).read_text()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("topic/absent.cu", "has no file topic/absent.cu"),
        ("topic/scale.cu absent", "defines no 'absent'; it defines twice, scale"),
        ('topic/scale.cu scale "absent" 3', "has no line with 'absent'"),
        ("", "The first line reads"),
        ('topic/scale.cu scale "out', "The first line reads"),
    ],
)
def test_a_first_line_that_says_nothing_is_told(file, line, words):
    with pytest.raises(yours.KernelCellError, match=words):
        yours.run_cell(line, "x\n")


def test_before_the_course_is_imported(file, monkeypatch):
    monkeypatch.setattr(yours, "_roots", [])
    with pytest.raises(yours.KernelCellError, match="run the chapter's first cells"):
        yours.run_cell("topic/scale.cu", "")


def test_an_error_names_the_line_of_the_cell(file):
    long = TWICE.replace("    return", "    int y = 0;\n    return")
    yours.run_cell("topic/scale.cu twice", long)
    yours.run_cell('topic/scale.cu scale "out[i] = twice" 1', "out[i] = oops;")
    copy = yours.current(file)
    at = copy.read_text().splitlines().index("        out[i] = oops;") + 1
    log = yours.named(f"{copy}, line {at}: 'oops' was not declared\n{copy}, line 1: elsewhere")
    first, second = log.splitlines()
    assert first == (
        f"{copy}, line {at} (line 2 of your cell %%cuda topic/scale.cu scale "
        "\"out[i] = twice\" 1): 'oops' was not declared"
    )
    assert second == f"{copy}, line 1: elsewhere"
    assert yours.named("x.cu, line 3: other") == "x.cu, line 3: other"


def test_what_loads_kernels_forgets_when_one_changes(file):
    calls = []
    load = yours.cache(lambda name: calls.append(name) or yours.current(file).read_text())
    assert load("a") == load("a") == KERNEL
    yours.run_cell("topic/scale.cu twice", TWICE.replace("2", "3"))
    assert "3 * x" in load("a")
    assert calls == ["a", "a"]
