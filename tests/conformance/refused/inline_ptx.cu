// expect: tcgen05.alloc; line 6; mode: fast
// Tensor memory came with Blackwell: the CPU runtime's inline PTX ends with Hopper.
__global__ void allocate(unsigned* out) {
    __shared__ unsigned address;
    unsigned place = (unsigned)__cvta_generic_to_shared(&address);
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(place));
    out[threadIdx.x] = address;
}
int main() {
    unsigned* out;
    cudaMalloc(&out, 32 * sizeof(unsigned));
    allocate<<<1, 32>>>(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
