// expect: bad-free; line 6; mode: fast
// cudaFree is given memory of malloc.
#include <cstdlib>
int main() {
    float* a = (float*)malloc(64);
    cudaFree(a);
    free(a);
}
