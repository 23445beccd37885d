"""What a chapter has that a board can show: sections, predictions, exercises and quizzes.

All of it is read from the notebooks, so that no question can be shown that no learner sees.
"""

import ast
import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

from course.chapters import CHAPTERS, FOLDER

EXERCISE = re.compile(r"exercises\.check\(\s*\"([\w.]+)\"")
QUIZ = re.compile(r"exercises\.quiz\(\s*\"([\w.]+)\"")
#: Of a section, or of an exercise at whatever depth
HEADING = re.compile(
    r"^(?:#{1,3}|#+(?= Exercise · )) (?:\d+ · )?(.+?)(?: \(\d+ min\))?\s*$", re.MULTILINE
)
MARKS = re.compile(r"\[([^]]*)\]\([^)]*\)|[*`]|<!--.*?-->")  # of Markdown, in a line
LONGEST_ANSWER = 1500  # characters of a recorded output that still fit on a slide
LONGEST_CODE = 36  # lines of code that a room can still read
SHORT = 3  # lines of a cell that only uses what another one defines
DEFINED = re.compile(r"^(?:@.*\n)*def (\w+)|^%%writefile (\S+)|^class (\w+)", re.MULTILINE)
NAMED = re.compile(r"[\w/.]+")
SPAN = re.compile(r"`([^`]+)`")
AROUND_TITLE = re.compile(r"^(?:Exercise · |Going further: )|, (?:with |and )?an exercise$")


@dataclass(frozen=True)
class Question:
    """A prediction of a chapter: what is asked, what can be picked, and what came of it.

    answer: the right choice; "" where it depends on the machine. recorded: what the cell after it
    printed when the chapter was recorded; code: what it is asked about, "" where that is too long.
    """

    cell: str
    text: str
    choices: tuple
    unit: str
    answer: str
    recorded: str
    code: str


@dataclass(frozen=True)
class Contents:
    """A chapter as the board knows it. sections, exercises, quizzes: {id: its section's title}, of
    every cell, exercise and quiz; questions: {id of a cell: its Question}; asked: {id of a quiz:
    its text}.
    """

    key: str
    title: str
    sections: dict
    questions: dict
    exercises: dict
    quizzes: dict
    asked: dict

    def section(self, id: str) -> str:
        """The title of the section of a cell, an exercise or a quiz; "" for what is not known."""
        return (self.sections | self.exercises | self.quizzes).get(id, "")

    def task(self, id: str) -> str:
        """The title of an exercise, by which a room knows it."""
        title = AROUND_TITLE.sub("", self.exercises.get(id, id))
        return title[:1].upper() + title[1:]


@functools.lru_cache(maxsize=64)
def contents(key: str) -> Contents | None:
    """What a chapter has; None where there is no such chapter."""
    chapter = next((each for each in CHAPTERS if each.key == key), None)
    if chapter is None:
        return None
    path = FOLDER / f"{chapter.name}.ipynb"
    return read(chapter.key, chapter.title, json.loads(path.read_text(encoding="utf-8")))


def read(key: str, title: str, notebook: dict) -> Contents:
    """What a notebook has, given as its JSON."""
    cells = notebook["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    sections, questions, exercises, quizzes, asked = {}, {}, {}, {}, {}
    section = title
    for number, (cell, text) in enumerate(zip(cells, texts, strict=True)):
        if cell["cell_type"] == "markdown":
            heading = HEADING.search(text)
            section = plain(heading[1]) if heading else section
        sections[cell["id"]] = section
        if cell["cell_type"] != "code":
            continue
        if "exercises.predict(" in text:
            questions[cell["id"]] = _question(cells, number)
        exercises |= {id: section for id in EXERCISE.findall(text)}
        for id in QUIZ.findall(text):
            quizzes[id], asked[id] = section, _asked(cell, id)
    return Contents(key, title, sections, questions, exercises, quizzes, asked)


def plain(markdown: str) -> str:
    """A line of Markdown as words alone."""
    return MARKS.sub(lambda match: match[1] or "", markdown).strip()


def _asked(cell, id):
    """The text of a quiz, as its cell shows it to who has no widgets."""
    for output in cell.get("outputs", []):
        shown = "".join(output.get("data", {}).get("text/plain", ""))
        if shown.startswith(f"{id} · "):
            return plain(shown.removeprefix(f"{id} · ").partition("\n  ")[0].replace("\n", " "))
    return f"Question {id.partition('.')[2]}"


def _question(cells, number):
    """The Question that a cell asks, with the text before it and the cell after it."""
    cell = cells[number]
    before = "".join(cells[number - 1]["source"]) if number else ""
    after = cells[number + 1] if number + 1 < len(cells) else {}
    choices, unit = _arguments("".join(cell["source"]))
    paragraphs = [part for part in before.strip().split("\n\n") if part.strip()]
    return Question(
        cell=cell["id"],
        text=plain(paragraphs[-1].replace("\n", " ")) if paragraphs else "",
        choices=choices,
        unit=unit,
        answer=str(cell["metadata"].get("answer", "")),
        recorded=_printed(after),
        code=_code(cells[:number], after, paragraphs[-1] if paragraphs else ""),
    )


def _code(earlier, after, asked):
    """The code that a question is about: the cell after it, which answers; where that only uses a
    kernel or a program, or the learner is to change one, the newest cell that defines it.
    """
    text = "".join(after["source"]) if after.get("cell_type") == "code" else ""
    is_use = len(text.splitlines()) <= SHORT
    if not DEFINED.search(text) and (is_use or "break-it" in after["metadata"].get("tags", [])):
        text = _defines(earlier, " ".join(SPAN.findall(asked))) or _defines(earlier, text) or text
    return text if len(text.splitlines()) <= LONGEST_CODE else ""


def _defines(earlier, code):
    """The newest of some cells that defines a name or writes a file which some code names."""
    named = set(NAMED.findall(code))
    for cell in reversed(earlier):
        text = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        for match in DEFINED.finditer(text):
            name = next(filter(None, match.groups()))
            if {name, Path(name).name} & named:
                return text
    return ""


def _arguments(text):
    """(choices, unit) of the call of exercises.predict in a cell."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "predict":
            choices = tuple(str(ast.literal_eval(each)) for each in node.args)
            named = {each.arg: ast.literal_eval(each.value) for each in node.keywords}
            return choices, named.get("unit", "")
    return (), ""


def _printed(cell):
    """What a cell printed, as text; "" where it shows a picture or nothing.

    A cell that the learner is to break was recorded whole: what it printed is no answer.
    """
    if "break-it" in cell.get("metadata", {}).get("tags", []):
        return ""
    lines = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream" and output["name"] == "stdout":
            lines.append("".join(output["text"]))
        elif "data" in output and "image/png" not in output["data"]:
            lines.append("".join(output["data"].get("text/plain", "")))
    text = "\n".join(line.rstrip() for line in lines if line.strip())
    return text if len(text) <= LONGEST_ANSWER else ""
