"""The course's public address stands in one place, and one command writes it everywhere."""

import re

import nbformat
import pytest

from course.publish import address, frame
from tests.processes import completed
from utils.setup import colab

ROOT = address.ROOT
SLUG = colab.repository().removeprefix("https://github.com/")
NEW = "https://github.com/ada-lovelace/gpu.course"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of what the command writes to, and of one notebook without links above it and
    with another set-up cell.
    """
    (tmp_path / "course").mkdir()
    for name in ("pyproject.toml", *address.TEXTS):
        (tmp_path / name).write_text((ROOT / name).read_text())
    for path in (ROOT / "course" / "index.ipynb", ROOT / "chapters" / "05_first_kernels.ipynb"):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(path.read_text())
    notebook = nbformat.read(copy, 4)
    notebook.cells = [cell for cell in notebook.cells if cell.id != frame.TOP]
    next(cell for cell in notebook.cells if cell.id == "setup").source = "import numpy"
    nbformat.write(notebook, copy)
    for module in (address, frame):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr("course.chapters.FOLDER", tmp_path / "chapters")
    monkeypatch.setattr("course.chapters.START", tmp_path / "course" / "index.ipynb")
    monkeypatch.setattr(colab, "ROOT", tmp_path)
    return tmp_path


def outputs_of(path):
    """{cell id: outputs} of a notebook, but for the cells of its frame."""
    frames = {frame.TOP, frame.COLAB, frame.NAVIGATION}
    cells = nbformat.read(path, 4).cells
    return {cell.id: cell.get("outputs") for cell in cells if cell.id not in frames}


def test_one_command_sets_it_everywhere(project, capsys):
    before = {path: path.read_text() for path in project.rglob("*") if path.is_file()}
    outputs = outputs_of(project / "chapters" / "05_first_kernels.ipynb")
    address.main([NEW])
    assert "2 of 2 notebooks changed" in capsys.readouterr().out
    for path, text in before.items():
        after = path.read_text()
        assert SLUG not in after, path.name
        if path.suffix != ".ipynb":
            moved = text.replace(
                address.on_pages(SLUG), "https://ada-lovelace.github.io/gpu.course/"
            )
            assert after == moved.replace(SLUG, "ada-lovelace/gpu.course"), path.name
    for path in address.notebooks():
        cells = nbformat.read(path, 4).cells
        (setup,) = [cell.source for cell in cells if "setup" in cell.metadata.get("tags", [])]
        assert setup == frame.SETUP
        (brings,) = [cell.source for cell in cells if cell.id == frame.COLAB]
        clone = f"git clone -q --depth 1 --branch {colab.tag()} {{address}}\n"
        assert (
            clone in brings and f'address = "{NEW}"' in brings and '"/content/gpu.course"' in brings
        )
        place = path.relative_to(project).as_posix()
        assert cells[1].source.endswith(
            "(https://colab.research.google.com/github/ada-lovelace/gpu.course/blob/"
            f"{colab.tag()}/{place})"
        )
    assert outputs_of(path) == outputs
    address.main([])
    assert "0 of 2 notebooks changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "url",
    [
        "https://gitlab.com/ada/course",
        "git@github.com:ada/course.git",
        "https://github.com/ada",
        "x",
    ],
)
def test_an_address_that_colab_cannot_open_is_refused(project, url):
    with pytest.raises(ValueError, match="https://github.com/OWNER/NAME"):
        address.main([url])
    assert SLUG in (project / "README.md").read_text()


def test_the_ending_of_a_clone_address_is_dropped(project):
    address.main([f"{NEW}.git"])
    assert colab.repository() == NEW


def test_nothing_else_holds_it():
    """What the command does not know of would be forgotten."""
    found = completed(["git", "grep", "--untracked", "-lF", f"/{SLUG}"], cwd=ROOT)
    if found.returncode > 1:
        pytest.skip("not a git checkout")
    known = {
        "pyproject.toml",
        *address.TEXTS,
        *(path.relative_to(ROOT).as_posix() for path in address.notebooks()),
    }
    assert set(found.stdout.split()) <= known


def test_make_knows_the_command():
    dry = completed(["make", "-n", "address", f"URL={NEW}"], cwd=ROOT, check=True)
    assert re.search(rf"python -m course\.publish\.address {re.escape(NEW)}$", dry.stdout, re.M)
