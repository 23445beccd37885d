"""What running sums are good for: compaction, run lengths, row offsets, sums of segments.

The steps of cuda/scan_uses.cu in Numba, and functions that run them in either language:

    scan_uses.compact(x, 0.5)                  # the elements of x that are greater than 0.5
    scan_uses.run_lengths(x, language="cuda_c")

Arrays are NumPy's on both sides, so that what happens in between can be looked at.
"""

import numpy as np
from numba import cuda, float32, int32

from course.kernels.reductions import photo, scans
from course.kernels.reductions.kernels import is_yours, load
from utils.occupancy import ceil_div
from utils.tracer import trace

THREADS = 256

# ---- stream compaction: keep the elements greater than a threshold -----------------------------


@cuda.jit
def mark_greater(x, threshold, marks):
    i = cuda.grid(1)
    if i < x.size:
        marks[i] = x[i] > threshold


@cuda.jit
def gather_marked(x, marks, places, out):
    """places: the inclusive sum of the marks."""
    i = cuda.grid(1)
    if i < x.size and marks[i]:
        out[places[i] - 1] = x[i]


# ---- run lengths: 7 7 7 5 5 9 becomes 3 times 7, 2 times 5, 1 time 9 ---------------------------


@cuda.jit
def mark_beginnings(x, marks):
    i = cuda.grid(1)
    if i < x.size:
        marks[i] = i == 0 or x[i] != x[i - 1]


@cuda.jit
def gather_beginnings(x, marks, places, values, begins):
    """places: the inclusive sum of the marks. begins has room for one more than there are runs."""
    i = cuda.grid(1)
    if i < x.size and marks[i]:
        values[places[i] - 1] = x[i]
        begins[places[i] - 1] = i
    if i == x.size - 1:
        begins[places[i]] = x.size


@cuda.jit
def lengths_of_runs(begins, lengths):
    run = cuda.grid(1)
    if run < lengths.size:
        lengths[run] = begins[run + 1] - begins[run]


# ---- row offsets of a sparse matrix (CSR) from its elements' rows ------------------------------


@cuda.jit
def count_rows(rows, counts):
    """counts: zeros before; their inclusive sum, behind a 0, are the offsets."""
    i = cuda.grid(1)
    if i < rows.size:
        cuda.atomic.add(counts, rows[i], 1)


# ---- a segmented sum: it begins anew wherever a flag stands ------------------------------------


