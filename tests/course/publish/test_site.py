"""The website: it builds without a warning, its links lead somewhere, its pictures are described,
and it works offline.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from pygments.token import Error

from course.chapters import CHAPTERS
from course.publish import lexer, mathml, site, stills

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
    names = [
        page.replace("README.md", "index.html").replace(".ipynb", ".html").replace(".md", ".html")
        for page in site.pages()
    ]
    assert [name for name in names if name not in built.pages] == []
    assert {f"chapters/{chapter.name}.html" for chapter in WRITTEN} <= built.pages.keys()


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
        sidebar = built.pages[name].html.partition('class="sidebar-tree"')[2].partition("</div>")[0]
        links = re.findall(r'<a class="[^"]*" href="([^"]*)">([^<]+)<', sidebar)
        titles = [c.title for c in WRITTEN]
        assert [title for _, title in links if title in titles] == titles


def test_readers_see_stills_and_no_speakers_notes(built):
    for name, page in built.pages.items():
        assert "widget-view" not in page.html and "For the instructor." not in page.html, name
    chapter = built.pages["chapters/05_first_kernels.html"].html
    assert 'type="range"' in chapter and 'type="radio"' in chapter


def test_tables_are_tables(built):
    """Also those that a cell's output wrote in Markdown."""
    assert [
        name for name, page in built.pages.items() if re.search(r"<p>\|[^<]+\|", page.html)
    ] == []


def test_search_finds_the_page_that_teaches_a_word(page, built):
    page.context.set_offline(True)
    page.goto((built.folder / "index.html").as_uri())
    page.get_by_placeholder("Search").first.fill("bank conflict")
    page.keyboard.press("Enter")
    page.locator("#search-results a", has_text="Memory").first.wait_for()


@pytest.mark.parametrize("width", [390, 1280, 1600])
def test_no_page_is_wider_than_the_screen(page, built, width):
    page.set_viewport_size({"width": width, "height": 800})
    wide = []
    for name in built.pages:
        page.goto((built.folder / name).as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(name)
    assert wide == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_readers_colours(page, built, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto((built.folder / "chapters" / "05_first_kernels.html").as_uri())
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
    assert brightness > 200 if scheme == "light" else brightness < 60


# ---- its parts


@pytest.mark.parametrize(
    "text, becomes",
    [
        ("[5](chapters/05_first_kernels.ipynb)", "[5](chapters/05_first_kernels.ipynb)"),
        ("[p](chapters/03_c_for_cuda.ipynb#cell-id=pointers)", "[p](#03-c-for-cuda--pointers)"),
        ("`[a](b)` and `a[i](LICENSE)`", "`[a](b)` and `a[i](LICENSE)`"),
        ("[there](https://example.com/a_(b))", "[there](https://example.com/a_(b))"),
        (
            "[![Open it](https://example.com/badge.svg)](https://example.com/it)",
            "[Open it](https://example.com/it)",
        ),
        ("![shot](assets/readme.png)", "![shot](assets/readme.png)"),
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
