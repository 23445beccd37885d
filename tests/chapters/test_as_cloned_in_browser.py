"""A chapter as git has it: opened, run, saved, and opened again by another server, in JupyterLab in
a real browser. Its copies are made as `make lab` makes them. What is looked at in single cells is
in one notebook of pieces, which is opened once.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import expect

from tests.browser import ROOT, jupyterlab, keep, kept_if_one_fails, new_page
from tests.chapters.test_in_browser import Notebook

pytestmark = pytest.mark.nightly("by day all notebooks are run without a browser")
START = "my/course/index.ipynb"
CHAPTER = "my/chapters/05_first_kernels.ipynb"
PIECES = "pieces.ipynb"
BEFORE_IT = "setup", "map-1d"  # what its slider's cell needs
SLIDER = "widget"
QUESTION, ANSWER = "predict-hello", "hello"
NOT_RUN = "q1"  # a question further down
READ = "hello", "start-scale-guard", "check-fails", "c-kernel"  # code in two languages, an error
CHANGE_THEME = ".lm-Menu-item[data-command='apputils:change-theme']"
LEAST_CONTRAST = 4.5  # https://www.w3.org/TR/WCAG22/#contrast-minimum
FORGOTTEN = "interactive(children", "Error displaying widget", "model not found"

# The colour, and whether it is bold, of the piece of code that holds `text`, in the cell's editor
LOOK = """([cell, text]) => {
    const pieces = [...cell.querySelectorAll(".cm-line, .cm-line span")];
    const piece = pieces.filter((piece) => piece.textContent.includes(text)).at(-1);
    const style = getComputedStyle(piece);
    return [style.color, style.fontWeight];
}"""
CUDA = """%%writefile build/a.cu
// A's tile is not in Python's memory
__global__ void f(int n) { out[n] = '"'; }  // and's or's"""
SQUARE = """from course.kernels.mnist_cnn import drawing

drawing.square(lambda image: f"{(image > 0).any(0).sum()} wide, {(image > 0).any(1).sum()} high")"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder with the learner's copies, and the variables that JupyterLab needs to trust them."""
    folder = tmp_path_factory.mktemp("clone")
    variables = {
        "CUDA_COURSE_CPU": "1",
        "CUDA_COURSE_PROGRESS": str(folder / "progress.json"),
        "JUPYTER_DATA_DIR": str(folder / ".jupyter"),
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run(
        [sys.executable, "-m", "course.copies", str(folder / "my")],
        cwd=ROOT,
        env=os.environ | variables,
        check=True,
    )
    nbformat.write(notebook_of_pieces(), folder / PIECES)
    opened = (folder / CHAPTER).read_bytes()
    return SimpleNamespace(folder=folder, variables=variables, chapter=opened)


def notebook_of_pieces():
    """Cells of the chapter, which JupyterLab does not trust here, and some of our own."""
    chapter = nbformat.read(ROOT / CHAPTER[3:], 4)
    shown = new_output("display_data", {"text/markdown": "```cuda\nint x;\n```"})
    cells = [
        new_code_cell("show()", id="listing", outputs=[shown]),
        new_code_cell(CUDA, id="cu"),
        new_code_cell(SQUARE, id="square"),
        *(cell for cell in chapter.cells if cell.id in (SLIDER, *READ)),
    ]
    return new_notebook(cells=cells, metadata={"kernelspec": chapter.metadata.kernelspec})


@pytest.fixture(scope="module")
def lab(clone):
    """JupyterLab on that folder."""
    with jupyterlab(clone.folder, **clone.variables) as address:
        yield SimpleNamespace(folder=clone.folder, address=address)


@pytest.fixture(scope="module")
def pieces(browser, lab, request):
    """The notebook of pieces, open."""
    with new_page(browser) as page, kept_if_one_fails(page, request):
        yield Notebook(page, lab, PIECES)


def test_an_untrusted_slider_is_a_picture(pieces):
    expect(pieces.output(SLIDER).locator("img").first).to_be_visible()
    assert not any(words in pieces.output(SLIDER).text_content() for words in FORGOTTEN)


def test_cuda_c_looks_like_cuda_c(pieces):
    cell = pieces.cell("cu")
    cell.locator(".cm-line span", has_text="__global__").wait_for()

    def look(text):
        return pieces.page.evaluate(LOOK, [cell.element_handle(), text])

    comment, keyword, plain = look("A's tile"), look("__global__"), look("out")
    assert len({tuple(each) for each in (comment, keyword, plain)}) == 3
    assert look("not in Python's") == look("and's or's") == comment, "no word of Python's in it"
    assert look("""'"'""") not in (comment, keyword, plain), "a character"
    assert look("};"[:1]) != look("""'"'"""), "what follows it is none"


def test_a_listing_has_the_letters_of_code(pieces):
    cell = pieces.cell("listing")
    size = "part => getComputedStyle(part).fontSize"
    shown = cell.locator(".jp-RenderedMarkdown pre code")
    assert shown.evaluate(size) == cell.locator(".cm-content").evaluate(size)
    left = shown.bounding_box()["x"] - cell.locator(".jp-OutputArea-output").bounding_box()["x"]
    assert left < 16  # no indent of its own


# Each letter's colour of a cell and its contrast with what it stands on, as WCAG counts it
CONTRASTS = """(cell) => {
    const look = (node) => getComputedStyle(node);
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => colour.slice(0, 3).reduce((sum, each, at) => {
        const part = each / 255;
        const linear = part > 0.04045 ? ((part + 0.055) / 1.055) ** 2.4 : part / 12.92;
        return sum + linear * [0.2126, 0.7152, 0.0722][at];
    }, 0.05);
    const ground = (node) => {
        if (!node) return [255, 255, 255];
        const [red, green, blue, share = 1] = numbers(look(node).backgroundColor);
        const below = share < 1 ? ground(node.parentElement) : [0, 0, 0];
        return [red, green, blue].map((each, at) => share * each + (1 - share) * below[at]);
    };
    const places = ".cm-line span, .jp-InputPrompt, .jp-OutputPrompt, .jp-RenderedText pre span";
    const letters = [...cell.querySelectorAll(places)].filter((each) => each.textContent.trim());
    return letters.map((each) => {
        const [less, more] = [numbers(look(each).color), ground(each)].map(light)
            .sort((a, b) => a - b);
        return [each.textContent, look(each).opacity === "1" ? more / less : 0];
    });
}"""


def test_code_and_errors_can_be_read(pieces):
    """All letters have the contrast that WCAG asks for, in either theme."""
    page = pieces.page
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.locator(".lm-MenuBar-item", has_text="Settings").click()
        page.locator(".lm-Menu-item[data-type='submenu']", has_text="Theme").first.hover()
        page.locator(CHANGE_THEME).get_by_text(theme, exact=True).click()
        page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
        for cell in READ:
            pieces.cell(cell).locator(".cm-line span").first.wait_for()
            contrasts = pieces.cell(cell).evaluate(CONTRASTS)
            assert contrasts and [each for each in contrasts if each[1] < LEAST_CONTRAST] == []


# Shows a white picture with a blue bar, in the dark; its kind, and whether it is still white
DARK = """async (output) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 90, height: 90 });
    const pen = canvas.getContext("2d");
    pen.fillStyle = "white";
    pen.fillRect(0, 0, 90, 90);
    pen.fillStyle = "#0072B2";
    pen.fillRect(10, 20, 60, 20);
    document.body.dataset.jpThemeLight = "false";
    const image = Object.assign(document.createElement("img"), { src: canvas.toDataURL() });
    output.append(image);
    for (let n = 0; n < 3000 && !image.dataset.kind; n++) {
        await new Promise((go) => setTimeout(go, 100));
    }
    const seen = [image.dataset.kind, getComputedStyle(image).filter.startsWith("invert")];
    image.remove();
    document.body.dataset.jpThemeLight = "true";
    return seen;
}"""


def test_in_a_dark_theme_white_charts_are_dark(pieces):
    output = pieces.output(SLIDER).locator(".jp-OutputArea-output").first
    assert output.evaluate(DARK) == ["drawing", True]


# The red of a picture's first pixel in a theme, its ground
GROUND = """async (image, light) => {
    document.body.dataset.jpThemeLight = light;
    await new Promise(requestAnimationFrame);
    await image.decode();
    const pen = document.createElement("canvas").getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(1, 1, 1, 1).data[0];
}"""


def test_an_untrusted_picture_follows_the_theme(pieces):
    picture = pieces.output(SLIDER).locator("img").first
    expect(picture).to_be_visible()
    grounds = [picture.evaluate(GROUND, light) for light in ("true", "false", "true")]
    assert grounds == [255, 17, 255]


def test_what_the_mouse_draws_is_read(pieces):
    """The square to draw in: what is drawn reaches Python, and Python's answer comes back."""
    pieces.run("square")
    page, cell = pieces.page, pieces.cell("square")
    canvas = cell.locator("canvas[aria-label='Draw a digit here']")
    answer = cell.locator("canvas[aria-label='Draw a digit here'] ~ div")
    expect(answer).to_contain_text("Draw a digit")

    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 140, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 140, box["y"] + 240, steps=10)  # a one: a tall stroke
    page.mouse.up()
    expect(answer).to_contain_text("20 high")
    keep(page, "drawing")
    assert int(answer.text_content().split()[0]) < 8

    cell.get_by_role("button", name="Clear", exact=True).click()
    expect(answer).to_have_text("")

    canvas.focus()
    for key in ["ArrowUp"] * 8 + ["Space"] + ["ArrowDown"] * 16 + ["Space"]:  # a one again
        page.keyboard.press(key)
    expect(answer).to_contain_text("20 high")
    assert int(answer.text_content().split()[0]) < 8


