"""Device code that calls or reads the host's is refused in nvcc's words, and nothing else is.

Where nvcc is, it is asked, too: the marked lines are those that it refuses.
"""

import re

import pytest

from tests.processes import completed
from utils.cpu.cuda_c.rewrite import rewrite
from utils.cpu.cuda_c.tokens import RewriteError
from utils.tools.nvcc import find_nvcc

NEEDED = "#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n"
NEEDED += "#include <algorithm>\n#include <vector>\n"
#: Lines that end with // and words are refused with these words
SOURCE = """
int host(int x) { return x; }
constexpr int computed(int x) { return x; }
template <class T> T same(T x) { return x; }
template <class T> __device__ T unused(T x) { return host(x); }
int host_or_device(int x) { return x; }
__device__ int host_or_device(float x) { return x; }
int count = 3;
const float half_of_it = 0.5f;
const int table[] = {1, 2};
constexpr char const* title = "x";
int sizes[4];
struct Point {
    int x;
    Point() = default;
    __device__ Point(int x) : x(x) {}
    int twice() { return 2 * x; }
    __device__ int thrice() { return 3 * x; }
};
namespace mine {
int inner(int x) { return x; }
__device__ int device(int x) { return x; }
int host_or_device(int x) { return x; }
}
template <class F> __device__ int apply(F host, int count) { return host(count); }
__global__ void other() {}
__device__ int slow() { return 3; }
struct Built { int x; __device__ Built(int y) { x = y; } };
template <class T>
struct Holder {
    T x;
    __device__ T held() {
        x += host(x);                       // calling a __host__ function("host") from a __device__
        return x;
    }
    __device__ T unheld() { return host(x); }
    __device__ T later();
};
template <class T>
__device__ T Holder<T>::later() {
    x -= host(x);                           // calling a __host__ function("host") from a __device__
    return x;
}
template <int n>
__device__ int branches(int x) {
    if constexpr (n == 1) {
        if (x) x += host(1);
        else x -= host(2);
    } else if constexpr (n == 2) x += host(3);
    else x += 4;
    x += host(5);                           // calling a __host__ function("host") from a __device__
    return x;
}
__device__ int uses(Holder<int> one, Holder<int>* two) {
    return one.held() + two->later() + branches<0>(1);
}

__global__ void calls(float* out, const float* in, int n) {
    out[0] = host(n);                       // calling a __host__ function("host") from a __global__
    out[1] = computed(3);                   // calling a constexpr __host__ function("computed")
    out[2] = same(in[0]);                   // calling a __host__ function("
    out[3] = mine::inner(n);                // calling a __host__ function("mine::inner
    out[4] = Point(3).twice();              // calling a __host__ function("Point::twice
    out[5] = rand();                        // calling a __host__ function("rand") from a __global__
    out[6] = std::max(n, 2);                // calling a constexpr __host__ function("max") from
    out[7] = apply([](int x) { return x; }, n) + Point(3).thrice() + mine::device(n);
    out[8] = sizeof(host(n)) + host_or_device(2.0f) + half_of_it + sizeof(sizes);
    memcpy(out, in, sizeof(float));
    printf("%s %f\\n", title, std::sqrt(in[0]));
}
__device__ int reads(int n) {
    int x = n;
    x = count;                              // identifier "count" is undefined in device code
    x += table[n];                          // identifier "table" is undefined in device code
    float room[n];                          // expression must have a constant value
    return x;
}
__device__ int hides(int n) {
    int table[2] = {n, n}, count = 3;
    auto host = [](int x) { return x; };
    return host(table[1]) + count;
}
__device__ void raises(int n) {
    if (n) throw 1;                         // device code does not support exception handling
}
__host__ __device__ int for_both(int n) { return n + host(n); }
__device__ float value = 1.0f / 3;
__device__ int start = slow(); // dynamic initialization is not supported for a __device
__constant__ Built built(3);                // dynamic initialization is not supported for a __const
__global__ void many(int* x, ...) {}        // a __global__ function cannot have ellipsis
struct Members { static __device__ int x; };  // memory qualifier on data member is not allowed
int main() {
    other();                                // a __global__ function call must be configured
    other<<<1, 1>>>();
    host<<<1, 1>>>(2);                      // a host function call cannot be configured
    same<int><<<1, 1>>>(2);                 // a host function call cannot be configured
    mine::device<<<1, 1>>>(2);              // a __device__ function call cannot be configured
    count = rand() + host(2) + sizes[0];
    count += slow();                        // calling a __device__ function("slow") from a __host__
    count += mine::host_or_device(2) + host_or_device(3) + sizeof(slow());
    Point point;
    return point.twice() + for_both(2);
}
"""

