"""Attention's kernels as a learner left them in their cells: right, or what is wrong, in words."""

from pathlib import Path

import numpy as np
import torch
from numba import cuda

from course.kernels import trying
from course.kernels.attention import (
    backward_hopper,
    classic,
    hopper,
    numba_flash,
    reference,
    ring,
)
from course.kernels.attention.backward import Saved
from course.kernels.attention.backward_rungs import BACKWARD
from course.kernels.attention.problem import flat
from course.kernels.attention.reference import Case
from course.kernels.attention.rungs import RUNGS
from utils import cuda_c
from utils.tracer import trace

#: More keys than a tile has, fewer queries; a group of heads; the mask crosses a tile
CASE = Case(1, 40, 200, heads=2, key_heads=1, dim=64, causal=True)
MOST = {torch.float32: 1e-4, torch.float16: 2**-8, torch.bfloat16: 2**-6}
#: The same of one row, to tell rows that are only rounded from rows that are slightly wrong
ROUNDED = {torch.float32: 1e-4, torch.float16: 2**-10, torch.bfloat16: 2**-8}
FEW = 12  # rows that are listed
#: Rungs that walk from the last tile of keys to the first -> keys of a tile
WALKS_BACK = {"mma": 64}
ON_HOPPER = ("wgmma", "turns", "overlap", "stay")
#: Of a backward pass, whose slow checks take a while
SMALL = Case(1, 12, 20, heads=2, key_heads=1, dim=64, causal=True)
#: Of a ring: rows that can be shared out
ROUND = Case(1, 64, heads=2, dim=64, causal=True)
#: Of a cache: one query of each head, and parts of unlike lengths
CACHE = Case(1, 1, 200, heads=4, dim=64)
PARTS = (0, 80, 160, 200)
BLOCK = 64  # threads of a merge
FEW_ROWS = 16  # queries and keys of a film


def tried(name: str, case: Case = CASE) -> None:
    """Print whether a rung of the ladder is right as its file stands; if not, which rows are."""
    rung = RUNGS[name]
    if not rung.able():
        print(f"{name} needs {rung.needs.words}, or no GPU at all: then the CPU runs it")
        return
    q, k, v = reference.inputs(case, rung.dtype)
    exact, _ = reference.attention(q, k, v, case.causal)
    loads = hopper.kernel if name in ON_HOPPER else classic.module
    found = torch.full_like(q, torch.nan)

    def compute():
        return rung.run(q, k, v, case.causal, out=found)[0]

    def places(_):
        right = right_rows(found, exact, ROUNDED[rung.dtype])
        said = rows_in_words(right)
        if name in WALKS_BACK:
            first = largest_first(q, k, case, WALKS_BACK[name])
            said += "\nRows whose largest score is in the first tile of keys that they see:"
            said += f" {first.sum()}, and {(first & right).sum()} of these are right"
        return said

    trying.tried(compute, exact, loads, MOST[rung.dtype], places)


def right_rows(found, exact, most: float) -> np.ndarray:
    """[batch, queries, heads]: whether a query's whole result is right, but for rounding."""
    found, exact = trying.numbers(found), trying.numbers(exact)
    return np.abs(found - exact).max(-1) <= most * np.abs(exact).max()


def rows_in_words(right: np.ndarray) -> str:
    """How many rows of a batch of one are right and, of a few, which."""
    said = f"right rows, a query of a head each: {right.sum()} of {right.size}"
    if not 0 < right.sum() <= FEW:
        return said
    of_heads = [np.flatnonzero(of_head) for of_head in right[0].T]
    which = [
        f"{', '.join(map(str, rows))} of head {head}"
        for head, rows in enumerate(of_heads)
        if rows.size
    ]
    return f"{said} ({'; '.join(which)})"


