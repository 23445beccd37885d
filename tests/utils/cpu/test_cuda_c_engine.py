"""CUDA C++ on the CPU: the rewrite, building and caching, programs, diagnoses, kernels called from
Python.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.processes import completed
from utils.cpu.cuda_c import build as builder
from utils.cpu.cuda_c import compiler as compilers
from utils.cpu.cuda_c import preprocess
from utils.cpu.cuda_c.build import BuildError, build_program, split_flags
from utils.cpu.cuda_c.library import LaunchError, Library
from utils.cpu.cuda_c.rewrite import rewrite
from utils.cpu.cuda_c.tokens import TOKEN, RewriteError
from utils.tools.nvcc import find_nvcc, nvcc_version

HERE = Path(__file__).parent / "programs"


def rewritten(source):
    """The rewrite of `source`, without line markers and with single spaces."""
    text, _ = rewrite('# 1 "x.cu"\n' + source)
    return " ".join(" ".join(line for line in text.split("\n") if not line.startswith("#")).split())


def run(program, *arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_CPU_")}
    return completed([str(program), *arguments], timeout=600, env={**clean, **environment})


def build_and_run(folder, source, *, check=False, **environment):
    path = folder / "program.cu"
    path.write_text("#include <cstdio>\n" + source)
    return run(build_program(path, check=check), **environment)


# ---- the rewrite
@pytest.mark.parametrize(
    "source, expected",
    [
        ("k<<<1, 2>>>(a);", "(::cuda_cpu::configure( 1, 2 ), k(a) );"),
        (
            "ns::k<float, 3><<<g, b, 0, s>>>(a, f(b));",
            "(::cuda_cpu::configure( g, b, 0, s ), ns::k<float, 3>(a, f(b)) );",
        ),
        (
            "if (x) k<<<n, std::max<int>(a, b)>>>(p);",
            "if (x) (::cuda_cpu::configure( n, std::max<int>(a, b) ), k(p) );",
        ),
        ("table[i]<<<1, 1>>>();", "(::cuda_cpu::configure( 1, 1 ), table[i]() );"),
        ("o.f->kernel<<<1, 1>>>();", "(::cuda_cpu::configure( 1, 1 ), o.f->kernel() );"),
        ("(*pointer)<<<1, 1>>>();", "(::cuda_cpu::configure( 1, 1 ), (*pointer)() );"),
        ("x = a << b; y = m<n<int>>(c);", "x = a << b; y = m<n<int>>(c);"),
        ('s = "k<<<1, 2>>>(a)";', 's = "k<<<1, 2>>>(a)";'),
        ("__device__ __forceinline__ int f();", "inline int f();"),
        ("struct __align__(16) S {};", "struct __attribute__((aligned(16))) S {};"),
        ('std::printf("x"); o.printf(1);', '::cuda_cpu::device_printf("x"); o.printf(1);'),
    ],
)
def test_rewrite(source, expected):
    assert rewritten(source).replace(" ", "") == expected.replace(" ", "")


def test_shared_variables():
    text = rewritten(
        "__global__ void k() { __shared__ float a[4][5], b; extern __shared__ int d[]; }"
    )
    assert "typedef float a__t[4][5] , b__t ;" in text
    assert "a__t& a = ::cuda_cpu::shared<a__t>([]{});" in text
    assert "::cuda_cpu::Element<d__t>* d = static_cast<" in text


def test_system_headers_pass_through_untouched():
    system = '# 1 "/usr/include/x.h" 1 3\nint printf(const char*); a <<<b>>> (c);\n'
    text, kernels = rewrite('# 1 "x.cu"\n' + system + '# 2 "x.cu" 2\n__global__ void k() {}\n')
    assert "int printf(const char*); a <<<b>>> (c);" in text and kernels == ("k",)


@pytest.mark.parametrize(
    "source, words",
    [
        ('asm("tcgen05.wait::ld.sync.aligned;");', "inline PTX"),
        ("texture<float, 2> t;", "texture and surface references"),
        (
            "using namespace nvcuda; wmma::experimental::precision::u4 f;",
            "4-bit and 1-bit matrices for tensor cores",
        ),
        ("__global__ void k() { __shared__ int x = 3; }", "initial value"),
        ("__global__ void k() { j<<<1, 1>>>(); cudaDeviceSynchronize(); }", "since CUDA 12"),
        ("__global__ void k() { __shared__ int x[2][warpSize]; }", "write 32"),
        ("k<<<>>>(1);", "neither blocks nor threads"),
    ],
)
def test_what_there_is_not_is_refused_by_name_and_line(source, words):
    with pytest.raises(RewriteError, match=rf"x.cu:3: error: .*{words}"):
        rewrite('# 1 "x.cu"\n\n\n' + source)


ENDS_ANYWHERE = """typedef unsigned int word;
using number = int;
template <class T> struct Box { T x; };
template <class T, int n = 2>
__launch_bounds__(64, 2) __global__ void k(T* a, const int* b) {
    __shared__ T room[n];
    extern __shared__ float more[];
    volatile int* flag = (volatile int*)b;
    while (flag[0] == 0);
    if (a[0] >= 1 << n) return;
    int i = a[1] * 2.5f;
    asm volatile("mov.u32 %0, 1;" : "=r"(i));
    room[0] = __shfl_sync(0xffffffff, i, n);
}
template __global__ void k<float>(float*, const int*);
__device__ __align__(16) float table[3] = {1, 2, 3};
int main() { k<float, 3><<<1, dim3(2)>>>((float*)0, 0); printf("%d", 1); }
"""


def test_a_file_may_end_anywhere():
    for token in TOKEN.finditer(ENDS_ANYWHERE):
        with contextlib.suppress(RewriteError):
            rewrite('# 1 "x.cu"\n' + ENDS_ANYWHERE[: token.end()])


# ---- building
def test_nvcc_flags():
    compiling, linking, sources = split_flags(
        [
            "-arch=sm_90",
            "-gencode",
            "arch=compute_80,code=sm_80",
            "-O3",
            "-DN=4",
            "-I",
            "inc",
            "-lcublas",
            "-lfoo",
            "-Xcompiler",
            "-Wall,-fopenmp",
            "-lineinfo",
            "-std=c++14",
            "other.cu",
            "--use_fast_math",
        ]
    )
    assert compiling == ["-O3", "-DN=4", "-Iinc", "-Wall", "-fopenmp"]
    assert linking == ["-lfoo"] and sources == ["other.cu"]


def test_language(tmp_path):
    done = run(build_program(HERE / "language.cu"))
    assert done.stdout == (HERE / "language.out").read_text() and done.returncode == 0
    assert "error" not in done.stderr


def test_the_driver_answers_about_the_device(tmp_path):
    done = build_and_run(
        tmp_path,
        """
