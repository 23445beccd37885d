// Arrays of characters that begin as strings, in a kernel.
#include <cstdio>

__global__ void letters() {
    const char digits[] = "0123456789abcdef";
    unsigned char word[8] = "warp";
    const char* text = "grid";
    printf("%c %d %c %d %s\n", digits[11], int(sizeof digits), word[2], word[5], text);
}
int main() {
    letters<<<1, 1>>>();
    cudaDeviceSynchronize();
}
