"""Triton through its interpreter: bfloat16 is right, tuning and timing do not crash and claim
nothing.
"""

import os
import sys
import zlib

import numpy as np
import pytest

from tests.prepared import Prepared
from tests.processes import completed

pytest.importorskip("triton")

START = """
import warnings
from utils.cpu import triton as engine
engine.install()
import torch, triton
import triton.language as tl
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A process that has decided how Triton's kernels run, and has imported it."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "start.py").write_text(START)
    prepared = Prepared(["start"], folder, {**os.environ, "CUDA_COURSE_CPU": "1"})
    yield prepared
    prepared.end()


@pytest.fixture
def run(python):
    """run(source) gives what it prints in a copy of that process."""

    def printed(source):
        name = f"program_{zlib.crc32(source.encode())}"
        (python.folder / f"{name}.py").write_text(START + source)
        done = python.run(name)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return printed


def test_bfloat16_is_computed_as_on_a_gpu(run):
    out = run(
        """
@triton.jit
def dot(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))

@triton.jit
def mixed(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(a + i)
    tl.store(out + i, tl.where(x > 0, x, -x) * 2.0 + x.to(tl.float16).to(tl.bfloat16))
    tl.store(out + B + i, tl.cumsum(x, 0))
    tl.store(out + 2 * B + i, i.to(tl.bfloat16) + x.to(tl.int32))
    tl.store(out + 3 * B, tl.sum(x, 0))
    tl.store(out + 3 * B + 1, tl.max(x, 0))
    tl.store(out + 3 * B + 2, tl.min(x, 0))

torch.manual_seed(0)
a, b = torch.randn(16, 16).bfloat16(), torch.randn(16, 16).bfloat16()
c = torch.zeros(16, 16)
dot[(1,)](a, b, c, 16)
print(torch.allclose(c, a.float() @ b.float(), atol=1e-5))
x, out = (torch.randn(16) * 3).bfloat16(), torch.zeros(51, dtype=torch.bfloat16)
mixed[(1,)](x, out, 16)
wanted = torch.cat([(x.abs() * 2 + x), x.float().cumsum(0).bfloat16(),
                    torch.arange(16).bfloat16() + x.int().bfloat16(),
                    torch.stack([x.float().sum().bfloat16(), x.max(), x.min()])])
print(torch.equal(out, wanted))
""",
    )
    assert out.split() == ["True", "True"]


def test_float32_to_bfloat16_rounds_to_even_and_keeps_nan(run):
    out = run(
        """
@triton.jit
def convert(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(a + i).to(tl.bfloat16))

a = torch.tensor([1.00390625, 1.01171875, -3.4e38, float("nan"), float("inf"), 1e-40, 0.1, -0.0])
out = torch.zeros(8, dtype=torch.bfloat16)
convert[(1,)](a, out, 8)
print(torch.equal(out.nan_to_num(7.0), a.bfloat16().nan_to_num(7.0)))
print(bool(out.isnan()[3]))
""",
    )
    assert out.split() == ["True", "True"]


def test_tf32_is_cut_off_not_rounded():
    from utils.cpu.triton.arithmetic import to_tf32

    step = 2.0**-10
    numbers = [1 + 0.9 * step, -1 - 0.9 * step, 1 + step, np.inf, np.nan]
    np.testing.assert_array_equal(
        to_tf32(np.float32(numbers)), np.float32([1, -1, 1 + step, np.inf, np.nan])
    )


def test_autotune_and_do_bench_run_without_a_gpu_and_measure_nothing(run):
    out = run(
        """
@triton.autotune(configs=[triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])
@triton.jit
def add(a, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(a + i, mask=i < n) + 1, mask=i < n)

a, out = torch.randn(100), torch.zeros(100)
add[lambda meta: (triton.cdiv(100, meta["B"]),)](a, out, 100)
print(torch.equal(out, a + 1), add.best_config.kwargs["B"])
calls = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(triton.testing.do_bench(lambda: calls.append(1)),
          triton.testing.do_bench(lambda: calls.append(1), quantiles=[0.5, 0.2, 0.8]),
          triton.testing.do_bench_cudagraph(lambda: calls.append(1)))
print(len(calls), "measured nothing" in str(caught[0].message))
print(triton.runtime.driver.active.get_active_torch_device())
""",
    )
    assert out.splitlines() == ["True 32", "nan [nan, nan, nan] nan", "3 True", "cpu"]


def test_access_outside_the_arguments_is_an_error(run):
    out = run(
        """
@triton.jit
def fill(a, B: tl.constexpr):
    tl.store(a + tl.arange(0, B), 1.0)

@triton.jit
def read(a, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(a + i - 1))

for kernel, tensors in ((fill, [torch.zeros(10)]), (read, [torch.zeros(16), torch.zeros(16)])):
    try:
        kernel[(1,)](*tensors, 16)
    except Exception as error:
        print(str(error).replace("\\n", " "))
""",
    )
    first, second = out.splitlines()
    assert "program 0, line 10: tl.store" in first
    assert "tl.store of 6 elements outside" in first and "element 10 of a, which has 10" in first
    assert "tl.load of 1 element outside" in second and "mask=" in second


def test_the_mask_of_a_load_is_not_that_of_the_store_around_it():
    from utils.cpu.triton.launches import _has_a_mask

    line = "tl.store(out + i, tl.load(x + i, mask=i < n))"
    assert _has_a_mask("load", line) and not _has_a_mask("store", line)
    assert _has_a_mask("store", "tl.store(out + i, value, i < n)")
    assert _has_a_mask("load", "x + i, mask=inside)")


def test_pythons_functions_take_no_tensor_of_floats(run):
    out = run(
        """
import math

@triton.jit
def log_sum(out, x, B: tl.constexpr):
    tl.store(out, math.log(tl.sum(tl.load(x + tl.arange(0, B)), 0)))

try:
    log_sum[(1,)](torch.zeros(1), torch.ones(8), 8)
except Exception as error:
    print(error)
""",
    )
    assert "must be real number, not tensor" in out


def test_a_machine_without_triton_says_so(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("""
import importlib.machinery, importlib.util
from utils.cpu import triton as engine
engine.install()
real = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = staticmethod(
    lambda name, path=None, target=None: None if name == "triton" else real(name, path, target))
print(importlib.util.find_spec("triton"))
try:
    import triton
except ModuleNotFoundError as error:
    print(error)
""")
    done = completed(
        [sys.executable, str(file)], timeout=600, env={**os.environ, "CUDA_COURSE_CPU": "1"}
    )
    assert done.stdout.startswith("None\nTriton is not installed: it exists for Linux only"), (
        done.stderr
    )


def test_a_grid_may_be_a_list(run):
    out = run(
        """
@triton.jit
def place(out):
    tl.store(out + tl.program_id(0) * 2 + tl.program_id(1), tl.program_id(0) + 10)

for grid in ([3, 2], lambda given: [3, 2], (3, 2), lambda given: (3, 2)):
    out = torch.zeros(6, dtype=torch.int32)
    place[grid](out)
    print(out.tolist())
""",
    )
    assert out == 4 * "[10, 10, 11, 11, 12, 12]\n"
