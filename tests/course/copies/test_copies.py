"""What the learner wrote is theirs: it survives every newer version of the course."""

import random
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.copies import answers, update, workspace
from course.copies.merge import merge
from tests.processes import completed

NAME = "05_first_kernels.ipynb"


def text(output):
    return new_output("stream", name="stdout", text=output)


def chapter(*cells):
    """A notebook of (id, source, output or None) code cells and (id, source) text cells."""
    made = [
        new_markdown_cell(cell[1], id=cell[0])
        if len(cell) == 2
        else new_code_cell(cell[1], id=cell[0], outputs=[text(cell[2])] if cell[2] else [])
        for cell in cells
    ]
    return new_notebook(cells=made)


def content(notebook):
    return (nbformat.writes(notebook) + "\n").encode()


def sources(notebook):
    return {cell.id: cell.source for cell in notebook.cells}


BASE = [("title", "# Old"), ("add", "1 + 1", "2"), ("start", "def f(): ...", None), ("end", "Bye")]
NEW = [
    ("title", "# New"),
    ("add", "1 + 2", "3"),
    ("more", "Read this"),
    ("start", "def f(x): ...", None),
    ("end", "Bye"),
]


# ---- cell by cell


def test_an_answer_moves_into_the_newer_chapter():
    mine = chapter(*BASE)
    mine.cells[2].source = "def f(): return 42"
    mine.cells[2].outputs = [text("solved")]
    done = merge(chapter(*BASE), mine, chapter(*NEW))
    assert sources(done.notebook) == {**sources(chapter(*NEW)), "start": "def f(): return 42"}
    assert done.notebook.cells[3].outputs == [text("solved")]
    assert (done.kept, done.both_changed) == (["start"], ["start"])


def test_outputs_are_the_learners_where_the_cell_is_the_same():
    mine = chapter(*BASE)
    mine.cells[1].outputs = [text("2 on my machine")]
    same = merge(chapter(*BASE), mine, chapter(*BASE)).notebook
    assert same.cells[1].outputs == [text("2 on my machine")]
    newer = merge(chapter(*BASE), mine, chapter(*NEW)).notebook
    assert newer.cells[1].outputs == [text("3")], "of another source they would be wrong"


def test_cells_of_their_own_stay_where_they_were():
    mine = chapter(*BASE)
    mine.cells.insert(2, new_code_cell("print('mine')", id="own"))
    mine.cells.insert(3, new_markdown_cell("my note", id="note"))
    mine.cells.insert(0, new_markdown_cell("first of all", id="first"))
    done = merge(chapter(*BASE), mine, chapter(*NEW))
    order = [cell.id for cell in done.notebook.cells]
    assert order == ["first", "title", "add", "own", "note", "more", "start", "end"]


def test_a_cell_that_the_course_dropped_stays_if_the_learner_wrote_in_it():
    mine = chapter(*BASE)
    mine.cells[2].source = "def f(): return 42"
    without = chapter(*[cell for cell in NEW if cell[0] != "start"])
    assert sources(merge(chapter(*BASE), mine, without).notebook)["start"] == "def f(): return 42"
    untouched = merge(chapter(*BASE), chapter(*BASE), without).notebook
    assert "start" not in sources(untouched)


def test_what_they_removed_stays_away_unless_it_changed():
    mine = chapter(*[cell for cell in BASE if cell[0] not in ("add", "end")])
    order = list(sources(merge(chapter(*BASE), mine, chapter(*NEW)).notebook))
    assert order == ["title", "add", "more", "start"]


def test_the_set_up_cell_is_the_courses():
    base, mine, new = chapter(*BASE), chapter(*BASE), chapter(*NEW)
    for notebook in (base, mine, new):
        notebook.cells[1].metadata["tags"] = ["setup"]
    mine.cells[1].source = "old set-up, edited"
    assert sources(merge(base, mine, new).notebook)["add"] == "1 + 2"


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_edited_nothing_of_theirs_is_lost(seed):
    """Random edits on both sides: every text of the learner is in the result, once, the result is
    a valid notebook, and doing it again changes nothing.
    """
    rng = random.Random(seed)
    base = chapter(*[(f"c{n}", f"course {n}", None) for n in range(12)])
    new, mine = (nbformat.from_dict(base) for _ in range(2))
    new, mine = (nbformat.v4.reads(nbformat.writes(each)) for each in (new, mine))
    for who, notebook in (("course", new), ("mine", mine)):
        for number in range(rng.randrange(8)):
            place = rng.randrange(len(notebook.cells))
            action = rng.choice(["edit", "add", "remove"])
            if action == "edit":
                notebook.cells[place].source = f"{who} edit {number}"
            elif action == "add":
                cell = new_code_cell(f"{who} own {number}", id=f"{who}{number}")
                notebook.cells.insert(place, cell)
            elif len(notebook.cells) > 3:
                del notebook.cells[place]
    theirs = [cell.source for cell in mine.cells if cell.source.startswith("mine")]
    newest = nbformat.writes(new)
    done = merge(base, mine, new).notebook
    nbformat.validate(done)
    found = [cell.source for cell in done.cells if cell.source.startswith("mine")]
    assert sorted(found) == sorted(theirs)
    again = merge(base, nbformat.v4.reads(nbformat.writes(done)), nbformat.v4.reads(newest))
    assert sources(again.notebook) == sources(done)


