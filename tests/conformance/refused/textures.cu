// expect: texture; line 3; mode: fast
// Textures are refused when the program is built.
__global__ void fetch(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex1D<float>(t, threadIdx.x);
}
int main() {}
