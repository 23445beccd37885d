"""Decoding: one query of each head against a cache of keys and values, whole or in pages.

Sources of the algorithms: Dao et al., Flash-Decoding (2023), for parts of a sequence that are
joined; Kwon et al., PagedAttention (2023), for the cache in pages; Ainslie et al., GQA (2023).
"""

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from course.kernels.attention.classic import DIMS, module
from course.kernels.attention.problem import flat, stream, strides_of
from course.kernels.matmul.tensor import AMPERE, Needs, sms
from utils import has_gpu, machine
from utils.occupancy import ceil_div, limits

#: Keys of a tile of decode_group.cu: pages and parts hold whole tiles
TILE = 16
#: What beginning and ending a block costs, in steps of all of its warps
EXTRA = 1
#: How often the GPU is filled with blocks, at most, before parts get longer
ROUNDS = 2
#: Bytes of a cache that is small beside an H100's or H200's L2
SMALL = 40 << 20


class Decode(ctypes.Structure):
    """As kernels/decode.cuh has it."""

    _fields_ = [
        ("heads", ctypes.c_int),
        ("group", ctypes.c_int),
        ("chunk", ctypes.c_int),
        ("parts", ctypes.c_int),
        ("pages", ctypes.c_int),
        ("scale", ctypes.c_float),
    ]


