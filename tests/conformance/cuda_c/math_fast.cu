// Fast intrinsics to their accuracy, constants, mixed minima and maxima, integer powers,
// comparisons of NaN.
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdio>
#include <math_constants.h>

__global__ void work(float* out, double* d, long long* l) {
    int i = 0;
    out[i++] = __expf(1.0f), out[i++] = __logf(2.0f), out[i++] = __log2f(8.0f),
    out[i++] = __log10f(100.0f);
    out[i++] = __sinf(1.0f), out[i++] = __cosf(1.0f), out[i++] = __tanf(1.0f),
    out[i++] = __powf(2.0f, 3.0f);
    out[i++] = __fdividef(1.0f, 4.0f), out[i++] = __exp10f(2.0f), out[i++] = __frsqrt_rn(4.0f),
    out[i++] = __fmul_rn(3, 4);
    out[i++] = fmaxf(CUDART_NAN_F, 2.0f), out[i++] = CUDART_PI_F, out[i++] = CUDART_INF_F > FLT_MAX,
    out[i++] = powf(-2.0f, 3.0f);
    out[i++] = normf(3, out + 8) > 0, out[i++] = fabsf(-0.0f), out[i++] = __fadd_rd(1.0f, 2.0f),
    out[i++] = j0f(0.0f);
    int j = 0;
    d[j++] = CUDART_PI, d[j++] = pow(2.0, 10), d[j++] = pow(3.0f, 2), d[j++] = max(1.5, 2.5),
    d[j++] = fmod(-7.0, 3.0);
    d[j++] = min(2.5f, 1.5f), d[j++] = norm3d(1.0, 2.0, 2.0), d[j++] = exp10(3.0),
    d[j++] = log2(32.0), d[j++] = fabs(erfcinv(1.0));
    int k = 0;
    l[k++] = max(3, 5), l[k++] = min(-3, 5), l[k++] = max(3u, 5u), l[k++] = min(3LL, -5LL),
    l[k++] = max(3ull, 1ull << 40);
    l[k++] = abs(-7), l[k++] = llabs(-7LL), l[k++] = INT_MAX,
    l[k++] = (CUDART_NAN_F == CUDART_NAN_F), l[k++] = isnan(CUDART_NAN);
    l[k++] = (int)-2.9f, l[k++] = (unsigned)3.9f, l[k++] = lroundf(-2.5f), l[k++] = lrint(2.5),
    l[k++] = ilogb(1000.0);
    l[k++] = -7 / 2, l[k++] = -7 % 3, l[k++] = -8 >> 1, l[k++] = (unsigned char)300,
    l[k++] = 5u - 6u;
}

int main() {
    float* out;
    double* d;
    long long* l;
    cudaMallocManaged(&out, 20 * sizeof(float));
    cudaMallocManaged(&d, 10 * sizeof(double));
    cudaMallocManaged(&l, 20 * sizeof(long long));
    work<<<1, 1>>>(out, d, l);
    cudaDeviceSynchronize();
    for (int i = 0; i < 20; i++)
        printf("%.3f%c", out[i], i % 10 == 9 ? '\n' : ' ');
    for (int i = 0; i < 10; i++)
        printf("%.6f ", d[i]);
    printf("\n");
    for (int i = 0; i < 20; i++)
        printf("%lld%c", l[i], i % 10 == 9 ? '\n' : ' ');
    cudaFree(out);
    cudaFree(d);
    cudaFree(l);
}
