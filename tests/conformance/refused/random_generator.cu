// expect: MRG32k3a; line 5; mode: fast
// A random generator that is not offered.
#include <curand_kernel.h>
__global__ void draw(float* out) {
    curandStateMRG32k3a_t state;
    curand_init(1, threadIdx.x, 0, &state);
    out[threadIdx.x] = curand_uniform(&state);
}
int main() {}
