"""Layer norm over rows in Triton, forward and backward.

y = (x - mean) * inverse * gamma + beta, with inverse = 1 / sqrt(variance + epsilon).
With g = dy * gamma and xhat = (x - mean) * inverse, the gradient of x is
inverse * (g - mean of g - xhat * mean of g * xhat); those of gamma and beta are sums over all rows.
"""

import torch
import triton
import triton.language as tl

from course.kernels.tiles.softmax import in_order, in_pieces, sms

EPSILON = 1e-5
#: Programs an SM of the backward pass: each keeps a partial sum of gamma's and beta's gradients
PROGRAMS_AN_SM = 2
#: Columns and partial sums of a tile of the second kernel
COLUMNS = 32
PARTS = 64
#: Columns of the longest row that a program takes whole; longer ones: columns at most, and how
LONGEST = 8192
PIECES = {
    32768: {"PIECE": 4096, "num_warps": 32, "LEAVE": True},
    1 << 31: {"PIECE": 8192, "num_warps": 32, "LEAVE": True},
}
#: How whole rows are read, unless options say otherwise
WHOLE = {"KEEP": True, "AGAIN": False, "LEAVE": False}
#: Rows and warps of a program for rows of so many columns, as the sweep of `bench` found them
SWEPT = {1024: (8, 8), 4096: (1, 16)}


@triton.jit
def norm_forward(
    y,
    means,
    inverses,
    x,
    gamma,
    beta,
    rows,
    columns: tl.constexpr,
    epsilon,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    KEEP: tl.constexpr,
    AGAIN: tl.constexpr,
    LEAVE: tl.constexpr,
):
    """ROWS whole rows a program: one write of y, one read of x from memory.

    KEEP: whether the caches are asked to keep x. AGAIN: whether x is read once more, from a
    cache, for the result, instead of being kept in registers. LEAVE: whether y is to leave the
    caches first. The number of columns is known to the compiler: masks that let all pass vanish.
    """
    policy: tl.constexpr = "evict_last" if KEEP else ""
    store_policy: tl.constexpr = "evict_first" if LEAVE else ""
    first = tl.program_id(0) * ROWS
    row = first + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    is_row = row < rows
    is_column = column < columns
    inside = is_row & is_column
    at = row.to(tl.int64) * columns + column
    tile = tl.load(x + at, mask=inside, other=0.0, eviction_policy=policy).to(tl.float32)
    mean = tl.sum(tile, 1, keep_dims=True) / columns
    centred = tl.where(inside, tile - mean, 0.0)  # a masked 0 would count as -mean
    variance = tl.sum(centred * centred, 1, keep_dims=True) / columns
    inverse = 1 / tl.sqrt(variance + epsilon)
    if AGAIN:
        tile = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
        centred = tile.to(tl.float32) - mean
    scale = tl.load(gamma + column, mask=is_column, other=0.0).to(tl.float32)
    shift = tl.load(beta + column, mask=is_column, other=0.0).to(tl.float32)
    result = centred * inverse * scale + shift
    kind = y.dtype.element_ty
    tl.store(y + at, result.to(kind), mask=inside, eviction_policy=store_policy)
    tl.store(means + row, mean, mask=is_row)
    tl.store(inverses + row, inverse, mask=is_row)


@triton.jit
def join(count_a, mean_a, spread_a, count_b, mean_b, spread_b):
    """Count, mean and sum of squared distances from it, of two parts together.

    Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
    sample variances".
    """
    count = count_a + count_b
    share = tl.where(count == 0, 0.0, count_b / count)
    distance = mean_b - mean_a
    mean = mean_a + distance * share
    between = distance * distance * count_a * share
    spread = spread_a + spread_b + between
    return count, mean, spread


