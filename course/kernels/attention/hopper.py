"""The Hopper rungs: wgmma and TMA, in turns, with overlap; bfloat16, heads of 64 or 128.

Source of the algorithm: Dao et al., FlashAttention (2022) and FlashAttention-2 (2023); of turns and
overlap: Shah et al., FlashAttention-3 (2024).
"""

import functools
import heapq
from dataclasses import dataclass
from pathlib import Path

import torch

from course.kernels.attention.problem import check, problem_of, results_for, stream
from course.kernels.attention.reference import seen
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
TOGETHER = 8 << 20
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
        launch = kernel(form)[len(starts) - 1, THREADS, form.shared, stream()]
        launch(*maps, lse, starts, tiles, problem, None, None)
    else:
        grid = ceil_div(queries, QUERIES), heads, batch
        kernel(form)[grid, THREADS, form.shared, stream()](*maps, lse, problem)
    return out, lse


def rows_of(tensor: torch.Tensor, rows: int):
    """The tensor map of [batch, length, heads, dim], in boxes of rows of one head."""
    return _map(tensor, tensor.data_ptr(), tensor.shape, tensor.stride(), rows)


@functools.lru_cache(maxsize=16)
def _map(tensor, address, shape, strides, rows):
    return boxes(tensor, (1, rows, 1, BOX))


# ---- who does what


def costs(queries: int, keys: int, causal: bool, width: int) -> list[int]:
    """Tiles of keys that each tile of queries needs."""
    result = []
    for row in range(0, queries, QUERIES):
        last = min(row + QUERIES, queries) - 1
        most = seen(last, queries, keys) if causal else keys
        result.append(max(1, ceil_div(most, width)))
    return result


def heads_together(keys: int, dim: int) -> int:
    """Of so many heads the K and V fit into L2."""
    each = 4 * keys * dim  # bytes
    return max(1, TOGETHER // each)


def order(shape: tuple, width: int) -> list[tuple[int, tuple]]:
    """[(cost, (batch, head, row, 0))]: a few heads after another, of these the longest first.

    Heads stay together as long as their K and V fit into L2.
    """
    batch, heads, queries, keys, group, dim, causal = shape
    rows = sorted(enumerate(costs(queries, keys, causal, width)), key=lambda x: -x[1])
    places = [(b, h) for b in range(batch) for h in range(heads)]
    together = heads_together(keys, dim) * group
    result = []
    for first in range(0, len(places), together):
        for number, cost in rows:
            for b, h in places[first : first + together]:
                result.append((cost, (b, h, number * QUERIES, 0)))
    return result


@functools.lru_cache(maxsize=64)
def plan(shape: tuple, width: int, device) -> tuple[torch.Tensor, torch.Tensor]:
    """(starts int32 [blocks + 1], tiles int32 [n, 4]): each tile to who will be free first."""
    return assign(order(shape, width), device)


def assign(ordered: list[tuple[int, tuple]], device) -> tuple[torch.Tensor, torch.Tensor]:
    """As `plan`, of [(cost, tile)]."""
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


# ---- sequences of any lengths, packed one behind the other


class Packed:
    """Attention of packed sequences: run() -> (out, lse).

    q [all queries, heads, dim], k and v [all keys, key heads, dim]: bfloat16. query_starts and
    key_starts: where each sequence begins, and where the last one ends. out: as q; lse: float32
    [heads, all queries]. Each sequence has maps of its own, beyond whose end nothing is read or
    written; what is planned and described is made once, here.
    """

    def __init__(self, q, k, v, query_starts, key_starts, causal: bool = False, *, form=None):
        self.form = form or form_for(q.shape[-1])
        check(q[None], k[None], v[None], torch.bfloat16, (self.form.dim,))
        if len(query_starts) != len(key_starts):
            raise ValueError("as many sequences of keys as of queries are needed")
        self.out = torch.zeros_like(q)
        self.lse = torch.full((q.shape[1], len(q)), -torch.inf, device=q.device)
        self._kept = []  # tensors that maps describe
        problems, maps, ordered = [], [], []
        pairs = zip(spans(query_starts), spans(key_starts), strict=True)
        for (first, end), (first_key, end_key) in pairs:
            if end == first or end_key == first_key:
                continue  # nobody asks, or nobody sees a key
            mine = [x[None, first:end] for x in (q, self.out)]
            theirs = [x[None, first_key:end_key] for x in (k, v)]
            problem = problem_of(mine[0], theirs[0], causal)
            problem.lse_rows = len(q)
            problem.lse_first = first
            maps += [rows_of(mine[0], ROWS), *(rows_of(x, self.form.keys) for x in theirs)]
            maps.append(rows_of(mine[1], ROWS))
            lengths = end - first, end_key - first_key
            for number, cost in enumerate(costs(*lengths, causal, self.form.keys)):
                row = number * QUERIES
                ordered += [(cost, (0, h, row, len(problems))) for h in range(q.shape[1])]
            problems.append(problem)
        if not problems:
            raise ValueError("there is no sequence with a query and a key")
        self._kept += maps
        ordered.sort(key=lambda x: -x[0])
        starts, tiles = assign(ordered, q.device)
        self._shape = len(starts) - 1, THREADS, self.form.shared
        arrays = [in_memory(structures, q.device) for structures in (maps, problems)]
        self._given = [*maps[3:4], *maps[:3], self.lse, starts, tiles, problems[0], *arrays]

    def run(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Queue the work; (out, lse)."""
        kernel(self.form)[*self._shape, stream()](*self._given)
        return self.out, self.lse


def spans(starts) -> list[tuple[int, int]]:
    """[(where a sequence begins, where it ends)]."""
    starts = [int(start) for start in starts]
    return list(zip(starts[:-1], starts[1:], strict=True))


def in_memory(structures: list, device) -> torch.Tensor:
    """The bytes of ctypes structures, one behind the other, in the device's memory.

    PyTorch's own allocations begin at multiples of 64 bytes, as tensor maps must.
    """
    raw = b"".join(bytes(structure) for structure in structures)
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).to(device, copy=True)
