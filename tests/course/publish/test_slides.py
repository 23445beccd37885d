"""Every deck in a real browser: each slide fits a screen of 1280 × 720, has a heading, letters for
a room and its pictures, and says something.
"""

import base64
import io
import re

import nbformat
import nbformat.v4
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from pygments.styles import get_style_by_name
from pygments.token import Whitespace

from course.publish import slides
from utils.plots import svg
from utils.plots.picture import luminance

# What is wrong with the slides of the open deck, a line each. Formulas' indices and what is inside
# pictures may be smaller.
PROBLEMS = """(smallest) => {
    document.body.classList.add("measuring");
    const slides = [...document.querySelectorAll(".slides > section > section")];
    const found = slides.flatMap((slide, n) => {
        const seen = slide.cloneNode(true);
        seen.querySelectorAll("aside.notes, .running").forEach((each) => each.remove());
        const words = seen.textContent.trim();
        const place = `slide ${n + 1}, "${words.split("\\n")[0].slice(0, 60)}": `;
        const all = [...slide.querySelectorAll("*")];
        const missing = all.filter((e) => e.matches("img") && (!e.complete || !e.naturalWidth));
        const texts = all.filter((e) => !e.closest("svg, math, sup, sub, style, aside, script")
            && [...e.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
        const small = texts.filter((e) => parseFloat(getComputedStyle(e).fontSize) < smallest);
        const fits = slide.scrollHeight <= 720 && slide.scrollWidth <= 1280;
        return [
            ...(slide.dataset.fits === "true" && fits ? [] : [place + "more than fits the screen"]),
            ...(words || seen.querySelector("img, svg") ? [] : [place + "empty"]),
            ...(slide.querySelector("h1, h2, h3, h4") ? [] : [place + "no heading"]),
            ...(small.length ? [place + `small letters, "${small[0].textContent}"`] : []),
            ...missing.map((image) => place + `a picture did not load, "${image.alt}"`),
        ];
    });
    document.body.classList.remove("measuring");
    return found;
}"""
SMALLEST = 20  # pixels of a letter, on a screen of 1280 × 720: what the last row of a room can read
# Pixels of a picture's letters
LETTERS = "text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a"


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
    return found + page.evaluate(PROBLEMS, SMALLEST)


BY_DAY = "first_kernels"
ANOTHER_DECK = pytest.mark.nightly("by day one deck is looked at, by make chapter the chapter's")
DECKS = [
    pytest.param(path, marks=[] if path.stem.endswith(BY_DAY) else [ANOTHER_DECK])
    for path in slides.notebooks()
]


@pytest.mark.parametrize("path", DECKS)
def test_every_slide_fits_and_is_whole(page, tmp_path, path):
    (file,) = slides.write(tmp_path, [path])
    assert problems(page, file) == [], "CONTRIBUTING.md says how much a slide takes"
    shown = page.locator(".reveal .line").evaluate_all(
        "lines => lines.map((line) => line.textContent.trimEnd())"
    )
    assert code_of(path) - set(shown) == set(), "lines of code that no slide shows as they are"


def code_of(path):
    """The lines of code that a notebook's deck must show."""
    whole = slides.for_a_room(nbformat.read(path, 4))
    cells = [cell for cell in whole.cells if cell.cell_type == "code"]
    return {
        line.rstrip()
        for cell in cells
        for line in cell.source.splitlines()
        if line.strip() and not line.startswith("# exercises.") and is_shown(cell.metadata)
    }


def is_shown(metadata):
    """Whether a cell with this metadata has its code on a slide."""
    kind = metadata.get("slideshow", {}).get("slide_type")
    return kind not in ("skip", "notes") and "remove-input" not in metadata.get("tags", [])


def test_code_can_be_read_from_the_last_row():
    """Every colour of code has the contrast that WCAG asks for, on the grey behind code."""
    style = get_style_by_name(slides.CONFIG["CSSHTMLHeaderPreprocessor"]["style"])
    (behind,) = re.findall(
        r"\.code pre.*?background: #(\w{6})", (slides.OURS / "deck.css").read_text(), re.S
    )
    for token, look in style:
        if look["color"] and token not in Whitespace:
            assert contrast(look["color"], behind) >= 4.5, token


def contrast(one, other):
    """WCAG's contrast of two colours, "rrggbb" each."""
    less, more = sorted(luminance(f"#{each}") for each in (one, other))
    return (more + 0.05) / (less + 0.05)