@triton.jit
def norm_in_pieces(
    y,
    means,
    inverses,
    x,
    gamma,
    beta,
    columns: tl.constexpr,
    epsilon,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
    LEAVE: tl.constexpr,
):
    """A row in pieces, read twice: the second time it comes from a cache."""
    store_policy: tl.constexpr = "evict_first" if LEAVE else ""
    row = tl.program_id(0)
    start = row.to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    behind = tl.maximum(columns - lane, 0)  # columns from this lane on
    counts = ((behind + BLOCK - 1) // BLOCK).to(tl.float32)
    middles = tl.zeros((BLOCK,), tl.float32)
    spreads = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        inside = first + lane < columns
        at = x + start + first + lane
        piece = tl.load(at, mask=inside, other=0.0, eviction_policy="evict_last")
        piece = piece.to(tl.float32)
        share = 1.0 / (first // BLOCK + 1)  # of this piece in what was read so far
        distance = tl.where(inside, piece - middles, 0.0)
        middles += distance * share
        spreads += distance * (piece - middles)
    _, mean, spread = tl.reduce((counts, middles, spreads), 0, join)
    inverse = 1 / tl.sqrt(spread / columns + epsilon)
    tl.store(means + row, mean)
    tl.store(inverses + row, inverse)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        place = first + lane
        inside = place < columns
        at = x + start + place
        piece = tl.load(at, mask=inside, other=0.0, eviction_policy="evict_first")
        scale = tl.load(gamma + place, mask=inside, other=0.0).to(tl.float32)
        shift = tl.load(beta + place, mask=inside, other=0.0).to(tl.float32)
        xhat = (piece.to(tl.float32) - mean) * inverse
        result = (xhat * scale + shift).to(y.dtype.element_ty)
        tl.store(y + start + place, result, mask=inside, eviction_policy=store_policy)


@triton.jit
def norm_backward(
    dx,
    partial_gamma,
    partial_beta,
    dy,
    x,
    gamma,
    means,
    inverses,
    rows,
    columns,
    BLOCK: tl.constexpr,
):
    """Each program takes every so many-th row, and sums its rows' part of the other gradients."""
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    scale = tl.load(gamma + column, mask=inside, other=0.0).to(tl.float32)
    sum_gamma = tl.zeros((BLOCK,), tl.float32)
    sum_beta = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        start = row.to(tl.int64) * columns
        mean = tl.load(means + row)
        inverse = tl.load(inverses + row)
        values = tl.load(x + start + column, mask=inside, other=0.0).to(tl.float32)
        slope = tl.load(dy + start + column, mask=inside, other=0.0).to(tl.float32)
        xhat = tl.where(inside, (values - mean) * inverse, 0.0)
        g = slope * scale
        along = tl.sum(g * xhat, 0) / columns
        level = tl.sum(g, 0) / columns
        result = inverse * (g - level - xhat * along)
        tl.store(dx + start + column, result.to(dx.dtype.element_ty), mask=inside)
        sum_gamma += slope * xhat
        sum_beta += slope
    at = program * columns + column
    tl.store(partial_gamma + at, sum_gamma, mask=inside)
    tl.store(partial_beta + at, sum_beta, mask=inside)


@triton.jit
def add_parts(
    out_gamma,
    out_beta,
    partial_gamma,
    partial_beta,
    parts,
    columns,
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Add what the programs of norm_backward have summed, COLUMNS columns a program."""
    first_column = tl.program_id(0) * COLUMNS
    column = first_column + tl.arange(0, COLUMNS)[None, :]
    is_column = column < columns
    sum_gamma = tl.zeros((PARTS, COLUMNS), tl.float32)
    sum_beta = tl.zeros((PARTS, COLUMNS), tl.float32)
    for first in range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)[:, None]
        inside = (part < parts) & is_column
        at = part * columns + column
        sum_gamma += tl.load(partial_gamma + at, mask=inside, other=0.0)
        sum_beta += tl.load(partial_beta + at, mask=inside, other=0.0)
    kind = out_gamma.dtype.element_ty
    gamma_sums = tl.sum(sum_gamma, 0, keep_dims=True).to(kind)
    beta_sums = tl.sum(sum_beta, 0, keep_dims=True).to(kind)
    tl.store(out_gamma + column, gamma_sums, mask=is_column)
    tl.store(out_beta + column, beta_sums, mask=is_column)


def deal(columns: int) -> dict[str, int]:
    """Rows and warps of a program, or how it takes a long row in pieces."""
    if columns > LONGEST:
        return next(options for most, options in PIECES.items() if columns <= most)
    block = triton.next_power_of_2(columns)
    rows = max(1, 2048 // block)
    warps = min(32, max(4, rows * block // 1024))
    rows, warps = SWEPT.get(block, (rows, warps))
    return {
        "ROWS": rows,
        "BLOCK": block,
        "num_warps": warps,
    }


def layer_norm(x, gamma, beta, epsilon: float = EPSILON, **options: int):
    """Layer norm over the last axis of a matrix.

    x: float32 or bfloat16 [rows, columns], contiguous; gamma, beta: [columns].
    Returns y like x, and the rows' means and inverse standard deviations in float32.
    """
    in_order(x=x, gamma=gamma, beta=beta)
    rows, columns = x.shape
    y = torch.empty_like(x)
    means = torch.empty(rows, device=x.device)
    inverses = torch.empty_like(means)
    if not rows:
        return y, means, inverses
    options = options or deal(columns)
    arrays = (y, means, inverses, x, gamma, beta)
    if "PIECE" in options:
        launch = norm_in_pieces[(rows,)]
        launch(*arrays, columns, epsilon, **in_pieces(options))
    else:
        programs = triton.cdiv(rows, options["ROWS"])
        launch = norm_forward[(programs,)]
        launch(*arrays, rows, columns, epsilon, **WHOLE | options)
    return y, means, inverses


def layer_norm_backward(
    dy,
    x,
    gamma,
    means,
    inverses,
    *,
    programs=None,
    num_warps=None,
):
    """The gradients of x, gamma and beta from dy and what the forward pass kept.

    programs: how many share the rows; two an SM unless given.
    """
    in_order(dy=dy, x=x, gamma=gamma)
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    programs = programs or min(rows, PROGRAMS_AN_SM * sms(x))
    warps = num_warps or min(32, max(4, block // 512))
    dx = torch.empty_like(x)
    parts = torch.empty(2, programs, columns, device=x.device)
    norm_backward[(programs,)](
        dx,
        *parts,
        dy,
        x,
        gamma,
        means,
        inverses,
        rows,
        columns,
        BLOCK=block,
        num_warps=warps,
    )
    sums = torch.empty(2, columns, device=x.device, dtype=gamma.dtype)
    dgamma, dbeta = sums
    add = add_parts[(triton.cdiv(columns, COLUMNS),)]
    add(dgamma, dbeta, *parts, programs, columns, PARTS=PARTS, COLUMNS=COLUMNS)
    return dx, dgamma, dbeta
