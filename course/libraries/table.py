"""The table of ten tasks: shares of the roof as recorded, lines counted from the files."""

import inspect
from dataclasses import dataclass
from datetime import datetime

from course.libraries.programs import FOLDER
from course.libraries.tasks import TASKS, Task
from utils import results
from utils.tools import source

ONE_RUN = 600  # seconds: what was recorded further apart is of different runs

#: What the times of `beside` are of, in words.
LABELS = {
    "convolution/python": "the convolution in float32",
    "convolution/python_tf32": "the one in TF32",
    "lt_relu_bias": "relu(x w + bias)",
    "lt_plain": "the bare product",
    "gemm_large/cuda_c": "cuBLAS's bf16 product",
    "lt_fp8": "the fp8 product",
    "xt": "the product from the host",
    "matmul/fp32/8192/cublas": "the one on the GPU",
    "plan_in_loop": "a turn that makes its plan",
    "plan_once": "one with the plan made before",
    "spmv/ours": "our kernel",
    "spmv/cuda_c": "cuSPARSE",
    "sparse24": "the 2:4 product",
    "sparse24_searched": "the 2:4 product after a search",
    "cutlass": "CUTLASS",
}


@dataclass(frozen=True)
class Row:
    """One task: shares of its roof (None where nothing is recorded), and lines of code.

    apart: those of the ways whose time is of another run than the library's.
    """

    task: Task
    shares: dict
    apart: frozenset
    c_lines: int
    python_lines: int


def code_lines(text: str) -> int:
    """Lines that are neither empty nor only a comment."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(("//", "#")) for line in lines)


def time_of(task: Task, who: str) -> dict | None:
    """The recorded time of "cuda_c", "python", "ours" or the library "alone", in ms."""
    names = {"cuda_c": task.cuda_c, "ours": task.ours, "python": task.in_python}
    elsewhere = (names | {"alone": task.alone})[who]
    return results.find(elsewhere or f"library/{task.key}/{who}/time", _gpu())


def _gpu() -> str | None:
    """The GPU of the whole table: that of the recorded roofs."""
    roof = results.find("library/roof/copy")
    return roof and roof["gpu"]


def share(task: Task, who: str) -> float | None:
    """What part of its roof a way reaches: recorded amounts a second, by the recorded roof."""
    time, roof = time_of(task, who), results.find(f"library/roof/{task.roof}")
    if time is None or roof is None:
        return None
    return task.amount / (time["value"] * 1e-3) / roof["value"]


def of_another_run(task: Task, who: str) -> bool:
    """Whether a recorded time is not of the run in which the library's was measured."""
    theirs, other = time_of(task, "cuda_c"), time_of(task, who)
    if theirs is None or other is None:
        return False
    begin, end = (datetime.fromisoformat(time["date"]) for time in (theirs, other))
    return abs((end - begin).total_seconds()) > ONE_RUN


def row(task: Task) -> Row:
    ways = {"library": "cuda_c", "Python": "python", "ours": "ours"}
    shares = {name: share(task, who) for name, who in ways.items()}
    apart = frozenset(name for name, who in ways.items() if of_another_run(task, who))
    in_c = source.function(FOLDER / f"{task.program}.cu", task.c_function)
    in_python = inspect.getsource(task.python)
    return Row(task, shares, apart, code_lines(in_c), code_lines(in_python))


def rows() -> list[Row]:
    return [row(task) for task in TASKS]


def show() -> None:
    """Print the table, and on which GPU and day its times were recorded."""
    print(f"{'':46}{'library':>9}  {'Python':>6}   {'ours':>5}   lines in C, in Python")
    found = rows()
    for each in found:
        cells = [_cell(each, name) for name in each.shares]
        where = f"{each.task.title} ({each.task.library})"
        counts = f"{each.c_lines:10}, {each.python_lines}" + ("  †" if each.task.alone else "")
        print(f"{where:50} {cells[0]:>6} {cells[1]:>7} {cells[2]:>7} {counts}")
    print(whose())
    if any(each.apart for each in found):
        print("* measured in another run than the library: a few percent say nothing")
    for each in found:
        if each.task.alone and each.shares["library"]:
            print(alone_too(each))


def alone_too(row: Row) -> str:
    """A footnote: the library's share in the race, and in a run of its own."""
    alone, raced = share(row.task, "alone"), row.shares["library"]
    if alone is None:
        return f"† {raced:.0%} in the race with ours; alone it is not recorded yet"
    return f"† {raced:.0%} in the race with ours; {alone:.0%} alone, in a run of its own"


def _cell(row: Row, name: str) -> str:
    part = row.shares[name]
    if not part:
        return "- "
    return f"{part:.0%}" + ("*" if name in row.apart else " ")


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
    longer, shorter = _times(slow, fast)
    if longer is None or shorter is None:
        missing = slow if longer is None else fast
        return f"{LABELS.get(missing, missing)}: not recorded yet"
    times = longer["value"] / shorter["value"]
    digits = 2 if times < 20 else 0  # of more nobody has measured so much
    a, b = LABELS.get(slow, slow), LABELS.get(fast, fast)
    return (
        f"{a} ({longer['value']:.3g} ms) takes {times:.{digits}f} times as long as {b}"
        f" ({shorter['value']:.3g} ms) · {longer['gpu']}, {longer['date'][:10]}"
    )


def _times(slow: str, fast: str) -> tuple[dict | None, dict | None]:
    """Two recorded times, both of one GPU."""
    names = [f"{start}{name}/time" for name in (slow, fast) for start in ("library/", "")]
    in_library, elsewhere, in_library_too, elsewhere_too = results.together(*names)
    return in_library or elsewhere, in_library_too or elsewhere_too
