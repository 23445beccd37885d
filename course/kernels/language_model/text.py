"""The text that the model learns from: the course's own words, from its chapters to its code."""

import ast
import re

import nbformat

from course.chapters import WRITTEN
from utils.files import ROOT

PAPERS = ("course/glossary.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
#: What a reader does not read aloud -> what is left of it, in this order
CLEANED = (
    (r"<!--.*?-->", ""),  # comments
    (r"\$\$.*?\$\$", ""),  # formulas on lines of their own
    (r"!\[[^\]]*\]\([^)]*\)", ""),  # pictures
    (r"\[[^\]]* · [^\]]*\]\([^)]*\)$", ""),  # where the glossary says that a word is taught
    (r"\[([^\]]*)\]\([^)]*\)", r"\1"),  # links
    (r"</?\w[^>]*>", ""),  # HTML
    (r"^\|.*$", ""),  # tables
    (r"^#+ *", ""),  # headings' marks
    (r"\*\*|(?<!\w)\*(?=\w)|(?<=[\w.?!:])\*(?!\w)", ""),  # bold and italic
    (r"^(?:- |\d\. )", ""),  # lists' marks
)
SHORTEST = 30  # characters of a paragraph that says something
FEWEST = 8  # words of a string in the exercises that is a hint, a task or an explanation


def chapters() -> str:
    """The chapters' paragraphs, one a line, in their order."""
    texts = []
    for chapter in WRITTEN:
        cells = nbformat.read(chapter.path, as_version=4).cells
        texts += [cell.source for cell in cells if reads(cell)]
    return joined(texts)


def everything() -> str:
    """The chapters, the exercises' words, the papers beside the code, and the code's docstrings."""
    papers = [ROOT / name for name in PAPERS]
    papers += sorted((ROOT / "utils").glob("**/README.md"))
    texts = [path.read_text(encoding="utf-8") for path in papers]
    for folder in ("course", "utils"):
        for path in sorted((ROOT / folder).glob("**/*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            texts += said(tree) if path.parent.name == "exercises" else []
            texts += docstrings(tree)
    return joined([chapters(), *texts])


def said(tree) -> list[str]:
    """The strings of a module that are sentences."""
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    strings = (string for string in strings if isinstance(string, str) and "\n" not in string)
    return [s for s in strings if len(s.split()) >= FEWEST and s.strip()[-1] in ".?!:"]


def docstrings(tree) -> list[str]:
    """The docstrings of a module, their lines joined to paragraphs."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
    whole = [re.split(r"\n\s*\n", text) for text in found if text]
    return [" ".join(part.split()) for parts in whole for part in parts]


def joined(texts) -> str:
    """The paragraphs of texts in Markdown, one a line, each once."""
    lines = dict.fromkeys(line for text in texts for line in paragraphs(text))
    return "\n".join(lines) + "\n"


def reads(cell) -> bool:
    """Whether a cell is prose: no code, and none of the links around a chapter."""
    skipped = cell.metadata.get("slideshow", {}).get("slide_type") == "skip"
    return cell.cell_type == "markdown" and not skipped


def paragraphs(text: str) -> list[str]:
    """Markdown's paragraphs as plain lines."""
    for pattern, left in CLEANED:
        text = re.sub(pattern, left, text, flags=re.MULTILINE | re.DOTALL * ("$$" in pattern))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if len(line) >= SHORTEST]
