"""Every notebook is clean as a file; and the rules that say so catch what they should
(tests/hygiene.py).
"""

import ast
import json
import statistics

import nbformat.v4
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course import exercises
from course.checking import predict
from course.publish import frame
from tests import hygiene, tiers
from utils.files import ROOT

NOTEBOOKS = sorted(
    path
    for folder in ("course", "chapters")
    for path in (ROOT / folder).rglob("*.ipynb")
    if not {".ipynb_checkpoints", "build"} & set(path.parts)
)
WIDEST = 100  # columns of a line of code
USUAL_CODE = 8  # lines: the median of a chapter's cells
CHAPTERS = [path for path in NOTEBOOKS if path.parent.name == "chapters"]


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_is_clean(path):
    assert hygiene.problems(path, ROOT) == []


def test_there_is_a_notebook_to_start_from_and_one_chapter():
    assert ROOT / "course" / "index.ipynb" in NOTEBOOKS
    assert CHAPTERS


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_every_notebook_has_its_frame(path):
    """Links above and below, Colab's plumbing folded, a short set-up cell."""
    notebook = hygiene.read(path)
    assert hygiene.setup_cell(notebook) == frame.SETUP, "one cell must carry the tag `setup`"
    before = nbformat.v4.writes(notebook)
    frame.framed(notebook, path)
    assert nbformat.v4.writes(notebook) == before, "`make address` writes it"


def test_the_frame_folds_what_has_the_tag_of_an_answer():
    notebook = clean_notebook()
    answer = code(notebook)
    answer.metadata["tags"] = [predict.ANSWER]
    assert not predict.is_folded(answer)
    frame.framed(notebook, CHAPTERS[1])
    assert predict.is_folded(answer)


@pytest.mark.parametrize("name", ["11_matmul", "12_tensor_cores"])
def test_a_rungs_speed_is_folded_until_it_was_guessed(name):
    cells = hygiene.read(ROOT / "chapters" / f"{name}.ipynb").cells
    asked = [n for n, cell in enumerate(cells) if cell.source.startswith("ladder.predict(")]
    assert asked
    for n in asked:
        assert predict.TAG in cells[n].metadata.get("tags", []), cells[n].id
        answer = next(cell for cell in cells[n + 1 :] if cell.get("outputs"))
        assert predict.is_folded(answer), answer.id


def test_what_a_notebook_asks_can_be_asked():
    """By day no other test runs these cells: they need no kernel."""
    asked = set()
    for path in NOTEBOOKS:
        for cell in hygiene.read(path).cells:
            found = tiers.ASKS.fullmatch(cell.source) if cell.cell_type == "code" else None
            if found and found[1] != "check":
                assert repr(eval(cell.source, {"exercises": exercises})), cell.id
                asked.add(found[1])
    assert asked == {"quiz", "predict"}
    with pytest.raises(ValueError, match="first_kernels.q_async"):
        exercises.quiz("first_kernels.q_asink")


@pytest.mark.parametrize("path", CHAPTERS)
def test_the_answer_to_a_guess_is_one_of_its_choices(path):
    for cell in hygiene.read(path).cells:
        if "answer" in cell.metadata:
            (call,) = ast.parse(cell.source).body
            choices = [ast.literal_eval(choice) for choice in call.value.args]
            assert cell.metadata["answer"] in choices, cell.id


def test_the_frame_is_short_and_its_links_lead_on():
    assert len(frame.SETUP.splitlines()) == 3
    assert max(map(len, frame.SETUP.splitlines())) <= WIDEST
    ways = frame.ways(CHAPTERS[1])
    assert ways.startswith("[← The ecosystem](01_ecosystem.ipynb) · [Start page](../course/index")
    assert "(../course/glossary.md)" in ways and ways.endswith(" →](03_c_for_cuda.ipynb)")
    words = frame.words(CHAPTERS[3])
    assert "[warp](../course/glossary.md#W)" in words
    assert "[arithmetic intensity](../course/glossary.md#A)" in words


@pytest.mark.parametrize("path", CHAPTERS)
def test_a_tired_learner_can_read_the_cells(path):
    cells = [cell.source for cell in hygiene.read(path).cells if cell.cell_type == "code"]
    lines = [line for source in cells for line in source.splitlines()]
    assert [line for line in lines if len(line) > WIDEST] == []
    assert statistics.median(len(source.splitlines()) for source in cells) <= USUAL_CODE


