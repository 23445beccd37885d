"""Pictures of the front pages, README.md's and the website's: the race against PyTorch,
from recorded results, and a film of threads that race.
"""

import linecache

from course.pictures.beating_pytorch import best_of_pytorch, origin, race, times
from utils import cuda, np
from utils.cpu import numba_cuda
from utils.plots import svg
from utils.results.likeness import RECORDED_ON
from utils.tracer import play, trace

#: What stands in the race's picture, the slowest first: how results call it, how readers do
RIVALS = {
    "pytorch/eager_fp32": "PyTorch, eager",
    "pytorch/compile_tf32": "PyTorch, torch.compile, tf32",
    "pytorch/graph_compile_bf16": "PyTorch, compiled, CUDA graph, bf16",
    "pytorch/graph_max_autotune_bf16_channels_last": "PyTorch's best: max-autotune, graph, bf16",
    "ours/bf16": "this course's hand-written CUDA, bf16",
}
BATCH = 64
OURS, THEIRS = "#0072B2", "#A9BCD6"
WIDTH, ROW, SIZE = 640, 52, 16  # pixels: the sheet, from bar to bar, letters
WHOLE = 0.45  # of the room, for the best of PyTorch; a slower mode's bar may be cut


def race_at(batch=BATCH):
    """({rival: microseconds a training step}, whose) of those in RIVALS that are recorded."""
    entries = race(gpu=RECORDED_ON)
    by_rival = times(entries)
    steps = {
        rival: by_rival[rival][batch]["value"]
        for rival in RIVALS
        if batch in by_rival.get(rival, {})
    }
    return steps, origin(entries)


def lead():
    """(least, most): how many times faster our step is than PyTorch's best, over batch sizes."""
    rivals = times(race(gpu=RECORDED_ON))
    ratios = []
    for batch, theirs in best_of_pytorch(rivals).items():
        ours = min(
            by_batch[batch]["value"]
            for rival, by_batch in rivals.items()
            if rival.startswith("ours/") and batch in by_batch
        )
        ratios.append(rivals[theirs][batch]["value"] / ours)
    return min(ratios), max(ratios)


def race_picture(batch=BATCH):
    """A bar for each rival: how long a training step takes. Ours is highlighted."""
    steps, whose = race_at(batch)
    best = min(time for rival, time in steps.items() if rival.startswith("pytorch/"))
    said = "; ".join(f"{RIVALS[rival]} {time:,.0f} µs" for rival, time in steps.items())
    alt = f"One training step, batch {batch}, {whose}: {said}"
    sheet = svg.Drawing(WIDTH, ROW * len(steps) + 74, alt=alt)
    room = WIDTH - 130
    scale = WHOLE * room / best
    for row, (rival, time) in enumerate(steps.items()):
        is_ours = rival.startswith("ours/")
        words = f"{time:,.0f} µs"
        if is_ours:
            words += f" · {best / time:.1f} × faster"
        _bar(sheet, row, RIVALS[rival], (time * scale, room), words, is_ours)
    below = ROW * len(steps) + 12
    about = f"a training step of a CNN, batch {batch}"
    cut = "bars with a gap are longer than drawn"
    for row, words in enumerate((about, whose, cut)):
        sheet.text_from(0, below + 24 * row, words, size=13)
    return sheet


def _bar(sheet, row, name, lengths, words, is_ours):
    """A rival's name, and below it its bar and what it says. lengths: the bar's, and the longest
    that is drawn: with a gap, if the bar would be longer.
    """
    top = ROW * row
    how = {
        "anchor": "start",
        "size": SIZE,
        "font_weight": "bold" if is_ours else None,
    }
    sheet.text(0, top + 12, name, **how)
    long, most = lengths
    pieces = [(0, max(long, 2))] if long <= most else [(0, most - 36), (most - 28, 28)]
    for left, wide in pieces:
        sheet.box(left, top + 24, wide, 20, fill=OURS if is_ours else THEIRS, rx=3)
    sheet.text(min(long, most) + 8, top + 34, words, **how)


@cuda.jit
def copy(out, a, stride):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i * stride]


@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    out[i] = factor * a[i]


def reads_picture(stride):
    """What one warp of `copy` reads, drawn from a run of it."""
    source = np.zeros(32 * stride, np.float32)
    return trace(copy, 1, 32, np.zeros(32, np.float32), source, stride).draw_memory(array="a")


#: Two kernels as cells, so that a film counts their lines from 1
RACES = """\
@cuda.jit
def shift(a):
    i = cuda.threadIdx.x
    if i < a.size - 1:
        a[i] = a[i + 1]
"""
CURED = """\
@cuda.jit
def shift(a):
    i = cuda.threadIdx.x
    value = a[min(i + 1, a.size - 1)]
    cuda.syncthreads()
    if i < a.size:
        a[i] = value
"""
FILMED = 64  # threads: two warps


def films():
    """{title: trace} of a kernel whose threads race, and of the same with a barrier."""
    a = np.arange(FILMED, dtype=np.float32)
    with numba_cuda.schedule(1):  # an order of threads in which the race shows
        raced = trace(_kernel(RACES), 1, FILMED, a)
    return {"a race": raced, "cured by a barrier": trace(_kernel(CURED), 1, FILMED, a)}


def film():
    """Both films on one clock, from their beginning."""
    shown = films()
    return play(*shown.values(), names=tuple(shown))


def _kernel(source):
    """The kernel `shift` of a text, whose lines the tracer finds as those of a cell."""
    file = f"<film {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"cuda": cuda}
    exec(compile(source, file, "exec"), names)
    return names["shift"]
