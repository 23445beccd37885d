"""The website: it builds without a warning, its links lead somewhere, its pictures are described,
and it works offline.
"""

import base64
import html
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import nbformat
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from pygments.token import Error

from course.chapters import WRITTEN
from course.checking.model import REASONS
from course.exercises import EXERCISES, QUIZZES
from course.pictures import front
from course.publish import lexer, mathml, platforms, quizzes, records, sections, site, stills

ENDLESS = 30_000  # pixels
SECTION = "chapters/05_first_kernels/5-the-same-kernel-in-cuda-c"
SINKS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
#: By day the site is built of these chapters; site.yml builds all of it at each push
BY_DAY = "meet_the_gpu", "first_kernels", "memory", "beating_pytorch"
#: The site is built in the time of the first test that needs it, minutes on a busy machine
pytestmark = pytest.mark.timeout(1800)
AT_NIGHT = pytest.mark.nightly("by day pages are read as files, and one is looked at in a browser")


class Page(HTMLParser):
    """What a page has: the ids in it, where its links lead, its pictures, what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.images, self.loads = set(), [], [], []
        self.html = path.read_text(encoding="utf-8")
        self.feed(self.html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag == "img":
            self.images.append(attributes)
        if (
            tag in SINKS
            and attributes.get(SINKS[tag])
            and attributes.get("rel") not in ("canonical", "next", "prev")
        ):
            self.loads.append(attributes[SINKS[tag]])


@pytest.fixture(scope="module")
def built(tmp_path_factory, pytestconfig):
    """The site: its folder, its chapters, what it is made from, and its pages by their path. Built
    once; a warning of Sphinx fails every test here.
    """
    folder = tmp_path_factory.mktemp("site")
    by_day = pytestconfig.getoption("--tier", "nightly") == "test"
    chapters = [chapter for chapter in WRITTEN if chapter.key in BY_DAY or not by_day]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "CHAPTERS", chapters)
        sources = site.pages()
        try:
            site.build(folder)
        except ValueError as warnings:
            pytest.fail(str(warnings), pytrace=False)
    pages = {path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")}
    return SimpleNamespace(folder=folder, chapters=chapters, sources=sources, pages=pages)


def test_every_chapter_and_text_is_a_page(built):
    names = [site.INSTEAD.get(page, page) for page in built.sources]
    pages = [Path(name).with_suffix(".html").as_posix() for name in ["index.md", *names]]
    assert [page for page in pages if page not in built.pages] == []
    for chapter in built.chapters:
        assert f"chapters/{chapter.name}.html" in built.pages
        parts = [name for name in built.pages if name.startswith(f"chapters/{chapter.name}/")]
        assert len(parts) >= 3, chapter.name


def outside(target):
    return re.match(r"[a-zA-Z][\w+.-]*:|//", target)


def test_no_link_inside_is_broken(built):
    broken, seen = [], 0
    left_out = {f"chapters/{chapter.name}.html" for chapter in WRITTEN} - built.pages.keys()
    for name, page in built.pages.items():
        for target in page.links:
            if outside(target):
                continue
            seen += 1
            path, _, anchor = unquote(target).partition("#")
            file = (Path(name).parent / path).as_posix() if path else name
            file = (
                Path(built.folder / file).resolve().relative_to(built.folder.resolve()).as_posix()
            )
            if file in left_out:  # the first page names all chapters
                continue
            if not (built.folder / file).is_file():
                broken.append(f"{name}: {target} leads nowhere")
            elif anchor and file in built.pages and anchor not in built.pages[file].ids:
                broken.append(f"{name}: {target}, and there is no such place on that page")
    assert seen > 500
    assert broken == []


def test_every_picture_is_there_and_described(built):
    images = [(name, image) for name, page in built.pages.items() for image in page.images]
    assert len(images) > 50
    assert [
        f"{name}: {image.get('src', '')[:60]}"
        for name, image in images
        if not (image.get("alt") or "").strip()
    ] == []
    missing = [
        f"{name}: {source}"
        for name, image in images
        if not (source := image["src"]).startswith("data:")
        and not (built.folder / name).parent.joinpath(unquote(source)).is_file()
    ]
    assert missing == []


def test_nothing_is_loaded_from_the_network(built):
    assert [
        f"{name}: {target}"
        for name, page in built.pages.items()
        for target in page.loads
        if outside(target) and not target.startswith("data:")
    ] == []


def test_chapters_are_in_the_navigation_in_order(built):
    names = [chapter.name for chapter in built.chapters]
    for name in "index.html", "chapters/05_first_kernels.html", "course/glossary.html":
        links = re.findall(r'<a class="[^"]*" href="([^"]*)"', sidebar(built.pages[name]))
        chapters = [Path(link).stem for link in links if re.fullmatch(r"\d\d_\w+", Path(link).stem)]
        if "chapters/" in name:  # its own link is "#"
            chapters.insert(names.index("05_first_kernels"), "05_first_kernels")
        assert chapters == names


def sidebar(page):
    return page.html.partition('class="sidebar-tree"')[2].partition("</div>")[0]


def test_only_the_open_chapter_shows_its_sections(built):
    section = "5-the-same-kernel-in-cuda-c"
    assert section in sidebar(built.pages["chapters/05_first_kernels/2-who-am-i.html"])
    assert section not in sidebar(built.pages["chapters/06_memory.html"])


def test_readers_see_stills_and_nothing_for_speakers(built):
    for name, page in built.pages.items():
        assert "widget-view" not in page.html and "For the instructor." not in page.html, name
        assert "data:image/svg+xml" not in page.html, f"{name}: a picture stands there twice"
        assert "colab-badge" not in page.html and "google.colab" not in page.html, name
    chapter = "".join(
        page.html for name, page in built.pages.items() if "05_first_kernels/" in name
    )
    assert 'class="course-moves"' in chapter and 'class="quiz"' in chapter
    for name, page in built.pages.items():
        assert 'type="range" disabled' not in page.html, f"{name}: a slider that does nothing"


def test_every_chapter_opens_with_a_picture_of_its_own(built):
    for chapter in built.chapters:
        opening = built.pages[f"chapters/{chapter.name}.html"].html
        above, _, listed = opening.partition("Sections</span>")
        above = above.partition("<article")[2]
        assert listed.partition("</article")[0].count("<ul>") == 1, "sections, not their parts"
        assert 'class="course-picture"' in above or '<img alt="' in above, chapter.name
        assert f'<em>From <a class="reference internal" href="{chapter.name}/' in above
        assert f'<a class="button primary" href="{chapter.name}/' in above, "where to begin"


def test_every_page_says_what_it_is_to_other_sites(built):
    for name, page in built.pages.items():
        if name not in ("search.html", "genindex.html"):
            assert '<meta name="description" content="You write GPU kernels' in page.html, name
            assert 'property="og:image" content="https://' in page.html, name
    assert (built.folder / "_static" / "favicon.svg").is_file()


def test_the_first_page_shows_the_result_that_is_recorded(built):
    least, most = front.lead()
    page = built.pages["index.html"].html
    assert f"{least:.1f} to {most:.1f} times faster" in page
    assert front.race_picture().alt in html.unescape(page)
    assert REASONS["missing_guard"] in html.unescape(page)
    table = page.partition("<h2>Records")[2].partition("</table>")[0]
    for record in records.RECORDS:
        told = records.summary(record)
        assert f"{told.least:.2f} <small>{record.told(told.weakest)}</small>" in table
    shown = built.pages["index.html"].html.partition("the guard is gone")[2]
    code = re.sub(r"<[^>]+>", "", shown.partition("</pre>")[0])
    assert "def scale(" in code and " if " not in code, "a guard that is gone is not there"


def test_the_first_page_shows_what_memory_does_for_two_kernels(built):
    page = html.unescape(built.pages["index.html"].html)
    assert "reads a: 4 sectors, 4 would do = 100 %." in page
    assert "reads a: 16 sectors, 4 would do = 25 %." in page
    assert not re.search(r"line \d+: +out", page), "a line of our own file"


def test_a_section_says_which_chapter_it_belongs_to(built):
    section = built.pages[f"{SECTION}.html"].html
    place = '<p class="place"><a href="../05_first_kernels.html">Chapter 5 · First kernels</a></p>'
    assert place in section
    assert "<title>First kernels: 5 · The same kernel in CUDA C - " in section
    opening = built.pages["chapters/05_first_kernels.html"].html
    assert '<p class="place">Chapter 5</p>' in opening
    assert '<div class="title">Meet the GPU: What next</div>' in opening
    assert "<title>First kernels - " in opening


def test_no_page_repeats_what_a_cell_says_already(built):
    pages = [page.html for name, page in built.pages.items() if name.startswith("chapters/")]
    assert not any("Writing build/" in page for page in pages)
    opening = built.pages["chapters/05_first_kernels.html"].html
    assert opening.count('class="cell_input') == 1, "the set-up and the imports are one cell"


def test_tables_are_tables(built):
    """Also those that a cell's output wrote in Markdown."""
    assert [
        name for name, page in built.pages.items() if re.search(r"<p>\|[^<]+\|", page.html)
    ] == []


