"""Nothing is left of a skeleton: no blank for a person to fill, no picture that nobody shows."""

import ast
import re

from course.authoring import TODO
from course.chapters import notebooks
from course.recording.cells import statements_of
from tests import hygiene
from utils.files import ROOT

BLANK = re.compile(rf"\b{TODO}\b.*")
PICTURES = ROOT / "course" / "pictures"


def written_by_people():
    """The files of chapters that skeletons begin."""
    course, tests = ROOT / "course", ROOT / "tests" / "course" / "pictures"
    modules = [course / "chapters.py", course / "reading.md", course / "glossary.md"]
    for folder in (course / "exercises", PICTURES, tests):
        modules += folder.glob("*.py")
    return sorted(modules)


def blanks(where, text):
    """The blanks of a text, a line each."""
    return [f"{where}: {blank}" for blank in BLANK.findall(text)]


def test_nothing_is_left_to_write():
    found = []
    for path in written_by_people():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found += blanks(f"{path.relative_to(ROOT)}:{number}", line)
    for path in notebooks():
        for cell in hygiene.read(path).cells:
            found += blanks(f"{path.relative_to(ROOT)}, cell {cell.id}", cell.source)
    assert found == [], "a person has to write these: the line says what"


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


def code_of_cells():
    """The Python of all cells of all notebooks, as far as it is Python."""
    for path in notebooks():
        for cell in hygiene.read(path).cells:
            if cell.cell_type == "code":
                yield from map(ast.unparse, (each.node for each in statements_of(cell.source)))


def test_every_picture_is_shown():
    modules = {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted(PICTURES.glob("*.py"))
        if path.stem != "__init__"
    }
    others = [
        path.read_text(encoding="utf-8")
        for path in (ROOT / "course").rglob("*.py")
        if path.parent != PICTURES
    ]
    assert unshown(modules, [*code_of_cells(), *others]) == [], (
        "no cell calls these functions of course/pictures: show them in a chapter, or delete them"
    )


def test_a_picture_that_nobody_shows_is_found():
    module = (
        "def shown(): return _part()\ndef _part(): ...\ndef inner(): ...\n"
        "def outer(): inner()\ndef between(): 'something between two'\n"
    )
    cells = ["pictures.shown()", "from course.pictures.a import outer", "# between"]
    assert unshown({"a": module}, cells) == ["a.between"]
    assert unshown({"a": module}, [*cells, "a.between()"]) == []


def test_a_blank_is_found_with_what_belongs_there():
    assert blanks("x.py:3", 'title="TODO: a title",') == ['x.py:3: TODO: a title",']
    assert blanks("x.py:3", "TODOS, todo") == []