@pytest.fixture(scope="module")
def chapter(browser, lab, request):
    """The chapter, opened by the link on the start page."""
    with new_page(browser) as page, kept_if_one_fails(page, request):
        start = Notebook(page, lab, START)
        start.cell("way-kernels").get_by_role("link", name="First kernels").click()
        page.wait_for_url(f"**/{CHAPTER}*")
        chapter = Notebook(page, lab, CHAPTER)
        chapter.output(SLIDER).get_by_role("slider").first.wait_for()
        yield chapter


def picture_of(chapter):
    """The picture for six blocks, however it is drawn."""
    words = "6 blocks"
    output = chapter.output(SLIDER)
    return output.locator(f"img[alt*='{words}']:visible, svg[aria-label*='{words}']:visible")


def test_the_start_page_stands_beside_the_chapters(chapter):
    files = chapter.page.locator(".jp-DirListing-itemName")
    expect(files.get_by_text(Path(CHAPTER).name)).to_be_visible()


def test_the_toolbar_offers_to_present(chapter):
    button = chapter.panel.locator(".jp-NotebookPanel-toolbar [title*='Reveal Slideshow']")
    expect(button).to_be_visible()


def test_to_open_changes_nothing(chapter, clone):
    """Sliders are there and have names, a long line wraps."""
    blocks = chapter.output(SLIDER).get_by_role("slider", name="blocks")
    expect(blocks).to_have_attribute("aria-valuenow", "5.0")
    fits = "code => code.scrollWidth <= code.clientWidth"
    assert chapter.cell("setup").locator(".cm-scroller").evaluate(fits)
    expect(chapter.page.locator(".jp-mod-dirty")).to_have_count(0)
    assert (clone.folder / CHAPTER).read_bytes() == clone.chapter
    keep(chapter.page, "as_cloned")


