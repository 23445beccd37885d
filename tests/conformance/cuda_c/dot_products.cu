// __dp4a and __dp2a, which multiply bytes and add into 32 bits: words and vectors.
#include <cstdio>

__global__ void dots(int* s, unsigned* u) {
    char4 a = make_char4(-128, 127, -1, 5);
    char4 b = make_char4(127, -128, 3, -7);
    uchar4 c = make_uchar4(255, 254, 1, 0);
    uchar4 d = make_uchar4(255, 2, 200, 9);
    short2 e = make_short2(-32768, 32767);
    ushort2 f = make_ushort2(65535, 3);
    s[0] = __dp4a(a, b, 10);
    s[1] = __dp4a((int)0x80FF7F01, 0x7F02FE03, -5);
    s[2] = __dp2a_lo(e, b, 1);
    s[3] = __dp2a_hi(e, b, 1);
    s[4] = __dp2a_lo(0x7FFF8000, 0x05FA807F, 2);
    s[5] = __dp2a_hi(0x7FFF8000, 0x05FA807F, 2);
    u[0] = __dp4a(c, d, 10u);
    u[1] = __dp4a(0xFF01FE02u, 0xFFFFFFFFu, 0xFFFFFFFFu);
    u[2] = __dp2a_lo(f, d, 1u);
    u[3] = __dp2a_hi(f, d, 1u);
    u[4] = __dp2a_lo(0xFFFF0002u, 0x090AC8FFu, 7u);
    u[5] = __dp2a_hi(0xFFFF0002u, 0x090AC8FFu, 7u);
}

int main() {
    int* s;
    unsigned* u;
    cudaMallocManaged(&s, 6 * sizeof(int));
    cudaMallocManaged(&u, 6 * sizeof(unsigned));
    dots<<<1, 1>>>(s, u);
    cudaDeviceSynchronize();
    for (int i = 0; i < 6; ++i)
        printf("%d %u\n", s[i], u[i]);
    cudaFree(s);
    cudaFree(u);
}
