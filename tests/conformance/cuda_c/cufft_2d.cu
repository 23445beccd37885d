// flags: -lcufft
// cuFFT in two dimensions: the last axis is the fastest, real transforms store half of it; strided
// batches.
#include <cmath>
#include <cstdio>
#include <cufft.h>

int main() {
    const int rows = 4, cols = 6;
    cufftComplex *z, *spectrum;
    float* real;
    cudaMallocManaged(&z, rows * cols * sizeof(cufftComplex));
    cudaMallocManaged(&spectrum, rows * cols * sizeof(cufftComplex));
    cudaMallocManaged(&real, rows * cols * sizeof(float));
    for (int i = 0; i < rows * cols; i++)
        z[i] = {0, 0}, real[i] = i == 0;
    z[1 * cols + 0] = {
        1, 0};  // a unit pulse in row 1: the transform turns with the row's frequency alone
    cufftHandle plan;
    printf("%d\n", (int)cufftPlan2d(&plan, rows, cols, CUFFT_C2C));
    cufftExecC2C(plan, z, spectrum, CUFFT_FORWARD);
    cudaDeviceSynchronize();
    for (int r = 0; r < rows; r++)
        printf("(%.0f %.0f) ", rintf(spectrum[r * cols + 4].x) + 0.0f,
               rintf(spectrum[r * cols + 4].y) + 0.0f);
    cufftExecC2C(plan, spectrum, spectrum, CUFFT_INVERSE);
    cudaDeviceSynchronize();
    printf("%.2f %.2f\n", spectrum[cols].x, fabs(spectrum[0].x));
    cufftDestroy(plan);
    cufftPlan2d(&plan, rows, cols, CUFFT_R2C);
    cufftExecR2C(plan, real, spectrum);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < rows * (cols / 2 + 1); i++)
        sum += spectrum[i].x;  // 4 x 4 ones
    printf("%.3f\n", sum);
    cufftDestroy(plan);
    cufftPlan2d(&plan, rows, cols, CUFFT_C2R);
    cufftExecC2R(plan, spectrum, real);
    cudaDeviceSynchronize();
    printf("%.3f %.3f\n", real[0], fabs(real[7]));
    cufftDestroy(plan);
    // one transform for each of the 6 columns: stride 6, distance 1
    for (int i = 0; i < rows * cols; i++)
        z[i] = {float(i % cols), 0};
    int n[] = {rows};
    cufftPlanMany(&plan, 1, n, n, cols, 1, n, cols, 1, CUFFT_C2C, cols);
    cufftExecC2C(plan, z, z, CUFFT_FORWARD);
    cudaDeviceSynchronize();
    for (int i = 0; i < cols; i++)
        printf("%.2f %.2f  ", z[i].x, fabs(z[cols + i].x));
    printf("\n");
    cufftDestroy(plan);
    cudaFree(z);
    cudaFree(spectrum);
    cudaFree(real);
}
