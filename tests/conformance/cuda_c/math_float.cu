// Single-precision functions at arguments where the result is exact or rounds the same everywhere.
#include <cstdio>

__global__ void work(float* out) {
    int i = 0;
    out[i++] = sqrtf(2.25f);
    out[i++] = rsqrtf(16.0f);
    out[i++] = cbrtf(27.0f);
    out[i++] = fabsf(-1.5f);
    out[i++] = floorf(-1.5f);
    out[i++] = ceilf(-1.5f);
    out[i++] = rintf(2.5f);
    out[i++] = roundf(2.5f);
    out[i++] = truncf(-2.7f);
    out[i++] = fmodf(7.5f, 2.0f);
    out[i++] = remainderf(7.5f, 2.0f);
    out[i++] = fmaf(2.0f, 3.0f, 4.0f);
    out[i++] = fmaxf(1.0f, NAN);
    out[i++] = fminf(-1.0f, 2.0f);
    out[i++] = copysignf(3.0f, -0.0f);
    out[i++] = powf(2.0f, 10.0f);
    out[i++] = exp2f(-3.0f);
    out[i++] = log2f(1024.0f);
    out[i++] = hypotf(3.0f, 4.0f);
    out[i++] = ldexpf(0.75f, 4);
    out[i++] = fdividef(9.0f, 4.0f);
    out[i++] = __saturatef(1.75f);
    out[i++] = __saturatef(-3.0f);
    out[i++] = norm3df(2.0f, 3.0f, 6.0f);
    out[i++] = fdimf(5.0f, 3.0f);
    out[i++] = nextafterf(1.0f, 2.0f) - 1.0f;
    int exponent;
    float fraction = frexpf(12.0f, &exponent), whole, part = modff(3.25f, &whole);
    out[i++] = fraction + exponent;
    out[i++] = part + 10 * whole;
    out[i++] = (isnan(0.0f / out[0] * INFINITY) ? 1 : 0) + (isinf(INFINITY) ? 2 : 0) +
               (isfinite(1.0f) ? 4 : 0) + (signbit(-1.0f) ? 8 : 0);
}

__global__ void near(float* out) {
    int i = 0;
    out[i++] = sinf(0.5f), out[i++] = cosf(0.5f), out[i++] = tanf(0.5f);
    out[i++] = asinf(0.5f), out[i++] = acosf(0.5f), out[i++] = atanf(0.5f),
    out[i++] = atan2f(1.0f, -2.0f);
    out[i++] = sinhf(0.5f), out[i++] = coshf(0.5f), out[i++] = tanhf(0.5f);
    out[i++] = expf(0.5f), out[i++] = expm1f(0.5f), out[i++] = logf(5.0f), out[i++] = log1pf(0.5f);
    out[i++] = log10f(5.0f), out[i++] = erff(0.5f), out[i++] = erfcf(0.5f),
    out[i++] = lgammaf(4.5f);
    out[i++] = tgammaf(4.5f), out[i++] = sinpif(0.25f), out[i++] = cospif(0.25f),
    out[i++] = exp10f(0.5f);
    sincosf(1.0f, &out[i], &out[i + 1]);
    i += 2;
    out[i++] = normcdff(0.5f), out[i++] = erfinvf(0.5f), out[i++] = rcbrtf(5.0f),
    out[i++] = rhypotf(1.0f, 2.0f);
}

int main() {
    float* out;
    cudaMallocManaged(&out, 64 * sizeof(float));
    work<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 29; i++)
        printf("%g%c", out[i], i % 10 == 9 || i == 28 ? '\n' : ' ');
    near<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 28; i++)
        printf("%.4f%c", out[i], i % 10 == 9 || i == 27 ? '\n' : ' ');
    cudaFree(out);
}
