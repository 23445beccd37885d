"""The table of ten tasks: shares of the roof as recorded, lines counted from the files."""

import inspect
from dataclasses import dataclass

from course.libraries.programs import FOLDER
from course.libraries.tasks import TASKS, Task
from utils import results
from utils.tools import source


@dataclass(frozen=True)
class Row:
    """One task: shares of its roof (None where nothing is recorded), and lines of code."""

    task: Task
    shares: dict
    c_lines: int
    python_lines: int


def code_lines(text: str) -> int:
    """Lines that are neither empty nor only a comment."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(("//", "#")) for line in lines)


def time_of(task: Task, who: str) -> dict | None:
    """The recorded time of "cuda_c", "python" or "ours", in ms."""
    elsewhere = {"cuda_c": task.cuda_c, "ours": task.ours}.get(who, "")
    return results.find(elsewhere or f"library/{task.key}/{who}/time")


def share(task: Task, who: str) -> float | None:
    """What part of its roof a way reaches: recorded amounts a second, by the recorded roof."""
    time, roof = time_of(task, who), results.find(f"library/roof/{task.roof}")
    if time is None or roof is None:
        return None
    amount = task.ours_amount if who == "ours" and task.ours_amount else task.amount
    return amount / (time["value"] * 1e-3) / roof["value"]


def row(task: Task) -> Row:
    shares = {
        "library": share(task, "cuda_c"),
        "Python": share(task, "python"),
        "ours": share(task, "ours"),
    }
    in_c = source.function(FOLDER / f"{task.program}.cu", task.c_function)
    in_python = inspect.getsource(task.python)
    return Row(task, shares, code_lines(in_c), code_lines(in_python))


def rows() -> list[Row]:
    return [row(task) for task in TASKS]


def show() -> None:
    """Print the table, and on which GPU and day its times were recorded."""
    print(f"{'':46}{'library':>9}  {'Python':>6}  {'ours':>5}   lines in C, in Python")
    for each in rows():
        cells = [f"{part:.0%}" if part else "-" for part in each.shares.values()]
        where = f"{each.task.title} ({each.task.library})"
        counts = f"{each.c_lines:10}, {each.python_lines}"
        print(f"{where:50} {cells[0]:>5} {cells[1]:>6} {cells[2]:>6} {counts}")
    print(whose())


def whose() -> str:
    """Where the numbers are from, or that there are none yet."""
    roof = results.find("library/roof/copy")
    if roof is None:
        return "nothing recorded yet: course.libraries.bench records it on a GPU"
    return f"shares of the roof, recorded on {roof['gpu']}, {roof['date'][:10]}"


def beside(slow: str, fast: str) -> None:
    """Print `ratio`."""
    print(ratio(slow, fast))


def ratio(slow: str, fast: str) -> str:
    """How many times as long one recorded time is as another, in words, with GPU and day.

    slow, fast: names of results without "/time"; those that begin with "library/" without that.
    """
    longer, shorter = _time(slow), _time(fast)
    if longer is None or shorter is None:
        return "not recorded yet"
    times = longer["value"] / shorter["value"]
    return (
        f"{slow} {longer['value']:.3g} ms, {fast} {shorter['value']:.3g} ms: {times:.2f} times"
        f" ({longer['gpu']}, {longer['date'][:10]})"
    )


def _time(name: str) -> dict | None:
    return results.find(f"library/{name}/time") or results.find(f"{name}/time")
