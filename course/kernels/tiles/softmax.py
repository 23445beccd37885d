"""Softmax over rows in Triton: a program a few short rows, one row, or a row in pieces."""

import torch
import triton
import triton.language as tl

#: Columns of the longest row that a program keeps in its registers
KEPT = 32768
#: Columns and warps of a piece of a longer row
PIECE = {"PIECE": 4096, "num_warps": 16}
#: Values a program should have, so that short rows fill it, too
ENOUGH = 1024


@triton.jit
def softmax_rows(out, x, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS whole rows a program: one read, one write."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    start = row.to(tl.int64) * columns  # 2^31 elements and more
    tile = tl.load(x + start + column, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(tile - tl.max(tile, 1, keep_dims=True))
    shares = powers / tl.sum(powers, 1, keep_dims=True)
    tl.store(out + start + column, shares.to(out.dtype.element_ty), mask=inside)


@triton.jit
def softmax_in_pieces(out, x, columns, BLOCK: tl.constexpr):
    """A row in pieces: read for its maximum and sum, and again, from a cache, for the result."""
    start = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        inside = first + column < columns
        at = x + start + first + column
        piece = tl.load(at, mask=inside, other=-float("inf"), eviction_policy="evict_last")
        piece = piece.to(tl.float32)
        larger = tl.maximum(largest, piece)
        known = larger > -float("inf")  # else -inf - -inf would be NaN
        corrected = sums * tl.exp(largest - larger) + tl.exp(piece - larger)
        sums = tl.where(known, corrected, 0.0)
        largest = larger
    top = tl.max(largest, 0)
    corrected = sums * tl.exp(largest - top)
    total = tl.sum(tl.where(largest > -float("inf"), corrected, 0.0), 0)
    for first in range(0, columns, BLOCK):
        inside = first + column < columns
        at = x + start + first + column
        piece = tl.load(at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
        shares = tl.exp(piece - top) / total
        tl.store(out + start + first + column, shares.to(out.dtype.element_ty), mask=inside)


def deal(columns: int) -> dict[str, int]:
    """Rows and warps a program, or a piece of a row, for rows of this length.

    As the sweep of `bench` found them best on an H200.
    """
    if columns > KEPT:
        return PIECE
    block = triton.next_power_of_2(columns)
    rows = max(1, ENOUGH // block)
    warps = min(32, max(4, rows * block // 256))
    return {
        "ROWS": rows,
        "BLOCK": block,
        "num_warps": warps,
    }


def softmax(x: torch.Tensor, **options: int) -> torch.Tensor:
    """exp(x) / sum of exp(x) over the last axis of a matrix.

    x: float32 or bfloat16 [rows, columns], contiguous.
    options: instead of `deal`'s: ROWS, BLOCK and num_warps, or PIECE and num_warps.
    """
    rows, columns = x.shape
    out = torch.empty_like(x)
    if not out.numel():
        return out
    options = options or deal(columns)
    if "PIECE" in options:
        piece = options["PIECE"]
        warps = options["num_warps"]
        launch = softmax_in_pieces[(rows,)]
        launch(out, x, columns, BLOCK=piece, num_warps=warps)
    else:
        programs = triton.cdiv(rows, options["ROWS"])
        launch = softmax_rows[(programs,)]
        launch(out, x, rows, columns, **options)
    return out
