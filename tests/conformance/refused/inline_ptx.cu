// expect: PTX; line 5; mode: fast
// Inline PTX is refused when the program is built.
__global__ void lane(unsigned* out) {
    unsigned id;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(id));
    out[threadIdx.x] = id;
}
int main() {
    unsigned* out;
    cudaMalloc(&out, 32 * sizeof(unsigned));
    lane<<<1, 32>>>(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
