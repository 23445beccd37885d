"""The Hopper rungs: wgmma and TMA, in turns, with overlap; bfloat16, heads of 64 or 128.

Source of the algorithm: Dao et al., FlashAttention (2022) and FlashAttention-2 (2023); of turns and
overlap: Shah et al., FlashAttention-3 (2024).
"""

import functools
import heapq
from dataclasses import dataclass
from pathlib import Path

import torch

from course.kernels.attention.problem import check, problem_of, results_for
from course.kernels.convolution.tensor_maps import boxes
from utils import cuda_c, machine
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
QUERIES = 128  # of a block
ROWS = 64  # of a warp group
BOX = 64  # numbers of a row that lie together in shared memory
THREADS = 384
CPU_SMS = 3  # on the CPU runtime: several blocks, and several tiles for each
#: Bytes of K and V that the plan keeps in L2 at a time
TOGETHER = 24 << 20
#: What a tile of queries costs beside its keys, in tiles of keys
EXTRA = 1.0


@dataclass(frozen=True)
class Form:
    """How a rung is compiled. file: "wgmma", "turns", "overlap" or "stay".

    keys, stages: of a tile, and tiles in shared memory. switches: further macros.
    """

    file: str = "stay"
    dim: int = 128
    keys: int = 160
    stages: int = 4
    switches: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for it."""
        named = {"DIM": self.dim, "KEYS": self.keys, "STAGES": self.stages}
        flags = [f"-D{name}={value}" for name, value in named.items()]
        return (*flags, *self.switches)

    @property
    def planned(self) -> bool:
        """Whether its blocks stay, and take the tiles that `plan` gives them."""
        return self.file == "stay"

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory a block (kernels/hopper_tiles.cuh, Shared)."""
        buffers = 2 if self.planned else 1
        rows = buffers * QUERIES + self.stages * self.keys
        barriers = 2 * 2 * buffers + 2 * self.stages
        return rows * 2 * self.dim + 8 * barriers


FASTEST = Form()


def form_for(dim: int, file: str = "stay") -> Form:
    """The fastest form of a rung for heads of 64 or 128."""
    return Form(file, dim, 160 if dim == 128 else 176)


@yours.cache
def kernel(form: Form):
    """The compiled kernel; only a Hopper GPU and the CPU runtime have its instructions."""
    return cuda_c.load(KERNELS / f"{form.file}.cu", flags=form.flags).attention


def attention(
    q,
    k,
    v,
    causal: bool = False,
    *,
    out=None,
    lse=None,
    form: Form = FASTEST,
) -> tuple:
    """(out, lse) of bfloat16 [batch, length, heads, dim] in any strides with whole rows.

    lse: float32 [batch, heads, queries], the logarithm of each row's sum of exponentials.
    out, lse: to write to, made unless given. Raises ValueError where shapes or types do not fit.
    """
    check(q, k, v, torch.bfloat16, (form.dim,))
    out, lse = results_for(q, out, lse)
    problem = problem_of(q, k, causal)
    maps = [rows_of(out, ROWS), rows_of(q, ROWS), rows_of(k, form.keys), rows_of(v, form.keys)]
    batch, queries, heads, dim = q.shape
    if form.planned:
        shape = batch, heads, queries, k.shape[1], problem.group, dim, causal
        starts, tiles = plan(shape, form.keys, q.device)
        launch = kernel(form)[len(starts) - 1, THREADS, form.shared]
        launch(*maps, lse, starts, tiles, problem)
    else:
        grid = ceil_div(queries, QUERIES), heads, batch
        kernel(form)[grid, THREADS, form.shared](*maps, lse, problem)
    return out, lse


def rows_of(tensor: torch.Tensor, rows: int):
    """The tensor map of [batch, length, heads, dim], in boxes of rows of one head."""
    return _map(tensor, tensor.data_ptr(), tensor.shape, tensor.stride(), rows)


@functools.lru_cache(maxsize=64)
def _map(tensor, address, shape, strides, rows):
    return boxes(tensor, (1, rows, 1, BOX))


# ---- who does what


def costs(queries: int, keys: int, causal: bool, width: int) -> list[int]:
    """Tiles of keys that each tile of queries needs."""
    result = []
    for row in range(0, queries, QUERIES):
        last = min(row + QUERIES, queries) - 1
        seen = max(0, min(keys, last + 1 + keys - queries)) if causal else keys
        result.append(max(1, ceil_div(seen, width)))
    return result


def order(shape: tuple, width: int) -> list[tuple[int, tuple]]:
    """[(cost, (batch, head, row, 0))]: a few heads after another, of these the longest first.

    Heads stay together as long as their K and V fit into L2.
    """
    batch, heads, queries, keys, group, dim, causal = shape
    rows = sorted(enumerate(costs(queries, keys, causal, width)), key=lambda x: -x[1])
    places = [(b, h) for b in range(batch) for h in range(heads)]
    each = 4 * keys * dim  # bytes of K and V
    together = max(1, TOGETHER // each) * group
    result = []
    for first in range(0, len(places), together):
        for number, cost in rows:
            for b, h in places[first : first + together]:
                result.append((cost, (b, h, number * QUERIES, 0)))
    return result


@functools.lru_cache(maxsize=64)
def plan(shape: tuple, width: int, device) -> tuple[torch.Tensor, torch.Tensor]:
    """(starts int32 [blocks + 1], tiles int32 [n, 4]): each tile to who will be free first."""
    ordered = order(shape, width)
    blocks = min(len(ordered), machine().sms or CPU_SMS)
    free = [(0.0, b) for b in range(blocks)]
    lists = [[] for _ in range(blocks)]
    for cost, tile in ordered:
        time, b = heapq.heappop(free)
        lists[b].append(tile)
        heapq.heappush(free, (time + cost + EXTRA, b))
    starts = [0]
    for mine in lists:
        starts.append(starts[-1] + len(mine))
    tiles = [tile for mine in lists for tile in mine]
    like = {"dtype": torch.int32, "device": device}
    return torch.tensor(starts, **like), torch.tensor(tiles, **like)
