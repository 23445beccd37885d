"""A new rung of the matmul ladder: its file, its cells, and the numbers of all rungs behind it."""

import re
from pathlib import Path

from course.authoring import book, code
from course.authoring.exercise import in_words
from course.authoring.picture import written
from course.chapters import CHAPTERS, Chapter
from utils.files import ROOT, write_whole

#: The chapters through which rungs are counted, in their order
LADDER = "matmul", "tensor_cores"
MATMUL = ROOT / "course" / "kernels" / "matmul"
KERNELS = MATMUL / "kernels"
PICTURES = ROOT / "course" / "pictures" / "matmul.py"
TESTS = ROOT / "tests" / "course" / "kernels" / "matmul" / "test_float32_kernels.py"
#: Pages whose links bear the headings of rungs
PAGES = tuple(ROOT / "course" / name for name in ("glossary.md", "instructors.md"))
HEADING = re.compile(r"^(#+) .*\b[Rr]ung (\d+)\b", re.MULTILINE)
#: "rung 9", "Rungs 10 to 14"; no name such as rung_9
MENTION = re.compile(r"\b[Rr]ungs? \d+(?:(?:,| to| and| or) \d+)*(?!\w)")
LAST = re.compile(r"\d+$")
IN_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten) (?:(?:more|other|first|last) )?rungs\b",
    re.IGNORECASE,
)
NEIGHBOUR = re.compile(r"\bnext rung\b|\brung (?:before|above|below)\b")
CLIMB = re.compile(r'climb\((?:ladder, )?"(\w+)"')
#: A launch whose sizes stand there as numbers, and what stands in the place of another
LAUNCH = re.compile(r"launcher\(.+?, (tile=\(\d.*)\)$", re.MULTILINE)
GUESSED = "tile=(128, 128), threads=256"
SIZES = "  # TODO: its tile, its threads"
TITLE = """\
{level} Rung {number}: TODO: a title

TODO: what differs from rung {before}, and why that helps. *Predict* the percent of cuBLAS."""
CHANGE = """\
from utils import source

source.change({folder} / "{old}.cu", {folder} / "{name}.cu")"""
CLIMB_CELL = """\
def {name}():
    return launcher({folder} / "{name}.cu", {how}){blank}


ladder.climb("{name}", make={name})"""


def new_rung(chapter: Chapter, name: str, after: str, old: str | None):
    """Write the skeleton of a rung: (the files, each with what it got; what is left to a person).

    after: the id of a cell; the rung goes to the end of its section. old: the kernel's file that it
    begins as a copy of, without .cu; None for that of the last rung above.
    """
    if chapter.key not in LADDER:
        raise ValueError(f"the ladder's chapters are {' and '.join(LADDER)}")
    new = KERNELS / f"{name}.cu"
    if new.exists():
        raise ValueError(f"there is a rung {new.relative_to(ROOT)} already")
    notebook = book.read(chapter.path)
    after = book.behind_section(notebook, after)
    above = notebook.cells[: book.place_of(notebook, after) + 1]
    old = old or last_file(above)
    if not (KERNELS / f"{old}.cu").is_file():
        raise LookupError(f"course/kernels/matmul/kernels has no file {old}.cu: say --like NAME")
    level, number = place_in_ladder(chapter, above)
    done = renumbered(number)
    left = to_look_at(number)
    notebook = book.read(chapter.path)  # with its numbers
    cells = cells_of(name, old, level, number, above)
    book.insert(notebook, cells, after)
    book.write(notebook, chapter.path)
    text = (KERNELS / f"{old}.cu").read_text(encoding="utf-8")
    write_whole(new, f"// TODO: what differs from {old}.cu, and why\n{text}")
    files = {new: f"a copy of {old}.cu", **done, chapter.path: in_words(cells, after)}
    if chapter.key == LADDER[0]:
        files |= numbered(name, number)
    return {**files, **promised(name, old)}, left


def last_file(cells) -> str:
    """The kernel's file of the last rung in these cells."""
    for cell in reversed(cells):
        climb = CLIMB.search(cell.source) if cell.cell_type == "code" else None
        if climb and (KERNELS / f"{climb[1]}.cu").is_file():
            return climb[1]
    raise LookupError("no rung above has a file of its own: say --like NAME")


def place_in_ladder(chapter: Chapter, above) -> tuple[str, int]:
    """(the level of its heading, its number) of a rung that stands behind these cells."""
    before = [each for each in CHAPTERS if each.key in LADDER and each.number < chapter.number]
    cells = [cell for each in before for cell in book.read(each.path).cells]
    found = headings([*cells, *above])
    own = headings(above)
    return (own or found or [("###", 0)])[-1][0], (found[-1][1] if found else 0) + 1


def headings(cells) -> list[tuple[str, int]]:
    """(level, number) of the rungs in the headings of these cells."""
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return [(level, int(number)) for text in texts for level, number in HEADING.findall(text)]


