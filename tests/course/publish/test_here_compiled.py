"""What Python has compiled in a page is taken by the next start, and nothing else is."""

import os
import sys
import zipfile

from tests.processes import completed
from utils.files import ROOT

VISIT = """import os
import sys
from course.publish.here import compiled

library, root, packed = sys.argv[1:]
sys.dont_write_bytecode = False
sys.path[:0] = [library, root]
compiled.unpack(library)
import in_library, own.whole

with open(f"{root}/later.py", "w") as file:
    file.write("")
os.utime(f"{root}/later.py", (compiled.unpacked_at + 60,) * 2)
import later

steps = compiled.packing(library, (root,), f"{root}/fonts.json")
try:
    while True:
        next(steps)
except StopIteration as end:
    if end.value:
        with open(packed, "wb") as file:
            file.write(end.value)
print(in_library.SAID, own.whole.SAID, bool(os.path.exists(packed)))
"""


def visit(library, root, packed):
    """What modules say that Python imports, and whether it has packed anything."""
    command = [sys.executable, "-c", VISIT, library, root, packed]
    return completed(command, cwd=ROOT, check=True).stdout.split()


def write_sources(library, root, said):
    """Write modules, in an archive and in a folder, in which nothing is compiled."""
    with zipfile.ZipFile(library, "a") as archive:
        if "in_library.py" not in archive.namelist():
            archive.writestr("in_library.py", f"SAID = {said!r}")
    (root / "own").mkdir(parents=True)
    (root / "own" / "whole.py").write_text(f"SAID = {said!r}")


def test_the_next_start_takes_what_the_first_has_compiled(tmp_path):
    library, packed = tmp_path / "library.zip", tmp_path / "packed.zip"
    root = tmp_path / "root"
    write_sources(library, root, "first")
    assert visit(library, root, packed) == ["first", "first", "True"]
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
    assert "in_library.py" in names and "in_library.pyc" in names
    assert any(name.startswith("kept/") and "/own/__pycache__/whole." in name for name in names)
    assert not any("later" in name for name in names), "a learner wrote it"
    assert not any("fonts" in name for name in names), "there are none"

    root.rename(tmp_path / "gone")
    write_sources(packed, root, "second")  # with a date of its own, as a page unpacks them
    again = tmp_path / "again.zip"
    assert visit(packed, root, again) == ["first", "first", "False"], "it was compiled again"


def test_a_list_of_fonts_is_kept_where_it_was_made_anew(tmp_path):
    library, packed, root = tmp_path / "library.zip", tmp_path / "packed.zip", tmp_path / "root"
    write_sources(library, root, "first")
    fonts = root / "fonts.json"
    fonts.write_text("as it came")
    visit(library, root, packed)
    assert fonts_of(packed) == []
    os.utime(fonts, (2**32,) * 2)
    visit(library, root, packed)
    assert fonts_of(packed) == [b"as it came"]


def fonts_of(packed):
    """The lists of fonts in an archive."""
    with zipfile.ZipFile(packed) as archive:
        return [archive.read(name) for name in archive.namelist() if "fonts.json" in name]
