"""What a chapter has that a board can show: sections, predictions, exercises and quizzes.

All of it is read from the notebooks, so that no question can be shown that no learner sees.
"""

import ast
import functools
import json
import re
from dataclasses import dataclass

from course.chapters import CHAPTERS, FOLDER

EXERCISE = re.compile(r"exercises\.check\(\s*\"([\w.]+)\"")
QUIZ = re.compile(r"exercises\.quiz\(\s*\"([\w.]+)\"")
HEADING = re.compile(r"^#{1,3} (?:\d+ · )?(.+?)(?: \(\d+ min\))?\s*$", re.MULTILINE)
MARKS = re.compile(r"\[([^]]*)\]\([^)]*\)|[*`]|<!--.*?-->")  # of Markdown, in a line
LONGEST_ANSWER = 1500  # characters of a recorded output that still fit on a slide


@dataclass(frozen=True)
class Question:
    """A prediction of a chapter: what is asked, what can be picked, and what came of it.

    answer: the right choice; "" where it depends on the machine. recorded: what the cell after it
    printed when the chapter was recorded.
    """

    cell: str
    text: str
    choices: tuple
    unit: str
    answer: str
    recorded: str


@dataclass(frozen=True)
class Contents:
    """A chapter as the board knows it. sections, exercises, quizzes: {id: its section's title}, of
    every cell, exercise and quiz; questions: {id of a cell: its Question}.
    """

    key: str
    title: str
    sections: dict
    questions: dict
    exercises: dict
    quizzes: dict

    def section(self, id: str) -> str:
        """The title of the section of a cell, an exercise or a quiz; "" for what is not known."""
        return (self.sections | self.exercises | self.quizzes).get(id, "")


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
    sections, questions, exercises, quizzes = {}, {}, {}, {}
    section = title
    for number, (cell, text) in enumerate(zip(cells, texts, strict=True)):
        if cell["cell_type"] == "markdown":
            heading = HEADING.search(text)
            section = plain(heading[1]) if heading else section
        sections[cell["id"]] = section
        if cell["cell_type"] != "code":
            continue
        if "exercises.predict(" in text:
            before = texts[number - 1] if number else ""
            after = cells[number + 1] if number + 1 < len(cells) else {}
            questions[cell["id"]] = _question(cell, text, before, after)
        exercises |= {id: section for id in EXERCISE.findall(text)}
        quizzes |= {id: section for id in QUIZ.findall(text)}
    return Contents(key, title, sections, questions, exercises, quizzes)


def plain(markdown: str) -> str:
    """A line of Markdown as words alone."""
    return MARKS.sub(lambda match: match[1] or "", markdown).strip()


def _question(cell, text, before, after):
    """The Question that a cell asks, with the text before it and the cell after it."""
    choices, unit = _arguments(text)
    paragraphs = [part for part in before.strip().split("\n\n") if part.strip()]
    return Question(
        cell=cell["id"],
        text=plain(paragraphs[-1].replace("\n", " ")) if paragraphs else "",
        choices=choices,
        unit=unit,
        answer=str(cell["metadata"].get("answer", "")),
        recorded=_printed(after),
    )


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
