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
        return macros | {"PASSES": self.passes} if self.passes else macros

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
            return self.tile_rows * self.columns * self.item_bytes
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
        if self.stages or self.passes:
            return max(1, self.stages) * self.inputs * self.tile_bytes
        return self.tile_bytes * FLOAT // self.item_bytes if self.inputs > 1 else 0

    def __str__(self):
        ring = f"ring of {self.stages}" if self.stages else "no ring"
        if self.twice:
            ring = "two reads"
        if self.passes:
            ring = f"{self.passes} rows in shared memory"
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
class Deal:
    """What suits rows of at most so many columns: values kept by a thread, threads, blocks.

    The fields are `shape_for`'s. even: only for rows of which all threads get as many values.
    """

    columns: int
    kept: int
    threads: int
    blocks: int
    ring: bool = False
    twice: bool = False
    even: bool = False


@dataclass(frozen=True)
class ShortDeal:
    """What suits short rows of at most so many columns, a tile of which passes shared memory.

    kept: values of a row that a lane keeps, at most. threads: of a block. work: values that a
    thread has of all its rows of a tile. blocks: of an SM at a time.
    """

    columns: int
    kept: int
    threads: int
    work: int
    blocks: int


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
        Deal(4096, 8, 512, 4, twice=True),
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
        Deal(65536, 16, 256, 2),
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
        Deal(65536, 16, 256, 2),
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
        Deal(8192, 32, 256, 4),
    ),
    "rms_norm": (
        Deal(1024, 16, 256, 6),
        Deal(8192, 32, 256, 4),
        Deal(32768, 32, 1024, 2, twice=True),
    ),
    "cross_entropy_and_gradient": (Deal(131072, 16, 512, 3),),
}
#: And for rows that begin anywhere within an access: few large blocks have few such ends.
RAGGED_DEALS = {
    "softmax": (Deal(131072, 32, 256, 4),),
    "layer_norm": (
        Deal(16384, 32, 256, 4),
        Deal(131072, 32, 512, 2),
    ),
    "rms_norm": (Deal(131072, 32, 256, 4),),
    "cross_entropy": (Deal(131072, 32, 256, 4),),
    "cross_entropy_and_gradient": (Deal(131072, 32, 256, 4),),
    "cross_entropy_backward": (Deal(131072, 32, 256, 4),),
}
#: Of rows that are no whole accesses, those that pass shared memory many at a time
SHORT_DEAL = ShortDeal(1024, 8, 256, 16, 4)
SHORT_DEAL_BACKWARD = ShortDeal(256, 8, 256, 8, 3)  # longer ones lack registers
#: Of short rows of whole accesses: so few lanes a row that each has two accesses, or one of each
#: input
WHOLE_SHORT = Deal(512, 8, 128, 12)
WHOLE_SHORT_BACKWARD = Deal(256, 4, 256, 4)
#: Few rows are spread: columns from which on, of a block at least, threads of a block at most
SPREAD_COLUMNS, SPREAD_PART, SPREAD_THREADS = 1024, 2048, 1024
SPREAD_ROWS = 8 * SMS  # so many fill the GPU in any case
LAST_RESORTS = Deal(1 << 18, 32, 512, 1), Deal(1 << 18, 64, 512, 1)  # right, if not fast


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


@functools.cache
def best_shape(
    operation: str,
    columns: int,
    item_bytes: int = 4,
    inputs: int = 1,
    rows: int = MANY,
    layout: Layout = USUAL,
) -> Shape | None:
    """The shape that an operation of `DEALS` takes for rows of a length, or None.

    rows: how many, as `about` says it: where few, they need to be spread over the GPU.
    """
    if not columns:
        return None
    if not layout.whole(columns, item_bytes):
        shape = _short(columns, item_bytes, inputs, rows, layout)
        if shape:
            return shape
    shape = _dealt(operation, columns, item_bytes, inputs, layout)
    return shape and _spread(shape, rows, layout)


def _dealt(operation, columns, item_bytes, inputs, layout) -> Shape | None:
    """The first deal that fits rows of a length."""
    access = access_for(columns, item_bytes, layout)
    for deal in _deals(operation, columns, item_bytes, inputs):
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
            return shape
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
) -> Iterator[Deal]:
    """The deals of an operation, those first that suit the rows' class."""
    whole_short = WHOLE_SHORT_BACKWARD if inputs > 1 else WHOLE_SHORT
    yield replace(whole_short, kept=whole_short.kept * FLOAT // item_bytes)
    if item_bytes < FLOAT:
        yield from HALF_DEALS.get(operation, ())
    if columns * item_bytes % ACCESS:
        yield from RAGGED_DEALS.get(operation, ())
    yield from DEALS[operation]
    yield from LAST_RESORTS


def _short(
    columns: int,
    item_bytes: int,
    inputs: int,
    rows: int,
    layout: Layout,
) -> Shape | None:
    """Rows that are no whole accesses and so short that many of them pass shared memory at once."""
    access = layout.inputs_aligned
    if layout.stride:
        access = _widest(access, columns * item_bytes, layout.stride * item_bytes)
    deal = SHORT_DEAL_BACKWARD if inputs > 1 else SHORT_DEAL
    if not access or columns > deal.columns:
        return None
    shape = short_shape(columns, item_bytes, inputs, deal, access, layout.stride)
    at_once = shape.threads // shape.group
    passes = min(shape.passes, -(-rows // (SMS * at_once)))  # no SM without a tile for its sake
    return replace(shape, passes=passes)


def short_shape(
    columns: int,
    item_bytes: int,
    inputs: int,
    deal: ShortDeal,
    access: int = ACCESS,
    stride: int = 0,
) -> Shape:
    """The shape in which lanes keep at most so many values of a row that passes shared memory."""
    group = min(WARP, _up_to_power(-(-columns // deal.kept)))
    per_row = -(-columns // group)
    passes = max(1, deal.work // per_row)
    tile = deal.threads // group * passes * columns * item_bytes * inputs
    fitting = SM_SHARED // (tile + RESERVED)
    return Shape(
        columns=columns,
        cluster=1,
        group=group,
        threads=deal.threads,
        stages=0,
        blocks=max(1, min(deal.blocks, fitting)),
        item_bytes=item_bytes,
        inputs=inputs,
        access=access,
        stride=stride,
        passes=passes,
    )


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
