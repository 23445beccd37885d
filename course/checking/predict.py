"""A prediction: the learner commits to an answer before the next cell shows what happens.

The next cell is the answer; its saved output is folded until then, see `folded`. Who comes back
and says what it was has it kept, for themselves alone (`course.progress`): `guesses` draws how near
they come.
"""

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from course import classroom, progress
from course.classroom import chapter_here
from utils.plots import bundle_of

if TYPE_CHECKING:
    from ipywidgets import HBox, VBox, Widget
    from nbformat import NotebookNode

TAG = "predict"  # of the cell with the question
ANSWER = "hide-output"  # of the cell that answers it; myst-nb, and so the website, folds it
NEXT = "Now run the next cell."
OPEN = "Write down what you expect, then run the next cell."
SEEN = "Once you have seen it:"
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?|-?\.\d+", re.IGNORECASE)


class Prediction:
    """What a learner may answer: one of `choices`, or, without any, words or a number of `unit`."""

    def __init__(self, choices: Iterable[object] = (), unit: str = "") -> None:
        self.choices, self.unit = tuple(map(str, choices)), unit
        self.when = progress.moment()
        self.where = {"chapter": chapter_here(), "cell": classroom.cell_here()}

    def committed(self, given: str) -> None:
        """Tell the class's board, where the learner has joined one: a choice, or the number."""
        answer = given if self.choices else number_in(given)
        if answer is not None:
            classroom.tell("predict", answer=answer, **self.where)

    def reply(self, given: str) -> str:
        """What is said once the learner has committed to an answer."""
        if not str(given).strip():
            return "Say something first: a guess will do."
        return f"You say: {f'{given} {self.unit}'.strip()}. {NEXT}"

    def keep_choice(self, given: str, right: bool) -> str:
        """Keep whether a choice was right; what is said then."""
        said = {"guess": given, "right": right, "chapter": chapter_here()}
        progress.record_prediction(self.when, said)
        return "Kept. exercises.guesses() shows all that you have kept."

    def keep_number(self, given: str, seen: str) -> str:
        """Keep a guess and the number that was seen; what is said then."""
        guess, was = number_in(given), number_in(seen)
        if guess is None or was is None:
            return "Both have to be numbers to be kept."
        said = {"guess": guess, "was": was, "unit": self.unit, "chapter": chapter_here()}
        progress.record_prediction(self.when, said)
        classroom.tell("predict", answer=guess, was=was, **self.where)
        return f"Kept: you said {guess:g}, it was {was:g}{away(guess, was)}."

    def __repr__(self) -> str:
        if not self.choices:
            return OPEN
        return "\n".join([*(f"○ {choice}" for choice in self.choices), f"Pick one. {NEXT}"])

    def _repr_html_(self) -> str:
        """For pages without a kernel: the same fields, which remember nothing."""
        if not self.choices:
            field = '<input type="text" size="30" aria-label="Your prediction">'
            return f'<div class="predict"><label>{field} {html.escape(self.unit)}</label></div>'
        labels = (
            '<label style="margin-right:1.5em">'
            f'<input type="radio" name="predict"> {html.escape(choice)}</label>'
            for choice in self.choices
        )
        return f'<form class="predict">{"".join(labels)}</form>'

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return bundle_of(self) | {"text/html": self._repr_html_()}

    def widget(self) -> "VBox":
        """A button for each choice, or a field and a button; what was said stands below, and then
        what it turned out to be.
        """
        import ipywidgets

        said, after = ipywidgets.HTML(), ipywidgets.HBox()

        def tell(text: str) -> None:
            said.value = html.escape(text)

        def commit(given: str) -> None:
            tell(self.reply(given))
            self.committed(given)
            if self.choices:
                after.children = _was_it_so(lambda right: tell(self.keep_choice(given, right)))
            elif number_in(given) is not None:
                after.children = _what_it_was(
                    self.unit, lambda seen: tell(self.keep_number(given, seen))
                )
            else:
                after.children = ()

        row = _choice_buttons(self.choices, commit) if self.choices else _field(self.unit, commit)
        return ipywidgets.VBox([row, said, after])


def _was_it_so(keep: Callable[[bool], object]) -> tuple["Widget", ...]:
    """Two buttons: keep(True), keep(False)."""
    import ipywidgets

    yes, no = (ipywidgets.Button(description=text) for text in ("I had it right", "I had not"))
    yes.on_click(lambda _: keep(True))
    no.on_click(lambda _: keep(False))
    return ipywidgets.Label(SEEN), yes, no


def _what_it_was(unit: str, keep: Callable[[str], object]) -> tuple["Widget", ...]:
    """A field for the number that was seen, its unit, and a button."""
    import ipywidgets

    field = ipywidgets.Text(placeholder="it was", layout=ipywidgets.Layout(width="140px"))
    button = ipywidgets.Button(description="Keep both")
    button.on_click(lambda _: keep(field.value))
    return ipywidgets.Label(SEEN), field, ipywidgets.Label(unit), button


def number_in(text: object) -> float | None:
    """The first number that somebody wrote: 900 of "about 900"; None without one."""
    found = NUMBER.search(str(text))
    return float(found[0].replace(",", "")) if found else None


def away(guess: float, was: float) -> str:
    """How far a guess was off, to be put behind it."""
    if guess == was:
        return ", exactly"
    if guess <= 0 or was <= 0:
        return ""
    return f", a factor of {max(guess / was, was / guess):.2g}"


def _choice_buttons(choices: Sequence[str], commit: Callable[[str], object]) -> "HBox":
    """A row of buttons; the one that was clicked last is marked."""
    import ipywidgets

    def clicked(button: Any) -> None:
        for each in buttons:
            each.button_style = "info" if each is button else ""
        commit(button.description)

    wide = ipywidgets.Layout(width="auto")
    buttons = [ipywidgets.Button(description=choice, layout=wide) for choice in choices]
    for button in buttons:
        button.on_click(clicked)
    return ipywidgets.HBox(buttons, layout=ipywidgets.Layout(flex_flow="row wrap"))


def _field(unit: str, commit: Callable[[str], object]) -> "HBox":
    """A field to write into, its unit, and a button."""
    import ipywidgets

    field = ipywidgets.Text(placeholder="your guess", layout=ipywidgets.Layout(width="320px"))
    button = ipywidgets.Button(description="That is my guess")
    button.on_click(lambda _: commit(field.value))
    return ipywidgets.HBox([field, ipywidgets.Label(unit), button])


def folded(cell: "NotebookNode") -> None:
    """Fold, in place, the saved output of a notebook's cell; running the cell unfolds it.

    JupyterLab goes by `outputs_hidden` (and writes `collapsed` beside it), the website by the tag.
    """
    cell.metadata["collapsed"] = True
    cell.metadata.setdefault("jupyter", {})["outputs_hidden"] = True
    tags = cell.metadata.setdefault("tags", [])
    if ANSWER not in tags:
        tags.append(ANSWER)


def is_folded(cell: "NotebookNode") -> bool:
    """Whether the saved output of a cell is folded, wherever the notebook is shown."""
    metadata = cell.metadata
    hidden = metadata.get("jupyter", {}).get("outputs_hidden", False)
    return hidden and metadata.get("collapsed", False) and ANSWER in metadata.get("tags", [])