@cuda.jit
def segmented_scan(x, where, out, block_sums, block_begins):
    """Each block scans its own elements, as pairs of a sum and whether a segment begins in it."""
    sums = cuda.shared.array((2, THREADS), float32)
    begins = cuda.shared.array((2, THREADS), int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    now = 0
    sums[now, t] = x[i] if i < x.size else float32(0)
    begins[now, t] = where[i] if i < x.size else int32(0)
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        total, begun = sums[now, t], begins[now, t]
        if t >= step:
            if not begun:
                total += sums[now, t - step]
            begun |= begins[now, t - step]
        now = 1 - now
        sums[now, t] = total
        begins[now, t] = begun
        cuda.syncthreads()
        step *= 2
    if i < x.size:
        out[i] = sums[now, t]
    if t == THREADS - 1:
        block_sums[cuda.blockIdx.x] = sums[now, t]
        block_begins[cuda.blockIdx.x] = begins[now, t]


@cuda.jit
def add_to_open_segments(where, out, starts):
    """starts: the scanned block_sums. What stands before its block's first flag gets the sum."""
    first_flag = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if t == 0:
        first_flag[0] = THREADS
    cuda.syncthreads()
    if i < out.size and where[i]:
        cuda.atomic.min(first_flag, 0, t)
    cuda.syncthreads()
    if i < out.size and cuda.blockIdx.x > 0 and t < first_flag[0]:
        out[i] += starts[cuda.blockIdx.x - 1]


# ---- run in either language --------------------------------------------------------------------


def _launch(
    name: str,
    language: str,
    size: int,
    *arguments,
    in_front: int = 1,
):
    """A kernel in either language, a thread an element.

    arguments: as the Numba kernel takes them; in_front: how many of them are arrays of `size`
    elements that stand in front: after them a kernel in CUDA C is told the size.
    """
    blocks = ceil_div(size, THREADS)
    if language == "numba":
        kernel = globals()[name]
    else:
        kernel = getattr(load("scan_uses.cu"), name)
        arguments = (*arguments[:in_front], size, *arguments[in_front:])
    kernel[blocks, THREADS](*arguments)


def _integers(count: int):
    return cuda.device_array(count, np.int32)


def sort_by_bits(split, keys: np.ndarray) -> np.ndarray:
    """The keys (int32, below 256) sorted, bit after bit, by a kernel split(out, keys, places, bit).

    places: the inclusive sum of the keys' bits, as the exercise reductions.split has it.
    """
    return bit_by_bit(split, keys, range(8))[-1]


def bit_by_bit(split, keys: np.ndarray, bits) -> list[np.ndarray]:
    """The keys (int32) after each bit by which a kernel like that of `sort_by_bits` splits them."""
    passes = []
    for bit in bits:
        marks = cuda.to_device((keys >> bit & 1).astype(np.int32))
        out = cuda.to_device(np.zeros_like(keys))
        places = _running_sum(marks)
        split[ceil_div(keys.size, THREADS), THREADS](out, cuda.to_device(keys), places, bit)
        keys = out.copy_to_host()
        passes.append(keys)
    return passes


def by_time(split, packets: np.ndarray, highest_first: bool = False) -> list[np.ndarray]:
    """A photograph's packets at first, and after each pass: pass k has sorted by k bits of time.

    split: as for `sort_by_bits`. highest_first: begin with the highest bit; each pass then undoes
    what the one before has done.
    """
    bits = range(photo.BRIGHTNESS_BITS, int(packets.max()).bit_length())
    if highest_first:
        bits = bits[::-1]
    return [packets, *bit_by_bit(split, packets, bits)]


def _floats(count: int):
    return cuda.device_array(count, np.float32)


def _running_sum(marks):
    places = _integers(marks.size)
    scan = scans.Scan(marks.size, "int32")
    scan(marks, places)
    return places


def compact(
    x: np.ndarray,
    threshold: float,
    language: str = "numba",
) -> np.ndarray:
    """The elements of x (float32) that are greater than threshold, in their order."""
    if x.size == 0:
        return x.copy()
    source = cuda.to_device(x)
    marks = _integers(x.size)
    threshold = np.float32(threshold)
    _launch("mark_greater", language, x.size, source, threshold, marks)
    places = _running_sum(marks)
    out = _floats(x.size)
    _launch("gather_marked", language, x.size, source, marks, places, out)
    count = places.copy_to_host()[-1]
    return out.copy_to_host()[:count]


def run_lengths(x: np.ndarray, language: str = "numba") -> tuple[np.ndarray, np.ndarray]:
    """The values of the runs of equal neighbours in x (int32), and how long each run is."""
    if x.size == 0:
        return x.copy(), x.copy()
    source = cuda.to_device(x)
    marks = _integers(x.size)
    _launch("mark_beginnings", language, x.size, source, marks)
    places = _running_sum(marks)
    runs = int(places.copy_to_host()[-1])
    values = _integers(runs)
    begins = _integers(runs + 1)
    _launch("gather_beginnings", language, x.size, source, marks, places, values, begins)
    lengths = _integers(runs)
    _launch("lengths_of_runs", language, runs, begins, lengths)
    return values.copy_to_host(), lengths.copy_to_host()


def row_offsets(
    rows: np.ndarray,
    count: int,
    language: str = "numba",
) -> np.ndarray:
    """Where each of `count` rows begins, if elements stand in the order of their rows (int32)."""
    offsets = np.zeros(count + 1, np.int32)
    if rows.size == 0 or count == 0:
        return offsets
    on_device = cuda.to_device(rows)
    counts = cuda.to_device(np.zeros(count, np.int32))
    _launch("count_rows", language, rows.size, on_device, counts)
    offsets[1:] = _running_sum(counts).copy_to_host()
    return offsets


def segmented_sums(
    x: np.ndarray,
    where: np.ndarray,
    language: str = "numba",
) -> np.ndarray:
    """Running sums of x (float32) that begin anew wherever `where` (int32) is 1."""
    out = cuda.device_array(x.size, np.float32)
    _segmented(cuda.to_device(x), cuda.to_device(where), out, language)
    return out.copy_to_host()


def _segmented(x, where, out, language):
    if x.size == 0:
        return
    blocks = ceil_div(x.size, THREADS)
    sums = _floats(blocks)
    begins = _integers(blocks)
    arrays = (x, where, out, sums, begins)
    _launch("segmented_scan", language, x.size, *arrays, in_front=2)
    if blocks > 1:
        starts = _floats(blocks)
        _segmented(sums, begins, starts, language)
        _launch("add_to_open_segments", language, x.size, where, out, starts)


def watch_compaction(kernel, x: np.ndarray, threshold: float) -> None:
    """Say whether a kernel like `gather_marked` keeps what it should, and what the tracer sees.

    x: at most THREADS numbers. Nothing is raised.
    """
    keep = x > threshold
    places = np.cumsum(keep, dtype=np.int32)
    out = np.full(places[-1], np.nan, np.float32)
    if is_yours(kernel, gather_marked):
        print("[yours: the Numba kernel of your cell]")
    watched = trace(kernel, 1, THREADS, x, keep.astype(np.int32), places, out)
    for problem in watched.problems[:1]:
        print(problem)
    kept = watched.results["out"]
    right = np.array_equal(kept, x[keep])
    print(f"✓ right: {kept.size} kept" if right else f"kept {kept[:3]} ..., right is {x[keep][:3]}")
