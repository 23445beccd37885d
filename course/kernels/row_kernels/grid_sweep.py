"""Other ways to deal the grid's rows, to be timed beside the one that is chosen."""

import math
from collections.abc import Iterator
from dataclasses import replace

from course.kernels.row_kernels.grid_shapes import GridShape
from course.kernels.row_kernels.operations import Operation
from course.kernels.row_kernels.shapes import (
    ACCESS,
    CLUSTERS,
    SMS,
    Layout,
    Shape,
    ShortDeal,
    Split,
    about,
    access_for,
    best_shape,
    shape_for,
    short_shape,
)
from utils.occupancy import ceil_div

SHORT, SHORTEST = 1024, 512  # columns
LONG_ENOUGH = 2048  # columns of rows that may be split
ROOM = 200 << 10  # bytes of shared memory
LONGEST = 16_384  # columns of a row that passes through shared memory
#: Accesses that a thread keeps, threads of a block, blocks of an SM
WHOLE_SHORT = ((1, 256, 8), (2, 256, 6), (4, 256, 4), (2, 128, 12), (4, 128, 8))
#: Values that a thread keeps, threads of a block, values of all its rows, blocks, stages, early
BY_COPIES = (
    (8, 256, 8, 6, 4, True),
    (8, 256, 16, 5, 4, True),
    (16, 256, 16, 4, 4, True),
    (32, 256, 32, 3, 4, True),
    (32, 256, 32, 3, 3, False),
    (16, 512, 16, 2, 3, True),
    (8, 512, 8, 4, 3, True),
    (8, 1024, 8, 2, 3, True),
)
BY_COPIES_BACKWARD = (
    (8, 256, 8, 4, 3, True),
    (16, 256, 16, 2, 3, True),
    (16, 256, 16, 3, 4, True),
    (32, 128, 32, 3, 3, True),
    (8, 512, 8, 2, 3, True),
    (8, 1024, 8, 1, 3, True),
)
#: Values that a lane keeps, those of all its rows of a tile, blocks of an SM
BY_THREADS = ((4, 8, 8), (8, 8, 8), (8, 16, 4))
#: Values that a thread keeps, threads of a block, blocks of an SM
LONG = ((16, 256, 6), (32, 256, 4), (16, 512, 3), (32, 512, 2))
WITH_RING = ((32, 512, 1), (32, 256, 2), (16, 512, 1), (16, 256, 3))


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


def others(operation: Operation, shape: GridShape, item_bytes: int) -> tuple[Shape | Split, ...]:
    """Shapes that could suit, without the one that is chosen."""
    usual = chosen(operation, shape, item_bytes)
    found = {}
    for each in Candidates(operation, shape, item_bytes, layout_of(shape, item_bytes)).all():
        if each and each != usual and holds(each):
            found[each] = None
    return tuple(found)


def chosen(operation: Operation, shape: GridShape, item_bytes: int) -> Shape | Split | None:
    """The shape that our function takes."""
    layout = layout_of(shape, item_bytes)
    inputs = operation.inputs
    rows = about(shape.rows)
    return best_shape(operation.deals, shape.columns, item_bytes, inputs, rows, layout)


def holds(shape: Shape | Split) -> bool:
    """Whether there is shared memory for it."""
    return isinstance(shape, Split) or shape.shared_bytes <= ROOM


class Candidates:
    """Shapes for one matrix."""

    def __init__(self, operation: Operation, shape: GridShape, item: int, layout: Layout):
        self.columns, self.rows = shape.columns, shape.rows
        self.inputs, self.item, self.layout = operation.inputs, item, layout
        self.access = access_for(shape.columns, item, layout)

    def all(self) -> Iterator[Shape | Split | None]:
        whole = self.layout.whole(self.columns, self.item)
        yield from self.split()
        if self.rows < SMS and self.columns >= SHORT:
            yield from self.spread()
        if self.columns <= LONGEST and (not whole or self.columns <= SHORT):
            yield from self.by_copies()
        if not whole and self.layout.stride and self.columns <= SHORTEST:
            yield from self.by_threads()
        if whole and self.columns <= SHORTEST:
            pack = ACCESS // self.item
            for accesses, threads, blocks in WHOLE_SHORT:
                yield self.direct(accesses * pack * self.inputs, threads, blocks)
        elif self.columns > (SHORTEST if whole else LONGEST // 4):
            for deal in LONG:
                yield self.direct(*deal)
        if whole and not self.layout.stride:
            for deal in WITH_RING:
                yield self.with_ring(*deal)

    def split(self) -> Iterator[Split]:
        if self.inputs == 1 or self.columns < LONG_ENOUGH:
            return
        access = self.layout.access(self.columns, self.item)
        for kept in (4, 8, 16):
            packs = kept * self.item // access
            if packs:
                yield Split(self.columns, access, packs, self.item)

    def by_copies(self) -> Iterator[Shape | None]:
        for deal in BY_COPIES if self.inputs == 1 else BY_COPIES_BACKWARD:
            short = ShortDeal(self.columns, *deal)
            yield short_shape(
                self.columns, self.item, self.inputs, short, self.layout, about(self.rows)
            )

    def by_threads(self) -> Iterator[Shape | None]:
        for kept, amount, blocks in BY_THREADS:
            deal = ShortDeal(SHORT, kept, 256, amount, blocks // self.inputs)
            yield short_shape(
                self.columns, self.item, self.inputs, deal, self.layout, about(self.rows)
            )

    def spread(self) -> Iterator[Shape | None]:
        pack = self.access // self.item
        for cluster in CLUSTERS:
            part = ceil_div(self.columns, cluster) + pack
            for threads in (512, 1024):
                kept = ceil_div(ceil_div(part, threads), pack) * pack
                blocks = max(1, min(ceil_div(self.rows * cluster, SMS), 2048 // threads))
                if kept <= 32 // self.inputs:
                    shape = self.direct(kept * self.inputs, threads, blocks * self.inputs, cluster)
                    yield shape and replace(shape, early=True)

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
