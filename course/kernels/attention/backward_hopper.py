"""The backward pass on Hopper: wgmma and TMA; bfloat16, heads of 64 or 128.

Source of the algorithm: Shah et al., FlashAttention-3 (2024).
"""

import functools
from dataclasses import dataclass

import torch

from course.kernels.attention.backward import Saved, gradients_for, stream
from course.kernels.attention.classic import KERNELS, described
from course.kernels.attention.hopper import assign, rows_of
from course.kernels.attention.problem import problem_of
from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KEYS = 128  # of a block
ROWS = 64  # of a warp group
STAGES = 2  # tiles of queries in shared memory
THREADS = 384
#: Bytes of heads' tensors that the order of blocks keeps in L2 at a time
TOGETHER = 32 << 20


@dataclass(frozen=True)
class Form:
    """How a rung is compiled. file: "backward_wgmma" or "backward_stay". queries: of a tile."""

    file: str = "backward_stay"
    dim: int = 128
    queries: int = 64
    switches: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for it."""
        return f"-DDIM={self.dim}", f"-DQUERIES={self.queries}", *self.switches

    @property
    def planned(self) -> bool:
        """Whether its blocks stay, and take the tiles that `plan` gives them."""
        return self.file == "backward_stay"

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory a block (kernels/backward_tiles.cuh, Shared)."""
        buffers = 2 if self.planned else 1
        rows = 2 * buffers * KEYS + 2 * STAGES * self.queries
        changes = STAGES * 2 * KEYS * self.queries
        numbers = 2 * STAGES * 4 * self.queries
        barriers = 3 * buffers + 4 * STAGES
        return rows * 2 * self.dim + changes + numbers + 8 * barriers


FASTEST = Form()


def form_for(dim: int, file: str = "backward_stay") -> Form:
    """The fastest form of a rung for heads of 64 or 128."""
    return Form(file, dim)


@yours.cache
def kernels(form: Form):
    """(the compiled kernel, those that run before and behind it).

    Only a Hopper GPU and the CPU runtime have its instructions.
    """
    main = cuda_c.load(KERNELS / f"{form.file}.cu", flags=form.flags)
    ends = cuda_c.load(KERNELS / "backward_ends.cu", flags=form.flags)
    return main.attention, ends


def gradients(saved: Saved, dout: torch.Tensor, *, gradients=None, form: Form | None = None):
    """(dq, dk, dv) of bfloat16, as backward.plain has them.

    dq is added up in float32 in the order in which blocks come: its last digits differ between
    runs, those of dk and dv do not.
    """
    form = form or form_for(saved.q.shape[-1])
    saved.check(dout, torch.bfloat16, (form.dim,))
    dq, dk, dv = gradients_for(saved, gradients)
    q, k, v = saved.given
    problem = problem_of(q, k, saved.causal)
    batch, queries, heads, dim = q.shape
    tiles = ceil_div(queries, form.queries)
    rows = torch.empty(batch * heads * tiles * 2 * form.queries, device=q.device)
    sums = torch.empty(batch * heads * tiles * form.queries * dim, device=q.device)
    (out, d, to), (of_out, of_dout, of_dq) = described(saved.out, dout, dq)
    maps = [rows_of(x, form.queries) for x in (q, dout)]
    maps[1:1] = [rows_of(x, KEYS) for x in (k, v)]
    maps += [rows_of(x, ROWS) for x in (dk, dv)]
    attention, ends = kernels(form)
    grid = tiles, heads, batch
    on = stream()
    ends.prepare[grid, 256, 0, on](rows, sums, out, d, saved.lse, problem, of_out, of_dout)
    if form.planned:
        shape = batch, heads, queries, k.shape[1], problem.group, dim, saved.causal
        starts, planned = plan(shape, form.queries, q.device)
        launch = attention[len(starts) - 1, THREADS, form.shared, on]
        launch(*maps, rows, sums, problem, starts, planned)
    else:
        of_keys = ceil_div(k.shape[1], KEYS), k.shape[2], batch
        attention[of_keys, THREADS, form.shared, on](*maps, rows, sums, problem)
    ends.finish[grid, 256, 0, on](to, sums, problem, of_dq)
    return dq, dk, dv


# ---- who does what


def costs(queries: int, keys: int, group: int, causal: bool, width: int) -> list[int]:
    """Tiles of queries, each of this width, that each tile of keys needs."""
    result = []
    for key in range(0, keys, KEYS):
        first = max(0, key + queries - keys) if causal else 0
        result.append(group * (ceil_div(queries, width) - first // width))
    return result


def order(shape: tuple, width: int) -> list[tuple[int, tuple]]:
    """[(cost, (batch, head of keys, first key, 0))]: a few heads after another, the longest first.

    Heads stay together as long as their tensors fit into L2.
    """
    batch, heads, queries, keys, group, dim, causal = shape
    tiles = sorted(enumerate(costs(queries, keys, group, causal, width)), key=lambda x: -x[1])
    places = [(b, h) for b in range(batch) for h in range(heads // group)]
    each = 8 * queries * dim * group  # bytes of q and dout, and of dq in float32
    together = max(1, TOGETHER // each)
    result = []
    for first in range(0, len(places), together):
        for number, cost in tiles:
            for b, h in places[first : first + together]:
                result.append((cost, (b, h, number * KEYS, 0)))
    return result


@functools.lru_cache(maxsize=64)
def plan(shape: tuple, width: int, device) -> tuple[torch.Tensor, torch.Tensor]:
    """(starts int32 [blocks + 1], tiles int32 [n, 4]): each tile to who will be free first."""
    return assign(order(shape, width), device)
