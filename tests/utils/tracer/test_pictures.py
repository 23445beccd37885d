"""The tracer's pictures and its slider: what they show is what was counted, and they say which line
it is.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import html
import io
import re

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from numba import cuda, float32

from utils.plots import picture, svg
from utils.tracer import TraceError, charts, pictures, trace
from utils.tracer.steps import layout

F4 = np.float32
TILE = 32


@cuda.jit
def transpose(out, a):
    tile = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    out[x, y] = tile[ty, tx]
    if tx < 16:
        out[x, y] += tile[tx, ty]


@cuda.jit
def shift(out, a, skipping):
    sh = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    sh[t] = a[t]
    if t > skipping:
        cuda.syncthreads()
    out[t] = sh[(t + 1) % 64]


@cuda.jit
def add(out, a):
    i = cuda.grid(1)
    out[i] = a[i] + 1


@pytest.fixture(scope="module")
def transposed():
    a = np.arange(64 * 64, dtype=F4).reshape(64, 64)
    return trace(transpose, (2, 2), (32, 32), np.zeros_like(a), a)


@pytest.fixture(scope="module")
def shifted():
    return trace(shift, 1, 64, np.zeros(64, F4), np.ones(64, F4), 3)


@pytest.fixture(scope="module")
def raced():
    return trace(shift, 1, 64, np.zeros(64, F4), np.ones(64, F4), 63)


def line_of(kernel, code):
    """The number of the kernel's line that holds `code`."""
    import inspect

    lines, first = inspect.getsourcelines(getattr(kernel, "py_func", kernel))
    return first + next(i for i, text in enumerate(lines) if code in text)


def texts(fig):
    """All words in a picture, matplotlib's or a drawing."""
    from matplotlib.text import Text

    if isinstance(fig, svg.Drawing):
        return html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", fig.svg())))
    words = " ".join(text.get_text() for text in fig.findobj(Text))
    return words.replace(charts.NO_BREAK_SPACE, " ")


def png(fig):
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png")
    return buffer.getvalue()


def as_saved(fig):
    """The picture as text and as HTML, as a notebook keeps it."""
    if isinstance(fig, svg.Drawing):
        return repr(fig), fig._repr_html_()
    data = fig._repr_mimebundle_()
    return data["text/plain"], data["text/html"]


def bars(drawing):
    """{bank: passes} of a picture of banks: the numbers above its bars, by their column."""
    first = drawing.svg().index(">passes</text>")
    above = drawing.svg()[first:].partition(svg.FAINT)[0]  # then come the words
    numbers = re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="middle"[^>]*>(\d+)</text>', above)
    left, width = pictures.NAMES, pictures.BANK_WIDTH
    return {int((float(x) - left) / width): int(passes) for x, passes in numbers}


def drawn(t):
    yield t.draw_memory(), "out[x, y] = tile[ty, tx]"
    yield t.draw_memory("a[y, x]"), "tile[ty, tx] = a[y, x]"
    yield t.draw_banks("+="), "out[x, y] += tile[tx, ty]"
    yield t.draw_banks(), "out[x, y] += tile[tx, ty]"
    yield t.draw_divergence(), "if tx < 16:"
    yield t.draw_barriers(), "cuda.syncthreads()"
    yield t.steps().draw(0), "tile[ty, tx] = a[y, x]"


def test_every_picture_names_its_line_and_has_a_text_alternative(transposed):
    for fig, code in drawn(transposed):
        shown = texts(fig)
        assert code in shown and str(line_of(transpose, code)) in shown
        assert len(fig.alt) > 30
        plain, shown = as_saved(fig)
        assert plain == fig.alt
        assert f'alt="{html.escape(fig.alt)}"' in shown
        assert f'aria-label="{html.escape(fig.alt)}"' in shown


ROOM = 1268, 608  # pixels that a slide of a heading and a picture gives the picture


def letters_on_a_slide(fig):
    """Pixels of the smallest letters of a picture on a slide; of ×32 in a cell, less is enough."""
    from matplotlib.text import Text

    if isinstance(fig, svg.Drawing):
        size = fig.width, fig.height
        found = re.findall(r'font-size="([\d.]+)"[^>]*>([^<]*)<', fig.svg())
    else:
        size = 72 * fig.get_size_inches()
        found = [(text.get_fontsize(), text.get_text()) for text in fig.findobj(Text)]
    times = min(room / length for room, length in zip(ROOM, size, strict=True))
    shared = re.compile(r"×\d\d")
    return times * min(
        float(points) for points, words in found if words.strip() and not shared.fullmatch(words)
    )


