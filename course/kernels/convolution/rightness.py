"""Is a result right? float64 from the very numbers that the kernel was given, and a bound."""

import torch
import torch.nn.functional as F
from torch.nn import grad

from course.kernels.convolution.shapes import Convolution

HALF_STEP = 2**-8  # the most by which rounding to bfloat16 changes a number, as a share of it
SUM_ERROR = 2**-15  # of float32 sums of random terms, as a share of their typical size
#: Tensor cores cut their sums off instead of rounding them, and a long chain of sums, 16 terms at a
#: time, loses something at each, always in the same direction.
CUT = 2**-24
TERMS = 16


def nchw(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as PyTorch sees it: NHWC as channels-last NCHW, K R S C as K C R S."""
    return tensor.permute(0, 3, 1, 2)


def nhwc(tensor: torch.Tensor) -> torch.Tensor:
    """Back again."""
    return tensor.permute(0, 2, 3, 1)


def tensors(
    conv: Convolution,
    device,
    dtype=torch.bfloat16,
    seed=0,
) -> dict[str, torch.Tensor]:
    """Random x, w, dy, and results full of NaN."""
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, device=device).to(dtype)

    t = {
        "x": normal(conv.n, conv.h, conv.w, conv.c),
        "w": normal(conv.k, conv.side, conv.side, conv.c),
        "dy": normal(conv.n, conv.p, conv.q, conv.k),
    }
    for result, like in (("y", "dy"), ("dx", "x"), ("dw", "w")):
        t[result] = torch.full_like(t[like], torch.nan)
    return t


def references(
    t: dict,
    conv: Convolution,
    kinds,
    dtype=torch.float64,
) -> dict[str, torch.Tensor]:
    """y, dx and dw in a wider type by PyTorch, as NHWC."""
    wide = {name: nchw(t[name]).to(dtype).contiguous() for name in ("x", "w", "dy")}
    x, w, dy = wide.values()
    how = conv.options
    found = {}
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False  # its fastest algorithm need not be its most precise
    if "y" in kinds:
        found["y"] = F.conv2d(x, w, **how)
    if "dx" in kinds:
        found["dx"] = grad.conv2d_input(x.shape, w, dy, **how)
    if "dw" in kinds:
        found["dw"] = grad.conv2d_weight(x, w.shape, dy, **how)
    torch.backends.cudnn.benchmark = before
    return {kind: nhwc(tensor) for kind, tensor in found.items()}


def terms(conv: Convolution, kind: str) -> int:
    """How many products a number of the result sums up, at most."""
    counts = {
        "y": conv.taps * conv.c,
        "dx": conv.taps * conv.k,
        "dw": conv.n * conv.p * conv.q,
    }
    return counts[kind]


def error(result: torch.Tensor, exact: torch.Tensor, count: int) -> float:
    """The largest error as a share of what roundings explain; NaN where a NaN is."""
    of_sums = SUM_ERROR + CUT * count / TERMS
    typical = count**0.5
    allowed = HALF_STEP * exact.abs() + of_sums * typical
    off = (result.to(exact.dtype) - exact).abs()
    return (off / allowed).max().item()


def verify(result: torch.Tensor, exact: torch.Tensor, count: int) -> float:
    """The error as a share of what is allowed; AssertionError where it is more."""
    found = error(result, exact, count)
    assert found <= 1, f"{found:.3g} times the error that rounding explains"
    return found
