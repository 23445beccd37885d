// flags: -gencode=arch=compute_90a,code=sm_90a
// What the lanes of a warp do together, in inline PTX: shuffles, votes, matrices, products.
#include <cstdio>
__device__ unsigned address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ int wrong[8];
__device__ void check(int which, bool right) {
    if (!right)
        atomicAdd(&wrong[which], 1);
}

__global__ void lanes() {
    unsigned lane, mask, got, inside;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    check(0, lane == threadIdx.x % 32 && mask == (1u << lane) - 1);
    asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 4, 0, -1; selp.u32 %1, 1, 0, p; }"
                 : "=r"(got), "=r"(inside)
                 : "r"(lane * 3));
    check(1, got == (lane < 4 ? lane : lane - 4) * 3 && inside == (lane >= 4));
    asm volatile("shfl.sync.bfly.b32 %0, %1, 5, 31, 0xffffffff;" : "=r"(got) : "r"(lane));
    check(1, got == (lane ^ 5));
    asm volatile("shfl.sync.idx.b32 %0, %1, 2, 0x181f, -1;" : "=r"(got) : "r"(lane));
    check(1, got == (lane & ~7u) + 2);
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.ballot.b32 %0, p, -1; }"
                 : "=r"(got)
                 : "r"(lane));
    check(2, got == 31);
    asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(got) : "r"(lane));
    check(2, got == 496);
    asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(got) : "r"(lane % 4));
    check(2, got == 0x11111111u << lane % 4);
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(got));
    asm volatile("redux.sync.add.s32 %0, %0, 0xffffffff;" : "+r"(got));
    check(2, got == 1);
}

__global__ void matrices() {
    __shared__ __align__(16) unsigned short m[4][8][8], other[4][8][8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32)
        (&m[0][0][0])[i] = i;
    __syncwarp();
    unsigned r[4];
    unsigned row = address(m[lane / 8][lane % 8]), to = address(other[lane / 8][lane % 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
    for (int i = 0; i < 4; ++i)
        check(3, r[i] % 65536 == i * 64 + lane / 4 * 8 + lane % 4 * 2 &&
                     r[i] >> 16 == r[i] % 65536 + 1);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
    __syncwarp();
    for (int i = lane; i < 256; i += 32)
        check(3, other[i / 64][i % 64 / 8][i % 8] == m[i / 64][i % 8][i % 64 / 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row)
                 : "memory");
    check(3, r[1] % 65536 == 64 + lane % 4 * 16 + lane / 4 && r[1] >> 16 == r[1] % 65536 + 8);
}

// Small whole numbers: every sum is exact. Element (i, k) of a and (k, j) of b.
__device__ int of_a(int i, int k) {
    return (i * 5 + k * 3) % 7 - 3;
}
__device__ int of_b(int k, int j) {
    return (k * 2 + j * 5) % 5 - 2;
}
__device__ int product(int i, int j, int depth) {
    int sum = i - j;
    for (int k = 0; k < depth; ++k)
        sum += of_a(i, k) * of_b(k, j);
    return sum;
}
__device__ unsigned bits(int x, int kind) {  // 0 bf16, 1 f16, 2 tf32, 3 s8, 4 e4m3
    float f = x;
    unsigned u = __float_as_uint(f);
    unsigned short h;
    switch (kind) {
        case 0:
            return u >> 16;
        case 1:
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
            return h;
        case 2:
            return u;
        case 3:
            return x & 255;
        default:
            asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(0.0f), "f"(f));
            return h;
    }
}
// Fragments of m16n8k(depth): each register holds `each` neighbours along k.
__device__ void fill(unsigned* a, unsigned* b, int kind, int depth) {
    int each = kind < 2 ? 2 : kind == 2 ? 1 : 4, wide = 32 / each;
    int group = threadIdx.x / 4, place = threadIdx.x % 4;
    for (int i = 0; i < depth / each / 2; ++i) {
        a[i] = 0;
        for (int e = 0; e < each; ++e)
            a[i] |= bits(of_a(group + i % 2 * 8, (i / 2 * 4 + place) * each + e), kind) << e * wide;
    }
    for (int i = 0; i < depth / each / 4; ++i) {
        b[i] = 0;
        for (int e = 0; e < each; ++e)
            b[i] |= bits(of_b((i * 4 + place) * each + e, group), kind) << e * wide;
    }
}
template <class T>
__device__ void verify(const T* d, int depth) {
    for (int i = 0; i < 4; ++i) {
        int row = threadIdx.x / 4 + i / 2 * 8, column = threadIdx.x % 4 * 2 + i % 2;
        check(4, d[i] == product(row, column, depth));
    }
}
#define MMA(op, C)                                                                     \
    asm volatile(op " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : C(d[0]), C(d[1]), C(d[2]), C(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define START(T)                \
    T d[4];                     \
    for (int i = 0; i < 4; ++i) \
        d[i] = (int)(threadIdx.x / 4) + i / 2 * 8 - (int)(threadIdx.x % 4) * 2 - i % 2;
__global__ void products() {
    unsigned a[4], b[2];
    {
        START(float)
        fill(a, b, 0, 16);
        MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "+f");
        verify(d, 16);
    }
    {
        START(float)
        fill(a, b, 1, 16);
        MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "+f");
        verify(d, 16);
    }
    {
        START(float)
        fill(a, b, 2, 8);
        MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "+f");
        verify(d, 8);
    }
    {
        START(int)
        fill(a, b, 3, 32);
        MMA("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "+r");
        verify(d, 32);
    }
    {
        START(float)
        fill(a, b, 4, 32);
        MMA("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "+f");
        verify(d, 32);
    }
    {
        START(float)
        fill(a, b, 1, 16);
        unsigned sum[2];
        for (int i = 0; i < 2; ++i)
            sum[i] = bits(d[i * 2], 1) | bits(d[i * 2 + 1], 1) << 16;
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, "
            "{%6, %7}, {%0, %1};"
            : "+r"(sum[0]), "+r"(sum[1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        for (int i = 0; i < 4; ++i) {
            int row = threadIdx.x / 4 + i / 2 * 8, column = threadIdx.x % 4 * 2 + i % 2;
            check(5, (sum[i / 2] >> i % 2 * 16 & 65535) == bits(product(row, column, 16), 1));
        }
    }
}
// m8n8k4 in double: one number of a and b a lane, two of d.
__global__ void doubles() {
    int group = threadIdx.x / 4, place = threadIdx.x % 4;
    double a = of_a(group, place), b = of_b(place, group), d[2];
    for (int i = 0; i < 2; ++i)
        d[i] = group - place * 2 - i;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(a), "d"(b));
    for (int i = 0; i < 2; ++i)
        check(6, d[i] == product(group, place * 2 + i, 4));
}

int main() {
    lanes<<<1, 64>>>();
    matrices<<<1, 32>>>();
    products<<<1, 32>>>();
    doubles<<<1, 32>>>();
    int host[8];
    if (cudaMemcpyFromSymbol(host, wrong, sizeof host))
        return 1;
    const char* names[] = {"lanes",    "shuffles", "votes",  "matrices",
                           "products", "f16 sums", "doubles"};
    for (int i = 0; i < 7; ++i)
        printf("%s: %d wrong\n", names[i], host[i]);
}
