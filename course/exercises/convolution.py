"""The exercises of the chapter Convolution."""

import numpy as np
from numba import cuda

from course.checking.inputs import (
    arguments_of,
    columns_and_rows,
    factor,
    some_numbers,
    some_zeros,
    uniform,
)
from course.checking.model import Demand, Exercise, Hypothesis, Launch, Out, Speed, Wrong
from course.checking.quiz import one_of
from utils.occupancy import ceil_div

# ---- out_size: how many places a filter has


def out_size(size, side, stride, padding, dilation):
    reach = (side - 1) * dilation
    room = size + 2 * padding - reach - 1
    return max(0, room // stride + 1)


OUT_SIZE = Exercise(
    id="convolution.out_size",
    title="How large is the result?",
    minutes=6,
    kind="function",
    task=(
        "A signal of `size` elements gets `padding` zeros at each end. A filter of `side` taps,"
        " `dilation` apart, moves along it by `stride`. Return how many places it has: 0 if it does"
        " not fit at all. Find a formula: a size of 2^60 is tried, too, and nobody counts that far."
    ),
    starter="""
def out_size(size, side, stride, padding, dilation):
    # how far does the filter reach? how far can it move?
    pass
""",
    solution=out_size,
    inputs=arguments_of(out_size),
    reference=out_size,
    shapes=(
        (8, 3, 1, 0, 1),
        (8, 3, 1, 1, 1),
        (8, 3, 2, 1, 1),
        (9, 3, 3, 0, 2),
        (1, 1, 1, 0, 1),
        (0, 1, 1, 1, 1),  # zeros alone
        (2, 5, 2, 0, 1),
        (7, 3, 4, 2, 3),
        (3, 2, 3, 0, 4),
        (2, 3, 1, 1, 1),  # these fit only with the zeros of both ends
        (1, 3, 1, 1, 1),
        (3, 5, 1, 1, 1),
        (2**60 + 1, 3, 2, 1, 1),
        (2**60, 2**55 + 1, 2**33 + 1, 2**56 + 1, 17),
        (2**60, 17, 3, 0, 2**55 + 1),
    ),
    draws=lambda some: some.tuples(
        *(some.integers(low, high) for low, high in ((0, 40), (1, 7), (1, 5), (0, 4), (1, 4)))
    ),
    hints=(
        "From its first tap to its last the filter reaches over `(side - 1) * dilation` elements.",
        (
            "Its first tap may stand at place 0, at `stride`, at `2 * stride` ... as long as its"
            " last tap is inside. Which is the last place where it may stand?"
        ),
        "`(size + 2 * padding - reach - 1) // stride + 1`, and never below 0.",
    ),
    wrong=(
        ("2 * padding", "padding", "wrong_value", "There are `padding` zeros at *each* end."),
        (
            "reach - 1",
            "reach",
            "wrong_value",
            "A filter that reaches over `reach` elements covers one more: its first tap, too.",
        ),
        (
            "return max(0, room // stride + 1)",
            "return max(0, (size + 2 * padding - side) // stride + 1)",
            "wrong_value",
            "With dilation the filter reaches further.",
        ),
        (
            "return max(0, room // stride + 1)",
            "return max(0, (size + 2 * padding - side * dilation) // stride + 1)",
            "wrong_value",
            "Between `side` taps there are `side - 1` gaps: the last tap has none behind it.",
        ),
        (
            "room // stride",
            "-(-room // stride)",
            "wrong_value",
            "A last step that does not fit is not made: round down.",
        ),
        (
            "room // stride + 1",
            "room // stride",
            "wrong_value",
            "The place where it starts counts, too.",
        ),
        (
            "max(0, room // stride + 1)",
            "0 if size < side else out_size(size, side, stride, padding, dilation)",
            "wrong_value",
            "A filter longer than the signal can fit all the same: in the signal with its zeros.",
        ),
        (
            "max(0, room // stride + 1)",
            "0 if size + padding < side else out_size(size, side, stride, padding, dilation)",
            "wrong_value",
            "Whether it fits depends on the zeros of both ends.",
        ),
        (
            "max(0, room // stride + 1)",
            "(size + 2 * padding - (side - 1) * dilation - 1) // stride + 1",
            "wrong_value",
            "Where the filter does not fit there are 0 places.",
        ),
        (
            "max(0, room // stride + 1)",
            "sum(1 for place in range(0, room + 1, stride))",
            "timeout",
        ),
    ),
)


# ---- blur: a tile with a halo, and edges that go on

WIDE, HIGH = 16, 8  # of a block


@cuda.jit
def blur(out, a):
    tile = cuda.shared.array((10, 18), np.float32)
    height, width = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = 16 * cuda.blockIdx.x, 8 * cuda.blockIdx.y
    for i in range(16 * ty + tx, 180, 128):
        r, s = i // 18, i % 18
        y = min(max(top + r - 1, 0), height - 1)
        x = min(max(left + s - 1, 0), width - 1)
        tile[r, s] = a[y, x]
    cuda.syncthreads()
    if top + ty < height and left + tx < width:
        total = np.float32(0)
        for r in range(3):
            for s in range(3):
                total += tile[ty + r, tx + s]
        out[top + ty, left + tx] = total / np.float32(9)


@cuda.jit
def blur_own_pixel_only(out, a):
    tile = cuda.shared.array((8, 16), np.float32)
    height, width = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if y < height and x < width:
        tile[ty, tx] = a[y, x]
        total = np.float32(0)
        for r in range(-1, 2):
            for s in range(-1, 2):
                if r == 0 and s == 0:
                    total += tile[ty, tx]
                else:
                    row = min(max(y + r, 0), height - 1)
                    column = min(max(x + s, 0), width - 1)
                    total += a[row, column]
        out[y, x] = total / np.float32(9)


def blurred(out, a):
    """The mean of each 3 × 3 window; beyond an edge its pixels go on."""
    around = np.pad(a.astype(np.float64), 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3))
    return windows.mean((2, 3)).astype(np.float32)


