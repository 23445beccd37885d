"""What cuda_c.load takes is the same on a GPU, where NVRTC compiles, and here.

NVRTC needs no GPU: where it is installed, both are asked. Elsewhere the CPU engine's rules alone
are held to what NVRTC was seen to say.
"""

import functools
import re

import pytest

from course import exercises
from tests.needs import cpp_compiler
from utils import cuda_c
from utils.cpu.cuda_c import device_only
from utils.cpu.cuda_c.architecture import Architecture
from utils.cpu.cuda_c.preprocess import preprocess
from utils.cpu.cuda_c.tokens import RewriteError
from utils.cuda_c.device_code import HEADERS, CompileError, compile_device_code
from utils.cuda_c.signature import kernels_in

KERNEL = """
__global__ void k(float* out, const float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = WHAT;
}
"""


@pytest.fixture
def by_rules(tmp_path):
    """Hold a source to the CPU engine's rules, without compiling it; RewriteError."""
    cpp_compiler()

    def check(source):
        path = tmp_path / "k.cu"
        path.write_text(source)
        macros = [*Architecture(75, "").macros(), device_only.MACRO]
        seen = preprocess(str(path), ["-std=c++17", "-O2", *macros], includes=True)
        device_only.check(seen, HEADERS)

    return check


@functools.cache
def why_no_nvrtc(folder):
    """Why NVRTC or CUDA's headers cannot be used; "" where they can."""
    path = folder / "nothing.cu"
    path.write_text("#include <cuda/std/climits>\n__global__ void k() {}\n")
    try:
        compile_device_code(path, "sm_75", ["k"])
    except (ImportError, RuntimeError) as error:
        return f"NVRTC: {str(error).splitlines()[0]}"
    return ""


@pytest.fixture
def by_nvrtc(tmp_path, tmp_path_factory):
    """Compile a source with the real NVRTC; CompileError."""
    reason = why_no_nvrtc(tmp_path_factory.getbasetemp())
    if reason:
        pytest.skip(reason)

    def check(source):
        path = tmp_path / "k.cu"
        path.write_text(source)
        names = [name for name, kernel in kernels_in(source).items() if not kernel.template]
        compile_device_code(path, "sm_75", names)

    return check


# What learners write, and what is in it for a GPU
TAKEN = """
#include <cuda_runtime.h>
#include <algorithm>
#include <array>
#include <assert.h>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda.h>
#include <cuda/atomic>
#include <cuda_fp16.h>
#include <limits>
#include <mma.h>
#include <stdbool.h>
#include <type_traits>
using namespace std;
namespace cg = cooperative_groups;
#ifndef __CUDACC_RTC__
#include <vector>
int main() { return 0; }
#endif
#if __CUDA_ARCH__ < 750
#error NVRTC compiles for one architecture
#endif
constexpr int SIZES[] = {1, 2, 3};
const float HALF = 0.5f;
const int THREE = 3;
const int AS_MANY(THREE);
const char* const TITLE = "title";
extern const int FAR;
namespace short_name = cooperative_groups;
template <class T> struct Box { T value; };
template <class T> Box(T) -> Box<T>;
typedef struct { float x; } Named;
enum class Later : int;
[[maybe_unused]] __device__ struct { float x; } global;
__device__ int seen = 0;
__constant__ float weights[4];
enum class Kind { a, b };
struct Pair {
    float x = 1, y;
    Pair() = default;
    __device__ Pair(float x, float y) : x{x}, y(y) {}
    __device__ float sum() const { return x + y; }
    __device__ Pair operator+(Pair b) const { return Pair(x + b.x, y + b.y); }
};
template <class T> __device__ T same(T x) { return x; }
template <> float same<float>(float x) { return x; }
#define MAKES(T) __global__ void scale_##T(T* x) { x[threadIdx.x] *= 2; }
MAKES(double)
template <typename T, int N = 3>
__host__ __device__ inline T times(T x) {
    auto twice = [](T v) { return v + v; };
    return N * twice(x);
}
__device__ float later(float x);
float later(float x) { return x; }
__device__ int strlen(const char* s) { return *s ? 1 + strlen(s + 1) : 0; }
__device__ float cudaScale(float x) { return 2 * x; }
extern "C" {
__global__ void __launch_bounds__(256) whole(float* out, const float* a, uint32_t n, CUtensorMap) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    assert(n > 0 && n <= UINT_MAX && i < INT_MAX);
    float x = std::min(a[i], FLT_MAX) + std::max(i, size_t(3)) + std::sqrt(a[0]) + fabs(a[1]);
    x += M_PI + INFINITY + sqrtf(x) + std::numeric_limits<float>::max() + SIZES[1] + HALF;
    x += times<float>(x) + (Pair(x, 1) + Pair()).sum() + is_same_v<int, float> + weights[0];
    std::array<float, 2> both{x, later(x)};
    cuda::atomic_ref<float, cuda::thread_scope_device>(out[0]).fetch_add(both[1]);
    cg::this_thread_block().sync();
    auto [first, second] = Pair(same(x), Box{Named{x}}.value.x);
    x += std::max(first, second) + AS_MANY + float(__int128(n) * n);
    auto typed = [&](int i) -> auto { return x * i; };
    x += typed(2) + cudaScale(x) + strlen(TITLE);
    if (i == 0) printf("%f %d\\n", x, seen);
    __shared__ cub::WarpReduce<float>::TempStorage room;
    out[i] = cub::WarpReduce<float>(room).Sum(x) + float(half(x));
}
}
"""

