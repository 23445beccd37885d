"""@vectorize, @guvectorize and NumPy's ufuncs in kernels on the CPU engine, and modules of
numba.cuda that programs import."""

import importlib

import numpy as np
import pytest
from numba import float32, float64, guvectorize, int32, int64, uint32, vectorize, void

from tests.needs import without_gpu
from utils.cpu.numba_cuda import KernelError, KernelIndexError, UninitializedError, cuda

pytestmark = without_gpu("numba.cuda is the real one here")


@vectorize(
    [int32(int32, int32), float32(float32, float32), float64(float64, float64)], target="cuda"
)
def add_twice(a, b):
    return a + 2 * b


@guvectorize(
    [void(float64[:, :], float64[:, :], float64[:, :])], "(m,n),(n,p)->(m,p)", target="cuda"
)
def product(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = 0
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


# ---- vectorize


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_a_ufunc_takes_the_version_of_its_arrays_types(dtype):
    a = np.arange(7).astype(dtype)
    result = add_twice(a, a[::-1].copy())
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, a + 2 * a[::-1])


def test_a_ufunc_writes_into_the_array_that_out_names():
    a = np.random.default_rng(0).random(40)
    b = np.random.default_rng(1).random(40)
    on_host = np.full(40, np.nan)
    assert np.shares_memory(add_twice(a, b, out=on_host), on_host)
    np.testing.assert_array_equal(on_host, a + 2 * b)
    on_device = cuda.device_array(40)
    add_twice(cuda.to_device(a), b, out=on_device)
    np.testing.assert_array_equal(on_device.copy_to_host(), a + 2 * b)


def test_a_ufunc_broadcasts_and_reduces_as_numba_does():
    column = np.arange(3.0)[:, None]
    row = np.arange(2.0)[None, :]
    result = add_twice(cuda.to_device(column), row)
    assert isinstance(result, cuda.devicearray.DeviceNDArray)
    np.testing.assert_array_equal(result.copy_to_host(), column + 2 * row)

    @vectorize([int64(int64, int64)], target="cuda")
    def add(a, b):
        return a + b

    assert add.reduce(np.arange(101)) == 5050


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: add_twice(np.arange(3), np.arange(3)), TypeError, "the exact types"),
        (lambda: add_twice(np.zeros(3), np.zeros(4)), ValueError, "failed to broadcast"),
        (lambda: product(np.zeros((2, 3)), np.zeros((4, 5))), ValueError, "mismatch"),
        (lambda: product(np.zeros((2, 3))), TypeError, "accepts 2 positional arguments"),
        (lambda: vectorize(["f4(f4)"], target="cuda", cache=True)(abs), TypeError, "caching"),
        (
            lambda: guvectorize([int32(int32[:], int32[:])], "(n)->(n)", target="cuda")(abs),
            TypeError,
            "cannot return values",
        ),
        (
            lambda: guvectorize([void(int32[:], int32[:])], "(n)->(m)", target="cuda")(abs),
            NameError,
            "undefined output symbols: m",
        ),
    ],
)
def test_what_numba_refuses_is_refused_in_its_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_ufuncs_integers_have_its_signatures_width():
    """The sum of two uint32 is a uint64 in Numba, and an int64 wraps before it is shifted."""

    @vectorize([int64(int64)], target="cuda")
    def scramble(x):
        return (x * 6364136223846793005 + 1442695040888963407) >> 33

    @vectorize([float64(uint32, uint32)], target="cuda")
    def distance(a, b):
        return a - b

    x = np.array([1, 12345678901234567, -5])
    wrapped = x.astype(np.uint64) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    np.testing.assert_array_equal(scramble(x), wrapped.astype(np.int64) >> 33)
    assert distance(np.array([1], np.uint32), np.array([2], np.uint32))[0] == 2.0**64 - 1


def test_a_ufunc_without_a_result_type_gets_the_one_that_numba_infers():
    @vectorize([(int32, float32)], target="cuda")
    def scale(n, x):
        return n * x

    result = scale(np.arange(4, dtype=np.int32), np.full(4, 0.5, np.float32))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, np.arange(4) / 2)


# ---- guvectorize


def test_a_gufunc_runs_over_the_outer_axes():
    random = np.random.default_rng(2)
    a = random.random((4, 3, 2, 5))
    b = random.random((4, 3, 5, 6))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-14)
    np.testing.assert_allclose(product(a[0], b[0, 0]), a[0] @ b[0, 0], rtol=1e-14)


