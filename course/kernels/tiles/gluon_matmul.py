"""c = a b in Gluon: the tile language one floor below Triton, for Hopper.

What Triton's compiler decides is written out here: layouts, the ring of tiles in shared memory,
barriers, which warps copy and which multiply. Two groups of four warps multiply 64 rows of a tile
each; a single warp asks the copy engine for what they need next.
"""

import functools

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

GROUP = 8  # rows of tiles that are taken together
BM = 128
BN = 256
BK = 64
STAGES = 4
PARTS = 2  # in which a tile is written: fewer need more shared memory


@gluon.jit
def place(tile, m, n, BM: gl.constexpr, BN: gl.constexpr, GROUP: gl.constexpr):
    """Row and column of a tile, in tiles."""
    across = gl.cdiv(n, BN)
    first = tile // (GROUP * across) * GROUP
    height = min(gl.cdiv(m, BM) - first, GROUP)
    inside = tile % (GROUP * across)
    return first + inside % height, inside // height


@gluon.jit
def produce(c, a, b, out, a_ring, b_ring, full, empty, GROUP: gl.constexpr):
    """One warp: ask for the tiles of every step, as soon as a slot of the ring is empty."""
    BK: gl.constexpr = a.block_type.shape[1]
    BM: gl.constexpr = 2 * c.block_type.shape[0]
    BN: gl.constexpr = b.block_type.shape[1]
    STAGES: gl.constexpr = b_ring.type.shape[0]
    m, k = a.shape[0], a.shape[1]
    n = b.shape[1]
    step = 0
    tiles = gl.cdiv(m, BM) * gl.cdiv(n, BN)
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = place(tile, m, n, BM, BN, GROUP)
        for k0 in range(0, k, BK):
            slot = step % STAGES
            mbarrier.wait(empty.index(slot), (step // STAGES & 1) ^ 1)
            bar = full.index(slot)
            mbarrier.expect(bar, 2 * a.block_type.nbytes + b.block_type.nbytes)
            upper, lower = a_ring.index(2 * slot), a_ring.index(2 * slot + 1)
            tma.async_copy_global_to_shared(a, [row * BM, k0], bar, upper)
            tma.async_copy_global_to_shared(a, [row * BM + BM // 2, k0], bar, lower)
            tma.async_copy_global_to_shared(b, [k0, column * BN], bar, b_ring.index(slot))
            step += 1


@gluon.jit
def put(c, staged, total, row, column, PARTS: gl.constexpr):
    """Write a block of c in 1, 2 or 4 parts, all through the same shared memory."""
    WIDE: gl.constexpr = c.block_type.shape[1]
    if PARTS == 1:
        tma.store_wait(0)  # the part before has left
        staged.store(total.to(c.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(c, [row, column], staged)
    else:
        left, right = halve(total)
        put(c, staged, left, row, column, PARTS // 2)
        put(c, staged, right, row, column + PARTS // 2 * WIDE, PARTS // 2)


@gluon.jit
def halve(block):
    """The left and the right half of a block's columns; each thread has some of both."""
    ROWS: gl.constexpr = block.shape[0]
    COLUMNS: gl.constexpr = block.shape[1]
    pairs = gl.permute(gl.reshape(block, (ROWS, 2, COLUMNS // 2)), (0, 2, 1))
    return gl.split(pairs)


@gluon.jit
def consume(c, a, b, out, a_ring, b_ring, full, empty, GROUP: gl.constexpr, HALF: gl.constexpr):
    """Four warps: multiply half the rows of each tile, and write them."""
    BK: gl.constexpr = a.block_type.shape[1]
    BM: gl.constexpr = 2 * c.block_type.shape[0]
    BN: gl.constexpr = b.block_type.shape[1]
    STAGES: gl.constexpr = b_ring.type.shape[0]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    m, k = a.shape[0], a.shape[1]
    n = b.shape[1]
    step = 0
    tiles = gl.cdiv(m, BM) * gl.cdiv(n, BN)
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = place(tile, m, n, BM, BN, GROUP)
        total = gl.zeros((BM // 2, BN), gl.float32, layout)
        for k0 in range(0, k, BK):
            slot = step % STAGES
            mbarrier.wait(full.index(slot), step // STAGES & 1)
            mine = a_ring.index(2 * slot + HALF)
            total = warpgroup_mma(mine, b_ring.index(slot), total, is_async=True)
            total = warpgroup_mma_wait(1, deps=[total])  # all but the newest are done
            before = (step + STAGES - 1) % STAGES
            mbarrier.arrive(empty.index(before), count=1, pred=k0 > 0)
            step += 1
        total = warpgroup_mma_wait(0, deps=[total])
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1)
        first = row * BM + HALF * (BM // 2)
        put(c, out.index(HALF), total, first, column * BN, BN // c.block_type.shape[1])
    tma.store_wait(0)


@gluon.jit
def consume_top(c, a, b, out, a_ring, b_ring, full, empty, GROUP: gl.constexpr):
    """The upper half of each tile."""
    consume(c, a, b, out, a_ring, b_ring, full, empty, GROUP, 0)


@gluon.jit
def consume_bottom(c, a, b, out, a_ring, b_ring, full, empty, GROUP: gl.constexpr):
    """The lower half of each tile."""
    consume(c, a, b, out, a_ring, b_ring, full, empty, GROUP, 1)


@gluon.jit
def matmul_gluon(c, a, b, STAGES: gl.constexpr, GROUP: gl.constexpr, REGISTERS: gl.constexpr):
    """c = a b: descriptors of c (64 rows a block), a (64 rows) and b."""
    a_ring = gl.allocate_shared_memory(a.dtype, [2 * STAGES] + a.block_type.shape, a.layout)
    b_ring = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_type.shape, b.layout)
    out = gl.allocate_shared_memory(c.dtype, [2] + c.block_type.shape, c.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=2)  # both halves must be done with it
    shared = (c, a, b, out, a_ring, b_ring, full, empty, GROUP)
    gl.warp_specialize(
        [(consume_top, shared), (consume_bottom, shared), (produce, shared)],
        [4, 1],
        [REGISTERS, 24],
    )


@functools.lru_cache(maxsize=16)
def described(matrix: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """A matrix's descriptor for blocks of this size, swizzled as wgmma reads them."""
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], gl.bfloat16)
    return TensorDescriptor.from_tensor(matrix, [rows, columns], layout)


@functools.cache
def _sms_of(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def with_gluon(stages=STAGES, group=GROUP, parts=PARTS, registers=232):
    """multiply(c, a, b) in bf16 on a Hopper GPU; rows must begin at multiples of 16 bytes."""

    def multiply(c, a, b):
        tiles = triton.cdiv(c.shape[0], BM) * triton.cdiv(c.shape[1], BN)
        programs = min(_sms_of(c.device), tiles)
        matrices = (
            described(c, BM // 2, BN // parts),
            described(a, BM // 2, BK),
            described(b, BK, BN),
        )
        matmul_gluon[(programs,)](
            *matrices, STAGES=stages, GROUP=group, REGISTERS=registers, num_warps=4
        )

    return multiply
