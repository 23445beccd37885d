"""Things to move in a notebook: ipywidgets' own, set so that a picture is never older than they."""

from ipywidgets import IntSlider, interact

__all__ = ["interact", "slider"]


def slider(value, least, most, step=1):
    """A slider for whole numbers that speaks once, when it is let go (or after a press of a key).

    While it moves, a slider of ipywidgets asks for a picture at every step; those queue, and what
    is seen lags behind.
    """
    return IntSlider(value, least, most, step, continuous_update=False)
