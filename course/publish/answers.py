"""What a chapter says of a prediction's answer, folded on the website until the guess is made.

myst-nb folds the output of the cell that answers; the text below it says the same in words. The
page's script unfolds both once the reader has guessed.
"""

import re

from course.checking.predict import TAG
from course.publish.sections import TARGET

OPEN = '<details class="answer"><summary>Show the answer in words</summary>'
CLOSE = "</details>"
NEAR = 4  # cells, at most, from the question to what is said of its answer
HEADING = re.compile(r"^##+ ", re.MULTILINE)
NEXT_PARAGRAPH = re.compile(r"\n\n+")
ASKS = re.compile(r"\*Predict")  # the next question, which must not be folded with this answer


def told(cells):
    """The ids of the cells that say what a prediction's answer is: for each question the first
    text below a cell that was run for it.
    """
    found = set()
    for at, cell in enumerate(cells):
        if is_question(cell):
            after = cells[at + 1 : at + 1 + NEAR]
            text = next((n for n, each in enumerate(after) if each.cell_type == "markdown"), 0)
            if text and not any(map(is_question, after[:text])):
                found.add(after[text].id)
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
