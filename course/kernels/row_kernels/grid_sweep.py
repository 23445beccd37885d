"""Other ways to deal the grid's rows, to be timed beside the one that is chosen."""

import math
from collections.abc import Iterator

from course.kernels.row_kernels.grid_shapes import GridShape
from course.kernels.row_kernels.operations import Operation
from course.kernels.row_kernels.shapes import (
    ACCESS,
    CLUSTERS,
    SMS,
    Layout,
    Shape,
    ShortDeal,
    about,
    access_for,
    best_shape,
    shape_for,
    short_shape,
)
from utils.occupancy import ceil_div

SHORT, SHORTEST = 1024, 512  # columns
ROOM = 200 << 10  # bytes of shared memory
#: Accesses that a thread keeps, threads of a block, blocks of an SM
WHOLE_SHORT = ((1, 256, 8), (2, 256, 6), (4, 256, 4), (2, 128, 12))
#: Values that a lane keeps, those of all its rows of a tile, blocks of an SM
THROUGH_SHARED = ((2, 8, 8), (4, 8, 8), (8, 8, 8), (8, 16, 4), (16, 16, 4))
#: Values that a thread keeps, threads of a block, blocks of an SM
NARROW = ((8, 256, 6), (16, 256, 5), (32, 256, 3))
LONG = ((16, 256, 6), (32, 256, 4), (16, 512, 3), (32, 512, 2))
WITH_RING = ((32, 512, 1), (32, 256, 1), (16, 512, 1))


def layout_of(shape: GridShape, item_bytes: int) -> Layout:
    """Where the shape's rows lie."""
    before = math.gcd(ACCESS, shape.before * item_bytes)
    gap = shape.gap if shape.rows > 1 else 0
    return Layout(
        stride=shape.columns + gap if gap else 0,
        aligned=before,
        alike=before == ACCESS,
        inputs_aligned=before,
    )


def others(operation: Operation, shape: GridShape, item_bytes: int) -> tuple[Shape, ...]:
    """Shapes that could suit, without the one that is chosen."""
    usual = chosen(operation, shape, item_bytes)
    found = {}
    for each in Candidates(operation, shape, item_bytes, layout_of(shape, item_bytes)).all():
        if each and each != usual and each.shared_bytes <= ROOM:
            found[each] = None
    return tuple(found)


def chosen(operation: Operation, shape: GridShape, item_bytes: int) -> Shape | None:
    """The shape that our function takes."""
    layout = layout_of(shape, item_bytes)
    inputs = operation.inputs
    rows = about(shape.rows)
    return best_shape(operation.deals, shape.columns, item_bytes, inputs, rows, layout)


class Candidates:
    """Shapes for one matrix."""

    def __init__(self, operation: Operation, shape: GridShape, item: int, layout: Layout):
        self.columns, self.rows = shape.columns, shape.rows
        self.inputs, self.item, self.layout = operation.inputs, item, layout
        self.access = access_for(shape.columns, item, layout)

    def all(self) -> Iterator[Shape | None]:
        whole = self.layout.whole(self.columns, self.item)
        if self.rows < SMS and self.columns >= SHORT:
            yield from self.spread()
        elif whole and self.columns <= SHORTEST:
            pack = ACCESS // self.item
            for accesses, threads, blocks in WHOLE_SHORT:
                yield self.direct(accesses * pack * self.inputs, threads, blocks)
            if self.columns <= 64:
                yield from self.through_shared(THROUGH_SHARED[1:3])
        elif not whole and self.columns <= SHORT:
            yield from self.through_shared(THROUGH_SHARED)
            if self.columns > 100:
                yield from self.narrow()
        else:
            for deal in LONG:
                yield self.direct(*deal)
            if whole and not self.layout.stride:
                for deal in WITH_RING:
                    yield self.with_ring(*deal)
            if not whole and self.access == ACCESS:
                yield from self.narrow()

    def through_shared(self, deals) -> Iterator[Shape]:
        access = self.layout.inputs_aligned
        if self.layout.stride:
            access = math.gcd(access, self.columns * self.item, self.layout.stride * self.item)
        for kept, amount, blocks in deals:
            deal = ShortDeal(SHORT, kept, 256, amount, blocks // self.inputs)
            yield short_shape(
                self.columns, self.item, self.inputs, deal, access, self.layout.stride
            )

    def narrow(self) -> Iterator[Shape | None]:
        self.access = self.layout.access(self.columns, self.item)
        for deal in NARROW:
            yield self.direct(*deal)

    def spread(self) -> Iterator[Shape | None]:
        pack = self.access // self.item
        for cluster in CLUSTERS:
            part = ceil_div(self.columns, cluster) + pack
            for threads in (512, 1024):
                kept = ceil_div(ceil_div(part, threads), pack) * pack
                if kept <= 16 // self.inputs:
                    yield self.direct(kept * self.inputs, threads, self.inputs, cluster)

    def direct(self, kept, threads, blocks, cluster=None) -> Shape | None:
        return shape_for(
            self.columns,
            self.item,
            inputs=self.inputs,
            kept=kept // self.inputs,
            threads=threads,
            blocks=max(1, blocks // self.inputs),
            cluster=cluster,
            ring=False,
            access=self.access,
            stride=self.layout.stride,
        )

    def with_ring(self, kept, threads, blocks) -> Shape | None:
        return shape_for(
            self.columns, self.item, inputs=self.inputs, kept=kept, threads=threads, blocks=blocks
        )
