"""Slide decks that open without a network: one HTML file a chapter, everything inside.

    python -m course.publish.slides [FOLDER] [NOTEBOOK.ipynb ...]          (`make slides`, into
    build/slides)

nbconvert lays out the slides, reveal.js (from the package sphinx-revealjs) shows them, `deck/`
holds our page, its style and the script that divides what is too much for a slide. Formulas are
MathML, widgets are stills.
"""

import argparse
import ast
import importlib.resources
import re
from pathlib import Path

import nbformat
from jinja2 import pass_context
from nbconvert import SlidesExporter, TemplateExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat.v4 import new_markdown_cell
from pygments import highlight
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from course.chapters import TITLE, notebooks
from course.publish.answers import is_of_before
from course.publish.folded import unfolded
from course.publish.lexer import CellLexer
from course.publish.mathml import mathml
from course.publish.stills import stills
from utils.files import ROOT

OURS = Path(__file__).resolve().parent / "deck"
CONFIG = Config(
    {
        # as the website's (web/conf.py)
        "CSSHTMLHeaderPreprocessor": {"style": "a11y-high-contrast-light"},
        "TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {"remove-input"}},
    }
)
IMPORTS = re.compile(r"((from|import) [^\n]+\n*)+")  # and nothing else
#: A cell that asks for a hint, or judges an answer
CHECK = re.compile(
    r"(# )?(from course import exercises\n+)?(# )?(\w+ = )?exercises\.(hint|check|solution)\("
)
EXERCISE = re.compile(r"###+ Exercise\b")
GOALS = re.compile(r"^(\*\*At the end you can\*\*) (.+)$", re.MULTILINE)
#: Between two sentences: what stands in code, brackets or a formula is not the end of one
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z`*$])")
GUARDED = re.compile(r"`[^`]*`|\([^()]*\)|\$[^$]*\$|\[[^\]]*\]")
MANY = 3  # sentences of a paragraph that are shown as points
QUIZ = re.compile(r"exercises\.quiz\([^\n]*\)")  # and nothing else: a room reads the question
#: The modules whose calls draw; what makes a picture follow a slider, and what plays a film
DRAWERS = "pictures", "diagrams", "plots"
MOVER, PLAYER = "interact", "play"
REVEAL = importlib.resources.files("sphinx_revealjs") / "_static" / "revealjs"


class Renderer(IPythonRenderer):
    """nbconvert's Markdown, with MathML for formulas in place of text for a script to find."""

    def inline_math(self, body):
        return mathml(body)

    def block_math(self, body):
        return mathml(body, display=True)


class Exporter(SlidesExporter):
    """nbconvert's slides in our page. Pictures that a text shows are put inside too."""

    template_file = "deck.html.j2"
    exclude_anchor_links = True

    @property
    def extra_template_paths(self):
        return [str(OURS)]

    def from_notebook_node(self, notebook, resources, **options):
        """nbconvert's own reads the page again with Beautiful Soup, half of all its time, and
        finds nothing to change in ours.
        """
        return TemplateExporter.from_notebook_node(self, notebook, resources, **options)

    @pass_context
    def markdown2html(self, context, source):
        renderer = Renderer(
            escape=False,
            embed_images=True,
            exclude_anchor_links=True,
            attachments=context.get("cell", {}).get("attachments", {}),
            path=context["resources"]["metadata"].get("path", ""),
        )
        return MarkdownWithMath(renderer=renderer).render(source)


def deck(path):
    """The deck of the notebook at `path`, as HTML."""
    notebook = for_a_room(stills(nbformat.read(path, as_version=4)))
    title = re.search(r"^# (.+)$", notebook.cells[0].source, re.M).group(1)
    resources = {
        "metadata": {"name": path.stem, "path": str(path.parent)},
        "deck": {
            "title": title,
            "course": TITLE,
            "style": [
                (REVEAL / "dist" / "reveal.css").read_text(),
                (OURS / "deck.css").read_text(),
            ],
            "scripts": [
                (REVEAL / "dist" / "reveal.js").read_text(),
                (REVEAL / "plugin" / "notes" / "notes.js").read_text(),
                (OURS / "deck.js").read_text(),
            ],
        },
    }
    filters = {
        "highlight_code": lambda code, metadata=None: highlight(code, CellLexer(), HtmlFormatter()),
        "clean_html": lambda html: html,  # what Pygments made is clean
    }
    html, _ = Exporter(config=CONFIG, filters=filters).from_notebook_node(notebook, resources)
    return other_decks(html)


