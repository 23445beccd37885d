// CUB: differences of neighbours across the threads of a block, in place and in partial tiles.
#include <cstdio>
#include <cub/cub.cuh>

struct Minus {
    __device__ int operator()(int a, int b) const {
        return a - b;
    }
};
__global__ void differences(int* out, int way, int valid) {
    using Neighbours = cub::BlockAdjacentDifference<int, 32>;
    __shared__ typename Neighbours::TempStorage storage;
    int items[3];
    for (int i = 0; i < 3; ++i) {
        int item = 3 * threadIdx.x + i;
        items[i] = item * item;
    }
    Neighbours block(storage);
    if (way == 0)
        block.SubtractLeft(items, items, Minus());
    else if (way == 1)
        block.SubtractLeft(items, items, Minus(), -7);
    else if (way == 2)
        block.SubtractRight(items, items, Minus());
    else
        block.SubtractLeftPartialTile(items, items, Minus(), valid);
    for (int i = 0; i < 3; ++i)
        out[3 * threadIdx.x + i] = items[i];
}
int main() {
    int* out;
    cudaMallocManaged(&out, 96 * sizeof(int));
    for (int way = 0; way < 4; ++way) {
        differences<<<1, 32>>>(out, way, 50);
        cudaDeviceSynchronize();
        for (int i : {0, 1, 2, 3, 48, 49, 50, 94, 95})
            printf("%d ", out[i]);
        printf("\n");
    }
    cudaFree(out);
}