#include <cuda.h>
int main() {
  CUdevice d, none; int warp, managed, count; size_t bytes; char name[80]; const char* text;
  cuInit(0);
  CUresult e = cuDeviceGet(&d, 0);
  printf("%d %d ", e, cuDeviceGet(&none, 7));
  cuDeviceGetCount(&count);
  cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, d);
  cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, d);
  cuDeviceGetName(name, sizeof name, d);
  cuDeviceTotalMem(&bytes, d);
  cuGetErrorName(CUDA_ERROR_INVALID_DEVICE, &text);
  printf("%d %d %d %.3s %d %s\\n", count, warp, managed, name, bytes > 1000000, text);
}""",
    )
    assert done.stdout == "0 101 1 32 1 CPU 1 CUDA_ERROR_INVALID_DEVICE\n"


ASKS_FOR_LIMITS = """
int attribute(cudaDeviceAttr which) {
    int value = -1;
    cudaDeviceGetAttribute(&value, which, 0);
    return value;
}
int main() {
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    printf("%d ", p.maxTexture2DLayered[2] == attribute(cudaDevAttrMaxTexture2DLayeredLayers));
    printf("%d ", p.maxSurface3D[1] == attribute(cudaDevAttrMaxSurface3DHeight));
    printf("%d ", p.maxTexture1D > 0 && p.maxTexture3DAlt[2] > 0 && p.maxSurface2D[1] > 0);
    printf("%d %d ", attribute(cudaDevAttrClusterLaunch), p.clusterLaunch);
    printf("%d %d ", attribute(cudaDevAttrMaxTextureCubemapWidth), p.ipcEventSupported);
    printf("%d ", attribute(cudaDevAttrSurfaceAlignment) == int(p.surfaceAlignment));
}
"""


def test_a_program_can_ask_for_every_limit(tmp_path):
    done = build_and_run(tmp_path, ASKS_FOR_LIMITS)
    assert done.stdout.split() == "1 1 1 1 1 0 0 1".split()


def test_what_a_device_has_is_named_as_in_cudas_own_header(tmp_path):
    nvcc = find_nvcc()
    if nvcc_version() != "13.0":
        pytest.skip("the names are those of CUDA 13.0, whose nvcc is not here")
    empty = tmp_path / "empty.cu"
    empty.touch()
    command = [nvcc, "-M", str(empty)]
    rule = completed(command, check=True, timeout=600).stdout
    header = next(word for word in rule.split() if word.endswith("/driver_types.h"))
    theirs = Path(header).read_text()
    properties = re.search(r"cudaDeviceProp\n\{(.*?)\n\};", theirs, re.DOTALL)[1]
    attributes = re.search(r"cudaDeviceAttr\n\{(.*?)\n\};", theirs, re.DOTALL)[1]
    names = set(re.findall(r"(\w+)(?:\[\d+\])?;", properties))
    names |= set(re.findall(r"(cudaDevAttr\w+)\s*=", attributes))
    ours = Path(builder.__file__).parent / "include/detail/api_types.h"
    missing = names - set(re.findall(r"\w+", ours.read_text()))
    assert not {name for name in missing if not re.search(r"[rR]eserved\d*$", name)}


def test_the_access_policy_of_a_stream(tmp_path):
    done = build_and_run(
        tmp_path,
        """
int main() {
  cudaStreamAttrValue value{};
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  printf("%d\\n", cudaStreamSetAttribute(0, cudaStreamAttributeAccessPolicyWindow, &value));
}""",
    )
    assert done.stdout == "0\n"


def test_new_device_memory_is_no_zeros_and_may_be_many_small_pieces(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__global__ void count(float* sum, int* hits) { sum[0] += 1; atomicAdd(hits, 1); }
int main() {
  float* sum; int* hits; float s; int h;
  cudaMalloc(&sum, 4);
  cudaMalloc(&hits, 4);
  count<<<1, 1>>>(sum, hits);
  cudaMemcpy(&s, sum, 4, cudaMemcpyDefault);
  cudaMemcpy(&h, hits, 4, cudaMemcpyDefault);
  printf("%d %d\\n", s != s, h);
  const int many = 40000;
  static int* pieces[many];
  for (int i = 0; i < many && cudaMalloc(&pieces[i], 4) == cudaSuccess; i++)
    cudaMemcpy(pieces[i], &i, 4, cudaMemcpyDefault);
  for (int i = 0; i < many; i += 2) cudaFree(pieces[i]);
  count<<<1, 1>>>(sum, pieces[many - 1]);
  cudaMemcpy(&h, pieces[many - 1], 4, cudaMemcpyDefault);
  printf("%d %s\\n", h, cudaGetErrorString(cudaGetLastError()));
}""",
    )
    assert done.stdout == "1 0\n40000 no error\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages cannot be given back so")
def test_large_memory_is_zeroed_to_its_ends_and_takes_no_room(tmp_path):
    done = build_and_run(
        tmp_path,
        """
#include <algorithm>
#include <vector>
long pages() {
  long resident;
  FILE* file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%*s %ld", &resident) != 1) return -1;
  fclose(file);
  return resident;
}
int main() {
  size_t n = (96 << 20) + 999;
  char* c;
  cudaMalloc(&c, n);
  cudaMemset(c, 1, n);
  cudaDeviceSynchronize();
  long filled = pages();
  cudaMemset(c + 1, 0, n - 2);
  cudaDeviceSynchronize();
  long zeroed = pages();
  std::vector<char> host(n);
  cudaMemcpy(host.data(), c, n, cudaMemcpyDefault);
  long ones = std::count(host.begin(), host.end(), 1);
  long zeros = std::count(host.begin(), host.end(), 0);
  printf("%d %ld %ld\\n", zeroed < filled / 2, ones, long(n) - zeros);
}""",
    )
    assert done.stdout == "1 2 2\n"


def test_a_part_of_the_rows_is_set_in_each_slice(tmp_path):
    done = build_and_run(
        tmp_path,
        """
int main() {
  char host[24];
  char* c;
  cudaMalloc(&c, 24);
  cudaMemset(c, 1, 24);
  cudaMemset3D(make_cudaPitchedPtr(c, 4, 4, 3), 0, make_cudaExtent(4, 2, 2));
  cudaMemcpy(host, c, 24, cudaMemcpyDefault);
  for (char byte : host) printf("%d", byte);
}""",
    )
    assert done.stdout == "000000001111000000001111"


def test_compile_error_names_the_line(tmp_path):
    source = tmp_path / "wrong.cu"
    source.write_text(
        "__global__ void k(int* a) {\n  int x = 1;\n  a[0] = nothing;\n}\nint main() {}\n"
    )
    with pytest.raises(BuildError) as caught:
        build_program(source)
    assert f"{source}:3:" in caught.value.log


@pytest.mark.parametrize(
    "source, name",
    [
        ("#include <thrust/nothing.h>\n", "thrust/nothing.h"),
        ("void f() { cublasNothing(1); }", "cublasNothing"),
        ("#include <cub/cub.cuh>\nusing cub::Nothing;", "Nothing"),
    ],
)
def test_what_only_a_gpu_may_have_is_told(tmp_path, source, name):
    (tmp_path / "x.cu").write_text(source)
    with pytest.raises(BuildError) as caught:
        build_program(tmp_path / "x.cu")
    (told,) = [line for line in caught.value.log.splitlines() if line.endswith(compilers.LACKS)]
    assert name in told


def test_a_name_of_the_programs_own_is_no_matter_of_the_gpu(tmp_path):
    (tmp_path / "x.cu").write_text('#include "my_cuda.h"\n')
    with pytest.raises(BuildError) as caught:
        build_program(tmp_path / "x.cu")
    assert compilers.LACKS not in caught.value.log


def test_cache_and_folders(tmp_path, monkeypatch):
    folder = tmp_path / "with space"
    folder.mkdir()
    header, source = folder / "value.h", folder / "my program.cu"
    header.write_text("#define VALUE 1\n")
    source.write_text(
        '#include <cstdio>\n#include "value.h"\nint main() { printf("%d\\n", VALUE); }\n'
    )
    folder.chmod(0o555)  # no right to write beside the source
    first = build_program(source)
    calls = []
    monkeypatch.setattr(builder, "checked", lambda *a, **k: calls.append(a))
    assert (
        build_program(source) == first and not calls
    )  # nothing is compiled, not even preprocessed
    monkeypatch.undo()
    folder.chmod(0o755)
    header.write_text("#define VALUE 22\n")
    changed = build_program(source, output=tmp_path / "copy")
    assert run(first).stdout == "1\n" and run(changed).stdout == "22\n"


