"""Where in the course a cell stands that runs: its chapter's name and its own id."""

import os
import re


def chapter_here():
    """The name of the notebook that runs this, as far as Jupyter says so; "" elsewhere."""
    path = os.environ.get("JPY_SESSION_NAME", "")
    return re.sub(r"^\d+_", "", os.path.basename(path).removesuffix(".ipynb"))


def cell_here():
    """The id of the cell that runs this, as far as Jupyter says so; "" elsewhere."""
    shell = _shell()
    try:
        return str(shell.get_parent()["metadata"].get("cellId", ""))
    except (AttributeError, KeyError, TypeError):  # no notebook, or a front end that says nothing
        return ""


def after_each_cell(call):
    """Call call(chapter, cell) whenever a cell of a notebook has run."""

    def has_run(result):
        cell = getattr(result.info, "cell_id", None) or cell_here()
        if cell:
            call(chapter_here(), cell)

    shell = _shell()
    if shell is not None:
        shell.events.register("post_run_cell", has_run)


def _shell():
    """IPython, where this is one of its sessions; None elsewhere."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()