def largest_first(q, k, case: Case, width: int) -> np.ndarray:
    """Rows whose largest score a walk from the last tile of keys to the first meets at once.

    [batch, queries, heads]. width: keys of a tile.
    """
    q, k = trying.numbers(q), trying.numbers(k)
    k = k.repeat(q.shape[2] // k.shape[2], axis=2)
    scores = np.einsum("bqhd,bkhd->bqhk", q, k)
    rows, keys = q.shape[1], k.shape[1]
    sees = [reference.seen(row, rows, keys) if case.causal else keys for row in range(rows)]
    sees = np.array(sees)[:, None]
    hidden = np.arange(keys) >= sees
    scores = np.where(hidden[:, None], -np.inf, scores)
    return scores.argmax(-1) // width == (sees - 1) // width


def flash_traced(kernel, queries: int):
    """A trace of a learner's flash attention: FEW_ROWS of 4 numbers, `queries` of them a block."""
    q, k, v = np.random.default_rng(22).normal(size=(3, FEW_ROWS, 4)).astype(np.float32)
    out = np.zeros_like(q)
    return trace(kernel, FEW_ROWS // queries, queries, out, q, k, v, np.float32(0.5), False)


def one_look(kernel, query, keys, values) -> np.ndarray:
    """What a query takes home by a learner's flash attention; rows of fewer than 4 numbers.

    query [1, numbers], keys and values [length, numbers].
    """
    wide = [np.pad(rows, ((0, 0), (0, 4 - rows.shape[1]))) for rows in (query, keys, values)]
    arrays = [cuda.to_device(rows.astype(np.float32)) for rows in (np.zeros_like(wide[0]), *wide)]
    scale = np.float32(query.shape[1] ** -0.5)
    kernel[1, 8](*arrays, scale, False)
    return arrays[0].copy_to_host()[:, : values.shape[1]]


def tried_in_numba(kernel) -> None:
    """Print whether a Numba kernel with the parameters of `numba_flash.flash_batch` is right."""
    q, k, v = reference.inputs(SMALL, torch.float32)
    exact, _ = reference.attention(q, k, v, SMALL.causal)
    found, _ = numba_flash.attention(q, k, v, SMALL.causal, kernel=kernel)
    print(trying.verdict(trying.numbers(found), trying.numbers(exact)))


def tried_in_triton(take) -> None:
    """Print whether `triton_flash.flash` is right with this step in place of its own."""
    import triton

    from course.kernels.attention import triton_flash

    q, k, v = reference.inputs(SMALL, torch.float32)
    exact, _ = reference.attention(q, k, v, SMALL.causal)
    ours = triton_flash.take, triton_flash.flash
    triton_flash.take = take
    triton_flash.flash = triton.jit(triton_flash.flash.fn)  # compiled anew
    try:
        found, _ = triton_flash.attention(q, k, v, SMALL.causal)
    finally:
        triton_flash.take, triton_flash.flash = ours
    print(trying.verdict(trying.numbers(found), trying.numbers(exact)))


def tried_backward(name: str = "plain", case: Case = SMALL) -> None:
    """Print whether a backward rung is right as its file stands now; if not, which gradients."""
    rung = BACKWARD[name]
    if not rung.able():
        print(f"{name} needs {rung.needs.words}, or no GPU at all: then the CPU runs it")
        return
    q, k, v = reference.inputs(case, rung.dtype)
    dout, _, _ = reference.inputs(case, rung.dtype, seed=1)
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    out, lse = reference.attention(*leaves, case.causal)
    exact = torch.autograd.grad(out, leaves, dout.double())
    saved = Saved(q, k, v, out.detach().to(rung.dtype), lse.detach().float(), case.causal)
    found = {}

    def compute():
        found.update(zip("qkv", rung.run(saved, dout), strict=True))
        return torch.cat([each.flatten() for each in found.values()])

    def places(_):
        pairs = zip(found.items(), exact, strict=True)
        return "\n".join(
            f"d{letter}: "
            + trying.verdict(trying.numbers(gradient), trying.numbers(right), MOST[rung.dtype])
            for (letter, gradient), right in pairs
        )

    whole = torch.cat([each.flatten() for each in exact])
    loads = backward_hopper.kernels if name in ON_HOPPER else classic.module
    trying.tried(compute, whole, loads, MOST[rung.dtype], places)


def tried_ring(ranks: int = 2, case: Case = ROUND) -> None:
    """Print whether causal attention, shared out over ranks, is the attention of the whole."""
    q, k, v = reference.inputs(case)
    exact, _ = reference.attention(q, k, v, case.causal)
    out, _ = ring.ring(q, k, v, case.causal, ranks=ranks)
    print(trying.verdict(trying.numbers(out), trying.numbers(exact), MOST[out.dtype]))


def merged(file: str | Path) -> None:
    """Print whether a learner's merge joins the parts of a cache into the result of the whole."""
    q, k, v = reference.inputs(CACHE, torch.float32)
    exact, _ = reference.attention(q, k, v)
    found = [
        reference.attention(q, k[:, first:end], v[:, first:end])
        for first, end in zip(PARTS, PARTS[1:], strict=False)
    ]
    shape = len(found), CACHE.heads, CACHE.dim
    parts = torch.cat([out for out, _ in found]).reshape(shape)
    lse = torch.cat([lse for _, lse in found]).reshape(shape[:2])
    print(trying.verdict(merge_of(file, parts, lse), trying.numbers(exact).reshape(shape[1:])))


def joined(file: str | Path, parts) -> np.ndarray:
    """What a learner's merge makes of parts of the keys: [rows, dim].

    parts: of each the results [rows, dim] and their lse [rows, 1], in NumPy.
    """
    results, lse = map(np.stack, zip(*parts, strict=True))
    on_device = [torch.tensor(x, device=reference.DEVICE) for x in (results, lse[..., 0])]
    return merge_of(file, *on_device)


def merge_of(file: str | Path, parts: torch.Tensor, lse: torch.Tensor) -> np.ndarray:
    """A learner's merge of parts [part, row, dim] and lse [part, row]: [rows, dim]."""
    count, rows, dim = parts.shape
    parts, lse = (x.float().contiguous() for x in (parts, lse))
    out = torch.full((rows, dim), torch.nan, device=parts.device)
    cuda_c.load(file).merge[rows, BLOCK](*map(flat, (out, parts, lse)), count, rows, dim)
    return trying.numbers(out)


def slopes(function, arrays, step: float = 1e-5) -> list[np.ndarray]:
    """Gradients by finite differences: each number of each array a little up, then a little down.

    function: of all arrays (float64, changed in place for a moment) to a number.
    """
    found = [np.zeros_like(array) for array in arrays]
    for array, slope in zip(arrays, found, strict=True):
        for place in np.ndindex(array.shape):
            for sign in (step, -step):
                array[place] += sign
                slope[place] += function(*arrays) / (2 * sign)
                array[place] -= sign
    return found
