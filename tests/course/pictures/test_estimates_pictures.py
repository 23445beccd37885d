"""The pictures of the chapter Say it before you run it show what is so."""

from course.pictures import estimates
from utils.cpu.numba_cuda import cuda
from utils.estimate import Blank, Launch, estimate
from utils.estimate.gpus import gpu


@cuda.jit
def copy(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i]


def test_each_resource_has_a_bar_and_the_whole_is_called_an_estimate():
    n = 1 << 24
    made = estimate(Launch(copy, n // 32, 32, (Blank(n), Blank(n))))
    sheet = estimates.resources(made, "A copy")
    assert "A copy on an H200, estimated: the start of blocks" in sheet.alt
    assert "the launch 2.69 µs; together" in sheet.alt and "an estimate" in sheet.svg()


def test_what_was_said_stands_beside_what_was_measured():
    fig = estimates.beside_clock({"256 threads": (0.1, estimates.clock("vector_add/numba"))})
    axes = fig.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["256 threads"]
    (ratio,) = [one.get_text() for one in axes.texts]
    assert ratio.startswith("× 0.")


def test_the_worst_come_first(capsys):
    estimates.worst(3)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("histogram/numba_global_atomics")


def test_the_judged_kernels_are_described():
    assert "H200: " in repr(estimates.judged()) and "median error" in repr(estimates.judged())
    assert "<svg" in estimates.judged()._repr_html_()


def test_all_block_sizes_are_drawn():
    fig = estimates.units(gpu("H200"))
    assert len(fig.axes[0].patches) == 6
