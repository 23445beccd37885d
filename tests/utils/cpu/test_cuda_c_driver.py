"""The stand-in for nvcc: Makefiles with several sources, and what `-arch` decides."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import cpp_compiler
from tests.processes import completed
from utils.cpu.cuda_c import build, driver
from utils.cpu.cuda_c.architecture import Architecture, architecture
from utils.cpu.cuda_c.build import BuildError, build_program
from utils.cpu.cuda_c.rewrite import rewrite
from utils.cpu.cuda_c.tokens import RewriteError

cpp_compiler()

NVCC = Path(driver.__file__).with_name("bin") / "nvcc"
HEADER = "__device__ int scaled(int);\n"
MAIN = """#include <cstdio>
#include "scaled.h"
__global__ void scale(int* p) { p[threadIdx.x] = scaled(threadIdx.x); }
extern "C" int twice(int);
int main() {
    int* p;
    cudaMallocManaged(&p, 4 * sizeof(int));
    scale<<<1, 4>>>(p);
    cudaDeviceSynchronize();
    printf("%d %d %d\\n", p[0], p[3], twice(7));
    cudaFree(p);
}
"""
SCALED = """#include "scaled.h"
__constant__ int factor = 10;
__device__ int scaled(int x) { return x * factor + __CUDA_ARCH__; }
"""
IN_C = "int twice(int class) { return 2 * class; }\n"
MAKEFILE = """FLAGS = -arch=sm_80 -rdc=true -Xcompiler -Wall
program: main.o scaled.o twice.o
\t$(NVCC) $(FLAGS) $^ -o $@
%.o: %.cu scaled.h
\t$(NVCC) $(FLAGS) -MMD -dc $< -o $@
%.o: %.c
\t$(NVCC) -c $< -o $@
"""


def test_a_makefile_builds_a_program_of_several_sources(tmp_path):
    texts = {
        "scaled.h": HEADER,
        "main.cu": MAIN,
        "scaled.cu": SCALED,
        "twice.c": IN_C,
        "Makefile": MAKEFILE,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    env = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["make", f"NVCC={NVCC}"], cwd=tmp_path, env=env, check=True)
    done = completed([tmp_path / "program"])
    assert (done.stdout, done.returncode) == ("800 830 14\n", 0)
    assert "main.cu scaled.h" in (tmp_path / "main.d").read_text()


def test_who_changes_one_of_two_sources_waits_for_that_one(tmp_path, monkeypatch):
    one, other = tmp_path / "one.cu", tmp_path / "other.cu"
    one.write_text(f'// {tmp_path}\nextern int n();\nint main() {{ printf("%d\\n", n()); }}\n')
    compiled, units = build.compiled, []
    monkeypatch.setattr(build, "compiled", lambda command: units.append(1) or compiled(command))
    for n, many in ((3, 2), (4, 1), (3, 0)):
        other.write_text(
            f"__global__ void k(int* p) {{ int unset; *p = unset; }}\nint n() {{ return {n}; }}\n"
        )
        program, facts = build.build([str(one), str(other)], [], check=False, shared=False)
        assert completed([program]).stdout == f"{n}\n"
        assert len(units) == many
        assert "unset" in "".join(facts["warnings"]), "those of what is kept are told again"
        units.clear()


def test_c_may_call_cuda_and_launch_through_a_function(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fill.cu").write_text(
        "__global__ void fill(int* p) { p[threadIdx.x] = threadIdx.x; }\n"
        'extern "C" void launch_fill(int* p, int n) { fill<<<1, n>>>(p); }\n'
    )
    Path("main.c").write_text(
        "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <cuda_runtime.h>\n"
        "void launch_fill(int* p, int n);\n"
        "int main(void) {\n    int *host = malloc(16), *p;\n"
        "    cudaMalloc((void**)&p, 16);\n    launch_fill(p, 4);\n"
        "    cudaMemcpy(host, p, 16, cudaMemcpyDeviceToHost);\n"
        '    printf("%d %g\\n", host[3], sqrt(host[1]));\n    cudaFree(p);\n    return 0;\n}\n'
    )
    for source in ("fill.cu", "main.c"):
        assert driver.main(["-c", source]) == 0
    assert driver.main(["main.o", "fill.o", "-o", "program"]) == 0
    assert completed(["./program"]).stdout == "3 1\n"


KERNEL = "#include <cuda_runtime.h>\n__global__ void k() {}\n"


@pytest.mark.parametrize("name", ["x.c", "x.cpp"])
def test_kernels_are_refused_where_nvcc_sees_no_cuda_c(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(KERNEL)
    assert driver.main(["-c", name]) == 1
    assert f"{name}:2: error: to nvcc this is no CUDA C++" in capsys.readouterr().err
    with pytest.raises(BuildError, match="ending .cu"):
        build_program(name)


def built_and_run(folder, name, text):
    (folder / name).write_text(text)
    words = [str(folder / name), "-o", str(folder / "program")]
    assert driver.main(words) == 0
    return completed([str(folder / "program")]).stdout


def test_a_cpp_file_may_call_a_library_whose_header_has_kernels_here(tmp_path):
    text = """#include <cublas_v2.h>
    #include <cstdio>
    int main() { cublasHandle_t h; printf("%d", cublasCreate(&h)); cublasDestroy(h); }
    """
    assert built_and_run(tmp_path, "call.cpp", text) == "0"


def test_a_cpp_file_without_cuda_has_its_names_to_itself(tmp_path):
    text = """#include <cstdio>
    static unsigned umin(unsigned a, unsigned b) { return a <= b ? a : b; }
    int main() { printf("%u", umin(3, 4)); }
    """
    assert built_and_run(tmp_path, "plain.cpp", text) == "3"


def test_kernels_are_refused_in_the_one_source_where_nvcc_sees_none(tmp_path, capsys):
    """Each source of a build by its own ending, and with the line."""
    (tmp_path / "main.cu").write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")
    (tmp_path / "more.cpp").write_text("#include <cuda_runtime.h>\n\n__global__ void m() {}\n")
    with pytest.raises(BuildError, match=r"more.cpp:3: error: to nvcc this is no CUDA C\+\+"):
        build_program(tmp_path / "main.cu", [str(tmp_path / "more.cpp")])


def test_a_source_that_is_not_there_is_named(tmp_path, capsys):
    assert driver.main([str(tmp_path / "absent.cu")]) == 1
    assert capsys.readouterr().err.endswith("absent.cu: there is no such file\n")


@pytest.mark.parametrize("words", [["-x", "cu"], ["-x=cu"], ["--x", "cu"]])
def test_any_ending_may_be_called_cuda_c(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    Path("x.cpp").write_text(KERNEL)
    assert driver.main([*words, "-c", "x.cpp"]) == 0


def test_what_only_a_gpu_has_is_refused_by_name(capsys):
    assert driver.main(["-ptx", "x.cu"]) == 1
    assert "'-ptx'" in capsys.readouterr().err
    assert driver.main(["-o", "x"]) == 1
    assert "no source" in capsys.readouterr().err
    assert driver.main(["--version"]) == 0
    assert "release 13.0" in capsys.readouterr().out


def test_errors_name_the_line_of_the_source(tmp_path, capsys):
    source = tmp_path / "wrong.cu"
    source.write_text("int main() {\n    return nothing;\n}\n")
    assert driver.main(["-c", str(source), "-o", str(tmp_path / "wrong.o")]) == 1
    assert "wrong.cu:2:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags, expected",
    [
        ([], "sm_90a"),
        (["-arch=sm_75"], "sm_75"),
        (["-arch", "sm_120a"], "sm_120a"),
        (["--gpu-architecture=compute_89"], "sm_89"),
        (
            ["-gencode", "arch=compute_70,code=sm_70", "-gencode=arch=compute_90,code=sm_90"],
            "sm_90",
        ),
        (["-arch=native", "-Isource/sm_10"], "sm_90a"),
    ],
)
def test_the_newest_architecture_named_counts(flags, expected):
    assert str(architecture(flags)) == expected


def test_macros_are_those_of_nvcc():
    assert Architecture(75, "").macros() == ["-D__CUDA_ARCH__=750"]
    assert "-D__CUDA_ARCH_FEAT_SM90_ALL=1" in Architecture(90, "a").macros()


@pytest.mark.parametrize(
    "opcode, first",
    [
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "sm_75"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_75"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"),
        ("cp.async.ca.shared.global", "sm_80"),
        ("mbarrier.init.shared::cta.b64", "sm_80"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89"),
        ("mbarrier.try_wait.parity.shared::cta.b64", "sm_90"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier", "sm_90"),
        ("stmatrix.sync.aligned.m8n8.x4.shared.b16", "sm_90"),
        ("wgmma.fence.sync.aligned", "sm_90a"),
        ("setmaxnreg.inc.sync.aligned.u32", "sm_90a"),
    ],
)
def test_an_instruction_is_there_from_its_architecture_on(opcode, first):
    order = [Architecture(n, s) for n, s in ((75, ""), (80, ""), (89, ""), (90, ""), (90, "a"))]
    having = [str(gpu) for gpu in order if not gpu.lacks(opcode)]
    assert having == [str(gpu) for gpu in order][-len(having) :]
    assert having[0] == first


def test_hopper_alone_has_wgmma():
    assert Architecture(100, "a").lacks("wgmma.fence.sync.aligned")
    assert not Architecture(120, "").lacks("cp.async.bulk.commit_group")


def test_an_instruction_of_a_newer_gpu_is_refused_with_its_line():
    source = '# 1 "x.cu"\n__device__ void f() {\n    asm("wgmma.fence.sync.aligned;");\n}\n'
    assert "wgmma" in rewrite(source)[0]
    with pytest.raises(RewriteError, match=r"x\.cu:2.*sm_80: it requires \.target sm_90a"):
        rewrite(source, gpu=Architecture(80, ""))
