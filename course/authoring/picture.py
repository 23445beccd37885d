"""A new picture: a function that draws, a cell that shows it, a test that looks at it."""

from pathlib import Path

from course.authoring import book, code
from course.authoring.exercise import in_words
from course.chapters import Chapter
from utils.files import ROOT, write_whole

FOLDER = ROOT / "course" / "pictures"
TESTS = ROOT / "tests" / "course" / "pictures"
EMPTY = '"""The pictures of the chapter {title}."""\n'
PICTURE = '''


def {name}():
    """TODO: what the picture shows, in a sentence."""
    sheet = Drawing(720, 120, alt="TODO: what it shows, for who cannot see it")
    sheet.heading(0, 16, "TODO: what is drawn")
    sheet.box(1, 32, 718, 60, line=GREY, rx=8)
    return sheet
'''
IMPORTS = "from utils.plots.svg import GREY, Drawing\n"
EMPTY_TEST = '"""The pictures of the chapter {title} show what is so."""\n'
TEST = """


def test_{name}_shows_what_is_so():
    sheet = {module}.{name}()
    assert "TODO: what must be seen: counts, names, colours" in sheet.alt
"""


def new_picture(chapter: Chapter, module: str, name: str, after: str | None = None):
    """Write the skeleton of `course.pictures.MODULE.NAME`, shown in the chapter.

    module: the chapter's key, or another one in course/pictures. after: the id of a cell. Returns
    the files, each with what it got.
    """
    path = FOLDER / f"{module}.py"
    text = path.read_text(encoding="utf-8") if path.is_file() else EMPTY.format(title=chapter.title)
    if name in code.names_in(text):
        raise ValueError(f"{path.relative_to(ROOT)} has a {name} already")
    notebook = book.read(chapter.path)
    cell = cell_of(notebook, module, name)
    book.insert(notebook, [cell], after)
    written(path, code.with_imports(text.rstrip() + PICTURE.format(name=name), IMPORTS))
    book.write(notebook, chapter.path)
    test = test_of(module)
    words = EMPTY_TEST.format(title=chapter.title)
    text = test.read_text(encoding="utf-8") if test.is_file() else words
    added = text.rstrip() + TEST.format(name=name, module=module)
    written(test, code.with_imports(added, f"from course.pictures import {module}\n"))
    return {path: f"the function {name}", chapter.path: in_words([cell]), test: "a test that fails"}


def written(path: Path, text: str) -> None:
    """Write a module, its imports in order."""
    write_whole(path, text)
    code.tidied(path)


def cell_of(notebook, module: str, name: str):
    """The cell that shows a picture; it imports the module under a name that is free."""
    id = f"{name.replace('_', '-')}-picture"
    for alias, brings in (
        (module, f"from course.pictures import {module}"),
        ("pictures", f"from course.pictures import {module} as pictures"),
    ):
        if any(brings in cell.source.split("\n") for cell in notebook.cells):
            return book.code_cell(id, f"{alias}.{name}()")
    alias = "drawn" if book.imports(notebook, module) else module
    renamed = f" as {alias}" if alias != module else ""
    return book.code_cell(id, f"from course.pictures import {module}{renamed}\n\n{alias}.{name}()")


def test_of(module: str) -> Path:
    """The file with the tests of a module's pictures, there or to be."""
    names = (f"test_{module}_pictures.py", f"test_{module}.py")
    there = [TESTS / name for name in names if (TESTS / name).is_file()]
    return there[0] if there else TESTS / names[0]
