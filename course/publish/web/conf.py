"""Sphinx's configuration for the website (see course/publish/site.py, which prepares the pages)."""

import functools
from pathlib import Path

from docutils import nodes
from sphinx.search.en import SearchEnglish

from course.chapters import CHAPTERS, TITLE
from course.publish.landing import TAGLINE
from course.publish.lexer import CellLexer
from course.publish.mathml import mathml
from course.publish.terms import resolved
from utils.setup.colab import repository

HERE = Path(__file__).resolve().parent

project = "CUDA"
html_title = TITLE
html_theme = "furo"
html_favicon = str(HERE / "static" / "favicon.svg")
html_logo = html_favicon
html_static_path = [str(HERE / "static")]
html_css_files = ["course.css"]
html_js_files = [("course.js", {"defer": "defer"})]
templates_path = [str(HERE / "templates")]
html_context = {
    "description": TAGLINE,
    "social_picture": f"{repository()}/raw/main/assets/social.png",
}
# Both hold the contrast that WCAG asks for, and underline nothing
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-dark"
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
exclude_patterns = []

extensions = ["myst_nb", "sphinx_copybutton"]
copybutton_prompt_text = "$ "
copybutton_selector = ".cell_input pre, div.highlight-default pre"
myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_error_lexer = "text"
nb_render_markdown_format = "myst"  # CommonMark, the default, has no tables
html_math_renderer = "mathml"


def captions_with_level(markup):
    """Sphinx's captions of contents are headings of no level, which screen readers need."""
    return markup.replace('role="heading"', 'role="heading" aria-level="2"')


def only_this_chapter(app, name, template, context, doctree):
    """The navigation shows the sections of the page's own chapter, and of no other."""
    whole = context.get("toctree")
    if whole:
        context["toctree"] = lambda **how: captions_with_level(whole(**{**how, "collapse": True}))
    if "body" in context:
        context["body"] = captions_with_level(context["body"])


def chapter_of(name):
    """The chapter of a page, or None. name: such as "chapters/05_first_kernels/recap"."""
    parts = [*name.split("/"), ""]
    return next((chapter for chapter in CHAPTERS if chapter.name == parts[1]), None)


def titles_with_chapter(app, env):
    """In searches and in a browser's tabs a section bears its chapter's name: "Memory: Recap"."""
    for name, title in env.longtitles.items():
        chapter = chapter_of(name)
        if chapter and name != f"chapters/{chapter.name}":
            words = f"{chapter.title}: {title.astext()}"
            env.longtitles[name] = nodes.title("", words)


def place(app, name, template, context, doctree):
    """Above a page's title stands its chapter, and links out of the chapter say where they lead."""
    chapter = chapter_of(name)
    if chapter is None or "body" not in context:
        return
    words = f"Chapter {chapter.number}"
    if name != f"chapters/{chapter.name}":
        words = f'<a href="../{chapter.name}.html">{words} · {chapter.title}</a>'
    context["body"] = f'<p class="place">{words}</p>{context["body"]}'
    _, *neighbours = app.builder.relations[name]
    for way, other in zip(("prev", "next"), neighbours, strict=True):
        if other and chapter_of(other) not in (None, chapter):
            context[way]["title"] = app.env.longtitles[other].astext()


class Words(SearchEnglish):
    """The words that a search finds: the stem of each is looked for once, not on every page."""

    stem = functools.cache(SearchEnglish.stem)


def setup(app):
    def write(display):
        def visit(self, node):
            self.body.append(mathml(node.astext(), display=display))
            raise nodes.SkipNode

        return visit, None

    app.connect("html-page-context", only_this_chapter, priority=100)  # before Furo asks
    app.connect("html-page-context", place)
    app.connect("env-updated", titles_with_chapter)
    app.connect("doctree-resolved", resolved)
    app.add_search_language(Words)
    app.add_lexer("notebook-cell", CellLexer)
    app.add_html_math_renderer("mathml", inline_renderers=write(False), block_renderers=write(True))