@pytest.mark.parametrize(
    "source, flags, shared",
    [
        ("{}/p.cu", (), True),
        ("{}/p.cu", ("-DN=3", "-O3", "-I{}/all"), True),
        ("p.cu", (), False),
        ("{}/p.cu", ("-Iown",), False),
        ("{}/p.cu", ("-I", "own"), False),
        ("{}/p.cu", ("-include", "own/value.h"), False),
    ],
)
def test_what_means_the_same_in_every_folder_is_built_once(
    tmp_path, monkeypatch, source, flags, shared
):
    """And what a folder's own files go into is built for each folder."""
    text = "#include <cstdio>\n#if __has_include(<value.h>)\n#include <value.h>\n#endif\n"
    text += '#ifndef VALUE\n#define VALUE 0\n#endif\nint main() { printf("%d", VALUE); }\n'
    (tmp_path / "all").mkdir()
    programs = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        (folder / "own").mkdir(parents=True)
        (folder / "own" / "value.h").write_text(f"#define VALUE {number}\n")
        for place in (tmp_path, folder):
            (place / "p.cu").write_text(text)
        monkeypatch.chdir(folder)
        options = [flag.format(tmp_path) for flag in flags]
        programs.append(build_program(source.format(tmp_path), options))
    said = [run(program).stdout for program in programs]
    assert said == (["1", "2"] if "own" in "".join(flags) else ["0", "0"])
    assert (programs[0] == programs[1]) == shared


def test_builds_at_the_same_time(tmp_path):
    source = tmp_path / "p.cu"
    source.write_text('#include <cstdio>\nint main() { printf("ok\\n"); }\n')
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(build_program, [source] * 3))
    assert len(set(found)) == 1 and run(found[0]).stdout == "ok\n"


STALE = r"""
#include <cstdio>
__global__ void nothing() {}
int main() {
    cudaEvent_t e, other;
    cudaStream_t s = (cudaStream_t)0x1000;
    float ms;
    int* p;
    cudaEventCreate(&e);
    cudaEventCreate(&other);
    cudaEventDestroy(e);
    printf("%d %d %d", cudaEventDestroy(e), cudaEventRecord(e), cudaEventSynchronize(e));
    printf(" %d %d", cudaEventElapsedTime(&ms, e, other), cudaStreamWaitEvent(0, e));
    printf(" %d %d", cudaStreamDestroy(s), cudaStreamSynchronize(s));
    printf(" %d %d", cudaStreamWaitEvent(s, other), cudaEventRecord(other, s));
    printf(" %d", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    int priority;
    unsigned flags;
    printf(" %d %d", cudaStreamGetPriority(s, &priority), cudaStreamGetFlags(s, &flags));
    cudaGetLastError();
    nothing<<<1, 1, 0, s>>>();
    printf(" %d\n", cudaGetLastError());
    cudaMalloc(&p, 4);
    cudaDeviceReset();
    cudaFree(p);
}
"""


def test_handles_that_were_given_back_or_never_given_are_errors_and_no_crash(tmp_path):
    """What is left of a handle after a cudaEventCreate that failed and nobody asked about."""
    source = tmp_path / "stale.cu"
    source.write_text(STALE)
    done = run(build_program(source))
    assert done.stdout.split() == ["400"] * 13
    assert "cudaDeviceReset() has done so [double-free]" in done.stderr


MACROS = [
    "-DN=3",
    "-DT=4",
    "-DM=2",
    "-DK=5",
    "-DP=1",
    "-DF=2",
    "-DBLOCK=64",
    "-DTILE=16",
    "-DWIDTH=32",
    "-DSIZE=8",
    "-D",
    "H",
    "-Dtid=threadIdx.x",
    "-DADD(a,b)=a + b",
    "-Uunknown",
]
USES_MACROS = """#include <cstdio>
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <mma.h>
__global__ void k(int* p) {
  auto tile = cooperative_groups::tiled_partition<TILE>(cooperative_groups::this_thread_block());
  p[tid] = tile.shfl(ADD(N, M), 0) + H;
  __syncthreads();
  atomicAdd(p, __shfl_sync(~0u, (int)threadIdx.x, K));
}
int main() { int* p; cudaMallocManaged(&p, BLOCK * 4); k<<<1, BLOCK>>>(p); \
cudaDeviceSynchronize(); printf("%d\\n", *p);
  cudaFree(p); }"""


def test_macros_of_the_program_do_not_touch_the_headers(tmp_path):
    source = tmp_path / "m.cu"
    source.write_text(USES_MACROS)
    assert run(build_program(source, MACROS)).stdout == "1350\n"
    defines = [
        "#define " + m[2:].replace("=", " ") for m in MACROS if m.startswith("-D") and len(m) > 2
    ]
    source.write_text(
        "\n".join([*defines, "#define H 1", "#include <cuda_runtime.h>", USES_MACROS])
    )
    assert run(build_program(source)).stdout == "1350\n"


def test_macros_for_the_system_headers_reach_them(tmp_path):
    source = tmp_path / "p.cu"
    source.write_text("#include <cassert>\nint main() { assert(false); }\n")
    assert run(build_program(source, ["-DNDEBUG"])).returncode == 0
    assert run(build_program(source)).returncode != 0


def test_the_special_functions_are_there_and_are_not_compiled_into_every_program(tmp_path):
    includes = "#include <cmath>\n"
    call = 'int main() { printf("%.4f\\n", std::cyl_bessel_j(0.0, 1.0)); }'
    done = build_and_run(tmp_path, includes + call)
    assert done.stdout == "0.7652\n"
    if compilers.is_gcc(compilers.compiler()):
        (tmp_path / "empty.cu").write_text("int main() {}\n")
        keep = ["-Xcompiler", "-fkeep-inline-functions"]
        assert b"bessel_j" not in build_program(tmp_path / "empty.cu", keep).read_bytes()


@pytest.mark.parametrize("check", [False, True], ids=["fast", "check"])
def test_a_compiler_that_hardens_programs_by_itself_makes_the_same_code(tmp_path, check):
    """Ubuntu's g++ does: its checks of a stack speak before the runtime, and of another line."""
    source = tmp_path / "frame.cpp"
    source.write_text(
        "int last(int n) { volatile int frame[1 << 14]; frame[n] = n; return frame[0]; }\n"
    )
    code = [
        compilers.checked(
            [*compilers.compiler(), *hardening, *compilers.environment_flags([], check)]
            + ["-g0", "-S", source, "-o", "-"]
        )
        for hardening in ([], ["-fstack-protector-strong", "-fstack-clash-protection"])
    ]
    assert code[0] == code[1]


def test_check_sees_the_memory_functions_of_a_compiler_that_fortifies(tmp_path):
    source = HERE.parents[2] / "conformance" / "cuda_c" / "memory_functions.cu"
    assert run(build_program(source, ["-D_FORTIFY_SOURCE=3"], check=True)).stderr == ""


def test_no_compiler(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compilers, "_runs", lambda command: False)
    with pytest.raises(BuildError, match="apt install g\\+\\+"):
        builder.compiler.__wrapped__()


