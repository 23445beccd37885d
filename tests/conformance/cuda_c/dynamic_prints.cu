// flags: -rdc=true
// What a thread prints before it launches a kernel comes before what that kernel prints.
#include <cstdio>

__global__ void visit(int depth, int deepest) {
    printf("depth %d\n", depth);
    if (depth < deepest)
        visit<<<1, 1>>>(depth + 1, deepest);
}

int main() {
    visit<<<1, 1>>>(0, 3);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