@dataclass(frozen=True)
class Cache:
    """Keys and values of a batch of sequences.

    keys, values: [batch, capacity, key heads, dim]; in pages: [pages, page, key heads, dim].
    lengths: how many keys each sequence has, all at least 1.
    table: int32 [batch, most pages of a sequence], which page holds what; None: no pages.
    """

    keys: torch.Tensor
    values: torch.Tensor
    lengths: tuple[int, ...]
    table: torch.Tensor | None = None
    lengths_there: torch.Tensor = field(init=False, repr=False)  # where the kernels read them

    def __post_init__(self):
        lengths = torch.tensor(self.lengths, dtype=torch.int32, device=self.keys.device)
        object.__setattr__(self, "lengths_there", lengths)
        self._check()

    def _check(self):
        if self.keys.shape != self.values.shape or self.keys.dim() != 4:
            raise ValueError("keys and values must both be [batch, capacity, key heads, dim]")
        for name, tensor in {"keys": self.keys, "values": self.values}.items():
            if tensor.dtype != torch.bfloat16 or tensor.shape[-1] not in DIMS:
                raise ValueError(f"{name} must be bfloat16, with heads of {DIMS}")
            steps = [*tensor.stride()[:3], tensor.data_ptr() // tensor.element_size()]
            if tensor.stride(-1) != 1 or any(step % 8 for step in steps):
                raise ValueError(f"{name}'s rows must be whole, and begin at multiples of 16 bytes")
        if min(self.lengths, default=0) < 1 or max(self.lengths) > self.capacity:
            raise ValueError(f"lengths must be from 1 to {self.capacity}, got {self.lengths}")
        if self.table is None:
            if len(self.lengths) != len(self.keys):
                raise ValueError("there must be one length for each sequence")
            return
        if self.page % TILE:
            raise ValueError(f"a page must hold a multiple of {TILE} keys, not {self.page}")
        if self.table.dtype != torch.int32 or len(self.table) != len(self.lengths):
            raise ValueError("the table must be int32, with a row for each sequence")

    @property
    def page(self) -> int:
        """Keys of a page; 0 without pages."""
        return 0 if self.table is None else self.keys.shape[1]

    @property
    def length(self) -> int:
        """Of every sequence; 0 where they differ."""
        return self.lengths[0] if len(set(self.lengths)) == 1 else 0

    @property
    def capacity(self) -> int:
        """The most keys that a sequence can have."""
        return self.keys.shape[1] * (1 if self.table is None else self.table.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values that there are."""
        row = self.keys.shape[2] * self.keys.shape[3] * self.keys.element_size()
        return 2 * row * sum(self.lengths)


@dataclass(frozen=True)
class Form:
    """How a decoding kernel is compiled and launched.

    queries: the most of a block. blocks: of an SM. stages: tiles of each warp in shared memory.
    cluster: blocks that share a sequence, and join their parts without global memory. passing:
    whether the tiles' keys and values leave L2 before other lines.
    """

    file: str
    queries: int = 1
    warps: int = 8
    blocks: int = 4
    stages: int = 0
    cluster: int = 0
    passing: bool = False

    def flags(self, dim: int, page: int) -> tuple[str, ...]:
        """The compiler's flags."""
        named = {"DIM": dim, "PAGE": page, "WARPS": self.warps}
        if self.stages:
            named["STAGES"] = self.stages
        if self.cluster:
            named["CLUSTER"] = self.cluster
        if self.passing:
            named["PASSING"] = 1
        return tuple(f"-D{name}={value}" for name, value in named.items())

    def shared(self, dim: int) -> int:
        """Bytes of shared memory for each block's tiles of keys and values."""
        return self.warps * self.stages * 2 * TILE * dim * 2


SIMPLE = Form("decode_simple")
SPLIT = Form("decode_split")
GROUP = Form("decode_group", queries=8, blocks=1)
RING = Form("decode_ring", queries=8, blocks=1, stages=2)
CLUSTER = replace(RING, file="decode_cluster", cluster=8)
CLUSTERS = Needs("compute capability 9.0 or 10", (9, 0), (10, 3))  # 227 KB for a block
STATIC = 34 << 10  # bytes of shared memory that RING has beside its tiles


def form_for(cache: Cache, group: int = 1) -> Form:
    """The fastest form for a cache, each of whose heads of keys has a group of queries.

    Clusters where all of them have a place at once, with room to choose: half of the SMs. Else the
    ring, where an SM has room for it. A small cache passes through L2 without driving out what
    lies there: quicker where that was written and not yet written back, as quick where it was only
    read. With a large cache, or one after another, what stays costs more than it saved.
    """
    blocks = cache.keys.shape[2] * ceil_div(group, CLUSTER.queries) * len(cache.lengths)
    needed = RING.shared(cache.keys.shape[3]) + STATIC
    room = limits(machine().gpu.compute_capability).shared_block if has_gpu() else needed
    if needed > room:
        return GROUP
    alone = 2 * blocks * CLUSTER.cluster <= sms() and (CLUSTERS.met() or not has_gpu())
    return replace(CLUSTER if alone else RING, passing=cache.nbytes < SMALL)


# ---- how long a part is


def parts_of(lengths: Sequence[int], chunk: int) -> int:
    """Parts of all sequences together."""
    return sum(ceil_div(length, chunk) for length in lengths)


def chunk_that_fits(lengths: Sequence[int], heads: int, places: int, step: int) -> int:
    """The shortest part, in whole steps, with which all blocks have a place at once.

    The longest sequence's whole length where there are more sequences and heads than places.
    """
    longest = ceil_div(max(lengths), step) * step
    chunk = ceil_div(heads * sum(lengths), places * step) * step
    while chunk < longest and heads * parts_of(lengths, chunk) > places:
        chunk += step
    return min(chunk, longest)


@functools.lru_cache(maxsize=256)
def chunk_for(lengths: tuple[int, ...], heads: int, places: int, step: int) -> int:
    """Keys of a part, so that the GPU is busy to the end.

    heads: blocks for each part. places: blocks that run at once. step: keys that a block takes at
    once. The model: a round lasts as long as a part's steps and what a block costs beside them;
    as many rounds as it takes until all blocks have had a place. The best of a few, and of equals
    the one with the fewest parts to join.
    """

    def time(chunk):
        rounds = ceil_div(heads * parts_of(lengths, chunk), places)
        return rounds * (ceil_div(chunk, step) + EXTRA), -chunk

    candidates = [
        chunk_that_fits(lengths, heads, rounds * places, step) for rounds in range(1, ROUNDS + 1)
    ]
    return min(candidates, key=time)


# ---- launches


class Workspace:
    """What blocks leave for the last one: kept between calls, and made larger where it must be."""

    def __init__(self):
        self.tensors = {}

    def get(self, device, rows: int, parts: int, dim: int) -> tuple:
        """(results, states, arrived) for so many queries of all heads, each in so many parts."""
        floats = rows * parts * (dim + 2)
        known = self.tensors.get(device)
        if known is None or known[0].numel() < floats or known[1].numel() < rows:
            memory = torch.empty(floats, device=device)
            arrived = torch.zeros(rows, dtype=torch.uint32, device=device)
            known = self.tensors[device] = memory, arrived
        memory, arrived = known
        results, states = memory[: rows * parts * dim], memory[rows * parts * dim :]
        return results, states, arrived


WORKSPACE = Workspace()


def attention(
    q, cache: Cache, *, form: Form | None = None, out=None, lse=None, chunk=None
) -> tuple:
    """(out, lse) of bfloat16 [batch, 1, heads, dim] against the cache.

    lse: float32 [batch, heads, 1], the logarithm of each query's sum of exponentials. out, lse: to
    write to, made unless given. form: that of `form_for` unless given. chunk: keys of a part, as
    `chunk_for` says unless given; a cluster's blocks have equal parts.
    Calls that run at the same time on several streams must not share this module's workspace.
    Raises ValueError where shapes or types do not fit.
    """
    batch, one, heads, dim = q.shape
    key_heads = cache.keys.shape[2]
    if q.dtype != torch.bfloat16 or one != 1 or not q.is_contiguous():
        raise ValueError("q must be bfloat16 [batch, 1, heads, dim], its numbers one after another")
    if batch != len(cache.lengths) or dim != cache.keys.shape[3] or heads % key_heads:
        raise ValueError(f"q {tuple(q.shape)} does not fit the cache {tuple(cache.keys.shape)}")
    if out is None:
        out = torch.empty_like(q)
    if lse is None:
        lse = torch.empty(batch, heads, 1, device=q.device)
    group = heads // key_heads
    form = form or form_for(cache, group)
    blocks = ceil_div(group, form.queries)  # that share a head of keys
    if form is SIMPLE:
        chunk = max(cache.lengths)
    elif chunk is None:
        step = TILE * form.warps
        chunk = chunk_for(cache.lengths, key_heads * blocks, sms() * form.blocks, step)
    parts = ceil_div(max(cache.lengths), chunk)
    pages = 0 if cache.table is None else cache.table.shape[1]
    told = Decode(heads, group, chunk, parts, pages, dim**-0.5 * math.log2(math.e))
    arrays = [out, lse, q, flat(cache.keys), flat(cache.values), cache.lengths_there, cache.table]
    last = [told, strides_of(cache.keys), strides_of(cache.values)]
    grid = parts, key_heads * blocks, batch
    if form.cluster:
        grid = form.cluster * blocks, key_heads, batch
        last.append(cache.length)
    elif form is not SIMPLE:
        arrays += WORKSPACE.get(q.device, batch * heads, parts, dim)
    launch = module(form.file, *form.flags(dim, cache.page)).attention
    launch[grid, 32 * form.warps, form.shared(dim), stream()](*arrays, *last)
    return out, lse


@dataclass(frozen=True)
class Rung:
    """run(q, cache, out=None, lse=None) -> (out, lse)."""

    run: Callable
    needs: Needs = AMPERE

    def able(self) -> bool:
        """Whether this machine can run it; the CPU runtime can run all."""
        return self.needs.met() or not has_gpu()


#: In the order of the ladder
DECODING = {
    "simple": Rung(functools.partial(attention, form=SIMPLE)),
    "split": Rung(functools.partial(attention, form=SPLIT)),
    "group": Rung(functools.partial(attention, form=GROUP)),
    "ring": Rung(functools.partial(attention, form=RING)),
    "cluster": Rung(functools.partial(attention, form=CLUSTER), CLUSTERS),
    "fastest": Rung(attention),
}
