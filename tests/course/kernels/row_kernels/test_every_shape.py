"""The row functions as a GPU with the fast kernels would run them, on the CPU runtime: rows of any
number, length, type, distance and place, dealt as the functions deal them.
"""

import random

import pytest
import torch

from course.kernels.row_kernels import cross_entropy as ce
from course.kernels.row_kernels import fast, norms
from course.kernels.row_kernels import shapes as dealing
from course.kernels.row_kernels.softmax import softmax
from tests.course.kernels.row_kernels import expected as exact
from tests.needs import without_gpu
from utils import cuda_c

pytestmark = without_gpu("stands in for a GPU")

CLUSTERS = 9  # at a time, as if the GPU had so few: blocks then take several tiles
TOLERANCE = {torch.float32: 3e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}
FUNCTIONS = "softmax", "layer_norm", "rms_norm", "cross_entropy"
DRAWN = 300
LONGEST = 262_000
ELEMENTS = 1 << 15  # of a matrix: a lane of the CPU runtime is slow
#: Function, rows, columns, gap between rows, elements before the first one, type
BY_DAY = [
    ("softmax", 301, 5, 0, 0, torch.float32),
    ("layer_norm", 70, 33, 0, 0, torch.bfloat16),
    ("rms_norm", 33, 2051, 0, 0, torch.float32),
    ("layer_norm", 2, 17_001, 3, 0, torch.bfloat16),  # backward in two kernels
    ("cross_entropy", 37, 127, 0, 3, torch.bfloat16),
    ("cross_entropy", 2, 2051, 5, 0, torch.float16),
]
BY_NIGHT = [
    ("rms_norm", 130, 24, 0, 0, torch.float16),
    ("rms_norm", 1500, 3, 0, 0, torch.float16),  # more than their number's power of two says
    ("layer_norm", 40, 5001, 0, 4, torch.bfloat16),
    ("rms_norm", 1057, 516, 1, 0, torch.float32),
    ("layer_norm", 9, 514, 3, 1, torch.float32),
    ("rms_norm", 3, 1, 2, 0, torch.float32),
    ("cross_entropy", 2, 2048, 0, 4, torch.bfloat16),  # whole accesses that begin within one
]
OTHER_KINDS = pytest.mark.nightly("by day short rows, whole and not, and rows with gaps")
CASES = [*BY_DAY, *(pytest.param(case, marks=OTHER_KINDS) for case in BY_NIGHT)]


class OnCpu(fast.Fast):
    """A kernel that the CPU runtime launches."""

    def launch(self, rows, *arguments):
        shape = self.shape
        blocks = self.grid_clusters(rows) * shape.cluster
        arguments = [gaps_too(each) for each in arguments]
        self.kernel[blocks, shape.threads, shape.shared_bytes](*arguments)


def gaps_too(argument):
    """A matrix with gaps as the piece of memory from its first element to its last."""
    if not isinstance(argument, torch.Tensor) or argument.is_contiguous():
        return argument
    rows, columns = argument.shape
    return argument.as_strided(((rows - 1) * argument.stride(0) + columns,), (1,))


@pytest.fixture
def shapes(monkeypatch):
    """Let the fast kernels be available; the shapes that are taken."""
    taken = []

    def load(file, name, shape, dtype):
        macros = {"ELEMENT": fast.ELEMENTS[dtype]} | shape.macros
        flags = tuple(f"-D{key}={value}" for key, value in macros.items())
        kernel = getattr(cuda_c.load(fast.KERNELS / file, flags=flags), name)
        taken.append(shape)
        return OnCpu(kernel, shape, CLUSTERS, device=0)

    def chosen(operation, columns, dtype, inputs, rows=dealing.MANY, layout=dealing.USUAL):
        deal = fast.best_shape.__wrapped__  # what is kept was dealt to larger clusters
        shape = deal(operation, columns, dtype.itemsize, inputs, rows, layout)
        return fast.of_shape(operation, shape, dtype)

    monkeypatch.setattr(fast, "available", lambda: True)
    monkeypatch.setattr(dealing, "CLUSTERS", dealing.CLUSTERS[:-1])  # the runtime's are of 8
    monkeypatch.setattr(fast, "load", load)
    monkeypatch.setattr(fast, "chosen", chosen)
    return taken


