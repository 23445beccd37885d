"""What a chapter says of a prediction's answer, folded on the website until the guess is made.

myst-nb folds the output of the cell that answers; the text below it says the same in words. The
page's script unfolds both once the reader has guessed.
"""

import re
from itertools import takewhile

from nbformat.v4 import new_markdown_cell

from course.checking.predict import ANSWER, TAG
from course.publish.sections import TARGET

OPEN = '<details class="answer"><summary>Show the answer in words</summary>'
CLOSE = "</details>"
AS_SAVED = '<p class="saved">What is shown here ran as the cell stood, before your change.</p>'
FAR = 7  # cells, at most, from the question to what shows its answer
NEAR = 4  # cells, at most, from there to what is said of it
BREAKS = "break-it"  # the tag of a cell that shows what a change of the reader's did
ASKED = re.compile(r"break it|change (it|the)\b", re.IGNORECASE)
ABOVE = 3  # cells, at most, from where a change is asked for to the cell that shows what it did
HEADING = re.compile(r"^##+ ", re.MULTILINE)
NEXT_PARAGRAPH = re.compile(r"\n\n+")
ASKS = re.compile(r"\*Predict")  # the next question, which must not be folded with this answer


def told(cells):
    """The ids of the cells that say what a prediction's answer is: for each question the first
    text below the cell that was run for it. A question may stand in words alone, above a cell whose
    output is folded.
    """
    found = set()
    for at, cell in enumerate(cells):
        above = cells[max(0, at - ABOVE) : at]
        if ANSWER in cell.metadata.get("tags", []) and asks_in_words(above):
            found.update(texts_of(cells[at + 1 : at + 1 + NEAR])[:1])
        if is_question(cell):
            after = list(
                takewhile(lambda each: not is_question(each), cells[at + 1 : at + 1 + FAR])
            )
            if (run := answering(after)) is None:
                continue
            found.update(texts_of(after[run + 1 : run + 1 + NEAR])[:1])
    return found


def texts_of(cells):
    """The ids of the texts among some cells."""
    return [cell.id for cell in cells if cell.cell_type == "markdown"]


def asks_in_words(above):
    """Whether the last text above a cell ends with a question, and no cell asks for a guess."""
    texts = [cell.source for cell in above if cell.cell_type == "markdown"]
    last_paragraph = NEXT_PARAGRAPH.split(texts[-1].strip())[-1] if texts else ""
    return "?" in last_paragraph and not any(map(is_question, above))


def answering(after):
    """Which of the cells below a question shows its answer: the first whose output is folded or
    that shows a change; else the very next, if that is one to run. None without any.
    """
    for number, cell in enumerate(after):
        if {ANSWER, BREAKS} & set(cell.metadata.get("tags", [])):
            return number
    return 0 if after and after[0].cell_type == "code" else None


def is_of_before(cell, before):
    """Whether what a cell shows was saved before the change that the text above it asks for.

    before: the cells above it.
    """
    if BREAKS not in cell.metadata.get("tags", []):
        return False
    texts = [each.source for each in before[-ABOVE:] if each.cell_type == "markdown"]
    return any(map(ASKED.search, texts))


def noted(cells):
    """The cells, with a note below what was saved before the change that a text asks for."""
    found = []
    for cell in cells:
        is_old = is_of_before(cell, found)
        found.append(cell)
        if is_old and cell.get("outputs"):
            found.append(new_markdown_cell(AS_SAVED))
    return found


def is_question(cell):
    """Whether a cell asks for a prediction."""
    return TAG in cell.metadata.get("tags", [])


def fold_answers(cells, ids):
    """Fold the text of these cells in place: up to the next heading or the next question."""
    for cell in cells:
        if cell.cell_type == "markdown" and cell.get("id") in ids:
            cell.source = folded(cell.source)


def folded(text):
    """A text with what stands before its first heading or question between `<details>` and its
    end; the text itself, where nothing stands before. A link's target stays outside.
    """
    target = TARGET.match(text)
    if target:
        return target[0] + folded(text[target.end() :])
    heading = HEADING.search(text)
    end = heading.start() if heading else len(text)
    question = ASKS.search(text)
    if question and question.start() < end:
        breaks = [each.end() for each in NEXT_PARAGRAPH.finditer(text, 0, question.start())]
        end = breaks[-1] if breaks else 0
    answer, rest = text[:end].strip(), text[end:]
    return f"{OPEN}\n\n{answer}\n\n{CLOSE}\n\n{rest}".rstrip() if answer else text
