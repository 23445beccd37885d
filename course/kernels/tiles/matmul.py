"""c = a b in Triton: with pointers, with tensor descriptors, and with programs that stay.

A descriptor says once what a matrix is; a block of it is then asked for by row and column, and on
Hopper and later the copy engine (TMA) brings it. Edges need no mask: outside is zero, or unwritten.
With pointers a matrix must have fewer than 2^31 elements: its offsets are int32.
"""

import functools

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course.kernels.tiles.softmax import in_order

GROUP = 8  # rows of tiles that are taken together


@triton.jit
def place(tile, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a tile, in tiles: GROUP rows of tiles are taken together, down first."""
    across = tl.cdiv(n, BN)
    first = tile // (GROUP * across) * GROUP
    height = min(tl.cdiv(m, BM) - first, GROUP)  # the last group may be lower
    inside = tile % (GROUP * across)
    return first + inside % height, inside // height


@triton.jit(do_not_specialize=["m"])
def matmul_pointers(
    c, a, b, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A tile of c a program; every address is computed, every edge masked."""
    tile_row, tile_column = place(tl.program_id(0), m, n, BM, BN, GROUP)
    row = tile_row * BM + tl.arange(0, BM)[:, None]
    column = tile_column * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        down = k0 + tl.arange(0, BK)[:, None]
        right = k0 + tl.arange(0, BK)[None, :]
        tile_a = tl.load(a + row * k + right, mask=(row < m) & (right < k), other=0.0)
        tile_b = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(tile_a, tile_b, total)
    inside = (row < m) & (column < n)
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["m", "n", "k"])
def matmul_descriptors(
    c, a, b, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The same with descriptors: neither addresses nor masks."""
    row, column = place(tl.program_id(0), m, n, BM, BN, GROUP)
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        tile_a = a.load([row * BM, k0])
        tile_b = b.load([k0, column * BN])
        total = tl.dot(tile_a, tile_b, total)
    c.store([row * BM, column * BN], total.to(c.dtype))


@triton.jit(do_not_specialize=["m", "n", "k"])
def matmul_persistent(
    c, a, b, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    HALVES: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """As many programs as fit; each takes one tile after the other.

    HALVES: write a tile in two halves, which needs half the shared memory.
    FLATTEN: pipeline both loops as one, so that the next tile's copies begin before this one ends.
    """
    tiles = tl.cdiv(m, BM) * tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        row, column = place(tile, m, n, BM, BN, GROUP)
        total = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, k, BK):
            tile_a = a.load([row * BM, k0])
            tile_b = b.load([k0, column * BN])
            total = tl.dot(tile_a, tile_b, total)
        if HALVES:
            pairs = tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1))
            left, right = tl.split(pairs)
            c.store([row * BM, column * BN], left.to(c.dtype))
            c.store([row * BM, column * BN + BN // 2], right.to(c.dtype))
        else:
            c.store([row * BM, column * BN], total.to(c.dtype))


@functools.lru_cache(maxsize=16)
def described(matrix: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """A matrix's descriptor for blocks of this size; made once, not at each launch."""
    return TensorDescriptor.from_tensor(matrix, [rows, columns])


def tiles_of(c: torch.Tensor, bm: int, bn: int) -> int:
    """How many tiles cover c."""
    rows, columns = c.shape
    return triton.cdiv(rows, bm) * triton.cdiv(columns, bn)


def sizes(a: torch.Tensor, b: torch.Tensor) -> tuple[int, int, int]:
    """(m, n, k) of a product a b."""
    m, k = a.shape
    return m, b.shape[1], k


def tile_options(
    bm: int,
    bn: int,
    bk: int,
    group: int,
    warps: int,
    stages: int,
) -> dict:
    """The options that every matmul here is launched with."""
    return {
        "BM": bm,
        "BN": bn,
        "BK": bk,
        "GROUP": group,
        "num_warps": warps,
        "num_stages": stages,
    }


def with_pointers(
    bm=128,
    bn=256,
    bk=64,
    *,
    warps=8,
    stages=3,
):
    """multiply(c, a, b) with `matmul_pointers`."""
    options = tile_options(bm, bn, bk, GROUP, warps, stages)

    def multiply(c, a, b):
        in_order(c=c, a=a, b=b)
        programs = tiles_of(c, bm, bn)
        launch = matmul_pointers[(programs,)]
        launch(c, a, b, *sizes(a, b), **options)

    return multiply


def with_descriptors(
    bm=128,
    bn=256,
    bk=64,
    *,
    warps=8,
    stages=3,
):
    """multiply(c, a, b) with `matmul_descriptors`; rows must begin at multiples of 16 bytes."""
    options = tile_options(bm, bn, bk, GROUP, warps, stages)

    def multiply(c, a, b):
        programs = tiles_of(c, bm, bn)
        launch = matmul_descriptors[(programs,)]
        launch(
            described(c, bm, bn),
            described(a, bm, bk),
            described(b, bk, bn),
            *sizes(a, b),
            **options,
        )

    return multiply


def persistent(
    bm=128,
    bn=256,
    bk=64,
    *,
    warps=8,
    stages=3,
    halves=True,
    flatten=True,
    group=GROUP,
):
    """multiply(c, a, b) with `matmul_persistent`, a program an SM."""
    options = tile_options(bm, bn, bk, group, warps, stages)
    written = bn // 2 if halves else bn

    def multiply(c, a, b):
        programs = min(sms(c), tiles_of(c, bm, bn))
        launch = matmul_persistent[(programs,)]
        launch(
            described(c, bm, written),
            described(a, bm, bk),
            described(b, bk, bn),
            *sizes(a, b),
            HALVES=halves,
            FLATTEN=flatten,
            **options,
        )

    return multiply


@functools.cache
def _sms_of(index: int) -> int:
    properties = torch.cuda.get_device_properties(index)
    return properties.multi_processor_count


def sms(matrix: torch.Tensor) -> int:
    """Multiprocessors of the GPU that a matrix lies on; 2 where there is none."""
    if not matrix.is_cuda:
        return 2
    return _sms_of(matrix.device.index or 0)
