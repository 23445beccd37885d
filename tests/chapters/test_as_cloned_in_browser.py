"""A chapter as git has it: opened, run, saved, and opened again by another server, in JupyterLab in
a real browser. Its copies are made as `make lab` makes them.
"""

import os
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import expect

from course.chapters import CHAPTERS
from tests.browser import ROOT, jupyterlab, keep
from tests.chapters.test_in_browser import Notebook

CHAPTER = "my/chapters/05_first_kernels.ipynb"
BEFORE_IT = "setup", "map-1d"  # what its slider's cell needs
SLIDER = "widget"
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
    chapter = nbformat.read(ROOT / CHAPTER[3:], 4)
    slider = next(cell for cell in chapter.cells if cell.id == SLIDER)
    kernel = {"kernelspec": chapter.metadata.kernelspec}
    shown = new_output("display_data", {"text/markdown": "```cuda\nint x;\n```"})
    listing = new_code_cell("show()", id="listing", outputs=[shown])
    colours = new_code_cell(CUDA, id="cu")
    for name, cell in {"untrusted": slider, "colours": colours, "listing": listing}.items():
        nbformat.write(new_notebook(cells=[cell], metadata=kernel), folder / f"{name}.ipynb")
    return SimpleNamespace(folder=folder, variables=variables)


@pytest.fixture(scope="module")
def lab(clone):
    """JupyterLab on that folder."""
    with jupyterlab(clone.folder, **clone.variables) as address:
        yield SimpleNamespace(folder=clone.folder, address=address)


def test_the_start_page_stands_beside_the_chapters(page, lab):
    start = Notebook(page, lab, "my/course/index.ipynb")
    files = page.locator(".jp-DirListing-itemName")
    expect(files.get_by_text(f"{CHAPTERS[0].name}.ipynb")).to_be_visible()
    start.cell("open-in-colab").get_by_role("link", name=CHAPTERS[0].title).click()
    page.locator(".lm-TabBar-tab.jp-mod-current", has_text=CHAPTERS[0].name).first.wait_for()


def test_an_untrusted_slider_is_a_picture(page, lab):
    notebook = Notebook(page, lab, "untrusted.ipynb")
    expect(notebook.output(SLIDER).locator("img").first).to_be_visible()
    assert not any(words in notebook.output(SLIDER).text_content() for words in FORGOTTEN)


def test_cuda_c_looks_like_cuda_c(page, lab):
    cell = Notebook(page, lab, "colours.ipynb").cell("cu")
    cell.locator(".cm-line span", has_text="__global__").wait_for()

    def look(text):
        return page.evaluate(LOOK, [cell.element_handle(), text])

    comment, keyword, plain = look("A's tile"), look("__global__"), look("out")
    assert len({tuple(each) for each in (comment, keyword, plain)}) == 3
    assert look("not in Python's") == look("and's or's") == comment, "no word of Python's in it"
    assert look("""'"'""") not in (comment, keyword, plain), "a character"
    assert look("};"[:1]) != look("""'"'"""), "what follows it is none"


# Each letter's colour of a cell and its contrast with what it stands on, as WCAG counts it
def test_a_listing_has_the_letters_of_code(page, lab):
    cell = Notebook(page, lab, "listing.ipynb").cell("listing")
    size = "part => getComputedStyle(part).fontSize"
    shown = cell.locator(".jp-RenderedMarkdown pre code")
    assert shown.evaluate(size) == cell.locator(".cm-content").evaluate(size)
    left = shown.bounding_box()["x"] - cell.locator(".jp-OutputArea-output").bounding_box()["x"]
    assert left < 16  # no indent of its own


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


def test_code_and_errors_can_be_read(page, lab):
    """All letters have the contrast that WCAG asks for, in either theme."""
    chapter = Notebook(page, lab, CHAPTER)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.locator(".lm-MenuBar-item", has_text="Settings").click()
        page.locator(".lm-Menu-item[data-type='submenu']", has_text="Theme").first.hover()
        page.locator(CHANGE_THEME).get_by_text(theme, exact=True).click()
        page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
        for cell in READ:
            chapter.cell(cell).locator(".cm-line span").first.wait_for()
            contrasts = chapter.cell(cell).evaluate(CONTRASTS)
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
    return [image.dataset.kind, getComputedStyle(image).filter.startsWith("invert")];
}"""


def test_in_a_dark_theme_white_charts_are_dark(page, lab):
    notebook = Notebook(page, lab, "untrusted.ipynb")
    output = notebook.output(SLIDER).locator(".jp-OutputArea-output").first
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


def test_an_untrusted_picture_follows_the_theme(page, lab):
    picture = Notebook(page, lab, "untrusted.ipynb").output(SLIDER).locator("img").first
    expect(picture).to_be_visible()
    grounds = [picture.evaluate(GROUND, light) for light in ("true", "false", "true")]
    assert grounds == [255, 17, 255]


def picture_of(chapter):
    """The picture for six blocks, however it is drawn."""
    words = "6 blocks"
    output = chapter.output(SLIDER)
    return output.locator(f"img[alt*='{words}']:visible, svg[aria-label*='{words}']:visible")


def test_opened_saved_and_opened_again(page, clone, lab):
    """Opening changes nothing, sliders are there and have names; so it is after a run of some
    cells and a save, for another server.
    """
    before = (clone.folder / CHAPTER).read_bytes()
    chapter = Notebook(page, lab, CHAPTER)
    blocks = chapter.output(SLIDER).get_by_role("slider", name="blocks")
    expect(blocks).to_have_attribute("aria-valuenow", "5.0")
    assert (
        chapter.cell("setup")
        .locator(".cm-scroller")
        .evaluate("code => code.scrollWidth <= code.clientWidth")
    ), "a long line wraps"
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    assert (clone.folder / CHAPTER).read_bytes() == before
    keep(page, "as_cloned")

    for cell in (*BEFORE_IT, SLIDER):
        chapter.cell(cell).locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
    expect(chapter.cell(SLIDER).locator(".jp-InputPrompt")).to_have_text("[3]:")
    blocks.focus()
    page.keyboard.press("ArrowRight")
    expect(blocks).to_have_attribute("aria-valuenow", "6.0")
    expect(picture_of(chapter)).to_have_count(1)
    chapter.save()
    page.goto("about:blank")

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
