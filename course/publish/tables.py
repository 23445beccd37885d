"""What README.md, the instructors' guide and the start page show of the list of chapters and of
recorded results.

python -m course.publish.tables [--check]           (`make tables`)
"""

import argparse
import re
import sys

import nbformat

from course.chapters import CHAPTERS, START
from course.pictures import front
from course.pictures.chapter_map import ChapterMap, Evenings
from course.publish import platforms, records
from utils import files
from utils.files import ROOT

README = ROOT / "README.md"
GUIDE = ROOT / "course" / "instructors.md"
SETUP = ROOT / "course" / "setup.md"
EXERCISE_TITLE = re.compile(r"^### .+ \((\d+) min\)\s*$", re.MULTILINE)


def chapter_rows():
    """The rows of the README's table: number, title and below it what it brings, minutes."""
    for chapter in CHAPTERS:
        title = f"{chapter.title}, to come"
        if chapter.written:
            title = f"[{chapter.title}](chapters/{chapter.name}.ipynb)"
        yield f"| {chapter.number} | **{title}**<br>{chapter.brings} | {chapter.minutes} |"


def timing_rows():
    """The rows of the guide's table: chapter, its minutes, minutes of exercises among them."""
    for chapter in CHAPTERS:
        if chapter.written:
            link = f"[{chapter.title}](../chapters/{chapter.name}.ipynb)"
            yield f"| {link} | {chapter.minutes} | {exercise_minutes(chapter) or '–'} |"


def exercise_minutes(chapter):
    """The sum of the minutes that the titles of a chapter's exercises name."""
    cells = nbformat.read(chapter.path, as_version=4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return sum(int(minutes) for minutes in EXERCISE_TITLE.findall("\n".join(texts)))


def result():
    """The README's sentence on the race, from recorded results."""
    least, most = front.lead()
    _, whose = front.race_at()
    return (
        "It ends with a network's training step, written by hand in CUDA, that is "
        f"**{least:.1f} to {most:.1f} times faster**\nthan PyTorch's best mode, at equal accuracy "
        f"({whose}).\n"
    )


#: Colours of GitHub's text, light and dark: there the race's picture is a file, which knows no page
INKS = {"race.svg": "#1f2328", "race-dark.svg": "#f0f6fc"}


def race_file(ink):
    """The race's picture as a file of its own."""
    sheet = front.race_picture()
    size = f'width="{sheet.width:.0f}" height="{sheet.height:.0f}" style="color:{ink}" '
    return sheet.svg().replace("<svg ", f"<svg {size}", 1) + "\n"


#: File -> the markers of its tables, and what makes their rows
TABLES = {
    README: {"chapters": chapter_rows, "records": records.rows},
    SETUP: {"platforms": platforms.rows},
    GUIDE: {"timings": timing_rows},
}

MAPS = (START,)  # notebooks with what is made from the list of chapters


def with_table(text, marker, rows):
    """The text with the rows below the table's head between the comments that `marker` names."""
    table = re.compile(
        rf"(<!-- {marker}\b.*?-->\n(?:\|[^\n]*\n){{2}})(.*?)(?=<!-- /{marker} -->)", re.DOTALL
    )
    lines = "".join(f"{row}\n" for row in rows)
    new, count = table.subn(lambda match: match[1] + lines, text)
    if count != 1:
        raise ValueError(f"there must be one table marked {marker}, and there are {count}")
    return new


def with_result(text):
    """The text with the sentence on the race between its two comments."""
    block = re.compile(r"(<!-- race\b.*?-->\n).*?(?=<!-- /race -->)", re.DOTALL)
    new, count = block.subn(lambda match: match[1] + result(), text)
    if count != 1:
        raise ValueError(f"there must be one block marked race, and there are {count}")
    return new


def chapter_lines():
    """All chapters as links, a line a part: what the start page shows first of them."""
    parts = {}
    for chapter in CHAPTERS:
        name = f"{chapter.number} {chapter.title}"
        link = f"[{name}](../chapters/{chapter.name}.ipynb)" if chapter.written else name
        parts.setdefault(chapter.part, []).append(link)
    return "\n\n".join(f"**{part}:** {' · '.join(links)}" for part, links in parts.items())


def with_map(text):
    """The start page's JSON with its list of all chapters, and as the outputs of their cells their
    map, nothing done, and the way to the finale.
    """
    notebook = nbformat.v4.reads(text)
    (listed,) = [cell for cell in notebook.cells if cell.id == "chapters"]
    listed.source = chapter_lines()
    shown = {"map": ChapterMap(set(), set()), "evenings": Evenings("../chapters/")}
    for cell in notebook.cells:
        if cell.id in shown:
            (output,) = cell.outputs
            made = shown[cell.id]
            output.data = {"text/plain": repr(made), "text/html": made._repr_html_()}
    return nbformat.v4.writes(notebook) + "\n"


def wanted_texts():
    """{path: the text as it should be} of all files that are written here."""
    texts = {ROOT / "assets" / name: race_file(ink) for name, ink in INKS.items()}
    for path, tables in TABLES.items():
        texts[path] = path.read_text(encoding="utf-8")
        for marker, rows in tables.items():
            texts[path] = with_table(texts[path], marker, rows())
    texts |= {path: with_map(path.read_text(encoding="utf-8")) for path in MAPS}
    if README in texts:
        texts[README] = with_result(texts[README])
    return texts


def outdated():
    """{path: the text as it should be} of the files that are not so."""
    return files.outdated(wanted_texts())


def main(arguments=None):
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course.publish.tables")
    parser.add_argument("--check", action="store_true", help="write nothing, name the files")
    check = parser.parse_args(arguments).check
    wanted = outdated()
    for path, text in wanted.items():
        print(path.relative_to(ROOT), "is outdated: make tables" if check else "written")
        if not check:
            files.write_whole(path, text)
    return 1 if check and wanted else 0


if __name__ == "__main__":
    sys.exit(main())
