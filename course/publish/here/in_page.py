"""What runs cells in a web page, in Pyodide: as in a notebook, without IPython.

The page's worker (`web/worker.js`) calls `prepare` once and then `run` for each cell.
"""

import ast
import contextlib
import io
import json
import linecache
import logging
import os
import sys
import traceback
import types
import warnings
from pathlib import Path

COURSE = "/course"
PROGRESS = Path("/progress.json")
MOST_SHOWN = 20_000  # characters of a text that a cell prints, returns or raises
MOST_DRAWN = 20_000_000  # characters of a picture: a film has some millions
MOST_PRINTED = 5_000_000  # characters after which a cell that prints is stopped
MOST_DISPLAYED = 200  # outputs after which one that displays is
STUCK = "Stuck? Below this check hints unfold, one by one."
AGAIN = "For the same inputs again, add `, seed={}` to the check."
SLOWER = 3  # than a laptop's own Python, so that an answer has so much more time
# What NumPy takes as a number of its own size only, which in a page is 32 bits: which argument
COUNTS = {"bincount": 0, "repeat": 1, "unravel_index": 0, "ravel_multi_index": 0}

names = {"__name__": "__main__"}
shown = []  # what the cell that runs has displayed


def prepare(progress):
    """Make ready to run cells. progress: what was kept of the learner's, as text, or ""."""
    os.umask(0o022)  # Pyodide's own lets nobody read a new file
    os.environ.update(
        CUDA_COURSE_PROGRESS=str(PROGRESS),
        CUDA_COURSE_NO_ESTIMATES="1",  # they take arrays of a GPU's size: zeros are no gift here
        MPLBACKEND="svg",
        HYPOTHESIS_STORAGE_DIRECTORY="/tmp/hypothesis",
    )
    if progress:
        PROGRESS.write_text(progress, encoding="utf-8")
    sys.path.insert(0, COURSE)
    sys.modules.update(notebook_modules())
    warnings.filterwarnings("ignore", message="only soft file lock")
    narrow_counts()
    logging.getLogger("matplotlib").setLevel(logging.WARNING + 1)  # it makes a list of its fonts
    import utils  # noqa: F401  it puts Numba on the CPU engine
    from course.checking import limits, text

    text.STUCK, text.AGAIN = STUCK, AGAIN
    for name in ("SECONDS", "EACH_SECONDS", "ENOUGH_SECONDS"):
        setattr(limits, name, SLOWER * getattr(limits, name))


def get_ready_to_draw():
    """Do what takes long before the first picture, while nobody waits."""
    import utils.plots.picture  # noqa: F401, I001
    import matplotlib.font_manager  # noqa: F401


def narrow_counts():
    """Let NumPy's functions take whole numbers of 64 bits where it asks for 32 here."""
    import numpy as np

    def narrowed(value):
        if isinstance(value, tuple):
            return tuple(map(narrowed, value))
        wide = getattr(value, "dtype", None) in (np.int64, np.uint64)
        return value.astype(np.intp) if wide else value

    def narrowing(function, place):
        def call(*given, **named):
            given = [narrowed(one) if n == place else one for n, one in enumerate(given)]
            return function(*given, **named)

        return call

    for name, place in COUNTS.items():
        setattr(np, name, narrowing(getattr(np, name), place))


def notebook_modules():
    """What the course imports and a page has not: IPython, whose `display` keeps; fastjsonschema.

    Recorded results are taken as they are: those of the site were held to their schema before.
    """
    display = types.ModuleType("IPython.display")
    display.display = keep
    display.HTML = HTML
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: None
    ipython.display = display
    ipython.__path__ = []
    schemas = types.ModuleType("fastjsonschema")
    schemas.compile = lambda schema: lambda content: content
    return {"IPython": ipython, "IPython.display": display, "fastjsonschema": schemas}


class TooMuch(BaseException):
    """A cell prints or displays without end. No Exception, lest the cell take it for one."""


def keep(*values, **_):
    """Display values, below what the cell has printed."""
    for value in values:
        if len(shown) == MOST_DISPLAYED:
            raise TooMuch(f"it displayed more than {MOST_DISPLAYED} outputs")
        shown.append(as_output(value))


class HTML:
    """HTML to be displayed."""

    def __init__(self, data):
        self.data = data

    def _repr_html_(self):
        return self.data


def as_output(value):
    """A value as the page shows it: {"kind": "html", "markdown" or "text", "data"}."""
    bundle = {}
    if hasattr(value, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_()
    kinds = (
        ("html", "text/html", "_repr_html_"),
        ("markdown", "text/markdown", "_repr_markdown_"),
    )
    for kind, mime, method in kinds:
        data = bundle.get(mime) or (getattr(value, method)() if hasattr(value, method) else None)
        size = len(data or "")
        if size > MOST_DRAWN:
            return {"kind": "text", "data": f"Too large to be shown: {size:,} characters."}
        if size:
            return {"kind": kind, "data": str(data)}
    return {"kind": "text", "data": clipped(repr(value))}


def clipped(text, length=None):
    """The beginning of a text, and how much is left out. length: of the whole, where it is gone."""
    left = (length or len(text)) - MOST_SHOWN
    return f"{text[:MOST_SHOWN]}\n… {left:,} more characters are not shown." if left > 0 else text


class Printed(io.StringIO):
    """Keeps the beginning of what is printed; TooMuch where there is no end of it."""

    def __init__(self):
        super().__init__()
        self.length = 0

    def write(self, text):
        room = MOST_SHOWN - self.tell()
        super().write(text[: max(0, room)])
        self.length += len(text)
        if self.length > MOST_PRINTED:
            raise TooMuch(f"it printed more than {MOST_PRINTED:,} characters")
        return len(text)


def run(id, source, progress=""):
    """Run a cell; a JSON text of {"outputs", "failed", "progress"}.

    progress: what is kept of the learner's by now, as text: another page may have added to it.
    """
    if progress:
        PROGRESS.write_text(progress, encoding="utf-8")
    shown.clear()
    printed = Printed()
    failed = False
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            value = evaluated(f"<ipython-cell {id}>", source)
            if value is not None:
                shown.append(as_output(value))
        except BaseException as error:
            failed = True
            shown.append(as_error(error))
    text = clipped(printed.getvalue(), printed.length)
    outputs = [{"kind": "text", "data": text}] if text else []
    progress = PROGRESS.read_text(encoding="utf-8") if PROGRESS.exists() else ""
    return json.dumps({"outputs": outputs + shown, "failed": failed, "progress": progress})


def evaluated(filename, source):
    """Runs a cell; the value of its last line, or None where that ends in a semicolon or has none.

    Its text is kept where tracebacks and `inspect` look for it.
    """
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    tree = ast.parse(source, filename)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, filename, "exec"), names)
    return None if last is None else eval(compile(last, filename, "eval"), names)


def as_error(error):
    """What a cell raised: its message, the line of the cell, and a picture where it has one."""
    if hasattr(error, "_repr_html_"):
        return as_output(error)
    if isinstance(error, TooMuch):
        return {"kind": "error", "data": f"This cell was stopped: {error}. Does every loop end?"}
    steps = traceback.extract_tb(error.__traceback__)
    own = [step for step in steps if step.filename.startswith("<ipython-cell")]
    place = f"line {own[-1].lineno}: {own[-1].line}\n" if own else ""
    if isinstance(error, SyntaxError):
        place = f"line {error.lineno}: {(error.text or '').strip()}\n"
    words = error.msg if isinstance(error, SyntaxError) else error
    return {"kind": "error", "data": clipped(f"{place}{type(error).__name__}: {words}")}
