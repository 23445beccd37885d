"""Nothing is left of a skeleton: no blank for a person to fill, no picture that nobody shows."""

import ast
import functools

import pytest

from course.authoring import blanks
from course.chapters import WRITTEN, notebooks
from course.recording.cells import statements_of
from tests import hygiene
from utils.files import ROOT

PICTURES = ROOT / "course" / "pictures"


def written_by_people():
    """The files of chapters that skeletons begin."""
    files = [*blanks.LISTS, blanks.ANSWERS, *notebooks(), *blanks.KERNELS.rglob("*.cu")]
    for folder in (ROOT / "course" / "exercises", PICTURES, blanks.PICTURES):
        files += folder.glob("*.py")
    return sorted(files)


LEFT = "a person has to write these, each line says what:"


@pytest.mark.parametrize("chapter", WRITTEN)
def test_nothing_of_a_chapter_is_left_to_write(chapter):
    found = "\n".join(blanks.in_files(blanks.files_of(chapter)))
    assert not found, f"{LEFT}\n{found}"


def test_nothing_is_left_to_write_in_what_is_no_chapters_own():
    own = {path for chapter in WRITTEN for path in blanks.files_of(chapter)}
    found = "\n".join(blanks.in_files(sorted({*written_by_people()} - own)))
    assert not found, f"{LEFT}\n{found}"


def test_what_is_looked_through_for_one_chapter_is_looked_through_for_all():
    for chapter in WRITTEN:
        own = blanks.files_of(chapter)
        assert chapter.path in own and set(own) <= set(written_by_people())


# ---- pictures that nobody shows


def used(code):
    """Names that a piece of code takes out of modules, or imports from them."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def defined(code):
    """The public functions of a module, and the names that it uses itself."""
    tree = ast.parse(code)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    inside = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name for name in functions if not name.startswith("_")}, inside


def unshown(modules, elsewhere):
    """MODULE.FUNCTION of those that neither their own module nor other code uses.

    modules: {name: code}. elsewhere: code of cells and of other modules.
    """
    names = {name for code in [*elsewhere, *modules.values()] for name in used(code)}
    found = []
    for module, code in modules.items():
        functions, inside = defined(code)
        found += [f"{module}.{name}" for name in sorted(functions - names - inside)]
    return found


@functools.cache
def modules():
    """{name: code} of course/pictures."""
    paths = [path for path in sorted(PICTURES.glob("*.py")) if path.stem != "__init__"]
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


@functools.cache
def code_of_cells(path):
    """The Python of a notebook's cells, as far as it is Python."""
    cells = [cell for cell in hygiene.read(path).cells if cell.cell_type == "code"]
    return "\n".join(
        ast.unparse(each.node) for cell in cells for each in statements_of(cell.source)
    )


@functools.cache
def not_shown():
    """MODULE.FUNCTION of the pictures that no cell of any chapter and no other code calls."""
    paths = (ROOT / "course").rglob("*.py")
    others = [path.read_text(encoding="utf-8") for path in paths if path.parent != PICTURES]
    return unshown(modules(), [*map(code_of_cells, notebooks()), *others])


def drawn_by(chapter):
    """The modules of course/pictures that a chapter's cells take pictures from, and its own."""
    return {chapter.key, *used(code_of_cells(chapter.path))} & modules().keys()


@pytest.mark.parametrize("chapter", WRITTEN)
def test_every_picture_is_shown(chapter):
    own = drawn_by(chapter)
    lost = [name for name in not_shown() if name.partition(".")[0] in own]
    assert not lost, f"{', '.join(lost)} of course/pictures: show it in a cell, or delete it"


def test_every_picture_of_a_module_that_no_chapter_names_is_shown():
    of_chapters = set().union(*map(drawn_by, WRITTEN))
    assert [name for name in not_shown() if name.partition(".")[0] not in of_chapters] == []


def test_a_picture_that_nobody_shows_is_found():
    module = (
        "def shown(): return _part()\ndef _part(): ...\ndef inner(): ...\n"
        "def outer(): inner()\ndef between(): 'something between two'\n"
    )
    cells = ["pictures.shown()", "from course.pictures.a import outer", "# between"]
    assert unshown({"a": module}, cells) == ["a.between"]
    assert unshown({"a": module}, [*cells, "a.between()"]) == []


def test_a_blank_is_found_with_what_belongs_there():
    assert blanks.in_text("x.py:3", 'title="TODO: a title",') == ['x.py:3: TODO: a title",']
    assert blanks.in_text("x.py:3", "TODOS, todo") == []
