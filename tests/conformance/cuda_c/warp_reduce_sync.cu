// __reduce_*_sync over warps and masks (compute capability 8.0 and up).
#include <cstdio>

__global__ void work(unsigned* u, int* s) {
    unsigned lane = threadIdx.x;
    const unsigned all = 0xffffffff;
    unsigned r[6] = {
        __reduce_add_sync(all, lane),      __reduce_min_sync(all, lane + 3),
        __reduce_max_sync(all, lane * 2),  __reduce_and_sync(all, lane | 64),
        __reduce_or_sync(all, 1u << lane), __reduce_xor_sync(all, lane < 31 ? 1u << lane : 0u)};
    int i[3] = {__reduce_add_sync(all, -(int)lane), __reduce_min_sync(all, 5 - (int)lane),
                __reduce_max_sync(all, (int)lane - 40)};
    unsigned part = 0;
    if (lane >= 28)
        part = __reduce_add_sync(0xf0000000, lane);
    if (lane == 28) {
        for (int k = 0; k < 6; k++)
            u[k] = r[k];
        for (int k = 0; k < 3; k++)
            s[k] = i[k];
        u[6] = part;
    }
}

int main() {
    unsigned* u;
    int* s;
    cudaMallocManaged(&u, 7 * sizeof(unsigned));
    cudaMallocManaged(&s, 3 * sizeof(int));
    work<<<1, 32>>>(u, s);
    cudaDeviceSynchronize();
    for (int k = 0; k < 7; k++)
        printf("%u ", u[k]);
    printf("\n%d %d %d\n", s[0], s[1], s[2]);
    cudaFree(u);
    cudaFree(s);
}
