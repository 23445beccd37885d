"""How rows are dealt to threads, blocks and clusters (what for: kernels/fast.cuh)."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ACCESS = 16  # bytes a thread reads or writes at once, where rows begin at such places
WARP = 32
FLOAT = 4  # bytes
SM_SHARED = 228 << 10  # bytes of shared memory of an SM: compute capability 9.0 and 10.x
RESERVED = 1 << 10  # bytes of it that the driver takes for each block
BARRIERS = 8 << 10  # more than a kernel's barriers and partial results need
CLUSTERS = (1, 2, 4, 8, 16)  # blocks a cluster; 16 must be asked for
MOST_STAGES = 8
SMS = 132  # so many are kept busy, where rows are few
MANY = 1 << 30  # rows, unless somebody knows better


@dataclass(frozen=True)
class Shape:
    """One way to deal rows.

    columns: of a row. cluster: blocks that share a row. group: threads of a block that share a row.
    threads: of a block. blocks: of an SM at a time.
    stages: tiles in a block's ring in shared memory; 0 for none.
    item_bytes: of an element. inputs: arrays that are read together.
    access: bytes that a thread reads or writes at once. stride: elements from one row to the next,
    0 where rows have no gaps. passes: rows that a group takes of a tile that passes through shared
    memory (kernels/short.cuh); 0 for rows that do not.
    early: whether parameters are read before the rows, and stay in registers. apart: whether
    results have room of their own in shared memory. gather: blocks that add up columns as one
    cluster, or 1; there are no others then.
    twice: whether a row is read again instead of kept (kernels/two_reads.cuh).
    folder: where the kernels' text is, if it is not the course's own (`variants`).
    """

    columns: int
    cluster: int
    group: int
    threads: int
    stages: int
    blocks: int
    item_bytes: int = 4
    inputs: int = 1
    twice: bool = False
    folder: str = ""
    access: int = ACCESS
    stride: int = 0
    passes: int = 0
    early: bool = False
    apart: bool = False
    gather: int = 1

    @property
    def tile_rows(self) -> int:
        """Rows that a block works on at a time."""
        return self.threads // self.group * max(1, self.passes)

    @property
    def pack(self) -> int:
        """Elements of one access."""
        return self.access // self.item_bytes

    @property
    def macros(self) -> dict[str, int]:
        """What the kernels' text calls these numbers."""
        macros = {
            "COLUMNS": self.columns,
            "CLUSTER": self.cluster,
            "THREADS": self.threads,
            "GROUP": self.group,
            "STAGES": self.stages,
            "BLOCKS": self.blocks,
            "STRIDE": self.stride or self.columns,
            "ACCESS": self.access,
        }
        if self.passes:
            macros |= {"PASSES": self.passes, "APART": int(self.apart), "GATHER": self.gather}
        if self.passes or self.early:
            macros["EARLY"] = int(self.early)
        return macros

    @property
    def ragged(self) -> bool:
        """Whether rows, or a block's parts of them, begin within an access."""
        return not self.passes and self.columns % (self.cluster * self.pack) != 0

    @property
    def even(self) -> bool:
        """Whether all threads of a row have as many values."""
        return self.columns % (self.cluster * self.group * self.pack) == 0

    @property
    def tile_bytes(self) -> int:
        """Bytes of one input's tile."""
        if self.passes:
            pieces = self.tile_rows if self.stages and self.stride else 1
            return pieces * self._room(self.tile_rows // pieces * self.columns)
        return self.tile_rows * _part(self.columns, self.cluster, self.pack) * self.item_bytes

    @property
    def persistent(self) -> bool:
        """Whether a block takes one tile after another: to fill a ring, or to add up columns."""
        return self.stages > 0 or self.inputs > 1

    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory a block: the ring, or the tile, or room to add up
        columns.
        """
        if self.passes:
            ring = max(1, self.stages) * self.inputs * self.tile_bytes
            if self.apart:
                ring += self._room(self.tile_rows * self.columns)
            return max(ring, self._sums_bytes)
        if self.stages:
            return self.stages * self.inputs * self.tile_bytes
        return self.tile_bytes * FLOAT // self.item_bytes if self.inputs > 1 else 0

    def _room(self, elements: int) -> int:
        """Bytes in shared memory for a piece that bulk copies bring from anywhere, or threads."""
        size = elements * self.item_bytes
        return -(-size // ACCESS) * ACCESS + ACCESS if self.stages else size

    @property
    def _sums_bytes(self) -> int:
        """Bytes in which a block that passes rows through shared memory adds up columns."""
        if self.inputs == 1:
            return 0
        side_by_side = self.threads // max(WARP, self.group)
        if self.gather > 1:
            side_by_side += self.inputs
        return side_by_side * self.columns * FLOAT

    def __str__(self):
        ring = f"ring of {self.stages}" if self.stages else "no ring"
        if self.twice:
            ring = "two reads"
        if self.passes:
            ring = f"{self.passes} rows in shared memory"
            if self.stages:
                ring += f", {self.stages} tiles" + ", apart" * self.apart
            if self.gather > 1:
                ring += f", gathered from {self.gather}"
        if self.early:
            ring += ", parameters first"
        if self.access != ACCESS:
            ring += f", {self.access} bytes at a time"
        if self.stride:
            ring += f", rows {self.stride} apart"
        variant = f", {Path(self.folder).name}" if self.folder else ""
        return (
            f"cluster {self.cluster}, group {self.group}, {self.threads} threads, "
            f"{self.blocks} blocks, {ring}{variant}"
        )


@dataclass(frozen=True)
class Split:
    """A backward pass in two kernels, cut across the columns (kernels/split_norms.cu).

    access: bytes that a thread reads at once. packs: accesses of a row that a thread makes.
    """

    columns: int
    access: int
    packs: int
    item_bytes: int
    inputs: int = 2

    @property
    def pieces(self) -> int:
        """Of a row: a block's each."""
        return -(-self.columns // (SPLIT_THREADS * self.packs * self.access // self.item_bytes))

    def sum_groups(self, rows: int) -> int:
        """Groups of rows whose sums are added up side by side."""
        return max(1, min(rows, 2 * SPLIT_BLOCKS * SMS // self.pieces))

    def groups(self, rows: int) -> int:
        """Groups of rows, so that blocks fill the GPU: one where few rows are fast in any case."""
        if rows <= SPLIT_FEW:
            return 1
        return max(1, min(rows, SPLIT_BLOCKS * SMS // self.pieces))

    def __str__(self):
        return f"split, {self.packs} times {self.access} bytes a thread"


@dataclass(frozen=True)
class Deal:
    """What suits rows of at most so many columns: values kept by a thread, threads, blocks.

    The fields are `shape_for`'s. even: only for rows of which all threads get as many values.
    early: as in `Shape`.
    """

    columns: int
    kept: int
    threads: int
    blocks: int
    ring: bool = False
    twice: bool = False
    even: bool = False
    early: bool = False


@dataclass(frozen=True)
class ShortDeal:
    """What suits rows of at most so many columns, a tile of which passes through shared memory.

    kept: values of a row that a thread keeps, at most. threads: of a block. work: values that a
    thread has of all its rows of a tile. blocks: of an SM at a time. stages: tiles in the ring; 0
    where threads bring them. early: whether parameters stay in registers.
    """

    columns: int
    kept: int
    threads: int
    work: int
    blocks: int
    stages: int = 0
    early: bool = True


#: What was fastest on an H200, by operation (`bench` tries them all). Rows of a few thousand values
#: are best left to many small blocks. Where a block must hold many columns' parameters or sums too,
#: registers are short: the row is read twice, or a ring keeps memory busy instead.
#: A Deal says columns, kept, threads, blocks.
DEALS = {
    "softmax": (
        Deal(4096, 8, 512, 4),
        Deal(16384, 16, 256, 6),
        Deal(131072, 32, 256, 4),
        Deal(262144, 32, 512, 2),
    ),
    "layer_norm": (
        Deal(1024, 8, 512, 4, twice=True, even=True),
        Deal(1024, 16, 128, 7),
        Deal(4096, 8, 512, 4, twice=True, even=True),
        Deal(4096, 16, 256, 4),
        Deal(8192, 32, 256, 2),
        Deal(16384, 16, 1024, 2, twice=True),
        Deal(65536, 32, 256, 1, ring=True),
        Deal(262144, 32, 512, 1, ring=True),
    ),
    "layer_norm_backward": (
        Deal(1024, 16, 256, 2),
        Deal(8192, 8, 512, 2),
        Deal(16384, 16, 128, 4),
        Deal(131072, 32, 256, 1, ring=True),
        Deal(40960, 8, 512, 1),
        Deal(65536, 16, 256, 2),
        Deal(262144, 32, 512, 1, ring=True),
    ),
    "rms_norm": (
        Deal(1024, 8, 256, 6),
        Deal(4096, 8, 512, 4),
        Deal(8192, 16, 512, 2),
        Deal(16384, 16, 512, 3),
        Deal(65536, 16, 512, 3),
        Deal(262144, 32, 512, 1, ring=True),
    ),
    "rms_norm_backward": (
        Deal(1024, 4, 256, 6),
        Deal(4096, 8, 512, 2),
        Deal(16384, 8, 256, 4),
        Deal(131072, 32, 256, 1, ring=True),
        Deal(40960, 8, 512, 1),
        Deal(65536, 16, 256, 2),
        Deal(262144, 32, 512, 1, ring=True),
    ),
    "cross_entropy": (
        Deal(8192, 32, 128, 9),
        Deal(16384, 32, 512, 1, ring=True),
        Deal(262144, 64, 256, 1, ring=True),
    ),
    "cross_entropy_and_gradient": (
        Deal(2048, 16, 128, 12),
        Deal(4096, 32, 512, 2),
        Deal(16384, 16, 512, 3),
        Deal(131072, 32, 256, 4),
        Deal(262144, 32, 512, 2),
    ),
    "cross_entropy_backward": (
        Deal(2048, 8, 256, 8),
        Deal(4096, 16, 1024, 1),
        Deal(16384, 16, 1024, 1),
        Deal(131072, 16, 512, 3),
        Deal(262144, 32, 512, 2),
    ),
}
#: The same for elements of two bytes: a thread takes as many bytes, which are twice the values.
HALF_DEALS = {
    "softmax": (
        Deal(1024, 32, 128, 9),
        Deal(8192, 32, 256, 4),
        Deal(131072, 16, 512, 3),
    ),
    "layer_norm": (
        Deal(1024, 16, 128, 12),
        Deal(8192, 32, 256, 4, even=True),
        Deal(2048, 16, 128, 12),
        Deal(4096, 16, 256, 6),
        Deal(8192, 32, 256, 4),
        Deal(12288, 32, 512, 1, ring=True),
    ),
    "layer_norm_backward": (
        Deal(1024, 16, 256, 2),
        Deal(8192, 8, 512, 2),
        Deal(12288, 16, 512, 1, ring=True),
        Deal(16384, 16, 128, 4),
        Deal(131072, 32, 256, 1, ring=True),
        Deal(262144, 32, 512, 1, ring=True),
    ),
    "rms_norm": (
        Deal(1024, 16, 256, 6),
        Deal(8192, 32, 256, 4, even=True),
        Deal(2048, 16, 128, 12),
        Deal(4096, 16, 256, 6),
        Deal(8192, 32, 256, 4),
        Deal(32768, 32, 1024, 2, twice=True),
    ),
    "rms_norm_backward": (
        Deal(1024, 4, 256, 6),
        Deal(4096, 8, 512, 2),
        Deal(8192, 8, 256, 4),
        Deal(16384, 32, 512, 1, ring=True),
        Deal(131072, 32, 256, 1, ring=True),
        Deal(262144, 32, 512, 1, ring=True),
    ),
    "cross_entropy_and_gradient": (
        Deal(1016, 32, 256, 4),
        Deal(131072, 16, 512, 3),
    ),
}
#: Short ones of them, if they have no gaps: arithmetic is what they wait for, and parameters that
#: stay in registers are unpacked once.
HALF_SHORT = {
    "layer_norm": (
        Deal(128, 16, 256, 3, ring=True),
        Deal(1016, 32, 256, 2, ring=True),
    ),
    "rms_norm": (Deal(512, 16, 256, 3, ring=True),),
}
#: And for rows that begin anywhere within an access: few large blocks have few such ends.
RAGGED_DEALS = {
    "softmax": (Deal(131072, 32, 256, 4),),
    "layer_norm": (
        Deal(16384, 32, 256, 4),
        Deal(49152, 24, 512, 2),
        Deal(131072, 32, 512, 2),
    ),
    "rms_norm": (
        Deal(16384, 32, 256, 4),
        Deal(49152, 24, 512, 2),
        Deal(131072, 32, 256, 4),
    ),
    "cross_entropy": (
        Deal(24576, 32, 256, 4),
        Deal(49152, 24, 512, 2),
        Deal(131072, 32, 256, 4),
    ),
    "cross_entropy_and_gradient": (Deal(131072, 32, 256, 4),),
    "cross_entropy_backward": (Deal(131072, 32, 256, 4),),
}
#: Of those that are read and written at unlike places, an element at a time
NARROW_ACCESSES = Deal(131072, 8, 1024, 2, early=True)
#: Of rows that are no whole accesses, those that pass through shared memory many at a time: where
#: threads bring them, and where bulk copies do
BY_THREADS = ShortDeal(1024, 8, 256, 16, 4)
BY_THREADS_BACKWARD = ShortDeal(256, 8, 256, 8, 4)  # longer ones lack registers
BY_COPIES = (
    ShortDeal(16, 16, 256, 8, 6, 4),
    ShortDeal(1024, 32, 256, 32, 3, 4),
    ShortDeal(16384, 32, 512, 32, 2, 3),
)
#: The same of norms, which keep parameters of each column, too; and of RMS norm's two-byte elements
BY_COPIES_NORM = (
    ShortDeal(16, 16, 256, 16, 5, 4),
    ShortDeal(1024, 16, 256, 16, 4, 4),
    ShortDeal(8192, 8, 1024, 8, 2, 3),
)
BY_COPIES_RMS = (
    BY_COPIES_NORM[0],
    ShortDeal(1024, 32, 256, 32, 3, 4),
    *BY_COPIES_NORM[2:],
)
BY_COPIES_BACKWARD = (
    ShortDeal(256, 8, 256, 8, 4, 3),
    ShortDeal(2048, 16, 256, 16, 2, 3),
    ShortDeal(8192, 8, 1024, 8, 1, 3),
)
#: Longer rows, if they are many: a block has one at a time, and the next ones are on their way
LONG_HALVES = ShortDeal(24576, 32, 1024, 32, 1, 3)
LONG_NORM_HALVES = ShortDeal(16384, 16, 1024, 16, 1, 4), LONG_HALVES
LONG_NORM_FLOATS = ShortDeal(16384, 32, 512, 32, 1, 3, early=False)
#: And of rows with gaps, each of which is a copy of its own: more of them on their way
BY_COPIES_APART = (
    BY_COPIES_BACKWARD[0],
    ShortDeal(512, 16, 128, 16, 4, 4),
    *BY_COPIES_BACKWARD[1:],
)
PIECE_BYTES = 512  # rows with gaps from which on each is worth a bulk copy of its own
#: Backward passes so small that one cluster adds up columns before a second kernel would begin
GATHERED_BYTES, GATHERED_COLUMNS, GATHERED_KEPT, GATHERED_PASSES = 1 << 20, 256, 8, 4
#: Of rows so narrow that what is kept of a row counts: operations that may forget it
NARROW, FORGETFUL = 8, ("layer_norm", "rms_norm", "cross_entropy")
#: Rows that are few and short: each is a block's own
ALONE_ROWS, ALONE_COLUMNS = 2 * SMS, 1024
#: Rows are split where they fit L2 together, or nothing else holds them
SPLIT_COLUMNS, SPLIT_L2_BYTES = 16384, 24 << 20
SPLIT_RAGGED, SPLIT_FLOATS = 8192, 65536
SPLIT_THREADS, SPLIT_VALUES, SPLIT_BLOCKS, SPLIT_FEW = 256, 4, 4, 32
#: Of short rows of whole accesses: so few lanes a row that each has two accesses, or one of each
#: input
WHOLE_SHORT = Deal(512, 8, 128, 12)
WHOLE_SHORT_BACKWARD = Deal(256, 4, 256, 4)
#: Where a power of two lanes would leave so many idle: fewer, whose rows wait in a ring
BUSY = 0.75
FEWER_LANES = Deal(512, 16, 256, 3, ring=True), Deal(512, 32, 256, 2, ring=True)
#: Few rows are spread: columns from which on, of a block at least, threads of a block at most
SPREAD_COLUMNS, SPREAD_PART, SPREAD_THREADS, SPREAD_BLOCKS = 1024, 2048, 1024, 2
SPREAD_ROWS = 8 * SMS  # so many fill the GPU in any case
LAST_RESORTS_BACKWARD = (  # right, if not fast
    Deal(1 << 18, 32, 512, 2),
    Deal(1 << 18, 32, 512, 1),
    Deal(1 << 18, 64, 512, 1),
)
LAST_RESORTS = (Deal(49152, 24, 512, 2), Deal(1 << 18, 16, 512, 3), *LAST_RESORTS_BACKWARD)


@dataclass(frozen=True)
class Layout:
    """Where rows lie.

    stride: elements from one row to the next, 0 where rows have no gaps.
    aligned: bytes, up to 16, of which every matrix's address is a multiple.
    alike: whether the matrices that are read and written begin alike within an access.
    inputs_aligned: as `aligned`, of what is read; 0 where what is written begins within an access.
    """

    stride: int = 0
    aligned: int = ACCESS
    alike: bool = True
    inputs_aligned: int = ACCESS

    def access(self, columns: int, item_bytes: int) -> int:
        """Bytes of the widest access at which every row begins and ends."""
        return _widest(self.aligned, columns * item_bytes, self.stride * item_bytes)

    def whole(self, columns: int, item_bytes: int) -> bool:
        """Whether rows are whole accesses of the usual width."""
        return self.access(columns, item_bytes) == ACCESS

    def rows_alike(self, columns: int, item_bytes: int) -> bool:
        """Whether a row is read from, and written to, the same place within an access."""
        apart = self.stride - columns if self.stride else 0
        return self.alike and apart * item_bytes % ACCESS == 0


USUAL = Layout()


def about(rows: int) -> int:
    """How many rows, as far as their deal asks: a power of two where they are not few."""
    return rows if rows < SPREAD_ROWS else 1 << rows.bit_length() - 1


def at_most(rows: int) -> int:
    """How many rows there may be if `about` says so many."""
    return rows if rows < about(SPREAD_ROWS) else 2 * rows


@functools.cache
def best_shape(
    operation: str,
    columns: int,
    item_bytes: int = 4,
    inputs: int = 1,
    rows: int = MANY,
    layout: Layout = USUAL,
) -> Shape | Split | None:
    """The shape that an operation of `DEALS` takes for rows of a length, or None.

    rows: how many, as `about` says it: where few, they need to be spread over the GPU.
    """
    if not columns:
        return None
    item = item_bytes
    if inputs > 1:
        shape = _gathered(columns, item, inputs, rows, layout) or _split(
            columns, item, rows, layout
        )
        if shape:
            return shape
    if not layout.whole(columns, item):
        shape = _alone(operation, columns, item, inputs, rows, layout) or _through_shared(
            operation, columns, item, inputs, rows, layout
        )
        if shape:
            return shape
    elif columns <= NARROW and operation in FORGETFUL:
        return _through_shared(operation, columns, item, inputs, rows, layout)
    shape = _alone(operation, columns, item, inputs, rows, layout)
    shape = shape or _dealt(operation, columns, item, inputs, layout)
    return shape and _spread(shape, rows, layout)


def _dealt(operation, columns, item_bytes, inputs, layout) -> Shape | None:
    """The first deal that fits rows of a length."""
    access = access_for(columns, item_bytes, layout)
    for deal in _deals(operation, columns, item_bytes, inputs, access):
        if columns > deal.columns:
            continue
        shape = shape_for(
            columns,
            item_bytes,
            inputs=inputs,
            kept=deal.kept,
            threads=deal.threads,
            blocks=deal.blocks,
            ring=deal.ring,
            twice=deal.twice,
            access=access,
            stride=layout.stride,
        )
        if shape and (shape.even or not deal.even):
            return replace(shape, early=deal.early) if deal.early else shape
    return None


def access_for(columns: int, item_bytes: int, layout: Layout) -> int:
    """Bytes of an access of rows that stay in registers.

    Rows that begin and end anywhere are read in wide ones all the same, but for their ends, if they
    are written to the same places within an access.
    """
    ragged = columns * item_bytes % ACCESS != 0
    if ragged and layout.rows_alike(columns, item_bytes):
        return ACCESS
    return layout.access(columns, item_bytes)


def _deals(
    operation: str,
    columns: int,
    item_bytes: int,
    inputs: int,
    access: int,
) -> Iterator[Deal]:
    """The deals of an operation, those first that suit the rows' class."""
    whole_short = WHOLE_SHORT_BACKWARD if inputs > 1 else WHOLE_SHORT
    whole_short = replace(whole_short, kept=whole_short.kept * FLOAT // item_bytes)
    if columns <= whole_short.columns and _busy(columns, item_bytes, whole_short.kept) < BUSY:
        yield max(FEWER_LANES, key=lambda deal: _busy(columns, item_bytes, deal.kept))
    if item_bytes < FLOAT:
        yield from HALF_SHORT.get(operation, ())
    yield whole_short
    if item_bytes < FLOAT:
        yield from HALF_DEALS.get(operation, ())
    if columns * item_bytes % ACCESS:
        if access < ACCESS and operation in ("layer_norm", "rms_norm"):
            yield NARROW_ACCESSES
        yield from RAGGED_DEALS.get(operation, ())
    yield from DEALS[operation]
    yield from LAST_RESORTS_BACKWARD if inputs > 1 else LAST_RESORTS


def _busy(columns, item_bytes, kept) -> float:
    """The share of their accesses in which a row's lanes, a power of two of them, have work."""
    packs = -(-columns * item_bytes // ACCESS)
    lanes = _up_to_power(-(-columns // kept))
    return packs / (lanes * -(-packs // lanes))


def _gathered(columns, item_bytes, inputs, rows, layout) -> Shape | None:
    """A backward pass of so little that one cluster of blocks does it all."""
    if rows * columns * item_bytes * inputs > GATHERED_BYTES or columns > GATHERED_COLUMNS:
        return None
    blocks = max(each for each in CLUSTERS if each <= max(2, rows))
    own = -(-at_most(rows) // blocks)
    group = _group_for(columns, GATHERED_KEPT)
    at_once = min(own, max(1, SPREAD_THREADS // 2 // group))
    deal = ShortDeal(columns, GATHERED_KEPT, _up_to_warps(at_once * group), 0, 1, 1)
    shape = short_shape(columns, item_bytes, inputs, deal, layout)
    if not shape:
        return None
    passes = -(-own // (shape.threads // group))  # a block has one tile
    if passes > GATHERED_PASSES:
        return None
    return _fitting(replace(shape, gather=blocks, passes=passes))


def _split(columns, item_bytes, rows, layout) -> Split | None:
    """A backward pass in two kernels, if the rows are for that."""
    few = columns > SPLIT_COLUMNS and rows * columns * item_bytes * 2 <= SPLIT_L2_BYTES
    if not few and (columns <= SPLIT_RAGGED or _held(columns, item_bytes, layout)):
        return None
    access = layout.access(columns, item_bytes)
    return Split(columns, access, max(1, SPLIT_VALUES * item_bytes // access), item_bytes)


def _held(columns, item_bytes, layout) -> bool:
    """Whether a cluster holds rows of a backward pass well: in rings, or floats in registers."""
    if not layout.whole(columns, item_bytes):
        return False
    if item_bytes == FLOAT and columns <= SPLIT_FLOATS:
        return True
    rings = (
        shape_for(columns, item_bytes, inputs=2, threads=threads, stride=layout.stride)
        for threads in (256, 512)
    )
    return any(rings)


def _alone(operation, columns, item_bytes, inputs, rows, layout) -> Shape | None:
    """A block a row, an access a thread, for rows so few that only how soon it ends counts."""
    if rows > ALONE_ROWS or columns > ALONE_COLUMNS or inputs > 1:
        return None
    access = access_for(columns, item_bytes, layout)
    pack = access // item_bytes
    threads = _up_to_warps(-(-columns // pack) + 1)
    shape = shape_for(
        columns,
        item_bytes,
        kept=pack,
        threads=min(SPREAD_THREADS, threads),
        cluster=1,
        ring=False,
        access=access,
        stride=layout.stride,
    )
    if not shape:
        return None
    group = max(WARP, shape.group)
    return replace(shape, group=group, threads=group, early="norm" in operation)


def _through_shared(
    operation: str,
    columns: int,
    item_bytes: int,
    inputs: int,
    rows: int,
    layout: Layout,
) -> Shape | None:
    """Rows that are no whole accesses and pass through shared memory."""
    if layout.stride and columns * item_bytes < PIECE_BYTES:
        deals = (BY_THREADS_BACKWARD if inputs > 1 else BY_THREADS,)
    elif inputs > 1 and item_bytes == FLOAT and (layout.stride or not layout.alike):
        deals = BY_COPIES_BACKWARD[:1]  # each access of longer ones may well be a float
    elif inputs > 1:
        deals = BY_COPIES_APART if layout.stride else BY_COPIES_BACKWARD
    elif operation == "rms_norm" and item_bytes < FLOAT:
        deals = BY_COPIES_RMS
    elif "norm" in operation:
        deals = BY_COPIES_NORM
    elif layout.stride and item_bytes == FLOAT and columns > SPREAD_PART:
        return None  # each access is a float in any case
    else:
        deals = BY_COPIES
    if inputs == 1 and rows > ALONE_ROWS:
        deals += _long_by_copies(operation, item_bytes)
    for deal in deals:
        if inputs > 1 and rows <= ALONE_ROWS:
            deal = replace(deal, kept=min(deal.kept, GATHERED_KEPT))
        if columns <= deal.columns:
            deal = replace(deal, early=deal.early and "norm" in operation)
            shape = short_shape(columns, item_bytes, inputs, deal, layout, rows)
            if shape:
                return shape
    return None


def _long_by_copies(operation: str, item_bytes: int) -> tuple[ShortDeal, ...]:
    """What suits rows that are longer than those of `BY_COPIES` and `BY_COPIES_NORM`."""
    if "norm" not in operation:
        return (LONG_HALVES,) if item_bytes < FLOAT else ()
    return LONG_NORM_HALVES if item_bytes < FLOAT else (LONG_NORM_FLOATS,)


def short_shape(
    columns: int,
    item_bytes: int,
    inputs: int,
    deal: ShortDeal,
    layout: Layout = USUAL,
    rows: int = MANY,
) -> Shape | None:
    """The shape in which threads keep at most so many values of a row that passes through shared
    memory, or None.
    """
    access = layout.inputs_aligned
    if deal.stages and not access:
        access = layout.aligned  # what is read and written begins alike
    if layout.stride:
        access = _widest(access, columns * item_bytes, layout.stride * item_bytes)
    group = _group_for(columns, deal.kept)
    if not access or group > deal.threads:
        return None
    per_row = -(-columns // group)
    at_once = deal.threads // group
    passes = max(1, deal.work // per_row)
    passes = min(passes, -(-rows // (SMS * at_once)))  # no SM without a tile for its sake
    shape = Shape(
        columns=columns,
        cluster=1,
        group=group,
        threads=at_once * group,
        stages=deal.stages,
        blocks=deal.blocks,
        item_bytes=item_bytes,
        inputs=inputs,
        access=access,
        stride=layout.stride,
        passes=passes,
        early=deal.early,
        apart=bool(deal.stages and (layout.stride or not layout.alike)),
    )
    return _fitting(shape)


def _fitting(shape: Shape) -> Shape | None:
    """With as many blocks of an SM, and stages, as there is shared memory for."""
    least = min(shape.stages, 2)
    while shape.blocks * (shape.shared_bytes + RESERVED) > SM_SHARED:
        if shape.stages > least:
            shape = replace(shape, stages=shape.stages - 1)
        elif shape.blocks > 1:
            shape = replace(shape, blocks=shape.blocks - 1)
        else:
            return None
    return shape


def _group_for(columns: int, kept: int) -> int:
    """Threads of which each keeps at most so many values: a part of a warp, or whole ones."""
    lanes = -(-columns // kept)
    return _up_to_power(lanes) if lanes <= WARP else _up_to_warps(lanes)


def _spread(shape: Shape, rows: int, layout: Layout) -> Shape:
    """A shape for rows too few to fill the GPU: more blocks a row, a few values a thread."""
    blocks = -(-rows // shape.tile_rows) * shape.cluster
    if blocks >= SMS or shape.columns < SPREAD_COLUMNS:
        return shape
    cluster = shape.cluster
    while (
        cluster < CLUSTERS[-1]
        and 2 * cluster * rows <= SMS
        and shape.columns // (2 * cluster) >= SPREAD_PART
    ):
        cluster *= 2
    most = SPREAD_THREADS // shape.inputs
    part = _part(shape.columns, cluster, shape.pack) + shape.pack
    kept = -(-part // most)
    kept = -(-kept // shape.pack) * shape.pack
    spread = shape_for(
        shape.columns,
        shape.item_bytes,
        inputs=shape.inputs,
        kept=kept,
        threads=max(WARP, min(most, _up_to_warps(-(-part // kept)))),
        cluster=cluster,
        blocks=SPREAD_BLOCKS if rows * cluster > SMS else 1,
        ring=False,
        access=shape.access,
        stride=shape.stride,
    )
    return spread or shape


def shape_for(
    columns: int,
    item_bytes: int = 4,
    *,
    inputs: int = 1,
    kept: int = 32,
    threads: int = 512,
    blocks: int = 1,
    cluster: int | None = None,
    ring: bool = True,
    twice: bool = False,
    access: int = ACCESS,
    stride: int = 0,
) -> Shape | None:
    """The shape in which a thread keeps at most `kept` values of a row, or None if there is none.

    threads: of a block, at most. cluster: blocks that share a row; the fewest that will do, unless
    given. ring: whether tiles come through shared memory. twice: whether rows are read again, which
    only one block can do. access, stride: as in `Shape`.
    """
    pack = access // item_bytes
    kept = max(kept, pack)
    if cluster is None:
        cluster = _smallest_cluster(columns, pack, kept * threads)
    if not cluster or columns == 0:
        return None
    ragged = columns % (cluster * pack) != 0
    unusual = access != ACCESS or stride
    if (ragged or unusual) and (ring or twice):
        return None
    part = _part(columns, cluster, pack)
    kept_at_most = part + pack * ragged  # an access more, where a row begins within one
    if kept_at_most > kept * threads or (twice and cluster > 1):
        return None
    group = _up_to_warps(-(-kept_at_most // kept))
    if group == WARP and not ragged and not twice:
        group = _up_to_power(-(-kept_at_most // kept))
    rows = 1 if cluster > 1 else threads // group
    room = SM_SHARED // blocks - RESERVED - BARRIERS
    stages = min(MOST_STAGES, room // (inputs * rows * part * item_bytes)) if ring else 0
    if ring and stages < 2:
        return None
    return Shape(
        columns=columns,
        cluster=cluster,
        group=group,
        threads=rows * group,
        stages=stages,
        blocks=blocks,
        item_bytes=item_bytes,
        inputs=inputs,
        twice=twice,
        access=access,
        stride=stride,
    )


def _smallest_cluster(columns: int, pack: int, capacity: int) -> int | None:
    """Blocks a row needs: of equal parts of whole accesses, if it can be cut into such."""
    for cluster in CLUSTERS:
        if columns % (cluster * pack) == 0 and columns // cluster <= capacity:
            return cluster
    for cluster in CLUSTERS:
        if _part(columns, cluster, pack) + pack <= capacity:
            return cluster
    return None


def _part(columns: int, cluster: int, pack: int) -> int:
    """Columns of a row that a block of a cluster has: whole accesses where rows are ragged."""
    equal = -(-columns // cluster)
    return equal if columns % (cluster * pack) == 0 else -(-equal // pack) * pack


def _up_to_warps(threads: int) -> int:
    """The next multiple of a warp."""
    return -(-threads // WARP) * WARP


def _up_to_power(count: int) -> int:
    """The next power of two."""
    return 1 << max(0, count - 1).bit_length()


def _widest(*multiples: int) -> int:
    """Bytes of the widest access that divides all of these numbers."""
    return math.gcd(ACCESS, *multiples)
