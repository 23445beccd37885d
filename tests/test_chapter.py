"""`make chapter` picks the tests that concern a chapter, and no others."""

import pytest

from course.chapters import CHAPTERS
from tests import chapter
from utils.files import ROOT


@pytest.mark.parametrize(
    "id, chosen",
    [
        ("chapters/10_reductions.ipynb::Cell 3", True),
        ("tests/course/exercises/test_exercises.py::test_solution_passes[reductions.scan]", True),
        ("tests/chapters/test_numbers.py::test_prose_says_what[10_reductions]", True),
        ("tests/course/kernels/reductions/test_recorded.py::test_a", True),  # it shows their sums
        ("tests/course/kernels/matmul/test_ladder.py::test_a", False),
        ("tests/course/exercises/test_exercises.py::test_solution_passes[memory.split]", False),
        ("tests/course/test_glossary.py::test_a", True),
        ("tests/course/checking/test_memory_limits.py::test_a", False),
    ],
)
def test_a_test_that_concerns_the_chapter_is_chosen(id, chosen):
    assert bool(chapter.concerns(chapter.named("reductions")).search(id)) is chosen


def test_a_chapter_has_two_names_and_an_unknown_one_is_answered_with_those_there_are(capsys):
    assert chapter.named("10_reductions") is chapter.named("reductions")
    with pytest.raises(SystemExit, match="no chapter is called 'sums'; there are ecosystem"):
        chapter.named("sums")


def test_what_is_shared_is_there_and_every_chapter_finds_its_kernels():
    assert [path for path in chapter.SHARED if not (ROOT / path).is_file()] == []
    kernels = set().union(*(chapter.kernels_of(each) for each in CHAPTERS if each.written))
    assert {"matmul", "reductions", "row_kernels", "many_gpus"} <= kernels


def test_the_options_that_are_not_its_own_are_pytests(capsys):
    given, others = chapter.parsed(["reductions", "-q", "-k", "scan"])
    assert given.chapter.key == "reductions" and others == ["-q", "-k", "scan"]
    with pytest.raises(SystemExit) as ended:
        chapter.main(["-h"])
    assert ended.value.code == 0 and "--tidy" in capsys.readouterr().out


def test_a_chapters_own_files_and_the_changed_ones_are_put_in_form(monkeypatch):
    changed = {"utils/files.py", "README.md", "course/gone.py", "utils/cpu/cuda_c/include/lib.cuh"}
    monkeypatch.setattr(chapter, "changed_files", lambda since: changed)
    names = {path.relative_to(ROOT).as_posix() for path in chapter.mine(chapter.named("memory"))}
    assert {"chapters/06_memory.ipynb", "course/exercises/memory.py", "utils/files.py"} <= names
    assert not {"README.md", "course/gone.py", "course/exercises/matmul.py"} & names


def test_a_lint_of_a_changed_file_ends_it(monkeypatch, tmp_path, capfd):
    slip = tmp_path / "slip.py"
    slip.write_text("import os\n\nx=1\n")
    monkeypatch.setattr(chapter, "mine", lambda _: [slip])
    assert chapter.main(["memory", "--tidy"]) == 1
    assert "F401" in capfd.readouterr().out and slip.read_text().endswith("x = 1\n")
