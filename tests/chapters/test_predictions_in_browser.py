"""A prediction as a learner meets it, in JupyterLab in a real browser: the saved answer is folded,
a click commits, and running the next cell unfolds what happened.
"""

from types import SimpleNamespace

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser import ROOT, jupyterlab
from tests.chapters.test_in_browser import Notebook

CHAPTER = ROOT / "chapters" / "05_first_kernels.ipynb"
QUESTION, ANSWER, LAST = "predict-hello", "hello", "hello-explain"


@pytest.fixture
def lab(tmp_path):
    """JupyterLab on the chapter's first section, with its outputs as they are saved; its prompts
    are empty, so that a new number shows that a cell has run.
    """
    notebook = nbformat.read(CHAPTER, 4)
    notebook.metadata.pop("widgets", None)
    ids = [cell.id for cell in notebook.cells]
    notebook.cells = notebook.cells[: ids.index(LAST) + 1]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
    nbformat.write(notebook, tmp_path / CHAPTER.name)
    with jupyterlab(tmp_path, CUDA_COURSE_CPU="1", PYTHONPATH=str(ROOT)) as address:
        yield address


def test_a_prediction_in_jupyterlab(page, lab, tmp_path):
    chapter = Notebook(page, SimpleNamespace(folder=tmp_path, address=lab), CHAPTER.name)
    answer = chapter.output(ANSWER)
    expect(answer.get_by_text("block 1 thread 2")).to_have_count(0)  # saved, and not in view

    for cell in ("setup", "exercises-import", QUESTION):
        chapter.run(cell)
    chapter.output(QUESTION).get_by_role("button").first.click()
    expect(chapter.output(QUESTION)).to_contain_text("You say: 2 lines")

    chapter.run(ANSWER)
    expect(answer.get_by_text("block 1 thread 2")).to_be_visible()
