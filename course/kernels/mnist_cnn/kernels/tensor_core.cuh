// The instructions of the tensor cores and of the copies that feed them, one small function each.
//
// Each is a PTX instruction or a few. Only TF32 is different without a GPU: its floats keep all
// bits there, so that a wrong formula cannot hide behind rounding. Source of the layouts: PTX ISA,
// "Matrix fragments for mma.m16n8k16 / m16n8k8" and "ldmatrix".
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 && !defined(FP16)
#error "bfloat16 and TF32 need compute capability 8.0 (Ampere) or newer; -DFP16 needs 7.5"
#endif

// What tensor cores multiply is bfloat16 (float's range, 8 bits of precision); or, built with
// -DTF32, floats of which they look at 11 bits; or, built with -DFP16, float16 (11 bits, from 6e-8
// to 65,504), for compute capability 7.5, which has no other. `pair` is two numbers in a row. Sums
// are floats in all cases.
#ifdef TF32
typedef float number;
typedef float2 pair;
// Rounded; the tensor core itself would cut the other bits off.
__device__ inline number to_number(float x) {
#ifdef __CUDA_CPU__
    return x;
#else
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
#endif
}
__device__ inline pair pack(float first, float second) {
    return make_float2(to_number(first), to_number(second));
}
__device__ inline float2 unpack(pair both) {
    return both;
}
#elif defined(FP16)
typedef __half number;
typedef unsigned pair;  // the first one in the lower half
__device__ inline number to_number(float x) {
    return __float2half(x);
}
__device__ inline pair pack(float first, float second) {
    __half2 both = __floats2half2_rn(first, second);
    return *reinterpret_cast<unsigned*>(&both);
}
__device__ inline float2 unpack(pair both) {
    return __half22float2(*reinterpret_cast<__half2*>(&both));
}
#else
typedef __nv_bfloat16 number;
typedef unsigned pair;  // the first one in the lower half
__device__ inline number to_number(float x) {
    return __float2bfloat16(x);
}
__device__ inline pair pack(float first, float second) {
    __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<unsigned*>(&both);
}
// bfloat16 is the upper half of a float.
__device__ inline float2 unpack(pair both) {
    float first = __uint_as_float(both << 16);
    float second = __uint_as_float(both & 0xffff0000u);
    return make_float2(first, second);
}
#endif

// Eight numbers in a row: 16 bytes of bfloat16 or float16, moved with one instruction.
__device__ inline void store_eight(number* to, pair a, pair b, pair c, pair d) {
#ifdef TF32
    float4* halves = reinterpret_cast<float4*>(to);
    halves[0] = make_float4(a.x, a.y, b.x, b.y);
    halves[1] = make_float4(c.x, c.y, d.x, d.y);
#else
    *reinterpret_cast<uint4*>(to) = make_uint4(a, b, c, d);
#endif
}
__device__ inline void load_eight(pair (&to)[4], const number* from) {
#ifdef TF32
    const float4* halves = reinterpret_cast<const float4*>(from);
    float4 a = halves[0];
    float4 b = halves[1];
    to[0] = make_float2(a.x, a.y);
    to[1] = make_float2(a.z, a.w);
    to[2] = make_float2(b.x, b.y);
    to[3] = make_float2(b.z, b.w);
#else
    uint4 all = *reinterpret_cast<const uint4*>(from);
    to[0] = all.x;
    to[1] = all.y;
    to[2] = all.z;
    to[3] = all.w;
#endif
}
__device__ inline void store_pair(number* to, pair two) {
    *reinterpret_cast<pair*>(to) = two;
}
__device__ inline pair load_pair(const number* from) {
    return *reinterpret_cast<const pair*>(from);
}

// cp.async came with compute capability 8.0. Without it a copy goes through registers, and is done
// when the next barrier is.
#ifndef FP16
#define ASYNC_COPIES
#endif

// Start copying eight numbers from global to shared memory, through no register; zeros where
// `wanted` is false.
__device__ inline void copy_eight_async(number* to_shared, const number* from, bool wanted = true) {
    for (int part = 0; part < int(sizeof(number)) * 8; part += 16) {
        char* to = reinterpret_cast<char*>(to_shared) + part;
        const char* source = reinterpret_cast<const char*>(from) + part;
#ifndef ASYNC_COPIES
        uint4 zeros = make_uint4(0, 0, 0, 0);
        *reinterpret_cast<uint4*>(to) = wanted ? *reinterpret_cast<const uint4*>(source) : zeros;
#else
        unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
        int bytes = wanted ? 16 : 0;  // what is missing of the 16 becomes zeros
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :
                     : "r"(address), "l"(source), "r"(bytes)
                     : "memory");
#endif
    }
}

