"""c = a b in CuTe DSL, CUTLASS in Python: threads, barriers, and layouts that one calculates with.

Needs the packages nvidia-cutlass-dsl and apache-tvm-ffi (`pip install 'cuda-course[tiles]'`).
Two groups of four warps multiply 64 rows of a tile each; one more warp asks the copy engine for
what they need next.
"""

from cutlass import BFloat16, Float32, Int32, Int64, cute, pipeline, range_constexpr
from cutlass.cute.nvgpu import OperandMajorMode as Major
from cutlass.cute.nvgpu import cpasync, warp, warpgroup
from cutlass.cute.nvgpu.warpgroup import OperandSource, SmemLayoutAtomKind
from cutlass.memory import SmemAllocator

BM, BN, BK = 128, 256, 64
STAGES = 3
GROUP = 8  # rows of tiles that are taken together
WARPS = 8  # that multiply


@cute.jit
def place(tile, m, n):
    """Row and column of a tile, in tiles: GROUP rows of tiles are taken together, down first."""
    across = cute.ceil_div(n, BN)
    first = tile // (GROUP * across) * GROUP
    height = min(cute.ceil_div(m, BM) - first, GROUP)
    inside = tile % (GROUP * across)
    return first + inside % height, inside // height


def swizzled(kind, *shape, order=(0, 1, 2)):
    """A layout of tiles in shared memory as the copy engine writes them and wgmma reads them."""
    return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, BFloat16), shape, order)


def pieces(copy, ring, matrix):
    """What one copy moves: a slot of a ring, and a tile of a matrix cut into such tiles."""
    tiles = cute.local_tile(matrix, cute.product_each(ring.shape)[:2], (None, None))
    both = cute.group_modes(ring, 0, 2), cute.group_modes(tiles, 0, 2)
    return cpasync.tma_partition(copy, 0, cute.make_layout(1), *both)


@cute.jit
def produce(copy_a, a, ring_a, copy_b, b, ring_b, producer, sizes):
    """One warp: ask for the tiles of every step, as soon as a slot of the ring is empty."""
    m, n, tiles, steps = sizes
    to_a, from_a = pieces(copy_a, ring_a, a)
    to_b, from_b = pieces(copy_b, ring_b, b)
    for tile in range(cute.arch.block_idx()[0], tiles, cute.arch.grid_dim()[0]):
        row, column = place(tile, m, n)
        for step in range(steps):
            slot = producer.acquire_and_advance()
            at, full = (None, slot.index), slot.barrier
            cute.copy(copy_a, from_a[None, row, step], to_a[at], tma_bar_ptr=full)
            cute.copy(copy_b, from_b[None, column, step], to_b[at], tma_bar_ptr=full)


