"""Progress is never lost: corrupt files, unwritable folders, several notebooks at once."""

import json
import subprocess
import sys

import pytest
from filelock import FileLock

from course import progress
from course.chapters import CHAPTERS, Chapter
from course.exercises import EXERCISES
from course.pictures.chapter_map import ChapterMap, chapter_map


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "data" / "progress.json"
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(path))
    monkeypatch.setattr(progress, "_unsaved", {section: {} for section in progress.SECTIONS})
    return path


def test_the_default_file_is_in_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_COURSE_PROGRESS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert progress.file().is_relative_to(tmp_path)
    assert progress.file().parts[-2:] == ("cuda-course", "progress.json")


def test_a_first_run_has_no_progress_and_says_nothing(file, capsys):
    assert progress.solved() == set()
    assert capsys.readouterr().err == ""
    assert not file.exists()


def test_what_is_recorded_is_found_again_with_its_first_date(file):
    progress.record_solved("first_kernels.max_pool")
    first = progress.load()["exercises"]["first_kernels.max_pool"]
    progress.record_quiz("first_kernels.q_async")
    progress.record_solved("first_kernels.max_pool")
    assert progress.load()["exercises"] == {"first_kernels.max_pool": first}
    assert list(progress.load()["quizzes"]) == ["first_kernels.q_async"]
    assert [path.name for path in file.parent.glob("*.part")] == []


@pytest.mark.parametrize(
    "content", ["{", "", "[]", '{"exercises": []}', "\x00", '{"exercises": {"first_kernels.gray']
)
def test_a_corrupt_file_is_kept_aside(file, capsys, content):
    file.parent.mkdir()
    file.write_text(content)
    progress.record_solved("first_kernels.rotate")
    assert file.with_name("progress.json.bak").read_text() == content
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "progress.json.bak" in message
    assert progress.solved() == {"first_kernels.rotate"}


def test_a_second_corrupt_file_does_not_replace_the_first(file):
    file.parent.mkdir()
    for content in ("first", "second"):
        file.write_text(content)
        assert progress.solved() == set()
    assert [path.read_text() for path in sorted(file.parent.glob("*.bak*"))] == ["first", "second"]


def test_bytes_that_are_no_text_are_kept_aside(file):
    file.parent.mkdir()
    file.write_bytes(b"\xff\xfe\x00garbage")
    assert progress.solved() == set()
    assert file.with_name("progress.json.bak").read_bytes() == b"\xff\xfe\x00garbage"


def test_a_file_that_cannot_be_read_now_is_not_replaced(file, monkeypatch, capsys):
    """A network home that is away for a moment must not cost twenty solved exercises."""
    for number in range(20):
        progress.record_solved(f"first_kernels.{number}")
    before = file.read_text()

    def stale(*_, **__):
        raise OSError(116, "Stale file handle")

    with monkeypatch.context() as away:
        away.setattr("pathlib.Path.read_text", stale)
        progress.record_solved("memory.new")
        assert progress.solved() == {"memory.new"}
    assert file.read_text() == before
    assert "Stale file handle" in capsys.readouterr().err
    progress.record_solved("memory.next")
    assert len(progress.solved()) == 22


def test_a_byte_order_mark_is_no_corruption(file):
    file.parent.mkdir()
    file.write_text('{"exercises": {"memory.a": "2030"}}', encoding="utf-8-sig")
    assert progress.solved() == {"memory.a"}


def test_a_link_to_the_file_stays_a_link(file, tmp_path):
    file.parent.mkdir()
    real = tmp_path / "elsewhere.json"
    file.symlink_to(real)
    progress.record_solved("memory.a")
    assert file.is_symlink() and real.is_file()