# ---- the folder


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one chapter and a start page, and the learner's folder in it."""
    for folder in ("chapters", "course", "assets", "tests", "utils"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").touch()
    (tmp_path / "course" / "glossary.md").write_text(
        "[Kernels](../chapters/05_first_kernels.ipynb)"
    )
    (tmp_path / "course" / "index.ipynb").write_bytes(content(chapter(("start", "Welcome"))))
    (tmp_path / "chapters" / NAME).write_bytes(content(chapter(*BASE)))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / ".jupyter"))  # where signatures are kept
    monkeypatch.setattr(workspace, "ROOT", tmp_path)
    monkeypatch.setattr(update, "ROOT", tmp_path)
    start = tmp_path / "course" / "index.ipynb"
    for module in (workspace, update):
        monkeypatch.setattr(
            module, "notebooks", lambda: [start, *sorted((tmp_path / "chapters").glob("*.ipynb"))]
        )
    return tmp_path


def publish(course, *cells, name=NAME):
    (course / "chapters" / name).write_bytes(content(chapter(*cells)))


def write_in(copy, id, source):
    """Do as JupyterLab does when a learner types into a cell and saves."""
    notebook = nbformat.read(copy, 4)
    next(cell for cell in notebook.cells if cell.id == id).source = source
    copy.write_text(nbformat.writes(notebook))


def test_copies_are_the_originals_byte_for_byte(course):
    mine = course / "my"
    assert workspace.refresh(mine) == []
    for name in (f"chapters/{NAME}", "course/index.ipynb"):
        assert (mine / name).read_bytes() == (course / name).read_bytes()
        assert not (mine / name).is_symlink()


def test_jupyterlab_trusts_what_the_course_brings_and_nothing_else(course):
    mine = course / "my"
    workspace.refresh(mine)
    copy = mine / "chapters" / NAME
    notary = NotebookNotary()
    assert notary.check_signature(nbformat.read(copy, 4))
    write_in(copy, "start", "print(open('/etc/passwd').read())")
    assert not notary.check_signature(nbformat.read(copy, 4)), "by somebody else's hand"
    notary.store.close()


def test_links_and_paths_lead_where_they_lead_in_the_originals(course):
    mine = course / "my"
    workspace.refresh(mine)
    assert (mine / "chapters" / "../assets").resolve() == course / "assets"
    glossary = mine / "course" / "glossary.md"
    assert glossary.resolve() == course / "course" / "glossary.md"
    assert (glossary.parent / "../chapters" / NAME).is_file()
    moved = course.rename(course.with_name("moved"))
    assert (moved / "my" / "course" / "glossary.md").read_text(), "links do not name the folder"


def test_copies_elsewhere_hold_what_is_to_be_read(course, tmp_path_factory):
    """A JupyterHub user's home: JupyterLab opens no link that leads out of it."""
    home = tmp_path_factory.mktemp("home") / "cuda-course"
    workspace.refresh(home)
    glossary = home / "course" / "glossary.md"
    assert not glossary.is_symlink() and "Kernels" in glossary.read_text()
    assert (home / "assets").resolve() == course / "assets"
    (course / "course" / "glossary.md").write_text("newer")
    workspace.refresh(home)
    assert glossary.read_text() == "newer"


def test_an_untouched_copy_is_replaced_silently(course):
    mine = course / "my"
    workspace.refresh(mine)
    publish(course, *NEW)
    assert workspace.refresh(mine) == []
    assert (mine / "chapters" / NAME).read_bytes() == content(chapter(*NEW))
    assert not (mine / workspace.BEFORE).exists()


def test_a_touched_copy_is_renewed_around_the_answer(course):
    mine = course / "my"
    copy = mine / "chapters" / NAME
    workspace.refresh(mine)
    write_in(copy, "start", "def f(): return 42")
    as_it_was = copy.read_bytes()
    publish(course, *NEW)
    (line,) = workspace.refresh(mine)
    assert "1 cell of yours stayed (the course changed 1 of them, too)" in line
    renewed = sources(nbformat.read(copy, 4))
    assert renewed == {**sources(chapter(*NEW)), "start": "def f(): return 42"}
    (kept,) = (mine / workspace.BEFORE).iterdir()
    assert kept.read_bytes() == as_it_was and kept.name in line
    assert workspace.refresh(mine) == [], "nothing changed since"


