"""Many values into one, beyond sums: maximum, argmax, mean and variance, dot product, in Numba.

Each comes down to what a part of the array says of itself (its state) and to how two parts' states
make one. Blocks write their states; a second launch, of one block, joins them. The CUDA C that does
it in one launch is cuda/reduce.cu.

    reductions.argmax(x)                       # of equal values the first, or the first NaN
    reductions.mean_and_variance(x)
"""

import math

from numba import cuda, float32, float64, int64

from course.kernels.reductions.kernels import multiprocessors, scratch

THREADS = 256
BLOCKS = 8  # a multiprocessor
NOWHERE = 2**63 - 1  # an index behind every other


def _blocks(n: int) -> int:
    return max(1, min(BLOCKS * multiprocessors(), -(-n // THREADS)))


# ---- maximum: NaN, if there is one, as NumPy has it --------------------------------------------


@cuda.jit(device=True)
def larger(a, b):
    return a if a > b or math.isnan(a) else b


@cuda.jit
def max_of_blocks(x, out):
    """out: a float32 for each block."""
    best = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    mine = float32(-math.inf)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine = larger(mine, x[i])
    best[t] = mine
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if t < step:
            best[t] = larger(best[t], best[t + step])
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = best[0]


def maximum(x) -> float:
    """The largest element of a device array of float32. Raises ValueError if it is empty."""
    if x.size == 0:
        raise ValueError("no elements have no maximum")
    of_blocks = scratch("max", _blocks(x.size))
    max_of_blocks[of_blocks.size, THREADS](x, of_blocks)
    out = scratch("max of all", 1)
    max_of_blocks[1, THREADS](of_blocks, out)
    return float(out.copy_to_host()[0])


# ---- argmax: the state is a value and where it stands ------------------------------------------


@cuda.jit(device=True)
def comes_first(value, index, other, other_index):
    """Whether (value, index) beats the other: a larger value, NaN above all, else a lower index."""
    if math.isnan(value) != math.isnan(other):
        return math.isnan(value)
    if value == other or math.isnan(value):
        return index < other_index
    return value > other


@cuda.jit
def argmax_of_blocks(x, where, out, out_index):
    """where: the elements' indices, or an empty array if they are 0, 1, 2 ..."""
    best = cuda.shared.array(THREADS, float32)
    index = cuda.shared.array(THREADS, int64)
    t = cuda.threadIdx.x
    best[t] = -math.inf
    index[t] = NOWHERE
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        place = where[i] if where.size > 0 else i
        if comes_first(x[i], place, best[t], index[t]):
            best[t] = x[i]
            index[t] = place
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if t < step and comes_first(best[t + step], index[t + step], best[t], index[t]):
            best[t] = best[t + step]
            index[t] = index[t + step]
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = best[0]
        out_index[cuda.blockIdx.x] = index[0]


def argmax(x) -> int:
    """Where the largest element of a device array of float32 stands: the first of equal ones, or
    the first NaN. Raises ValueError if the array is empty.
    """
    if x.size == 0:
        raise ValueError("no elements have no argmax")
    blocks = _blocks(x.size)
    values = scratch("argmax", blocks)
    places = scratch("argmax places", blocks, "int64")
    argmax_of_blocks[blocks, THREADS](x, scratch("nothing", 0, "int64"), values, places)
    out = scratch("argmax of all", 1)
    out_index = scratch("argmax place", 1, "int64")
    argmax_of_blocks[1, THREADS](values, places, out, out_index)
    return int(out_index.copy_to_host()[0])


# ---- mean and variance: Welford (1962) in a thread, Chan and others (1979) between threads -----


@cuda.jit(device=True)
def join_moments(count, mean, squares, other_count, other_mean, other_squares):
    """(count, mean, sum of squared distances from it) of two parts together."""
    if count == 0:
        return other_count, other_mean, other_squares
    if other_count == 0:
        return count, mean, squares
    both = count + other_count
    apart = other_mean - mean
    share = other_count / both
    return both, mean + apart * share, squares + other_squares + apart * apart * count * share


@cuda.jit
def moments_of_blocks(x, out):
    """out: [blocks, 3] float64: count, mean and sum of squared distances from it."""
    counts = cuda.shared.array(THREADS, float64)
    means = cuda.shared.array(THREADS, float64)
    squares = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    count, mean, square = float64(0), float64(0), float64(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        count += 1
        apart = x[i] - mean  # from the mean before
        mean += apart / count
        square += apart * (x[i] - mean)  # times that from the mean after
    counts[t], means[t], squares[t] = count, mean, square
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if t < step:
            counts[t], means[t], squares[t] = join_moments(
                counts[t], means[t], squares[t],
                counts[t + step], means[t + step], squares[t + step],
            )  # fmt: skip
        step //= 2
    if t == 0:
        block = cuda.blockIdx.x
        out[block, 0], out[block, 1], out[block, 2] = counts[0], means[0], squares[0]


@cuda.jit
def join_blocks(parts, out):
    """parts: [blocks, 3]. One thread joins them: they are few."""
    count, mean, square = float64(0), float64(0), float64(0)
    for block in range(parts.shape[0]):
        count, mean, square = join_moments(
            count, mean, square, parts[block, 0], parts[block, 1], parts[block, 2]
        )
    out[0] = mean
    out[1] = square / count


def mean_and_variance(x) -> tuple[float, float]:
    """Of a device array of float32, in one pass; the variance as np.var has it.

    Raises ValueError if the array is empty.
    """
    if x.size == 0:
        raise ValueError("no elements have no mean")
    blocks = _blocks(x.size)
    parts = scratch("moments", 3 * blocks, "float64").reshape(blocks, 3)
    moments_of_blocks[blocks, THREADS](x, parts)
    out = scratch("moments", 2, "float64")
    join_blocks[1, 1](parts, out)
    mean, variance = out.copy_to_host()
    return float(mean), float(variance)


# ---- dot product and norm ----------------------------------------------------------------------


@cuda.jit
def dot_of_blocks(a, b, out):
    """out: a float64 for each block."""
    sums = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    mine = float64(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        mine += float64(a[i]) * float64(b[i])
    sums[t] = mine
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if t < step:
            sums[t] += sums[t + step]
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = sums[0]


def dot(a, b) -> float:
    """The sum of a[i] * b[i] of two device arrays of as many float32."""
    of_blocks = scratch("dot", _blocks(a.size), "float64")
    dot_of_blocks[of_blocks.size, THREADS](a, b, of_blocks)
    return float(of_blocks.copy_to_host().sum())


def norm(x) -> float:
    """The Euclidean length of a device array of float32."""
    return math.sqrt(dot(x, x))
