"""What PyTorch's users expect of an operator, tried on any route's: the table is made by running.

A feature is a function (operators, device) that raises where something is missing or wrong.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

A = 0.3
B = -1.7
C = 0.9
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
#: What a trial can end with, besides the reason why not
WORKS = "yes"
UNKNOWN = "needs a GPU"
FEATURES = {}
ON_GPU_ONLY = set()


def feature(function):
    """Add a function to the table, under its name."""
    FEATURES[function.__name__] = function
    return function


def on_gpu(function):
    """Add a function that only says something on a GPU."""
    ON_GPU_ONLY.add(function.__name__)
    return feature(function)


def call(operators, x):
    """The operator, always with the same coefficients."""
    return operators.polynomial(x, A, B, C)


def right(x):
    """What it must give, by PyTorch's own operations."""
    return A * x * x + B * x + C


def check_values(operators, x):
    """Values and gradient of x, whatever its shape, type and strides, against float64."""
    x = x.detach().requires_grad_()
    wide = x.detach().double()
    y = call(operators, x)
    assert_close(y, right(wide).to(x.dtype))
    dy = torch.randn_like(y)
    (dx,) = torch.autograd.grad(y, x, dy)
    slope = 2 * A * wide + B
    assert_close(dx, (dy.double() * slope).to(x.dtype))


# ---- tensors as they come


@feature
def values(operators, device):
    for size in (1, 31, 257, 1000):
        check_values(operators, torch.randn(size, device=device))


@feature
def dtypes(operators, device):
    x = torch.randn(7, 33, device=device)
    for dtype in TYPES:
        check_values(operators, x.to(dtype))


@feature
def empty(operators, device):
    for shape in ((0,), (3, 0, 2)):
        check_values(operators, torch.randn(shape, device=device))
    check_values(operators, torch.randn((), device=device))


@feature
def strides(operators, device):
    x = torch.randn(6, 4, 5, device=device)
    check_values(operators, x.mT)
    check_values(operators, x[:, ::2])
    check_values(operators, x[:1].expand(3, 4, 5))
    check_values(operators, x.permute(2, 0, 1))
    # transposed and cut: torch.empty_like keeps the order of its axes, .contiguous() does not
    check_values(operators, torch.randn(6, 4, device=device).t()[:, ::2])
    check_values(operators, x.permute(2, 0, 1)[::2])


@feature
def unaligned(operators, device):
    check_values(operators, torch.randn(100, device=device)[1:])


@feature
def channels_last(operators, device):
    x = torch.randn(2, 3, 4, 5, device=device).to(memory_format=torch.channels_last)
    check_values(operators, x)
    y = call(operators, x)
    assert y.is_contiguous(memory_format=torch.channels_last), f"strides are now {y.stride()}"


@feature
def fresh_results(operators, device):
    first = call(operators, torch.ones(9, device=device))
    kept = first.clone()
    call(operators, torch.zeros(9, device=device))
    assert_close(first, kept)


@feature
def clear_errors(operators, device):
    try:
        integers = torch.ones(3, dtype=torch.int32, device=device)
        call(operators, integers)
    except (RuntimeError, TypeError, ValueError) as error:
        assert "float" in str(error), f"says nothing of types: {error}"
    else:
        raise AssertionError("takes integers, and computes something")
    wide = torch.ones(3, dtype=torch.float64, device=device)
    for slopes, what in ((wide, "another type"), (wide.float()[:2], "another shape")):
        try:
            operators.polynomial_backward(slopes, wide.float(), A, B)
        except (RuntimeError, TypeError):
            continue
        raise AssertionError(f"takes slopes of {what} than x, and computes something")


# ---- gradients


def small(device):
    return torch.randn(3, 4, dtype=torch.float64, device=device, requires_grad=True)


@feature
def gradient(operators, device):
    assert gradcheck(operators.polynomial, (small(device), A, B, C))


@feature
def double_backward(operators, device):
    assert gradgradcheck(operators.polynomial, (small(device), A, B, C))


