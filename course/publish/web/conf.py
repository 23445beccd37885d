"""Sphinx's configuration for the website (see course/publish/site.py, which prepares the pages)."""

from pathlib import Path

from course.publish.lexer import CellLexer
from course.publish.mathml import mathml

HERE = Path(__file__).resolve().parent

project = "CUDA"
html_title = "CUDA, from a first thread"
html_theme = "furo"
html_static_path = [str(HERE / "static")]
html_css_files = ["course.css"]
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


def setup(app):
    def write(display):
        def visit(self, node):
            from docutils.nodes import SkipNode

            self.body.append(mathml(node.astext(), display=display))
            raise SkipNode

        return visit, None

    app.add_lexer("notebook-cell", CellLexer)
    app.add_html_math_renderer("mathml", inline_renderers=write(False), block_renderers=write(True))