def test_a_prediction(chapter):
    """The saved answer is folded, a click commits, and to run the cell unfolds what happened."""
    answer = chapter.output(ANSWER)
    expect(answer.get_by_text("block 1 thread 2")).to_have_count(0)
    for cell in ("setup", "exercises-import", QUESTION):
        chapter.run(cell)
    chapter.output(QUESTION).get_by_role("button").first.click()
    expect(chapter.output(QUESTION)).to_contain_text("You say: 2 lines")
    chapter.run(ANSWER)
    expect(answer.get_by_text("block 1 thread 2")).to_be_visible()


def test_saved_and_opened_again(page, chapter, clone):
    """A run of some cells and a save, and another server shows sliders as they were left."""
    blocks = chapter.output(SLIDER).get_by_role("slider", name="blocks")
    for cell in (*BEFORE_IT, SLIDER):
        chapter.run(cell)
    blocks.focus()
    chapter.page.keyboard.press("ArrowRight")
    expect(blocks).to_have_attribute("aria-valuenow", "6.0")
    expect(picture_of(chapter)).to_have_count(1)
    chapter.save()

    with jupyterlab(clone.folder, **clone.variables) as address:
        again = Notebook(page, SimpleNamespace(folder=clone.folder, address=address), CHAPTER)
        blocks = again.output(SLIDER).get_by_role("slider", name="blocks")
        expect(blocks).to_have_attribute("aria-valuenow", "6.0")
        expect(picture_of(again)).to_have_count(1)
        expect(again.output(NOT_RUN).get_by_role("button", name="Check")).to_be_visible()
        for cell in (SLIDER, NOT_RUN):
            text = again.output(cell).text_content()
            assert not any(words in text for words in FORGOTTEN)
        keep(page, "opened_again")
