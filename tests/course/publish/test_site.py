"""The website: it builds without a warning, its links lead somewhere, its pictures are described,
and it works offline.
"""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from pygments.token import Error

from course.chapters import CHAPTERS
from course.exercises import QUIZZES
from course.pictures import front
from course.publish import lexer, mathml, quizzes, sections, site, stills

ENDLESS = 30_000  # pixels
SECTION = "chapters/05_first_kernels/5-the-same-kernel-in-cuda-c"
WRITTEN = [chapter for chapter in CHAPTERS if chapter.written]
SINKS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


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
def built(tmp_path_factory):
    """The site: its folder, and its pages by their path. Built once; a warning of Sphinx fails
    every test here.
    """
    folder = tmp_path_factory.mktemp("site")
    try:
        site.build(folder)
    except ValueError as warnings:
        pytest.fail(str(warnings), pytrace=False)
    pages = {path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")}
    return SimpleNamespace(folder=folder, pages=pages)


def test_every_chapter_and_text_is_a_page(built):
    names = [site.INSTEAD.get(page, page) for page in site.pages()]
    pages = [Path(name).with_suffix(".html").as_posix() for name in ["index.md", *names]]
    assert [page for page in pages if page not in built.pages] == []
    for chapter in WRITTEN:
        assert f"chapters/{chapter.name}.html" in built.pages
        parts = [name for name in built.pages if name.startswith(f"chapters/{chapter.name}/")]
        assert len(parts) >= 3, chapter.name


def outside(target):
    return re.match(r"[a-zA-Z][\w+.-]*:|//", target)


def test_no_link_inside_is_broken(built):
    broken, seen = [], 0
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
    for name in "index.html", "chapters/05_first_kernels.html", "course/glossary.html":
        links = re.findall(r'<a class="[^"]*" href="([^"]*)"', sidebar(built.pages[name]))
        chapters = [Path(link).stem for link in links if re.fullmatch(r"\d\d_\w+", Path(link).stem)]
        if "chapters/" in name:  # its own link is "#"
            chapters.insert(4, "05_first_kernels")
        assert chapters == [chapter.name for chapter in WRITTEN]


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
    assert 'type="range"' in chapter and 'class="quiz"' in chapter


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
    assert "a guard is missing" in page


def test_tables_are_tables(built):
    """Also those that a cell's output wrote in Markdown."""
    assert [
        name for name, page in built.pages.items() if re.search(r"<p>\|[^<]+\|", page.html)
    ] == []


def open_page(page, built, name):
    page.goto((built.folder / name).as_uri())


def test_search_finds_the_page_that_teaches_a_word(page, built):
    page.context.set_offline(True)
    open_page(page, built, "index.html")
    page.get_by_placeholder("Search").first.fill("bank conflict")
    page.keyboard.press("Enter")
    page.locator("#search-results a[href*='06_memory']").first.wait_for()


def is_wide(page, width):
    return page.evaluate("document.documentElement.scrollWidth") > width


def test_no_page_is_wider_than_a_phone_or_endless(page, built):
    page.set_viewport_size({"width": 390, "height": 800})
    wide, endless = [], []
    by_size = sorted(built.pages, key=lambda name: (built.folder / name).stat().st_size)
    for name in {*by_size[-40:], *by_size[::10]}:  # the longest, and one in ten
        open_page(page, built, name)
        if is_wide(page, 390):
            wide.append(name)
        height = page.evaluate("document.documentElement.scrollHeight")
        if name.startswith("chapters/") and height > ENDLESS:
            endless.append(name)
    assert (wide, endless) == ([], [])


@pytest.mark.parametrize("width", [1280, 1600])
@pytest.mark.parametrize("name", ["index", "about", SECTION, "course/glossary"])
def test_no_page_is_wider_than_the_screen(page, built, name, width):
    page.set_viewport_size({"width": width, "height": 800})
    open_page(page, built, f"{name}.html")
    assert not is_wide(page, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_readers_colours(page, built, scheme):
    page.emulate_media(color_scheme=scheme)
    open_page(page, built, "chapters/05_first_kernels.html")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
    assert brightness > 200 if scheme == "light" else brightness < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", SECTION])
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


def test_words_of_code_do_not_look_like_links(page, built):
    page.emulate_media(color_scheme="dark")
    open_page(page, built, f"{SECTION}.html")
    underlined = page.evaluate("""[...document.querySelectorAll(".highlight span")].filter(
        (word) => getComputedStyle(word).textDecorationLine.includes("underline")).length""")
    assert underlined == 0


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
    assert output.inner_text() == "Pick an answer first."
    answer = quiz.get_attribute("data-answer")
    if quiz.locator("[type=radio]").count():
        quiz.locator(f"[value='{answer}']").check()
    else:
        quiz.locator("[type=number]").fill(answer)
    quiz.get_by_role("button").click()
    assert output.inner_text().startswith("✓ Right.")


def test_long_code_folds_and_unfolds(page, built):
    open_page(page, built, f"{SECTION}.html")
    fold = page.locator("button.fold").first
    fold.click()
    assert fold.get_attribute("aria-expanded") == "false"
    assert page.locator(".cell_input.folded").count() == 1
    fold.click()
    assert page.locator(".cell_input.folded").count() == 0


def test_the_first_pages_sliders_draw_the_launch(page, built):
    open_page(page, built, "index.html")
    launch = page.locator(".launch")
    launch.locator("[name=blocks]").fill("3")
    assert launch.locator(".missed").count() == 36 - 3 * 8
    assert "12 NOT REACHED" in launch.locator("[role=status]").inner_text()
    launch.locator("[name=blocks]").fill("5")
    assert (launch.locator(".missed").count(), launch.locator(".idle").count()) == (0, 4)


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


@pytest.mark.parametrize("quiz", QUIZZES.values(), ids=list(QUIZZES))
def test_a_quizs_form_knows_its_answer(quiz):
    form = quizzes.form(quiz)
    replies = json.loads(html.unescape(re.search(r'data-replies="([^"]*)"', form)[1]))
    assert replies[str(quiz.answer)].startswith("✓ Right.")
    assert all(not text.startswith("✓") for key, text in replies.items() if key != str(quiz.answer))
    assert {str(key) for key in quiz.choices} <= replies.keys()
