"""What tells of a run instead of the chapter is left out of a recording."""

import json

from nbformat.v4 import new_notebook

from course.publish import stills
from course.recording import tidy
from utils.plots import svg


def saved(**models):
    """A notebook with these widget models, name -> (model's name, state)."""
    state = {name: {"model_name": kind, "state": values} for name, (kind, values) in models.items()}
    return new_notebook(metadata={"widgets": {stills.STATE: {"state": state}}})


def test_looks_that_are_not_set_are_left_out():
    book = saved(
        a=("LayoutModel", {"width": "36px", "height": None}),
        b=("ButtonStyleModel", {"button_color": None, "font_weight": ""}),
        c=("RadioButtonsModel", {"index": None}),
    )
    tidy.leave_out_unset_looks(book)
    assert [model["state"] for model in tidy.models_of(book).values()] == [
        {"width": "36px"},
        {"font_weight": ""},
        {"index": None},
    ]


def test_a_picture_within_a_widget_is_kept_once():
    shown = svg.as_html("<svg ><path/></svg>", "a line", 100)
    book = saved(a=("OutputModel", {"outputs": [{"data": {"text/html": shown}}]}))
    tidy.leave_out_second_pictures(book)
    (output,) = tidy.models_of(book)["a"]["state"]["outputs"]
    assert "<path/>" in output["data"]["text/html"]
    assert "<img" not in output["data"]["text/html"]


def test_numbers_are_kept_as_jupyterlab_writes_them():
    kept = tidy.as_jupyterlab_writes({"value": 10.0, "steps": [0.5, 2.0, True, "1.0"]})
    assert json.dumps(kept) == '{"value": 10, "steps": [0.5, 2, true, "1.0"]}'
