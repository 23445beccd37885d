"""Presenting live: a chapter as slides in a real browser, its cells run, its slider moved, and all
of it in letters for a room.
"""

import contextlib
import re
import shutil

import pytest
from playwright.sync_api import expect

from tests.browser import ROOT, jupyterlab, keep
from tests.course.publish.test_slides import contrast

CHAPTER = "chapters/05_first_kernels.ipynb"
TRIES = 6  # of a key, or a drag
LOOKS = 200  # at a slide, until it is there and prepared
HALF_A_SCREEN = 360  # pixels
CODE_GREY = "f5f5f5"  # behind code, in JupyterLab's light theme
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
# Turn to a slide, if it is not there. reveal.js, late with the slide before, may write that one's
# address over ours: so it is asked again until the slide has come.
TURN = """([x, y]) => {
    const stack = document.querySelectorAll(".reveal .slides > section")[x];
    const there = stack.children[y].matches("section.present section.present");
    if (there) return true;
    history.replaceState(null, "", location.pathname + location.search);
    location.hash = `#/slide-${x}-${y}`;
    return false;
}"""
# Every slide in turn, as its place and what a room would see wrong with it. A busy computer needs a
# while until a slide is there and prepared.
WALK = """async (smallest) => {
    const turn = TURN;
    const look = async (wanted) => {
        await new Promise((done) => setTimeout(done, 30));
        const slide = document.querySelector("section.present section.present");
        slide.querySelectorAll(".fragment").forEach((each) => each.classList.add("visible"));
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const shown = (name) => [...slide.querySelectorAll(name)]
            .filter((each) => each.checkVisibility()).length;
        const texts = [...slide.querySelectorAll("*")]
            .filter((e) => e.checkVisibility() && !e.closest("svg, math, sup, sub, style")
                && [...e.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim()));
        const small = texts.map((e) => parseFloat(getComputedStyle(e).fontSize))
            .filter((size) => size < smallest).length;
        const ends = (editor) => {  // how far its last line's letters reach below its frame
            const last = document.createRange();
            last.selectNodeContents(editor.querySelector(".cm-line:last-child"));
            return last.getBoundingClientRect().bottom - editor.getBoundingClientRect().bottom;
        };
        const editors = [...slide.querySelectorAll(".cm-editor")]
            .filter((each) => each.checkVisibility());
        const wide = texts.filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
        return {
            elsewhere: slide !== wanted, small, wide: wide.length,
            cut: editors.filter((editor) => ends(editor) > 0.3).length,
            headless: !slide.querySelector("h1, h2, h3, h4") && !slide.dataset.running,
            folded: shown(".jp-showHiddenCellsButton") + shown(".jp-PlaceholderText"),
            prompts: shown(".jp-InputPrompt, .jp-OutputPrompt"),
            calls: shown(".course-no-input .jp-Cell-inputWrapper"),
            below: slide.scrollHeight - Math.min(slide.clientHeight, innerHeight),
            larger: slide.style.getPropertyValue("--course-larger"),
        };
    };
    const stacks = [...document.querySelectorAll(".reveal .slides > section")];
    const seen = [];
    for (const [x, stack] of stacks.entries()) {
        for (const [y, wanted] of [...stack.children].entries()) {
            let all, wrong, looks = 0;
            do {
                turn([x, y]);
                all = await look(wanted);
                const { below, larger, ...faults } = all;
                wrong = Object.values(faults).some(Boolean);
            } while (wrong && ++looks < LOOKS);
            seen.push({ place: `${x}-${y}`, ...all });
        }
    }
    return seen;
}"""
# The colour of the piece of the cell's code that holds the words
COLOUR = """(cell, words) => getComputedStyle(
    [...cell.querySelectorAll(".cm-line, .cm-line span")]
        .filter((e) => e.textContent.includes(words)).at(-1)
).color"""


# Makes the slide longer than the screen, with nothing on it that waits to be shown
LONGER = """() => {
    const slide = document.querySelector("section.present section.present");
    slide.querySelectorAll(".fragment").forEach((each) => each.classList.add("visible"));
    slide.style.overflowY = "auto";
    slide.append(Object.assign(document.createElement("div"), { style: "height: 2000px" }));
}"""
SCROLLED = """() => {
    const slide = document.querySelector("section.present section.present");
    return [slide.scrollTop, slide.scrollHeight - slide.clientHeight - slide.scrollTop];
}"""


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
    place = cell.evaluate("""cell => {
        const slide = cell.closest("section"), stack = slide.parentNode;
        return [[...stack.parentNode.children].indexOf(stack), [...stack.children].indexOf(slide)];
    }""")
    slides.wait_for_function(TURN, arg=place, polling=200)
    return cell


