"""cuTile's products, ready to be called as the ladder calls them."""

import cuda.tile as ct
import torch

from course.kernels.matmul.ladder import Multiply, blocks, sizes
from course.kernels.tiles.cutile import matmul
from utils import machine


def with_cutile(
    BM: int,
    BN: int,
    BK: int,
    persistent: bool = False,
    **hints: int,
) -> Multiply:
    """A launcher of the product in tiles of BM × BN, in steps of BK.

    persistent: one block an SM, each takes one tile after the other. hints: those of `ct.kernel`,
    such as num_ctas.
    """
    plain = matmul.matmul_persistent if persistent else matmul.matmul
    kernel = plain.replace_hints(**hints)

    def multiply(c, a, b):
        m, n, _ = sizes(a, b)
        tiles = blocks(m, BM) * blocks(n, BN)
        grid = min(tiles, machine().sms) if persistent else tiles
        stream = torch.cuda.current_stream()
        ct.launch(stream, (grid,), kernel, (c, a, b, BM, BN, BK, matmul.GROUP))

    return multiply