# source -> what is said, where not of a host's function: a word of the message
REFUSED = {
    "#include <vector>\n" + KERNEL: "without <vector>",
    "#include <iostream>\n" + KERNEL: "without <iostream>",
    "#include <thrust/device_vector.h>\n" + KERNEL: "takes device code only",
    KERNEL.replace("WHAT", "std::is_same_v<int, int>"): "std::is_same_v",
    "#include <algorithm>\n" + KERNEL.replace("WHAT", "*std::find(a, a + n, 1)"): "std::find",
    "int size = 3;\n" + KERNEL: "this variable",
    "auto f = [](int x) { return x; };\n" + KERNEL: "this variable",
    "dim3 block(16, 16);\n" + KERNEL: "takes device code only",
    "float f(float x) { return x; }\n" + KERNEL: "this function",
    "float f(float x);\n" + KERNEL: "this function",
    "__host__ float f(float x) { return x; }\n" + KERNEL: "this function",
    "static inline int f(int a, int b) { return a / b; }\n" + KERNEL: "this function",
    "constexpr int f(int x) { return x; }\n" + KERNEL: "this function",
    "template <class T> T f(T x) { return x; }\n" + KERNEL: "this function",
    "struct S { float x; float twice() const { return 2 * x; } };\n" + KERNEL: "this function",
    "struct S { float x; S(float a) : x{a} {} };\n" + KERNEL: "this function",
    "struct S { float x; S operator+(S b) { return b; } };\n" + KERNEL: "this function",
    "namespace { struct T {}; T* f() { return nullptr; } }\n" + KERNEL: "this function",
    KERNEL + "int main() { return 0; }\n": "this function",
    "struct S { float x; } s;\n" + KERNEL: "this variable",
    "enum { A, B } e = A;\n" + KERNEL: "this variable",
    "namespace n { }\nint after = 3;\n" + KERNEL: "this variable",
    "const char* title = 0;\n" + KERNEL: "this variable",
    "extern int far;\n" + KERNEL: "this variable",
    "struct S { static int x; };\n" + KERNEL: "static member",
    "constexpr auto f = [](float x) { return x; };\n" + KERNEL: "in functions only",
    KERNEL.replace("WHAT", "[](auto x) { return x; }(1.f)"): "this function",
    KERNEL.replace("WHAT", "[] __device__ (int x) { return x; }(1)"): "--extended-lambda",
    KERNEL.replace("WHAT", "std::clamp(a[i], 0.f, 1.f)"): "std::clamp",
    "#include <algorithm>\n"
    + KERNEL.replace("WHAT", "std::max({a[i], 1.f})"): '"std::max" matches',
    KERNEL.replace("WHAT", "a[i] ?: 1"): "expected an expression",
    "struct S { int x; };\n" + KERNEL.replace("WHAT", "S{.x = 1}.x"): "expected an expression",
    KERNEL.replace("WHAT", "cudaGetLastError()"): '"cudaGetLastError" is undefined',
    KERNEL.replace("WHAT", "strlen(TITLE)"): '"strlen" is undefined',
    KERNEL.replace("if (i < n)", "register int x; if (i < n)"): '"register" storage class',
    KERNEL + 'extern "C" void run(float* x) { k<<<1, 1>>>(x, x, 1); }\n': "this function",
    KERNEL + "__global__ void again(float* x) { k<<<1, 1>>>(x, x, 1); }\n": "cannot launch",
}
refused = pytest.mark.parametrize("source, says", REFUSED.items(), ids=range(len(REFUSED)))


