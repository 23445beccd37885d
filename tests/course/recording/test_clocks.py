"""A cell that times something is known, so that it can run alone."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from course.chapters import FOLDER
from course.recording.clocks import timed

SETUP = "from utils import benchmark, check, machine, np, pick\nmachine()"
LADDER = "from course.kernels.matmul.ladder import Ladder"
PROGRAM = "%%writefile build/t.cu\nint main() { cudaEventElapsedTime(&ms, a, b); }"


def found(*sources):
    """The places of the cells that are timed."""
    cells = [new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    return sorted(int(id[1:]) for id in timed(cells))


@pytest.mark.parametrize(
    "sources, alone",
    [
        ([SETUP, "a = np.ones(3)", "benchmark(lambda: f(a))"], [0, 2]),
        (["from time import perf_counter", "begin = perf_counter()"], [1]),
        (["def run():\n    return benchmark(f)", "run", "print(1)"], [1]),
        ([LADDER, "ladder = Ladder()", "ladder.climb('a')"], [1, 2]),
        ([LADDER, "Ladder = 3", "Ladder"], []),
        (["from course import exercises", "exercises.check('a.b', f)"], []),
        (["from course.pictures import diagrams", "diagrams.gpu()"], []),
        ([PROGRAM, "%nvcc build/t.cu --run", "%nvcc build/other.cu --run"], [1]),
        (["%timeit f()", "!nvidia-smi"], [0]),
        (["def (:  # benchmark", "%%writefile build/x.cu\nint a;"], []),
    ],
)
def test_what_leads_to_a_clock_is_timed(sources, alone):
    assert found(*sources) == alone


@pytest.mark.parametrize("name", ["05_first_kernels", "08_profiling"])
def test_every_benchmark_of_a_chapter_is_timed_and_most_cells_are_not(name):
    cells = nbformat.read(FOLDER / f"{name}.ipynb", 4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    alone = timed(cells)
    calls = [cell.id for cell in code if cell.source.startswith(("benchmark(", "compare("))]
    assert calls and set(calls) <= alone
    assert len(alone) < len(code) / 2