# ---- compilers


@feature
def fake_tensor(operators, device):
    with torch._subclasses.FakeTensorMode():
        x = torch.empty(3, 4, dtype=torch.float16, device=device)
        x = x.mT
        y = call(operators, x)
    assert y.shape == x.shape
    assert y.stride() == x.stride()
    assert y.dtype == x.dtype


@feature
def opcheck(operators, device):
    x = torch.randn(3, 4, device=device, requires_grad=True)
    torch.library.opcheck(operators.polynomial.default, (x, A, B, C))


@feature
def full_graph(operators, device):
    def twice(x):
        once = call(operators, x)
        return call(operators, once + 1)

    # on the CPU without a C++ compiler's minute: traced and transformed all the same
    backend = "inductor" if device == "cuda" else "aot_eager"
    compiled = torch.compile(twice, fullgraph=True, backend=backend)
    x = torch.randn(33, device=device, requires_grad=True)
    assert_close(compiled(x), twice(x))
    (slope,) = torch.autograd.grad(compiled(x).sum(), x)
    (expected,) = torch.autograd.grad(twice(x).sum(), x)
    assert_close(slope, expected)
    torch._dynamo.reset()


class Layer(torch.nn.Module):
    def __init__(self, operators):
        super().__init__()
        self.operators = operators

    def forward(self, x):
        return call(self.operators, x)


@feature
def export(operators, device):
    x = torch.randn(5, 3, device=device)
    program = torch.export.export(Layer(operators), (x,))
    assert_close(program.module()(x), call(operators, x))


# ---- transforms


@feature
def vmap(operators, device):
    def row_by_row(row):
        return call(operators, row)

    x = torch.randn(4, 6, device=device)
    each = torch.func.vmap(row_by_row, in_dims=1, out_dims=1)
    assert_close(each(x), call(operators, x))
    x.requires_grad_()
    (slope,) = torch.autograd.grad(each(x).sum(), x)
    assert_close(slope, 2 * A * x + B)


@feature
def func_grad(operators, device):
    def total(row):
        return call(operators, row).sum()

    x = torch.randn(4, device=device)
    slope = torch.func.grad(total)
    assert_close(slope(x), 2 * A * x + B)


@feature
def autocast(operators, device):
    x = torch.full((3,), 300.0, dtype=torch.float16, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        y = operators.polynomial(x, 1.0, 0.0, 0.0)  # 90,000 is more than float16 can hold
    assert y.dtype == torch.float32 and y[0] == 90_000


# ---- where and when


@feature
def threads(operators, device):
    def work(seed):
        x = torch.full((1000,), float(seed), device=device)
        for _ in range(5):
            assert_close(call(operators, x), right(x))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


@on_gpu
def stream(operators, device):
    x = torch.zeros(1 << 16, device=device)
    call(operators, x)  # whatever is compiled now, is
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(20_000_000)  # the values come late: who does not wait sees zeros
        x.fill_(2.0)
        y = call(operators, x)
    torch.cuda.synchronize()
    value = 4 * A + 2 * B + C
    assert_close(y, torch.full_like(y, value))


@on_gpu
def cuda_graph(operators, device):
    x = torch.randn(1000, device=device)
    call(operators, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = call(operators, x)
    x.copy_(torch.randn_like(x))
    y.fill_(torch.nan)
    graph.replay()
    assert_close(y, right(x))


@on_gpu
def cpu_too(operators, device):
    check_values(operators, torch.randn(33))


# ---- trying them


def attempt(name: str, operators, device: str) -> str:
    """ "yes", "-" where this machine cannot tell, or what went wrong."""
    if name in ON_GPU_ONLY and device == "cpu":
        return UNKNOWN
    try:
        FEATURES[name](operators, device)
    except Exception as error:
        kind = type(error).__name__
        text = str(error).strip() or kind
        first_line = text.splitlines()[0]
        return f"no: {kind}: {first_line[:200]}"
    return WORKS