def open_page(page, built, name):
    page.goto((built.folder / name).as_uri())


@AT_NIGHT
def test_search_finds_the_page_that_teaches_a_word(page, built):
    page.context.set_offline(True)
    open_page(page, built, "index.html")
    page.get_by_placeholder("Search").first.fill("bank conflict")
    page.keyboard.press("Enter")
    page.locator("#search-results a[href*='06_memory']").first.wait_for()


# How many pixels high each text of a picture is on the screen
LETTERS = """texts => texts.map(
    (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
# What of a picture's texts lies outside it
CUT_OFF = """picture => {
    const [sheet, ...all] = [...picture.querySelectorAll("svg, text")];
    const edge = sheet.getBoundingClientRect();
    const box = (text) => text.getBoundingClientRect();
    const isOut = (text) => box(text).right > edge.right || box(text).bottom > edge.bottom;
    return all.filter(isOut).map((text) => text.textContent);
}"""


def is_wide(page, width):
    return page.evaluate("document.documentElement.scrollWidth") > width


LONGEST = 25  # pages, of those that are looked at


@AT_NIGHT
def test_no_page_is_wider_than_a_phone_or_endless(page, built):
    page.set_viewport_size({"width": 390, "height": 800})
    wide, endless = [], []
    by_size = sorted(built.pages, key=lambda name: (built.folder / name).stat().st_size)
    for name in {*by_size[-LONGEST:], *by_size[::15]}:
        open_page(page, built, name)
        if is_wide(page, 390):
            wide.append(name)
        height = page.evaluate("document.documentElement.scrollHeight")
        if name.startswith("chapters/") and height > ENDLESS:
            endless.append(name)
    assert (wide, endless) == ([], [])


@AT_NIGHT
def test_the_races_letters_can_be_read_on_a_phone(page, built):
    page.set_viewport_size({"width": 390, "height": 800})
    open_page(page, built, "index.html")
    race = page.locator(".race")
    letters = race.locator("text").evaluate_all(LETTERS)
    assert len(letters) > 5 and min(letters) >= 11
    inside = "race => race.querySelector('svg').scrollWidth <= race.clientWidth"
    assert race.evaluate(inside) and race.evaluate(CUT_OFF) == []


@AT_NIGHT
def test_a_picture_is_whole_on_a_phone_and_can_be_enlarged(page, built):
    page.set_viewport_size({"width": 390, "height": 800})
    open_page(page, built, "chapters/05_first_kernels.html")
    picture = page.locator(".course-picture:has(.enlarge)").first
    is_whole = "(picture) => picture.querySelector('svg').clientWidth <= picture.clientWidth"
    assert picture.evaluate(is_whole)
    picture.get_by_role("button").click()
    assert min(picture.locator("text").evaluate_all(LETTERS)) >= 10.9
    picture.get_by_role("button").click()
    assert picture.evaluate(is_whole)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.reload()
    assert page.locator(".enlarge").count() == 0


@AT_NIGHT
@pytest.mark.parametrize("name", ["index", "about", SECTION, "course/glossary"])
def test_no_page_is_wider_than_the_screen(page, built, name):
    open_page(page, built, f"{name}.html")
    for width in (1280, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        assert not is_wide(page, width)


@AT_NIGHT
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_readers_colours(page, built, scheme):
    page.emulate_media(color_scheme=scheme)
    open_page(page, built, "chapters/05_first_kernels.html")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
    assert brightness > 200 if scheme == "light" else brightness < 60


SHOW = """async (source) => {
    const image = Object.assign(document.createElement("img"), { src: source, alt: "" });
    document.body.append(image);
    await tellApart(image);
    return [image.className, getComputedStyle(image).filter !== "none"];
}"""


def address_of(pixels):
    """An array of pixels (height, width, 3) as the address of a PNG."""
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


@AT_NIGHT
def test_white_drawings_are_dark_in_the_dark_and_photographs_are_not(page, built):
    chart = np.full((100, 200, 3), 255)
    chart[20:60, 10:150] = 0, 114, 178
    photograph = np.random.default_rng(0).integers(0, 256, (100, 200, 3))
    page.emulate_media(color_scheme="dark")
    open_page(page, built, "LICENSE-text.html")
    assert page.evaluate(SHOW, address_of(chart)) == ["drawing", True]
    assert page.evaluate(SHOW, address_of(photograph)) == ["photograph", False]
    page.emulate_media(color_scheme="light")
    assert page.evaluate(SHOW, address_of(chart)) == ["drawing", False]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=AT_NIGHT)])
@pytest.mark.parametrize("name", ["index", pytest.param(SECTION, marks=AT_NIGHT)])
def test_everybody_can_read_and_use_it(page, built, name, scheme):
    """Contrast, names of fields, the order of headings and so on, as axe-core sees them."""
    page.emulate_media(color_scheme=scheme)
    open_page(page, built, f"{name}.html")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert [
        (problem["id"], node["html"][:120])
        for problem in found.response["violations"]
        for node in problem["nodes"]
    ] == []


@AT_NIGHT
def test_a_words_meaning_shows_below_its_paragraph(page, built):
    page.set_viewport_size({"width": 600, "height": 800})
    open_page(page, built, f"{SECTION}.html")
    word = page.locator("a.term").first
    means = word.get_attribute("data-means")
    card = "(word) => getComputedStyle(word, '::after').content"
    assert word.evaluate(card) == "none"
    word.focus()
    assert means in word.evaluate(card)
    assert not is_wide(page, 600)
    word.click()
    assert means.split(": ")[0] in page.locator("li:target strong").first.inner_text()


# What of a page would be cut off by the paper's edge, or is shown though nobody can press it
ON_PAPER = """() => ({
    cut: [...document.querySelectorAll("article pre, article .text_html")]
        .filter((each) => each.scrollWidth > each.clientWidth + 1 && each.checkVisibility())
        .map((each) => each.textContent.slice(0, 60)),
    shown: [".sidebar-drawer", ".skip-to-content", ".fold", "summary", "nav"]
        .filter((name) => [...document.querySelectorAll(name)].some((e) => e.checkVisibility())),
    answers: [...document.querySelectorAll("details.below-input")].map((each) => each.open),
    ground: getComputedStyle(document.body).backgroundColor,
})"""


@AT_NIGHT
def test_a_page_prints_whole_on_white_with_its_answers(page, built):
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 688, "height": 1000})  # A4's, at 96 an inch, less margins
    name = next(each for each in built.pages if each.startswith("chapters/06_memory/2-"))
    open_page(page, built, name)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    paper = page.evaluate(ON_PAPER)
    answers = paper.pop("answers")
    assert len(answers) >= 3 and all(answers)
    assert paper == {"cut": [], "shown": [], "ground": "rgb(255, 255, 255)"}
    assert not is_wide(page, 688)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not any(page.evaluate(ON_PAPER)["answers"])


@AT_NIGHT
def test_words_of_code_do_not_look_like_links(page, built):
    page.emulate_media(color_scheme="dark")
    open_page(page, built, f"{SECTION}.html")
    underlined = page.evaluate("""[...document.querySelectorAll(".highlight span")].filter(
        (word) => getComputedStyle(word).textDecorationLine.includes("underline")).length""")
    assert underlined == 0


@AT_NIGHT
def test_a_quiz_replies_to_every_answer(page, built):
    name = next(
        name
        for name, each in built.pages.items()
        if "05_first_kernels/" in name and 'class="quiz"' in each.html
    )
    open_page(page, built, name)
    quiz = page.locator("form.quiz").first
    output = quiz.locator("output")
    quiz.get_by_role("button").click()
    assert output.inner_text().endswith(" an answer first.")
    answer = quiz.get_attribute("data-answer")
    if quiz.locator("[type=radio]").count():
        quiz.locator(f"[value='{answer}']").check()
    else:
        quiz.locator("[type=number]").fill(answer)
    quiz.get_by_role("button").click()
    assert output.inner_text().startswith("✓ Right.")


@AT_NIGHT
def test_an_answer_is_folded_until_the_guess_and_then_marked(page, built):
    page.set_viewport_size({"width": 390, "height": 800})
    open_page(page, built, "chapters/05_first_kernels/9-how-big-should-a-block-be.html")
    form = page.locator("form.predict[data-answer]").first
    said = page.locator("details.answer").first
    assert said.locator("p").first.is_hidden()
    beside = "(label) => label.getClientRects().length === 1"
    assert all(label.evaluate(beside) for label in form.locator("label").all())
    form.get_by_role("radio").first.check()
    assert said.locator("p").first.is_visible()
    assert form.get_by_role("status").inner_text().startswith(("Right", "It is: "))
    assert page.locator("details.below-input").first.get_attribute("open") is not None


@AT_NIGHT
def test_each_hint_of_an_exercise_opens_by_itself_by_a_key(page, built):
    hints = EXERCISES["matmul.tile"].hints
    open_page(page, built, "chapters/11_matmul/4-must-everybody-fetch-alone.html")
    folds = page.locator("details.hint")
    assert folds.count() >= len(hints) > 1
    assert [fold for fold in folds.all() if fold.get_attribute("open") is not None] == []
    second = folds.nth(1)
    second.locator("summary").press("Enter")
    assert second.inner_text().startswith("Hint 2\n")
    assert second.locator("p").is_visible() and not folds.first.locator("p").is_visible()
    assert second.locator("p").inner_text() == hints[1].replace("`", "")


@AT_NIGHT
def test_the_navigation_shows_where_the_reader_is(page, built):
    name = next(name for name in built.pages if "20_beating_pytorch/15-" in name)
    open_page(page, built, name)
    here = page.locator(".sidebar-tree .current-page").bounding_box()
    assert 0 < here["y"] < page.viewport_size["height"] - here["height"]


def test_no_page_offers_a_hint_that_needs_a_kernel(built):
    pages = {name: page.html for name, page in built.pages.items() if name.startswith("chapters/")}
    assert [name for name, html in pages.items() if "# exercises" in html] == []
    shown = sum(html.count('<details class="hint">') for html in pages.values())
    keys = {chapter.key for chapter in built.chapters}
    ours = [entry for entry in EXERCISES.values() if entry.chapter in keys]
    assert shown == sum(len(entry.hints) for entry in ours)


@AT_NIGHT
def test_long_code_folds_and_unfolds(page, built):
    open_page(page, built, f"{SECTION}.html")
    fold = page.locator("button.fold").first
    fold.click()
    assert fold.get_attribute("aria-expanded") == "false"
    assert page.locator(".cell_input.folded").count() == 1
    fold.click()
    assert page.locator(".cell_input.folded").count() == 0


@AT_NIGHT
def test_the_first_pages_sliders_draw_the_launch(page, built):
    open_page(page, built, "index.html")
    launch = page.locator(".launch")
    launch.locator("[name=blocks]").fill("3")
    assert launch.locator(".missed").count() == 36 - 3 * 8
    assert "12 NOT REACHED" in launch.locator("[role=status]").inner_text()
    launch.locator("[name=blocks]").fill("5")
    assert (launch.locator(".missed").count(), launch.locator(".idle").count()) == (0, 4)


@AT_NIGHT
def test_the_first_page_says_what_to_type_on_each_system(page, built):
    open_page(page, built, "index.html")
    tabs = page.locator(".tabs")
    names = [each.name for each in platforms.PLATFORMS]
    assert tabs.locator("label").all_inner_texts() == [*names, "Colab"]
    for each in platforms.PLATFORMS:
        tabs.get_by_text(each.name, exact=True).click()
        assert tabs.locator(".panel:visible pre").inner_text().strip() == platforms.commands(each)
    page.keyboard.press("ArrowRight")
    assert tabs.locator(".panel:visible a").get_attribute("href") == platforms.colab()


# ---- its parts


@pytest.mark.parametrize(
    "text, becomes",
    [
        ("[5](chapters/05_first_kernels.ipynb)", "[5](/chapters/05_first_kernels.ipynb)"),
        ("[A](course/glossary.md#A)", "[A](/course/glossary.md#a)"),
        ("[start](course/index.ipynb)", "[start](/index.md)"),
        ("[p](chapters/03_c_for_cuda.ipynb#cell-id=pointers)", "[p](#03-c-for-cuda--pointers)"),
        ("`[a](b)` and `a[i](LICENSE)`", "`[a](b)` and `a[i](LICENSE)`"),
        ("[there](https://example.com/a_(b))", "[there](https://example.com/a_(b))"),
        (
            "[![Open it](https://example.com/badge.svg)](https://example.com/it)",
            "[Open it](https://example.com/it)",
        ),
        ("![shot](assets/readme.gif)", "![shot](assets/readme.gif)"),
        ("[yours](chapters/build/kernels/a.cu), whole", "yours, whole"),
    ],
)
def test_links_are_rewritten_for_sphinx(text, becomes):
    assert site.relinked(text, "README.md") == becomes


def test_a_file_that_is_no_page_is_linked_in_the_repository(monkeypatch):
    monkeypatch.setattr(site, "repository", lambda: "https://a.b/c")
    linked = site.relinked("[the licence](LICENSE)", "README.md")
    assert linked == "[the licence](https://a.b/c/blob/main/LICENSE)"


@pytest.mark.parametrize(
    "code",
    [
        "%%writefile build/a.cu\nint x = a ? b : c;   // `x` is $y",
        "%%writefile build/Makefile\nall: a.o\n\t$(CC) $^",
        "lines = !ls",
        "%%bash\necho $HOME",
        "@cuda.jit\ndef f(a):\n    a[0] = 1",
        "%nvcc build/a.cu --run",
        "%%writefile session.gdb\nbreak main ?",
    ],
)
def test_every_kind_of_cell_has_colours(code):
    tokens = list(lexer.CellLexer().get_tokens(code))
    assert "".join(value for _, value in tokens).strip() == code
    assert [token for token in tokens if token[0] is Error] == []


def test_formulas_are_mathml_with_their_source_as_description():
    element = mathml.mathml(r"\dfrac{1}{p}", display=True)
    assert (
        "<mfrac>" in element
        and 'display="block"' in element
        and r'aria-label="\dfrac{1}{p}"' in element
    )


def test_an_unknown_widget_is_an_error():
    with pytest.raises(ValueError, match="TextareaModel"):
        stills.widget("IPY_MODEL_1", {"1": {"model_name": "TextareaModel", "state": {}}})


def notebook_of(*sources):
    cells = [nbformat.v4.new_markdown_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells)


def test_a_chapter_is_cut_at_its_sections_and_headings_rise():
    notebook = notebook_of(
        "# Title", "(a)=\n## 1 · A `b`?\n### c\n```\n## code\n```", "text", "## 2"
    )
    opening, first, second = sections.sections(notebook)
    assert [len(part.cells) for part in (opening, first, second)] == [1, 2, 1]
    assert (first.slug, second.slug) == ("1-a-b", "2")
    page = sections.as_notebook(first, notebook)
    assert page.cells[0].source == "(a)=\n# 1 · A `b`?\n## c\n```\n## code\n```"
    assert first.cells[0].source.startswith("(a)=\n## 1"), "the chapter itself stays"


def test_a_long_section_goes_on_on_pages_that_say_so(monkeypatch):
    monkeypatch.setattr(sections, "LONG", 20)
    monkeypatch.setattr(sections, "FULL", 12)
    long = "\n".join(["text"] * 8)
    notebook = notebook_of(
        f"# Title\n{long}\n{long}\n{long}",
        f"## 4 · Way\n\n### First\n{long}",
        f"(b)=\n### Second\n{long}\n#### deeper",
        f"### Exercise · Try\n{long}",
        "## 5 · Short\n### Within",
    )
    pages = sections.sections(notebook)
    titles = ["", "4 · Way", "4, continued · Second", "5 · Short"]
    assert [page.title for page in pages] == titles
    assert [page.slug for page in pages] == ["", "4-way", "4-second", "5-short"]
    assert [len(page.cells) for page in pages] == [1, 1, 2, 1]
    second = sections.as_notebook(pages[2], notebook).cells
    assert second[0].source == f"(b)=\n# 4, continued · Second\n{long}\n## deeper"
    assert second[1].source.startswith("## Exercise · Try"), "a page has one title"


def taken_as_right(quiz):
    """The answers to which a question's form says that they are right."""
    replies = json.loads(html.unescape(re.search(r'data-replies="([^"]*)"', quizzes.form(quiz))[1]))
    assert {str(key) for key in quiz.choices} <= replies.keys(), quiz.id
    return [key for key, text in replies.items() if text.startswith("✓ Right.")]


def test_the_forms_of_quizzes_know_their_answers():
    right = {id: [str(quiz.answer)] for id, quiz in QUIZZES.items()}
    assert {id: taken_as_right(quiz) for id, quiz in QUIZZES.items()} == right
