"""The ladder's Triton kernel: one program computes a tile of c, the compiler does the rest."""

import triton
import triton.language as tl

from course.kernels.matmul.ladder import Multiply, sizes

GROUP = 8  # rows of tiles that are taken together


@triton.jit
def matmul(
    c,
    a,
    b,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    across = tl.cdiv(n, BN)
    first = tl.program_id(0) // (GROUP * across) * GROUP
    inside = tl.program_id(0) % (GROUP * across)
    height = min(tl.cdiv(m, BM) - first, GROUP)  # the last group may be lower
    row = (first + inside % height) * BM + tl.arange(0, BM)[:, None]
    column = inside // height * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, k, BK):
        down = k0 + tl.arange(0, BK)[:, None]
        right = k0 + tl.arange(0, BK)[None, :]
        tile_a = tl.load(a + row * k + right, mask=(row < m) & (right < k), other=0.0)
        tile_b = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(tile_a, tile_b, total, input_precision="ieee")
    inside_c = (row < m) & (column < n)
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=inside_c)


def rung(
    bm: int,
    bn: int,
    bk: int,
    *,
    warps: int,
    stages: int,
) -> Multiply:
    """multiply(c, a, b) with tiles of bm × bn in steps of bk. float32 is not rounded to TF32."""

    options = {
        "BM": bm,
        "BN": bn,
        "BK": bk,
        "GROUP": GROUP,
        "num_warps": warps,
        "num_stages": stages,
    }

    def multiply(c, a, b):
        m, n, k = sizes(a, b)
        tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn)
        launch = matmul[(tiles,)]
        launch(c, a, b, m, n, k, **options)

    return multiply
