"""Ring attention: a sequence shared out over ranks, each with a device of its own.

Queries stay where they are; keys and values come round, a block in each turn, and what a rank has
found in its turns is merged by the logarithms of the sums. While a rank works on one block, the
next one is on its way. On NVLink every rank reaches every other: a block is fetched straight from
its owner, in the order in which it would walk round a ring.

Sources: Liu et al., Ring Attention (2023); of shares that make causal work even: Brandon et al.,
Striped Attention (2023), and the zigzag order of ring-flash-attention (Zhu, 2024).
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

from course.kernels.attention.classic import KERNELS
from course.kernels.attention.rungs import RUNGS
from course.kernels.many_gpus import communicator as comm
from utils import cuda_c, has_gpu
from utils.occupancy import ceil_div
from utils.tools import yours

THREADS = 256  # of a block that merges
BUFFERS = 2  # for blocks that come: one is used while the next arrives
AHEAD = 2  # runs that are queued before the one of which a timeline is made
SCRATCH = 1024  # bytes of a communicator for sums, of which there are none here


# ---- who does what in which turn


def shares(length: int, ranks: int, zigzag: bool) -> list[torch.Tensor]:
    """The rows of the sequence that each rank has.

    One block each, in order; or zigzag, of twice as many blocks rank r the r-th and the r-th from
    the end, so that causal work is the same for all. ValueError where blocks would differ in size.
    """
    blocks = 2 * ranks if zigzag else ranks
    if length % blocks:
        raise ValueError(f"{length} rows cannot be shared out in {blocks} equal blocks")
    rows = torch.arange(length).chunk(blocks)
    if not zigzag:
        return list(rows)
    return [torch.cat([rows[rank], rows[-1 - rank]]) for rank in range(ranks)]


#: Kinds of turns: of the work of a full block, how much each is
KINDS = {"full": 1.0, "diagonal": 0.5, "half of keys": 0.5, "half of queries": 0.5, "skipped": 0.0}


@dataclass(frozen=True)
class Turn:
    """What a rank does in a turn: source: whose keys it takes; kind: one of KINDS.

    "diagonal" is causal; "half of keys" takes the first half of them, and "half of queries" the
    last half.
    """

    source: int
    kind: str

    def cut(self, rows: int) -> tuple[slice, slice]:
        """(which queries, which keys) of shares of so many rows."""
        half = rows // 2
        queries = slice(half if self.kind == "half of queries" else 0, rows)
        keys = slice(0, half if self.kind == "half of keys" else rows)
        return queries, keys


def turn_of(rank: int, number: int, ranks: int, causal: bool, zigzag: bool) -> Turn:
    """A rank's turn of this number."""
    source = (rank - number) % ranks
    if not causal:
        return Turn(source, "full")
    if source == rank:
        return Turn(source, "diagonal")  # in zigzag order, too: the rows of a share are in order
    if zigzag:  # the second block of an earlier rank lies behind all queries, of a later one both
        return Turn(source, "half of keys" if source < rank else "half of queries")
    return Turn(source, "full" if source < rank else "skipped")


def steps(ranks: int, causal: bool = False, zigzag: bool = False) -> list[list[Turn]]:
    """For each turn, what each rank does: [turn][rank]."""
    return [
        [turn_of(rank, number, ranks, causal, zigzag) for rank in range(ranks)]
        for number in range(ranks)
    ]


# ---- what was found in all turns


@yours.cache
def kernels(dim: int):
    """kernels/ring.cu, compiled for heads of this size."""
    return cuda_c.load(KERNELS / "ring.cu", flags=(f"-DDIM={dim}",))


def merge(out, lse, parts, part_lse) -> None:
    """out and lse of all turns, from what was found in each.

    out: bfloat16 [batch, queries, heads, dim], lse: float32 [batch, heads, queries]; parts and
    part_lse: the same with the turns before, contiguous. An lse of -inf: nothing was found there.
    """
    turns, batch, queries, heads, dim = parts.shape
    blocks = ceil_div(batch * queries * heads * 32, THREADS)
    sizes = turns, batch, queries, heads
    kernels(dim).merge[blocks, THREADS](out, lse, parts, part_lse, *sizes)


