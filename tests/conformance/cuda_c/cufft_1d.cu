// flags: -lcufft
// cuFFT in one dimension: complex and real, forward and inverse without scaling, batches, awkward
// sizes.
#include <cmath>
#include <cstdio>
#include <cufft.h>

static double largest_error(const cufftComplex* got, const cufftComplex* in, int n, int sign) {
    double worst = 0;
    for (int k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int j = 0; j < n; j++) {
            double angle = sign * 2 * M_PI * ((long long)j * k % n) / n;
            re += in[j].x * cos(angle) - in[j].y * sin(angle);
            im += in[j].x * sin(angle) + in[j].y * cos(angle);
        }
        worst = fmax(worst, hypot(re - got[k].x, im - got[k].y));
    }
    return worst;
}

int main() {
    cufftComplex *in, *out;
    cudaMallocManaged(&in, 1024 * sizeof(cufftComplex));
    cudaMallocManaged(&out, 1024 * sizeof(cufftComplex));
    for (int n : {1, 2, 8, 12, 17, 60, 97, 256}) {
        const int batch = 2;
        for (int i = 0; i < n * batch; i++)
            in[i] = {float((i * 7) % 11 - 5), float((i * 5) % 13 - 6)};
        cufftHandle plan;
        cufftResult made = cufftPlan1d(&plan, n, CUFFT_C2C, batch);
        cufftExecC2C(plan, in, out, CUFFT_FORWARD);
        cudaDeviceSynchronize();
        double e = fmax(largest_error(out, in, n, -1), largest_error(out + n, in + n, n, -1));
        cufftExecC2C(plan, out, out, CUFFT_INVERSE);  // in place
        cudaDeviceSynchronize();
        double back = 0;
        for (int i = 0; i < n * batch; i++)
            back = fmax(back, hypot(out[i].x / n - in[i].x, out[i].y / n - in[i].y));
        printf("%d: %d %d %d\n", n, (int)made, e < 1e-4 * n, back < 1e-4);
        cufftDestroy(plan);
    }
    // a cosine of three periods in 16 real points: two lines in the spectrum, of which R2C stores
    // one
    float* real;
    cudaMallocManaged(&real, 16 * sizeof(float));
    for (int i = 0; i < 16; i++)
        real[i] = cosf(float(2 * M_PI * 3 * i / 16)) + 1;
    cufftHandle forward, inverse;
    cufftPlan1d(&forward, 16, CUFFT_R2C, 1);
    cufftPlan1d(&inverse, 16, CUFFT_C2R, 1);
    cufftExecR2C(forward, real, out);
    cudaDeviceSynchronize();
    for (int k = 0; k < 9; k++)
        printf("%.0f ", fabs(out[k].x) + 0.001);
    cufftExecC2R(inverse, out, real);
    cudaDeviceSynchronize();
    printf(" %.3f %.3f\n", real[0] / 16, fabs(real[8] / 16));
    cufftDestroy(forward);
    cufftDestroy(inverse);
    cufftDoubleComplex* z;
    cudaMallocManaged(&z, 3 * sizeof(cufftDoubleComplex));
    z[0] = {1, 0}, z[1] = {2, 0}, z[2] = {4, 0};
    cufftPlan1d(&forward, 3, CUFFT_Z2Z, 1);
    cufftExecZ2Z(forward, z, z, CUFFT_FORWARD);
    cudaDeviceSynchronize();
    printf("%.6f %.6f %.6f\n", z[0].x, z[1].x, z[1].y);
    cufftDestroy(forward);
    cudaFree(in);
    cudaFree(out);
    cudaFree(real);
    cudaFree(z);
}