def blurred_with_zeros(out, a):
    around = np.pad(a.astype(np.float64), 1)
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3))
    return windows.mean((2, 3)).astype(np.float32)


def blurred_by_neighbours(out, a):
    """Zeros beyond the edges, and a sum that is divided by the pixels that there are."""
    around = np.pad(np.ones(a.shape), 1)
    there = np.lib.stride_tricks.sliding_window_view(around, (3, 3)).sum((2, 3))
    return (blurred_with_zeros(out, a) * 9 / there).astype(np.float32)


def blurred_below(out, a):
    """Each window begins at its result's own pixel: a tile without the halo above and left."""
    around = np.pad(a.astype(np.float64), ((0, 2), (0, 2)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3))
    return windows.mean((2, 3)).astype(np.float32)


def reads_again(trace):
    """Of a picture of whole tiles: more pixels of `a` read than the tiles have, and a few."""
    reads = sum(row.accesses for row in trace.coalescing if row.operation == "read")
    if reads <= 1.55 * trace.threads_a_block * trace.blocks:  # a tile has 180 pixels, 1.4 a thread
        return None
    says = (
        f"A block reads {reads / trace.blocks:.0f} pixels of `a`, and its tile has 180. Load each"
        " block's tile with its halo once, and read all nine neighbours there."
    )
    return "too_much_work", says, None


def picture_tiles(shape):
    """Blocks of 16 × 8, just enough, and one more each way."""
    height, width = shape
    grid = ceil_div(width, WIDE), ceil_div(height, HIGH), 1
    block = (WIDE, HIGH, 1)
    more = grid[0] + 1, grid[1] + 1, 1
    return [Launch(grid, block), Launch(more, block, "more blocks than needed")]


BLUR = Exercise(
    id="convolution.blur",
    title="A halo where edges go on",
    minutes=18,
    one_block=True,
    task=(
        "Blur `a`: each result is the mean of the 3 × 3 pixels around it, and beyond an edge the"
        " edge's pixels go on (not zeros). This kernel is right and reads nine pixels from global"
        " memory for each result. Load each block's tile *with its halo* into shared memory once:"
        " blocks have 16 × 8 threads, and a tile 18 × 10 pixels."
    ),
    starter="""
@cuda.jit
def blur(out, a):
    x, y = cuda.grid(2)
    height, width = a.shape
    if y < height and x < width:
        total = np.float32(0)
        for r in range(-1, 2):
            for s in range(-1, 2):
                row = min(max(y + r, 0), height - 1)
                column = min(max(x + s, 0), width - 1)
                total += a[row, column]
        out[y, x] = total / np.float32(9)
""",
    solution=blur,
    inputs=lambda rng, shape: {"out": Out(shape), "a": uniform(rng, *shape)},
    reference=blurred,
    shapes=((1, 1), (8, 16), (9, 17), (16, 32), (5, 40), (23, 7)),
    fresh=some_numbers((2, 30), (3, 45)),
    large=((1, 300), (300, 1)),
    launches=picture_tiles,
    extents=columns_and_rows,
    demand=Demand((16, 32), reads_again),
    race_free=True,
    orders=1,
    speed=Speed("a picture of 2048 × 2048", 2048, lambda side: (side, side)),
    hints=(
        (
            "180 pixels, 128 threads: let thread number `t = 16 * ty + tx` load pixels t and"
            " t + 128 of the tile, if there is one."
        ),
        (
            "Pixel i of the tile has row `i // 18` and column `i % 18`. Where in `a` is that? The"
            " tile begins one pixel further up and left than its results. Keep the place inside"
            " the picture as the starter does, with min and max."
        ),
        (
            "After a barrier thread (tx, ty) has its own pixel at `tile[ty + 1, tx + 1]`, and the"
            " one above and left of it at `tile[ty, tx]`. Threads without a result must still help"
            " to load, and must come to the barrier."
        ),
    ),
    wrong=(
        ("    cuda.syncthreads()\n", "", "race"),
        ("180, 128", "128, 128", "uninitialized"),
        (("top + r - 1", "top + r"), ("left + s - 1", "left + s"), "wrong_value"),
        ("if top + ty < height and left + tx < width:", "if True:", "missing_guard"),
        (
            "tile[r, s] = a[y, x]",
            "inside = y == top + r - 1 and x == left + s - 1\n"
            "        tile[r, s] = a[y, x] if inside else np.float32(0)",
            "wrong_value",
        ),
        Wrong(blur_own_pixel_only, "too_much_work"),
        ("range(16 * ty + tx, 180, 128)", "range(0 if tx or ty else 180)", "one_thread"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Beyond an edge you take zeros. There the pixels of the edge should be repeated.",
            blurred_with_zeros,
        ),
        Hypothesis(
            "wrong_value",
            "At an edge you take the mean of the pixels that there are. There the pixels of the"
            " edge should be repeated, so that each mean is one of nine.",
            blurred_by_neighbours,
        ),
        Hypothesis(
            "wrong_value",
            "Each result is the mean of the pixels to its right and below. The tile must begin one"
            " pixel further up and one further left than its results.",
            blurred_below,
        ),
    ),
)


