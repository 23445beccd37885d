"""The backward pass of attention: its rungs for any GPU, and what all of its rungs share.

Each takes what the forward pass was given and has found, and the gradient of its result; it
computes the weights again from lse. Source of the algorithm: Dao et al., FlashAttention (2022).
"""

from dataclasses import dataclass

import torch

from course.kernels.attention.classic import DIMS, described, module
from course.kernels.attention.problem import check, problem_of, stream
from utils.occupancy import ceil_div


@dataclass
class Saved:
    """What the forward pass was given, and what it found.

    q, out: [batch, queries, heads, dim]; k, v: [batch, keys, key heads, dim]; lse: float32
    [batch, heads, queries], the logarithm of each row's sum of exponentials.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor
    causal: bool = False

    @property
    def given(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q, k, v."""
        return self.q, self.k, self.v

    def check(self, dout: torch.Tensor, dtype: torch.dtype, dims: tuple[int, ...]) -> None:
        """Raise ValueError with what does not fit together; dout: out's gradient."""
        check(self.q, self.k, self.v, dtype, dims)
        for name, tensor in {"out": self.out, "dout": dout}.items():
            if tensor.shape != self.q.shape:
                raise ValueError(f"{name} must have q's shape, {tuple(self.q.shape)}")
            check(tensor, self.k, self.v, dtype, dims, first=name)
        batch, queries, heads, _ = self.q.shape
        expected = batch, heads, queries
        if self.lse.shape != expected or self.lse.dtype != torch.float32:
            raise ValueError(f"lse must be float32 {expected}")
        if not self.lse.is_contiguous():
            raise ValueError("lse must be contiguous")


def gradients_for(saved: Saved, gradients=None) -> tuple:
    """(dq, dk, dv): those given, or new ones. Raises ValueError where those given do not fit."""
    if gradients is None:
        return tuple(torch.empty_like(tensor) for tensor in saved.given)
    for name, tensor, of in zip(("dq", "dk", "dv"), gradients, saved.given, strict=True):
        if tensor.shape != of.shape or tensor.dtype != of.dtype or tensor.stride(-1) != 1:
            raise ValueError(f"{name} must be {of.dtype} {tuple(of.shape)}, its rows whole")
    return gradients


WARPS = 4  # of a block of the plain rung: a row each


def plain(saved: Saved, dout: torch.Tensor, *, gradients=None) -> tuple:
    """(dq, dk, dv) of float32, by three kernels with a warp for each row.

    dout: as out. gradients: (dq, dk, dv) to write to, made unless given.
    Raises ValueError where shapes or types do not fit.
    """
    saved.check(dout, torch.float32, DIMS)
    dq, dk, dv = gradients_for(saved, gradients)
    problem = problem_of(saved.q, saved.k, saved.causal)
    batch, queries, heads, dim = saved.q.shape
    _, keys, key_heads, _ = saved.k.shape
    kernels = module("backward_plain", f"-DDIM={dim}")
    (q, k, v, out, d), of_inputs = described(*saved.given, saved.out, dout)
    (to_q, to_k, to_v), (of_dq, *of_dkv) = described(dq, dk, dv)
    of_q, of_k, of_v, of_out, of_dout = of_inputs
    inputs = [q, k, v, d, saved.lse]
    strides = [of_q, of_k, of_v, of_dout]
    delta = torch.empty_like(saved.lse)
    shape = 32 * WARPS, 0, stream()
    rows = ceil_div(queries, WARPS), heads, batch
    kernels.multiply_rows[(rows, *shape)](delta, out, d, problem, of_out, of_dout)
    kernels.for_queries[(rows, *shape)](to_q, *inputs, delta, problem, of_dq, *strides)
    rows = ceil_div(keys, WARPS), key_heads, batch
    kernels.for_keys[(rows, *shape)](to_k, to_v, *inputs, delta, problem, *of_dkv, *strides)
    return dq, dk, dv


# ---- mma.sync

OWN = 64  # rows of a block
MMA_WARPS = 4


@dataclass(frozen=True)
class Tile:
    """How backward_mma.cu is compiled. others: rows of a tile of the other side."""

    others: int = 64

    def flags(self, dim: int, dtype: torch.dtype) -> tuple[str, ...]:
        """The compiler's flags for it."""
        flags = f"-DDIM={dim}", f"-DOTHERS={self.others}"
        return (*flags, "-DHALF") if dtype == torch.float16 else flags

    def shared(self, dim: int) -> int:
        """Bytes of shared memory for each block: own rows, and two tiles of the others."""
        return 2 * 2 * dim * (OWN + 2 * self.others) + 2 * 8 * self.others


ROOMY = Tile()
SMALL = Tile(16)  # 48 KB with heads of 128: for GPUs before Ampere


def mma(saved: Saved, dout: torch.Tensor, *, gradients=None, tile: Tile = ROOMY) -> tuple:
    """(dq, dk, dv) of bfloat16 or float16, as `plain`, by mma.sync; the same in every run."""
    dtype = saved.q.dtype if saved.q.dtype == torch.float16 else torch.bfloat16
    saved.check(dout, dtype, DIMS)
    dq, dk, dv = gradients_for(saved, gradients)
    problem = problem_of(saved.q, saved.k, saved.causal)
    batch, queries, heads, dim = saved.q.shape
    _, keys, key_heads, _ = saved.k.shape
    kernels = module("backward_mma", *tile.flags(dim, dtype))
    (q, k, v, out, d), of_inputs = described(*saved.given, saved.out, dout)
    (to_q, to_k, to_v), (of_dq, *of_dkv) = described(dq, dk, dv)
    of_q, of_k, of_v, of_out, of_dout = of_inputs
    places = ceil_div(queries, tile.others) * tile.others
    rows = torch.empty(batch, heads, places, 2, device=q.device)
    inputs = [q, k, v, d, rows, problem]
    strides = [of_q, of_k, of_v, of_dout]
    threads = 32 * MMA_WARPS
    every = ceil_div(places, MMA_WARPS), heads, batch
    launch = kernels.prepare[every, threads, 0, stream()]
    launch(rows, out, d, saved.lse, problem, of_out, of_dout)
    shape = threads, tile.shared(dim), stream()
    grid = ceil_div(keys, OWN), key_heads, batch
    kernels.for_keys[(grid, *shape)](to_k, to_v, *inputs, *of_dkv, *strides)
    grid = ceil_div(queries, OWN), heads, batch
    kernels.for_queries[(grid, *shape)](to_q, *inputs, of_dq, *strides)
    return dq, dk, dv