@cute.jit
def multiply(mma, total, tile_a, tile_b, slot):
    """total += a b with the tiles in a slot, 16 of k at a time; begun, not waited for."""
    warpgroup.fence()
    for i in range_constexpr(BK // 16):
        at = None, None, i, slot.index
        cute.gemm(mma, total, tile_a[at], tile_b[at], total)
    warpgroup.commit_group()


@cute.jit
def put(copy_c, out, c, mma, total, group, row, column):
    """Round 64 rows of a tile, bring them to shared memory, and have the copy engine write them."""
    first = cute.arch.warp_idx() % 4 == 0  # of the group's warps
    rounded = cute.make_rmem_tensor_like(total, BFloat16)
    rounded.store(total.load().to(BFloat16))
    stmatrix = cute.make_copy_atom(warp.StMatrix8x8x16bOp(num_matrices=4), BFloat16)
    to_shared = cute.make_tiled_copy_C(stmatrix, mma)
    mine = to_shared.get_slice(cute.arch.thread_idx()[0] % 128).partition_D(out)
    if first:
        cute.arch.cp_async_bulk_wait_group(0, read=True)  # the tile before has left
    cute.arch.barrier(barrier_id=1 + group, number_of_threads=128)
    cute.copy(to_shared, to_shared.retile(rounded), mine[None, None, None, group])
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.barrier(barrier_id=1 + group, number_of_threads=128)
    halves, tiles = pieces(copy_c, out, c)
    if first:
        with cute.arch.elect_one():
            cute.copy(copy_c, halves[None, group], tiles[None, 2 * row + group, column])
            cute.arch.cp_async_bulk_commit_group()


@cute.jit
def consume(copy_c, out, c, mma, ring_a, ring_b, consumer, sizes):
    """Four warps: multiply 64 rows of what has come, step by step, and write them."""
    m, n, tiles, steps = sizes
    mma.set(warpgroup.Field.ACCUMULATE, True)
    group = cute.arch.make_warp_uniform(cute.arch.thread_idx()[0] // 128)
    half = cute.local_tile(ring_a, (BM // 2, BK, STAGES), (group, 0, 0))
    tile_a = mma.make_fragment_A(mma.get_slice(0).partition_A(half))
    tile_b = mma.make_fragment_B(mma.get_slice(0).partition_B(ring_b))
    total = cute.make_rmem_tensor(mma.partition_shape_C((BM // 2, BN)), Float32)
    for tile in range(cute.arch.block_idx()[0], tiles, cute.arch.grid_dim()[0]):
        total.fill(0)
        before = consumer.wait_and_advance()
        multiply(mma, total, tile_a, tile_b, before)
        for _ in range(1, steps):
            slot = consumer.wait_and_advance()
            multiply(mma, total, tile_a, tile_b, slot)
            warpgroup.wait_group(1)  # all but the newest are done
            before.release()
            before = slot
        warpgroup.wait_group(0)
        before.release()
        row, column = place(tile, m, n)
        put(copy_c, out, c, mma, total, group, row, column)
    cute.arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def matmul_blocks(copy_c, c, copy_a, a, copy_b, b, mma, layouts, sizes):
    """A block of three groups of four warps; it takes one tile after the other."""
    shared = SmemAllocator()
    rings = [shared.allocate_tensor(BFloat16, x.outer, 1024, x.inner) for x in layouts]
    out, ring_a, ring_b = rings
    agents = pipeline.Agent.Thread
    ring = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(agents),
        consumer_group=pipeline.CooperativeGroup(agents, WARPS),  # one thread of each says: empty
        tx_count=(BM + BN) * BK * 2,  # bytes that make a slot full
        barrier_storage=shared.allocate_array(Int64, 2 * STAGES),
    )
    producer, consumer = ring.make_participants()
    number = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if number < WARPS:
        cute.arch.setmaxregister_increase(232)
        consume(copy_c, out, c, mma, ring_a, ring_b, consumer, sizes)
    else:
        cute.arch.setmaxregister_decrease(40)
        if number == WARPS:
            produce(copy_a, a, ring_a, copy_b, b, ring_b, producer, sizes)


@cute.jit
def matmul(c, a, b, blocks: Int32, stream):
    """c = a b, in bf16, row by row, with at most so many blocks."""
    m, n, k = *c.shape, a.shape[1]
    b = cute.make_tensor(b.iterator, cute.select(b.layout, mode=[1, 0]))  # n × k: the other way
    layouts = (
        swizzled(SmemLayoutAtomKind.K_SW128, BM // 2, BN, 2),
        swizzled(SmemLayoutAtomKind.K_SW128, BM, BK, STAGES),
        swizzled(SmemLayoutAtomKind.MN_SW128, BN, BK, STAGES, order=(1, 0, 2)),
    )
    load, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    copies = (
        *cpasync.make_tiled_tma_atom(store, c, layouts[0], (BM // 2, BN)),
        *cpasync.make_tiled_tma_atom(load, a, layouts[1], (BM, BK)),
        *cpasync.make_tiled_tma_atom(load, b, layouts[2], (BN, BK)),
    )
    shape, where = (64, BN, 16), OperandSource.SMEM
    wgmma = warpgroup.MmaF16BF16Op(BFloat16, Float32, shape, where, Major.K, Major.MN)
    mma = cute.make_tiled_mma(wgmma)
    tiles = cute.ceil_div(m, BM) * cute.ceil_div(n, BN)
    kernel = matmul_blocks(*copies, mma, layouts, (m, n, tiles, cute.ceil_div(k, BK)))
    kernel.launch(grid=(min(tiles, blocks), 1, 1), block=(32 * WARPS + 128, 1, 1), stream=stream)
