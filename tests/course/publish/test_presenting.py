"""Presenting live: a chapter as slides in a real browser, its cells run, its slider moved, and all
of it in letters for a room.
"""

import shutil

import pytest
from playwright.sync_api import TimeoutError, expect

from tests.browser import ROOT, jupyterlab, keep

CHAPTER = "chapters/05_first_kernels.ipynb"
SMALLEST = 20  # pixels of a letter at 1280 × 720, as in a deck
# (the smallest letters on the slide, their text), but for what is inside pictures and formulas
LETTERS = """() => {
    const slide = document.querySelector("section.present section.present");
    const sizes = [...slide.querySelectorAll("*")]
        .filter((e) => e.checkVisibility() && !e.closest("svg, math, sup, sub, style")
            && [...e.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()))
        .map((e) => [parseFloat(getComputedStyle(e).fontSize), e.textContent.slice(0, 40)]);
    return sizes.sort((one, other) => one[0] - other[0])[0];
}"""
# The colour of the piece of the cell's code that holds the words
COLOUR = """(cell, words) => getComputedStyle(
    [...cell.querySelectorAll(".cm-line, .cm-line span")]
        .filter((e) => e.textContent.includes(words)).at(-1)
).color"""


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


def show(slides, code):
    """Bring the cell with this code to the screen. Returns the cell."""
    cell = slides.locator(".jp-CodeCell", has_text=code)
    cell.wait_for(state="attached")
    stack, slide = cell.evaluate("""cell => {
        const slide = cell.closest("section"), stack = slide.parentNode;
        return [[...stack.parentNode.children].indexOf(stack), [...stack.children].indexOf(slide)];
    }""")
    slides.evaluate("place => { location.hash = place }", f"#/slide-{stack}-{slide}")
    return cell


def run(slides, code):
    """Bring the cell with this code to the screen and run it there. Returns the cell."""
    cell = show(slides, code)
    cell.locator(".jp-InputArea-editor").click()
    slides.keyboard.press("Control+Enter")
    return cell


def run_until(slides, code, shown):
    """Run the cell with this code until something is shown: RISE may miss a key while it turns."""
    for _ in range(4):
        run(slides, code)
        try:
            return shown.wait_for(timeout=30_000)
        except TimeoutError:
            continue
    shown.wait_for(timeout=1_000)


def drag(page, handle, right):
    """Drag a slider's handle by so many pixels."""
    handle.scroll_into_view_if_needed()
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
    expect(page.get_by_text("Ask the room").first).not_to_be_visible()

    run(page, "machine()")
    expect(page.locator("section.present section.present")).to_have_attribute(
        "data-running", "First kernels"
    )  # the heading of the slide before, above a slide that has none
    arrows, number = (page.locator(each).bounding_box() for each in (".controls", ".slide-number"))
    assert number["x"] + number["width"] < arrows["x"]
    run(page, "from utils import plots")
    cell = show(page, "def draw(blocks, threads, n)")
    picture = cell.locator(".jp-OutputArea .course-picture svg")
    run_until(page, "def draw(blocks, threads, n)", picture)
    before = picture.get_attribute("aria-label")
    assert page.evaluate(LETTERS)[0] >= SMALLEST, page.evaluate(LETTERS)
    keep(page, "presenting_1_slide")
    drag(page, cell.locator(".noUi-handle").first, right=60)
    expect(cell.locator(".widget-readout").first).not_to_have_text("5", timeout=30_000)
    expect(picture).not_to_have_attribute("aria-label", before, timeout=30_000)
    keep(page, "presenting_2_slider_moved")

    code = show(page, "%%writefile build/vector_add.cu")
    keyword, plain = (code.evaluate(COLOUR, words) for words in ("__global__", "vector_add("))
    assert keyword != plain
    assert page.evaluate(LETTERS)[0] >= SMALLEST, page.evaluate(LETTERS)
    keep(page, "presenting_3_cuda_c")