# ---- the rules themselves


def clean_notebook():
    """A notebook with a little of everything, and nothing wrong with it."""
    text = new_markdown_cell(
        "# A first look\n[next](next.ipynb), [up](#A-first-look), [web](https://nvidia.com)\n"
        "\n![a grid of threads](grid.svg) and `a[i](b)`"
    )
    code = new_code_cell(
        "1 + 1",
        execution_count=1,
        outputs=[new_output("execute_result", {"text/plain": "2"}, execution_count=1)],
    )
    fails = new_code_cell(
        "1 / 0",
        execution_count=2,
        outputs=[new_output("error", ename="ZeroDivisionError", evalue="division by zero")],
    )
    fails.metadata["tags"] = ["raises-exception"]
    notebook = new_notebook(cells=[text, code, fails])
    for cell in notebook.cells:
        cell.metadata["slideshow"] = {"slide_type": "slide"}
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    return notebook


def found_in(notebook, folder):
    path = folder / "notebook.ipynb"
    (folder / "next.ipynb").touch()
    (folder / "grid.svg").touch()
    path.write_text(nbformat.v4.writes(notebook) + "\n", encoding="utf-8")
    return hygiene.problems(path, folder)


def test_a_clean_notebook_has_no_problems(tmp_path):
    assert found_in(clean_notebook(), tmp_path) == []


def text(notebook):
    return notebook.cells[0]


def code(notebook):
    return notebook.cells[1]


def written(source):
    """Give the notebook's text cell this text."""
    return lambda notebook: text(notebook).update(source=source)


def shown(*output, **more):
    """Give the notebook's code cell one more output."""
    return lambda notebook: code(notebook).outputs.append(new_output(*output, **more))