@pytest.mark.parametrize("finds_its_libraries", [True, False])
def test_gold_links_where_it_can(finds_its_libraries, tmp_path, monkeypatch):
    """A compiler that was moved to another folder knows where its libraries are; gold does not."""
    tried = tmp_path / "tried"
    moved = tmp_path / "g++"
    moved.write_text(f"#!/bin/sh\necho $* >> {tried}\nexit {0 if finds_its_libraries else 1}\n")
    moved.chmod(0o755)
    monkeypatch.setattr(builder, "compiler", lambda: [str(moved)])
    monkeypatch.setattr(builder, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(builder.shutil, "which", lambda name: f"/usr/bin/{name}")
    flags = [builder.GOLD] if finds_its_libraries else []
    assert builder.linker() == builder.linker() == flags
    assert tried.read_text().count(builder.GOLD) == 1  # what is known is not tried again


def test_gold_links_where_nothing_can_be_kept(tmp_path, monkeypatch):
    gone = tmp_path / "a file"
    gone.touch()
    monkeypatch.setattr(builder, "compiler", lambda: ["g++"])
    monkeypatch.setattr(builder, "cache_folder", lambda: gone)
    monkeypatch.setattr(builder.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(builder, "_tried", lambda command: command[-1])
    assert builder.linker() == [builder.GOLD]


# ---- mistakes: what the conformance bank does not cover
def test_errors_are_sticky_and_the_program_goes_on(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__global__ void k(int* p) { *p = 1; }
int main() {
  k<<<1, 1>>>(nullptr);
  printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
  int* d;
  printf("%s\\n", cudaGetErrorName(cudaMalloc(&d, 4)));
  printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
  cudaDeviceReset();
  printf("%s\\n", cudaGetErrorName(cudaMalloc(&d, 4)));
}""",
    )
    assert done.stdout.split() == ["cudaErrorIllegalAddress"] * 3 + ["cudaSuccess"]
    assert "program.cu:3: error" in done.stderr and "[null-pointer]" in done.stderr


def test_a_fault_in_a_kernel_is_known_after_the_next_call_that_waits(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__global__ void wild(int* p) { *p = 1; }
__global__ void fine() {}
__device__ int ran;
__global__ void later() { ran = 1; }
int main() {
  int *d, h; cudaMalloc(&d, 4);
  fine<<<1, 2000>>>();
  printf("configuration: %s\\n", cudaGetErrorName(cudaGetLastError()));
  wild<<<1, 1>>>(nullptr);
  printf("launch: %s %s\\n", cudaGetErrorName(cudaPeekAtLastError()), \
cudaGetErrorName(cudaGetLastError()));
  later<<<1, 1>>>(); printf("next: %s\\n", cudaGetErrorName(cudaGetLastError()));
  printf("async: %s\\n", cudaGetErrorName(cudaMemcpyAsync(&h, d, 4, cudaMemcpyDeviceToHost)));
  printf("waits: %s\\n", cudaGetErrorName(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost)));
  printf("last: %s %s %d\\n", cudaGetErrorName(cudaGetLastError()), \
cudaGetErrorName(cudaMemcpyAsync(&h, d, 4,
         cudaMemcpyDeviceToHost)), ran);
}""",
    )
    assert (
        done.stdout
        == """configuration: cudaErrorInvalidValue
launch: cudaSuccess cudaSuccess
next: cudaSuccess
async: cudaSuccess
waits: cudaErrorIllegalAddress
last: cudaErrorIllegalAddress cudaErrorIllegalAddress 0
"""
    )


@pytest.mark.parametrize("check", [False, True])
def test_messages_name_the_file_as_it_was_given(tmp_path, monkeypatch, check):
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x.cuh").write_text(
        "\n__device__ void set(int* p) { p[threadIdx.x] = 1; }\n"
    )
    (tmp_path / "build" / "x.cu").write_text(
        '#include "x.cuh"\n__global__ void k(int* p) {\n  p[threadIdx.x + 100000] = 1;\n}\n'
        "__global__ void j(int* p) { set(p + 100000); }\n"
        "#ifdef WITH_MAIN\nint main(int n, char**) { int* p; cudaMalloc(&p, 64); if (n > 1) "
        "j<<<1, 1>>>(p); else "
        "k<<<1, 1>>>(p); cudaDeviceSynchronize(); }\n#endif\n"
    )
    monkeypatch.chdir(tmp_path)
    program = build_program("build/x.cu", ["-DWITH_MAIN"], check=check)
    assert run(program).stderr.startswith("build/x.cu:3: error: ")
    assert run(program, "j").stderr.startswith("build/x.cuh:2: error: ")
    monkeypatch.chdir(tmp_path / "build")
    assert run(build_program("x.cu", ["-DWITH_MAIN"], check=check)).stderr.startswith(
        "x.cu:3: error: "
    )
    assert run(build_program("../build/x.cu", ["-DWITH_MAIN"], check=check)).stderr.startswith(
        "../build/x.cu:3: error: "
    )
    monkeypatch.chdir(tmp_path)
    assert run(
        build_program(tmp_path / "build/x.cu", ["-DWITH_MAIN"], check=check)
    ).stderr.startswith(f"{tmp_path}/build/x.cu:3")
    with pytest.raises(LaunchError, match=r"^build/x.cu:3: error"):
        Library("build/x.cu", check=check).launch(
            "k", (1, 1, 1), (1, 1, 1), 0, [ctypes.c_void_p(64)]
        )


def test_each_place_is_looked_up_once(tmp_path):
    asked = tmp_path / "asked"
    addr2line = tmp_path / "bin" / "addr2line"
    addr2line.parent.mkdir()
    addr2line.write_text(
        f'#!/bin/sh\necho "$*" >> {asked}\nexec {shutil.which("addr2line")} "$@"\n'
    )
    addr2line.chmod(0o755)
    done = build_and_run(
        tmp_path,
        """
__global__ void k(int* p) {
  int i = threadIdx.x;
  p[i] = i;
  p[i ^ 1] = -i;
  p[i ^ 2] = 100 + i;
}
int main() {
  int* p; cudaMalloc(&p, 256);
  k<<<1, 64>>>(p);
  cudaDeviceSynchronize();
}""",
        check=True,
        PATH=f"{addr2line.parent}:{os.environ['PATH']}",
    )
    assert done.stderr.count("[data-race]") > 1
    places = asked.read_text().splitlines()
    assert len(places) == len(set(places))


def test_an_early_return_before_a_barrier_is_no_mistake(tmp_path):
    source = """
__global__ void k(int* p, int n) {
  __shared__ int s[64];
  if (threadIdx.x >= n) return;
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  p[threadIdx.x] = s[n - 1 - threadIdx.x];
}
int main() { int* p; cudaMallocManaged(&p, 256); k<<<1, 64>>>(p, 50); cudaDeviceSynchronize();
  printf("%d %d\\n", p[0], p[49]); cudaFree(p); }"""
    for check in (False, True):
        done = build_and_run(tmp_path, source, check=check)
        assert done.stdout == "49 0\n" and done.stderr == ""


HEAPS = """
#include <cstdlib>
struct List {
  int* p;
  List(int* p) : p(p) {}
  List(const List& other) : p(other.p) {}   // reads the arguments, which lie in host memory
};
__global__ void set(List list) { list.p[threadIdx.x] = 1; }
__global__ void make(int** out) { int* a = (int*)malloc(400); a[3] = 4; *out = new int[2]; \
(*out)[1] = a[3]; free(a); }
__global__ void take(int** in, int* result) { *result = (*in)[1]; delete[] *in; }
int main(int n, char**) {
  int **q, *r; cudaMallocManaged(&q, 8); cudaMallocManaged(&r, 128);
  free(malloc(400)); delete[] new int[2];
  make<<<1, 1>>>(q); take<<<1, 1>>>(q, r); cudaDeviceSynchronize(); printf("%d\\n", *r);
  int* mine = (int*)realloc(calloc(50, 4), 400);
  if (n == 1) cudaHostRegister(mine, 400, 0);
  set<<<1, 32>>>(List(r)); set<<<1, 32>>>(List(mine)); cudaDeviceSynchronize(); printf("%d %d\\n", \
*r, *mine);
  cudaFree(q); cudaFree(r); free(mine);
}"""


def test_check_tells_the_hosts_heap_from_the_devices(tmp_path):
    (tmp_path / "p.cu").write_text("#include <cstdio>\n" + HEAPS)
    program = build_program(tmp_path / "p.cu", check=True)
    done = run(program)
    assert (done.stdout, done.stderr) == ("4\n1 1\n", "")
    done = run(program, "unregistered")
    assert "p.cu:9: error: the kernel writes memory of the host (the 400 bytes" in done.stderr


COPIES_A_STRUCT = """
struct Row { float values[16]; };
extern "C" __device__ void* __tsan_memcpy(void*, const void*, size_t);
__global__ void copy(Row* to, const Row* from) {
  __tsan_memcpy(to, from, sizeof(Row));
}
int main() { Row *to, *from; cudaMalloc(&to, 32); cudaMalloc(&from, 64); cudaMemset(from, 0, 64);
  copy<<<1, 1>>>(to, from); cudaDeviceSynchronize(); cudaFree(to); cudaFree(from); }"""


def test_check_sees_the_copy_of_a_struct_as_clang_calls_it(tmp_path):
    done = build_and_run(tmp_path, COPIES_A_STRUCT, check=True)
    assert re.search(r"program\.cu:6: error: .*\[out-of-bounds\]", done.stderr), done.stderr


REVERSE = """
__global__ void reverse(int* p) {
  __shared__ int s[64];
  s[threadIdx.x] = p[threadIdx.x];
  p[threadIdx.x] = s[63 - threadIdx.x];
}
int main() { int *p, h[64]; for (int i = 0; i < 64; i++) h[i] = i;
  cudaMalloc(&p, 256); cudaMemcpy(p, h, 256, cudaMemcpyHostToDevice); reverse<<<1, 64>>>(p);
  cudaMemcpy(h, p, 256, cudaMemcpyDeviceToHost); printf("%d\\n", h[0]); cudaFree(p); }"""


SHIFTS = """#include <cstdio>
template <class T>
__global__ void __launch_bounds__(1 << 7) k(int* out) {
    __shared__ __align__(1 << 5) T s[(16 + 2) << 1];
    s[threadIdx.x % 36] = 7;
    __syncthreads();
    *out = int(s[35]) + int(size_t(s) % 32);
}
int main() {
    int *d, h;
    cudaMalloc(&d, 4);
    k<float><<<1, 128>>>(d);
    cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
    printf("%d", h);
    cudaFree(d);
}
"""


def test_sizes_of_shared_arrays_may_be_shifts(tmp_path):
    done = build_and_run(tmp_path, SHIFTS)
    assert (done.stdout, done.stderr) == ("7", "")


DEVICE_PASS = """#include <cstdio>
#if __CUDA_ARCH__ >= 700
__device__ int f(int x) { return 2 * x; }
template <int N>
__device__ int g(int x) { return N * x; }
#else
__device__ int f(int x) { return -1; }
template <int N>
__device__ int g(int x) { return -1; }
#endif
#ifdef __CUDA_ARCH__
__device__ int only() { return 5; }
#endif
__host__ __device__ int both(int x) {
#ifdef __CUDA_ARCH__
    return x + 1;
#else
    return x + 2;
#endif
}
__global__ void k(int* out) {
#ifdef __CUDA_ARCH__
    *out = f(21) + g<3>(1) + only() + both(0);
#endif
}
int main() {
    int *d, h;
    cudaMalloc(&d, 4);
    k<<<1, 1>>>(d);
    cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
    printf("%d %d", h, both(0));
    cudaFree(d);
}
"""


def test_functions_that_the_device_pass_alone_has(tmp_path):
    assert build_and_run(tmp_path, DEVICE_PASS).stdout == f"{2 * 21 + 3 + 5 + 1} 2"


GRAPH_MEMORY = """#include <cstdio>
__global__ void square(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x] * a[threadIdx.x]; }
__global__ void set(int* out, int value) { *out = value; }
cudaKernelNodeParams setting(int** out, int* value) {
    static void* arguments[2];
    arguments[0] = out;
    arguments[1] = value;
    cudaKernelNodeParams p = {};
    p.func = (void*)set;
    p.gridDim = p.blockDim = dim3(1);
    p.kernelParams = arguments;
    return p;
}
int launched(cudaGraphExec_t run, int* out) {
    cudaGraphLaunch(run, 0);
    cudaDeviceSynchronize();
    return *out;
}
void shape() {
    int *out, five = 5, seven = 7;
    cudaMallocManaged(&out, 4);
    cudaGraph_t graph, clone;
    cudaGraphNode_t first, second, kernel, found[3], of_clone;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEmptyNode(&first, graph, nullptr, 0);
    cudaGraphAddEmptyNode(&second, graph, &first, 1);
    cudaKernelNodeParams p = setting(&out, &five);
    cudaGraphNode_t both[] = {first, second};
    cudaGraphAddKernelNode(&kernel, graph, both, 2, &p);
    size_t roots = 3, edges, before, behind;
    cudaGraphGetRootNodes(graph, found, &roots);
    cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
    cudaGraphNodeGetDependencies(kernel, nullptr, nullptr, &before);
    cudaGraphNodeGetDependentNodes(first, nullptr, nullptr, &behind);
    printf("%zu root, %zu edges, depends on %zu, %zu depend\\n", roots * (found[0] == first), edges,
           before, behind);
    cudaGraphClone(&clone, graph);
    cudaGraphNodeFindInClone(&of_clone, first, clone);
    cudaGraphDestroyNode(second);
    cudaGraphNodeGetDependentNodes(first, nullptr, nullptr, &before);
    cudaGraphNodeGetDependentNodes(of_clone, nullptr, nullptr, &behind);
    printf("%zu node depends, of a clone %zu\\n", before, behind);
    cudaGraphExec_t old, fresh;
    cudaGraphInstantiate(&old, graph, 0);
    p = setting(&out, &seven);
    cudaGraphKernelNodeSetParams(kernel, &p);
    cudaGraphInstantiate(&fresh, graph, 0);
    int one = launched(old, out), two;
    cudaGraphExecDestroy(old);
    cudaGraphInstantiate(&old, clone, 0);
    two = launched(old, out);
    printf("%d %d %d\\n", one, two, launched(fresh, out));
    cudaGraphExecDestroy(old);
    cudaGraphExecDestroy(fresh);
    cudaGraphDestroy(graph);
    cudaGraphDestroy(clone);
    cudaFree(out);
}
int main() {
    int from[32], to[32], *a, *b, *outside;
    for (int i = 0; i < 32; ++i) from[i] = i;
    cudaMalloc(&outside, 4);
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    cudaStreamCreate(&s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(&a, sizeof from, s);
    cudaMemcpyAsync(a, from, sizeof from, cudaMemcpyHostToDevice, s);
    cudaMallocAsync(&b, sizeof from, s);
    square<<<1, 32, 0, s>>>(a, b);
    cudaFreeAsync(a, s);
    cudaMemcpyAsync(to, b, sizeof to, cudaMemcpyDeviceToHost, s);
    cudaFreeAsync(b, s);
    printf("%s, ", cudaGetErrorName(cudaFreeAsync(outside, s)));
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&run, graph, 0);
    for (int n = 0; n < 2; ++n) {
        from[3] += n;
        cudaGraphLaunch(run, s);
        printf("%s %d, ", cudaGetErrorName(cudaStreamSynchronize(s)), to[3]);
    }
    cudaFree(outside);
    cudaGraphExecDestroy(run);
    size_t roots, edges;
    cudaGraphGetRootNodes(graph, nullptr, &roots);
    cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
    printf("%zu root, %zu edges\\n", roots, edges);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(s);
    shape();
}
"""


SLOW_CHECKS = pytest.mark.nightly("by day without the slow checks, which other graphs have")


@pytest.mark.parametrize(
    "check", [False, pytest.param(True, marks=SLOW_CHECKS)], ids=["fast", "check"]
)
def test_graphs_own_their_memory_and_can_be_asked_for_their_edges(tmp_path, check):
    done = build_and_run(tmp_path, GRAPH_MEMORY, check=check)
    assert done.stdout.splitlines() == [
        "cudaErrorInvalidValue, cudaSuccess 9, cudaSuccess 16, 1 root, 6 edges",
        "1 root, 3 edges, depends on 2, 2 depend",
        "1 node depends, of a clone 2",
        "5 5 7",
    ]
    assert done.stderr == ""


VOLATILE = """#include <cstdio>
__global__ void k(volatile float* p, float* q) {
    p[threadIdx.x] = 1;
    if (q) q[threadIdx.x] = p[threadIdx.x + 32];
}
int main(int n, char**) {
    float *p, *q;
    cudaMalloc(&p, 256);
    cudaMalloc(&q, 256);
    k<<<1, 32>>>(p, n > 1 ? q : nullptr);
    cudaDeviceSynchronize();
    cudaFree(p);
    cudaFree(q);
}
"""


def test_check_takes_a_store_through_volatile_for_a_store(tmp_path):
    """A read of what nobody has written is one, through volatile, too."""
    (tmp_path / "p.cu").write_text(VOLATILE)
    program = build_program(tmp_path / "p.cu", check=True)
    assert run(program).stderr == ""
    assert "p.cu:4: error: this reads device memory that nobody has" in run(program, "x").stderr


def test_check_finds_the_race_and_the_shuffled_order_shows_it(tmp_path):
    done = build_and_run(tmp_path, REVERSE, check=True)
    assert "[data-race]" in done.stderr and "line 6" in done.stderr and done.returncode == 1
    results = {
        build_and_run(tmp_path, REVERSE, CUDA_CPU_SEED=str(seed)).stdout for seed in range(6)
    }
    assert len(results) > 1
    again = {build_and_run(tmp_path, REVERSE, CUDA_CPU_SEED="3").stdout for _ in range(3)}
    assert len(again) == 1


def test_a_same_value_stored_by_many_and_a_fenced_handover_are_no_races(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__device__ int flag, done, data[4];
__global__ void set() { flag = 1; }
__global__ void last(int* out) {
  __shared__ bool am_last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    am_last = atomicAdd(&done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (am_last && threadIdx.x == 0) {
    __threadfence();
    *out = data[0] + data[1] + data[2] + data[3];
  }
}
int main() { int* p; cudaMallocManaged(&p, 4); set<<<4, 64>>>(); last<<<4, 32>>>(p); \
cudaDeviceSynchronize();
  printf("%d\\n", *p); cudaFree(p); }""",
        check=True,
    )
    assert done.stdout == "10\n" and done.stderr == ""


HANDED_ON = """
__global__ void on(int* data, int* out) {  // from warp 0 by warp 1 to warp 2
  __shared__ int first, second;
  if (threadIdx.x == 0) first = second = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data[0] = 2; __threadfence_block(); SET(first);
  } else if (threadIdx.x == 32) {
    while (!atomicAdd(&first, 0)) ;
    __threadfence_block(); data[1] = data[0] + 3; __threadfence_block(); SET(second);
  } else if (threadIdx.x == 64) {
    while (!atomicAdd(&second, 0)) ;
    __threadfence_block(); *out = data[0] + data[1];
  }
}
__global__ void locked(int* sum, int* lock) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(lock, 0, 1)) ;
  __threadfence(); *sum += 1; __threadfence();
  atomicExch(lock, 0);
}
int main() { int* p; cudaMallocManaged(&p, 20); p[3] = p[4] = 0; on<<<1, 96>>>(p, p + 2);
  locked<<<2, 96>>>(p + 3, p + 4); cudaDeviceSynchronize(); printf("%d %d\\n", p[2], p[3]);
  cudaFree(p); }"""


def test_a_fence_orders_two_threads_of_a_block_where_a_flag_is_set_behind_it(tmp_path):
    right = HANDED_ON.replace("SET(first)", "atomicExch(&first, 1)")
    right = right.replace("SET(second)", "atomicExch(&second, 1)")
    done = build_and_run(tmp_path, right, check=True)
    assert (done.stdout, done.stderr) == ("7 6\n", "")
    early = right.replace(
        "data[0] = 2; __threadfence_block(); atomicExch(&first, 1);",
        "atomicExch(&first, 1); data[0] = 2; __threadfence_block();",
    )
    assert early != right
    done = build_and_run(tmp_path, early, check=True)
    assert "[data-race]" in done.stderr


def test_results_do_not_depend_on_the_number_of_cores(tmp_path):
    source = """