def test_another_notebook_that_holds_the_file_is_named(file, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    file.parent.mkdir()
    with FileLock(f"{file}.lock"):
        progress.record_solved("memory.a")
    assert "another notebook holds it" in capsys.readouterr().err
    progress.record_solved("memory.b")
    assert set(json.loads(file.read_text())["exercises"]) == {"memory.a", "memory.b"}


def test_what_a_newer_version_wrote_stays(file):
    file.parent.mkdir()
    file.write_text(
        json.dumps({"exercises": {"99.new": "2030"}, "badges": ["early"], "quizzes": {}})
    )
    progress.record_solved("first_kernels.rotate")
    data = json.loads(file.read_text())
    assert data["badges"] == ["early"]
    assert set(data["exercises"]) == {"99.new", "first_kernels.rotate"}


def test_an_unwritable_place_costs_one_line_and_loses_nothing(tmp_path, monkeypatch, file, capsys):
    blocker = tmp_path / "not a folder"
    blocker.write_text("")
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(blocker / "progress.json"))
    progress.record_solved("first_kernels.rotate")
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "CUDA_COURSE_PROGRESS" in message
    assert progress.solved() == {"first_kernels.rotate"}
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(file))
    progress.record_solved("first_kernels.max_pool")  # saves what could not be saved before, too
    assert set(json.loads(file.read_text())["exercises"]) == {
        "first_kernels.rotate",
        "first_kernels.max_pool",
    }


def test_a_crash_while_writing_leaves_the_old_file(file, monkeypatch):
    progress.record_solved("first_kernels.rotate")
    before = file.read_text()

    def full_disk(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("utils.files.os.fsync", full_disk)
    progress.record_solved("first_kernels.max_pool")
    assert file.read_text() == before
    assert progress.solved() == {"first_kernels.rotate", "first_kernels.max_pool"}
    assert list(file.parent.glob("*.part")) == []


def test_notebooks_at_the_same_time_lose_nothing(file):
    code = (
        "import sys\n"
        "from course import progress\n"
        "progress.PATIENCE = 600\n"
        "for n in range(25):\n"
        "    progress.record_solved(f'{sys.argv[1]}.{n}')\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "ab"]
    assert [child.wait() for child in children] == [0, 0]
    assert progress.solved() == {f"{name}.{n}" for name in "ab" for n in range(25)}


# ---- the map


@pytest.fixture
def one_written(tmp_path, monkeypatch):
    """Only chapter 05 is written."""
    (tmp_path / "05_first_kernels.ipynb").write_text("{}")
    monkeypatch.setattr("course.chapters.FOLDER", tmp_path)


def test_the_map_says_in_words_what_it_draws(file, one_written):
    progress.record_solved("first_kernels.max_pool")
    progress.record_quiz("first_kernels.q_async")
    shown = chapter_map()
    for text in (repr(shown), shown._repr_html_()):
        assert f"1 of {len(EXERCISES)} exercises solved" in text
        assert f"1 of {len(CHAPTERS)} chapters written so far" in text
        assert "1 of 6 exercises, 1 of 3 questions" in text
        assert text.count("not written yet") == len(CHAPTERS) - 1
        assert text.count("●") == 1
        for chapter in CHAPTERS:
            assert chapter.title in text


def test_a_course_that_is_complete_does_not_count_its_chapters():
    assert "written so far" not in ChapterMap(set(), set()).headline()


def test_only_written_chapters_are_links(file, one_written):
    html = chapter_map()._repr_html_()
    assert html.count("<a ") == 1
    assert "<a href='../chapters/05_first_kernels.ipynb'>05 · First kernels</a>" in html


def test_chapters_are_numbered_in_order_and_described():
    assert [chapter.number for chapter in CHAPTERS] == list(range(1, len(CHAPTERS) + 1))
    for chapter in CHAPTERS:
        assert chapter.brings.endswith(".")
        assert len(chapter.brings) < 110
        assert 30 <= chapter.minutes <= 240
    assert {e.chapter for e in EXERCISES.values()} <= {
        "start",
        *(chapter.key for chapter in CHAPTERS),
    }


def test_written_follows_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("course.chapters.FOLDER", tmp_path)
    chapter = Chapter("part", "06_memory", "Memory", 60, "It brings.")
    assert not chapter.written
    (tmp_path / "06_memory.ipynb").write_text("{}")
    assert chapter.written


def test_what_was_solved_under_an_old_number_counts(file):
    file.parent.mkdir()
    file.write_text(
        '{"exercises": {"05.rotate": "2026-01-01"}, "quizzes": {"10.q_tile": "2026-01-02"}}'
    )
    assert progress.solved() == {"first_kernels.rotate"}
    progress.record_solved("first_kernels.max_pool")
    kept = json.loads(file.read_text())
    assert kept["exercises"]["first_kernels.rotate"] == "2026-01-01"
    assert kept["quizzes"] == {"matmul.q_tile": "2026-01-02"}
