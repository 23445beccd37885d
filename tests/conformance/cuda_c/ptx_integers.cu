// flags: -gencode=arch=compute_90a,code=sm_90a
// Integer instructions of inline PTX: wrapping, clamped shifts, bit fields, carries, bytes.
#include <cstdio>
#define TWO(name, op)                                      \
    __device__ unsigned name(unsigned a, unsigned b) {     \
        unsigned d;                                        \
        asm(op " %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); \
        return d;                                          \
    }
TWO(add, "add.u32")
TWO(sub, "sub.s32")
TWO(low, "mul.lo.s32")
TWO(high_u, "mul.hi.u32")
TWO(high_s, "mul.hi.s32")
TWO(shift_left, "shl.b32")
TWO(shift_right_u, "shr.u32")
TWO(shift_right_s, "shr.s32")
TWO(smaller_s, "min.s32")
TWO(larger_u, "max.u32")
TWO(both, "and.b32")
TWO(either, "xor.b32")

__device__ unsigned others(unsigned a, unsigned b, int which) {
    unsigned d = 0;
    switch (which) {
        case 0:
            asm("bfe.u32 %0, %1, 4, 12;" : "=r"(d) : "r"(a));
            break;
        case 1:
            asm("bfe.s32 %0, %1, 20, 12;" : "=r"(d) : "r"(a));
            break;
        case 2:
            asm("bfi.b32 %0, %1, %2, 8, 8;" : "=r"(d) : "r"(a), "r"(b));
            break;
        case 3:
            asm("popc.b32 %0, %1;" : "=r"(d) : "r"(a));
            break;
        case 4:
            asm("clz.b32 %0, %1;" : "=r"(d) : "r"(a));
            break;
        case 5:
            asm("brev.b32 %0, %1;" : "=r"(d) : "r"(a));
            break;
        case 6:
            asm("bfind.u32 %0, %1;" : "=r"(d) : "r"(a));
            break;
        case 7:
            asm("lop3.b32 %0, %1, %2, 0xff00ff00, 0xca;" : "=r"(d) : "r"(a), "r"(b));
            break;
        case 8:
            asm("prmt.b32 %0, %1, %2, 0x5b14;" : "=r"(d) : "r"(a), "r"(b));
            break;
        case 9:
            asm("shf.l.wrap.b32 %0, %1, %2, 12;" : "=r"(d) : "r"(a), "r"(b));
            break;
        case 10:
            asm("shf.r.clamp.b32 %0, %1, %2, 40;" : "=r"(d) : "r"(a), "r"(b));
            break;
        case 11:
            asm("dp4a.s32.u32 %0, %1, %2, 7;" : "=r"(d) : "r"(a), "r"(b));
            break;
        case 12:
            asm("{ .reg .u32 t; add.cc.u32 t, %1, %2; addc.u32 %0, 0, 0; }"
                : "=r"(d)
                : "r"(a), "r"(b));
            break;
        case 13:
            asm("{ .reg .pred p, q; setp.lt.s32 p|q, %1, %2; selp.u32 %0, 3, 5, p; @q add.u32 %0, "
                "%0, 100; }"
                : "=r"(d)
                : "r"(a), "r"(b));
            break;
        default:
            asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l}; }" : "=r"(d) : "r"(a));
    }
    return d;
}

__global__ void all(unsigned* out, const unsigned* values, int n) {
    int i = threadIdx.x / n, j = threadIdx.x % n;
    unsigned a = values[i], b = values[j];
    unsigned (*functions[])(unsigned, unsigned) = {
        add,           sub,           low,       high_u,   high_s, shift_left,
        shift_right_u, shift_right_s, smaller_s, larger_u, both,   either};
    unsigned* mine = out + threadIdx.x * 27;
    for (int f = 0; f < 12; ++f)
        mine[f] = functions[f](a, b);
    for (int f = 0; f < 15; ++f)
        mine[12 + f] = others(a, b, f);
}

int main() {
    const unsigned values[] = {0, 1, 31, 32, 40, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678};
    const int n = sizeof values / 4;
    unsigned *in, *out;
    cudaMallocManaged(&in, sizeof values);
    cudaMallocManaged(&out, n * n * 27 * 4);
    for (int i = 0; i < n; ++i)
        in[i] = values[i];
    all<<<1, n * n>>>(out, in, n);
    if (cudaDeviceSynchronize())
        return 1;
    for (int f = 0; f < 27; ++f) {
        for (int i = 0; i < n * n; ++i)
            printf("%x ", out[i * 27 + f]);
        printf("\n");
    }
    cudaFree(in);
    cudaFree(out);
}