__global__ void k(unsigned* out, unsigned* sum) {
  __shared__ unsigned s[128];
  unsigned t = threadIdx.x, v = blockIdx.x * 2654435761u + t;
  s[t] = v;
  __syncthreads();
  for (int k = 64; k; k >>= 1) { if (t < k) s[t] ^= s[t + k] * 31; __syncthreads(); }
  if (t == 0) { out[blockIdx.x] = s[0]; atomicAdd(sum, s[0]); }
}
int main() { unsigned *o, h[2000], s; cudaMalloc(&o, 2001 * 4); cudaMemset(o, 0, 2001 * 4); \
k<<<2000, 128>>>(o, o + 2000);
  cudaMemcpy(h, o, 8000, cudaMemcpyDeviceToHost); cudaMemcpy(&s, o + 2000, 4, \
cudaMemcpyDeviceToHost);
  unsigned x = 0; for (unsigned v : h) x = x * 33 + v; printf("%u %u\\n", x, s); cudaFree(o); }"""
    outputs = {build_and_run(tmp_path, source, CUDA_CPU_THREADS=str(n)).stdout for n in (1, 2, 5)}
    assert len(outputs) == 1


def test_spinning_threads_and_blocks_come_to_an_end(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__device__ int turn, arrived;
__global__ void in_turn(int* order) {   // each thread waits for the one before, from another warp \
too
  int me = blockDim.x - 1 - threadIdx.x; while (atomicAdd(&turn, 0) != me); order[me] = threadIdx.x;
  __threadfence(); atomicAdd(&turn, 1);
}
__global__ void all_blocks() {          // a barrier of the grid made by hand
  if (threadIdx.x == 0) { atomicAdd(&arrived, 1); while (atomicCAS(&arrived, -1, -1) < \
(int)gridDim.x); }
  __syncthreads();
}
int main() { int* p; cudaMallocManaged(&p, 256); in_turn<<<1, 64>>>(p); all_blocks<<<8, 32>>>(); \
cudaDeviceSynchronize();
  printf("%d %d\\n", p[0], p[63]); cudaFree(p); }""",
    )
    assert done.stdout == "63 0\n"


