"""The exercises of the chapter Convolution."""

import numpy as np
from numba import cuda

from course.checking.inputs import arguments_of, columns_and_rows, some_numbers, some_zeros, uniform
from course.checking.model import Demand, Exercise, Hypothesis, Launch, Out, Wrong
from course.checking.quiz import Quiz, one_of
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
        " not fit at all."
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
    minutes=15,
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
    launches=picture_tiles,
    extents=columns_and_rows,
    demand=Demand((16, 32), reads_again),
    race_free=True,
    orders=1,
    hints=(
        (
            "180 pixels, 128 threads: let thread number `t = 16 * ty + tx` load pixels t and"
            " t + 128 of the tile, if there is such a one."
        ),
        (
            "Pixel i of the tile has row `i // 18` and column `i % 18`. Where in `a` is that? One"
            " pixel further up and left than you first think; then hold it inside as the starter"
            " does, with min and max."
        ),
        (
            "After a barrier: the pixel above left of mine is `tile[ty, tx]`, mine is"
            " `tile[ty + 1, tx + 1]`. Threads without a result must still help to load, and come to"
            " the barrier."
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
            "wrong_value", "Beyond the edges are zeros; they should go on.", blurred_with_zeros
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


def matrix_of(x, side, stride, padding, order=(0, 1, 3, 4, 2)):
    """im2col(x) by NumPy; order: the axes (row, column, channel, tap's row, tap's column)."""
    around = np.pad(x, ((padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(around, (side, side), (0, 1))
    windows = windows[::stride, ::stride]
    p, q = windows.shape[:2]
    return np.ascontiguousarray(windows.transpose(order)).reshape(p * q, -1)


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
        " of the filter, places counted line by line; columns count taps line by line, and within"
        " a tap channels. Beyond the edges (`padding` pixels) are zeros. One thread writes one"
        " element."
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
    block=(16, 16, 1),
    other_block=(3, 16, 1),
    elements=1,
    extents=matrix_sides,
    is_square=lambda shape: shape[0] == shape[1],
    hints=(
        "`column % c` is the channel, `column // c` the tap. Which row and column has that tap?",
        (
            "Place number `row` has its first tap at line `row // q * stride - padding`, and the"
            " same with `row % q`."
        ),
        (
            "`y = row // q * stride - padding + tap // side`, likewise for x; then zero unless both"
            " are inside the picture."
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
            "swapped_axes",
            "The taps are counted column by column: swap the tap's row and column.",
            lambda matrix, x, side, stride, padding: matrix_of(
                x, side, stride, padding, (0, 1, 4, 3, 2)
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


def slopes_of(dx, dy, taps, h, w, side, turned=True):
    """The data gradient in float64: dy filtered with the filter turned."""
    half = side // 2
    around = np.pad(dy.astype(np.float64), half)
    windows = np.lib.stride_tricks.sliding_window_view(around, (side, side))
    there = np.lib.stride_tricks.sliding_window_view(np.pad(np.ones_like(dy), half), (side, side))
    its = taps[::-1, ::-1] if turned else taps
    products = windows * its.astype(np.float64)
    return products.sum((2, 3), where=there == 1).astype(np.float32)


def slopes_inputs(rng, shape):
    """shape: (h, w, side). Of a larger picture a corner of dy is infinite."""
    h, w, side = shape
    dy = some_zeros(rng, h, w)
    if min(h, w) > side:
        dy.flat[rng.choice([0, -1])] = np.inf
    return {
        "dx": Out((h, w)),
        "dy": dy,
        "taps": uniform(rng, side, side),
        "h": h,
        "w": w,
        "side": side,
    }


SLOPES = Exercise(
    id="convolution.slopes",
    title="The way back, in CUDA C",
    minutes=12,
    kind="cuda_c",
    kernel_name="slopes",
    path="build/slopes.cu",
    task=(
        "The forward pass filtered a picture x (h × w) with `taps` (side × side, odd), as large as"
        " the picture, zeros beyond its edges. Given `dy`, the loss's slope by each result, write"
        " `dx`, its slope by each pixel: which results did this pixel go into, and by which tap?"
        " One thread writes one element of `dx`. A slope may be infinite, and 0 times infinity is"
        " NaN: leave out what lies beyond the edges, do not multiply it by 0."
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
    large=(257, 258, 3),
    fresh=lambda rng: (*map(int, rng.integers(3, 20, 2)), int(rng.choice((3, 5, 7, 9)))),
    block=(16, 16, 1),
    other_block=(8, 4, 1),
    probe=(3, 33, 3),
    elements=1,
    extents=columns_and_rows,
    is_square=lambda shape: shape[0] == shape[1],
    hints=(
        (
            "Pixel (i, j) went into result (y, x) by tap (r, s) where `i = y + r - half`. So which"
            " y is it, for a given r?"
        ),
        "`y = i - r + half`, `x = j - s + half`: the filter, turned by 180 degrees.",
        "Guard: only results with 0 <= y < h and 0 <= x < w exist. Sum in a register, write once.",
    ),
    wrong=(
        (
            ("i - r + half", "i + r - half"),
            ("j - s + half", "j + s - half"),
            "wrong_value",
        ),
        ("i - r + half", "i + r - half", "wrong_value"),
        ("int y = i - r + half", "int y = i - r", "wrong_value"),
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
    ),
)

EXERCISES = (OUT_SIZE, BLUR, GATHER, SLOPES)


# ---- questions

QUIZZES = (
    Quiz(
        id="convolution.q_halo",
        question=(
            "A block computes 32 × 8 results with a filter of 5 × 5. How many pixels does its tile"
            " hold?"
        ),
        answer=36 * 12,
        unit="pixels",
        explain_right="Two pixels more on each side: 36 × 12.",
        explain={
            256: "So many results there are. The windows of those at the edges reach beyond them.",
            34 * 10: "That is a halo of one pixel, for 3 × 3. Here half the filter is two.",
            37 * 13: "A filter of 5 reaches 4 further than one of 1, not 5.",
            None: "Each side grows by `side - 1`: half of the filter at each end.",
        },
    ),
    one_of(
        "convolution.q_implicit",
        "What does an implicit matrix product save, compared with im2col and a library?",
        (
            "Multiplications: zeros are left out",
            "Both multiply the same numbers, zeros of the padding among them.",
        ),
        (
            "Memory traffic: the matrix, nine times as large as x for 3 × 3, is never written",
            "The product is the same. Only who needs an element works out where it lies in x.",
        ),
        ("Precision: sums are shorter", "Both sum the same products."),
        answer="b",
    ),
    one_of(
        "convolution.q_gradient",
        "Which of a convolution's gradients sums over all pixels of all pictures?",
        (
            "That by the pictures",
            "A pixel went only into the few results whose windows it lies in.",
        ),
        (
            "That by the weights",
            (
                "Each weight met every pixel. So its matrix product is small and deep: k is "
                "the number"
                " of pixels, and the work must be split along it."
            ),
        ),
        ("Both", "A pixel went only into the few results whose windows it lies in."),
        answer="b",
    ),
)
