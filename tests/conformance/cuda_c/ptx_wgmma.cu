// flags: -gencode=arch=compute_90a,code=sm_90a
// wgmma: types, swizzles, both orders of the rows, a from registers, signs, sums of 16 bits.
#include <cstdio>
__device__ unsigned address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ int wrong[8];
enum Kind { BF16, F16, TF32, E4M3, S8 };

// Small whole numbers: every sum is exact.
__device__ int of_a(int i, int k) {
    return (i * 5 + k * 3) % 7 - 3;
}
__device__ int of_b(int k, int j) {
    return (k * 2 + j * 5) % 5 - 2;
}
__device__ void put(unsigned char* at, int x, Kind kind) {
    float f = x;
    unsigned u = __float_as_uint(f);
    unsigned short h = u >> 16;
    if (kind == F16)
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    if (kind == E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(0.0f), "f"(f));
    if (kind == TF32)
        *(unsigned*)at = u;
    else if (kind == S8 || kind == E4M3)
        *at = kind == S8 ? x : h;
    else
        *(unsigned short*)at = h;
}

// Where number (i, k) of a tile lies that is 64 numbers wide along i and 32 bytes along k.
template <int SWIZZLE, bool TURNED>
struct Tile {
    static constexpr int W = SWIZZLE ? SWIZZLE : 16;
    static constexpr int ACROSS = !SWIZZLE ? (TURNED ? 1024 : 128) : TURNED ? 16 * W : 0;
    static constexpr int DOWN = !SWIZZLE ? (TURNED ? 128 : 256) : 8 * W;

    static __device__ int place(int i, int k, int size) {
        int bytes = k * size, at;
        if (!TURNED && !SWIZZLE)
            at = i / 8 * DOWN + i % 8 * 16 + bytes / 16 * ACROSS + bytes % 16;
        else if (!TURNED)
            at = i / 8 * DOWN + i % 8 * W + bytes;
        else if (!SWIZZLE)
            at = i / 8 * DOWN + k / 8 * ACROSS + k % 8 * 16 + i % 8 * 2;
        else
            at = i / (W / 2) * ACROSS + k / 8 * DOWN + k % 8 * W + i % (W / 2) * 2;
        return SWIZZLE ? at ^ (at >> 7 & (W / 16 - 1)) << 4 : at;
    }
    static __device__ unsigned long long descriptor(const void* p) {
        unsigned long long mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
        return (address(p) & 0x3ffff) / 16 | (unsigned long long)(ACROSS / 16) << 16 |
               (unsigned long long)(DOWN / 16) << 32 | mode << 62;
    }
};

#define D4(d, c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3])
#define D16(d, c, i) D4(d, c, i), D4(d, c, i + 4), D4(d, c, i + 8), D4(d, c, i + 12)
#define D32(d, c) D16(d, c, 0), D16(d, c, 16)
#define SUMS                                                                                      \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define CALL(op, d, c, rest)                                                               \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned." op \
                 " " SUMS ", %32, %33, p" rest "; }"                                       \
                 : D32(d, c)                                                               \
                 : "l"(a), "l"(b), "r"(add))