# ---- gather: im2col, element by element


@cuda.jit
def gather(matrix, x, side, stride, padding):
    h, w, c = x.shape
    q = (w + 2 * padding - side) // stride + 1
    column, row = cuda.grid(2)
    if row < matrix.shape[0] and column < matrix.shape[1]:
        tap = column // c
        y = row // q * stride - padding + tap // side
        z = row % q * stride - padding + tap % side
        inside = y >= 0 and y < h and z >= 0 and z < w
        matrix[row, column] = x[y, z, column % c] if inside else np.float32(0)


def matrix_of(x, side, stride, padding, order=(0, 1, 3, 4, 2), beyond="constant"):
    """im2col(x) by NumPy; order: the axes (row, column, channel, tap's row, tap's column).

    beyond: what lies beyond the edges, as `np.pad` has it: zeros, if nothing is said.
    """
    around = np.pad(x, ((padding, padding), (padding, padding), (0, 0)), beyond)
    windows = np.lib.stride_tricks.sliding_window_view(around, (side, side), (0, 1))
    windows = windows[::stride, ::stride]
    p, q = windows.shape[:2]
    return np.ascontiguousarray(windows.transpose(order)).reshape(p * q, -1)


def rows_of(x, side, corners):
    """The rows of im2col(x) for windows whose first taps lie at these (line, column)."""
    h, w, _ = x.shape
    first = np.asarray(corners)
    taps = np.arange(side * side)
    y = first[:, :1] + taps // side
    z = first[:, 1:] + taps % side
    inside = (y >= 0) & (y < h) & (z >= 0) & (z < w)
    pixels = x[y.clip(0, h - 1), z.clip(0, w - 1)]
    return np.where(inside[..., None], pixels, 0).reshape(len(first), -1)


def times_zero(x, side, corners):
    """The same, where what is beyond an edge is a pixel of the other side times 0."""
    found = rows_of(x, side, corners)
    h, w, channels = x.shape
    around = np.tile(x, (3, 3, 1))
    wrapped = rows_of(around, side, np.asarray(corners) + (h, w))
    there = rows_of(np.ones_like(x), side, corners) == 1
    with np.errstate(invalid="ignore"):
        return np.where(there, found, wrapped * 0)


