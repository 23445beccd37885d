"""nvmath-python: cuBLASLt with its epilogues, on PyTorch's tensors."""

import torch
from nvmath.linalg.advanced import MatmulEpilog, matmul

generator = torch.Generator("cuda").manual_seed(1)
w = torch.randn(64, 128, device="cuda", generator=generator)
x = torch.randn(128, 32, device="cuda", generator=generator)
bias = torch.randn(64, 1, device="cuda", generator=generator)

y = matmul(w, x, epilog=MatmulEpilog.RELU_BIAS, epilog_inputs={"bias": bias})

right = (w.double() @ x.double() + bias.double()).relu()
torch.testing.assert_close(y.double(), right, rtol=1e-2, atol=1e-1)
print("relu(w x + bias):", tuple(y.shape), "strides", y.stride())
print(f"largest error {(y.double() - right).abs().max().item():.0e}")
