// Integer intrinsics.
#include <cstdio>

__global__ void work(long long* out) {
    int i = 0;
    out[i++] = __popc(0xF0F0), out[i++] = __popcll(~0ull >> 1), out[i++] = __clz(1),
    out[i++] = __clz(0), out[i++] = __clzll(1LL);
    out[i++] = __ffs(0), out[i++] = __ffs(0x80), out[i++] = __ffsll(1LL << 40),
    out[i++] = __brev(1u), out[i++] = __brevll(2ull) >> 32;
    out[i++] = __mulhi(1 << 30, 8), out[i++] = __umulhi(0xFFFFFFFFu, 0xFFFFFFFFu),
    out[i++] = __mul64hi(1LL << 62, 12), out[i++] = __umul64hi(~0ull, 16ull),
    out[i++] = __mul24(-3, 5);
    out[i++] = __umul24(1000, 1000), out[i++] = __sad(3, 10, 100), out[i++] = __usad(3, 10, 100),
    out[i++] = __hadd(5, 8), out[i++] = __rhadd(5, 8);
    out[i++] = __byte_perm(0x33221100, 0x77665544, 0x7250),
    out[i++] = __funnelshift_l(0x80000001u, 0x0000000Fu, 4),
    out[i++] = __funnelshift_r(0x80000001u, 0x0000000Fu, 4),
    out[i++] = __dp4a(0x01020304, 0x02020202, 5), out[i++] = __dp4a(0xFF000000u, 0x02000000u, 0u);
    out[i++] = __vadd4(0x01FF0203u, 0x01010101u), out[i++] = __vabsdiffu4(0x05010A00u, 0x01050A01u),
    out[i++] = __vmaxu4(0x01FF0300u, 0x02010401u), out[i++] = __vcmpeq4(0x01020304u, 0x01000300u),
    out[i++] = umin(3u, 4u) + (long long)max(5LL, 6LL);
}

int main() {
    long long* out;
    cudaMallocManaged(&out, 30 * sizeof(long long));
    work<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 30; i++)
        printf("%lld%c", out[i], i % 5 == 4 ? '\n' : ' ');
    cudaFree(out);
}
