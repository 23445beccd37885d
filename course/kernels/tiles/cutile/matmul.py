"""c = a b in cuTile, NVIDIA's tile language: arrays, tiles, and nothing of threads.

Needs the package cuda-tile (`pip install 'cuda-course[tiles]'`); on Hopper at least 1.4.
"""

import cuda.tile as ct

GROUP = 8  # rows of tiles that are taken together


@ct.function
def place(tile, m, n, BM, BN, GROUP):
    """Row and column of a tile, in tiles: GROUP rows of tiles are taken together, down first."""
    across = ct.cdiv(n, BN)
    first = tile // (GROUP * across) * GROUP
    height = min(ct.cdiv(m, BM) - first, GROUP)
    inside = tile % (GROUP * across)
    return first + inside % height, inside // height


@ct.kernel
def matmul(
    c, a, b, BM: ct.Constant[int], BN: ct.Constant[int], BK: ct.Constant[int],
    GROUP: ct.Constant[int],
):  # fmt: skip
    """A tile of c a block; what hangs over an edge is zero when loaded, and not stored."""
    row, column = place(ct.bid(0), c.shape[0], c.shape[1], BM, BN, GROUP)
    total = ct.full((BM, BN), 0, ct.float32)
    for step in range(ct.cdiv(a.shape[1], BK)):
        tile_a = ct.load(a, (row, step), (BM, BK), padding_mode=ct.PaddingMode.ZERO)
        tile_b = ct.load(b, (step, column), (BK, BN), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(tile_a, tile_b, total)
    ct.store(c, (row, column), ct.astype(total, c.dtype))


@ct.kernel
def matmul_persistent(
    c, a, b, BM: ct.Constant[int], BN: ct.Constant[int], BK: ct.Constant[int],
    GROUP: ct.Constant[int],
):  # fmt: skip
    """As many blocks as fit; each takes one tile after the other."""
    tiles = ct.cdiv(c.shape[0], BM) * ct.cdiv(c.shape[1], BN)
    for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
        row, column = place(tile, c.shape[0], c.shape[1], BM, BN, GROUP)
        total = ct.full((BM, BN), 0, ct.float32)
        for step in range(ct.cdiv(a.shape[1], BK)):
            tile_a = ct.load(a, (row, step), (BM, BK), padding_mode=ct.PaddingMode.ZERO)
            tile_b = ct.load(b, (step, column), (BK, BN), padding_mode=ct.PaddingMode.ZERO)
            total = ct.mma(tile_a, tile_b, total)
        ct.store(c, (row, column), ct.astype(total, c.dtype))
