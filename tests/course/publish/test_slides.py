"""Every deck in a real browser: each slide fits a screen of 1280 × 720, says something, and shows
its pictures.
"""

import base64
import io

import nbformat.v4
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from course.publish import slides

# What is wrong with the slides of the open deck, a line each. deck.js says of each slide whether it
# fits.
PROBLEMS = """() => [...document.querySelectorAll(".slides > section > section")].flatMap((slide, \
number) => {
    const seen = slide.cloneNode(true);
    seen.querySelectorAll("aside.notes").forEach((notes) => notes.remove());
    const place = `slide ${number + 1}, "${seen.textContent.trim().split("\\n")[0].slice(0, 60)}": \
`;
    const missing = [...slide.querySelectorAll("img")].filter((image) => !image.complete || \
!image.naturalWidth);
    return [
        ...(slide.dataset.fits === "true" ? [] : [place + "more than fits the screen"]),
        ...(seen.textContent.trim() || seen.querySelector("img") ? [] : [place + "empty"]),
        ...missing.map((image) => place + `a picture did not load, "${image.alt}"`),
    ];
})"""


def problems(page, file):
    """Everything wrong with a deck, opened without a network."""
    found = []
    page.context.set_offline(True)
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on(
        "request",
        lambda request: (
            found.append(f"loads {request.url}") if request.url.startswith("http") else None
        ),
    )
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready]", state="attached")
    return found + page.evaluate(PROBLEMS)


@pytest.mark.parametrize("path", slides.notebooks(), ids=lambda path: path.stem)
def test_every_slide_fits_and_is_whole(page, tmp_path, path):
    (file,) = slides.write(tmp_path, [path])
    assert problems(page, file) == [], "CONTRIBUTING.md says how much a slide takes"


def test_a_deck_is_presented_with_keys(page, tmp_path):
    """The set-up cell is on the title's slide, fragments come one by one, notes stay with the
    speaker.
    """
    (file,) = slides.write(tmp_path, [slides.ROOT / "chapters" / "05_first_kernels.ipynb"])
    assert problems(page, file) == []
    slide = page.locator("section section.present")
    assert slide.get_by_text("from utils import benchmark").is_visible()
    assert not slide.get_by_text("For the instructor.").is_visible()
    page.keyboard.press("Space")
    assert slide.get_by_role("heading", name="Two computers in one").is_visible()
    page.keyboard.press("Space")
    fragment = slide.get_by_text("Six threads, six lines.")
    assert not fragment.is_visible()
    page.keyboard.press("Space")
    fragment.wait_for(state="visible")  # it fades in


# ---- the test can fail


def a_deck(folder, *cells):
    """The deck of a notebook with a title and these cells, each a slide."""
    cells = [new_markdown_cell("# A deck"), *cells]
    for cell in cells:
        cell.metadata.setdefault("slideshow", {"slide_type": "slide"})
    path = folder / "small.ipynb"
    path.write_text(nbformat.v4.writes(new_notebook(cells=cells)), encoding="utf-8")
    (file,) = slides.write(folder / "out", [path])
    return file


def png(width, height):
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def picture(data):
    shown = new_output(
        "display_data", {"image/png": data}, metadata={"image/png": {"alt": "a plot"}}
    )
    return new_code_cell("plot()", outputs=[shown])


def lines(number, width=20, outputs=()):
    return new_code_cell("\n".join(["x" * width] * number), outputs=list(outputs))


TABLE = new_output(
    "display_data", {"text/html": "<table>" + "<tr><td>1</td></tr>" * 60 + "</table>"}
)
TEXT = new_output("stream", text="a line\n" * 60)


@pytest.mark.parametrize(
    "cell, said",
    [
        (lines(60), "more than fits"),
        (lines(40, outputs=[TABLE]), "more than fits"),
        (lines(1, width=200), "more than fits"),
        (new_markdown_cell("words and words " * 400), "more than fits"),
        (new_markdown_cell("<!-- later -->"), "empty"),
        (new_markdown_cell("![a chart](https://example.com/a.png)"), "loads https"),
        (picture("AAAA"), "did not load"),
    ],
    ids=[
        "long code",
        "long code and its output",
        "wide code",
        "much text",
        "empty",
        "from the network",
        "broken picture",
    ],
)
def test_a_bad_slide_is_caught(page, tmp_path, cell, said):
    found = problems(page, a_deck(tmp_path, cell))
    assert any(said in each for each in found), found


@pytest.mark.parametrize(
    "cell",
    [
        lines(40, outputs=[new_output("stream", text="Writing build/a.cu\n")]),
        lines(1, width=130),
        lines(20, outputs=[TABLE]),
        lines(20, outputs=[TEXT]),
        picture(png(1000, 900)),
        picture(png(3000, 100)),
        new_markdown_cell(r"$\dfrac{1}{1 - p}$"),
    ],
    ids=[
        "40 lines",
        "130 columns",
        "long table",
        "long text",
        "tall picture",
        "wide picture",
        "formula",
    ],
)
def test_a_full_slide_is_made_to_fit(page, tmp_path, cell):
    assert problems(page, a_deck(tmp_path, cell)) == []


def test_cuda_c_has_its_own_colours(tmp_path):
    deck = a_deck(
        tmp_path, new_code_cell("%%writefile build/a.cu\n__global__ void f();  // a kernel")
    ).read_text()
    assert '<span class="c1">// a kernel</span>' in deck


def test_notes_alone_do_not_make_a_slide(page, tmp_path):
    cell = new_markdown_cell("<!-- later -->", metadata={"notes": "say this"})
    found = problems(page, a_deck(tmp_path, cell))
    assert len(found) == 1 and "empty" in found[0]