def run(slides, code):
    """Bring the cell with this code to the screen, run it there and wait until it has run.

    RISE may miss a key while it turns: as long as the cell's prompt stays, the key comes again.
    Returns the cell.
    """
    cell = show(slides, code)
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.text_content()
    for _ in range(TRIES):
        cell.locator(".jp-InputArea-editor").click()
        slides.keyboard.press("Control+Enter")
        with contextlib.suppress(AssertionError):
            expect(prompt).not_to_have_text(before, timeout=5_000)
            break
    expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=200_000)
    return cell


def drag(page, slider, right):
    """Drag a slider's handle by so many pixels; again, if the slide moved away below the mouse."""
    handle, readout = slider.locator(".noUi-handle").first, slider.locator(".widget-readout").first
    before = readout.text_content()
    for _ in range(TRIES):
        handle.scroll_into_view_if_needed()
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + right, y, steps=4)
        page.mouse.up()
        with contextlib.suppress(AssertionError):
            expect(readout).not_to_have_text(before, timeout=5_000)
            return
    raise AssertionError(f"the slider still says {before}")


def look_at_every_slide(page):
    """Every slide, as saved, is for a room: nothing small, cut, folded or without a heading."""
    page.locator(".jp-OutputPlaceholder").first.wait_for(state="attached")
    page.wait_for_function("document.querySelectorAll('.course-no-input').length > 0")
    walk = WALK.replace("TURN", TURN).replace("LOOKS", str(LOOKS))
    slides = page.evaluate(walk, SMALLEST)
    assert len(slides) > 40
    wrong = "elsewhere", "small", "wide", "cut", "headless", "folded", "prompts", "calls"
    assert [slide for slide in slides if any(slide[name] for name in wrong)] == []
    long = {slide["place"]: slide["below"] for slide in slides if slide["below"] > 2}  # they scroll
    assert len(long) < 0.2 * len(slides), long
    assert max(long.values(), default=0) < HALF_A_SCREEN, long
    larger = [slide["place"] for slide in slides if slide["larger"]]  # there was room left
    assert len(larger) > 0.3 * len(slides) and not long.keys() & set(larger)


def can_be_read(page):
    """Links and code, on white or on the grey behind code."""
    letters = ".reveal .jp-RenderedMarkdown a, .reveal .cm-line span"
    colours = page.locator(letters).evaluate_all(
        "letters => [...new Set(letters.map((each) => getComputedStyle(each).color))]"
    )
    numbers = [map(int, re.findall(r"\d+", colour)[:3]) for colour in colours]
    ratios = [contrast(bytes(each).hex(), CODE_GREY) for each in numbers]
    return len(ratios) > 5 and min(ratios) >= 4.5


@pytest.mark.nightly("by day the same chapter is looked at as a deck, without JupyterLab")
def test_slides_are_for_a_room_and_a_slider_works(page, lab):
    page.goto(lab.replace("/lab?", f"/rise/{CHAPTER}?"))
    page.locator("section.present .jp-Cell").first.wait_for()
    expect(page.get_by_text("Ask the room").first).not_to_be_visible()
    look_at_every_slide(page)
    assert can_be_read(page)
    outputs = page.locator(".reveal .jp-OutputArea-output pre")
    assert outputs.first.evaluate("pre => getComputedStyle(pre).wordBreak") == "normal"

    run(page, "machine()")
    expect(page.locator("section.present section.present")).to_have_attribute(
        "data-running", "First kernels"
    )  # the heading of the slide before, above a slide that has none
    arrows, number = (page.locator(each).bounding_box() for each in (".controls", ".slide-number"))
    assert number["x"] + number["width"] < arrows["x"]
    run(page, "from utils import plots")
    cell = run(page, "def draw(blocks, threads, n)")
    picture = cell.locator(".jp-OutputArea .course-picture svg")
    before = picture.get_attribute("aria-label")
    assert page.evaluate(LETTERS)[0] >= SMALLEST, page.evaluate(LETTERS)
    keep(page, "presenting_1_slide")
    expect(cell.locator(".widget-readout").first).to_have_text("5")
    drag(page, cell, right=60)
    expect(picture).not_to_have_attribute("aria-label", before)
    keep(page, "presenting_2_slider_moved")

    code = show(page, "%%writefile build/vector_add.cu")
    keyword, plain = (code.evaluate(COLOUR, words) for words in ("__global__", "vector_add("))
    assert keyword != plain
    assert page.evaluate(LETTERS)[0] >= SMALLEST, page.evaluate(LETTERS)
    keep(page, "presenting_3_cuda_c")

    page.evaluate(LONGER)
    here = page.evaluate("location.hash")
    page.mouse.click(5, 300)  # no longer in the code
    page.keyboard.press("Escape")
    for _ in range(20):  # what is below the screen comes before the next slide
        page.keyboard.press("PageDown")
        if page.evaluate(SCROLLED)[1] < 2:
            break
        assert page.evaluate("location.hash") == here
    top, left = page.evaluate(SCROLLED)
    assert (top > 100, left < 2) == (True, True)
    page.keyboard.press("PageUp")
    assert page.evaluate(SCROLLED)[0] < top