WAITING = """
__device__ volatile int ready;
__global__ void chain(int* out) {                 // each block waits for one with a higher number
  int turn = gridDim.x - 1 - blockIdx.x;
  if (threadIdx.x == 0) {
    while (ready != turn) {}
    out[turn] = blockIdx.x;
    __threadfence();
    ready = turn + 1;
  }
  __syncthreads();
}
__global__ void ping_pong(volatile int* p, int n) {
  for (int i = 0; i < n; i++) { while ((*p & 1) != threadIdx.x); ++*p; }
}
__global__ void delay() { long long start = clock64(); while (clock64() - start < 1000000); }
__global__ void never() {
  if (threadIdx.x == 3)
    while (ready >= 0) ;
  __syncthreads();
}
int main() {
  int* p; cudaMallocManaged(&p, 400);
  chain<<<8, 64>>>(p); cudaDeviceSynchronize(); printf("%d %d\\n", p[0], p[7]);
  p[0] = 0; ping_pong<<<1, 2>>>(p, 30000); delay<<<300, 256>>>(); cudaDeviceSynchronize(); \
printf("%d\\n", *p);
  never<<<2, 64>>>(); printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}"""


OTHER_ORDERS = pytest.mark.nightly("by day in one order of the threads")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"CUDA_CPU_THREADS": "1"}, marks=OTHER_ORDERS),
        pytest.param({"CUDA_CPU_SEED": "5"}, marks=OTHER_ORDERS),
    ],
)
def test_loops_that_only_wait_let_others_run_and_a_wait_for_nothing_is_told(tmp_path, settings):
    done = build_and_run(tmp_path, WAITING, **settings)
    assert done.stdout == "7 0\n60000\ncudaErrorLaunchTimeout\n"
    line = WAITING.split("\n").index("    while (ready >= 0) ;") + 2
    assert (
        f"program.cu:{line}: error: all threads of kernel `never`" in done.stderr
        and "[deadlock]" in done.stderr
    )


