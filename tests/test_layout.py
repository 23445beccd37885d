"""Folders keep to their jobs: imports go one way, all are declared, nothing knows the author's
machine.
"""

import ast
import functools
import importlib.metadata
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from packaging.requirements import Requirement

from course.chapters import CHAPTERS
from tests import hygiene
from tests.processes import completed
from utils.files import ROOT

PACKAGE = ROOT / "course" / "extensions" / "package"
OURS = {"chapters", "course", "tests", "utils"}
BUILT = {"polynomial_op"}  # a package that a chapter makes, and may have been unpacked by a test
MAY_IMPORT = {
    "utils": {"utils"},
    "course": {"course", "utils"},
    "chapters": {"course", "utils"},
    "tests": {"course", "tests", "utils"},
}

PICTURES = [
    path
    for chapter in CHAPTERS
    if (path := ROOT / "course" / "pictures" / f"{chapter.key}.py").is_file()
]


def sources(folder):
    """(path, Python source) of every module and notebook cell in the folder, magics turned into
    calls.
    """
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.is_relative_to(PACKAGE):  # a project of its own, with its own dependencies
            continue
        yield path, path.read_text(encoding="utf-8")
    for path in sorted((ROOT / folder).rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        for cell in hygiene.read(path).cells:
            if cell.cell_type == "code":
                yield path, TransformerManager().transform_cell(cell.source)


@functools.cache
def imports(folder):
    """(path, name) of each module that a source of the folder imports, top-level or inside a
    function.
    """
    found = set()
    for path, source in sources(folder):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found |= {(path, alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((path, node.module))
    return found


@pytest.mark.parametrize("folder", sorted(OURS))
def test_imports_go_one_way(folder):
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path, name in imports(folder)
        if name.split(".")[0] in OURS - MAY_IMPORT[folder]
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", sorted(OURS))
def test_every_import_is_declared(folder):
    """What is imported is among the dependencies, not there by luck because another package needs
    it.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {"tests": ["test", "site"], "course": ["site"]}.get(
        folder, []
    )  # course/publish makes the website
    lines = project["dependencies"] + [
        line for extra in extras for line in project["optional-dependencies"][extra]
    ]
    declared = {canonical(Requirement(line).name) for line in lines}
    providers = importlib.metadata.packages_distributions()
    local = {path.stem for path in (ROOT / "tests").rglob("*.py")} if folder == "tests" else set()
    undeclared = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path, name in imports(folder)
        if (top := name.split(".")[0]) not in OURS | BUILT | local
        and top in providers
        and not declared & {canonical(each) for each in providers[top]}
    ]
    assert undeclared == []


@pytest.mark.parametrize("path", PICTURES)
def test_a_chapters_pictures_have_a_test(path):
    name = rf"course\.pictures(?:\.| import [^\n]*\b){path.stem}\b"
    tests = (ROOT / "tests").rglob("test_*.py")
    assert any(re.search(name, test.read_text(encoding="utf-8")) for test in tests), (
        f"tests/course/pictures has no test that imports {path.stem}"
    )


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_installed_packages_are_the_ones_of_this_folder(tmp_path):
    """Every module can be imported from anywhere, as notebooks in chapters/ do, and comes from
    here.
    """
    code = """
import importlib, json, pkgutil, course, utils
names = [found.name for package in (course, utils)
         for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
print(json.dumps({name: importlib.import_module(name).__file__ for name in names}))
"""
    run = completed([sys.executable, "-c", code], cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    files = json.loads(run.stdout)
    assert [name for name, path in files.items() if not Path(path).is_relative_to(ROOT)] == []


def tracked_texts():
    """(path, text) of every text file under version control but the notebooks (see
    test_notebooks.py).
    """
    listing = completed(["git", "ls-files", "-z"], cwd=ROOT)
    if listing.returncode:
        pytest.skip("not a git checkout")
    for name in listing.stdout.split("\0"):
        path = ROOT / name
        if path.is_file() and path.suffix != ".ipynb":
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_no_file_names_a_path_of_the_machine_it_was_written_on():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in tracked_texts()
        if path.name not in ("hygiene.py", "test_notebooks.py")  # which hold the examples
        for number, line in enumerate(text.splitlines(), 1)
        if hygiene.LOCAL_PATH.search(line) or f"{ROOT}/" in line
    ]
    assert found == []
