"""A recording without a GPU touches the cells that changed, and no others."""

import copy
import json
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.publish import stills
from course.recording import keeping, tidy
from tests.processes import completed
from utils.files import ROOT

CHAPTER = ROOT / "chapters" / "05_first_kernels.ipynb"
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]


@pytest.fixture
def project(tmp_path):
    """A repository with one committed chapter, and modules that it uses."""
    (tmp_path / "chapters").mkdir()
    shutil.copy(CHAPTER, tmp_path / "chapters")
    for name in ("course/exercises/first_kernels.py", "course/pictures/diagrams.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    completed([*GIT, "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def commit(folder):
    completed([*GIT, "add", "-A"], cwd=folder, check=True)
    completed([*GIT, "commit", "-qm", "a chapter"], cwd=folder, check=True)


def path_in(folder):
    return folder / "chapters" / CHAPTER.name


def as_run(book):
    """The notebook as a run on another machine leaves it: other outputs, other widgets."""
    book = copy.deepcopy(book)
    models = tidy.models_of(book)
    models.clear()
    for number, cell in enumerate(book.cells):
        if cell.cell_type != "code":
            continue
        cell.execution_count = 1000 + number
        cell.outputs = [new_output("stream", text=f"of this machine, {number}\n")]
        if "quiz(" in cell.source or "predict(" in cell.source:
            id = f"new{number}"
            models[id] = {"model_name": "VBoxModel", "state": {"layout": f"IPY_MODEL_{id}a"}}
            models[f"{id}a"] = {"model_name": "LayoutModel", "state": {}}
            cell.outputs = [new_output("display_data", {stills.VIEW: {"model_id": id}})]
    return book


def recorded(folder, edited, **options):
    """What a recording makes of the edited notebook, and what it says."""
    path = path_in(folder)
    nbformat.write(edited, path)
    book = as_run(edited)
    kept = keeping.keep(book, keeping.Committed(path, root=folder), **options)
    return book, kept


def place(book, id):
    return next(n for n, cell in enumerate(book.cells) if cell.id == id)


EXERCISE = [
    new_markdown_cell("### Exercise · Clamp (3 min)", id="ex-clamp"),
    new_code_cell("@cuda.jit\ndef clamp(out, a):\n    i = cuda.grid(1)", id="start-clamp"),
    new_code_cell('exercises.check("first_kernels.clamp", clamp)', id="check-clamp"),
    new_code_cell('exercises.quiz("first_kernels.q_clamp")', id="q-clamp"),
]


def test_an_added_exercise_touches_only_its_own_cells(project):
    before = nbformat.read(path_in(project), 4)
    edited = copy.deepcopy(before)
    at = place(edited, "check-title")
    edited.cells[at:at] = copy.deepcopy(EXERCISE)
    after, kept = recorded(project, edited)
    assert kept.new == ("start-clamp", "check-clamp", "q-clamp") and kept.renewed == ()
    own = {cell.id for cell in EXERCISE}
    assert [cell for cell in after.cells if cell.id not in own] == before.cells
    models = tidy.models_of(after)
    quiz = after.cells[place(after, "q-clamp")].outputs[0].data[stills.VIEW].model_id
    assert {id: models[id] for id in models if not id.startswith(quiz)} == tidy.models_of(before)
    assert {f"{quiz}", f"{quiz}a"} == models.keys() - tidy.models_of(before).keys()
    assert {**after.metadata, "widgets": 0} == {**before.metadata, "widgets": 0}


def test_a_notebook_that_nobody_changed_stays_as_it_is(project):
    before = path_in(project).read_text()
    after, kept = recorded(project, nbformat.read(path_in(project), 4))
    assert nbformat.writes(after) + "\n" == before and kept.new == kept.renewed == ()


def test_outputs_that_another_machine_left_in_the_file_are_not_kept(project):
    before = nbformat.read(path_in(project), 4)
    after, _ = recorded(project, as_run(before))
    assert after.cells == before.cells


def test_a_changed_cell_and_what_depends_on_it_are_renewed(project):
    edited = nbformat.read(path_in(project), 4)
    cell = edited.cells[place(edited, "bmm-c")]
    cell.source = cell.source.replace("float", "double", 1)
    gone = edited.cells.pop(place(edited, "q1"))
    after, kept = recorded(project, edited)
    assert kept.renewed == ("bmm-c", "bmm-c-run")
    assert "of this machine" in after.cells[place(after, "bmm-c-run")].outputs[0].text
    models = tidy.models_of(after)
    assert gone.outputs[0].data[stills.VIEW].model_id not in models  # nobody shows it any more
    shown = {keeping.output_id(each) for cell in after.cells for each in cell.get("outputs", [])}
    assert shown - {""} <= models.keys()


def test_a_changed_picture_and_a_changed_exercise_renew_the_cells_that_show_them(project):
    edited = nbformat.read(path_in(project), 4)
    drawing = project / "course" / "pictures" / "diagrams.py"
    drawing.write_text(drawing.read_text().replace("ACROSS = 22", "ACROSS = 23"))
    tasks = project / "course" / "exercises" / "first_kernels.py"
    tasks.write_text(tasks.read_text().replace("at least one of", "at least 1 of"))
    edited.cells[0:0] = [
        new_code_cell("from course.pictures import diagrams as d\nd.gpu()", id="g")
    ]
    after, kept = recorded(project, edited)
    assert kept.new == ("g",)
    assert kept.renewed == ("check-blocks-for",)  # host_and_device, drawn there, is as it was
    nbformat.write(after, path_in(project))
    commit(project)
    drawing.write_text(drawing.read_text().replace("ACROSS = 23", "ACROSS = 24"))
    _, kept = recorded(project, after)
    assert kept.renewed == ("g",)


def test_a_chapter_keeps_its_outputs_under_another_number(project):
    before = nbformat.read(path_in(project), 4)
    moved = path_in(project).with_name("06_first_kernels.ipynb")
    path_in(project).rename(moved)
    book = as_run(before)
    assert keeping.keep(book, keeping.Committed(moved, root=project)).renewed == ()
    assert book.cells == before.cells


def test_a_cell_that_was_pasted_keeps_its_output_under_its_new_id(project):
    edited = nbformat.read(path_in(project), 4)
    cell = edited.cells[place(edited, "who-print")]
    text = cell.outputs[0].text
    cell.id = "pasted"
    after, kept = recorded(project, edited)
    assert kept.new == () and after.cells[place(after, "pasted")].outputs[0].text == text


def test_a_cell_like_another_has_its_own_widgets(project):
    edited = nbformat.read(path_in(project), 4)
    first = edited.cells[place(edited, "q1")]
    edited.cells.append(new_code_cell(first.source, id="q-again"))
    after, kept = recorded(project, edited)
    assert kept.new == ("q-again",)
    again, before = (after.cells[place(after, id)].outputs[0] for id in ("q-again", "q1"))
    assert keeping.output_id(again) != keeping.output_id(before)


def test_named_cells_are_renewed_in_any_case_and_a_new_notebook_whole(project):
    _, kept = recorded(project, nbformat.read(path_in(project), 4), renew=("ceil",))
    assert kept.renewed == ("ceil",)
    other = path_in(project).with_name("20_demo.ipynb")
    book = new_notebook(cells=[new_code_cell("1 + 1", id="a")])
    kept = keeping.keep(book, keeping.Committed(other, root=project))
    assert kept == keeping.Kept(("a",), (), 0)


def test_what_was_committed_without_having_run_is_new(project):
    edited = nbformat.read(path_in(project), 4)
    edited.cells.append(new_code_cell("print(n)", id="late"))
    nbformat.write(edited, path_in(project))
    commit(project)
    assert keeping.stale(path_in(project), root=project) == ["late"]
    _, kept = recorded(project, edited)
    assert kept.new == ("late",)


def test_outputs_of_code_that_is_gone_are_found_until_it_is_recorded(project):
    path = path_in(project)
    assert keeping.stale(path, root=project) == []
    edited = nbformat.read(path, 4)
    cell = edited.cells[place(edited, "ceil")]
    cell.source = cell.source.replace("1000", "1001")
    after, _ = recorded(project, edited)
    found = keeping.stale(path, root=project)
    assert found[0] == "ceil" and "who" not in found
    nbformat.write(after, path)
    assert keeping.stale(path, root=project) == []


def test_a_cell_that_ran_and_printed_the_same_has_run(project):
    path = path_in(project)
    edited = nbformat.read(path, 4)
    cell = edited.cells[place(edited, "ceil")]
    cell.source = cell.source.replace("1000", "1001")
    nbformat.write(edited, path)
    assert "ceil" in keeping.stale(path, root=project)
    keeping.note_run(path, root=project)
    assert keeping.stale(path, root=project) == []
    cell.source = cell.source.replace("1001", "1002")
    nbformat.write(edited, path)
    assert "ceil" in keeping.stale(path, root=project)


def test_what_ties_widgets_together_stays_with_them():
    models = {
        "a": {"model_name": "VBoxModel", "state": {"children": ["IPY_MODEL_b"]}},
        "b": {
            "model_name": "OutputModel",
            "state": {"outputs": [{"data": {"x": {"model_id": "c"}}}]},
        },
        "c": {"model_name": "IntSliderModel", "state": {}},
        "d": {"model_name": "IntSliderModel", "state": {}},
        "t": {"model_name": "LinkModel", "state": {"source": ["IPY_MODEL_a"], "to": "IPY_MODEL_c"}},
        "u": {"model_name": "LinkModel", "state": {"source": ["IPY_MODEL_c"], "to": "IPY_MODEL_d"}},
    }
    assert json.dumps(models["b"]).count("model_id") == 1
    assert keeping.reached_from({"a"}, models) == {"a", "b", "c", "t"}