def corners_of(count, x, side, stride, padding, across=None):
    """Where the first tap of each of `count` places lies. across: places counted in a line."""
    across = across or (x.shape[1] + 2 * padding - side) // stride + 1
    rows = np.arange(count)
    return np.stack([rows // across, rows % across], axis=1) * stride - padding


def next_pixels(count, x, side, stride, padding):
    """The same, as if places were one pixel apart, not `stride`."""
    return (corners_of(count, x, side, stride, padding) + padding) // stride - padding


def gather_inputs(rng, shape):
    """A corner may be infinite: beyond the edges is zero, not some pixel times zero."""
    h, w, c, side, stride, padding = shape
    x = some_zeros(rng, h, w, c)
    if rng.random() < 0.5:
        x[0, 0] = x[-1, -1] = np.inf
    rows, columns = matrix_of(x, side, stride, padding).shape
    return {
        "matrix": Out((rows, columns)),
        "x": x,
        "side": side,
        "stride": stride,
        "padding": padding,
    }


def matrix_sides(shape):
    h, w, c, side, stride, padding = shape
    p = (h + 2 * padding - side) // stride + 1
    q = (w + 2 * padding - side) // stride + 1
    return side * side * c, p * q, 1


GATHER = Exercise(
    id="convolution.gather",
    title="The matrix, element by element",
    minutes=12,
    task=(
        "`x` is a picture (height, width, channels). Write its im2col matrix: a row for each place"
        " of the filter, places counted line by line; tap (r, s) of channel c is column"
        " `(r * side + s) * channels + c`. Beyond the edges (`padding` pixels) are zeros. One"
        " thread writes one element."
    ),
    starter="""
@cuda.jit
def gather(matrix, x, side, stride, padding):
    h, w, c = x.shape
    q = (w + 2 * padding - side) // stride + 1  # places in a line
    column, row = cuda.grid(2)
    if row < matrix.shape[0] and column < matrix.shape[1]:
        ...  # which tap, which channel, which pixel? zero where there is none
""",
    solution=gather,
    inputs=gather_inputs,
    reference=lambda matrix, x, side, stride, padding: matrix_of(x, side, stride, padding),
    shapes=(
        (4, 4, 1, 1, 1, 0),
        (4, 5, 2, 3, 1, 1),
        (6, 5, 3, 3, 2, 1),
        (5, 7, 2, 2, 3, 0),
        (3, 4, 1, 1, 1, 2),  # the outer places reach no pixel
        (3, 3, 1, 3, 1, 2),
    ),
    fresh=some_numbers((5, 8), (5, 8), (2, 4), (2, 4), (1, 3), (0, 3)),
    large=(
        (66_000, 1, 1, 1, 1, 0),
        (1, 66_000, 1, 1, 1, 0),
        (1, 1, 66_000, 1, 1, 0),
        (1, 1, 1, 257, 1, 128),
    ),
    block=(16, 16, 1),
    other_block=(3, 16, 1),
    elements=1,
    extents=matrix_sides,
    is_square=lambda shape: shape[0] == shape[1],
    hints=(
        "`column % c` is the channel, and `column // c` the tap. In which row and column of the"
        " filter is that tap?",
        (
            "Place number `row` has its first tap at line `row // q * stride - padding`, and the"
            " same with `row % q`."
        ),
        (
            "`y = row // q * stride - padding + tap // side`, and likewise the column with `%`."
            " Write a zero unless both are inside the picture."
        ),
    ),
    wrong=(
        (" if inside else np.float32(0)", "", "out_of_bounds"),
        (
            (
                "x[y, z, column % c] if inside else np.float32(0)",
                "x[y % h, z % w, column % c] * np.float32(1 if inside else 0)",
            ),
            "wrong_value",
        ),
        (
            ("tap // side", "tap_row"),
            ("tap % side", "tap // side"),
            ("tap_row", "tap % side"),
            "swapped_axes",
        ),
        (
            ("tap = column // c", "tap = column % (side * side)"),
            ("column % c]", "column // (side * side)]"),
            "wrong_value",
        ),
        (
            ("row // q * stride", "row // q"),
            ("row % q * stride", "row % q"),
            "wrong_value",
        ),
        (
            ("stride - padding + tap //", "stride + tap //"),
            "wrong_value",
        ),
        (
            ("stride - padding + tap //", "stride + tap //"),
            ("stride - padding + tap %", "stride + tap %"),
            "wrong_value",
        ),
        (("row // q", "row // w"), ("row % q", "row % w"), "wrong_value"),
        ("if row < matrix.shape[0] and column", "if column", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Within a row, channels come first here: for each channel all taps.",
            lambda matrix, x, side, stride, padding: matrix_of(
                x, side, stride, padding, (0, 1, 2, 3, 4)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Neighbouring places of the filter are `stride` pixels apart, not one.",
            lambda matrix, x, side, stride, padding: rows_of(
                x, side, next_pixels(matrix.shape[0], x, side, stride, padding)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A line of the result has `q` places. You count places by the picture's width `w`.",
            lambda matrix, x, side, stride, padding: rows_of(
                x, side, corners_of(matrix.shape[0], x, side, stride, padding, across=x.shape[1])
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The first place of the filter begins `padding` pixels before the picture.",
            lambda matrix, x, side, stride, padding: rows_of(
                x, side, corners_of(matrix.shape[0], x, side, stride, padding) + padding
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Beyond an edge the pixels of the edge go on here. There are zeros.",
            lambda matrix, x, side, stride, padding: matrix_of(
                x, side, stride, padding, beyond="edge"
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Beyond an edge you multiply some pixel by 0, and infinity times 0 is NaN. Choose the"
            " zero instead.",
            lambda matrix, x, side, stride, padding: times_zero(
                x, side, corners_of(matrix.shape[0], x, side, stride, padding)
            ),
        ),
        Hypothesis(
            "swapped_axes",
            "The taps are counted column by column: swap the tap's row and column.",
            lambda matrix, x, side, stride, padding: matrix_of(
                x, side, stride, padding, (0, 1, 4, 3, 2)
            ),
        ),
    ),
)


# ---- layer: an implicit GEMM, a product whose left matrix is never stored

LAYER_CU = """
// x: h x w x c. filters: k of side x side x c. y: p x q x k. Blocks of 16 x 16 threads.
constexpr int T = 16;

__global__ void layer(float* y, const float* x, const float* filters, int h, int w, int c, int k,
                      int side, int stride, int padding) {
    __shared__ float left[T][T], right[T][T];
    int p = (h + 2 * padding - side) / stride + 1;
    int q = (w + 2 * padding - side) / stride + 1;
    int length = side * side * c;
    int row = blockIdx.y * T + threadIdx.y;
    int column = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int first = 0; first < length; first += T) {
        int at = first + threadIdx.x;  // a column of the matrix
        int deep = first + threadIdx.y;
        float number = 0;
        if (row < p * q && at < length) {
            int tap = at / c;
            int i = row / q * stride - padding + tap / side;
            int j = row % q * stride - padding + tap % side;
            if (i >= 0 && i < h && j >= 0 && j < w)
                number = x[(i * w + j) * c + at % c];
        }
        left[threadIdx.y][threadIdx.x] = number;
        right[threadIdx.y][threadIdx.x] =
            column < k && deep < length ? filters[column * length + deep] : 0;
        __syncthreads();
        for (int i = 0; i < T; ++i)
            sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < p * q && column < k)
        y[row * k + column] = sum;
}
"""
NO_PRODUCT = """
__global__ void layer(float* y, const float* x, const float* filters, int h, int w, int c, int k,
                      int side, int stride, int padding) {
    int p = (h + 2 * padding - side) / stride + 1;
    int q = (w + 2 * padding - side) / stride + 1;
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= p * q || column >= k)
        return;
    float sum = 0;
    for (int r = 0; r < side; ++r)
        for (int s = 0; s < side; ++s) {
            int i = row / q * stride - padding + r;
            int j = row % q * stride - padding + s;
            if (i < 0 || i >= h || j < 0 || j >= w)
                continue;
            for (int channel = 0; channel < c; ++channel)
                sum += x[(i * w + j) * c + channel] *
                       filters[((column * side + r) * side + s) * c + channel];
        }
    y[row * k + column] = sum;
}
"""


def layer_inputs(rng, shape):
    """shape: (h, w, c, k, side, stride, padding)."""
    h, w, c, k, side, stride, padding = shape
    p = (h + 2 * padding - side) // stride + 1
    q = (w + 2 * padding - side) // stride + 1
    names = "h w c k side stride padding".split()
    return {
        "y": Out((p * q, k)),
        "x": uniform(rng, h, w, c),
        "filters": uniform(rng, k, side * side * c),
        **dict(zip(names, shape, strict=True)),
    }


def layer_of(y, x, filters, h, w, c, k, side, stride, padding, order=(0, 1, 3, 4, 2)):
    """The product with the im2col matrix, in float64."""
    matrix = matrix_of(x.astype(np.float64), side, stride, padding, order)
    return (matrix @ filters.T.astype(np.float64)).astype(np.float32)


def layer_at(x, filters, side, corners):
    """The same for windows whose first taps lie at these (line, column)."""
    matrix = rows_of(x.astype(np.float64), side, corners)
    return (matrix @ filters.T.astype(np.float64)).astype(np.float32)


def taps_backwards(filters, side, channels):
    """The filters with their taps from the last one to the first."""
    return filters.reshape(len(filters), side * side, channels)[:, ::-1].reshape(filters.shape)


def as_planes(x):
    """The picture that x is, if its pixels are taken to lie channel by channel."""
    h, w, channels = x.shape
    return x.reshape(channels, h, w).transpose(1, 2, 0)


def results_of_layer(shape):
    """Filters and places: a thread each."""
    h, w, _, k, side, stride, padding = shape
    _, places, _ = matrix_sides((h, w, 1, side, stride, padding))
    return k, places, 1


def tiles_of_layer(shape):
    """Blocks of 16 × 16, just enough."""
    k, places, _ = results_of_layer(shape)
    return [Launch((ceil_div(k, 16), ceil_div(places, 16), 1), (16, 16, 1))]


LAYER = Exercise(
    id="convolution.layer",
    title="An implicit GEMM",
    minutes=6,
    kind="cuda_c",
    kernel_name="layer",
    path="build/layer.cu",
    one_block=True,
    task=(
        "This is a tiled matrix product. Its left factor is the im2col matrix of `x`, and its"
        " right one holds a filter in each column. The left matrix is stored nowhere. Let each"
        " thread work out which number of `x` stands at (`row`, `at`), and put that, or a zero,"
        " into the tile."
    ),
    starter="""%%writefile build/layer.cu
// x: h x w x c. filters: k of side x side x c. y: p x q x k. Blocks of 16 x 16 threads.
constexpr int T = 16;

__global__ void layer(float* y, const float* x, const float* filters, int h, int w, int c, int k,
                      int side, int stride, int padding) {
    __shared__ float left[T][T], right[T][T];
    int p = (h + 2 * padding - side) / stride + 1;
    int q = (w + 2 * padding - side) / stride + 1;
    int length = side * side * c;
    int row = blockIdx.y * T + threadIdx.y;
    int column = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int first = 0; first < length; first += T) {
        int at = first + threadIdx.x;  // a column of the matrix
        int deep = first + threadIdx.y;
        float number = 0;
        // your code: which tap, which channel, which pixel of x? none: number stays 0
        left[threadIdx.y][threadIdx.x] = number;
        right[threadIdx.y][threadIdx.x] =
            column < k && deep < length ? filters[column * length + deep] : 0;
        __syncthreads();
        for (int i = 0; i < T; ++i)
            sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < p * q && column < k)
        y[row * k + column] = sum;
}
""",
    solution=LAYER_CU,
    inputs=layer_inputs,
    reference=layer_of,
    finite=("filters",),  # a padded row times an infinite weight: 0 or NaN, both can be meant
    rtol=1e-4,
    shapes=(
        (4, 4, 1, 1, 1, 1, 0),
        (5, 6, 3, 4, 3, 1, 1),
        (6, 5, 2, 17, 3, 2, 1),
        (7, 4, 5, 3, 2, 3, 0),
        (3, 5, 4, 20, 3, 1, 2),
        (9, 8, 1, 2, 5, 1, 2),
    ),
    large=(
        (40, 41, 2, 3, 3, 1, 1),
        (66_000, 1, 1, 1, 1, 1, 0),
        (1, 66_000, 1, 1, 1, 1, 0),
        (1, 1, 66_000, 1, 1, 1, 0),
        (1, 1, 3, 66_000, 1, 1, 0),
    ),
    fresh=some_numbers((5, 8), (5, 8), (1, 6), (1, 20), (1, 4), (1, 3), (0, 2)),
    launches=tiles_of_layer,
    extents=results_of_layer,
    is_square=lambda shape: shape[0] == shape[1],
    race_free=True,
    needs=("barriers",),
    hints=(
        "It is your formula of *The matrix, element by element*, with `at` for the column: which"
        " tap is it, and which channel?",
        (
            "`at / c` is the tap, `at % c` the channel. The pixel's line is"
            " `row / q * stride - padding + tap / side`."
        ),
        (
            "Only inside of the picture, and only for `row < p * q` and `at < length`:"
            " `number = x[(i * w + j) * c + at % c]`. All threads still come to the barrier."
        ),
    ),
    wrong=(
        ("if (i >= 0 && i < h && j >= 0 && j < w)", "if (i >= 0 && i < h)", "out_of_bounds"),
        ("if (i >= 0 && i < h && j >= 0 && j < w)", "if (i < h && j < w)", "out_of_bounds"),
        (
            ("tap / side;", "tap % side;"),
            ("- padding + tap % side;\n            if", "- padding + tap / side;\n            if"),
            "swapped_axes",
        ),
        (("at / c", "at % (side * side)"), ("at % c", "at / (side * side)"), "wrong_value"),
        (
            ("row / q * stride", "row / q"),
            ("row % q * stride", "row % q"),
            "wrong_value",
        ),
        (("row / q", "row / w"), ("row % q", "row % w"), "wrong_value"),
        (
            "        left[threadIdx.y][threadIdx.x] = number;",
            "        left[threadIdx.x][threadIdx.y] = number;",
            "wrong_value",
        ),
        (
            ("- padding + tap / side", "+ padding + tap / side"),
            ("- padding + tap % side", "+ padding + tap % side"),
            "wrong_value",
        ),
        ("x[(i * w + j) * c + at % c]", "x[(at % c * h + i) * w + j]", "wrong_value"),
        ("int tap = at / c", "int tap = side * side - 1 - at / c", "wrong_value"),
        (
            ("int i = row / q", "int i = threadIdx.y / q"),
            ("int j = row % q", "int j = threadIdx.y % q"),
            "wrong_value",
        ),
        Wrong(NO_PRODUCT, "other_means"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Within a row, channels come first here: for each channel all taps.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_of(
                y, x, filters, h, w, c, k, side, stride, padding, (0, 1, 2, 3, 4)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Neighbouring places of the filter are `stride` pixels apart, not one.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_at(
                x, filters, side, next_pixels(y.shape[0], x, side, stride, padding)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A line of the result has `q` places. You count places by the picture's width `w`.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_at(
                x, filters, side, corners_of(y.shape[0], x, side, stride, padding, across=w)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The first place of the filter begins `padding` pixels before the picture, not behind"
            " its edge.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_at(
                x,
                filters,
                side,
                corners_of(y.shape[0], x, side, stride, padding) + 2 * padding,
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The taps are counted backwards: tap 0 meets the first pixel of a window.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_of(
                y, x, taps_backwards(filters, side, c), h, w, c, k, side, stride, padding
            ),
        ),
        Hypothesis(
            "wrong_value",
            "You read `x` as if the pixels of a channel lay together. Here the channels of a pixel"
            " do: the channel counts last.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_of(
                y, as_planes(x), filters, h, w, c, k, side, stride, padding
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Each block takes the places of the first one: `row` counts through all blocks,"
            " `threadIdx.y` begins at 0 in each.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_at(
                x,
                filters,
                side,
                corners_of(y.shape[0], x, side, stride, padding)[np.arange(y.shape[0]) % 16],
            ),
        ),
        Hypothesis(
            "swapped_axes",
            "The taps are counted column by column: swap the tap's row and column.",
            lambda y, x, filters, h, w, c, k, side, stride, padding: layer_of(
                y, x, filters, h, w, c, k, side, stride, padding, (0, 1, 4, 3, 2)
            ),
        ),
    ),
)


# ---- slopes: the data gradient

SLOPES_CU = """
// dy: h x w. taps: side x side, side odd. The forward pass was "same":
// y[i][j] = sum over r, s of taps[r][s] * x[i + r - half][j + s - half].
__global__ void slopes(float* dx, const float* dy, const float* taps, int h, int w, int side) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= h || j >= w)
        return;
    int half = side / 2;
    float sum = 0;
    for (int r = 0; r < side; ++r)
        for (int s = 0; s < side; ++s) {
            int y = i - r + half;
            int x = j - s + half;
            if (y >= 0 && y < h && x >= 0 && x < w)
                sum += taps[r * side + s] * dy[y * w + x];
        }
    dx[i * w + j] = sum;
}
"""
SCATTERED = """
__global__ void slopes(float* dx, const float* dy, const float* taps, int h, int w, int side) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= h || j >= w)
        return;
    int half = side / 2;
    for (int r = 0; r < side; ++r)
        for (int s = 0; s < side; ++s) {
            int y = i + r - half;
            int x = j + s - half;
            if (y >= 0 && y < h && x >= 0 && x < w)
                dx[y * w + x] += taps[r * side + s] * dy[i * w + j];
        }
}
"""


def slopes_of(dx, dy, taps, h, w, side, turned=True, moved=0):
    """The data gradient in float64: dy filtered with the filter turned.

    moved: how far further up and left than they should the windows begin.
    """
    before = side // 2 + moved
    zeros = before, max(0, side - 1 - before)

    def windows_of(slopes):
        around = np.pad(slopes, zeros)[: h + side - 1, : w + side - 1]
        return np.lib.stride_tricks.sliding_window_view(around, (side, side))

    windows = windows_of(dy.astype(np.float64))
    there = windows_of(np.ones_like(dy))
    its = taps[::-1, ::-1] if turned else taps
    products = windows * its.astype(np.float64)
    return products.sum((2, 3), where=there == 1).astype(np.float32)


def slopes_inputs(rng, shape):
    """shape: (h, w, side). Of a larger picture a corner of dy is infinite, and no tap is 0."""
    h, w, side = shape
    dy, taps = some_zeros(rng, h, w), uniform(rng, side, side)
    if min(h, w) > side:
        dy.flat[rng.choice([0, -1])] = np.inf
        taps = factor(rng, side, side)
    return {
        "dx": Out((h, w)),
        "dy": dy,
        "taps": taps,
        "h": h,
        "w": w,
        "side": side,
    }


SLOPES = Exercise(
    id="convolution.slopes",
    title="The data gradient, in CUDA C",
    minutes=10,
    kind="cuda_c",
    kernel_name="slopes",
    path="build/slopes.cu",
    task=(
        "The forward pass filtered a picture x (h × w) with `taps` (side × side, odd), as large as"
        " the picture, zeros beyond its edges. Given `dy`, the derivative (slope) of the loss by"
        " each result, write `dx`, its derivative by each pixel: which results did this pixel go"
        " into, and by which tap? The launch has a thread for each element of `dx`. Leave out what"
        " lies beyond the edges: a slope may be infinite, and 0 times infinity is NaN."
    ),
    starter="""%%writefile build/slopes.cu
// dy: h x w. taps: side x side, side odd. The forward pass was "same":
// y[i][j] = sum over r, s of taps[r][s] * x[i + r - half][j + s - half].
__global__ void slopes(float* dx, const float* dy, const float* taps, int h, int w, int side) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    // your code: a guard, then gather from dy all that pixel (i, j) of x went into
}
""",
    solution=SLOPES_CU,
    inputs=slopes_inputs,
    reference=slopes_of,
    finite=("taps",),  # a tile of zeros may be multiplied by them
    shapes=(
        (1, 1, 1),
        (4, 4, 3),
        (5, 9, 3),
        (9, 6, 5),
        (3, 33, 3),
        (2, 140, 3),
        (140, 2, 3),
        (1, 2, 257),  # taps that no byte can count
    ),
    large=((257, 258, 3), (66_000, 1, 1), (1, 66_000, 1), (140, 2, 257), (2, 140, 257)),
    fresh=lambda rng: (*map(int, rng.integers(3, 20, 2)), int(rng.choice((3, 5, 7, 9)))),
    block=(16, 16, 1),
    other_block=(8, 4, 1),
    probe=(3, 33, 3),
    elements=1,
    extents=columns_and_rows,
    is_square=lambda shape: shape[0] == shape[1],
    hints=(
        (
            "Pixel (i, j) went into result (y, x) by tap (r, s) where `i = y + r - half`. Solve"
            " this for y."
        ),
        "`y = i - r + half`, `x = j - s + half`: the filter, turned by 180 degrees.",
        "Guard: only results with 0 <= y < h and 0 <= x < w exist. (A slope may be infinite, and 0"
        " times infinity is NaN: leave the others out.) Sum in a register, write once.",
    ),
    wrong=(
        (
            ("i - r + half", "i + r - half"),
            ("j - s + half", "j + s - half"),
            "wrong_value",
        ),
        ("i - r + half", "i + r - half", "wrong_value"),
        ("int y = i - r + half", "int y = i - r", "wrong_value"),
        (("i - r + half", "i - r"), ("j - s + half", "j - s"), "wrong_value"),
        (("i - r + half", "i - r - half"), ("j - s + half", "j - s - half"), "wrong_value"),
        (
            "            if (y >= 0 && y < h && x >= 0 && x < w)\n",
            "",
            "out_of_bounds",
        ),
        (
            "    if (i >= h || j >= w)\n        return;\n",
            "",
            "missing_guard",
        ),
        (
            "taps[r * side + s] * dy[y * w + x]",
            "taps[s * side + r] * dy[y * w + x]",
            "wrong_value",
        ),
        ("int half", "signed char half", "wrong_value"),
        Wrong(SCATTERED, "race"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The filter is not turned: this filters dy as the forward pass filtered x.",
            lambda dx, dy, taps, h, w, side: slopes_of(dx, dy, taps, h, w, side, turned=False),
        ),
        Hypothesis(
            "wrong_value",
            "The filter is turned in one direction only: both r and s count backwards.",
            lambda dx, dy, taps, h, w, side: slopes_of(dx, dy, taps[::-1], h, w, side),
        ),
        Hypothesis(
            "wrong_value",
            "The tap's row and column are swapped: tap (r, s) is `taps[r * side + s]`.",
            lambda dx, dy, taps, h, w, side: slopes_of(dx, dy, taps.T, h, w, side),
        ),
        Hypothesis(
            "wrong_value",
            "`half` is missing: the middle tap, not the first one, lies on the pixel itself.",
            lambda dx, dy, taps, h, w, side: slopes_of(dx, dy, taps, h, w, side, moved=side // 2),
        ),
        Hypothesis(
            "wrong_value",
            "`half` has the wrong sign. From `i = y + r - half` follows `y = i - r + half`.",
            lambda dx, dy, taps, h, w, side: slopes_of(
                dx, dy, taps, h, w, side, moved=side // 2 * 2
            ),
        ),
    ),
)

EXERCISES = (OUT_SIZE, BLUR, GATHER, LAYER, SLOPES)


# ---- questions

QUIZZES = (
    one_of(
        "convolution.q_implicit",
        "What does an implicit matrix product save, compared with im2col and a library?",
        (
            "Multiplications: zeros are left out",
            "Both multiply the same numbers, zeros of the padding among them.",
        ),
        (
            "Memory traffic: the matrix, nine times as large as x for 3 × 3, is never written",
            "The product is the same. A thread that needs an element works out where it lies in x.",
        ),
        ("Precision: sums are shorter", "Both sum the same products."),
        answer="b",
    ),
    one_of(
        "convolution.q_gradient",
        "Which of a convolution's gradients sums over all pixels of all pictures?",
        (
            "The data gradient",
            "Its sums are short: a pixel went only into the results whose windows it lies in.",
        ),
        (
            "The weights' gradient",
            (
                "Each weight met every pixel. So the result of the matrix product is small and its"
                " sums are long, one term per pixel: the work must be split along the sums."
            ),
        ),
        (
            "Both",
            "The data gradient's sums are short: a pixel went only into the results whose windows"
            " it lies in.",
        ),
        answer="b",
    ),
)
