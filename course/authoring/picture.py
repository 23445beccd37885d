"""A new picture: a function that draws, a cell that shows it, a test that looks at it.

A function that is there already gets its cell alone.
"""

import re
from collections import Counter
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


def new_picture(chapter: Chapter, module: str | None, name: str, after: str):
    """Write the skeleton of `course.pictures.MODULE.NAME`, shown in the chapter.

    module: in course/pictures; None for the one that `module_of` finds. after: the id of a cell.
    Returns the files, each with what it got.
    """
    notebook = book.read(chapter.path)
    module = module or module_of(chapter, notebook, name)
    path = FOLDER / f"{module}.py"
    text = path.read_text(encoding="utf-8") if path.is_file() else EMPTY.format(title=chapter.title)
    cell = cell_of(notebook, module, name)
    above = book.insert(notebook, [cell], book.behind_answer(notebook, after))
    if name in code.names_in(text):
        book.write(notebook, chapter.path)
        return {path: f"has {name} already", chapter.path: in_words([cell], above)}
    written(path, code.with_imports(text.rstrip() + PICTURE.format(name=name), IMPORTS))
    book.write(notebook, chapter.path)
    test = test_of(module)
    words = EMPTY_TEST.format(title=chapter.title)
    text = test.read_text(encoding="utf-8") if test.is_file() else words
    added = text.rstrip() + TEST.format(name=name, module=module)
    written(test, code.with_imports(added, f"from course.pictures import {module}\n"))
    shown = in_words([cell], above)
    return {path: f"the function {name}", chapter.path: shown, test: "a test that fails"}


def module_of(chapter: Chapter, notebook, name: str) -> str:
    """The module of a picture of this chapter.

    The one that has the function, among those that the chapter shows pictures of; else the
    chapter's own, and where it has none yet, the one of which it shows most.
    """
    code_cells = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    imported = re.findall(r"^from course\.pictures import (\w+)", code_cells, re.MULTILINE)
    shown = [module for module, _ in Counter(imported).most_common()]
    known = [module for module in (chapter.key, *shown) if (FOLDER / f"{module}.py").is_file()]
    having = [
        module
        for module in known
        if name in code.names_in((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    ]
    return [*having, *known, chapter.key][0]


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