def test_a_deck_is_presented_with_keys(page, tmp_path):
    """The title stands alone, fragments come one by one, notes stay with the speaker, the slide's
    number is nowhere near the arrows, and axe-core finds nothing that keeps anybody out.
    """
    (file,) = slides.write(tmp_path, [slides.ROOT / "chapters" / "05_first_kernels.ipynb"])
    assert problems(page, file) == []
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert [problem["id"] for problem in found.response["violations"]] == []
    slide = page.locator("section section.present")
    assert slide.get_by_role("heading", name="First kernels").is_visible()
    assert slide.locator("pre").count() == 0
    assert not page.get_by_text("Ask the room").first.is_visible()
    number, arrows = (page.locator(each).bounding_box() for each in (".slide-number", ".controls"))
    assert number["x"] + number["width"] < arrows["x"]
    for _ in range(20):
        page.keyboard.press("Space")
        fragment = slide.locator(".fragment.visible").first
        if fragment.count():
            break
    fragment.wait_for(state="visible")  # it fades in
    page.keyboard.press("Shift+Space")
    assert slide.locator(".fragment.visible").count() == 0


def test_long_code_is_stepped_through(page, tmp_path):
    """Two functions: first both, then each in focus."""
    code = "\n\n".join("\n".join([f"def {name}():", *["    pass"] * 6]) for name in "fg")
    assert problems(page, a_deck(tmp_path, new_code_cell(code))) == []
    page.keyboard.press("ArrowRight")
    dim = page.locator(".line.dim")
    for expected in (0, 8, 7):  # the empty line belongs to what follows it
        assert dim.count() == expected
        page.keyboard.press("Space")


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


def html(text):
    return new_code_cell("show()", outputs=[new_output("display_data", {"text/html": text})])


@pytest.mark.parametrize(
    "cell, said",
    [
        (html("<p style='height: 900px'>tall</p>"), "more than fits"),
        (html("<div style='width: 2000px'>wide</div>"), "more than fits"),
        (new_markdown_cell("words and words " * 400), "more than fits"),
        (new_markdown_cell("<!-- later -->"), "empty"),
        (new_markdown_cell("![a chart](https://example.com/a.png)"), "loads https"),
        (picture("AAAA"), "did not load"),
    ],
    ids=["tall", "wide", "much text", "empty", "from the network", "broken picture"],
)
def test_a_bad_slide_is_caught(page, tmp_path, cell, said):
    found = problems(page, a_deck(tmp_path, cell))
    assert any(said in each for each in found), found


@pytest.mark.parametrize(
    "right, wrong, said",
    [
        ("const SMALLEST = 20", "const SMALLEST = 12", "small letters"),
        ("if (heading) this.body", "if (false) this.body", "no heading"),
        ("const ROOM = 676", "const ROOM = 1676", "more than fits"),
    ],
)
def test_a_script_that_makes_slides_badly_is_caught(page, tmp_path, right, wrong, said):
    small = html("<div style='font-size: 12px'>" + "<div>a line</div>" * 60 + "</div>")
    file = a_deck(tmp_path, new_markdown_cell("## One"), small)
    deck = file.read_text(encoding="utf-8")
    assert deck.count(right) == 1
    file.write_text(deck.replace(right, wrong), encoding="utf-8")
    found = problems(page, file)
    assert any(said in each for each in found), found


