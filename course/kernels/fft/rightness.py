"""Are the transforms right? Each is held against PyTorch's in float64, on outputs that were NaN.

Each check raises AssertionError, or returns the last relative error in the 2-norm.
"""

import functools

import torch

from course.kernels.fft import by_hand, other_plans, plans
from course.kernels.fft.kernels import DEVICE
from course.kernels.fft.plans import Deal, TwoPass

TOLERANCE = 6e-7  # float32 keeps 6e-8 of each number
COUNTS = (1, 7, 133)  # of rows: no whole blocks
FORWARD = (False,)
BOTH_WAYS = (False, True)


def random_complex(*shape: int) -> torch.Tensor:
    """Points around 0."""
    return torch.randn(shape, dtype=torch.complex64, device=DEVICE)


def error_of(result: torch.Tensor, right: torch.Tensor) -> float:
    """The relative error in the 2-norm; NaN if any number is NaN."""
    apart = (result - right).norm()
    return (apart / right.norm()).item()


def verify(what: str, work, x: torch.Tensor, right: torch.Tensor, tolerance=TOLERANCE) -> float:
    """The error of what work(x, out) writes; AssertionError if it is too large."""
    out = torch.full(right.shape, torch.nan, dtype=torch.complex64, device=DEVICE)
    work(x, out)
    error = error_of(out, right)
    assert error < tolerance, f"{what}: error {error}"
    return error


def rows(n: int, deal: Deal | None = None, ways=BOTH_WAYS) -> float:
    """`plans.Rows`."""
    for inverse in ways:
        work = plans.Rows(n, inverse, deal)
        exact = torch.fft.ifft if inverse else torch.fft.fft
        for count in COUNTS:
            x = random_complex(count, n)
            error = verify(f"rows of {n}", work, x, exact(x.to(torch.complex128)))
    return error


def long(n: int, deal: TwoPass | None = None, items: int = 3, ways=BOTH_WAYS) -> float:
    """`plans.Long`, in one launch and in two."""
    for inverse in ways:
        work = plans.Long(n, inverse, deal)
        exact = torch.fft.ifft if inverse else torch.fft.fft
        x = random_complex(items, n)
        right = exact(x.to(torch.complex128))
        in_two = functools.partial(work.two_launches, between=torch.empty_like(x))
        verify(f"{n} in two launches", in_two, x, right)
        error = verify(f"{n} in one launch", work, x, right)
    return error


def pictures(side: int, deal: TwoPass | None = None, count: int = 3, ways=BOTH_WAYS) -> float:
    """`plans.Pictures`, in one launch and in two."""
    for inverse in ways:
        work = plans.Pictures(side, inverse, deal)
        exact = torch.fft.ifft2 if inverse else torch.fft.fft2
        x = random_complex(count, side, side)
        right = exact(x.to(torch.complex128))
        verify(f"pictures of {side} in two launches", work.two_launches, x, right)
        error = verify(f"pictures of {side} in one launch", work, x, right)
    return error


def real(n: int, deal: Deal | None = None) -> float:
    """`other_plans.Real`."""
    work = other_plans.Real(n, deal)
    for count in COUNTS:
        x = torch.randn(count, n, device=DEVICE)
        error = verify(f"{n} real numbers", work, x, torch.fft.rfft(x.double()))
    return error


def any_length(n: int) -> float:
    """`other_plans.AnyLength`, there and back."""
    for inverse in BOTH_WAYS:
        work = other_plans.AnyLength(n, inverse)
        exact = torch.fft.ifft if inverse else torch.fft.fft
        x = random_complex(5, n)
        error = verify(f"length {n}", work, x, exact(x.to(torch.complex128)))
    return error


def by_hand_ones() -> float:
    """The steps of by_hand.cu."""
    for n, whole in ((by_hand.WARP, by_hand.warp), (by_hand.BLOCK_POINTS, by_hand.block)):
        x = random_complex(5, n)
        right = torch.fft.fft(x.to(torch.complex128))
        passes = functools.partial(by_hand.passes, spare=torch.empty_like(x))
        for work in (by_hand.dft, passes, whole):
            error = verify(f"{work} of {n}", work, x, right)
    return error


def directly(x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """Every picture filtered by PyTorch, as a batch."""
    weights = taps[None, None]
    return torch.nn.functional.conv2d(x[:, None], weights)[:, 0]


def filtered(work, x: torch.Tensor, taps: torch.Tensor, right: torch.Tensor, tolerance) -> float:
    """The error of work(x, out), an `other_plans.Filter` or `Direct`, where it must be right."""
    out = torch.full_like(x, torch.nan)
    work(x, out)
    _, height, width = right.shape
    error = error_of(out[:, :height, :width], right)
    assert error < tolerance, f"{work} with {tuple(taps.shape)} taps: error {error}"
    return error


def filters(side: int = 64) -> float:
    """`other_plans.Filter` and `Direct`, in small."""
    x = torch.randn(6, side, side, device=DEVICE)
    taps = torch.randn(5, 5, device=DEVICE)
    right = directly(x.double(), taps.double())
    for work in (other_plans.Direct(side, taps), other_plans.Filter(side, taps)):
        error = filtered(work, x, taps, right, 2 * TOLERANCE)
    return error