// Ask for the 128 bytes around an address to be brought into the L2 cache.
__device__ inline void prefetch(const void* address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// Close a group of copies.
__device__ inline void commit_copies() {
#ifdef ASYNC_COPIES
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most `pending` of this thread's groups are still on their way.
template <int pending>
__device__ inline void wait_for_copies() {
#ifdef ASYNC_COPIES
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// How a warp holds its matrices: which lane has which elements. c is 16 x 8, a 16 x 16, b 16 x 8.
// With group = lane / 4 and column = lane % 4 * 2 a lane holds
//   c[0], c[1]   row group at columns column, column + 1
//   c[2], c[3]   row group + 8 at the same columns
//   a[0], a[1]   rows group and group + 8 at columns column, column + 1
//   a[2], a[3]   the same rows, 8 columns further
//   b0           column group at rows column, column + 1
//   b1           the same column, 8 rows further
struct Fragment {
    int row;  // of c[0]: group
    int column;  // of c[0]
};
__device__ inline Fragment fragment_of(int lane) {
    return {lane / 4, lane % 4 * 2};
}

#if defined(TF32) && defined(__CUDA_CPU__)
// c += a b for the whole warp, through shared memory, with all bits.
__device__ inline void multiply_add(float (&c)[4], const pair (&a)[4], pair b0, pair b1) {
    __shared__ pair held[8][6][32];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    Fragment own = fragment_of(lane);
    for (int i = 0; i < 4; ++i)
        held[warp][i][lane] = a[i];
    held[warp][4][lane] = b0;
    held[warp][5][lane] = b1;
    __syncwarp();
    for (int e = 0; e < 4; ++e)
        for (int k = 0; k < 8; ++k) {  // pairs of the sum over 16
            int of_a = k / 4 * 2 + e / 2;
            int of_b = 4 + k / 4;
            pair x = held[warp][of_a][own.row * 4 + k % 4];
            pair y = held[warp][of_b][(own.column + e % 2) * 4 + k % 4];
            c[e] += x.x * y.x + x.y * y.y;
        }
    __syncwarp();
}
#elif defined(TF32)
// c += a b for 8 of the sum's 16 terms.
__device__ inline void multiply_add_8(float (&c)[4], float a0, float a1, float a2, float a3,
                                      float b0, float b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
          "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// c += a b for the whole warp, in two products. Which of the 8 terms is in which place does not
// matter if a and b agree.
__device__ inline void multiply_add(float (&c)[4], const pair (&a)[4], pair b0, pair b1) {
    multiply_add_8(c, a[0].x, a[1].x, a[0].y, a[1].y, b0.x, b0.y);
    multiply_add_8(c, a[2].x, a[3].x, a[2].y, a[3].y, b1.x, b1.y);
}
#elif defined(FP16)
// c += a b for 8 of the sum's 16 terms: what compute capability 7.5 does with one instruction.
__device__ inline void multiply_add_8(float (&c)[4], pair a0, pair a1, pair b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
}

// c += a b for the whole warp, in two products.
__device__ inline void multiply_add(float (&c)[4], const pair (&a)[4], pair b0, pair b1) {
    multiply_add_8(c, a[0], a[1], b0);
    multiply_add_8(c, a[2], a[3], b1);
}
#else
// c += a b for the whole warp, in one instruction.
__device__ inline void multiply_add(float (&c)[4], const pair (&a)[4], pair b0, pair b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// Load four 8 x 8 matrices from shared memory. Lane i gives the address of row i % 8 of matrix
// i / 8 (8 numbers). Of matrix m it gets in r[m] what stands in row lane / 4 at columns
// lane % 4 * 2 and the next: the layout that multiply_add wants for a, and for b where a row of
// shared memory holds a column of b.
__device__ inline void load_matrices(pair (&r)[4], const number* row) {
    [[maybe_unused]] int lane = threadIdx.x % 32;
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
#ifdef TF32
    for (int m = 0; m < 4; ++m) {  // ldmatrix knows 16-bit numbers only
        unsigned begin = __shfl_sync(~0u, address, m * 8 + lane / 4);
        unsigned from = begin + lane % 4 * 8;
        asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
                     : "=f"(r[m].x), "=f"(r[m].y)
                     : "r"(from)
                     : "memory");
    }
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
#endif
}

// The same with each matrix transposed on the way: a lane gets column lane / 4 at rows
// lane % 4 * 2 and the next.
__device__ inline void load_matrices_transposed(pair (&r)[4], const number* row) {
    [[maybe_unused]] int lane = threadIdx.x % 32;
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
#ifdef TF32
    for (int m = 0; m < 4; ++m) {
        int of = m * 8 + lane % 4 * 2;
        unsigned first = __shfl_sync(~0u, address, of) + lane / 4 * 4;
        unsigned second = __shfl_sync(~0u, address, of + 1) + lane / 4 * 4;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(r[m].x) : "r"(first) : "memory");
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(r[m].y) : "r"(second) : "memory");
    }
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
#endif
}

// A kernel may begin before the one before it has ended (programmatic dependent launch, compute
// capability 9.0): it does what does not depend on the other's results, then waits for its end.
// Both do nothing in a kernel that was launched as usual.
__device__ inline void let_next_kernel_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ inline void wait_for_last_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Of a fragment's lanes: those that hold the same columns, and those that hold the same row.
constexpr int SAME_COLUMNS = 4 | 8 | 16;
constexpr int SAME_ROW = 1 | 2;

// Sum over the lanes whose numbers differ in the bits of `lanes`; each of them gets it.
template <class T>
__device__ inline T sum_over_lanes(T value, int lanes) {
    for (int bit = 1; bit < 32; bit *= 2)
        if (lanes & bit)
            value += __shfl_xor_sync(~0u, value, bit);
    return value;
}
