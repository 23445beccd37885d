"""How rows are dealt: every shape must be one that the kernels and the hardware take."""

import itertools

import pytest

from course.kernels.row_kernels.choosing import LANES, share
from course.kernels.row_kernels.shapes import (
    ACCESS,
    DEALS,
    RESERVED,
    SM_SHARED,
    SPLIT_THREADS,
    WARP,
    Layout,
    Split,
    about,
    best_shape,
    shape_for,
)

LENGTHS = [4, 32, 100, 768, 1024, 4096, 5120, 16384, 50304, 65536, 128256, 131072, 262144]
RAGGED = [1, 3, 101, 1023, 8191, 50257, 128_255, 262_143]


#: (elements that a thread keeps, threads of a block, blocks of an SM)
BLOCKS = [(32, 512, 1), (16, 256, 3), (8, 1024, 2)]


@pytest.mark.parametrize("ring", [True, False])
@pytest.mark.parametrize("kept, threads, blocks", BLOCKS)
def test_a_shape_holds_its_row(kept, threads, blocks, ring):
    """Of all rows that are dealt at all; the longest are not."""
    dealt = 0
    for columns, item_bytes, inputs in itertools.product(LENGTHS + RAGGED, (2, 4), (1, 2)):
        shape = shape_for(
            columns, item_bytes, inputs=inputs, kept=kept, threads=threads, blocks=blocks, ring=ring
        )
        if shape is None:
            continue
        dealt += 1
        part = shape.tile_bytes // shape.tile_rows // item_bytes
        assert part * (shape.cluster - 1) < columns <= part * shape.cluster, shape
        assert part * item_bytes % ACCESS == 0, shape
        assert part + shape.ragged * shape.pack <= kept * shape.group, shape
        a_part = shape.group < WARP and WARP % shape.group == 0
        assert (a_part or shape.group % WARP == 0) and shape.threads % shape.group == 0, shape
        assert shape.threads <= threads, shape
        assert shape.cluster == 1 or shape.tile_rows == 1, shape
        assert shape.stages >= 2 if ring else shape.stages == 0, shape
        assert (shape.shared_bytes + RESERVED) * blocks <= SM_SHARED, shape
    assert dealt >= len(LENGTHS)


@pytest.mark.parametrize("operation", DEALS)
def test_every_operation_has_a_shape(operation):
    inputs = 2 if operation.endswith("norm_backward") else 1
    for columns, item_bytes in itertools.product(LENGTHS + RAGGED, (2, 4)):
        shape = best_shape(operation, columns, item_bytes, inputs)
        assert (shape.columns, shape.inputs) == (columns, inputs)


@pytest.mark.parametrize("columns", [0, 10_000_000])
def test_lengths_that_the_fast_kernels_do_not_take(columns):
    assert shape_for(columns) is None
    assert best_shape("softmax", columns) is None


@pytest.mark.parametrize("how", ["ring", "twice"])
@pytest.mark.parametrize("columns", RAGGED)
def test_ragged_rows_come_neither_by_bulk_copies_nor_twice(columns, how):
    assert shape_for(columns, cluster=1, kept=1 << 18, ring=False) is not None
    assert shape_for(columns, ring=how == "ring", twice=how == "twice") is None


@pytest.mark.parametrize("layout", [Layout(), Layout(0, 2, False, 2), Layout(9001, 16)], ids=str)
def test_what_passes_shared_memory_fits_and_what_is_split_holds_the_row(layout):
    """Of few rows and of many, that lie side by side, begin within an access, or lie apart."""
    kinds = set()
    for columns, item, rows in itertools.product(LENGTHS + RAGGED, (2, 4), (1, 300, 1 << 20)):
        for operation in ("softmax", "layer_norm", "rms_norm_backward"):
            inputs = 2 if operation.endswith("backward") else 1
            if layout.stride and layout.stride < columns or layout.aligned < item:
                continue
            shape = best_shape(operation, columns, item, inputs, rows, layout)
            kinds.add(type(shape))
            if isinstance(shape, Split):
                kept = shape.packs * shape.access // item
                assert shape.pieces * SPLIT_THREADS * kept >= columns
                assert 1 <= shape.groups(rows) <= rows and columns * item % shape.access == 0
            elif shape.passes:
                assert (shape.shared_bytes + RESERVED) * shape.blocks <= SM_SHARED, shape
                assert shape.threads % shape.group == 0 and shape.threads % WARP == 0, shape
                assert shape.stages != 1 or shape.gather > 1, shape
                assert shape.apart == (shape.stages > 0 and layout != Layout()), shape
    assert layout.stride or Split in kinds


def test_the_model_of_the_chapter_agrees_with_what_softmax_takes():
    """As the chapter Fusion says, of rows of whole accesses."""
    matrices = [(1 << 25 - power, 1 << power) for power in range(5, 15)]
    matrices += [(64, 1024), (64, 16_384), (1, 1024), (667, 4096)]
    shares = []
    for rows, columns in matrices:
        shape = best_shape("softmax", columns, rows=about(rows))
        shares.append(share(rows, columns, min(LANES[-1], shape.cluster * shape.group)))
    assert min(shares) > 0.9, shares
    assert shares.count(1) > 0.7 * len(shares), shares