def test_nothing_happens_while_the_course_stays_the_same(course):
    mine = course / "my"
    copy = mine / "chapters" / NAME
    workspace.refresh(mine)
    write_in(copy, "start", "def f(): return 42")
    before = copy.stat().st_mtime_ns
    assert workspace.refresh(mine) == []
    assert copy.stat().st_mtime_ns == before


def test_a_deleted_copy_comes_back_fresh(course):
    mine = course / "my"
    workspace.refresh(mine)
    (mine / "chapters" / NAME).unlink()
    workspace.refresh(mine)
    assert (mine / "chapters" / NAME).read_bytes() == content(chapter(*BASE))


@pytest.mark.parametrize("torn", [b"", b'{"cells": [', b"\xff\xfe", b"[]", b'{"cells": {}}'])
def test_a_torn_copy_is_kept_and_said(course, torn):
    mine = course / "my"
    workspace.refresh(mine)
    (mine / "chapters" / NAME).write_bytes(torn)
    publish(course, *NEW)
    (line,) = workspace.refresh(mine)
    assert "could not be read" in line
    assert [path.read_bytes() for path in (mine / workspace.BEFORE).iterdir()] == [torn]
    assert (mine / "chapters" / NAME).read_bytes() == content(chapter(*NEW))


def test_a_chapter_with_another_number_takes_the_answers_along(course):
    mine = course / "my"
    workspace.refresh(mine)
    write_in(mine / "chapters" / NAME, "start", "def f(): return 42")
    (course / "chapters" / NAME).unlink()
    publish(course, *NEW, name="06_first_kernels.ipynb")
    workspace.refresh(mine)
    renewed = sources(nbformat.read(mine / "chapters" / "06_first_kernels.ipynb", 4))
    assert renewed["start"] == "def f(): return 42"
    assert not (mine / "chapters" / NAME).exists()


# ---- answers in a file


def test_answers_travel_to_another_copy(course, tmp_path):
    mine = course / "my"
    workspace.refresh(mine)
    write_in(mine / "chapters" / NAME, "start", "def f(): return 42")
    file = tmp_path / "answers.json"
    assert answers.export(file, mine) == 1
    publish(course, *NEW)
    other = tmp_path / "other"
    workspace.refresh(other)
    assert answers.restore(file, other) == [f"{NAME}: 1 cells restored"]
    assert sources(nbformat.read(other / "chapters" / NAME, 4))["start"] == "def f(): return 42"
    assert answers.restore(file, other) == [f"{NAME}: 0 cells restored"]


def test_an_answer_never_replaces_another(course, tmp_path):
    mine = course / "my"
    workspace.refresh(mine)
    write_in(mine / "chapters" / NAME, "start", "first answer")
    file = tmp_path / "answers.json"
    answers.export(file, mine)
    write_in(mine / "chapters" / NAME, "start", "second answer")
    (line,) = answers.restore(file, mine)
    assert "1 have another answer here" in line
    assert sources(nbformat.read(mine / "chapters" / NAME, 4))["start"] == "second answer"


@pytest.mark.parametrize("wrong", ["[]", "{", '{"first_kernels": 3}'])
def test_a_file_of_something_else_is_refused(course, tmp_path, wrong):
    workspace.refresh(course / "my")
    (tmp_path / "wrong.json").write_text(wrong)
    with pytest.raises(ValueError):
        answers.restore(tmp_path / "wrong.json", course / "my")


# ---- git


def run_git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = completed(["git", *identity, *words], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_originals_that_were_worked_in_become_the_learners_copies(course):
    (course / ".gitignore").write_text("my/\n")
    run_git(course, "init", "-q")
    run_git(course, "add", ".")
    run_git(course, "commit", "-q", "-m", "first")
    mine = course / "my"
    original = course / "chapters" / NAME
    write_in(original, "start", "typed into the original")
    (line,) = update.adopt(mine, course)
    assert "it is your copy now" in line
    assert run_git(course, "status", "--porcelain") == ""
    assert sources(nbformat.read(mine / "chapters" / NAME, 4))["start"] == "typed into the original"
    write_in(original, "start", "typed there again")
    (line,) = update.adopt(mine, course)
    (kept,) = (mine / workspace.BEFORE).iterdir()
    assert kept.name in line
    assert sources(nbformat.read(kept, 4))["start"] == "typed there again"
    assert run_git(course, "status", "--porcelain") == ""


def test_what_git_cannot_do_is_said_in_its_words(tmp_path):
    with pytest.raises(update.Trouble, match="git pull: .*not a git repository"):
        update.pull(tmp_path)


def test_the_folder_is_ignored_by_git():
    root = Path(__file__).resolve().parents[3]
    assert "my/" in (root / ".gitignore").read_text().splitlines()
