"""The backward pass on Hopper: wgmma and TMA; bfloat16, heads of 64 or 128.

Source of the algorithm: Shah et al., FlashAttention-3 (2024).
"""

import functools
from dataclasses import dataclass

import torch

from course.kernels.attention.backward import Saved, gradients_for
from course.kernels.attention.classic import KERNELS, described
from course.kernels.attention.hopper import rows_of
from course.kernels.attention.problem import problem_of
from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KEYS = 128  # of a block
ROWS = 64  # of a warp group
THREADS = 384
#: Bytes of heads' tensors that the order of blocks keeps in L2 at a time
TOGETHER = 32 << 20


@dataclass(frozen=True)
class Form:
    """How backward_hopper.cu is compiled. queries, stages: of a tile, and tiles in shared memory.

    bulk: whether the copy engine adds dq. switches: further macros.
    """

    dim: int = 128
    queries: int = 64
    stages: int = 2
    bulk: bool = False
    switches: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for it."""
        named = {"DIM": self.dim, "QUERIES": self.queries, "STAGES": self.stages}
        named |= {"DOUT_STAGES": 2, "BULK": int(self.bulk)}
        return (*(f"-D{name}={value}" for name, value in named.items()), *self.switches)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory a block (kernels/backward_hopper.cu, Shared)."""
        of_queries = self.stages + 2
        rows = 2 * KEYS + of_queries * self.queries
        changes = 2 * 2 * KEYS * self.queries
        sums = 4 * self.dim * self.queries if self.bulk else 0
        barriers = 1 + 2 * of_queries
        return rows * 2 * self.dim + changes + sums + 4 * of_queries * self.queries + 8 * barriers


FASTEST = Form()


def form_for(dim: int) -> Form:
    """The fastest form for heads of 64 or 128."""
    return Form(dim)


@yours.cache
def kernels(form: Form):
    """The compiled kernels; only a Hopper GPU and the CPU runtime have their instructions."""
    return cuda_c.load(KERNELS / "backward_hopper.cu", flags=form.flags)


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
    work = order((batch, heads, queries, k.shape[1], problem.group, dim, saved.causal), q.device)
    run = kernels(form)
    grid = tiles, heads, batch
    run.prepare[grid, 256](rows, sums, out, d, saved.lse, problem, of_out, of_dout)
    run.attention[len(work), THREADS, form.shared](*maps, work, rows, sums, problem)
    run.finish[grid, 256](to, sums, problem, of_dq)
    return dq, dk, dv


# ---- who does what


def costs(queries: int, keys: int, causal: bool) -> list[int]:
    """Queries that see any key of each tile of keys."""
    result = []
    for key in range(0, keys, KEYS):
        hidden = max(0, key + queries - keys) if causal else 0
        result.append(queries - hidden)
    return result


@functools.lru_cache(maxsize=64)
def order(shape: tuple, device) -> torch.Tensor:
    """int32 [blocks, 4]: (batch, head of keys, first key, 0) for each block, as they should begin.

    A few heads after another, of these the blocks with most work first. Heads stay together as
    long as their tensors fit into L2.
    """
    batch, heads, queries, keys, group, dim, causal = shape
    tiles = sorted(enumerate(costs(queries, keys, causal)), key=lambda x: -x[1])
    places = [(b, h) for b in range(batch) for h in range(heads // group)]
    each = 8 * queries * dim * group  # q and dout, and dq in float32
    together = max(1, TOGETHER // each)
    result = []
    for first in range(0, len(places), together):
        for number, _ in tiles:
            for b, h in places[first : first + together]:
                result.append((b, h, number * KEYS, 0))
    return torch.tensor(result, dtype=torch.int32, device=device)
