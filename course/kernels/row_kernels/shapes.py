"""How rows are dealt to threads, blocks and clusters (what for: kernels/fast.cuh)."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ACCESS = 16  # bytes a thread reads or writes at once
WARP = 32
FLOAT = 4  # bytes
SM_SHARED = 228 << 10  # bytes of shared memory of an SM: compute capability 9.0 and 10.x
RESERVED = 1 << 10  # bytes of it that the driver takes for each block
BARRIERS = 8 << 10  # more than a kernel's barriers and partial results need
CLUSTERS = (1, 2, 4, 8, 16)  # blocks a cluster; 16 must be asked for
MOST_STAGES = 8


@dataclass(frozen=True)
class Shape:
    """One way to deal rows.

    columns: of a row. cluster: blocks that share a row. group: threads of a block that share a row.
    threads: of a block. blocks: of an SM at a time.
    stages: tiles in a block's ring in shared memory; 0 for none.
    item_bytes: of an element. inputs: arrays that are read together.
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

    @property
    def tile_rows(self) -> int:
        """Rows that a block works on at a time."""
        return self.threads // self.group

    @property
    def pack(self) -> int:
        """Elements of one access."""
        return ACCESS // self.item_bytes

    @property
    def ragged(self) -> bool:
        """Whether rows, or a block's parts of them, begin within an access."""
        return self.columns % (self.cluster * self.pack) != 0

    @property
    def even(self) -> bool:
        """Whether all threads of a row have as many values."""
        return self.columns % (self.cluster * self.group * self.pack) == 0

    @property
    def tile_bytes(self) -> int:
        """Bytes of one input's tile."""
        return self.tile_rows * _part(self.columns, self.cluster, self.pack) * self.item_bytes

    @property
    def persistent(self) -> bool:
        """Whether a block takes one tile after another: to fill a ring, or to add up columns."""
        return self.stages > 0 or self.inputs > 1

    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory a block: the ring; without one, room to add up columns."""
        if self.stages:
            return self.stages * self.inputs * self.tile_bytes
        return self.tile_bytes * FLOAT // self.item_bytes if self.inputs > 1 else 0

    def __str__(self):
        ring = f"ring of {self.stages}" if self.stages else "no ring"
        if self.twice:
            ring = "two reads"
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


#: What was fastest on an H200, by operation (`bench` tries them all). Rows of a few thousand values
#: are best left to many small blocks. Where a block must hold many columns' parameters or sums too,
#: registers are short: the row is read twice, or a ring keeps memory busy instead.
#: A Deal says columns, kept, threads, blocks.
DEALS = {
    "softmax": (
        Deal(4096, 8, 512, 4),
        Deal(16384, 16, 256, 6),
        Deal(131072, 32, 256, 4),
    ),
    "layer_norm": (
        Deal(1024, 8, 512, 4, twice=True, even=True),
        Deal(1024, 16, 128, 7),
        Deal(4096, 8, 512, 4, twice=True),
        Deal(8192, 32, 256, 2),
        Deal(16384, 16, 1024, 2, twice=True),
        Deal(65536, 32, 256, 1, ring=True),
        Deal(131072, 32, 512, 1, ring=True),
    ),
    "layer_norm_backward": (
        Deal(1024, 16, 256, 2),
        Deal(8192, 8, 512, 2),
        Deal(16384, 16, 128, 4),
        Deal(131072, 32, 256, 1, ring=True),
    ),
    "rms_norm": (
        Deal(1024, 8, 256, 6),
        Deal(4096, 8, 512, 4),
        Deal(8192, 16, 512, 2),
        Deal(16384, 16, 512, 3),
        Deal(65536, 16, 512, 3),
        Deal(131072, 32, 512, 1, ring=True),
    ),
    "rms_norm_backward": (
        Deal(1024, 4, 256, 6),
        Deal(4096, 8, 512, 2),
        Deal(16384, 8, 256, 4),
        Deal(131072, 32, 256, 1, ring=True),
    ),
    "cross_entropy": (
        Deal(8192, 32, 128, 9),
        Deal(16384, 32, 512, 1, ring=True),
        Deal(131072, 64, 256, 1, ring=True),
    ),
    "cross_entropy_and_gradient": (
        Deal(2048, 16, 128, 12),
        Deal(4096, 32, 512, 2),
        Deal(16384, 16, 512, 3),
        Deal(131072, 32, 256, 4),
    ),
    "cross_entropy_backward": (
        Deal(2048, 8, 256, 8),
        Deal(4096, 16, 1024, 1),
        Deal(16384, 16, 1024, 1),
        Deal(131072, 16, 512, 3),
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
LAST_RESORTS = Deal(1 << 18, 32, 512, 1), Deal(1 << 18, 64, 512, 1)  # right, if not fast


@functools.cache
def best_shape(
    operation: str,
    columns: int,
    item_bytes: int = 4,
    inputs: int = 1,
) -> Shape | None:
    """The shape that an operation of `DEALS` takes for rows of a length, or None."""
    for deal in _deals(operation, columns, item_bytes):
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
        )
        if shape and (shape.even or not deal.even):
            return shape
    return None


def _deals(operation: str, columns: int, item_bytes: int) -> Iterator[Deal]:
    """The deals of an operation, those first that suit the rows' class."""
    if item_bytes < FLOAT:
        yield from HALF_DEALS.get(operation, ())
    if columns * item_bytes % ACCESS:
        yield from RAGGED_DEALS.get(operation, ())
    yield from DEALS[operation]
    yield from LAST_RESORTS


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
) -> Shape | None:
    """The shape in which a thread keeps at most `kept` values of a row, or None if there is none.

    threads: of a block, at most. cluster: blocks that share a row; the fewest that will do, unless
    given. ring: whether tiles come through shared memory. twice: whether rows are read again, which
    only one block can do.
    """
    pack = ACCESS // item_bytes
    if cluster is None:
        cluster = _smallest_cluster(columns, pack, kept * threads)
    if not cluster or columns == 0:
        return None
    ragged = columns % (cluster * pack) != 0
    if ragged and (ring or twice):
        return None
    part = _part(columns, cluster, pack)
    kept_at_most = part + pack * ragged  # an access more, where a row begins within one
    if kept_at_most > kept * threads or (twice and cluster > 1):
        return None
    group = _up_to_warps(-(-kept_at_most // kept))
    rows = 1 if cluster > 1 else threads // group
    room = SM_SHARED // blocks - RESERVED - BARRIERS
    stages = min(MOST_STAGES, room // (inputs * rows * part * item_bytes)) if ring else 0
    if ring and stages < 2:
        return None
    return Shape(columns, cluster, group, rows * group, stages, blocks, item_bytes, inputs, twice)


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
