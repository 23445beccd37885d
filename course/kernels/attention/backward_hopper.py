"""The backward pass on Hopper: wgmma and TMA; bfloat16, heads of 64 or 128.

Source of the algorithm: Shah et al., FlashAttention-3 (2024).
"""

import ctypes
from dataclasses import dataclass, replace

import torch

from course.kernels.attention.backward import Saved, gradients_for
from course.kernels.attention.classic import KERNELS, described
from course.kernels.attention.hopper import in_memory, rows_of, spans
from course.kernels.attention.problem import Problem, problem_of, stream
from course.kernels.convolution.tensor_maps import TensorMap
from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KEYS = 128  # of a block
ROWS = 64  # of a warp group
STAGES = 2  # tiles of queries in shared memory
THREADS = 384


@dataclass(frozen=True)
class Form:
    """How the kernels are compiled. queries: of a tile."""

    dim: int = 128
    queries: int = 64
    switches: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for it."""
        return f"-DDIM={self.dim}", f"-DQUERIES={self.queries}", *self.switches

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory per block (kernels/backward_tiles.cuh, Shared)."""
        rows = 2 * KEYS + 2 * STAGES * self.queries
        changes = STAGES * 2 * KEYS * self.queries
        numbers = 2 * STAGES * 4 * self.queries
        barriers = 1 + 4 * STAGES
        return rows * 2 * self.dim + changes + numbers + 8 * barriers


@yours.cache
def kernels(form: Form):
    """(the compiled kernel, those that run before and behind it).

    Only a Hopper GPU and the CPU runtime have its instructions.
    """
    main = cuda_c.load(KERNELS / "backward_wgmma.cu", flags=form.flags)
    ends = cuda_c.load(KERNELS / "backward_ends.cu", flags=form.flags)
    return main.attention, ends


def gradients(saved: Saved, dout: torch.Tensor, *, gradients=None, form: Form | None = None):
    """(dq, dk, dv) of bfloat16, as backward.plain has them.

    dq is added up in float32 in the order in which blocks come: its last digits differ between
    runs, those of dk and dv do not.
    """
    form = form or Form(saved.q.shape[-1])
    saved.check(dout, torch.bfloat16, (form.dim,))
    dq, dk, dv = gradients_for(saved, gradients)
    q, k, v = saved.given
    problem = problem_of(q, k, saved.causal)
    batch, queries, heads, dim = q.shape
    tiles = ceil_div(queries, form.queries)
    rows = torch.empty(batch * heads * tiles * 2 * form.queries, device=q.device)
    sums = torch.empty(batch * heads * tiles * form.queries * dim, device=q.device)
    maps = maps_of(q, k, v, dout, dk, dv, form)
    attention, ends = kernels(form)
    on = stream()
    ends_of = Ends(ends, problem, saved.out, dout, saved.lse, dq, form, on)
    ends_of.prepare(rows, sums)
    grid = ceil_div(k.shape[1], KEYS), k.shape[2], batch
    attention[grid, THREADS, form.shared, on](*maps, rows, sums, problem, None, None)
    ends_of.finish(sums)
    return dq, dk, dv


def maps_of(q, k, v, dout, dk, dv, form: Form) -> list:
    """The tensor maps of these, in this order."""
    of_queries = [rows_of(x, form.queries) for x in (q, dout)]
    of_keys = [rows_of(x, KEYS) for x in (k, v)]
    results = [rows_of(x, ROWS) for x in (dk, dv)]
    return [of_queries[0], *of_keys, of_queries[1], *results]


class Ends:
    """What runs before and behind the main kernel, for queries of one problem."""

    def __init__(self, kernels, problem, out, dout, lse, dq, form: Form, on: int):
        batch, queries, heads, _ = out.shape
        self.shape = (ceil_div(queries, form.queries), heads, batch), 256, 0, on
        self.kernels = kernels
        self.problem = problem
        self.lse = lse
        self.arrays, self.strides = described(out, dout, dq)

    def prepare(self, rows: torch.Tensor, sums: torch.Tensor) -> None:
        """Queue what rows says of queries, and zeros in sums."""
        out, dout, _ = self.arrays
        launch = self.kernels.prepare[self.shape]
        launch(rows, sums, out, dout, self.lse, self.problem, *self.strides[:2])

    def finish(self, sums: torch.Tensor) -> None:
        """Queue dq, from sums."""
        self.kernels.finish[self.shape](self.arrays[2], sums, self.problem, self.strides[2])