def laid(values, gap, before):
    """The same matrix with gaps between its rows, its first element so far behind an access."""
    rows, columns = values.shape
    stride = columns + gap
    room = torch.full((before + rows * stride + 8,), float("nan"), dtype=values.dtype)
    while room.data_ptr() % 16:
        room = room[1:]
    matrix = room[before : before + rows * stride].view(rows, stride)[:, :columns]
    matrix.copy_(values)
    return matrix


def normal(*sizes, dtype, seed):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_close(actual, wanted, dtype):
    wanted = wanted.detach()
    assert actual.shape == wanted.shape
    tolerance = TOLERANCE[dtype] * max(1, float(wanted.abs().max()))
    assert float((actual.double() - wanted).abs().max()) <= tolerance


def check(function, rows, columns, gap, before, dtype):
    """One function forward and backward, against float64."""
    x = laid(normal(rows, columns, dtype=dtype, seed=1), gap, before)
    dy = laid(normal(rows, columns, dtype=dtype, seed=2), gap, before)
    gamma, beta = normal(2, columns, dtype=dtype, seed=3)
    if function == "softmax":
        assert_close(softmax(x), x.double().softmax(-1), dtype)
    elif function == "layer_norm":
        wanted, gradients = exact.with_gradients(exact.layer_norm, (x, gamma, beta), dy)
        y, means, inverses = norms.layer_norm(x, gamma, beta)
        found = norms.layer_norm_backward(dy, x, gamma, means, inverses)
        compare((y, *found), (wanted, *gradients), dtype)
        alone = norms.layer_norm(x, gamma, beta, statistics=False)
        assert torch.equal(alone[0], y) and alone[1:] == (None, None)
    elif function == "rms_norm":
        wanted, gradients = exact.with_gradients(exact.rms_norm, (x, gamma), dy)
        y, inverses = norms.rms_norm(x, gamma)
        found = norms.rms_norm_backward(dy, x, gamma, inverses)
        compare((y, *found), (wanted, *gradients), dtype)
        alone = norms.rms_norm(x, gamma, statistics=False)
        assert torch.equal(alone[0], y) and alone[1] is None
    else:
        targets = torch.arange(rows) * 13 % columns
        weights = torch.linspace(0.5, 2, rows)
        wanted, gradient = exact.losses(x, targets, weights)
        losses, log_sums = ce.cross_entropy(x, targets)
        assert_close(losses, wanted, torch.float32)
        alone = ce.cross_entropy(x, targets, statistics=False)
        assert torch.equal(alone[0], losses) and alone[1] is None
        assert_close(ce.cross_entropy_backward(x, targets, log_sums, weights), gradient, dtype)
        losses, fused = ce.loss_and_gradient(x, targets, weights)
        assert_close(losses, wanted, torch.float32)
        assert_close(fused, gradient, dtype)
        in_place = laid(x, 0, before)
        ce.loss_and_gradient(in_place, targets, weights, out=in_place)
        assert_close(in_place, gradient, dtype)


def compare(found, wanted, dtype):
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_of_every_kind(case, shapes):
    check(*case)
    assert shapes  # a kernel was launched, not the classic ones


def drawn(number):
    """A function, rows, columns, gap, elements before the first, type."""
    draw = random.Random(number)
    columns = int(LONGEST ** draw.random())
    if draw.random() < 0.4:
        columns = -(-columns // 8) * 8
    rows = draw.randint(1, max(1, min(2000, ELEMENTS // columns)))
    gap = draw.choice([0, 0, 0, 1, 3, 8, draw.randint(0, 100)])
    before = draw.choice([0, 0, 0, 1, 4, 7])
    return draw.choice(FUNCTIONS), rows, columns, gap, before, draw.choice(list(TOLERANCE))


@pytest.mark.nightly("what the cases by day say, of drawn shapes")
@pytest.mark.parametrize("number", range(DRAWN))
def test_drawn_rows(number, shapes):
    check(*drawn(number))
    assert shapes
