"""The course as a website to read: a first page, chapters, glossary, reading list, and so on.

    python -m course.publish.site [FOLDER]          (`make site`, into build/site; then open
    build/site/index.html)

Sphinx builds it, with myst-nb for the notebooks and the theme Furo; `web/` holds its configuration,
our style and script. What is written here prepares the pages: a chapter becomes a page that opens
it and one for each section, some a page more whose cells run in the browser (`here/`); quizzes
become forms that answer, hints fold, other widgets become stills; links to cells become links that
Sphinx checks, and links to files that are no pages lead to the repository. A warning of Sphinx is
an error.
"""

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

from course.chapters import CHAPTERS
from course.publish.answers import fold_answers, noted, told
from course.publish.covers import cover
from course.publish.frame import TOP
from course.publish.here import cells as here_cells
from course.publish.here import page as here_page
from course.publish.here import runtime
from course.publish.hints import openable
from course.publish.landing import landing
from course.publish.quizzes import answerable
from course.publish.sections import as_notebook, sections
from course.publish.stills import stills
from course.publish.unfolding import unfoldable
from utils.files import ROOT
from utils.plots.svg import inline_only
from utils.setup.colab import notebook_address, repository

WEB = Path(__file__).resolve().parent / "web"
TEXTS = (
    "course/setup.md",
    "course/glossary.md",
    "course/reading.md",
    "course/instructors.md",
    "CONTRIBUTING.md",
    "LICENSE-text.md",
)
#: Pages that are written from other files: file -> page
INSTEAD = {"README.md": "about.md", "course/index.ipynb": "index.md"}
LEARNERS = "chapters/build/"  # what cells write in a learner's copy: a page has no such files
# A link whose words are a picture from elsewhere: [![words](https://…)](target)
BADGE = re.compile(r"\[!\[([^\]]*)\]\(https?://[^)]+\)\]")
# [words](target) with the words of at most one pair of brackets inside
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
IMPORTS = re.compile(r"((from|import) [^\n]+\n*)+")  # and nothing else
CODE = re.compile(r"^(```|~~~).*?^\1|(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)


def pages():
    """Paths of everything that becomes a page of its own or more, relative to the project."""
    chapters = [f"chapters/{chapter.name}.ipynb" for chapter in CHAPTERS if chapter.written]
    return ["README.md", *chapters, *(text for text in TEXTS if (ROOT / text).is_file())]


def relinked(markdown, page):
    """The Markdown of a page with links that Sphinx understands. Code stays as it is."""

    def link(match):
        bang, words, target = match.groups()
        path, _, anchor = target.partition("#")
        if bang or re.match(r"[a-zA-Z][\w+.-]*:|//", target) or not path:
            return match.group()
        file = (ROOT / page).parent.joinpath(path).resolve().relative_to(ROOT).as_posix()
        if file.startswith(LEARNERS):
            return words.strip("[]")
        if file in INSTEAD:
            return f"{words}(/{INSTEAD[file]})"
        if file not in pages():
            return f"{words}({repository()}/blob/main/{file})"
        if anchor.startswith("cell-id="):
            return f"{words}(#{label(file, anchor.removeprefix('cell-id='))})"
        return f"{words}(/{file}#{anchor.lower()})" if anchor else f"{words}(/{file})"

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


def readers_notebook(page, targets):
    """A notebook for readers: stills, quizzes that answer, a target before each linked cell."""
    notebook = stills(nbformat.read(ROOT / page, as_version=4))
    answerable(notebook)
    openable(notebook)
    answers = told(notebook.cells)
    cells = [
        each
        for cell in with_imports(notebook.cells)
        if not is_plumbing(cell)
        for each in readers_cells(cell, page, targets)
    ]
    fold_answers(cells, answers)
    notebook.cells = unfoldable(cells)
    notebook.metadata.language_info = {"name": "python", "pygments_lexer": "notebook-cell"}
    return notebook


def with_imports(cells):
    """The cells, with the imports that follow the set-up in its cell, where a page folds them."""
    kept = []
    for cell in cells:
        if kept and is_setup(kept[-1]) and IMPORTS.fullmatch(cell.source):
            kept[-1].source += f"\n\n{cell.source}"
        else:
            kept.append(cell)
    return kept


def is_setup(cell):
    """Whether a cell sets the chapter up."""
    return "setup" in cell.metadata.get("tags", [])


def is_plumbing(cell):
    """Whether a cell is for an instructor, for JupyterLab or for Colab alone."""
    kind = cell.metadata.get("slideshow", {}).get("slide_type")
    is_colabs = "google.colab" in cell.source
    return kind == "notes" or cell.id == TOP or is_colabs


def readers_cells(cell, page, targets):
    """The cell as a page shows it; before it, if others link to it, what they link to."""
    if cell.cell_type == "markdown":
        cell.source = relinked(cell.source, page)
    for output in cell.get("outputs", []):
        shown = output.get("data", {})
        if "text/html" in shown:
            shown["text/html"] = inline_only(shown["text/html"])
        if "text/markdown" in shown:
            shown["text/markdown"] = relinked(shown["text/markdown"], page)
    if is_setup(cell):
        fold(cell, "Show the set-up")
    if (page, cell.id) not in targets:
        return [cell]
    target = f"({label(page, cell.id)})="
    if cell.cell_type == "markdown":
        cell.source = f"{target}\n{cell.source}"
        return [cell]
    return [new_markdown_cell(target), cell]


def fold(cell, words):
    """Fold a cell of code; words: what opens it."""
    cell.metadata.tags = [*cell.metadata.get("tags", []), "hide-cell"]
    cell.metadata.mystnb = {"code_prompt_show": words, "code_prompt_hide": "Hide"}


def write_chapter(folder, page, targets, here=None):
    """Write a chapter's pages: the one that opens it, and one for each section.

    here: also the one whose cells run in it, with this version of the files that it loads.
    """
    if here:
        notebook = here_page.live_notebook(readers_notebook(page, set()), page, here)
        file = folder / here_page.FOLDER / Path(page).name
        file.parent.mkdir(exist_ok=True)
        file.write_text(nbformat.writes(notebook), encoding="utf-8")
    notebook = readers_notebook(page, targets)
    notebook.cells = noted(notebook.cells)
    opening, *rest = sections(notebook)
    chapter = Path(page).with_suffix("")
    opening.cells.insert(1, new_markdown_cell(run_buttons(page, here)))
    for cell in opening.cells:
        if cell.cell_type == "code" and not is_setup(cell):
            fold(cell, "Show what is imported")
    key = next(each.key for each in CHAPTERS if each.name == chapter.name)
    opening.cells += cover(key, rest, chapter.name)
    opening.cells.append(new_markdown_cell(begin(rest[0], chapter.name)))
    opening.cells.append(new_markdown_cell(list_of(rest, chapter.name)))
    notebook.cells = opening.cells
    (folder / page).write_text(nbformat.writes(notebook), encoding="utf-8")
    (folder / chapter).mkdir()
    for section in rest:
        file = folder / chapter / f"{section.slug}.ipynb"
        file.write_text(nbformat.writes(as_notebook(section, notebook)), encoding="utf-8")


def run_buttons(page, here):
    """Ways to run the chapter that the page shows. here: whether it runs in the browser, too."""
    address = f"../{here_page.FOLDER}/{Path(page).stem}.html"
    in_page = f'<a class="button primary" href="{address}">Run it here</a>' if here else ""
    colab = "button" if here else "button primary"
    buttons = (
        f'{in_page}<a class="{colab}" href="{notebook_address(page)}">Run it in Colab</a>'
        '<a class="button" href="../course/setup.html">Run it in JupyterLab</a>'
        f'<a class="button" href="{repository()}/blob/main/{page}">Notebook</a>'
    )
    return f'````{{raw}} html\n<p class="buttons">{buttons}</p>\n````'


def begin(section, folder):
    """A button that leads to the first section."""
    to = f"{folder}/{section.slug}.html"
    link = f'<a class="button primary" href="{to}">Begin: {html.escape(section.title)}</a>'
    return f'````{{raw}} html\n<p class="buttons begin">{link}</p>\n````'


def list_of(rest, folder):
    """A list of the chapter's sections, which the navigation shows, too."""
    names = "\n".join(f"{folder}/{section.slug}" for section in rest)
    return f"````{{toctree}}\n:caption: Sections\n:maxdepth: 1\n\n{names}\n````"


def about():
    """What README.md says of how the course is made and whom to ask, as a page of its own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "# How it is made\n\n" + text[text.index("## How it is made") :].split("\n", 2)[2]


def runs_here(page):
    """Whether a page is a chapter whose cells run in the browser."""
    return any(c.name == Path(page).stem and c.key in here_cells.CHAPTERS for c in CHAPTERS)


def contents(here=False):
    """The table of contents that the navigation shows: the chapters by part, then the texts."""
    parts = {
        part: [
            f"{c.number} · {c.title} <chapters/{c.name}>"
            for c in CHAPTERS
            if c.part == part and c.written
        ]
        for part in dict.fromkeys(chapter.part for chapter in CHAPTERS)
    }
    texts = ["about", *(page.removesuffix(".md") for page in pages() if page in TEXTS)]
    live = [f"{here_page.FOLDER}/{Path(page).stem}" for page in pages() if here and runs_here(page)]
    return "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```"
        for caption, names in {**parts, "In your browser": live, "Besides": texts}.items()
        if names
    )


def prepare(folder, here=None):
    """Write everything that Sphinx reads into the folder.

    here: also pages whose cells run, with this version of the files that they load.
    """
    targets = linked_cells()
    for name in "chapters", "course":
        (folder / name).mkdir()
    for page in pages():
        if page.endswith(".ipynb"):
            write_chapter(folder, page, targets, here if runs_here(page) else None)
        elif page not in INSTEAD:
            text = (ROOT / page).read_text(encoding="utf-8")
            (folder / page).write_text(relinked(text, page), encoding="utf-8")
    (folder / "about.md").write_text(relinked(about(), "README.md"), encoding="utf-8")
    (folder / "index.md").write_text(
        f"{landing(bool(here))}\n\n{contents(here)}\n", encoding="utf-8"
    )


def build(folder, builder="html", here=None):
    """Build the site into the folder. ValueError with Sphinx's warnings and errors, if any.

    builder: Sphinx's, such as singlehtml, which makes one page of all. here: the folder of what
    pages load whose cells run in them (`runtime.gather`); without it there are none.
    """
    with tempfile.TemporaryDirectory(prefix="cuda-course-site-") as scratch:
        source = Path(scratch).resolve() / "source"
        source.mkdir()
        version = runtime.version(here) if here else None
        prepare(source, version)
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
                builder,
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
    if here is not None:
        pages = Path(folder, here_page.FOLDER)
        shutil.copytree(here, pages / here_page.FILES / version)
        (pages / here_page.FILES / version / here_page.KEEPER).rename(pages / here_page.KEEPER)


def gathered(folder):
    """The folder, filled with what pages load whose cells run; None where it cannot be had."""
    try:
        runtime.gather(folder)
    except OSError as error:
        print(f"No chapter runs in its page: {error}", file=sys.stderr)
        return None
    return folder


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course.publish.site", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    folder = parser.parse_args().folder
    try:
        with tempfile.TemporaryDirectory(prefix="cuda-course-here-") as scratch:
            build(folder, here=gathered(Path(scratch)))
    except ValueError as error:
        sys.exit(
            f"{error}\nerror: the website has these problems (NOTEBOOK:120002 is line 2 of its "
            "12th cell)"
        )
    print(folder / "index.html")


if __name__ == "__main__":
    main()
