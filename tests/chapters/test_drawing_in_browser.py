"""The square to draw in, with a real mouse: what is drawn in JupyterLab reaches Python, and
Python's answer comes back.
"""

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser import ROOT, jupyterlab, keep

CELL = """
from course.kernels.mnist_cnn import drawing

drawing.square(lambda image: f"{(image > 0).any(0).sum()} wide, {(image > 0).any(1).sum()} high")
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawing")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.strip())])
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, folder / "square.ipynb")
    with jupyterlab(folder, PYTHONPATH=str(ROOT)) as address:
        yield address


def test_what_the_mouse_draws_is_read(page, lab):
    page.goto(lab.replace("/lab?", "/lab/tree/square.ipynb?reset&"))
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
    page.locator(".jp-Notebook-cell .cm-content").click()
    page.keyboard.press("Shift+Enter")
    canvas = page.locator("canvas[aria-label='Draw a digit here']")
    canvas.wait_for()
    answer = page.locator("canvas[aria-label='Draw a digit here'] ~ div")
    expect(answer).to_contain_text("Draw a digit")

    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 140, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 140, box["y"] + 240, steps=10)  # a one: a tall stroke
    page.mouse.up()
    expect(answer).to_contain_text("20 high")
    keep(page, "drawing")
    wide = int(answer.text_content().split()[0])
    assert wide < 8

    page.get_by_role("button", name="Clear", exact=True).click()
    expect(answer).to_have_text("")

    canvas.focus()
    for key in ["ArrowUp"] * 8 + ["Space"] + ["ArrowDown"] * 16 + ["Space"]:  # a one again
        page.keyboard.press(key)
    expect(answer).to_contain_text("20 high")
    assert int(answer.text_content().split()[0]) < 8