def test_letters_can_be_read_from_the_last_row(transposed, raced):
    pictures_of_both = [fig for fig, _ in drawn(transposed)] + [raced.draw_races()]
    for fig in pictures_of_both:
        assert letters_on_a_slide(fig) >= 17.5, fig.alt
    assert letters_on_a_slide(transposed.draw_memory("out[x, y] = tile")) >= 17.5, "a tall one"


def test_the_memory_picture_says_what_was_counted(transposed):
    fig = transposed.draw_memory("a[y, x]")
    assert "reads a: 4 sectors, 4 would do = 100 %" in texts(fig) and "not asked for" not in texts(
        fig
    )
    fig = transposed.draw_memory("out[x, y] = tile")
    assert "writes out: 32 sectors, 4 would do = 12.5 %" in fig.alt and "not asked for" in texts(
        fig
    )
    labels = [label.get_text() for label in fig.axes[0].get_yticklabels()]
    shown = pictures.MOST_ROWS
    assert labels == [f"out[{row}, 0]" for row in range(shown)], "a row of memory for each lane"
    assert f"(and {32 - shown} more rows)" in texts(fig)


def test_a_request_can_be_chosen(transposed):
    fig = transposed.draw_memory("a[y, x]", warp=33)
    assert "warp 1 of block (1,0)" in fig.alt
    assert fig.axes[0].get_yticklabels()[0].get_text() == "a[1, 32]"
    with pytest.raises(TraceError, match="1 times"):
        transposed.draw_memory("a[y, x]", time=1)
    with pytest.raises(TraceError, match="no such access"):
        transposed.draw_memory("nowhere")


def cells_of(axes):
    """The colours of cells that were drawn: [rows, columns, 4]."""
    (_, right), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    rows, columns = round(bottom + 0.5), round(right + 0.5)
    places = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1)
    seen = np.zeros((rows, columns, 4))
    for patch in axes.patches:
        inside = patch.get_path().contains_points(places.reshape(-1, 2))
        seen[inside.reshape(rows, columns)] = patch.get_facecolor()
    return seen


def row_of(fig, code):
    """The row of a picture of lines that shows `code`."""
    rows = [text.get_text().replace(charts.NO_BREAK_SPACE, " ") for text in fig.axes[0].texts]
    return next(i for i, text in enumerate(rows) if code in text)


def test_the_bank_picture_shows_the_conflict_and_its_cure(transposed):
    conflict = transposed.draw_banks("+=")
    assert bars(conflict) == {0: 16} and "16-way bank conflict" in conflict.alt
    free = transposed.draw_banks("out[x, y] = tile")
    assert bars(free) == dict.fromkeys(range(32), 1)
    assert "no bank conflict" in free.alt


def test_the_divergence_picture_colours_the_lanes_that_ran(transposed):
    fig = transposed.draw_divergence()
    picture = cells_of(fig.axes[1])
    half, every = row_of(fig, "+="), row_of(fig, "cuda.syncthreads()")
    idle = np.all(np.isclose(picture, picture[half, 31]), axis=-1)
    assert idle[half].tolist() == ([False] * 16 + [True] * 16) * 4
    assert not idle[every].any()
    assert "16 of 32" in texts(fig)
    with pytest.raises(TraceError, match="4 blocks"):
        transposed.draw_divergence(block=4)


def test_the_barrier_picture_shows_who_skips_it(shifted):
    fig = shifted.draw_barriers()
    picture = cells_of(fig.axes[1])
    row = picture[row_of(fig, "cuda.syncthreads()")]
    skips = np.all(np.isclose(row, row[0]), axis=-1)
    assert skips.tolist() == [True] * 4 + [False] * 60
    assert "4 threads skip it" in fig.alt and "4 skip it" in texts(fig)


def test_the_race_picture_shows_both_lines(raced):
    fig = raced.draw_races()
    shown = texts(fig)
    assert f"line {line_of(shift, 'sh[t] = a[t]')}" in shown
    assert f"line {line_of(shift, 'out[t] =')}" in shown
    assert "Race on sh[" in fig.alt


