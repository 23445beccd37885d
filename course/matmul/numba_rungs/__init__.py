"""The ladder's kernels in Numba, each the twin of one in CUDA C."""

from course.matmul.numba_rungs.tile import tile
from course.matmul.numba_rungs.tile_1d import tile_1d
from course.matmul.numba_rungs.tile_2d import tile_2d
from course.matmul.numba_rungs.unsigned import unsigned

__all__ = ["tile", "tile_1d", "tile_2d", "unsigned"]
