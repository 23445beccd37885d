"""CUDA C kernels called from Python: right results, and arguments that would be read as garbage are
refused.
"""

import ctypes

import numpy as np
import pytest
import torch

from tests.needs import without_gpu
from utils import check, cuda_c
from utils.engine import has_gpu

SOURCE = """
__global__ void add(float *out, const float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
template <typename T> __global__ void scale(T *x, T factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
extern "C" __global__ void reverse_block(int *x)
{
    extern __shared__ int tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
__global__ void types(double *out, unsigned char c, long long big, bool flag, float f)
{
    *out = c + big + (flag ? 0.5 : 0.0) + f;
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("k") / "kernels.cu"
    path.write_text(SOURCE)
    return cuda_c.load(path)


def arrays(n):
    rng = np.random.default_rng(1)
    return rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)


def test_numpy_arrays(module):
    a, b = arrays(1001)
    out = check.poison(1001)
    module.add[4, 256](out, a, b, 1001)
    check.close(out, a.astype(float) + b, quiet=True)


def test_torch_tensors(module):
    a, b = (torch.rand(1001, device="cuda" if has_gpu() else "cpu") for _ in "ab")
    out = torch.full_like(a, float("nan"))
    module.add[(4,), (256, 1)](out, a, b, 1001)
    check.close(out, a + b, quiet=True)


def test_numba_device_arrays(module):
    from numba import cuda

    a, b = arrays(1001)
    out = cuda.to_device(check.poison(1001))
    module.add[4, 256](out, cuda.to_device(a), cuda.to_device(b), 1001)
    check.close(out, a + b, quiet=True)


def test_templates(module):
    x = np.arange(10, dtype=np.float64)
    module["scale<double>"][1, 32](x, 2.5, 10)
    check.equal(x, np.arange(10) * 2.5, quiet=True)
    with pytest.raises(AttributeError, match=r'module\["scale<T>"\]'):
        module.scale  # noqa: B018


def test_dynamic_shared_memory(module):
    x = np.arange(64, dtype=np.int32)
    module.reverse_block[1, 64, 64 * 4](x)
    check.equal(x, np.arange(64, dtype=np.int32)[::-1], quiet=True)


def test_scalars_of_every_type(module):
    out = np.zeros(1)
    module.types[1, 1](out, 200, 2**40, True, np.float32(0.25))
    assert out[0] == 200 + 2**40 + 0.5 + 0.25


@pytest.mark.parametrize(
    "arguments, text",
    [
        (lambda a, b, out: (out, a, b), "takes 4 arguments, 3 were given"),
        (
            lambda a, b, out: (out.astype(np.float64), a, b, 8),
            "points to float32, got an array of float64",
        ),
        (lambda a, b, out: (out, np.zeros(16, np.float32)[::2], b, 8), "not contiguous"),
        (lambda a, b, out: (out, a, b, 8.5), "takes a whole number"),
        (lambda a, b, out: (out, a, b, 2**31), "cannot hold"),
        (lambda a, b, out: (out, a, 3.0, 8), "takes an array, got float"),
        (lambda a, b, out: (out, a, b, a), "takes a number, got ndarray"),
        (
            lambda a, b, out: (out, torch.zeros(8, dtype=torch.float64), b, 8),
            "points to float32, got an array of float64",
        ),
    ],
)
def test_wrong_arguments_are_named(module, arguments, text):
    a, b = arrays(8)
    with pytest.raises(TypeError, match=text):
        module.add[1, 32](*arguments(a, b, check.poison(8)))


def test_read_only_output_is_refused(module):
    a, b = arrays(8)
    out = check.poison(8)
    out.flags.writeable = False
    if not has_gpu():
        with pytest.raises(TypeError, match="read-only"):
            module.add[1, 32](out, a, b, 8)


@pytest.mark.parametrize(
    "configuration, text",
    [
        ((1, 2048), "2,048 threads a block|between 1 and 1,024"),
        ((1, (64, 32)), "2,048 threads a block"),
        ((0, 32), "grid.x is 0"),
        ((1, (1, 1, 65)), "block.z is 65"),
        (((1, 70000), 32), "grid.y is 70,000"),
        ((2.0, 32), "use // for a whole number"),
        ((1,), "takes grid, block"),
    ],
)
def test_impossible_launches_are_refused(module, configuration, text):
    with pytest.raises(cuda_c.LaunchError, match=text):
        module.add[configuration]


def test_forgotten_launch_configuration(module):
    with pytest.raises(TypeError, match=r"add\[grid, block\]"):
        module.add(1, 2, 3, 4)


def test_unknown_kernel_and_missing_file(module, tmp_path):
    with pytest.raises(AttributeError, match="no kernel 'sub'; it has: add, scale"):
        module.sub  # noqa: B018
    with pytest.raises(FileNotFoundError, match="run the cell that writes it"):
        cuda_c.load(tmp_path / "none.cu")
    (tmp_path / "empty.cu").write_text("int x;")
    with pytest.raises(cuda_c.CompileError, match="no __global__ function"):
        cuda_c.load(tmp_path / "empty.cu")


def test_a_kernel_may_bear_a_name_that_the_module_has(tmp_path):
    path = tmp_path / "names.cu"
    path.write_text("__global__ void counts(int *out) { out[threadIdx.x] = threadIdx.x; }")
    out = check.poison(32, np.int32)
    cuda_c.load(path)["counts"][1, 32](out)
    assert out.tolist() == list(range(32))


def test_compile_error_shows_the_line(tmp_path):
    path = tmp_path / "bad.cu"
    path.write_text("__global__ void k(float *x)\n{\n    x[0] = y;\n}\n")
    with pytest.raises(cuda_c.CompileError) as error:
        cuda_c.load(path)
    assert ">    3 |     x[0] = y;" in str(error.value)


def test_macros_from_flags(tmp_path):
    path = tmp_path / "m.cu"
    path.write_text("__global__ void k(int *x) { *x = N; }")
    for n in (3, 4):
        x = np.zeros(1, np.int32)
        cuda_c.load(path, flags=(f"-DN={n}",)).k[1, 1](x)
        assert x[0] == n


@without_gpu("on a GPU this would poison the context")
def test_a_crashing_kernel_raises_and_python_lives(tmp_path):
    path = tmp_path / "crash.cu"
    path.write_text("__global__ void k(int *x) { x[1ll << 40] = 1; }")
    with pytest.raises(cuda_c.LaunchError):
        cuda_c.load(path).k[1, 1](np.zeros(1, np.int32))


def test_structs_are_passed_as_ctypes(tmp_path):
    path = tmp_path / "s.cu"
    path.write_text(
        "struct Pair { int a; float b; };\n__global__ void k(float *out, Pair p) { *out = p.a + "
        "p.b; }"
    )

    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]

    out = np.zeros(1, np.float32)
    cuda_c.load(path).k[1, 1](out, Pair(2, 0.5))
    assert out[0] == 2.5
    with pytest.raises(TypeError, match="ctypes.Structure"):
        cuda_c.load(path).k[1, 1](out, 2)


@pytest.mark.parametrize(
    "message, text",
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access", "restart the notebook's kernel"),
        ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested", "smaller block"),
        ("something else", "something else"),
    ],
)
def test_driver_errors_are_explained(message, text):
    assert text in cuda_c.explain(message)
