// expect: texture; line 3; mode: fast
// Texture references are gone since CUDA 12, texture objects are offered.
texture<float, 1> old;
__global__ void fetch(float* out) {
    out[threadIdx.x] = tex1Dfetch(old, threadIdx.x);
}
int main() {}
