"""Softmax over rows in Triton: a program a few short rows, one row, or a row in pieces."""

import torch
import triton
import triton.language as tl

#: Columns of the longest row that a program keeps in its registers
KEPT = 8192
#: Longer rows, in pieces: columns at most, and how
PIECES = {
    32768: {"PIECE": 2048, "num_warps": 16},
    1 << 31: {"PIECE": 8192, "num_warps": 32, "KEPT": 32768, "programs": 2},
}
#: Values a program should have, so that short rows fill it, too
ENOUGH = 1024
SMS_OF_NO_GPU = 2


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
def softmax_in_pieces(
    out,
    x,
    rows,
    columns: tl.constexpr,
    KEPT: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
    LEAVE: tl.constexpr,
):
    """The beginning of a row is kept in registers, the rest is read in pieces, and read again.

    The second time it comes from a cache. A program takes every so many-th row: with few programs,
    what they read stays there. LEAVE: whether the result is to leave the caches first.
    """
    store_policy: tl.constexpr = "evict_first" if LEAVE else ""
    kept_column = tl.arange(0, KEPT)
    is_kept = kept_column < columns
    lane = tl.arange(0, BLOCK)
    kind = out.dtype.element_ty
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        start = row.to(tl.int64) * columns
        kept = tl.load(x + start + kept_column, mask=is_kept, other=-float("inf")).to(tl.float32)
        largest = tl.full((BLOCK,), -float("inf"), tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for first in tl.range(KEPT, columns, BLOCK, num_stages=STAGES):
            inside = first + lane < columns
            at = x + start + first + lane
            piece = tl.load(at, mask=inside, other=-float("inf"), eviction_policy="evict_last")
            piece = piece.to(tl.float32)
            # one of both exponentials is of 0; -inf - -inf would be NaN
            gap = tl.where(piece == -float("inf"), 0.0, tl.exp(-tl.abs(piece - largest)))
            sums = tl.where(piece > largest, sums * gap + 1, sums + gap)
            largest = tl.maximum(largest, piece)
        top = tl.maximum(tl.max(kept, 0), tl.max(largest, 0))
        powers = tl.exp(kept - top)
        corrected = tl.where(largest > -float("inf"), sums * tl.exp(largest - top), sums)
        total = tl.sum(powers, 0) + tl.sum(corrected, 0)
        of_kept = (powers / total).to(kind)
        tl.store(out + start + kept_column, of_kept, mask=is_kept, eviction_policy=store_policy)
        for first in tl.range(KEPT, columns, BLOCK, num_stages=STAGES):
            inside = first + lane < columns
            at = start + first + lane
            piece = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first")
            shares = (tl.exp(piece.to(tl.float32) - top) / total).to(kind)
            tl.store(out + at, shares, mask=inside, eviction_policy=store_policy)


def deal(columns: int) -> dict[str, int]:
    """Rows and warps a program, or a piece of a row, for rows of this length.

    As the sweep of `bench` found them best on an H200.
    """
    if columns > KEPT:
        return next(options for most, options in PIECES.items() if columns <= most)
    block = triton.next_power_of_2(columns)
    rows = max(1, ENOUGH // block)
    warps = min(32, max(4, rows * block // 256))
    return {
        "ROWS": rows,
        "BLOCK": block,
        "num_warps": warps,
    }


def in_order(**tensors: torch.Tensor) -> None:
    """ValueError where a tensor is a view whose elements do not stand one behind the other.

    These kernels get a pointer and no strides: of a transposed matrix they would read the rows.
    """
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"{name} is a view with strides {tuple(tensor.stride())}, and this kernel takes no "
                f"strides: give it {name}.contiguous()"
            )


def softmax(x: torch.Tensor, **options: int) -> torch.Tensor:
    """exp(x) / sum of exp(x) over the last axis of a matrix.

    x: float32 or bfloat16 [rows, columns], contiguous.
    options: instead of `deal`'s: ROWS, BLOCK and num_warps, or PIECE and num_warps; with these
        also KEPT (columns in registers), STAGES and programs (an SM).
    """
    in_order(x=x)
    rows, columns = x.shape
    out = torch.empty_like(x)
    if not out.numel():
        return out
    options = options or deal(columns)
    if "PIECE" in options:
        kept = options.get("KEPT", options["PIECE"])
        launch = softmax_in_pieces[(programs_for(x, options),)]
        launch(out, x, rows, columns, KEPT=kept, **in_pieces(options))
    else:
        programs = triton.cdiv(rows, options["ROWS"])
        launch = softmax_rows[(programs,)]
        launch(out, x, rows, columns, **options)
    return out


def in_pieces(options: dict[str, int]) -> dict[str, int]:
    """What a kernel that reads rows in pieces is launched with."""
    others = {name: options[name] for name in ("num_warps", "maxnreg") if name in options}
    return {
        "BLOCK": options["PIECE"],
        "STAGES": options.get("STAGES", 1),
        "LEAVE": options.get("LEAVE", False),
        **others,
    }


def programs_for(x: torch.Tensor, options: dict[str, int]) -> int:
    """One a row, or so many an SM as the options say."""
    rows = len(x)
    if "programs" not in options:
        return rows
    return min(rows, options["programs"] * sms(x))


def sms(x: torch.Tensor) -> int:
    """Multiprocessors of the GPU that x lies on."""
    if x.device.type != "cuda":
        return SMS_OF_NO_GPU
    return torch.cuda.get_device_properties(x.device).multi_processor_count