def test_pictures_of_what_did_not_happen_are_refused():
    t = trace(add, 1, 32, np.zeros(32, F4), np.ones(32, F4))
    with pytest.raises(TraceError, match="no race"):
        t.draw_races()
    with pytest.raises(TraceError, match="came to a barrier"):
        t.draw_barriers()
    with pytest.raises(TraceError, match="there are: none"):
        t.draw_banks()


def test_steps_follow_the_program():
    t = trace(add, 2, 64, np.zeros(128, F4), np.ones(128, F4))
    steps = t.steps(warp=3)
    assert len(steps) == 2
    assert "32 lanes read a[96] … a[127]" in steps.describe(
        0
    ) and "warp 1 of block 1" in steps.describe(0)
    assert "32 lanes write out[96] … out[127]" in steps.describe(1)
    assert str(line_of(add, "out[i] =")) in steps.describe(1)
    with pytest.raises(TraceError, match="4 warps"):
        t.steps(warp=4)


def test_the_slider_draws_the_step_and_the_warp_that_are_chosen(transposed):
    steps = transposed.steps()
    controls, picture, words = steps.widget().children
    play, slider, choice = controls.children
    assert (slider.value, slider.max) == (1, len(steps))
    first = picture.value
    assert "<svg" in first and "read a[0, 0]" in words.value
    slider.value = 2
    assert picture.value != first and "write tile[0, 0]" in words.value
    choice.value = 33  # block (1,0), warp 1
    assert "write tile[1, 0]" in words.value
    bundle = steps._repr_mimebundle_()
    assert {"text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} <= set(bundle)
    assert "step 1 of" in bundle["text/plain"]


@cuda.jit
def turn_in_rounds(out, a):
    sh = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for j in range(0, 64, 32):
        sh[t + j] = a[t + j]
    cuda.syncthreads()
    for j in range(0, 64, 32):
        out[t + j] = sh[63 - t - j]


def test_on_paper_each_access_is_drawn_at_its_first_step():
    t = trace(turn_in_rounds, 1, 32, np.zeros(64, F4), np.ones(64, F4))
    said = t.steps().still().alt
    for number in (1, 2, 5, 6):
        assert f"step {number} of 8" in said
    assert said.count("step") == 4


def test_four_steps_of_large_arrays_fit_a_page():
    side = np.zeros((64, 64), F4)
    steps = trace(transpose, (2, 2), (TILE, TILE), side, side.copy()).steps()
    width, height = steps.still().get_size_inches()
    assert height < 1.1 * width


def test_large_arrays_are_drawn_in_part():
    class Memory:
        shape = (100_000,)

    rows, columns = layout(Memory)
    assert rows * columns <= 4096
    t = trace(add, 1, 32, np.zeros(100_000, F4), np.ones(100_000, F4))
    assert png(t.steps().draw(0))


@cuda.jit
def scattered(out, a):
    i = cuda.grid(1)
    out[i] = a[i * 1000]


def test_pictures_of_every_element_size():
    for dtype in (np.int8, np.float16, F4, np.float64, np.complex128):
        t = trace(scattered, 1, 32, np.zeros(32, dtype), np.ones(32_000, dtype))
        assert png(t.draw_memory("a[")) and png(t.draw_divergence())


def test_a_notebook_shows_report_pictures_and_slider(tmp_path):
    cells = [
        "import utils\nimport numpy as np\nfrom numba import cuda\nfrom utils.tracer import trace",
        "@cuda.jit\ndef twice(a):\n    i = cuda.grid(1)\n    a[i] = a[2 * i]",
        "t = trace(twice, 1, 32, np.zeros(64, np.float32))\nt",
        "t.draw_memory()",
        "t.steps()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    report, picture, steps = (cell.outputs[0]["data"] for cell in notebook.cells[2:])
    assert "a[i] = a[2 * i]" in report["text/html"] and "50 %" in report["text/html"]
    assert "line 4:  a[i] = a[2 * i]" in picture["text/plain"], "the line's number in its cell"
    assert "RACE" in report["text/plain"]
    assert "<svg" in steps["text/html"] and "application/vnd.jupyter.widget-view+json" in steps


@pytest.mark.parametrize("lane", range(32))
def test_a_lanes_number_can_be_read_on_its_colour(lane):
    dark, light = sorted(picture.luminance(colour) for colour in pictures.lane_colour(lane))
    assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG's, for letters of this size