#: Right programs' names that stand for several things, and code that is never compiled
RIGHT = """
int n;
int block_size = 256;
float scale;
int left_over, first, second, kind;
struct S {
    int n;
    static constexpr int block_size = 3;
    __device__ int f() { return n + block_size; }
    __device__ float outside();
    float scale;
};
__device__ float S::outside() { return scale * n; }
struct Two {
    int first, second;
    union {
        int kind;
        float left_over;
    };
    __device__ int sum() { return first + second + kind + int(left_over); }
};
namespace host {
int count = 3;
int rows = 4;
int apply(int x) { return x; }
struct Vec {
    float x;
    Vec(float y) : x(y) {}
};
}
enum Counted { count, other_count = 4 };
namespace dev {
__device__ int rows = 3;
struct Vec {
    float x;
};
__device__ int reads() { return rows; }
__constant__ Vec vec;
}
template <int block_size, class Apply>
__global__ void reduce(float* out, Apply apply) {
    __shared__ float room[block_size];
    room[threadIdx.x] = apply(block_size);
    out[0] = room[0] + count;
    out[1] = dev::Vec().x;
}
namespace kernels {
__global__ void relu(float* x, int n) { x[n] = 0; }
__global__ void add(float* x) { x[0] = 1; }
}
__global__ void fill(float* x, float value, int n) { x[n] = value; }
void relu(float* x, int n) { kernels::relu<<<1, 1>>>(x, n); }
struct Model {
    float* x;
    void add() { kernels::add<<<1, 1>>>(x); }
    void run() {
        add();
        relu(x, 1);
    }
};
struct Params {
    int a;
    Params() = default;
    __host__ __device__ Params(int b) { a = b; }
};
__constant__ Params p;
template <class T>
struct Maybe {
    Params value;
    T* at;
};
__device__ Maybe<Params>* box;
int only_host(int x) { return x; }
template <bool is_host>
__host__ __device__ int either(int x) {
    if constexpr (is_host) return only_host(x);
    else return x;
}
template <bool is_host>
__device__ int either_too(int x) {
    if constexpr (is_host) return only_host(x);
    else return x;
}
template <class T>
struct Box {
    T value;
    __device__ void fails() { throw 1; }
    __device__ int calls();
    struct Inner {
        __device__ int calls() { return only_host(T(1)); }
    };
};
template <class T>
__device__ int Box<T>::calls() { return only_host(value); }
template <class T> __device__ int twice(T x);
template <class T> __device__ int twice(T x) { return only_host(x); }
template <class T>
struct Sized {
    T value;
    __device__ int size() { return only_host(value); }
};
__global__ void first_of_two(int* x) { x[0] = 1; }
void later(int* x) {}
template <void (*later)(int*)>
void launch(int* x) {
    later<<<1, 1>>>(x);
}
__host__ __device__ constexpr int square(int x) { return x * x; }
__device__ int nine = square(3);
__device__ int on_device(int x) { return x; }
__device__ int both_ways(int x) { return x; }
int both_ways(float x) { return int(x); }
__global__ void uses(float* out) {
    S s{};
    Two two{};
    Box<int> inside{3};
    out[0] = s.f() + s.outside() + two.sum() + either_too<false>(3) + dev::reads();
    out[1] = p.a + dev::vec.x + either<false>(3) + inside.value + nine;
}
int main() {
    std::vector<float> some(3);
    fill(some.begin(), some.end(), float(some.size()));
    launch<first_of_two>(nullptr);
    void (*launched)(float*) = uses, (*only_host)(float*) = launched;
    launched<<<1, 1>>>(nullptr);
    only_host<<<1, 1>>>(nullptr);
    Model().run();
    uses<<<1, 1>>>(nullptr);
    auto on_device = [](int x) { return x + 1; };
    n += on_device(3) + both_ways(2.0f) + sizeof(dev::reads());
    return n + block_size + host::count + either<true>(3);
}
static void* room(int bytes, bool clear = true) { return clear ? 0 : (void*)&bytes; }
__global__ void behind_a_default(float* a) { a[0] = 1; }
struct Behind { char c; int i; };
static void launches_it() { behind_a_default<<<1, 64>>>((float*)room(4)); }
template <bool, class T> using Just = T;
template <class T> __device__ Just<!(sizeof(T) == 1 && sizeof(T) == 2), T> after_both(T x) {
    T result = x;
    return result;
}
"""


