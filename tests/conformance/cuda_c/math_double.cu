// Double-precision functions, and the type that an overload returns.
#include <cstdio>

__global__ void work(double* out, float* single) {
    int i = 0;
    out[i++] = sqrt(2.0), out[i++] = exp(1.0), out[i++] = log(10.0), out[i++] = pow(2.0, 0.5),
    out[i++] = sin(1.0);
    out[i++] = cos(1.0), out[i++] = atan2(1.0, -1.0), out[i++] = cbrt(2.0),
    out[i++] = hypot(1.0, 1.0);
    out[i++] = fma(1.0 + 0x1p-30, 1.0 - 0x1p-30, -1.0) * 0x1p60;
    out[i++] = rsqrt(2.0), out[i++] = sinpi(0.5), out[i++] = max(1.0, 2.0), out[i++] = min(3, 2),
    out[i++] = fabs(-2.5);
    out[i++] = __dadd_rn(0.1, 0.2), out[i++] = __dmul_rn(0.1, 3.0), out[i++] = __drcp_rn(3.0);
    out[i++] = __ddiv_rn(1.0, 3.0), out[i++] = __dsqrt_rn(3.0), out[i++] = __fma_rn(2.0, 3.0, 1.0);
    out[i++] = round(-0.5), out[i++] = rint(3.5), out[i++] = llround(2.5), out[i++] = abs(-3),
    out[i++] = abs(-3.5);
    single[0] = sqrt(2.0f);  // the float overload
    single[1] = sizeof(sqrt(2.0f)) + 10 * sizeof(sin(1.0)) + 100 * sizeof(max(1, 2)) +
                1000 * sizeof(abs(-1LL));
}

int main() {
    double* out;
    float* single;
    cudaMallocManaged(&out, 32 * sizeof(double));
    cudaMallocManaged(&single, 2 * sizeof(float));
    work<<<1, 1>>>(out, single);
    cudaDeviceSynchronize();
    for (int i = 0; i < 26; i++)
        printf("%.12f%c", out[i], i % 5 == 4 || i == 25 ? '\n' : ' ');
    printf("%.7f %.0f\n", single[0], single[1]);
    cudaFree(out);
    cudaFree(single);
}