def for_a_room(notebook):
    """The notebook, in place, without what only helps at a keyboard and what is folded under *Going
    further*, with a cell for each note to the speaker: cells keep these in their metadata, so that
    nobody but the speaker meets them.
    """
    cells = []
    for cell in unfolded(notebook.cells):
        if is_for_a_keyboard(cell):
            continue
        if is_of_before(cell, cells):
            cell.outputs = []  # nothing was broken yet: it would contradict the answer
        if cell.cell_type == "markdown":
            cell.source = in_points(cell.source)
        if is_a_drawing(cell) or QUIZ.fullmatch(cell.source):
            cell.metadata.setdefault("tags", []).append("remove-input")
        cells.append(cell)
        if note := cell.metadata.get("notes"):
            shown = {"slideshow": {"slide_type": "notes"}}
            cells.append(new_markdown_cell(note, metadata=shown))
    notebook.cells = cells
    return notebook


def in_points(text):
    """A text with the chapter's goals and an exercise's long paragraphs as points: a room reads
    them one by one.
    """
    if not EXERCISE.match(text) or "```" in text:
        return GOALS.sub(lambda found: "\n- ".join([f"{found[1]}\n", *found[2].split(" · ")]), text)
    blocks = text.split("\n\n")
    return "\n\n".join([blocks[0], *map(points, blocks[1:])])


def points(paragraph):
    """A paragraph of many sentences as a list of them; any other block as it is."""
    if not re.match(r"[A-Z`*]", paragraph) or paragraph.startswith("* "):
        return paragraph
    guarded = GUARDED.sub(masked, paragraph)
    ends = [(found.start(), found.end()) for found in SENTENCE.finditer(guarded)]
    if len(ends) + 1 < MANY:
        return paragraph
    starts, stops = [0, *(end for _, end in ends)], [*(start for start, _ in ends), None]
    return "\n".join(f"- {paragraph[a:b]}" for a, b in zip(starts, stops, strict=True))


def masked(found):
    """Letters in place of what must stay whole; a sentence in brackets still ends as one."""
    end = "." if found[0].endswith(".)") else "x"
    return "x" * (len(found[0]) - 1) + end


def is_for_a_keyboard(cell):
    """Whether a room needs nothing of a cell: set-up, imports, hints, the check of an answer."""
    if cell.cell_type != "code":
        return False
    is_setup = "setup" in cell.metadata.get("tags", [])
    return is_setup or bool(IMPORTS.fullmatch(cell.source)) or bool(CHECK.match(cell.source))


def is_a_drawing(cell):
    """Whether a cell does nothing but draw, so that a room needs its picture alone."""
    if cell.cell_type != "code" or not cell.get("outputs"):
        return False
    if not all("text/html" in output.get("data", {}) for output in cell.outputs):
        return False
    try:
        lines = ast.parse(cell.source).body
    except SyntaxError:  # a magic
        return False
    rest = [line for line in lines if not isinstance(line, ast.Import | ast.ImportFrom)]
    names = sum(isinstance(line, ast.Assign) for line in rest[:-1])
    return bool(rest) and names == len(rest) - 1 <= 1 and draws(rest[-1])


def draws(line):
    """Whether a statement calls a drawer, plays a film, or gives a function sliders."""
    if isinstance(line, ast.FunctionDef):
        return any(draws(ast.Expr(each)) for each in line.decorator_list)
    call = line.value if isinstance(line, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    named = call.func
    if isinstance(named, ast.Attribute):
        return named.attr == PLAYER or getattr(named.value, "id", "") in DRAWERS
    return getattr(named, "id", "") in (MOVER, PLAYER)


def other_decks(html):
    """Links to notebooks beside this one lead to their decks."""
    return re.sub(
        r"""(<a [^>]*href=(["']))(?:\.\./)?(?:chapters/|course/)?(\w+)\.ipynb(?:#[^"']*)?\2""",
        r"\1\3.html\2",
        html,
    )


def write(folder, paths):
    """Write the decks of the notebooks into the folder. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for path in paths:
        files.append(folder / f"{path.stem}.html")
        files[-1].write_text(deck(path), encoding="utf-8")
    return files


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course.publish.slides", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "slides")
    parser.add_argument("notebooks", nargs="*", type=Path, help="only these (default: all)")
    options = parser.parse_args()
    for file in write(
        options.folder, [path.resolve() for path in options.notebooks] or notebooks()
    ):
        print(file)


if __name__ == "__main__":
    main()