# ---- sequences of any lengths, packed one behind the other


def costs(queries: int, keys: int, causal: bool) -> dict[int, int]:
    """{the first key of a tile: how many queries see any of its keys}."""
    result = {}
    for key in range(0, keys, KEYS):
        blind = max(0, key + queries - keys) if causal else 0
        result[key] = queries - blind
    return result


class Sequence(ctypes.Structure):
    """As kernels/backward_wgmma.cu has it, Packed."""

    _fields_ = [
        ("maps", TensorMap * 6),
        ("problem", Problem),
        ("first_tile", ctypes.c_int),
        ("unused", ctypes.c_int * 7),  # the next one's maps begin at a multiple of 64 bytes
    ]


def copied(tensor_map) -> TensorMap:
    """The bytes alone: on the CPU runtime a map is a struct of another class."""
    return TensorMap.from_buffer_copy(bytes(tensor_map))


class Packed:
    """Gradients of packed sequences: run() -> (dq, dk, dv), as hopper.Packed has the forward pass.

    saved: q, out [all queries, heads, dim], k and v [all keys, key heads, dim], lse float32
    [heads, all queries]; dout: as out. query_starts and key_starts: where each sequence begins, and
    where the last one ends. What is planned and described is made once, here.
    """

    def __init__(self, saved: Saved, dout, query_starts, key_starts, *, form: Form | None = None):
        form = form or Form(saved.q.shape[-1])
        form = replace(form, switches=(*form.switches, "-DPACKED"))
        whole = Saved(*(x[None] for x in (*saved.given, saved.out, saved.lse)))
        whole.check(dout[None], torch.bfloat16, (form.dim,))
        if len(query_starts) != len(key_starts):
            raise ValueError("as many sequences of keys as of queries are needed")
        self.gradients = tuple(torch.zeros_like(x) for x in saved.given)
        attention, ends = kernels(form)
        dq, dk, dv = self.gradients
        heads, key_heads = saved.q.shape[1], saved.k.shape[1]
        self.ends = []  # (of a sequence, its first tile of queries)
        self._kept = [saved, dout]  # what maps describe
        sequences, ordered = [], []
        tiles = 0
        pairs = zip(spans(query_starts), spans(key_starts), strict=True)
        for (first, end), (first_key, end_key) in pairs:
            if end == first or end_key == first_key:
                continue  # nobody asks, or nobody sees a key
            q, out, d, to_q = (x[None, first:end] for x in (saved.q, saved.out, dout, dq))
            k, v, to_k, to_v = (x[None, first_key:end_key] for x in (saved.k, saved.v, dk, dv))
            problem = problem_of(q, k, saved.causal)
            problem.lse_rows = len(saved.q)
            problem.lse_first = first
            maps = maps_of(q, k, v, d, to_k, to_v, form)
            self._kept += maps
            number = len(sequences)
            sequences.append(Sequence((TensorMap * 6)(*map(copied, maps)), problem, tiles))
            own = Ends(ends, problem, out, d, saved.lse, to_q, form, stream())
            self.ends.append((own, tiles))
            tiles += heads * ceil_div(end - first, form.queries)
            lengths = end - first, end_key - first_key
            for key, cost in costs(*lengths, saved.causal).items():
                ordered += [(cost, (0, h, key, number)) for h in range(key_heads)]
        if not sequences:
            raise ValueError("there is no sequence with a query and a key")
        ordered.sort(key=lambda x: -x[0])
        like = {"dtype": torch.int32, "device": dq.device}
        planned = torch.tensor([tile for _, tile in ordered], **like)
        self.rows = torch.empty(tiles, 2 * form.queries, device=dq.device)
        self.sums = torch.empty(tiles, form.queries * form.dim, device=dq.device)
        self._launch = attention[len(ordered), THREADS, form.shared, stream()]
        described_here = in_memory(sequences, dq.device)
        self._given = [*maps, self.rows, self.sums, problem, described_here, planned]

    def run(self) -> tuple:
        """Queue the work; (dq, dk, dv)."""
        for ends, tile in self.ends:
            ends.prepare(self.rows[tile:], self.sums[tile:])
        self._launch(*self._given)
        for ends, tile in self.ends:
            ends.finish(self.sums[tile:])
        return self.gradients
