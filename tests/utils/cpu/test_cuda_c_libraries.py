"""The CPU versions of CUDA's libraries are right: rounding bit for bit, random numbers bit for bit,
products close.
"""

import ctypes
import os
import signal
import subprocess
import time
from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.conformance import derive, mistakes
from tests.needs import cpp_compiler
from tests.processes import completed
from utils.cpu.cuda_c.build import build_program
from utils.cpu.cuda_c.library import Library

cpp_compiler()

AS_CHAPTERS_CALL_THEM = pytest.mark.nightly("by day as chapters do: tests/course/libraries")
RANDOM = np.random.default_rng(5)
KERNELS = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>
#include <curand.h>

__global__ void half_to_float(unsigned short* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __half2float(__ushort_as_half(in[i]));
}
__global__ void float_to_half(float* in, unsigned short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __half_as_ushort(__float2half(in[i]));
}
__global__ void float_to_bfloat16(float* in, unsigned short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __bfloat16_as_ushort(__float2bfloat16(in[i]));
}
__global__ void directed(double* in, unsigned short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = __half_as_ushort(__double2half(in[i]));
    out[n + i] = __half_as_ushort(__float2half_rz((float)in[i]));
    out[2 * n + i] = __half_as_ushort(__float2half_ru((float)in[i]));
    out[3 * n + i] = __half_as_ushort(__float2half_rd((float)in[i]));
}
template <typename H>
__device__ H compute(int operation, H a, H b, H c) {
    switch (operation) {
        case 0: return a + b;
        case 1: return a - b;
        case 2: return a * b;
        case 3: return a / b;
        case 4: return hsqrt(a);
    }
    return __hfma(a, b, c);
}
__global__ void half_operation(int operation, unsigned short* a, unsigned short* b, unsigned \
short* c,
                               unsigned short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = __half_as_ushort(compute(operation, __ushort_as_half(a[i]), __ushort_as_half(b[i]),
                                          __ushort_as_half(c[i])));
}
__global__ void bfloat16_operation(int operation, unsigned short* a, unsigned short* b, unsigned \
short* c,
                                   unsigned short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = __bfloat16_as_ushort(compute(operation, __ushort_as_bfloat16(a[i]), \
__ushort_as_bfloat16(b[i]),
                                              __ushort_as_bfloat16(c[i])));
}
template <typename S>
__device__ void draw(unsigned long long seed, unsigned long long sequence, unsigned long long \
offset, unsigned* out) {
    S state;
    curand_init(seed, sequence, offset, &state);
    for (int i = 0; i < 8; i++) out[i] = curand(&state);
}
__global__ void xorwow(unsigned long long seed, unsigned long long sequence, unsigned long long \
offset, unsigned* out) {
    draw<curandStateXORWOW_t>(seed, sequence, offset, out);
}
__global__ void philox(unsigned long long seed, unsigned long long sequence, unsigned long long \
offset, unsigned* out) {
    draw<curandStatePhilox4_32_10_t>(seed, sequence, offset, out);
}
__global__ void poisson(unsigned* out, double mean, int n) {
    curandState state;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curand_init(3, i, 0, &state);
    if (i < n) out[i] = curand_poisson(&state, mean);
}
__global__ void normals(double* out, int n) {
    curandStatePhilox4_32_10_t state;
    curand_init(3, 0, 0, &state);
    for (int i = 0; i < n; i += 2) {
        out[i] = curand_normal(&state);
        out[i + 1] = curand_normal_double(&state);
    }
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    source = tmp_path_factory.mktemp("libraries") / "kernels.cu"
    source.write_text(KERNELS)
    library = Library(source)

    def launch(name, *arguments, threads):
        kinds = {np.ndarray: lambda a: ctypes.c_void_p(a.ctypes.data), int: ctypes.c_int}
        converted = [kinds.get(type(a), lambda a: a)(a) for a in arguments]
        buffers = [
            (a.ctypes.data, a.nbytes, "array") for a in arguments if isinstance(a, np.ndarray)
        ]
        library.launch(name, (-(-threads // 256), 1, 1), (256, 1, 1), 0, converted, buffers=buffers)

    return launch


def equal_bits(actual, expected):
    """The same 16-bit floats, any NaN being as good as another."""
    nan = np.isnan(expected)
    assert np.isnan(actual.view(expected.dtype)[nan]).all()
    np.testing.assert_array_equal(actual[~nan], expected.view(np.uint16)[~nan])


ALL = np.arange(65536, dtype=np.uint16)


def test_every_half_to_float(kernels):
    out = np.empty(65536, np.float32)
    kernels("half_to_float", ALL, out, 65536, threads=65536)
    np.testing.assert_array_equal(out, ALL.view(np.float16).astype(np.float32))


def halves_and_ties():
    """Every finite half, every midpoint between neighbours, and the floats next to those."""
    finite = np.sort(ALL.view(np.float16)[np.isfinite(ALL.view(np.float16))].astype(np.float32))
    ties = (finite[1:] + finite[:-1]) / 2
    up, down = np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))
    beyond = np.array(
        [65519.996, 65520, 65536, 1e9, -1e9, np.inf, -np.inf, np.nan, 1e-40], np.float32
    )
    return np.concatenate([finite, ties, up, down, beyond])


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_float_to_half_rounds_to_nearest_even(kernels):
    every_8191st = np.arange(0, 2**32, 8191, dtype=np.uint64).astype(np.uint32).view(np.float32)
    values = np.concatenate([halves_and_ties(), every_8191st])
    out = np.empty(values.size, np.uint16)
    kernels("float_to_half", values, out, values.size, threads=values.size)
    equal_bits(out, values.astype(np.float16))


def test_float_to_bfloat16_rounds_to_nearest_even(kernels):
    values = np.arange(0, 2**32, 8191, dtype=np.uint64).astype(np.uint32).view(np.float32)
    out = np.empty(values.size, np.uint16)
    kernels("float_to_bfloat16", values, out, values.size, threads=values.size)
    expected = torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    nan = np.isnan(values)
    np.testing.assert_array_equal(out[~nan], expected[~nan])
    assert (out[nan] & 0x7FFF > 0x7F80).all()


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_directed_rounding(kernels):
    values = halves_and_ties().astype(np.float64)
    values = values[np.isfinite(values)]
    out = np.empty((4, values.size), np.uint16)
    kernels("directed", values, out, values.size, threads=values.size)
    np.testing.assert_array_equal(out[0], values.astype(np.float16).view(np.uint16))
    exact = values.astype(np.float32)
    zero, up, down = (row.view(np.float16) for row in out[1:])
    assert (up >= exact).all() and (np.nextafter(up, np.float16(-np.inf)) < exact).all()
    assert (down <= exact).all() and (np.nextafter(down, np.float16(np.inf)) > exact).all()
    np.testing.assert_array_equal(zero, np.where(exact >= 0, down, up))


@pytest.mark.filterwarnings("ignore")
def test_half_arithmetic(kernels):
    n = 300_000
    a, b, c = RANDOM.integers(0, 65536, (3, n)).astype(np.uint16)
    x, y = a.view(np.float16), b.view(np.float16)
    for operation, expected in enumerate([x + y, x - y, x * y, x / y, np.sqrt(x)]):
        out = np.empty(n, np.uint16)
        kernels("half_operation", operation, a, b, c, out, n, threads=n)
        equal_bits(out, expected)


@pytest.mark.filterwarnings("ignore")
def test_bfloat16_arithmetic(kernels):
    n = 300_000
    a, b, c = RANDOM.integers(0, 65536, (3, n)).astype(np.uint16)
    x, y = (torch.from_numpy(v.view(np.int16)).view(torch.bfloat16) for v in (a, b))
    for operation, expected in enumerate([x + y, x - y, x * y, x / y, torch.sqrt(x)]):
        out = np.empty(n, np.uint16)
        kernels("bfloat16_operation", operation, a, b, c, out, n, threads=n)
        nan = torch.isnan(expected).numpy()
        bits = expected.view(torch.int16).numpy().view(np.uint16)
        np.testing.assert_array_equal(out[~nan], bits[~nan])
        assert (out[nan] & 0x7FFF > 0x7F80).all()


def rounded(value, digits, least):
    """A Fraction to `digits` binary digits, not finer than 2**least, ties to even: the definition,
    without floats.
    """
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > abs(value):
        exponent -= 1
    quantum = Fraction(2) ** max(exponent - digits + 1, least)
    return round(value / quantum) * quantum


@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_fused_multiply_add_rounds_once(kernels, kind):
    n = 3000
    a, b, c = RANDOM.integers(0, 65536, (3, n)).astype(np.uint16)
    low = (
        0x83FF if kind == "half" else 0x807F
    )  # small factors: the product decides between two neighbours of c
    a[: n // 2] &= low
    b[: n // 2] &= low
    out = np.empty(n, np.uint16)
    kernels(f"{kind}_operation", 5, a, b, c, out, n, threads=n)
    for bits in zip(a, b, c, out, strict=True):
        bits = np.array(bits, np.uint16)
        if kind == "half":
            x, y, z, got = map(float, bits.view(np.float16))
        else:
            x, y, z, got = map(float, (bits.astype(np.uint32) << 16).view(np.float32))
        if not all(map(np.isfinite, (x, y, z))):
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        expected = rounded(exact, 11, -24) if kind == "half" else rounded(exact, 8, -133)
        limit = 65504 if kind == "half" else Fraction(255, 128) * 2**127
        if abs(expected) > limit:
            assert np.isinf(got) and (got > 0) == (exact > 0)
        else:
            assert Fraction(got) == expected, (x, y, z)


@pytest.mark.parametrize("name, generator", [("xorwow", derive.Xorwow), ("philox", derive.Philox)])
def test_random_bits_are_curands(kernels, name, generator):
    places = [
        (0, 0, 0),
        (1234, 1, 3),
        (2**64 - 1, 2**40 + 5, 10**12),
        (42, 77, 4096),
        (7, 12345678, 1),
    ]
    for seed, sequence, offset in places:
        out = np.empty(8, np.uint32)
        kernels(name, *map(ctypes.c_ulonglong, (seed, sequence, offset)), out, threads=1)
        state = generator(seed, sequence, offset)
        assert out.tolist() == [state.next() for _ in range(8)]


def test_poisson_numbers(kernels):
    """Of the right distribution, and those of NVIDIA's header, compiled for the host."""
    headers = {
        0.5: [1, 0, 0, 1, 2, 1, 1, 0, 1, 0, 2, 1],
        20.0: [27, 14, 9, 15, 28, 25, 15, 24, 24, 15, 22, 32],
        100.0: [113, 96, 100, 103, 111, 105, 113, 80, 113, 90, 98, 108],
        5000.0: [5046, 5132, 5115, 5133, 5035, 5116, 4957, 5013, 5064, 5064, 4991, 5015],
    }
    for mean, first in headers.items():
        n = 4096
        out = np.empty(n, np.uint32)
        kernels("poisson", out, ctypes.c_double(mean), n, threads=n)
        assert out[: len(first)].tolist() == first
        error = 5 * np.sqrt(mean / n)
        assert abs(out.mean() - mean) < error and abs(out.var() / mean - 1) < 5 * np.sqrt(
            2.0 / n + 1 / (mean * n)
        )


def test_normal_numbers(kernels):
    out = np.empty(40_000)
    kernels("normals", out, out.size, threads=1)
    for values in (out[::2], out[1::2]):
        n = values.size
        assert abs(values.mean()) < 5 / np.sqrt(n) and abs(values.var() - 1) < 5 * np.sqrt(2 / n)
        assert abs((np.abs(values) < 1).mean() - 0.6827) < 0.02


def run_program(tmp_path, text):
    source = tmp_path / "program.cu"
    source.write_text(text)
    done = mistakes.run(build_program(source))
    assert done.returncode == 0, done.stderr
    return done.stdout


# Computed with NVIDIA's cuRAND 10.4, by its generators that run on the host: XORWOW's, Philox's.
CURAND_NUMBERS = """\
253d5e15 d1f7605a de75663f e5dcbada 6f558604 245d7680 406c7b5a
-0.1720 -0.3146 -0.5909 -0.1236 2.6128 -2.0460
2.200237251 2.379849287 2.839186058 -1.182297538 3.090330070 4.271206141
0.011127511229 0.509811686144 0.257679323683 0.876661910523 0.922885447744
10 6 16 10 9 5
1939 2042 2014 1960 1960 1974
200296 200078 199970 199920 199775 200564
35996639172083 0.3623 0.7458 0x1.0172a2p-1
2090b348 da7cf0ab 52fc7c75 3aad5500 7a6635c0 df22962d 9eeede35
-0.8127 1.8412 -1.4446 2.4828 2.0122 -0.9833
2.330473597 -0.449208056 0.606984132 1.454482585 1.134666750 -2.330499046
0.784522558603 0.890991354075 0.065279829374 0.253299366751 0.650559870283
9 16 10 12 10 13
2012 2036 2047 1983 1926 2025
199453 200692 199348 199798 200061 200883
35998773587429 -0.2966 -0.8572 0x1.addf54p-1
"""


def test_host_generators_numbers_are_curands(tmp_path):
    """Whichever calls follow one another: each goes on where the last one left the sequences."""
    printed = run_program(
        tmp_path,
        """
#include <cstdio>
#include <curand.h>
#include <vector>
template <class T>
void show(const char* format, const std::vector<T>& values) {
    for (T value : values) printf(format, value);
    printf("\\n");
}
int main() {
    for (auto type : {CURAND_RNG_PSEUDO_DEFAULT, CURAND_RNG_PSEUDO_PHILOX4_32_10}) {
        curandGenerator_t g;
        curandCreateGeneratorHost(&g, type);
        curandSetPseudoRandomGeneratorSeed(g, 1234);
        std::vector<unsigned> a(300000), few(6);
        std::vector<float> normal(6), many(20000);
        std::vector<double> wide(5), normal_wide(6);
        curandGenerate(g, a.data(), a.size());
        for (int i : {0, 1, 5, 4095, 4096, 65536, 262144}) printf("%08x ", a[i]);
        puts("");
        curandGenerateNormal(g, normal.data(), 6, 1, 2);
        show("%.4f ", normal);
        curandGenerateNormalDouble(g, normal_wide.data(), 6, 1, 2);
        show("%.9f ", normal_wide);
        curandGenerateUniformDouble(g, wide.data(), 5);
        show("%.12f ", wide);
        for (double mean : {10.0, 1999.0, 2e5}) {
            curandGeneratePoisson(g, few.data(), 6, mean);
            show("%u ", few);
        }
        curandGeneratePoisson(g, a.data(), a.size(), 800);
        unsigned long long sum = 0;
        for (size_t i = 0; i < a.size(); i++) sum += (i + 1) * a[i];
        curandGenerateNormal(g, many.data(), many.size(), 0, 1);
        float u;
        curandGenerateUniform(g, &u, 1);
        printf("%llu %.4f %.4f %a\\n", sum, many[8192], many[19999], u);
        curandDestroyGenerator(g);
    }
}""",
    )
    assert [line.split() for line in printed.splitlines()] == [
        line.split() for line in CURAND_NUMBERS.splitlines()
    ]


@AS_CHAPTERS_CALL_THEM
def test_gemm_of_many_sizes(tmp_path):
    # All transpositions, sizes around those of the tiles, padded leading dimensions, alpha and
    # beta, against plain sums.
    printed = run_program(
        tmp_path,
        """
#include <cmath>
#include <cstdio>
#include <cublas_v2.h>
#include <vector>
template <class T, class G>
double worst(G gemm) {
    cublasHandle_t handle;
    cublasCreate(&handle);
    double worst = 0;
    unsigned state = 1;
    auto random = [&] { return T((state = state * 1664525u + 1013904223u) / 4294967296.0 - 0.5); };
    for (int m : {1, 63, 65}) for (int n : {1, 64, 70}) for (int k : {1, 127, 130}) for (int ops = \
0; ops < 4; ops++) {
        auto ta = ops & 1 ? CUBLAS_OP_T : CUBLAS_OP_N, tb = ops & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
        int lda = (ops & 1 ? k : m) + 3, ldb = (ops & 2 ? n : k) + 1, ldc = m + 2;
        std::vector<T> a(lda * (ops & 1 ? m : k)), b(ldb * (ops & 2 ? k : n)), c(ldc * n), r;
        for (auto* v : {&a, &b, &c}) for (T& x : *v) x = random();
        T *da, *db, *dc, alpha = T(1.5), beta = T(-0.5);
        cudaMalloc(&da, a.size() * sizeof(T)), cudaMalloc(&db, b.size() * sizeof(T)), \
cudaMalloc(&dc, c.size() * sizeof(T));
        cudaMemcpy(da, a.data(), a.size() * sizeof(T), cudaMemcpyHostToDevice);
        cudaMemcpy(db, b.data(), b.size() * sizeof(T), cudaMemcpyHostToDevice);
        cudaMemcpy(dc, c.data(), c.size() * sizeof(T), cudaMemcpyHostToDevice);
        if (gemm(handle, ta, tb, m, n, k, &alpha, da, lda, db, ldb, &beta, dc, ldc)) return 1e9;
        r = c;
        cudaMemcpy(r.data(), dc, c.size() * sizeof(T), cudaMemcpyDeviceToHost);
        for (int i = 0; i < ldc; i++) for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k && i < m; p++)
                sum += double(a[ops & 1 ? p + i * lda : i + p * lda]) * double(b[ops & 2 ? j + p * \
ldb : p + j * ldb]);
            double want = i < m ? 1.5 * sum - 0.5 * double(c[i + j * ldc]) : double(c[i + j * ldc]);
            worst = std::fmax(worst, std::fabs(want - double(r[i + j * ldc])));
        }
        cudaFree(da), cudaFree(db), cudaFree(dc);
    }
    cublasDestroy(handle);
    return worst;
}
int main() { printf("%d %d\\n", worst<float>(cublasSgemm) < 1e-5, worst<double>(cublasDgemm) < \
1e-13); }""",
    )
    assert printed == "1 1\n"


def test_a_mode_rounds_inputs_to_tf32_only_when_asked(tmp_path):
    printed = run_program(
        tmp_path,
        """
#include <cmath>
#include <cstdio>
#include <cublas_v2.h>
int main() {
    const int k = 256;
    float *a, *c, one = 1, zero = 0;
    cudaMallocManaged(&a, k * sizeof(float));
    cudaMallocManaged(&c, sizeof(float));
    double exact = 0;
    for (int i = 0; i < k; i++) a[i] = 1.0f / (3 + i), exact += double(a[i]) * a[i];
    cublasHandle_t handle;
    cublasCreate(&handle);
    for (auto mode : {CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH}) {
        cublasSetMathMode(handle, mode);
        cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, k, &one, a, k, a, k, &zero, c, 1);
        cudaDeviceSynchronize();
        printf("%d ", std::fabs(*c / exact - 1) > 1e-5);
    }
    cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH);
    cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, k, &one, a, CUDA_R_32F, k, a, CUDA_R_32F, \
k,
                 &zero, c, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
    cudaDeviceSynchronize();
    printf("%d %d\\n", std::fabs(*c / exact - 1) > 1e-5, std::fabs(*c / exact - 1) < 1e-3);
    cublasDestroy(handle), cudaFree(a), cudaFree(c);
}""",
    )
    assert printed == "0 1 0 1 1\n"


@AS_CHAPTERS_CALL_THEM
def test_every_algorithm_of_cublas_multiplies(tmp_path):
    printed = run_program(
        tmp_path,
        """
#include <cstdio>
#include <cublas_v2.h>
int main() {
    float *a, *c, one = 1, zero = 0;
    cudaMallocManaged(&a, 4 * sizeof(float));
    cudaMallocManaged(&c, 4 * sizeof(float));
    for (int i = 0; i < 4; i++) a[i] = i + 1;
    cublasHandle_t handle;
    cublasCreate(&handle);
    for (auto way : {CUBLAS_GEMM_DFALT, CUBLAS_GEMM_ALGO23, CUBLAS_GEMM_DFALT_TENSOR_OP,
                     CUBLAS_GEMM_ALGO15_TENSOR_OP}) {
        cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, CUDA_R_32F, 2, a,
                     CUDA_R_32F, 2, &zero, c, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, way);
        cudaDeviceSynchronize();
        printf("%d %g ", way, c[3]);
    }
    cublasDestroy(handle), cudaFree(a), cudaFree(c);
}""",
    )
    assert printed == "-1 22 23 22 99 22 115 22 "


@AS_CHAPTERS_CALL_THEM
def test_matmul_with_gelu_in_half_precision(tmp_path):
    printed = run_program(
        tmp_path,
        """
#include <cstdio>
#include <cublasLt.h>
template <class T> void run(cudaDataType type) {
    const int m = 3, n = 2, k = 2;
    T *a, *b, *d, *bias;
    for (T** p : {&a, &b, &d, &bias}) cudaMallocManaged(p, 8 * sizeof(T));
    for (int i = 0; i < 8; i++)
        a[i] = T(0.25f * i), b[i] = T(0.5f * i - 1), bias[i] = T(i - 1.0f), d[i] = T(99.0f);
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t la, lb, ld;
    cublasLtCreate(&lt);
    cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    auto kind = CUBLASLT_EPILOGUE_GELU_BIAS;
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &kind, sizeof kind);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    cublasLtMatrixLayoutCreate(&la, type, m, k, m);
    cublasLtMatrixLayoutCreate(&lb, type, k, n, k);
    cublasLtMatrixLayoutCreate(&ld, type, m, n, m);
    float one = 1, zero = 0;
    if (cublasLtMatmul(lt, desc, &one, a, la, b, lb, &zero, d, ld, d, ld, nullptr, nullptr, 0, 0))
        printf("failed ");
    cudaDeviceSynchronize();
    for (int i = 0; i < m * n; i++) printf("%.9g ", float(d[i]));
}
int main() {
    run<float>(CUDA_R_32F);
    run<__half>(CUDA_R_16F);
    run<__nv_bfloat16>(CUDA_R_16BF);
}""",
    )
    values = np.array(printed.split(), float).reshape(3, 6)
    a, b = 0.25 * np.arange(6).reshape(2, 3).T, 0.5 * np.arange(4).reshape(2, 2).T - 1
    x = a @ b + np.array([-1, 0, 1])[:, None]
    exact = torch.nn.functional.gelu(torch.from_numpy(x), approximate="tanh").numpy().T.ravel()
    for row, error in zip(values, (1e-6, 1e-3, 8e-3), strict=True):
        np.testing.assert_allclose(row, exact, rtol=error, atol=error / 10)


def test_matmul_takes_a_bias_pointer_only_where_the_epilogue_adds_it(tmp_path):
    printed = run_program(
        tmp_path,
        """
#include <cstdio>
#include <cublasLt.h>
int run(cublasLtEpilogue_t kind, bool with_bias, cublasLtOrder_t order) {
    float *x, *bias, one = 1, zero = 0;
    cudaMallocManaged(&x, 12 * sizeof(float));
    cudaMallocManaged(&bias, 2 * sizeof(float));
    for (int i = 0; i < 12; i++) x[i] = i < 8 ? i - 4 : 99;
    bias[0] = 100, bias[1] = 200;
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t in, out;
    cublasLtCreate(&lt);
    cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &kind, sizeof kind);
    if (with_bias)
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    cublasLtMatrixLayoutCreate(&in, CUDA_R_32F, 2, 2, 2);
    cublasLtMatrixLayoutCreate(&out, CUDA_R_32F, 2, 2, 2);
    cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order);
    int status = cublasLtMatmul(lt, desc, &one, x, in, x + 4, in, &zero, x + 8, out, x + 8, out,
                                nullptr, nullptr, 0, 0);
    cudaDeviceSynchronize();
    printf("%d: %g %g %g %g\\n", status, x[8], x[9], x[10], x[11]);
    return status;
}
int main() {
    run(CUBLASLT_EPILOGUE_RELU, false, CUBLASLT_ORDER_COL);
    run(CUBLASLT_EPILOGUE_RELU, true, CUBLASLT_ORDER_COL);
    run(CUBLASLT_EPILOGUE_BIAS, true, CUBLASLT_ORDER_COL);
    run(CUBLASLT_EPILOGUE_BIAS, false, CUBLASLT_ORDER_COL);
    run(CUBLASLT_EPILOGUE_BIAS, true, CUBLASLT_ORDER_ROW);
    run(CUBLASLT_EPILOGUE_DEFAULT, false, CUBLASLT_ORDER_ROW);
}""",
    )
    product = np.array([[-4, -2], [-3, -1]]) @ np.array([[0, 2], [1, 3]])
    biased = product + np.array([[100], [200]])

    def line(status, numbers):
        return f"{status}: " + " ".join(str(value) for value in numbers) + "\n"

    invalid, not_supported, untouched = 7, 15, 4 * [99]
    assert printed == (
        line(0, np.maximum(product, 0).T.ravel())
        + line(invalid, untouched)
        + line(0, biased.T.ravel())
        + line(invalid, untouched)
        + line(not_supported, untouched)
        + line(0, product.ravel())
    )


def test_an_odd_count_of_normal_numbers_is_refused_for_xorwow_alone(tmp_path):
    printed = run_program(
        tmp_path,
        """
#include <cstdio>
#include <curand.h>
int main() {
    float values[8] = {0};
    for (auto type : {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_PHILOX4_32_10}) {
        curandGenerator_t generator;
        curandCreateGeneratorHost(&generator, type);
        for (int n : {7, 8})
            printf("%d ", curandGenerateNormal(generator, values, n, 0, 1));
        printf("%d ", values[6] != 0);
        curandDestroyGenerator(generator);
    }
}""",
    )
    assert printed == "105 0 1 0 0 1 "


def test_generators_that_are_not_offered_are_refused_by_name(tmp_path):
    source = tmp_path / "generators.cu"
    source.write_text("""
#include <cstdio>
#include <cufftXt.h>
#include <curand.h>
int main() {
    cufftHandle plan;
    printf("%d ", cufftPlan1d(&plan, 8, CUFFT_C2C, 1));
    curandGenerator_t generator;
    printf("%d ", curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_MRG32K3A));
    printf("%d ", curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32));
    unsigned* numbers;
    cudaMalloc(&numbers, 16);
    printf("%d", curandGenerate(generator, numbers, 4));
    cudaFree(numbers);
}""")
    done = mistakes.run(build_program(source))
    assert done.stdout == "0 103 103 101"
    refused = [line.split(": ")[2] for line in done.stderr.splitlines()]
    assert [text.split(" is ")[0] for text in refused] == [
        "CURAND_RNG_PSEUDO_MRG32K3A",
        "a quasi-random generator (Sobol)",
    ]


@AS_CHAPTERS_CALL_THEM
def test_names_of_other_versions(tmp_path):
    printed = run_program(
        tmp_path,
        """
#include <cstdio>
#include <cublas_v2.h>
#include <cufft.h>
#include <thrust/device_vector.h>
int main() {
    cublasHandle_t handle;
    thrust::device_vector<float> x(4, 2.0f);
    float result = 0;
    std::cout << cublasCreate_v2(&handle);
    cublasSdot_v2(handle, 4, x.data().get(), 1, x.data().get(), 1, &result);
    std::cout << " " << result << " " << CUFFT_PARSE_ERROR << " " << CUFFT_LICENSE_ERROR;
    cublasDestroy_v2(handle);
}""",
    )
    assert printed == "0 16 12 15"


LIBRARY_CALLS = """
#include <cstdlib>
#include <cublas_v2.h>
#include <cufft.h>
#include <thrust/sort.h>
int main(int, char** names) {
    float *a, *small, one = 1;
    cudaMalloc(&a, 256);
    cudaMemset(a, 0, 256);
    cudaMalloc(&small, 200);
    cudaMemset(small, 0, 200);
    cublasHandle_t blas;
    cublasCreate(&blas);
    cufftHandle plan;
    cufftPlan1d(&plan, 64, CUFFT_C2C, 1);
    thrust::device_ptr<float> first(a);
    switch (atoi(names[1])) {
        case 0: cublasSaxpy(blas, 128, &one, a, 1, a, 1); break;
        case 1: cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one,
                            nullptr, 8, a, 8, &one, a, 8); break;
        case 2: cufftExecC2C(plan, (cufftComplex*)a, (cufftComplex*)a, CUFFT_FORWARD); break;
        case 3: thrust::sort(first, first + 100); break;
        case 4: cublasScopy(blas, 51, a, 1, small, 1); break;
    }
    return cudaDeviceSynchronize();
}"""


FAST = pytest.mark.nightly("by day with the slow checks; programs of broken/ are told by the fast")


@pytest.mark.parametrize("check", [pytest.param(False, marks=FAST), True], ids=["fast", "check"])
def test_a_wrong_pointer_is_told_with_the_call_of_the_library(tmp_path, check):
    source = tmp_path / "calls.cu"
    source.write_text(LIBRARY_CALLS)
    executable = build_program(source, check=check)
    lines = LIBRARY_CALLS.split("\n")
    for i, name in enumerate(["cublasSaxpy", "cublasSgemm", "cufftExecC2C", "thrust::sort"]):
        said = mistakes.run(executable, str(i)).stderr
        place = next(n for n, line in enumerate(lines, 1) if f"case {i}:" in line)
        places = [f"calls.cu:{line}: error: " in said for line in (place, place + 1)]
        assert any(places), said
        assert f"in the work of {name}\n" in said, said
    said = mistakes.run(executable, "4").stderr  # one element too many, in the same page
    behind = "cublasScopy wrote past the end of the 200 bytes"
    assert ("in the work of cublasScopy\n" if check else behind) in said, said


@AS_CHAPTERS_CALL_THEM
def test_headers_survive_the_programs_macros(tmp_path):
    letters = [chr(c) for c in (*range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1))]
    macros = letters + "BLOCK TILE WIDTH SIZE size count rows tile alpha sum block".split()
    standard = "algorithm chrono complex cstdio functional mutex numeric random tuple vector"
    libraries = (
        "cublas_v2.h cublasLt.h cublasXt.h cudnn.h cufft.h cusparse.h "
        "curand.h cuda_bf16.h thrust/device_vector.h thrust/random.h cub/cub.cuh"
    ).split()
    lines = [f"#include <{name}>" for name in standard.split()]
    lines += [f"#define {name} 3" for name in macros]
    lines += [f"#include <{name}>" for name in libraries]
    lines += ['int main() { printf("%d\\n", N + x + TILE); }']
    assert run_program(tmp_path, "\n".join(lines)) == "9\n"


# ---- a rank that comes late

LATE = """
#include <cstdio>
#include <ctime>
#include <thread>
#include <nccl.h>

void work(int rank, ncclUniqueId id) {
    cudaSetDevice(rank);
    ncclComm_t comm;
    ncclCommInitRank(&comm, 2, id, rank);
    float* x;
    cudaMalloc(&x, sizeof(float));
    timespec t{};
    if (rank == 1)
        printf("computes\\n"), fflush(stdout);
    while (rank == 1 && t.tv_sec + 1e-9 * t.tv_nsec < 0.6)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    ncclResult_t result = ncclAllReduce(x, x, 1, ncclFloat, ncclSum, comm, 0);
    printf("%d\\n", int(result));
    cudaFree(x);
    ncclCommDestroy(comm);
}
int main() {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::thread other(work, 1, id);
    work(0, id);
    other.join();
}
"""


def test_a_machine_that_stands_still_makes_no_rank_wait_for_ever(tmp_path):
    source = tmp_path / "late.cu"
    source.write_text(LATE)
    settings = {**os.environ, "CUDA_CPU_DEVICES": "2"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    program = subprocess.Popen([build_program(source)], env=settings, **pipes)
    assert program.stdout.readline() == "computes\n"
    time.sleep(0.3)  # the other one waits for it by now, or the test has nothing to find
    program.send_signal(signal.SIGSTOP)
    time.sleep(2.5)  # longer than ranks that do nothing wait
    program.send_signal(signal.SIGCONT)
    assert program.communicate()[0] == "0\n0\n"
    assert program.returncode == 0


#: What public programs do (Rodinia's dwt2d, simplegemm, fast.cu, cuda-samples)
COUNTED_ON = """
#include <cub/cub.cuh>
template <int W> struct Filter {
    int kept[W];
    template <bool B> __device__ void go(int* out) { kept[0] = B ? 5 : 6; *out = kept[0]; }
    __device__ static void run(int* out) { __shared__ Filter<W> f; f.go<true>(out); }
};
__device__ void keep_in_registers(int registers[2][4]) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) asm volatile("" : "+r"(registers[i][j])::"memory");
}
__global__ void kernel(int* out) {
    int registers[2][4] = {};
    keep_in_registers(registers);
    Filter<4>::run(out + registers[1][2]);
}
int main() {
    auto begun = std::chrono::steady_clock::now();
    int *out, said;
    cudaMalloc(&out, sizeof(int));
    kernel<<<1, 1>>>(out);
    cudaMemcpy(&said, out, sizeof(int), cudaMemcpyDeviceToHost);
    cudaFree(out);
    printf("%d %d\\n", said, THRUST_VERSION >= 300000 && begun.time_since_epoch().count() > 0);
}
"""


@AS_CHAPTERS_CALL_THEM
def test_what_public_programs_count_on_builds(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text("#include <cstdio>\n" + COUNTED_ON)
    assert completed([str(build_program(path))]).stdout == "5 1\n"


# Without a header for std::min, with constraints of several literals, an enumeration from a
# parameter of the template, driver's error codes; curand_kernel.h brings curand.h; which lane holds
# which element of a fragment.
PUBLIC = r"""
#include <cuda.h>
#include <curand_kernel.h>
#include <mma.h>
#include <type_traits>
template <int threads>
struct Shape {
    enum { nt = threads };
};
template <class S>
__device__ int dependent_enum(int cta) {
    enum { nt = S::nt, twice = 2 * S::nt };
    int begin = nt * cta + twice;
    return begin;
}
template <bool B, class T>
using If = typename std::enable_if<B, T>::type;
template <class T>
__device__ If<!(sizeof(T) == 1 && sizeof(T) == 2), T> behind_a_condition(T x) {
    T result = dependent_enum<Shape<4>>(2);
    return result + x;
}
static int* room(int bytes, bool managed = true) {
    int* p = nullptr;
    return managed && cudaMallocManaged(&p, bytes) == 0 ? p : nullptr;
}
template <class Fragment, class... Layout>
__device__ void lane_13(const void* numbers, Layout... layout) {
    using T = typename Fragment::storage_element_type;
    Fragment f;
    nvcuda::wmma::load_matrix_sync(f, static_cast<const T*>(numbers), 64, layout...);
    if (threadIdx.x == 13) {
        for (int i = 0; i < f.num_elements; i++)
            printf("%d.%d ", int(f.x[i]) / 64, int(f.x[i]) % 64);
        printf("\n");
    }
}
template <class T>
__device__ void count_to(T* numbers) {
    for (int i = threadIdx.x; i < 32 * 64; i += 32)
        numbers[i] = T(float(i));
    __syncwarp();
}
__global__ void places() {
    using namespace nvcuda::wmma;
    __shared__ alignas(32) char numbers[32 * 64 * 4];
    count_to(reinterpret_cast<half*>(numbers));
    lane_13<fragment<matrix_a, 16, 16, 16, half, row_major>>(numbers);
    lane_13<fragment<matrix_b, 16, 16, 16, half, row_major>>(numbers);
    lane_13<fragment<accumulator, 8, 32, 16, half>>(numbers, mem_row_major);
    __syncwarp();
    count_to(reinterpret_cast<float*>(numbers));
    lane_13<fragment<accumulator, 16, 16, 16, float>>(numbers, mem_row_major);
    lane_13<fragment<accumulator, 32, 8, 16, float>>(numbers, mem_row_major);
    lane_13<fragment<matrix_b, 16, 16, 8, precision::tf32, row_major>>(numbers);
    __syncwarp();
    count_to(reinterpret_cast<unsigned char*>(numbers));
    lane_13<fragment<matrix_a, 8, 32, 16, unsigned char, row_major>>(numbers);
}
__global__ void show(int* out) {
    long long r, x = 2, y = 3;
    asm("add.s64 %0, %1, %2;" : "=" "l"(r) : "l"(x), "l"(y));
    *out = __byte_perm(0x44332211, 0x88776655, 0x9999);
    printf("%lld %d\n", r, behind_a_condition(1));
    unsigned a = 0x7fff8001, b = 0x00018000;
    printf("%08x %08x %08x ", __vaddss2(a, b), __vsubss2(a, b), __vavgs2(a, b));
    printf("%08x %x %08x %08x\n", __vabsss2(0x8000ffff), __vsads4(0x80017f00, 0x7f020080),
           __vsetges2(a, b), __vcmples4(0x80017f00, 0x7f020080));
    volatile double large = 1e308, infinity = large * 10;
    volatile float narrow = infinity;
    volatile float nearly_middle = 9.536767e-07f;
    printf("%08x ", __float_as_uint(__fmaf_rn(14, 911992576, nearly_middle)));
    printf("%08x %08x %g ", __float_as_uint(__fdiv_rn(1e-6f, narrow)),
           __float_as_uint(__fdiv_ru(1, -narrow)), __ddiv_rd(1, infinity));
    printf("%g %g %g %g\n", __dadd_rz(infinity, 1), __dsqrt_rd(infinity), __ddiv_rz(1, 0 / large),
           __dmul_rz(large, 10));
}
int main() {
    int* out = room(4);
    show<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    curandGenerator_t generator;
    int created = curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
    printf("%d %x %d %d\n", std::min<int>(512, 1024), *out, int(result), created);
    places<<<1, 32>>>();
    cudaDeviceSynchronize();
    curandDestroyGenerator(generator);
    cudaFree(out);
}
"""


def test_public_programs_of_other_repositories_build_and_run(tmp_path):
    path = tmp_path / "public.cu"
    path.write_text("#include <cstdio>\n" + PUBLIC)
    done = mistakes.run(build_program(path))
    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "5 17",
            # halves: 32767 + 1 and -32767 - 32768 saturate; -32767.5 is rounded down
            "7fff8000 7ffe0001 40008000 7fff0001 1ff 00010001 ffff0000",
            # rounded once; what is infinite is exact, what overflows is not
            "503e41a9 00000000 80000000 0 inf inf inf 1.79769e+308",
            "512 22222222 2 0",
            # Row and column of what a lane holds, read from nvcc's machine code: A, B and sums.
            "3.2 3.3 11.2 11.3 3.10 3.11 11.10 11.11 3.2 3.3 11.2 11.3 3.10 3.11 11.10 11.11 ",
            "2.3 3.3 10.3 11.3 2.11 3.11 10.11 11.11 2.3 3.3 10.3 11.3 2.11 3.11 10.11 11.11 ",
            "2.3 3.3 2.11 3.11 2.19 3.19 2.27 3.27 ",
            "3.2 3.3 11.2 11.3 3.10 3.11 11.10 11.11 ",
            "3.2 3.3 11.2 11.3 19.2 19.3 27.2 27.3 ",
            "1.3 5.3 1.11 5.11 ",
            "3.4 3.5 3.6 3.7 ",
        ],
        "",
    )


SOBOL = r"""
#include <cstdio>
#include <curand.h>
#include <curand_kernel.h>
__global__ void numbers(unsigned* out, curandDirectionVectors32_t* v, unsigned skip) {
    curandStateSobol32 s;
    curand_init(v[blockIdx.x], threadIdx.x * skip, &s);
    out[blockIdx.x * blockDim.x + threadIdx.x] = curand(&s);
    if (blockIdx.x == 1 && threadIdx.x == 0)
        printf("%g\n", curand_uniform(&s));
}
int main() {
    curandDirectionVectors32_t *host, *device;
    curandGetDirectionVectors32(&host, CURAND_DIRECTION_VECTORS_32_JOEKUO6);
    const int dimensions = 20, n = 64;
    cudaMalloc(&device, dimensions * sizeof *device);
    cudaMemcpy(device, host, dimensions * sizeof *device, cudaMemcpyHostToDevice);
    unsigned *out, result[dimensions * n];
    cudaMalloc(&out, sizeof result);
    numbers<<<dimensions, n>>>(out, device, 1);
    cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost);
    for (unsigned x : result)
        printf("%u ", x);
    cudaFree(out);
    cudaFree(device);
}
"""


def test_sobols_numbers_are_those_of_another_library(tmp_path):
    """Of each dimension that is here: torch has the same polynomials of Joe and Kuo."""
    path = tmp_path / "sobol.cu"
    path.write_text(SOBOL)
    uniform, numbers = mistakes.run(build_program(path)).stdout.split("\n")
    assert float(uniform) == 0.5
    ours = np.array(numbers.split(), dtype=np.float64).reshape(20, 64) / 2**32
    theirs = torch.quasirandom.SobolEngine(20).draw(64, dtype=torch.float64).numpy().T
    np.testing.assert_allclose(ours, theirs, atol=2**-29)
