"""Quizzes on a page without a kernel: a form that knows its answers (`course.js` replies)."""

import html
import json
import re

from nbformat.v4 import new_output

from course.checking.text import marked_up
from course.exercises import QUIZZES

ASKED = re.compile(r"exercises\.quiz\(\s*[\"']([\w.]+)[\"']\s*\)")


def answerable(notebook):
    """Put a form in the place of every quiz's output, in the notebook itself."""
    for cell in notebook.cells:
        asked = ASKED.search(cell.source) if cell.cell_type == "code" else None
        if asked and asked[1] in QUIZZES:
            data = {"text/html": form(QUIZZES[asked[1]])}
            cell.outputs = [new_output("display_data", data)]
            cell.metadata.tags = [*cell.metadata.get("tags", []), "remove-input"]


def form(quiz):
    """HTML of a question, its choices or a field for a number, and the replies to come."""
    replies = {str(given): marked_up(quiz.reply(given)[1]) for given in given_answers(quiz)}
    replies[""] = marked_up(quiz.reply(None)[1])
    known = html.escape(json.dumps(replies))
    field = choices(quiz) if quiz.choices else number(quiz)
    return (
        f'<form class="quiz" data-answer="{html.escape(str(quiz.answer))}" data-replies="{known}">'
        f"<fieldset><legend>{marked_up(quiz.question)}</legend>{field}"
        '<button type="submit">Check</button> <output role="status"></output></fieldset></form>'
    )


def given_answers(quiz):
    """The answers that have a reply of their own; None stands for all others."""
    wrong = [given for given in quiz.explain if given is not None]
    return dict.fromkeys([quiz.answer, *quiz.choices, *wrong])


def choices(quiz):
    """A radio button for each choice."""
    return "".join(
        f'<label><input type="radio" name="{html.escape(quiz.id)}" value="{html.escape(str(key))}">'
        f" <span>{marked_up(text)}</span></label>"
        for key, text in quiz.choices.items()
    )


def number(quiz):
    """A field for a whole number."""
    name = html.escape(quiz.id)
    unit = html.escape(quiz.unit)
    return f'<label><input type="number" name="{name}" aria-label="your answer"> {unit}</label>'