# <svg><g></svg>
BROKEN_PICTURE = '<img alt="a warp" src="data:image/svg+xml;base64,PHN2Zz48Zz48L3N2Zz4=">'
DEFECTS = {
    "wrong kernel": ("kernelspec", lambda nb: nb.metadata.kernelspec.update(name="my-env")),
    "no kernel": ("kernelspec", lambda nb: nb.metadata.pop("kernelspec")),
    "no id": ("cell 1: no id", lambda nb: code(nb).pop("id")),
    "same id twice": ("used 2 times", lambda nb: code(nb).update(id=text(nb).id)),
    "stale widget state": (
        "widget state is saved",
        lambda nb: nb.metadata.update(
            widgets={
                hygiene.WIDGET_STATE: {"state": {"a1": {}}, "version_major": 2, "version_minor": 0}
            }
        ),
    ),
    "widget without state": (
        "state is not saved",
        shown("display_data", {hygiene.WIDGET_VIEW: {"model_id": "b2"}}),
    ),
    "widget without a picture": (
        "widget's name in Python",
        lambda nb: code(nb).outputs[0].data.update({"text/plain": "interactive(children=(Int"}),
    ),
    "no slide": ("slide_type is None", lambda nb: code(nb).metadata.pop("slideshow")),
    "unknown slide": (
        "is 'page'",
        lambda nb: code(nb).metadata.slideshow.update(slide_type="page"),
    ),
    "notes for the speaker in the text": (
        "is 'notes'",
        lambda nb: text(nb).metadata.slideshow.update(slide_type="notes"),
    ),
    "long cell": ("41 lines", lambda nb: code(nb).update(source="\n".join(["x = 1"] * 41))),
    "error output": ("output is an error", lambda nb: nb.cells[2].metadata.pop("tags")),
    "promised error missing": (
        "shows no error",
        lambda nb: nb.cells[2].update(outputs=[new_output("stream", text="all is well")]),
    ),
    "output of a cell not run": (
        "no execution count",
        lambda nb: code(nb).update(execution_count=None),
    ),
    "large output": (
        "300,000 at most",
        shown("stream", text="x" * 300_001),
    ),
    "large notebook": (
        "together",
        lambda nb: code(nb).update(outputs=[new_output("stream", text="x" * 290_000)] * 11),
    ),
    "home folder": (
        "local path /home/ada",
        lambda nb: code(nb).update(source="open('/home/ada/x.cu')"),
    ),
    "mac home folder": (
        "local path /Users/ada",
        written("see /Users/ada/x.cu"),
    ),
    "temporary file in a warning": (
        "local path /tmp/ipykernel_12",
        shown("stream", name="stderr", text="/tmp/ipykernel_12/3.py:1: UserWarning"),
    ),
    "path in a traceback": (
        "local path /root/x",
        lambda nb: nb.cells[2].outputs[0].update(traceback=["File /root/x/y.py:3"]),
    ),
    "no alt text": ("has no alt text", written("![](grid.svg)")),
    "no alt text in HTML": (
        "has no alt text",
        written('<img src="grid.svg">'),
    ),
    "empty alt text in HTML": (
        "has no alt text",
        written('<img src="grid.svg" alt="">'),
    ),
    "a picture that JupyterLab cannot describe": (
        "no alt text in JupyterLab",
        shown("display_data", {"image/png": "iVBOR"}),
    ),
    "no alt text in an output": (
        "has no alt text",
        shown("display_data", {"text/html": '<img src="data:image/png;base64,iVBOR">'}),
    ),
    "a broken SVG": (
        "no browser shows",
        shown("display_data", {"text/html": BROKEN_PICTURE}),
    ),
    "dead link": (
        "leads nowhere",
        written("[next](06_next.ipynb#start)"),
    ),
    "dead link in HTML": (
        "leads nowhere",
        written('<a href="06.ipynb">next</a>'),
    ),
    "dead picture": ("leads nowhere", written("![a warp](warp.svg)")),
    "a picture from the network": (
        "comes from the network",
        written("![a badge](https://example.com/badge.svg)"),
    ),
    "dead heading": (
        "no heading #Nowhere",
        written("# Here\n[there](#Nowhere)"),
    ),
    "dead attachment": (
        "no such attachment",
        written("![a](attachment:a.png)"),
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_caught(defect, tmp_path):
    said, spoil = DEFECTS[defect]
    notebook = clean_notebook()
    spoil(notebook)
    problems = found_in(notebook, tmp_path)
    assert len(problems) == 1 and said in problems[0], problems


def test_the_projects_own_folder_is_a_local_path(tmp_path):
    notebook = clean_notebook()
    code(notebook).outputs.append(new_output("stream", text=f"read {tmp_path}/data"))
    where = f"cell 1 ({code(notebook).id})"
    assert found_in(notebook, tmp_path) == [f"{where}: local path {tmp_path} in its output"]


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda text: text.rstrip("\n"), "not as nbformat writes it"),
        (lambda text: json.dumps(json.loads(text), indent=2) + "\n", "not as nbformat writes it"),
        (lambda text: text.replace("\n", "\r\n"), "not as nbformat writes it"),
        (
            lambda text: text.replace('"cell_type": "code"', '"cell_type": "prose"'),
            "not a valid notebook",
        ),
        (lambda text: text[:100], "not a valid notebook"),
        (lambda text: "", "not a valid notebook"),
        (lambda text: text.replace('"nbformat": 4', '"nbformat": 3'), "not a valid notebook"),
    ],
    ids=[
        "no last newline",
        "other indent",
        "CRLF",
        "unknown cell type",
        "truncated",
        "empty",
        "old format",
    ],
)
def test_a_file_not_as_nbformat_writes_it_is_caught(spoil, said, tmp_path):
    found_in(clean_notebook(), tmp_path)
    path = tmp_path / "notebook.ipynb"
    path.write_bytes(spoil(path.read_text(encoding="utf-8")).encode())
    assert said in hygiene.problems(path, tmp_path)[0]


@pytest.mark.parametrize(
    "tags, expected",
    [
        ([["setup"], []], "1 + 1"),
        ([[], []], None),
        ([["setup"], ["setup"]], None),
    ],
    ids=["one", "none", "two"],
)
def test_there_is_one_setup_cell(tags, expected):
    cells = [new_code_cell("1 + 1", metadata={"tags": each}) for each in tags]
    assert hygiene.setup_cell(new_notebook(cells=cells)) == expected
