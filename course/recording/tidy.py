"""What a recording leaves out of a notebook: all that tells of this run instead of the chapter."""

import re

from course.publish import stills
from utils.plots.svg import inline_only

PYTHON_WARNING = re.compile(r"^\S+\.py:\d+: \w*Warning: .*\n(?:  .*\n?)?", re.MULTILINE)
LOOKS = "LayoutModel", "StyleModel"  # how the names of such widget models end
PROGRESS_BAR = re.compile(r"\d+%\|")


def tidy(notebook) -> None:
    """Leave out, in place, what tells of this run instead of the chapter.

    That is Python's version, its warnings, which name folders of this machine, and progress bars,
    whose kept output stands at 0 %.
    """
    notebook.metadata["language_info"] = {"name": "python"}
    if "widgets" in notebook.metadata:
        notebook.metadata.widgets = as_jupyterlab_writes(notebook.metadata.widgets)
        leave_out_unset_looks(notebook)
    give_widgets_pictures(notebook)
    leave_out_second_pictures(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.get("name") == "stderr":
                output.text = PYTHON_WARNING.sub("", output.text)
        cell.outputs = [
            output
            for output in cell.outputs
            if output.get("text") != ""
            and not PROGRESS_BAR.search(output.get("data", {}).get("text/plain", ""))
        ]


def as_jupyterlab_writes(value):
    """The same JSON with 10 for 10.0, as JavaScript has it: else the learner's first save would
    change a file that they did not.
    """
    if isinstance(value, dict):
        return type(value)({key: as_jupyterlab_writes(each) for key, each in value.items()})
    if isinstance(value, list):
        return [as_jupyterlab_writes(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def give_widgets_pictures(notebook) -> None:
    """Put beside each `interact` what it shows at first, in place.

    Where widgets do not run (a page that is no notebook, a notebook that Jupyter does not trust)
    this stands there, in place of the widget's name in Python.
    """
    models = models_of(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            name = data.get("text/plain", "")
            if stills.VIEW not in data or not name.startswith("interactive("):
                continue
            data["text/html"] = stills.still(data[stills.VIEW]["model_id"], models)
            data["text/plain"] = stills.words_of(data[stills.VIEW]["model_id"], models)


def models_of(notebook) -> dict[str, dict]:
    """The saved models of the notebook's widgets, by their ids."""
    return notebook.metadata.get("widgets", {}).get(stills.STATE, {}).get("state", {})


def leave_out_unset_looks(notebook) -> None:
    """Of layouts and styles keep what is set, in place; JupyterLab fills in the rest as it is.

    Without it the hundred layouts of a chapter's quizzes say 40 times each that nothing is set.
    """
    for model in models_of(notebook).values():
        if model["model_name"].endswith(LOOKS):
            said = {name: value for name, value in model["state"].items() if value is not None}
            model["state"] = said


def leave_out_second_pictures(notebook) -> None:
    """Keep pictures within widgets once, in place: the image that stands in for the SVG where a
    page lets none through has no use there, since such a page runs no widgets.
    """
    for model in models_of(notebook).values():
        for output in model["state"].get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = inline_only(data["text/html"])
