"""The floors of the house: which room imports which, drawn from the imports themselves.

    python -m tests.floors            writes assets/floors.svg and the rooms in ARCHITECTURE.md
    python -m tests.floors --check    only says which of the two is not as it should be

A room is a package or a module right below `course` or `utils`. It stands above all rooms that it
imports. An arrow that follows from others is left out, and so are those from `course` to `utils`:
there are many, and none goes back.
"""

import argparse
import ast
import sys
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import grimp

from utils import files
from utils.files import ROOT
from utils.plots.svg import Drawing

HOUSES = ("course", "utils")  # from the upper one down
PICTURE = ROOT / "assets" / "floors.svg"
PAGE = ROOT / "ARCHITECTURE.md"
START, END = "<!-- rooms: written by `python -m tests.floors` -->\n", "<!-- /rooms -->"

WIDTH, FLOOR, GAP = 860, 62, 46  # pixels: the sheet, from floor to floor, between the houses
LONG, HIGH = 148, 30  # a room
COLOURS = {"course": "#E69F00", "utils": "#56B4E9"}


def rooms():
    """{room: the rooms that it imports}, such as "utils.check": {"utils.plots"}."""
    graph = grimp.build_graph(*HOUSES, cache_dir=None)
    found = {}
    for module in graph.modules:
        room = room_of(module)
        if room:
            imported = graph.find_modules_directly_imported_by(module)
            others = {room_of(other) for other in imported} - {room, None}
            found.setdefault(room, set()).update(others)
    return found


def room_of(module):
    """ "utils.check" for utils.check.close; None for a house's own `__init__`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if len(parts) > 1 else None


def house_of(room):
    return room.partition(".")[0]


def direct(imports):
    """(room, imported) of each arrow within a house that does not follow from others."""
    below = {}
    for room in TopologicalSorter(imports).static_order():
        below[room] = imports[room].union(*(below[other] for other in imports[room]))
    for room, others in sorted(imports.items()):
        for other in sorted(others):
            implied = any(other in below[third] for third in others)
            if house_of(room) == house_of(other) and not implied:
                yield room, other


def floors(imports, house):
    """The rooms of a house from the top floor down, a list a floor.

    A room that others use stands right below the lowest of these.
    """
    own = {room: set() for room in imports if house_of(room) == house}
    for room, others in imports.items():
        own.get(room, set()).update(other for other in others if house_of(other) == house)
    order = list(TopologicalSorter(own).static_order())
    height = {}
    for room in order:
        height[room] = 1 + max((height[other] for other in own[room]), default=-1)
    for room in reversed(order):
        users = [height[user] for user in own if room in own[user]]
        height[room] = min(users, default=height[room] + 1) - 1
    top = max(height.values())
    return [sorted(room for room in own if height[room] == n) for n in range(top, -1, -1)]


def placed(storeys, arrows):
    """{room: x of its middle}: in each floor in the order of what uses it."""
    x = {}
    for storey in storeys:
        wish = {}
        for room in storey:
            users = [x[user] for user, used in arrows if used == room and user in x]
            wish[room] = sum(users) / len(users) if users else WIDTH / 2
        step = WIDTH / len(storey)
        for n, room in enumerate(sorted(storey, key=lambda room: (wish[room], room))):
            x[room] = (n + 0.5) * step
    return x


def picture():
    """The floors as a Drawing."""
    imports = rooms()
    arrows = list(direct(imports))
    houses = {house: floors(imports, house) for house in HOUSES}
    high = sum(map(len, houses.values())) * FLOOR + len(HOUSES) * GAP
    sheet = Drawing(WIDTH, high, alt=description(houses))
    sheet.box(0, 0, WIDTH, high, fill="#ffffff")
    notebooks = "chapters (notebooks) and tests may import every room"
    sheet.text(WIDTH / 2, GAP / 2, notebooks, size=14, colour="#222222")
    top = GAP
    for house, storeys in houses.items():
        draw_house(sheet, house, storeys, arrows, top)
        top += len(storeys) * FLOOR + GAP
    for upper, lower in pairwise(HOUSES):
        between = GAP + len(houses[upper]) * FLOOR + GAP / 2
        words = f"{upper} imports {lower}; {lower} never imports {upper}"
        sheet.text(WIDTH / 2, between, words, size=14, colour="#222222")
    return sheet


def draw_house(sheet, house, storeys, arrows, top):
    """The floors of one house below `top`, arrows first, so that rooms cover them."""
    x = placed(storeys, arrows)
    y = {room: top + n * FLOOR + HIGH for n, storey in enumerate(storeys) for room in storey}
    for user, used in arrows:
        if user in x:
            start, end = (x[user], y[user] + HIGH / 2), (x[used], y[used] - HIGH / 2)
            sheet.arrow(*start, *end, colour="#777777", thick=1.3)
    for room, middle in x.items():
        corner = middle - LONG / 2, y[room] - HIGH / 2
        sheet.box(*corner, LONG, HIGH, fill=COLOURS[house], rx=5)
        sheet.text(middle, y[room], room, size=14, colour="#050505")


def description(houses):
    """The picture in words: the floors from the top down."""
    storeys = [storey for house in HOUSES for storey in houses[house]]
    lines = "; ".join(", ".join(storey) for storey in storeys)
    return f"Rooms of the repository by floors, from the top down, each imports lower ones: {lines}"


def source_of(room):
    """The file whose docstring says what a room is for."""
    folder = ROOT / room.replace(".", "/")
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def purpose(path: Path):
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first.split(". ")[0].rstrip(".:").replace("``", "`")


def table():
    """The rows of ARCHITECTURE.md: each room, from the top floor down, and what it is for."""
    imports = rooms()
    yield "| room | what it is for |"
    yield "|---|---|"
    for house in HOUSES:
        for room in sum(floors(imports, house), []):
            path = source_of(room).relative_to(ROOT)
            yield f"| [`{room}`]({path}) | {purpose(ROOT / path)} |"


def wanted():
    """{path: text as it should be} of the two files."""
    sheet = picture()
    size = f'width="{sheet.width}" height="{sheet.height}" '
    drawn = sheet.svg().replace("<svg ", f"<svg {size}", 1) + "\n"
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    _, after = rest.split(END)
    rows = "".join(f"{row}\n" for row in table())
    return {PICTURE: drawn, PAGE: f"{before}{START}{rows}{END}{after}"}


def outdated():
    """{path: text as it should be} of those of the two files that are not so."""
    return files.outdated(wanted())


def main(arguments=None):
    """Command line; returns the exit status: 1 where --check finds something."""
    parser = argparse.ArgumentParser(prog="python -m tests.floors")
    parser.add_argument("--check", action="store_true", help="write nothing, say what is not so")
    check = parser.parse_args(arguments).check
    found = outdated()
    for path, text in found.items():
        if not check:
            files.write_whole(path, text)
        print("out of date:" if check else "wrote", path.relative_to(ROOT))
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