# ---- a rank


@dataclass(frozen=True)
class Span:
    """What ran in a turn, and from when to when: milliseconds since the run began.

    what: "work", "copy" (of the keys and values for this turn) or "merge".
    """

    what: str
    turn: int
    begin: float
    end: float


def hidden(spans: list[Span]) -> float:
    """The share of the copies' time in which work was done beside them; 1 where nothing came."""
    copies = [span for span in spans if span.what == "copy"]
    work = [span for span in spans if span.what == "work"]
    both = sum(max(0.0, min(a.end, b.end) - max(a.begin, b.begin)) for a in copies for b in work)
    total = sum(span.end - span.begin for span in copies)
    return both / total if total else 1.0


def mark(stream):
    """An event that says when the work so far on a stream was done."""
    event = torch.cuda.Event(enable_timing=True)
    event.record(stream or torch.cuda.current_stream())
    return event


def fastest() -> Callable:
    """The rung that a rank takes: Hopper's fastest, else the one for any GPU with tensor cores."""
    return RUNGS["stay" if has_gpu() and RUNGS["stay"].able() else "mma"].run


class Rank:
    """One rank's share of an attention: `run()` -> (out, lse) of its queries.

    q, k, v: bfloat16 [batch, rows, heads, dim], its share; of all ranks the same shape. attend: as
    a rung's run. It takes room in the communicator's memory, from where the others fetch its keys
    and values: they may run once all ranks have been made.
    """

    def __init__(
        self,
        communicator: comm.Communicator,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *,
        causal: bool = False,
        zigzag: bool = False,
        attend: Callable | None = None,
    ):
        self._communicator = communicator
        self._attend = attend or fastest()
        self._copies = torch.cuda.Stream() if has_gpu() else None
        self._marks = None  # a list while `timeline` watches
        self._own = torch.stack([k, v])
        self._arriving = [torch.empty_like(self._own) for _ in range(BUFFERS)]
        self._published = communicator.allocate(self._own.nbytes)  # at the same place on each rank
        copy(communicator.address(self._published), self._own.data_ptr(), self._own.nbytes)
        wait()  # from now on the others may fetch it
        batch, rows, heads, _ = q.shape
        ranks = communicator.size
        self._parts = q.new_empty(ranks, *q.shape)
        self._part_lse = torch.full((ranks, batch, heads, rows), -torch.inf, device=q.device)
        self.out = torch.empty_like(q)
        self.lse = torch.empty(batch, heads, rows, device=q.device)
        self.turns = [turns[communicator.rank] for turns in steps(ranks, causal, zigzag)]
        self._jobs = [self._job(number, q) for number in range(ranks)]

    def _job(self, number, q):
        """What a turn's kernel is given, views made once; None where the turn is skipped."""
        turn = self.turns[number]
        if turn.kind == "skipped":
            return None
        queries, keys = turn.cut(q.shape[1])
        block = self._arriving[(number - 1) % BUFFERS] if number else self._own
        k, v = (each[:, keys] for each in block)
        own_lse = self._part_lse[number][..., queries]
        return {
            "q": q[:, queries],
            "k": k,
            "v": v,
            "causal": turn.kind == "diagonal",
            "out": self._parts[number][:, queries],
            "lse": own_lse.contiguous(),  # a copy where it is half of the rows
            "own_lse": own_lse,
        }

    def run(self, overlap: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
        """Queue the work on torch's current stream; (out, lse), each time the same tensors.

        overlap: whether blocks come beside the work, or in turn with it.
        """
        for number, job in enumerate(self._jobs):
            if number + 1 < len(self.turns):
                self._fetch(number + 1, overlap)
            if job:
                with self._watched("work", number):
                    self._work(**job)
            if self._copies:
                torch.cuda.current_stream().wait_stream(self._copies)
        with self._watched("merge", len(self.turns) - 1):
            merge(self.out, self.lse, self._parts, self._part_lse)
        return self.out, self.lse

    def timeline(self, overlap: bool = True) -> list[Span]:
        """What ran when in one `run` of several that were queued at once; GPU only.

        By events on both streams. The run before keeps the GPU busy until all of this one is
        queued: what is shown is the GPU's time, and none that Python takes.
        """
        for _ in range(AHEAD):
            self.run(overlap)
        self._marks = []
        begin = mark(None)
        self.run(overlap)
        wait()
        marks, self._marks = self._marks, None
        return [
            Span(what, turn, begin.elapsed_time(first), begin.elapsed_time(last))
            for what, turn, first, last in marks
        ]

    @contextlib.contextmanager
    def _watched(self, what, turn, stream=None):
        """Around what is queued on a stream: marks before and after it, if somebody watches."""
        first = mark(stream) if self._marks is not None else None
        yield
        if first:
            self._marks.append((what, turn, first, mark(stream)))

    def fetch(self) -> None:
        """Queue what `run` copies, and no work."""
        for number in range(1, len(self.turns)):
            self._fetch(number, False)

    def _fetch(self, number, overlap):
        """Begin to copy what a turn needs."""
        turn = self.turns[number]
        if turn.kind == "skipped":
            return
        stream = self._copies if overlap else None
        if stream:  # whoever used the buffer before is done first
            stream.wait_stream(torch.cuda.current_stream())
        into = self._arriving[(number - 1) % BUFFERS]
        source = self._communicator.address(self._published, turn.source)
        with self._watched("copy", number, stream):
            copy(into.data_ptr(), source, into.nbytes, stream)

    def _work(self, q, k, v, causal, out, lse, own_lse):
        self._attend(q, k, v, causal, out=out, lse=lse)
        if lse.data_ptr() != own_lse.data_ptr():
            own_lse.copy_(lse)


def copy(to: int, source: int, bytes: int, stream=None) -> None:
    """Begin a copy between two addresses, of any devices, by a copy engine."""
    if stream is None and has_gpu():
        stream = torch.cuda.current_stream()
    handle = stream.cuda_stream if stream else None
    if not comm.library().comm_copy(to, source, bytes, handle):
        raise comm.CommunicatorError(comm.library().comm_error().decode())


def wait() -> None:
    """Return when all that was queued is done."""
    if has_gpu():
        torch.cuda.synchronize()


def heap_for(keys: torch.Tensor) -> int:
    """Bytes of a communicator's memory for a share of such keys, and of as many values."""
    return 2 * keys.nbytes + comm.ALIGNMENT


# ---- all ranks in one process


def ring(
    q,
    k,
    v,
    causal: bool = False,
    *,
    ranks: int = 2,
    zigzag: bool = True,
    attend: Callable | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) of bfloat16 [batch, length, heads, dim], shared out over ranks in one process.

    The processor plays as many devices as CUDA_CPU_DEVICES says, each rank's memory on its own;
    where there are fewer, or one GPU, all have it on one: right, and no use for speed. zigzag: of
    causal attention. ValueError where the length cannot be shared out, or differs from the keys'.
    """
    if q.shape[1] != k.shape[1]:
        raise ValueError(f"there must be as many keys as queries, not {k.shape[1]}")
    zigzag = zigzag and causal
    rows = shares(q.shape[1], ranks, zigzag)
    mine = [[x[:, own].contiguous() for x in (q, k, v)] for own in rows]
    communicators = devices(ranks, heap_for(mine[0][1]))
    how = {"causal": causal, "zigzag": zigzag, "attend": attend}
    try:
        pairs = zip(communicators, mine, strict=True)
        all_ranks = [Rank(communicator, *share, **how) for communicator, share in pairs]
        out = torch.empty_like(q)
        lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], device=q.device)
        for own, rank in zip(rows, all_ranks, strict=True):
            out[:, own], lse[..., own] = rank.run()
        wait()
        return out, lse
    finally:
        for communicator in communicators:
            communicator.close()


def devices(ranks: int, heap: int) -> list[comm.Communicator]:
    """A communicator for each rank in one process, on devices of their own if there are enough."""
    if not has_gpu():
        try:
            return comm.apart(ranks, heap, SCRATCH)
        except comm.CannotReach:
            pass
    return comm.together(ranks, heap, SCRATCH)
