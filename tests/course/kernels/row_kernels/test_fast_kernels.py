"""The fast kernels on the CPU runtime: the ring, clusters, the dealing of rows and the formulas.

Copies are as late there as a GPU may make them. How fast it all is, and larger shapes,
`course.kernels.row_kernels.bench` sees on a GPU.
"""

from dataclasses import replace

import pytest
import torch

from course.kernels.row_kernels import norms
from course.kernels.row_kernels.fast import KERNELS
from course.kernels.row_kernels.shapes import Shape
from tests.course.kernels.row_kernels import expected as exact
from tests.needs import without_gpu
from utils import cuda_c

pytestmark = without_gpu("stands in for a GPU")

ROWS, BLOCKS = 9, 2  # more tiles than the ring has stages, and a last tile that is not full
SHAPES = [
    Shape(columns=128, cluster=1, group=32, threads=64, stages=2, blocks=1),
    Shape(columns=104, cluster=1, group=32, threads=64, stages=2, blocks=1),
    Shape(columns=256, cluster=1, group=64, threads=128, stages=0, blocks=1),
    Shape(columns=264, cluster=1, group=64, threads=64, stages=3, blocks=1),
    Shape(columns=256, cluster=2, group=64, threads=64, stages=2, blocks=1),
]
#: Rows that begin anywhere within an access
RAGGED = Shape(columns=101, cluster=1, group=32, threads=64, stages=0, blocks=1)
RAGGED_CLUSTER = Shape(columns=259, cluster=2, group=32, threads=32, stages=0, blocks=1)
OTHER_SHAPES = pytest.mark.nightly("by day a ring, a ring of a cluster, and ragged rows")
CASES = [
    *(pytest.param((shape, torch.float32), marks=OTHER_SHAPES) for shape in SHAPES[:4]),
    (SHAPES[4], torch.float32),
    (SHAPES[1], torch.bfloat16),
    (RAGGED_CLUSTER, torch.float32),
    pytest.param((RAGGED, torch.float32), marks=OTHER_SHAPES),
    pytest.param((RAGGED_CLUSTER, torch.bfloat16), marks=OTHER_SHAPES),
]
#: Rows read twice: all threads have as many values, or not
TWICE_SHAPES = [
    Shape(columns=256, cluster=1, group=64, threads=128, stages=0, blocks=1, twice=True),
    Shape(columns=388, cluster=1, group=96, threads=96, stages=0, blocks=1, twice=True),
]
DTYPES = {torch.float32: ("float", 3e-6), torch.bfloat16: ("__nv_bfloat16", 2e-2)}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture
def shape(case):
    return case[0]


@pytest.fixture
def dtype(case):
    return case[1]


@pytest.fixture
def launch(shape, dtype):
    """launch(file, kernel, *arguments) in the shape."""
    return in_shape(shape, dtype)


def clusters_of(shape):
    """So many that the rows that one of them takes begin alike within an access."""
    return ROWS - 1 if shape.ragged else BLOCKS


