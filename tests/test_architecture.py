"""ARCHITECTURE.md says what is there: the floors, the rooms, the stops of its walks."""

import ast
import re

import pytest

from tests import floors
from tests.test_contributing import is_path, there
from utils.files import ROOT

PAGE = floors.PAGE.read_text(encoding="utf-8")
STOPS = re.findall(r"^\| `([\w/.]+\.py)`: `(\w+)` \|", PAGE, re.M)


def defined(path):
    """Names of the functions and classes of a file, methods among them."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_picture_and_table_are_those_of_the_imports():
    files = [path.name for path in floors.outdated()]
    assert files == [], "`.venv/bin/python -m tests.floors` writes them"


def test_a_check_writes_nothing_and_names_what_is_out_of_date(monkeypatch, tmp_path, capsys):
    path = tmp_path / "floors.svg"
    monkeypatch.setattr(floors, "ROOT", tmp_path)
    monkeypatch.setattr(floors, "wanted", lambda: {path: "today"})
    assert floors.main(["--check"]) == 1 and not path.exists()
    assert floors.main([]) == 0 and path.read_text() == "today"
    assert floors.main(["--check"]) == 0
    assert capsys.readouterr().out == "out of date: floors.svg\nwrote floors.svg\n"


def test_every_stop_of_a_walk_is_there():
    assert len(STOPS) > 20
    assert [stop for stop in STOPS if stop[1] not in defined(stop[0])] == []


def test_every_path_is_there():
    by_hand = re.sub(f"{floors.START}.*{floors.END}", "", PAGE, flags=re.DOTALL)
    paths = [code for code in re.findall(r"`([^`\n]+)`", by_hand) if is_path(code)]
    paths += [link for link in re.findall(r"\]\(([^)]+)\)", by_hand) if "://" not in link]
    assert len(paths) > 40
    assert [path for path in paths if not there(path)] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_it_is_named_where_people_look(page):
    assert "](ARCHITECTURE.md)" in (ROOT / page).read_text(encoding="utf-8")


# ---- the floors themselves: a imports b and c, b imports c

IMPORTS = {
    "course.a": {"course.b", "course.c", "utils.d"},
    "course.b": {"course.c"},
    "course.c": {"utils.d"},
    "course.e": set(),
    "utils.d": set(),
}


def test_what_follows_from_other_arrows_is_left_out():
    assert list(floors.direct(IMPORTS)) == [("course.a", "course.b"), ("course.b", "course.c")]


def test_a_room_stands_above_what_it_imports():
    assert floors.floors(IMPORTS, "course") == [
        ["course.a"],
        ["course.b"],
        ["course.c", "course.e"],
    ]
    assert floors.floors(IMPORTS, "utils") == [["utils.d"]]


def test_the_rooms_are_those_of_the_folders():
    found = floors.rooms()
    assert "utils.files" in found["utils.cpu"] and found["utils.files"] == set()
    for room in found:
        assert floors.source_of(room).is_file(), room