def test_the_rules_take_what_a_gpu_can_use(by_rules):
    by_rules(TAKEN)


def test_nvrtc_takes_it_too(by_nvrtc):
    by_nvrtc(TAKEN)


@refused
def test_the_rules_refuse_the_hosts_code(source, says, by_rules):
    with pytest.raises(RewriteError, match=re.escape(says)):
        by_rules(source.replace("WHAT", "a[i]"))


@refused
def test_nvrtc_refuses_it_in_the_same_words(source, says, by_nvrtc):
    with pytest.raises(CompileError, match=re.escape(says)):
        by_nvrtc(source.replace("WHAT", "a[i]"))


def test_the_rules_name_the_learners_lines(by_rules):
    source = "\n#include <cstdio>\n\n#include <cstdio>\n#include <map>\n\nint f();\n" + KERNEL
    with pytest.raises(RewriteError) as error:
        by_rules(source)
    assert re.findall(r"k.cu:(\d+): error", str(error.value)) == ["5", "7"]


IN_CUDA_C = {id: e for id, e in exercises.EXERCISES.items() if e.kind == "cuda_c"}


@pytest.mark.parametrize("exercise", IN_CUDA_C.values(), ids=IN_CUDA_C)
def test_nvrtc_compiles_the_exercises(exercise, by_nvrtc):
    starter = re.sub(r"(?m)^%%.*\n", "", exercise.starter)
    for source in (starter, exercise.solution):
        by_nvrtc(source)


def test_loading_says_which_line_and_what_to_do(tmp_path):
    from utils import cuda_c

    path = tmp_path / "k.cu"
    path.write_text("float f(float x) {\n    return x;\n}\n" + KERNEL.replace("WHAT", "f(a[i])"))
    with pytest.raises(CompileError, match=r"k.cu, line 1: .* write __device__"):
        cuda_c.load(path)


def test_a_function_that_is_nowhere_defined_is_named(tmp_path):
    from utils import cuda_c

    path = tmp_path / "k.cu"
    path.write_text("__device__ int nowhere(int);\n" + KERNEL.replace("WHAT", "nowhere(i)"))
    with pytest.raises(CompileError, match="nowhere"):
        cuda_c.load(path)


def test_nvrtc_finds_a_kernel_that_is_called_as_a_function_of_cuda(by_nvrtc, tmp_path):
    source = "__global__ void norm(float* out, const float* x, int n) { out[0] = x[n]; }"
    with pytest.raises(CompileError, match=cuda_c.AMBIGUOUS):
        by_nvrtc(source)
    kernel = kernels_in(source)["norm"]
    compile_device_code(tmp_path / "k.cu", "sm_75", [kernel.address])