def moved(text: str, number: int) -> str:
    """The text with all rungs from `number` on one further."""

    def one_further(found):
        return re.sub(r"\d+", lambda n: str(int(n[0]) + (int(n[0]) >= number)), found[0])

    return MENTION.sub(one_further, text)


def renumbered(number: int) -> dict[Path, str]:
    """Move the rungs from `number` on in all prose that names them; the files that changed."""
    done = {}
    chapters = [chapter for chapter in CHAPTERS if chapter.key in LADDER]
    for chapter in chapters:
        notebook = book.read(chapter.path)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = moved(cell.source, number)
        if book.write(notebook, chapter.path):
            done[chapter.path] = "the rungs behind it are one further"
    names = "|".join(chapter.name for chapter in chapters)
    links = re.compile(rf"\[[^\]]*\]\(\.\./chapters/(?:{names})\.ipynb")
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        new = links.sub(lambda link: moved(link[0], number), text)
        if new != text:
            write_whole(path, new)
            done[path] = "its links to them"
    return done


def numbered(name: str, number: int) -> dict[Path, str]:
    """Enter the rung in the chart's numbers, those behind it one further."""
    text = PICTURES.read_text(encoding="utf-8")
    value = code.assignment(text, "RUNGS").value
    begin = code.at(text, value.lineno, value.col_offset)
    end = code.at(text, value.end_lineno, value.end_col_offset)
    table = re.sub(r"(?<=: )\d+", lambda n: str(int(n[0]) + (int(n[0]) >= number)), text[begin:end])
    entered = code.with_entry(f"{text[:begin]}{table}{text[end:]}", "RUNGS", f'"{name}": {number}')
    written(PICTURES, entered)
    return {PICTURES: f"number {number} in the chart"}


def promised(name: str, old: str) -> dict[Path, str]:
    """Promise of a float32 rung the instructions of the one that it is a copy of."""
    text = TESTS.read_text(encoding="utf-8")
    line = re.search(rf'^    "{old}": (\(.+\)),$', text, re.MULTILINE)
    if line is None:
        return {}
    written(TESTS, code.with_entry(text, "PROMISED", f'"{name}": {line[1]}'))
    return {TESTS: f"the instructions of {old}, which its machine code must have"}


def cells_of(name: str, old: str, level: str, number: int, above) -> list:
    """A rung's cells: why, what changes, a prediction, the climb, what was seen."""
    tail = name.replace("_", "-")
    texts = [cell.source for cell in above if cell.cell_type == "code"]
    climbs = [text for text in texts if f'"{old}"' in text and CLIMB.search(text)]
    launch = LAUNCH.search(climbs[-1]) if climbs else None
    how = {"how": launch[1], "blank": ""} if launch else {"how": GUESSED, "blank": SIZES}
    folder = "KERNELS" if any(re.search(r"\bKERNELS\b", text) for text in texts) else "kernels"
    fields = {"name": name, "old": old, "folder": folder, **how}
    fields |= {"level": level, "number": number, "before": number - 1}
    return [
        book.text_cell(f"{tail}-title", TITLE.format(**fields)),
        book.code_cell(f"{tail}-change", CHANGE.format(**fields)),
        book.code_cell(f"predict-{tail}", f'ladder.predict("{name}", ...)', "predict"),
        book.code_cell(f"{tail}-climb", CLIMB_CELL.format(**fields), "hide-output"),
        book.text_cell(f"{tail}-explain", "TODO: what was seen, and why."),
    ]


def to_look_at(number: int) -> list[str]:
    """What names rungs, or counts them, and is not changed by the command, a line each.

    Ranges that end at the rung before, tables, counts in words, what the neighbours say of each
    other; and code, where a change would cost the outputs of a GPU.
    """
    found, at = [], 0
    for chapter in (each for each in CHAPTERS if each.key in LADDER):
        for cell in book.read(chapter.path).cells:
            at = [(None, at), *headings([cell])][-1][1]
            words = looked_at(cell, number)
            if at in (number - 1, number + 1):
                words += NEIGHBOUR.findall(cell.source)
            found += [f"{chapter.path.name}, cell {cell.id}: {each}" for each in words]
    for path in sorted(MATMUL.rglob("*")):
        if path.suffix in (".py", ".cu", ".cuh"):
            lines = path.read_text(encoding="utf-8").splitlines()
            for n, line in enumerate(lines, 1):
                if moved(line, number) != line:
                    found.append(f"{path.relative_to(ROOT)}:{n}: {line.strip()}")
    return found


def looked_at(cell, number: int) -> list[str]:
    """The words of a cell that a person has to look at."""
    if cell.cell_type == "code":
        return [words for words in MENTION.findall(cell.source) if moved(words, number) != words]
    ranges = [words for words in MENTION.findall(cell.source) if " to " in words]
    found = [words for words in ranges if int(LAST.search(words)[0]) == number - 1]
    rows = re.findall(r"^\| (\d+) \|.*", cell.source, re.MULTILINE)
    if "| rung |" in cell.source and any(int(row) >= number for row in rows):
        found.append("its table")
    return [*found, *IN_WORDS.findall(cell.source)]
