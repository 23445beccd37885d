// cudaMemcpy in every direction, parts of arrays, two-dimensional copies of sub-blocks, device to
// device.
#include <cstdio>
#include <vector>

int main() {
    std::vector<int> a(12), b(12, -1);
    for (int i = 0; i < 12; i++)
        a[i] = i;
    int *d, *e;
    cudaMalloc(&d, 12 * sizeof(int));
    cudaMalloc((void**)&e, 12 * sizeof(int));
    cudaMemcpy(d, a.data(), 12 * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(e, d + 6, 6 * sizeof(int), cudaMemcpyDeviceToDevice);
    cudaMemcpy(e + 6, d, 6 * sizeof(int), cudaMemcpyDefault);
    cudaMemcpy(b.data(), e, 12 * sizeof(int), cudaMemcpyDeviceToHost);
    for (int x : b)
        printf("%d ", x);
    printf("\n");
    // a 2 x 2 corner of the 3 x 4 matrix in d goes to the middle of e
    cudaMemcpy2D(e + 5, 4 * sizeof(int), d + 6, 4 * sizeof(int), 2 * sizeof(int), 2,
                 cudaMemcpyDeviceToDevice);
    cudaMemcpy(b.data(), e, 12 * sizeof(int), cudaMemcpyDeviceToHost);
    for (int x : b)
        printf("%d ", x);
    printf("\n");
    cudaMemcpy(b.data(), a.data(), 4 * sizeof(int), cudaMemcpyHostToHost);
    cudaMemset(e, 255, 4 * sizeof(int));
    cudaMemcpy(b.data() + 4, e, 5 * sizeof(int), cudaMemcpyDeviceToHost);
    for (int x : b)
        printf("%d ", x);
    printf("\n");
    printf("%s\n", cudaGetErrorName(cudaMemcpy(d, a.data(), 0, cudaMemcpyHostToDevice)));
    cudaFree(d);
    cudaFree(e);
    printf("%s\n", cudaGetErrorName(cudaFree(nullptr)));
}
