"""PTX and SASS beside the source: made by each compiler, read with its line table, recorded where
it is missing.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import importlib.util
import json
import linecache

import numpy as np
import pytest
from numba import cuda

from tests.compiling import needs_nvcc
from utils.tools import machine_code, nvcc, toolkit

CU = """#include <cstdio>

template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }
template __global__ void twice<float>(float *);

__global__ void add(float *out, const float *a)
{
    int i = threadIdx.x;
    out[i] = a[i] + 1.0f;
}
"""
PY = """import triton
import triton.language as tl

@triton.jit
def add(out, a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, mask=i < n) + 1.0, mask=i < n)
"""
needs_disassembler = pytest.mark.skipif(
    not machine_code.find_tool("nvdisasm"), reason="no nvdisasm here"
)
needs_triton = pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="no Triton here")


@cuda.jit
def halve(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * np.float32(0.5)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(CU)
    return path


@needs_nvcc
@needs_disassembler
def test_nvcc_with_the_line_of_each_instruction(source):
    code = machine_code.nvcc(source, "add")
    assert code.source == [(n, CU.splitlines()[n - 1]) for n in range(6, 11)]
    assert [line for line, text in code.ptx if text.startswith("ld.global")] == [9]
    assert [line for line, text in code.sass if text.startswith("FADD")] == [9]
    assert {line for line, text in code.sass if "SR_TID" in text} == {8}
    assert code.count("ld.global") == 1 and code.count("LDG", "sass") == 1
    assert not code.note and "nvcc" in code.made
    assert machine_code.nvcc(source, "twice").count("st.global") == 1
    with pytest.raises(LookupError, match="no kernel named nothing"):
        machine_code.nvcc(source, "nothing")


@needs_nvcc
@needs_disassembler
def test_a_source_that_does_not_compile_shows_its_line(source):
    source.write_text("__global__ void add(float *x) { y = 1; }\n")
    with pytest.raises(nvcc.NvccError, match="line 1"):
        machine_code.nvcc(source, "add")


@needs_triton
@needs_disassembler
def test_triton_without_its_interpreter(tmp_path):
    path = tmp_path / "k.py"
    path.write_text(PY)
    code = machine_code.triton(path, "add", out="*fp32", a="*fp32", n="i32", BLOCK=512)
    assert code.find("ld.global.v4.b32") and code.find(
        "LDG.E.128", "sass"
    )  # with predicates before them
    assert {line for line, text in code.sass if "STG" in text} == {7}
    assert code.source[0] == (4, "@triton.jit") and code.source[-1][0] == 7
    assert not machine_code.triton(path, "add", out="*fp32", a="*fp32", n="i32", BLOCK=128).find(
        "ld.global.v4"
    )
    with pytest.raises(ValueError, match="does not compile add"):
        machine_code.triton(
            path, "add", out="*fp32", a="*fp32", n="i32", BLOCK=100
        )  # not a power of two
    with pytest.raises(LookupError, match="no kernel named nothing"):
        machine_code.triton(path, "nothing")


@needs_triton
@needs_disassembler
def test_triton_takes_a_kernel():
    namespace = {}
    filename = "<a cell>"
    linecache.cache[filename] = len(PY), None, PY.splitlines(True), filename
    exec(compile(PY, filename, "exec"), namespace)
    types = {"out": "*fp32", "a": "*fp32", "n": "i32", "BLOCK": 512}
    code = machine_code.triton(namespace["add"], **types)
    assert code.find("ld.global.v4.b32")
    assert code.source[0] == (1, "@triton.jit") and code.source[-1][0] == 4


def test_numba_is_compiled_or_says_what_is_missing():
    signature = "void(float32[::1], float32[::1])"
    try:
        code = machine_code.numba(halve, signature)
    except machine_code.Missing as error:
        assert "pip install 'cuda-toolkit[nvvm,nvrtc]" in str(error) and "halve" in str(error)
        return
    assert code.count("mul.f32") == 1 and code.count("LDG", "sass") == 1
    with pytest.raises(ValueError, match="does not compile halve"):
        machine_code.numba(halve, "void(float32[::1])")


def test_recorded_listing_says_so_and_whether_it_is_of_this_kernel(source, tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "RECORDED", tmp_path)
    monkeypatch.setattr(toolkit, "find_nvcc", lambda: None)
    with pytest.raises(machine_code.Missing, match="pip install 'cuda-toolkit.nvcc"):
        machine_code.nvcc(source, "add")
    made = machine_code.MachineCode(
        "add",
        "nvcc 13.0, sm_90",
        machine_code._c_kernel(CU, "add"),
        [(9, "ld.global.f32 %f1, [%rd1]")],
        [(9, "LDG.E R1, [R2.64]")],
    )
    machine_code.record(made, "nvcc")
    shown = machine_code.nvcc(source, "add")
    assert "recorded with nvcc 13.0, sm_90" in shown.note and "as it is now" not in shown.note
    assert [tuple(pair) for pair in shown.ptx] == made.ptx
    source.write_text(CU.replace("1.0f", "2.0f"))
    assert "of the kernel as the chapter has it" in repr(machine_code.nvcc(source, "add"))


def test_html_gives_a_line_and_its_instructions_one_colour():
    source = [(1, "void k() {"), (2, "a < b;")]
    code = machine_code.MachineCode(
        "k", "by hand", source, [(2, "setp.lt")], [(2, "ISETP"), (None, "EXIT")]
    )
    page = code.html()
    colour = page.split("a &lt; b;")[0].rpartition("background:")[2].split(";")[0]
    assert page.count(f"background:{colour}") == 3 and "setp.lt" in page
    assert "background:#ffffff" in page.split("EXIT")[0][-60:]
    assert "ISETP" not in code.html(columns=("source", "ptx"))


def test_lines_of_inlined_code_count_for_the_kernels_own_line():
    ptx = """.file 1 "/x/k.cu"
