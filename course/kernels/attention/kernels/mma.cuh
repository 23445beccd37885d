// The instructions that feed tensor cores of 16-bit numbers, bfloat16 or, with -DHALF, float16, one
// small function each. Before compute capability 8.0 copies are plain, and products are 8 deep.
// Source: PTX ISA, "cp.async", "ldmatrix", "mma" with the fragments of m16n8k16 and m16n8k8.
#pragma once
#include "problem.cuh"

__device__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#ifndef HALF
#error "tensor cores with bfloat16 need compute capability 8.0 (Ampere): take -DHALF"
#endif
__device__ void copy16(void* to, const void* from, bool inside) {
    *(uint4*)to = inside ? *(const uint4*)from : uint4{};
}
__device__ void close_group() {}
template <int PENDING>
__device__ void wait_for_groups() {}
#else
// Starts copying 16 bytes, or writes zeros where they lie outside of the array.
__device__ void copy16(void* to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(inside ? 16 : 0));
}
// Closes a group: what this thread has started since the last one.
__device__ void close_group() {
    asm volatile("cp.async.commit_group;");
}
// Waits until at most PENDING of this thread's groups are still on their way.
template <int PENDING>
__device__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
#endif

// Loads four matrices of 8 x 8 numbers. Lane i names row i % 8 of matrix i / 8; of each matrix it
// receives two neighbours of row lane / 4, from column lane % 4 * 2 on.
__device__ void load_matrices(unsigned (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row)));
}
// The same, each matrix transposed on its way: the two are neighbours of a column.
__device__ void load_matrices_transposed(unsigned (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row)));
}

#ifdef HALF
#define TYPES "f32.f16.f16.f32"
#else
#define TYPES "f32.bf16.bf16.f32"
#endif

// d (16 x 8) += a (16 x 16) b (16 x 8), the whole warp together. Who holds what, in a lane with
// group = lane / 4 and pair = lane % 4 * 2 (two numbers in a register of a and b):
//   a[0], a[1]: rows group and group + 8, columns pair and pair + 1;  a[2], a[3]: 8 columns further
//   b[0]: rows pair and pair + 1 of column group;                     b[1]: 8 rows further
//   d[0], d[1]: row group, columns pair and pair + 1;                 d[2], d[3]: 8 rows further
__device__ void mma(float* d, const unsigned* a, const unsigned* b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    for (int half = 0; half < 2; ++half)
        asm("mma.sync.aligned.m16n8k8.row.col." TYPES
            " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[half * 2]), "r"(a[half * 2 + 1]), "r"(b[half]));
#else
    asm("mma.sync.aligned.m16n8k16.row.col." TYPES
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
