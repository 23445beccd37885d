"""A prediction: the learner commits to an answer before the next cell shows what happens.

Nothing is right or wrong here, and nothing is recorded: the next cell is the answer. Its saved
output is folded until then, see `folded`.
"""

import html

from utils.plots import widget_view

TAG = "predict"  # of the cell with the question
ANSWER = "hide-output"  # of the cell that answers it; myst-nb, and so the website, folds it
NEXT = "Now run the next cell."
OPEN = "Write down what you expect, then run the next cell."


class Prediction:
    """What a learner may answer: one of `choices`, or, without any, words or a number of `unit`."""

    def __init__(self, choices=(), unit=""):
        self.choices, self.unit = tuple(map(str, choices)), unit

    def reply(self, given):
        """What is said once the learner has committed to an answer."""
        if not str(given).strip():
            return "Say something first: a guess will do."
        return f"You say: {f'{given} {self.unit}'.strip()}. {NEXT}"

    def __repr__(self):
        if not self.choices:
            return OPEN
        return "\n".join([*(f"○ {choice}" for choice in self.choices), f"Pick one. {NEXT}"])

    def _repr_html_(self):
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

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"text/plain": repr(self), "text/html": self._repr_html_()}
        try:
            bundle |= widget_view(self.widget())
        except ImportError:
            pass
        return bundle

    def widget(self):
        """A button for each choice, or a field and a button; what was said stands below."""
        import ipywidgets

        said = ipywidgets.HTML()

        def commit(given):
            said.value = html.escape(self.reply(given))

        row = _choice_buttons(self.choices, commit) if self.choices else _field(self.unit, commit)
        return ipywidgets.VBox([row, said])


def _choice_buttons(choices, commit):
    """A row of buttons; the one that was clicked last is marked."""
    import ipywidgets

    def clicked(button):
        for each in buttons:
            each.button_style = "info" if each is button else ""
        commit(button.description)

    wide = ipywidgets.Layout(width="auto")
    buttons = [ipywidgets.Button(description=choice, layout=wide) for choice in choices]
    for button in buttons:
        button.on_click(clicked)
    return ipywidgets.HBox(buttons, layout=ipywidgets.Layout(flex_flow="row wrap"))


def _field(unit, commit):
    """A field to write into, its unit, and a button."""
    import ipywidgets

    field = ipywidgets.Text(placeholder="your guess", layout=ipywidgets.Layout(width="320px"))
    button = ipywidgets.Button(description="That is my guess")
    button.on_click(lambda _: commit(field.value))
    return ipywidgets.HBox([field, ipywidgets.Label(unit), button])


def folded(cell):
    """Fold, in place, the saved output of a notebook's cell; running the cell unfolds it.

    JupyterLab goes by `outputs_hidden` (and writes `collapsed` beside it), the website by the tag.
    """
    cell.metadata["collapsed"] = True
    cell.metadata.setdefault("jupyter", {})["outputs_hidden"] = True
    tags = cell.metadata.setdefault("tags", [])
    if ANSWER not in tags:
        tags.append(ANSWER)


def is_folded(cell):
    """Whether the saved output of a cell is folded, wherever the notebook is shown."""
    metadata = cell.metadata
    hidden = metadata.get("jupyter", {}).get("outputs_hidden", False)
    return hidden and metadata.get("collapsed", False) and ANSWER in metadata.get("tags", [])
