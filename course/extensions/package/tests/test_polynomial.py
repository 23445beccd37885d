"""The installed package's own tests: `python -m pytest`, wherever it was installed."""

import pytest
import torch
from polynomial_op import polynomial

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() and torch.version.cuda else [])]
A = 0.3
B = -1.7
C = 0.9


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device that there is; those without a kernel in this build are left out."""
    key = {
        "cpu": "CPU",
        "cuda": "CUDA",
    }[request.param]
    if not torch._C._dispatch_has_kernel_for_dispatch_key("polynomial_op::polynomial", key):
        pytest.skip(f"built without kernels for {request.param}")
    return request.param


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (33,), (5, 0, 2), (7, 129)])
def test_values(device, dtype, shape):
    x = torch.randn(shape, device=device).to(dtype)
    exact = A * x.double() ** 2 + B * x.double() + C
    torch.testing.assert_close(polynomial(x, A, B, C), exact.to(dtype))


def test_strides(device):
    x = torch.randn(6, 4, 5, device=device)
    for view in (x.mT, x[:, ::2], x[:1].expand(3, 4, 5), x.permute(2, 0, 1)):
        torch.testing.assert_close(polynomial(view, A, B, C), A * view * view + B * view + C)


def test_gradients(device):
    x = torch.randn(3, 4, dtype=torch.float64, device=device, requires_grad=True)
    inputs = x, A, B, C
    assert torch.autograd.gradcheck(polynomial, inputs)
    assert torch.autograd.gradgradcheck(polynomial, inputs)


def test_as_pytorch_tests_its_own(device):
    x = torch.randn(3, 4, device=device, requires_grad=True)
    torch.library.opcheck(torch.ops.polynomial_op.polynomial, (x, A, B, C))


def test_whole_graph(device):
    compiled = torch.compile(polynomial, fullgraph=True, backend="aot_eager")
    x = torch.randn(9, device=device)
    torch.testing.assert_close(compiled(x, A, B, C), polynomial(x, A, B, C))


def test_says_what_it_cannot_do(device):
    with pytest.raises(RuntimeError, match="float64"):
        polynomial(torch.ones(3, dtype=torch.int32, device=device), A, B, C)
