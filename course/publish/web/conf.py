"""Sphinx's configuration for the website (see course/publish/site.py, which prepares the pages)."""

from pathlib import Path

from course.chapters import TITLE
from course.publish.landing import TAGLINE
from course.publish.lexer import CellLexer
from course.publish.mathml import mathml
from utils.setup.colab import repository

HERE = Path(__file__).resolve().parent

project = "CUDA"
html_title = TITLE
html_theme = "furo"
html_favicon = str(HERE / "static" / "favicon.svg")
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
pygments_dark_style = "a11y-high-contrast-dark"
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


def setup(app):
    def write(display):
        def visit(self, node):
            from docutils.nodes import SkipNode

            self.body.append(mathml(node.astext(), display=display))
            raise SkipNode

        return visit, None

    app.connect("html-page-context", only_this_chapter, priority=100)  # before Furo asks
    app.add_lexer("notebook-cell", CellLexer)
    app.add_html_math_renderer("mathml", inline_renderers=write(False), block_renderers=write(True))
