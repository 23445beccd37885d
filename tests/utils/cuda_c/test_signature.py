"""Kernel signatures are read from real-world spellings of CUDA C++."""

import numpy as np
import pytest

from utils.cuda_c.signature import kernels_in


def only(source):
    (signature,) = kernels_in(source).values()
    return signature


@pytest.mark.parametrize(
    "source, text",
    [
        (
            "__global__ void k(float *out, const float* a, int n) {}",
            "k(float *out, const float *a, int n)",
        ),
        ('extern "C" __global__ void k(float* __restrict__ out) {}', "k(float *out)"),
        (
            "static __global__ void\nk(unsigned char pixels[], std::uint32_t n);",
            "k(unsigned char *pixels, uint32_t n)",
        ),
        ("__global__ void __launch_bounds__(256, (2)) k(double x = 1.0) {}", "k(double x)"),
        (
            "__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)\nk(const "
            "__grid_constant__ CUtensorMap map) {}",
            "k(const CUtensorMap map)",
        ),
        ("void __global__ k(float const *x, unsigned) {}", "k(const float *x, unsigned )"),
        ("__global__ void k(void) {}", "k()"),
        ("__global__ void k() {}", "k()"),
        ("__global__ void k(/* first, */ int a, // second, third\n int b) {}", "k(int a, int b)"),
    ],
)
def test_spellings(source, text):
    assert str(only(source)) == text


def test_comments_and_strings_hold_no_kernels():
    assert (
        kernels_in(
            '// __global__ void no(int)\n/* __global__ void no(int); */ auto s = "__global__ void '
            'no(int)";'
        )
        == {}
    )


def test_dtypes():
    signature = only(
        "__global__ void k(float *a, const float4 *b, uchar4 *c, size_t n, bool f, MyStruct *s, "
        "longlong2 *q) {}"
    )
    names = [p.dtype.name if p.dtype else None for p in signature.parameters]
    assert names == ["float32", "float32", "uint8", "uint64", "bool", None, "int64"]
    assert [p.const for p in signature.parameters][:2] == [False, True]


def test_templates():
    signature = only(
        "template <typename T, int N = 4>\n__global__ void scale(T *x, T a, size_t n) {}"
    )
    assert signature.template == ("T", "N")
    assert signature.parameters[0].dtype is None
    assert signature.instantiate(("double", "8")).parameters[0].dtype == np.float64


def test_a_template_before_something_else_is_not_the_kernels():
    found = kernels_in("template <class T> struct S {};\n__global__ void k(int n) {}")
    assert found["k"].template == ()


def test_a_kernel_can_be_told_from_cudas_functions_of_its_name():
    source = "__global__ void norm(float* out, const float* __restrict__ x, const int n) {}"
    named = kernels_in(source)["norm"]
    assert named.address == "static_cast<void (*)(float*, const float*, int)>(norm)"
