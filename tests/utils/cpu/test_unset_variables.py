"""What nvcc warns of and we do: variables that are used before they have a value."""

from pathlib import Path

from tests.needs import cpp_compiler
from utils.cpu.cuda_c.build import build_program
from utils.cpu.cuda_c.unset_variables import warnings_in

cpp_compiler()

GCC = """\
sum.cu: In lambda function:
sum.cu:7:275: warning: ‘x’ is used uninitialized [-Wuninitialized]
sum.cu:7:263: note: ‘x’ was declared here
/usr/include/other.h:3:4: warning: ‘y’ is used uninitialized [-Wuninitialized]
/course/utils/cpu/cuda_c/include/detail/arithmetic.h:122:16: warning: ‘sum’ may be used \
uninitialized [-Wmaybe-uninitialized]
sum.cu: In function ‘void cuda_cpu::run_threads(const void*)’:
sum.cu:2:285: note: ‘sum’ was declared here
sum.cu:9:1: warning: ‘acc[0]’ may be used uninitialized [-Wmaybe-uninitialized]
sum.cu:4:1: note: ‘acc’ declared here
sum.cu:12:3: warning: division by zero [-Wdiv-by-zero]
"""


def test_only_such_variables_are_told_each_in_a_line_of_the_learners(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sum.cu").write_text("\nfloat sum; sum += 1;\n\nint acc[4];\nacc[0]++;\n")
    assert warnings_in(GCC) == [
        "sum.cu:7: warning: `x` is used before it has a value [uninitialised-local]",
        "sum.cu:2: warning: `sum` may be used before it has a value [uninitialised-local]",
        "sum.cu:9: warning: `acc` may be used before it has a value (line 4 declares it without "
        "one) [uninitialised-local]",
    ]


PROGRAM = """\
__global__ void total(int* out, int n) {
    float sum;
    for (int i = 0; i < n; i++)
        sum += out[i];
    out[threadIdx.x] = int(sum);
}
__global__ void right(int* out, int n) {
    float v;
    if (threadIdx.x < n)
        v = out[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < n)
        out[threadIdx.x] = int(v) + 1;
}
int main() {
    int devices;
    cudaGetDeviceCount(&devices);
    return devices - 1;
}
"""


def test_a_warning_comes_with_each_build_and_none_for_a_right_kernel(tmp_path, capsys):
    source = tmp_path / "total.cu"
    source.write_text(PROGRAM)
    for _ in range(2):  # the second one comes from the cache
        build_program(source)
        said = capsys.readouterr().err
        assert "`sum` may be used before it has a value" in said
        assert len(said.splitlines()) == 1