@pytest.mark.parametrize(
    "loop, waits",
    [
        ("while (f == 0);", True),
        ("while (*p != i) { }", True),
        ("while (n >= 1) ;", True),
        ("while (*p++);", False),
        ("while ((a = b));", False),
        ("while (f) g();", False),
        ("do i = 1; while (f);", False),
        ("do { } while (f);", False),
    ],
)
def test_which_loops_wait(loop, waits):
    assert ("WaitLoop" in rewritten("__device__ void f() { int i; " + loop + " }")) == waits
    assert "WaitLoop" not in rewritten("void f() { int i; " + loop + " }")


def test_threads_print_in_their_order_after_they_have_met(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__global__ void k() {
  int v = __shfl_xor_sync(~0u, threadIdx.x, 1);
  printf("%d ", v);
  __syncthreads();
  printf("%d ", v);
}
int main() { k<<<1, 6>>>(); cudaDeviceSynchronize(); k<<<1, 1>>>(); cudaDeviceSynchronize(); }""",
    )
    # one thread alone has nobody to exchange with
    assert done.stdout.split() == "1 0 3 2 5 4 1 0 3 2 5 4 -1 -1".split()


def test_cuda_calls_in_a_callback_are_not_permitted(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__global__ void k() { printf("it ran\\n"); }
void done(cudaStream_t, cudaError_t e, void* text) {
  k<<<1, 1>>>();
  printf("%d %s %s\\n", e, (char*)text, cudaGetErrorName(cudaGetLastError()));
}
int main() {
  cudaStreamAddCallback(0, done, (void*)"callback", 0);
  cudaLaunchHostFunc(0, [](void*) { printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize())); }, \
nullptr);
  cudaGetLastError(); k<<<1, 1>>>(); printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}""",
    )
    assert (
        done.stdout
        == "0 callback cudaErrorNotPermitted\ncudaErrorNotPermitted\nit ran\ncudaSuccess\n"
    )


def test_what_was_printed_before_a_kernel_that_never_ends_is_not_lost(tmp_path):
    source = tmp_path / "p.cu"
    source.write_text("""#include <cstdio>
__global__ void first() { printf("two "); }
__global__ void forever(volatile int* p) { while (*p == 0) { int i = 0; while (i < 1000) ++i; } }
int main() {
  int* p; cudaMallocManaged(&p, 4);
  printf("one "); first<<<1, 1>>>(); cudaDeviceSynchronize(); printf("three"); forever<<<1, \
1>>>(p); cudaDeviceSynchronize();
}""")
    program = build_program(source)
    printed = b""
    seconds = 2
    while printed != b"one two three" and seconds < 600:  # a busy machine may not be there yet
        with pytest.raises(subprocess.TimeoutExpired) as caught:
            subprocess.run([program], stdout=subprocess.PIPE, timeout=seconds)
        printed = caught.value.stdout
        seconds *= 4
    assert printed == b"one two three"


def test_old_warp_synchronous_code_gives_the_right_sum(tmp_path):
    done = build_and_run(
        tmp_path,
        """
__device__ void last_warp(volatile int* s, int t) {
  s[t] += s[t + 32];
  if (true) s[t] += s[t + 16];
  s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
}
__global__ void sum(const int* in, int* out) {
  extern __shared__ int s[];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) last_warp(s, threadIdx.x);
  if (threadIdx.x == 0) *out = s[0];
}
int main() { int *in, *out; cudaMallocManaged(&in, 256); cudaMallocManaged(&out, 4);
  for (int i = 0; i < 64; i++) in[i] = i * i;
  sum<<<1, 64, 256>>>(in, out); cudaDeviceSynchronize(); printf("%d\\n", *out); cudaFree(in); \
cudaFree(out); }""",
    )
    assert done.stdout == "85344\n"


# ---- kernels called from Python
KERNELS = """
template <typename T> __global__ void scale(T* a, T f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= f;
}
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];
}
__global__ void wild(int* p) { *(int*)(threadIdx.x + 8ull) = 1; }
__global__ void forever(volatile int* p) { p[1] = 1; while (*p == 0); }
__global__ void turn(float* a) {
  __shared__ float s[1024];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void from_above(float* f, int* n) {
    int i = threadIdx.x;
    f[i] = __shfl_down_sync(0xffffffff, f[i], 16);
    n[i] = __shfl_down_sync(0xffffffff, n[i], 16);
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "k.cu"
    path.write_text(KERNELS)
    return path


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def test_library(kernels):
    library = Library(kernels, instantiate=["scale<double>"])
    assert {"add", "wild", "scale<double>"} <= set(library.kernels)
    a = np.random.default_rng(1).random(1000)
    expected = a * 3
    library.launch(
        "scale<double>",
        (4, 1, 1),
        (256, 1, 1),
        0,
        [pointer(a), ctypes.c_double(3), ctypes.c_int(1000)],
    )
    np.testing.assert_array_equal(a, expected)


def test_a_shuffle_gives_nothing_useful_from_a_lane_that_takes_no_part(kernels):
    """Which value it gives is open on a GPU; the lane's own one would hide the mistake."""
    f = np.arange(40, dtype=np.float32)
    n = np.arange(40, dtype=np.int32)
    shape = (1, 1, 1), (40, 1, 1)
    Library(kernels).launch("from_above", *shape, 0, [pointer(f), pointer(n)])
    np.testing.assert_array_equal(f[:16], np.arange(16, 32))
    np.testing.assert_array_equal(n[:16], np.arange(16, 32))
    assert np.isnan(f[32:]).all()
    assert (n[32:] == -1).all()


