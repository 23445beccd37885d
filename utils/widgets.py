"""Widgets among other ways to show the same thing."""


def view(widget):
    """The entry of a mime bundle that shows the widget. (ipywidgets 7, which Colab has, makes no such bundle itself.)"""
    return {"application/vnd.jupyter.widget-view+json": {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}
