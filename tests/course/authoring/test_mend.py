"""`make chapter` first puts right what a machine can, and writes over nothing of anybody's."""

import copy
import dataclasses

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course.authoring import book, exercise, mend
from course.authoring.exercise import TASK
from course.chapters import CHAPTERS
from course.exercises import EXERCISES
from course.publish import minutes
from course.publish.folded import FOLDED

GUARD = EXERCISES["first_kernels.scale_guard"]
STARTER = GUARD.starter.strip()
OLD = "@cuda.jit\ndef scale(out, a, factor): ..."


def notebook(starter=STARTER, tags=("exercise",), title="Repair the guard (3 min)", task="Do it."):
    cells = [
        new_markdown_cell(
            "# A\n\nabout 5 minutes: 2 to read and run, 3 for the exercises.", id="t"
        ),
        new_code_cell('exercises.predict("1", "2")', id="p"),
        new_markdown_cell(f"### Exercise · {title}\n\n{task}", id="ex"),
        new_code_cell(starter, id="start", metadata={"tags": list(tags)}),
        new_code_cell('exercises.check("first_kernels.scale_guard", scale)', id="check"),
    ]
    return new_notebook(cells=cells)


def cell(notebook, id):
    return notebook.cells[book.place_of(notebook, id)]


def test_a_cell_gets_the_usual_slide_and_keeps_its_own():
    made = notebook()
    made.cells[0].metadata["slideshow"] = {"slide_type": "skip"}
    made.cells.insert(1, new_markdown_cell("## A section", id="s"))
    made.cells.append(new_markdown_cell("words", id="w"))
    made.cells.append(new_code_cell("1", id="a", metadata={"tags": ["hide-output"]}))
    assert mend.slide_types(made) == ["s", "p", "ex", "start", "check", "w", "a"]
    kinds = [each.metadata["slideshow"]["slide_type"] for each in made.cells]
    assert kinds == ["skip", "slide", "-", "subslide", "-", "-", "fragment", "subslide"]
    assert mend.slide_types(made) == []


def test_a_prediction_is_tagged():
    made = notebook()
    assert mend.tags(made) == ["p"] and mend.tags(made) == []
    assert cell(made, "p").metadata.tags == ["predict", "remove-input"]


def test_what_goes_further_is_folded():
    made = notebook()
    titles = ("## 3 · Going further: votes", "### Going further", "### Going on", "Going further")
    made.cells += [new_markdown_cell(title, id=f"t{n}") for n, title in enumerate(titles)]
    made.cells.append(new_code_cell("## Going further: a comment", id="code"))
    assert mend.folds(made) == ["t0", "t1"] and mend.folds(made) == []
    assert [each.id for each in made.cells if each.metadata.get(FOLDED)] == ["t0", "t1"]


def test_what_is_as_its_entry_has_it_stays():
    made = notebook()
    before = copy.deepcopy(made)
    assert mend.starters(made, {}) == ([], []) and made == before


def test_a_starter_follows_its_entry_where_nobody_wrote_into_the_cell():
    skeleton = exercise.NUMBA_STARTER.format(name="scale").strip()
    for starter, committed in ((skeleton, {}), ("", {}), (OLD, {"start": OLD})):
        made = notebook(starter)
        assert mend.starters(made, committed) == (["start"], [])
        assert cell(made, "start").source == STARTER


def test_a_starter_that_somebody_wrote_stays_and_is_named():
    made = notebook(OLD)
    written, (left,) = mend.starters(made, {"start": "something else"})
    assert written == [] and cell(made, "start").source == OLD
    assert "cell start and the starter of first_kernels.scale_guard differ" in left


def test_a_starter_without_its_tag_gets_it_and_a_missing_one_is_named():
    made = notebook(tags=())
    assert mend.starters(made, {}) == (["start"], [])
    assert cell(made, "start").metadata.tags == ["exercise"]
    made = notebook("1 + 1", tags=())
    assert mend.starters(made, {})[1] == [
        "first_kernels.scale_guard: its starter goes into a cell above check"
    ]


