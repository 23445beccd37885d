"""Presenting live: chapter 5 as slides in a real browser, its cells run, its slider moved."""

import shutil

import pytest
from playwright.sync_api import expect

from tests.browser import ROOT, jupyterlab, keep

CHAPTER = "chapters/05_first_kernels.ipynb"


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    """The address of a JupyterLab that has a copy of the chapter."""
    folder = tmp_path_factory.mktemp("presented")
    (folder / "chapters").mkdir()
    for name in (CHAPTER, "chapters/rise.css"):
        shutil.copy(ROOT / name, folder / name)
    with jupyterlab(
        folder, PYTHONPATH=str(ROOT), CUDA_COURSE_PROGRESS=str(folder / "progress.json")
    ) as address:
        yield address


def run(slides, code):
    """Bring the cell with this code to the screen and run it there. Returns the cell."""
    cell = slides.locator(".jp-CodeCell", has_text=code)
    cell.wait_for(state="attached")
    stack, slide = cell.evaluate("""cell => {
        const slide = cell.closest("section"), stack = slide.parentNode;
        return [[...stack.parentNode.children].indexOf(stack), [...stack.children].indexOf(slide)];
    }""")
    slides.evaluate("place => { location.hash = place }", f"#/slide-{stack}-{slide}")
    cell.locator(".jp-InputArea-editor").click()
    slides.keyboard.press("Control+Enter")
    return cell


def drag(page, handle, right):
    """Drag a slider's handle by so many pixels."""
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y, steps=4)
    page.mouse.up()


def test_a_slider_works_on_a_slide(page, lab):
    page.goto(lab.replace("/lab?", f"/lab/tree/{CHAPTER}?reset&"))
    button = page.locator(".jp-NotebookPanel-toolbar [title*='Reveal Slideshow']")
    button.wait_for(timeout=60_000)  # JupyterLab's toolbar offers it
    page.goto(lab.replace("/lab?", f"/rise/{CHAPTER}?"))
    page.locator("section.present .jp-Cell").first.wait_for(timeout=60_000)
    expect(page.get_by_text("For the instructor.").first).not_to_be_visible()

    run(page, "machine()")
    run(page, "from utils import plots")
    cell = run(page, "def draw(blocks, threads, n)")
    picture = cell.locator(".jp-OutputArea img")
    picture.wait_for(timeout=60_000)
    before = picture.get_attribute("src")
    keep(page, "presenting_1_slide")
    drag(page, cell.locator(".noUi-handle").first, right=60)
    expect(cell.locator(".widget-readout").first).not_to_have_text("5", timeout=30_000)
    expect(picture).not_to_have_attribute("src", before, timeout=30_000)
    keep(page, "presenting_2_slider_moved")