def expected(source):
    """{line: the words with which nvcc refuses it}."""
    lines = enumerate(source.split("\n"), 1)
    return {n: line.split("// ")[1] for n, line in lines if "// " in line}


def refused(source, **options):
    """{line: what is said}."""
    plain = re.sub(r"//.*", "", source)
    with pytest.raises(RewriteError) as error:
        rewrite(f'# 1 "x.cu"\n{plain}', **options)
    return dict(re.findall(r"x\.cu:(\d+): error: (.*)", str(error.value)))


def test_the_hosts_code_is_refused_in_device_code_and_nothing_else_is():
    said = refused(SOURCE)
    wanted = expected(SOURCE)
    assert sorted(map(int, said)) == sorted(wanted)
    for line, words in wanted.items():
        says = said[str(line)].replace('"inner"', '"mine::inner"')
        assert says.replace('"twice"', '"Point::twice"').startswith(words)


def test_a_flag_lets_device_code_call_what_is_constexpr():
    strict, relaxed = refused(SOURCE), refused(SOURCE, relaxed=True)
    assert {strict[line].split('"')[1] for line in strict.keys() - relaxed} == {"computed", "max"}
    assert all("relaxed-constexpr" in strict[line] for line in strict.keys() - relaxed)


def test_names_that_are_somebody_elses_too_and_code_that_is_never_made_are_taken():
    rewrite(f'# 1 "x.cu"\n{RIGHT}')


@pytest.fixture
def refused_by_nvcc(tmp_path):
    """The lines of a text that the real nvcc refuses."""
    nvcc = find_nvcc()
    if not nvcc:
        pytest.skip("nvcc is not there")
    path = tmp_path / "x.cu"

    def lines_of(text):
        path.write_text(text)
        command = [nvcc, "-c", "-arch=sm_75", "-o", tmp_path / "x.o", path]
        done = completed(command)
        lines = {int(n) for n in re.findall(r"x\.cu\((\d+)\): error", done.stdout + done.stderr)}
        assert bool(lines) == bool(done.returncode)
        return lines

    return lines_of


def test_nvcc_takes_the_right_program(refused_by_nvcc):
    assert not refused_by_nvcc(NEEDED + RIGHT)


@pytest.mark.nightly("by day the lines are those that nvcc named at night")
def test_nvcc_refuses_the_same_lines(refused_by_nvcc):
    # what each of its passes says hides what the next one would
    text = NEEDED + SOURCE
    lines = set()
    for _ in range(5):
        new = refused_by_nvcc(text)
        if not new:
            break
        lines |= new
        text = without(text, new)
    above = NEEDED.count("\n")
    assert sorted(line - above for line in lines) == sorted(expected(SOURCE))


def without(text, lines):
    """The text with these lines empty."""
    every = enumerate(text.split("\n"), 1)
    return "\n".join("" if number in lines else line for number, line in every)
