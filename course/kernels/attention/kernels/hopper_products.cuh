// What attention asks of Hopper besides matmul's instructions: wgmma with the left factor in
// registers, boxes of tensors with four dimensions, turns. Sources: PTX ISA, "wgmma.mma_async",
// "cp.async.bulk.tensor", "bar".
#pragma once
#include "../../matmul/kernels/hopper_instructions.cuh"

// Made by the host (convolution/tensor_maps.py); as CUtensorMap, but passed as a plain struct.
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// ---- copies: a box of one head's rows in a tensor [batch, row, head, column]

__device__ void load_rows(void* to, const TensorMap* map, barrier* b, int column, int head, int row,
                          int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(column), "r"(head), "r"(row), "r"(batch)
        : "memory");
}

__device__ void store_rows(const TensorMap* map, const void* from, int column, int head, int row,
                           int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
            map),
        "r"(shared_address(from)), "r"(column), "r"(head), "r"(row), "r"(batch)
        : "memory");
}

// ---- products of a warp group

#define SUMS_72 SUMS_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define SUMS_80 SUMS_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define SUMS_88 SUMS_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define F8(i) F4(i), F4(i + 4)

// d = a b, or d += a b if `add`. a: 64 x 16, b: 16 x WIDTH, both in shared memory with their rows
// along k. A thread holds COUNT = WIDTH / 2 sums; A, B, ADD: the operands' numbers behind them.
#define MULTIPLY(WIDTH, COUNT, SUMS, A, B, ADD, ...)                                       \
    __device__ void multiply(float (&d)[COUNT], descriptor a, descriptor b, int add) {     \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #ADD                               \
                     ", 0; "                                                               \
                     "wgmma.mma_async.sync.aligned.m64n" #WIDTH "k16.f32.bf16.bf16 {" SUMS \
                     "}, %" #A ", %" #B ", p, 1, 1, 0, 0; }"                               \
                     : __VA_ARGS__                                                         \
                     : "l"(a), "l"(b), "r"(add));                                          \
    }
MULTIPLY(64, 32, SUMS_32, 32, 33, 34, F32(0))
MULTIPLY(128, 64, SUMS_64, 64, 65, 66, F64(0))
MULTIPLY(144, 72, SUMS_72, 72, 73, 74, F64(0), F8(64))
MULTIPLY(160, 80, SUMS_80, 80, 81, 82, F64(0), F16(64))
MULTIPLY(176, 88, SUMS_88, 88, 89, 90, F64(0), F16(64), F8(80))

// d += a b. a: 64 x 16 in four registers of each thread, b: 16 x WIDTH in shared memory, its rows
// along n.
#define MULTIPLY_REGISTERS(WIDTH, COUNT, SUMS, A0, A1, A2, A3, B, ...)                     \
    __device__ void multiply(float (&d)[COUNT], const unsigned* a, descriptor b) {         \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #WIDTH "k16.f32.bf16.bf16 {" SUMS \
                     "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", 1, 1, 1, 1;"   \
                     : __VA_ARGS__                                                         \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                \
    }
MULTIPLY_REGISTERS(64, 32, SUMS_32, 32, 33, 34, 35, 36, F32(0))
MULTIPLY_REGISTERS(128, 64, SUMS_64, 64, 65, 66, 67, 68, F64(0))

// The compiler is told that d changes here: it computes nothing of it later, reads none earlier.
template <int COUNT>
__device__ void settle(float (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
}

// Until at most PENDING of this warp group's groups are still being multiplied, d's not among them.
template <int PENDING, int COUNT>
__device__ void wait_for_products(float (&d)[COUNT]) {
    wgmma_wait<PENDING>();
    settle(d);
}

// ---- registers

template <int REGISTERS>
__device__ void keep_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// ---- warp groups

// As the compiler should see it: the same for all lanes of a warp, so that descriptors are, too.
__device__ int own_warpgroup() {
    return __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
}

// ---- turns: a named barrier for each of two warp groups, passed when the other has arrived

__device__ void wait_for_turn(int warpgroup) {
    asm volatile("bar.sync %0, 256;" ::"r"(warpgroup + 3) : "memory");
}
__device__ void pass_turn(int warpgroup) {
    asm volatile("bar.arrive %0, 256;" ::"r"(1 - warpgroup + 3) : "memory");
}
