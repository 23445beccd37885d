"""a x² + b x + c as a PyTorch operator: with gradients, for compilers, on CPU and GPU."""

from pathlib import Path

import torch

from polynomial_op.rules import complete

(_library,) = Path(__file__).parent.glob("_C*.so")
torch.ops.load_library(_library)
complete("polynomial_op")


def polynomial(
    x: torch.Tensor,
    a: float,
    b: float,
    c: float,
) -> torch.Tensor:
    """a x² + b x + c of each element of x: float16, bfloat16, float32 or float64, of any shape."""
    return torch.ops.polynomial_op.polynomial(x, a, b, c)