def in_shape(shape, dtype):
    def run(file, name, *arguments, inputs=1):
        macros = {"ELEMENT": DTYPES[dtype][0]} | shape.macros
        flags = tuple(f"-D{key}={value}" for key, value in macros.items())
        kernel = getattr(cuda_c.load(KERNELS / file, flags=flags), name)
        shape_now = replace(shape, inputs=inputs, item_bytes=dtype.itemsize)
        grid = clusters_of(shape) * shape.cluster
        if shape.twice:
            grid = -(-ROWS // shape.tile_rows)
        kernel[grid, shape.threads, shape_now.shared_bytes](*arguments)

    return run


def normal(*sizes, dtype, seed):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


def poison(*sizes, dtype=torch.float32):
    return torch.full(sizes, float("nan"), dtype=dtype)


def assert_close(actual, expected, dtype):
    expected = expected.detach()
    tolerance = DTYPES[dtype][1] * max(1, float(expected.abs().max()))
    assert float((actual.double() - expected).abs().max()) <= tolerance


def test_softmax(launch, shape, dtype):
    x = normal(ROWS, shape.columns, dtype=dtype, seed=1)
    x[2, 3] = -float("inf")
    out = poison(*x.shape, dtype=dtype)
    launch("fast_softmax.cu", "softmax_fast", out, x, ROWS)
    assert_close(out, x.double().softmax(-1), dtype)


def test_layer_norm(launch, shape, dtype):
    columns = shape.columns
    x, dy = (normal(ROWS, columns, dtype=dtype, seed=seed) for seed in (1, 2))
    gamma, beta = normal(2, columns, dtype=dtype, seed=3)
    expected, gradients = exact.with_gradients(exact.layer_norm, (x, gamma, beta), dy)

    y, dx = (poison(ROWS, columns, dtype=dtype) for _ in range(2))
    means, inverses = poison(2, ROWS)
    dgamma, dbeta = poison(2, clusters_of(shape), columns)
    launch(
        *("fast_layer_norm.cu", "layer_norm_fast", y, means, inverses),
        *(x, gamma, beta, ROWS, norms.EPSILON),
    )
    assert_close(y, expected, dtype)
    launch(
        *("fast_layer_norm_backward.cu", "layer_norm_backward_fast", dx, dgamma, dbeta),
        *(dy, x, gamma, means, inverses, ROWS),
        inputs=2,
    )
    for actual, wanted in zip((dx, dgamma.sum(0), dbeta.sum(0)), gradients, strict=True):
        assert_close(actual, wanted, dtype)


def test_rms_norm(launch, shape, dtype):
    columns = shape.columns
    x, dy = (normal(ROWS, columns, dtype=dtype, seed=seed) for seed in (1, 2))
    gamma = normal(columns, dtype=dtype, seed=3)
    expected, gradients = exact.with_gradients(exact.rms_norm, (x, gamma), dy)

    y, dx = (poison(ROWS, columns, dtype=dtype) for _ in range(2))
    inverses = poison(ROWS)
    dgamma = poison(clusters_of(shape), columns)
    launch("fast_rms_norm.cu", "rms_norm_fast", y, inverses, x, gamma, ROWS, norms.EPSILON)
    assert_close(y, expected, dtype)
    launch(
        *("fast_rms_norm_backward.cu", "rms_norm_backward_fast", dx, dgamma),
        *(dy, x, gamma, inverses, ROWS),
        inputs=2,
    )
    for actual, wanted in zip((dx, dgamma.sum(0)), gradients, strict=True):
        assert_close(actual, wanted, dtype)


@pytest.mark.parametrize("shape", TWICE_SHAPES, ids=str)
def test_layer_norm_of_rows_that_are_read_twice(shape):
    columns = shape.columns
    x = normal(ROWS, columns, dtype=torch.float32, seed=1) * 3 + 50  # sums of squares would cancel
    gamma, beta = normal(2, columns, dtype=torch.float32, seed=3)
    y = poison(*x.shape)
    means, inverses = poison(2, ROWS)
    in_shape(shape, torch.float32)(
        *("two_reads_layer_norm.cu", "layer_norm_two_reads", y, means, inverses),
        *(x, gamma, beta, ROWS, norms.EPSILON),
    )
    wide = [v.double() for v in (x, gamma, beta)]
    assert_close(y, exact.layer_norm(*wide), torch.float32)
    assert_close(means, wide[0].mean(1), torch.float32)
    variances = wide[0].var(1, correction=0)
    assert_close(inverses, (variances + norms.EPSILON).rsqrt(), torch.float32)


def test_cross_entropy(launch, shape, dtype):
    columns = shape.columns
    x = normal(ROWS, columns, dtype=dtype, seed=1)
    targets = torch.arange(ROWS) * 13 % columns
    targets[2] = -100
    weights = torch.linspace(0.5, 2, ROWS)
    expected, gradient = exact.losses(x, targets, weights)
    file = "fast_cross_entropy.cu"

    losses, log_sums = poison(2, ROWS)
    launch(file, "cross_entropy_fast", losses, log_sums, x, targets, ROWS, -100)
    assert_close(losses, expected, torch.float32)

    dx = poison(*x.shape, dtype=dtype)
    launch(
        *(file, "cross_entropy_backward_fast", dx, x, log_sums, targets, weights, ROWS, -100),
    )
    assert_close(dx, gradient, dtype)

    losses, dx = poison(ROWS), poison(*x.shape, dtype=dtype)
    launch(
        *(file, "cross_entropy_and_gradient_fast", losses, log_sums, dx),
        *(x, targets, weights, ROWS, -100),
    )
    assert_close(losses, expected, torch.float32)
    assert_close(dx, gradient, dtype)