def test_a_gufunc_with_two_results_and_one_that_is_given():
    @guvectorize([(float64[:], float64[:], float64[:])], "(n)->(),()", target="cuda")
    def extremes(x, low, high):
        low[0] = high[0] = x[0]
        for i in range(1, x.size):
            low[0] = min(low[0], x[i])
            high[0] = max(high[0], x[i])

    x = np.random.default_rng(3).random((6, 9))
    low, high = extremes(x)
    np.testing.assert_array_equal(low, x.min(1))
    np.testing.assert_array_equal(high, x.max(1))
    out = np.zeros((2, 2))
    product(np.eye(2), np.ones((2, 2)), out=out)
    assert (out == 1).all()


def test_a_gufuncs_mistake_is_named_like_a_kernels():
    @guvectorize([void(float64[:], float64[:])], "(n)->(n)", target="cuda")
    def shift(x, out):
        for i in range(x.size):
            out[i] = x[i + 1]

    with pytest.raises(KernelIndexError, match=r"index 3 is outside") as caught:
        shift(np.zeros(3))
    assert "out[i] = x[i + 1]" in str(caught.value)


# ---- ufuncs in kernels


def in_kernel(function, *args):
    cuda.jit(function)[1, 1](*args)


def test_a_ufunc_in_a_kernel_fills_the_array_it_is_given():
    def both(a, b, total, sine):
        np.add(a, b, total)
        np.sin(total, sine)

    a = np.random.default_rng(4).random((3, 4))
    b = np.array([2, 3, 5, 7], np.int32)
    total, sine = np.zeros((3, 4)), np.zeros((3, 4), np.float32)
    in_kernel(both, a, b, total, sine)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(sine, np.sin(a + b).astype(np.float32))


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda a, b: np.sin(a), "np.sin of an array would make a new array"),
        (lambda a, b: np.add(a, a, b), r"\(4,\) and \(4,\) do not fit into the shape \(3,\)"),
        (lambda a, b: np.add.reduce(a), "np.add.reduce: that is not available in kernels"),
        (lambda a, b: np.amax(a), "np.maximum.reduce: that is not available in kernels"),
        (lambda a, b: np.any(a[1:3]), "np.logical_or.reduce: that is not available in kernels"),
        (lambda a, b: np.sqrt(a, a, where=True), "takes arrays alone, not where="),
    ],
)
def test_a_ufunc_that_a_kernel_cannot_have_is_refused(function, words):
    with pytest.raises(KernelError, match=words):
        in_kernel(function, np.zeros(4), np.zeros(3))


def test_a_ufunc_in_a_kernel_reads_only_what_is_written():
    with pytest.raises(UninitializedError, match="'a'"):
        in_kernel(lambda a, b: np.sin(a, b), cuda.device_array(4), np.zeros(4))


def test_a_long_tuple_in_a_kernel_is_no_list():
    source = (
        "def fill(out):\n    total = 0\n    for n in ({}):\n        total += n\n    out[0] = total"
    )
    names = {}
    exec(source.format(", ".join(f"out[1] + {i}" for i in range(40))), names)
    out = np.zeros(2, np.int64)
    in_kernel(names["fill"], out)
    assert out[0] == sum(range(40))


# ---- imports


def test_transpose_of_numbas_kernels_runs():
    transpose = importlib.import_module("numba.cuda.kernels.transpose").transpose
    matrix = np.random.default_rng(5).random((5, 35))
    np.testing.assert_array_equal(transpose(cuda.to_device(matrix)).copy_to_host(), matrix.T)


def test_vector_types_are_found_by_numba_cudas_names():
    module = importlib.import_module("numba.cuda.vector_types")
    kind = module.vector_types["float32x4"]
    assert (kind.base_type, kind.num_elements, kind.name) == (float32, 4, "float32x4")
    assert all(getattr(cuda, alias) is kind for alias in kind.user_facing_object.aliases)


def test_a_device_array_is_made_over_anothers_memory():
    devicearray = importlib.import_module("numba.cuda.cudadrv.devicearray")
    row = cuda.to_device(np.arange(4.0))
    rows = devicearray.DeviceNDArray((3, 4), (0, 8), row.dtype, gpu_data=row.gpu_data)
    np.testing.assert_array_equal(rows.copy_to_host(), np.tile(np.arange(4.0), (3, 1)))


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(ModuleNotFoundError, match="the CPU engine has no numba.cuda.codegen"):
        importlib.import_module("numba.cuda.codegen")
