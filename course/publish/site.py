"""The course as a website to read: executed notebooks, glossary, reading list, instructors' guide.

    python -m course.publish.site [FOLDER]          (`make site`, into build/site; then open
    build/site/index.html)

Sphinx builds it, with myst-nb for the notebooks and the theme Furo; `web/` holds its configuration
and our style. What is written here prepares the pages: widgets become stills, links to cells become
links that Sphinx checks, and links to files that are no pages lead to the repository. A warning of
Sphinx is an error.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

from course.chapters import CHAPTERS
from course.publish.stills import stills
from utils.files import ROOT
from utils.setup.colab import repository

WEB = Path(__file__).resolve().parent / "web"
TEXTS = (
    "course/glossary.md",
    "course/reading.md",
    "course/instructors.md",
    "CONTRIBUTING.md",
    "LICENSE-text.md",
)
START = "course/index.ipynb"
# A link whose words are a picture from elsewhere: [![words](https://…)](target)
BADGE = re.compile(r"\[!\[([^\]]*)\]\(https?://[^)]+\)\]")
# [words](target) with the words of at most one pair of brackets inside
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
CODE = re.compile(r"^(```|~~~).*?^\1|(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)


def pages():
    """Paths of everything that becomes a page, relative to the project: the README is the first."""
    chapters = [f"chapters/{chapter.name}.ipynb" for chapter in CHAPTERS if chapter.written]
    return ["README.md", START, *chapters, *(text for text in TEXTS if (ROOT / text).is_file())]


def relinked(markdown, page):
    """The Markdown of a page with links that Sphinx understands. Code stays as it is."""

    def link(match):
        bang, words, target = match.groups()
        path, _, anchor = target.partition("#")
        if bang or re.match(r"[a-zA-Z][\w+.-]*:|//", target) or not path:
            return match.group()
        file = (ROOT / page).parent.joinpath(path).resolve().relative_to(ROOT).as_posix()
        if file not in pages():
            return f"{words}({repository()}/blob/main/{file})"
        if anchor.startswith("cell-id="):
            return f"{words}(#{label(file, anchor.removeprefix('cell-id='))})"
        return f"{words}({path.replace('README.md', 'index.md')})"

    markdown = BADGE.sub(r"[\1]", markdown)  # pages load nothing from the network
    pieces, end = [], 0
    for code in CODE.finditer(markdown):
        pieces += [LINK.sub(link, markdown[end : code.start()]), code.group()]
        end = code.end()
    return "".join(pieces) + LINK.sub(link, markdown[end:])


def label(page, cell):
    """The name by which other pages link to a cell."""
    return f"{Path(page).stem}--{cell}".lower().replace("_", "-")


def linked_cells():
    """(page, cell id) of every cell that a text or a notebook links to."""
    return {
        (f"chapters/{name}", cell)
        for page in pages()
        for name, cell in re.findall(r"(\w+\.ipynb)#cell-id=([\w-]+)", markdown_of(page))
    }


def markdown_of(page):
    """All Markdown of a page: of a notebook that of its cells."""
    if not page.endswith(".ipynb"):
        return (ROOT / page).read_text(encoding="utf-8")
    cells = nbformat.read(ROOT / page, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def notebook_page(page, targets):
    """A notebook without speaker's notes, widgets as stills, a target before linked cells."""
    notebook = stills(nbformat.read(ROOT / page, as_version=4))
    cells = []
    for cell in notebook.cells:
        if cell.metadata.get("slideshow", {}).get("slide_type") == "notes":
            continue
        if cell.cell_type == "markdown":
            cell.source = relinked(cell.source, page)
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = re.sub(
                    r"(href=['\"](?!\w+:)[^'\"]+)\.ipynb", r"\1.html", output.data["text/html"]
                )
        if (page, cell.id) in targets:
            target = f"({label(page, cell.id)})="
            if cell.cell_type == "markdown":
                cell.source = f"{target}\n{cell.source}"
            else:
                cells.append(new_markdown_cell(target))
        cells.append(cell)
    notebook.cells = cells
    notebook.metadata.language_info = {"name": "python", "pygments_lexer": "notebook-cell"}
    return nbformat.writes(notebook)


def contents():
    """The table of contents that the navigation shows: the chapters by part, then the texts."""
    parts = {
        part: [f"chapters/{c.name}" for c in CHAPTERS if c.part == part and c.written]
        for part in dict.fromkeys(chapter.part for chapter in CHAPTERS)
    }
    about = [page.removesuffix(".md") for page in pages() if page in TEXTS]
    trees = {"": [f"Start page <{START.removesuffix('.ipynb')}>"], **parts, "Besides": about}
    return "\n".join(
        "\n".join(
            [
                "```{toctree}",
                ":hidden:",
                *([f":caption: {caption}"] if caption else []),
                "",
                *names,
                "```",
            ]
        )
        for caption, names in trees.items()
        if names
    )


def prepare(folder):
    """Write everything that Sphinx reads into the folder."""
    targets = linked_cells()
    for page in pages():
        file = folder / page.replace("README.md", "index.md")
        file.parent.mkdir(parents=True, exist_ok=True)
        if page.endswith(".ipynb"):
            text = notebook_page(page, targets)
        else:
            text = relinked((ROOT / page).read_text(encoding="utf-8"), page)
        file.write_text(
            text + ("\n\n" + contents() if page == "README.md" else ""), encoding="utf-8"
        )
    (folder / "assets").mkdir()
    shutil.copy(ROOT / "assets" / "readme.png", folder / "assets")


def build(folder):
    """Build the site into the folder. ValueError with Sphinx's warnings and errors, if any."""
    with tempfile.TemporaryDirectory(prefix="cuda-course-site-") as scratch:
        source = Path(scratch).resolve() / "source"
        source.mkdir()
        prepare(source)
        shutil.rmtree(folder, ignore_errors=True)
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "sphinx",
                "-q",
                "-W",
                "--keep-going",
                "-b",
                "html",
                "-c",
                str(WEB),
                "-d",
                f"{scratch}/doctrees",
                str(source),
                str(folder),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if run.returncode:
            raise ValueError(run.stderr.replace(f"{source}/", "").strip())


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course.publish.site", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    folder = parser.parse_args().folder
    try:
        build(folder)
    except ValueError as error:
        sys.exit(
            f"{error}\nerror: the website has these problems (NOTEBOOK:120002 is line 2 of its "
            "12th cell)"
        )
    print(folder / "index.html")


if __name__ == "__main__":
    main()