__device__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void finish() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
template <class T>
__device__ void verify(int which, const T* d, int depth, int times) {
    for (int i = 0; i < 32; ++i) {
        int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
        int column = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
        int sum = 0;
        for (int k = 0; k < depth; ++k)
            sum += of_a(row, k) * of_b(k, column);
        if (d[i] != sum * times)
            atomicAdd(&wrong[which], 1);
    }
}
template <Kind KIND, int SWIZZLE, bool A_TURNED = false, bool B_TURNED = false>
__global__ void multiply(int which) {
    __shared__ __align__(1024) unsigned char tile_a[8192], tile_b[8192];
    using A = Tile<SWIZZLE, A_TURNED>;
    using B = Tile<SWIZZLE, B_TURNED>;
    constexpr int SIZE = KIND == TF32 ? 4 : KIND < TF32 ? 2 : 1;
    constexpr int DEPTH = 32 / SIZE;
    for (int i = threadIdx.x; i < 64 * DEPTH; i += 128) {
        put(tile_a + A::place(i / DEPTH, i % DEPTH, SIZE), of_a(i / DEPTH, i % DEPTH), KIND);
        put(tile_b + B::place(i / DEPTH, i % DEPTH, SIZE), of_b(i % DEPTH, i / DEPTH), KIND);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned long long a = A::descriptor(tile_a), b = B::descriptor(tile_b);
    if constexpr (KIND == S8) {
        int d[32];
        fence();
        for (int add = 0; add < 2; ++add)
            CALL("m64n64k32.s32.s8.s8", d, "+r", "");
        finish();
        verify(which, d, DEPTH, 2);
    } else {
        float d[32];
        fence();
        for (int add = 0; add < 3; ++add) {
            if constexpr (KIND == BF16 && A_TURNED && B_TURNED)
                CALL("m64n64k16.f32.bf16.bf16", d, "+f", ", 1, 1, 1, 1");
            else if constexpr (KIND == BF16 && B_TURNED)
                CALL("m64n64k16.f32.bf16.bf16", d, "+f", ", 1, 1, 0, 1");
            else if constexpr (KIND == BF16)
                CALL("m64n64k16.f32.bf16.bf16", d, "+f", ", 1, 1, 0, 0");
            else if constexpr (KIND == F16)
                CALL("m64n64k16.f32.f16.f16", d, "+f", ", 1, -1, 0, 0");
            else if constexpr (KIND == TF32)
                CALL("m64n64k8.f32.tf32.tf32", d, "+f", ", 1, 1");
            else
                CALL("m64n64k32.f32.e4m3.e4m3", d, "+f", ", 1, 1");
        }
        finish();
        verify(which, d, DEPTH, KIND == F16 ? -3 : 3);
    }
}

// a comes from registers, and the sums have 16 bits, two in a register.
__global__ void from_registers() {
    __shared__ __align__(1024) unsigned char tile_b[2048];
    using B = Tile<0, false>;
    for (int i = threadIdx.x; i < 8 * 16; i += 128)
        put(tile_b + B::place(i / 16, i % 16, 2), of_b(i % 16, i / 16), F16);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    int group = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    unsigned short a[4][2];
    for (int i = 0; i < 8; ++i)
        put((unsigned char*)&a[i / 2][i % 2],
            of_a(group + i / 2 % 2 * 8, i / 4 * 8 + place * 2 + i % 2), F16);
    unsigned* r = (unsigned*)a;
    unsigned d[2] = {};
    fence();
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, %6, 1, 1, "
        "1, 0;"
        : "+r"(d[0]), "+r"(d[1])
        : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(B::descriptor(tile_b)));
    finish();
    for (int i = 0; i < 4; ++i) {
        int sum = 0;
        for (int k = 0; k < 16; ++k)
            sum += of_a(group + i / 2 * 8, k) * of_b(k, place * 2 + i % 2);
        unsigned short expected;
        put((unsigned char*)&expected, sum, F16);
        if ((d[i / 2] >> i % 2 * 16 & 65535) != expected)
            atomicAdd(&wrong[5], 1);
    }
}

int main() {
    multiply<BF16, 0><<<1, 128>>>(0);
    multiply<BF16, 32><<<1, 128>>>(0);
    multiply<BF16, 64><<<1, 128>>>(0);
    multiply<BF16, 128><<<1, 128>>>(0);
    multiply<BF16, 0, false, true><<<1, 128>>>(1);
    multiply<BF16, 32, true, true><<<1, 128>>>(1);
    multiply<BF16, 64, true, true><<<1, 128>>>(1);
    multiply<BF16, 128, true, true><<<1, 128>>>(1);
    multiply<F16, 128><<<1, 128>>>(2);
    multiply<TF32, 64><<<1, 128>>>(3);
    multiply<E4M3, 128><<<1, 128>>>(4);
    multiply<S8, 32><<<1, 128>>>(4);
    from_registers<<<1, 128>>>();
    int host[8];
    if (cudaMemcpyFromSymbol(host, wrong, sizeof host))
        return 1;
    const char* names[] = {"bf16", "turned", "f16", "tf32", "8 bits", "registers"};
    for (int i = 0; i < 6; ++i)
        printf("%s: %d wrong\n", names[i], host[i]);
}