def test_the_heading_has_the_entrys_title_and_a_blank_task_its_task():
    made = notebook(title="TODO: a title (5 min)", task=TASK)
    assert mend.starters(made, {}) == (["ex"], [])
    text = cell(made, "ex").source
    assert text == f"### Exercise · Repair the guard (3 min)\n\n{GUARD.task}"
    made = notebook(title="Another (3 min)", task="In other words.")
    mend.starters(made, {})
    assert cell(made, "ex").source.endswith("(3 min)\n\nIn other words.")


@pytest.mark.parametrize("stated, right", [(110, 110), (200, 110), (10, 110)])
def test_the_lists_minutes_are_put_right_where_they_are_far_off(
    stated, right, tmp_path, monkeypatch
):
    chapter = next(each for each in CHAPTERS if each.key == "first_kernels")
    path = tmp_path / "chapters.py"
    text = mend.LIST.read_text().replace(f"        {chapter.minutes},", f"        {stated},")
    path.write_text(text)
    monkeypatch.setattr(mend, "LIST", path)
    chapter = dataclasses.replace(chapter, minutes=stated)
    assert mend.minutes_in_list(chapter, 112.4) == right
    after = path.read_text()
    assert f'"First kernels",\n        {right},' in after
    assert len(after.splitlines()) == len(text.splitlines())


@pytest.mark.parametrize("by_rule, right", [(0.2, 1), (2.2, 2), (2.6, 5), (7.4, 5), (7.6, 10)])
def test_a_chapter_that_has_just_begun_states_minutes_that_its_test_accepts(
    by_rule, right, tmp_path, monkeypatch
):
    chapter = next(each for each in CHAPTERS if each.key == "first_kernels")
    path = tmp_path / "chapters.py"
    path.write_text(mend.LIST.read_text())
    monkeypatch.setattr(mend, "LIST", path)
    assert mend.minutes_in_list(dataclasses.replace(chapter, minutes=30), by_rule) == right
    assert minutes.is_close(right, by_rule)


def test_the_glossary_follows_a_heading_of_its_cell():
    book = new_notebook(
        cells=[new_markdown_cell("## 3 · Going further: votes\n\n### More", id="v")]
    )
    link = "A word. [Sync · {}](../chapters/07_sync.ipynb#cell-id={})"
    old, new = link.format("Votes", "v"), link.format("Going further: votes", "v")
    assert mend.glossary_links(book, "07_sync", old) == new
    assert mend.glossary_links(book, "07_sync", new) == new
    for other in (link.format("More", "v"), link.format("Votes", "gone"), old.replace("07", "08")):
        assert mend.glossary_links(book, "07_sync", other) == other


@pytest.mark.nightly("the parts of mending have tests of their own")
def test_a_whole_chapter_is_mended_once(course):
    path = course / "chapters/05_first_kernels.ipynb"
    assert course.run("course.authoring.mend", "first_kernels").returncode == 0
    course.commit()  # tables and links of the chapters that the copy has
    made = book.read(path)
    place = book.place_of(made, "errors")  # what stands at the end is folded
    made.cells[place:place] = [new_markdown_cell("word " * 9000, id="long")]
    made.cells[place + 1 : place + 1] = [new_code_cell("print(1)", id="new")]
    book.write(made, path)
    done = course.run("course.authoring.mend", "05_first_kernels")
    assert done.returncode == 1, "165 minutes are no evening"
    assert "put right: slide types of long, new" in done.stdout
    assert "put right: the first cell: about" in done.stdout
    assert "YOURS: first_kernels takes 1" in done.stdout
    assert "\nFolding a section" in done.stdout
    changed = course.changed()
    wanted = ("README.md", "course/chapters.py", "course/index.ipynb", "course/instructors.md")
    assert set(wanted) <= changed.keys()
    again = course.run("course.authoring.mend", "first_kernels")
    assert "put right" not in again.stdout and course.changed() == changed