@pytest.mark.parametrize(
    "cell",
    [
        lines(60),
        lines(1, width=200),
        lines(40, outputs=[new_output("stream", text="Writing build/a.cu\n")]),
        lines(1, width=130),
        lines(20, outputs=[TABLE]),
        lines(20, outputs=[TEXT]),
        picture(png(1000, 900)),
        picture(png(3000, 100)),
        new_markdown_cell(r"$\dfrac{1}{1 - p}$"),
    ],
    ids=[
        "60 lines",
        "200 columns",
        "40 lines and what %%writefile says",
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


def test_long_listings_go_on_line_by_line(page, tmp_path):
    code = [f"int line_{number};" for number in range(60)]
    listing = {"text/markdown": "\n".join(["```cuda", *code, "```"])}
    cell = new_code_cell("listing", outputs=[new_output("display_data", listing)])
    assert problems(page, a_deck(tmp_path, cell)) == []
    shown = page.locator(".reveal .output .line").evaluate_all(
        "lines => lines.map((line) => line.textContent.trimEnd())"
    )
    assert shown == code


def drawing(width, height):
    """A picture of this size, as the course's charts are, with a word in letters of 8 pixels."""
    sheet = svg.Drawing(width, height, alt="a chart")
    sheet.text(width / 2, height / 2, "a word", size=8)
    return sheet._repr_html_()


@pytest.mark.parametrize(
    "words, size",
    [("", (504, 104)), ("<p>what a check says of it</p>", (432, 80))],
    ids=["alone", "in words"],
)
def test_a_pictures_letters_can_be_read_where_they_fit(page, tmp_path, words, size):
    """A chart takes the slide's width, a map in a check's report what its letters need."""
    assert problems(page, a_deck(tmp_path, html(words + drawing(*size)))) == []
    page.keyboard.press("ArrowRight")
    word = page.locator("section section.present svg text", has_text="a word")
    assert word.evaluate(LETTERS) >= SMALLEST


def test_a_picture_in_words_grows_as_far_as_it_fits(page, tmp_path):
    report = "<p>what a check says of it</p>" + drawing(432, 500)
    assert problems(page, a_deck(tmp_path, html(report))) == []
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")  # it has a slide without code
    word = page.locator("section section.present svg text", has_text="a word")
    assert 8.5 < word.evaluate(LETTERS) < SMALLEST


def test_a_picture_in_words_has_a_slide_where_it_can_be_read(page, tmp_path):
    """Below code there is no room for it to grow: it stands on the next slide."""
    cell = lines(9)
    report = "<p>what a check says of it</p>" + drawing(432, 200)
    cell.outputs = [new_output("display_data", {"text/html": report})]
    assert problems(page, a_deck(tmp_path, cell)) == []
    page.keyboard.press("ArrowRight")
    assert page.locator("section section.present svg").count() == 0
    page.keyboard.press("ArrowDown")
    word = page.locator("section section.present svg text", has_text="a word")
    assert word.evaluate(LETTERS) >= SMALLEST


@pytest.mark.parametrize("number, pages", [(3, 1), (24, 2)], ids=["room for both", "too long"])
def test_a_short_slide_comes_on_the_one_before(page, tmp_path, number, pages):
    """When it is its turn: a question does not show the answer that follows."""
    question = new_markdown_cell("## A question")
    answer = lines(number)
    answer.metadata["slideshow"] = {"slide_type": "subslide"}
    assert problems(page, a_deck(tmp_path, question, answer)) == []
    assert page.locator("section > section").count() == 1 + pages
    assert page.locator(".joined.fragment .line").count() == (number if pages == 1 else 0)


def test_what_was_saved_before_a_change_is_not_shown_as_its_result():
    """The film of the kernel as it stands would contradict the answer: that it breaks."""
    asked = new_markdown_cell("### Break it: a short stride")
    unasked = new_markdown_cell("*Predict:* what happens without the guard?")
    for text, kept in (asked, 0), (unasked, 1):
        shows = lines(1, outputs=[TEXT])
        shows.metadata["tags"] = ["break-it"]
        room = slides.for_a_room(new_notebook(cells=[text, shows]))
        assert len(room.cells[-1].outputs) == kept


def test_an_exercise_is_shown_in_points():
    """Sentence by sentence, where there are many; what stands in code or brackets stays whole."""
    text = "### Exercise · A (3 min)\n\nDo `a. B`. (Not c. D.) Then e.\n\nOne. Two."
    points = "- Do `a. B`. (Not c. D.)\n- Then e."
    assert slides.in_points(text).count("\n- ") == 0
    assert points in slides.in_points(text.replace("Then e.", "Then e. Last, f."))


def test_cuda_c_has_its_own_colours(tmp_path):
    deck = a_deck(
        tmp_path, new_code_cell("%%writefile build/a.cu\n__global__ void f();  // a kernel")
    ).read_text()
    assert '<span class="c1">// a kernel</span>' in deck


@pytest.mark.parametrize("quote", ['"', "'"])
def test_links_to_chapters_lead_to_their_decks(quote):
    link = f"<a href={quote}../chapters/06_memory.ipynb#banks{quote}>"
    assert slides.other_decks(link) == f"<a href={quote}06_memory.html{quote}>"


def test_notes_alone_do_not_make_a_slide(page, tmp_path):
    cell = new_markdown_cell("<!-- later -->", metadata={"notes": "say this"})
    found = problems(page, a_deck(tmp_path, cell))
    assert len(found) == 1 and "empty" in found[0]
