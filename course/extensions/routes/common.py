"""What the routes written in Python share: the operators' schemas, types, and layout in memory."""

import torch

from utils import pick

FORWARD = "(Tensor x, float a, float b, float c) -> Tensor"
BACKWARD = "(Tensor dy, Tensor x, float a, float b) -> Tensor"
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def define(
    namespace: str,
    run_forward,
    run_backward,
    *,
    by=None,
    devices=None,
) -> str:
    """Define both operators in a namespace, and return its name.

    run_forward(y, x, a, b, c) and run_backward(dx, dy, x, a, b) fill their first tensor; all
    tensors' numbers lie in memory in the same order, without gaps, and there is at least one.
    by: torch.library's custom_op, unless given, or triton_op. devices: where they can run, by
    default on the one kind that kernels run on here.
    """
    by = by or torch.library.custom_op
    devices = devices or (pick(gpu="cuda", cpu="cpu"),)

    def polynomial(
        x: torch.Tensor,
        a: float,
        b: float,
        c: float,
    ) -> torch.Tensor:
        check(x, devices)
        y = torch.empty_like(x)
        if x.numel():
            run_forward(y, laid_out(x, y), a, b, c)
        return y

    def polynomial_backward(
        dy: torch.Tensor,
        x: torch.Tensor,
        a: float,
        b: float,
    ) -> torch.Tensor:
        check(x, devices)
        check_slopes(dy, x)
        dx = torch.empty_like(x)
        if x.numel():
            run_backward(dx, laid_out(dy, dx), laid_out(x, dx), a, b)
        return dx

    by(f"{namespace}::polynomial", polynomial, mutates_args=(), schema=FORWARD)
    by(f"{namespace}::polynomial_backward", polynomial_backward, mutates_args=(), schema=BACKWARD)
    return namespace


def check(x: torch.Tensor, devices: tuple[str, ...]) -> None:
    """An error before anything is launched that could not read x: its type, or where it lies."""
    if x.device.type not in devices:
        raise NotImplementedError(f"polynomial runs on {' and '.join(devices)}, not {x.device}")
    if x.dtype not in TYPES:
        raise TypeError(f"polynomial takes {', '.join(map(str, TYPES))}; this is {x.dtype}")


def check_slopes(dy: torch.Tensor, x: torch.Tensor) -> None:
    """An error where a kernel could not read dy beside x: another type, shape or device."""
    if (dy.dtype, dy.shape, dy.device) != (x.dtype, x.shape, x.device):
        given = f"{dy.dtype} {list(dy.shape)} on {dy.device}"
        raise TypeError(f"dy is {given}; x is {x.dtype} {list(x.shape)} on {x.device}")


def laid_out(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """x if its numbers lie in memory in the order of `like`, which has no gaps; else a copy."""
    if x.stride() == like.stride():
        return x
    return torch.empty_like(like).copy_(x)


def in_a_row(x: torch.Tensor) -> torch.Tensor:
    """A tensor without gaps as one axis, in the order of memory: the same numbers, not a copy."""
    return torch.as_strided(x, (x.numel(),), (1,))


def kernel_for(name: str, x: torch.Tensor) -> str:
    """The plain name of a kernel for a tensor's type, such as ``polynomial_float16``."""
    return f"{name}_{str(x.dtype).removeprefix('torch.')}"