def test_a_kernel_may_be_called_like_a_function_of_the_c_library(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text('extern "C" __global__ void dirname(int* p) { p[threadIdx.x] = 7; }\n')
    a = np.zeros(4, np.int32)
    Library(path).launch("dirname", (1, 1, 1), (4, 1, 1), 0, [pointer(a)])
    assert (a == 7).all()


def test_a_crash_in_a_kernel_is_an_exception(kernels):
    library = Library(kernels)
    a = np.zeros(4, np.int32)
    with pytest.raises(
        LaunchError, match=r"k.cu:10: error: .*\n.*kernel `wild`, block \(0,0,0\), thread"
    ):
        library.launch("wild", (1, 1, 1), (32, 1, 1), 0, [pointer(a)])
    with pytest.raises(LaunchError, match="at most 1024"):
        library.launch("wild", (1, 1, 1), (2048, 1, 1), 0, [pointer(a)])
    with pytest.raises(LaunchError, match="no kernel 'nothing'; it has .*add"):
        library.launch("nothing", (1, 1, 1), (1, 1, 1), 0, [])
    b, c = np.ones(256, np.float32), np.zeros(256, np.float32)
    library.launch(
        "add", (1, 1, 1), (256, 1, 1), 0, [pointer(b), pointer(b), pointer(c), ctypes.c_int(256)]
    )
    assert (c == 2).all()


def test_check_names_the_argument(kernels):
    library = Library(kernels, check=True)
    a, c = np.ones(100, np.float32), np.zeros(100, np.float32)
    buffers = [(a.ctypes.data, a.nbytes, "a"), (c.ctypes.data, c.nbytes, "c")]
    with pytest.raises(LaunchError, match=r"out-of-bounds(.|\n)*thread \(100,0,0\)") as caught:
        library.launch(
            "add",
            (1, 1, 1),
            (128, 1, 1),
            0,
            [pointer(a), pointer(a), pointer(c), ctypes.c_int(100)],
            buffers=buffers,
        )
    assert "argument `a`" in str(caught.value)


def test_check_tells_a_race_at_each_launch(tmp_path):
    """A learner runs a cell twice: the second time, too, it says what is wrong."""
    (tmp_path / "p.cu").write_text("#include <cstdio>" + REVERSE)
    p = np.arange(64, dtype=np.int32)
    for _ in range(2):
        with pytest.raises(LaunchError, match="data-race"):
            Library(tmp_path / "p.cu", check=True).launch(
                "reverse", (1, 1, 1), (64, 1, 1), 0, [pointer(p)]
            )


@pytest.mark.usefixtures("no_collection")
def test_interrupt(kernels):
    library = Library(kernels)
    flags = np.zeros(2, np.int32)  # to end it, and that it runs

    def interrupt():
        while not flags[1]:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    keyboard = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        keyboard.start()
        library.launch("forever", (8, 1, 1), (32, 1, 1), 0, [pointer(flags)])
    keyboard.join()


def test_templates_of_two_libraries_do_not_share_their_shared_memory(tmp_path):
    one, two = tmp_path / "one.cu", tmp_path / "two.cu"
    head = "template <class T> __global__ void k(T* p) { int t = threadIdx.x; __shared__ T a[64]; "
    one.write_text(head + "a[t] = t; p[t] = a[t]; }")
    two.write_text(
        head + "__shared__ T b[64]; a[t] = t; b[t] = 100; __syncthreads(); p[t] = a[63 - t]; }"
    )
    p = np.zeros(64, np.int32)
    for source in (one, two):
        Library(source, instantiate=["k<int>"]).launch(
            "k<int>", (1, 1, 1), (64, 1, 1), 0, [pointer(p)]
        )
    np.testing.assert_array_equal(p, np.arange(64)[::-1])


@pytest.fixture
def many(kernels, tmp_path, monkeypatch):
    """40 libraries, each a file of its own."""
    output, known = builder.build([str(kernels)], (), check=False, shared=True)
    loaded = []
    for i in range(40):
        copy = tmp_path / f"{i}.so"
        copy.write_bytes(output.read_bytes())
        monkeypatch.setattr(
            "utils.cpu.cuda_c.library.build", lambda *_, copy=copy, **__: (copy, known)
        )
        loaded.append(Library(kernels))
    return loaded


def test_many_libraries_in_one_process(many):
    for i, library in enumerate(many):
        a, c = np.full(256, i, np.float32), np.zeros(256, np.float32)
        library.launch(
            "add",
            (1, 1, 1),
            (256, 1, 1),
            0,
            [pointer(a), pointer(a), pointer(c), ctypes.c_int(256)],
        )
        assert (c == 2 * i).all()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_libraries_share_the_stacks_of_waiting_threads(many):
    a = np.arange(1024, dtype=np.float32)

    def turn(library):
        library.launch("turn", (1, 1, 1), (1024, 1, 1), 0, [pointer(a)])

    def mappings():
        return len(Path("/proc/self/maps").read_text().splitlines())

    turn(many[0])
    before = mappings()
    for library in many[1:]:
        turn(library)
    np.testing.assert_array_equal(a, np.arange(1024))
    assert mappings() - before < 1000  # the stacks of one library alone make 2,048


def test_a_cache_that_is_cleared_meanwhile_is_made_anew(tmp_path, monkeypatch):
    """`make doctor CLEAR=1` while a notebook is open."""
    monkeypatch.setattr(preprocess, "cache_folder", lambda: tmp_path / "cache")
    preprocess._header_for.cache_clear()
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(int* p) { *p = N; }\n")
    try:
        texts = []
        for _ in range(2):
            texts.append(preprocess.preprocess(str(source), ["-DN=3"]))
            shutil.rmtree(tmp_path / "cache")
        assert texts[0] == texts[1]
        assert "*p = 3" in texts[0]
    finally:
        preprocess._header_for.cache_clear()


CAPTURED = """
#include <cstdio>
__global__ void nothing() {}
int main() {
  cudaStream_t s; cudaGraph_t g;
  cudaSetDevice(1); cudaStreamCreate(&s); cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  nothing<<<1, 1, 0, s>>>();
  printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize())); cudaGetLastError();
  cudaSetDevice(0); printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaSetDevice(1); printf("%s\\n", cudaGetErrorName(cudaStreamEndCapture(s, &g)));
  printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}"""


def test_a_capture_forbids_waits_for_its_own_device_only(tmp_path):
    done = build_and_run(tmp_path, CAPTURED, CUDA_CPU_DEVICES="2")
    refused, other, ended, after = done.stdout.split()
    assert refused == "cudaErrorStreamCaptureUnsupported"
    assert (other, ended, after) == ("cudaSuccess",) * 3


ASKS_FOR_CLUSTERS = """
#include <cstdio>
__global__ void plain(float* out) { out[0] = 1; }
__global__ void __cluster_dims__(2, 1, 1) pairs(float* out) { out[0] = 1; }
int main() {
    cudaLaunchConfig_t config{};
    config.blockDim = 256;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {4, 1, 1};
    int one = 0, two = 0, four = 0, most = 0, more = 0, none = 0;
    cudaOccupancyMaxActiveClusters(&one, plain, &config);
    cudaOccupancyMaxActiveClusters(&two, pairs, &config);
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaOccupancyMaxActiveClusters(&four, plain, &config);
    cudaOccupancyMaxPotentialClusterSize(&most, plain, &config);
    cudaFuncSetAttribute(plain, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    cudaOccupancyMaxPotentialClusterSize(&more, plain, &config);
    attribute.val.clusterDim.x = 32;
    cudaError_t error = cudaOccupancyMaxActiveClusters(&none, plain, &config);
    printf("%d %d %d %d %d ", one > 0, one == 2 * two, one == 4 * four, most, more);
    printf("%d %s", none, cudaGetErrorName(error));
}
"""


def test_a_program_can_ask_how_many_clusters_fit(tmp_path):
    done = build_and_run(tmp_path, ASKS_FOR_CLUSTERS)
    assert done.stdout == "1 1 1 8 16 0 cudaErrorInvalidClusterSize"


LARGE_CLUSTERS = """
__global__ void __cluster_dims__(16) of_the_kernel(int* out) { atomicAdd(out, 1); }
__global__ void of_the_launch(int* out) { atomicAdd(out, 1); }
int main() {
    int* out;
    cudaMallocManaged(&out, sizeof(int));
    *out = 0;
    cudaLaunchConfig_t config{};
    config.gridDim = 48;
    config.blockDim = 1;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {16, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    const auto any = cudaFuncAttributeNonPortableClusterSizeAllowed;
    for (int allowed = 0; allowed < 2; ++allowed) {
        if (allowed) {
            cudaFuncSetAttribute(of_the_kernel, any, 1);
            cudaFuncSetAttribute(of_the_launch, any, 1);
        }
        of_the_kernel<<<48, 1>>>(out);
        printf("%s ", cudaGetErrorName(cudaGetLastError()));
        cudaLaunchKernelEx(&config, of_the_launch, out);
        printf("%s ", cudaGetErrorName(cudaGetLastError()));
        cudaDeviceSynchronize();
        printf("%d ", *out);
    }
    attribute.val.clusterDim.x = 24;
    cudaLaunchKernelEx(&config, of_the_launch, out);
    printf("%s", cudaGetErrorName(cudaGetLastError()));
}
"""


def test_a_kernel_has_to_ask_for_clusters_of_more_than_eight(tmp_path):
    done = build_and_run(tmp_path, LARGE_CLUSTERS)
    wrong = "cudaErrorInvalidClusterSize"
    right = "cudaSuccess"
    assert done.stdout.split() == [wrong, wrong, "0", right, right, "96", wrong]
    assert "NonPortableClusterSizeAllowed" in done.stderr
