// 2 of 4: of every four neighbours in a row of A two are zero, and only the other two are stored,
// with 2 bits each that say where they were. mma.sp multiplies such a tile of 16 x 32 in the time
// that mma needs for 16 x 16. Compute capability 8.0 on. Source: PTX ISA, "mma.sp".
#include <cuda_bf16.h>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "mma.sp needs compute capability 8.0 (Ampere) or later"
#endif

using bf16 = __nv_bfloat16;

// d (16 x 8) += a (16 x 32, half of it stored) b (32 x 8). The fragments of a and d are those of
// mma.m16n8k16 (../../matmul/kernels/mma.cuh); b[i]: rows i * 8 + lane % 4 * 2 and the next, of
// column lane / 4. places: of lane % 4 == 0: 8 numbers of row lane / 4, then 8 of the row 8 below,
// in columns 0 to 15; of lane % 4 == 1: in columns 16 to 31.
__device__ void sparse_mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4],
                           unsigned places) {
    asm volatile(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
          "r"(places));
}

__device__ void dense_mma(float (&d)[4], const unsigned (&a)[4], const unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ unsigned two(const bf16* from) {
    return *(const unsigned*)from;
}

// One tile by one warp. kept: 16 x 16, the stored numbers. places: 16 x 16, each 0 to 3.
// b: 8 x 32, its columns as rows. Grid: 1, block: 32.
__global__ void sparse_tile(float* d, const bf16* kept, const unsigned char* places,
                            const bf16* b) {
    int row = threadIdx.x / 4;
    int quarter = threadIdx.x % 4;
    unsigned of_a[4], of_b[4];
    for (int i = 0; i < 4; ++i) {
        of_a[i] = two(kept + (row + i % 2 * 8) * 16 + i / 2 * 8 + quarter * 2);
        of_b[i] = two(b + row * 32 + i * 8 + quarter * 2);
    }
    unsigned bits = 0;
    for (int i = 0; i < 8; ++i)
        for (int half = 0; half < 2; ++half) {
            unsigned place = places[(row + half * 8) * 16 + quarter % 2 * 8 + i];
            bits |= place << (i * 2 + half * 16);
        }
    float sums[4] = {};
    sparse_mma(sums, of_a, of_b, bits);
    for (int i = 0; i < 4; ++i)
        d[(row + i / 2 * 8) * 8 + quarter * 2 + i % 2] = sums[i];
}

// How fast the tensor cores are, with everything in registers: ROUNDS products in each of CHAINS
// independent sums. Every number is 1, so that the sums can be checked.
constexpr int CHAINS = 8;

template <bool SPARSE>
__global__ void __launch_bounds__(256) rate(float* out, int rounds) {
    const unsigned ones = 0x3f803f80;  // two bfloat16
    const unsigned first_two = 0x44444444;  // of every four, numbers 0 and 1
    unsigned a[4] = {ones, ones, ones, ones};
    unsigned b[4] = {ones, ones, ones, ones};
    float d[CHAINS][4] = {};
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain)
            if (SPARSE)
                sparse_mma(d[chain], a, b, first_two);
            else
                dense_mma(d[chain], a, b);
    float sum = 0;
    for (int chain = 0; chain < CHAINS; ++chain)
        for (int i = 0; i < 4; ++i)
            sum += d[chain][i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
