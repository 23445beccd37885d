"""How rows are dealt: every shape must be one that the kernels and the hardware take."""

import pytest

from course.kernels.row_kernels.shapes import (
    ACCESS,
    DEALS,
    RESERVED,
    SM_SHARED,
    WARP,
    best_shape,
    shape_for,
)

LENGTHS = [4, 32, 100, 768, 1024, 4096, 5120, 16384, 50304, 65536, 128256, 131072, 262144]


@pytest.mark.parametrize("ring", [True, False])
@pytest.mark.parametrize("item_bytes", [2, 4])
@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("kept, threads, blocks", [(32, 512, 1), (16, 256, 3), (8, 1024, 2)])
@pytest.mark.parametrize("columns", LENGTHS)
def test_a_shape_holds_its_row(columns, kept, threads, blocks, inputs, item_bytes, ring):
    shape = shape_for(
        columns, item_bytes, inputs=inputs, kept=kept, threads=threads, blocks=blocks, ring=ring
    )
    if shape is None:
        return
    part = columns // shape.cluster
    assert part * shape.cluster == columns
    assert part * item_bytes % ACCESS == 0
    assert part <= kept * shape.group
    assert shape.group % WARP == 0 and shape.threads % shape.group == 0
    assert shape.threads <= threads
    assert shape.cluster == 1 or shape.tile_rows == 1
    assert shape.stages >= 2 if ring else shape.stages == 0
    assert (shape.shared_bytes + RESERVED) * blocks <= SM_SHARED


ROWS_OF_WHOLE_ACCESSES = [
    (columns, item_bytes)
    for columns in LENGTHS
    for item_bytes in (2, 4)
    if columns * item_bytes % ACCESS == 0
]


@pytest.mark.parametrize("columns, item_bytes", ROWS_OF_WHOLE_ACCESSES)
@pytest.mark.parametrize("operation", DEALS)
def test_every_operation_has_a_shape(operation, columns, item_bytes):
    inputs = 2 if operation.endswith("norm_backward") else 1
    shape = best_shape(operation, columns, item_bytes, inputs)
    assert shape.columns == columns and shape.inputs == inputs


@pytest.mark.parametrize("columns", [0, 1, 1023, 50257, 10_000_000])
def test_lengths_that_the_fast_kernels_do_not_take(columns):
    assert shape_for(columns) is None
    assert best_shape("softmax", columns) is None