.file 2 "/x/other.h"
.visible .entry _Z1kPf(
    .param .u64 _Z1kPf_param_0
)
{
    .reg .b32 %r<2>;
    .loc 1 3 5
    mov.u32 %r1, %tid.x; // the index
    .loc 2 77 1, function_name $L__info, inlined_at 1 4 9
    add.s32 %r1, %r1, 1;
    .loc 2 80 1
    ret;
}
"""
    assert machine_code.parse_ptx(ptx, "k", "k.cu") == [
        (3, "mov.u32 %r1, %tid.x"),
        (4, "add.s32 %r1, %r1, 1"),
        (None, "ret"),
    ]
    sass = """//--------------------- .text._Z1kPf --------------------------
.text._Z1kPf:
\t//## File "/x/other.h", line 77 inlined at "/x/k.cu", line 4
\t//## File "/x/k.cu", line 4
        /*0000*/                   IADD3 R0, R0, 0x1, RZ ;
\t//## File "/x/other.h", line 80
        /*0010*/                   EXIT ;
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
        /*0030*/                   NOP;
"""
    assert machine_code.parse_sass(sass, "k", "k.cu") == [
        (4, "IADD3 R0, R0, 0x1, RZ"),
        (None, "EXIT"),
    ]


def test_recorded_listings_of_the_course_are_sound():
    found = list(machine_code.RECORDED.glob("*.json"))
    assert found
    for path in found:
        content = json.loads(path.read_text())
        code = machine_code.MachineCode(**content)
        assert (
            path.name.startswith(code.name + ".")
            and code.ptx
            and code.sass
            and code.source
            and not code.note
        )


SEVERAL = """
template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }
template __global__ void twice<float>(float *);
extern "C" __global__ void plain(float *x) { x[threadIdx.x] += 1.0f; }
"""


@needs_nvcc
@pytest.mark.parametrize("kernel, instruction", [("plain", "add"), ("twice", "")])
def test_ptx_as_text_is_that_of_one_kernel(tmp_path, kernel, instruction):
    source = tmp_path / "k.cu"
    source.write_text(SEVERAL)
    text = machine_code.ptx(source, kernel)
    assert repr(text).startswith(f"// {kernel} in k.cu, nvcc ")
    assert "ld.global" in text and instruction in text and "st.global" in text
    assert ".loc" not in text


@needs_nvcc
def test_sass_as_text_is_that_of_one_kernel(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(SEVERAL)
    text = machine_code.sass(source, "plain")
    assert "LDG" in text and "STG" in text and "EXIT" in text
    with pytest.raises(LookupError, match="no kernel named nothing"):
        machine_code.sass(source, "nothing")
