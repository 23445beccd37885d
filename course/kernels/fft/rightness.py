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


def exact(
    x: torch.Tensor,
    inverse: bool,
    axes: int = 1,
) -> torch.Tensor:
    """PyTorch's transform of the last axes in float64."""
    dims = tuple(range(-axes, 0))
    transform = torch.fft.ifftn if inverse else torch.fft.fftn
    return transform(x.to(torch.complex128), dim=dims)


def error_of(result: torch.Tensor, right: torch.Tensor) -> float:
    """The relative error in the 2-norm; NaN if any number is NaN."""
    apart = (result - right).norm()
    return (apart / right.norm()).item()


def verify(
    what: str,
    work,
    x: torch.Tensor,
    right: torch.Tensor,
    tolerance=TOLERANCE,
) -> float:
    """The error of what work(x, out) writes; AssertionError if it is too large."""
    out = torch.full_like(right, torch.nan, dtype=torch.complex64)
    work(x, out)
    error = error_of(out, right)
    assert error < tolerance, f"{what}: error {error}"
    return error


def rows(n: int, deal: Deal | None = None, ways=BOTH_WAYS) -> float:
    """`plans.Rows`."""
    for inverse in ways:
        work = plans.Rows(n, inverse, deal)
        for count in COUNTS:
            x = random_complex(count, n)
            right = exact(x, inverse)
            error = verify(f"rows of {n}", work, x, right)
    return error


def long(
    n: int,
    deal: TwoPass | None = None,
    items: int = 3,
    ways=BOTH_WAYS,
) -> float:
    """`plans.Long`, in one launch and in two."""
    for inverse in ways:
        work = plans.Long(n, inverse, deal)
        x = random_complex(items, n)
        right = exact(x, inverse)
        between = torch.empty_like(x)
        in_two = functools.partial(work.two_launches, between=between)
        verify(f"{n} in two launches", in_two, x, right)
        error = verify(f"{n} in one launch", work, x, right)
    return error


def pictures(
    side: int,
    deal: TwoPass | None = None,
    count: int = 3,
    ways=BOTH_WAYS,
) -> float:
    """`plans.Pictures`, in one launch and in two."""
    for inverse in ways:
        work = plans.Pictures(side, inverse, deal)
        x = random_complex(count, side, side)
        right = exact(x, inverse, axes=2)
        what = f"pictures of {side} in"
        verify(f"{what} two launches", work.two_launches, x, right)
        error = verify(f"{what} one launch", work, x, right)
    return error


def real(n: int, deal: Deal | None = None) -> float:
    """`other_plans.Real`."""
    work = other_plans.Real(n, deal)
    for count in COUNTS:
        x = torch.randn(count, n, device=DEVICE)
        right = torch.fft.rfft(x.double())
        error = verify(f"{n} real numbers", work, x, right)
    return error


def any_length(n: int) -> float:
    """`other_plans.AnyLength`, there and back."""
    for inverse in BOTH_WAYS:
        work = other_plans.AnyLength(n, inverse)
        x = random_complex(5, n)
        right = exact(x, inverse)
        error = verify(f"length {n}", work, x, right)
    return error


def by_hand_ones() -> float:
    """The steps of by_hand.cu."""
    whole_ones = {
        by_hand.WARP: by_hand.warp,
        by_hand.BLOCK_POINTS: by_hand.block,
    }
    for n, whole in whole_ones.items():
        x = random_complex(5, n)
        right = exact(x, inverse=False)
        spare = torch.empty_like(x)
        passes = functools.partial(by_hand.passes, spare=spare)
        for work in (by_hand.dft, passes, whole):
            error = verify(f"{work} of {n}", work, x, right)
    return error


def directly(x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """Every picture filtered by PyTorch, as a batch."""
    weights = taps[None, None]
    return torch.nn.functional.conv2d(x[:, None], weights)[:, 0]


def filtered(
    work,
    x: torch.Tensor,
    taps: torch.Tensor,
    right: torch.Tensor,
    tolerance,
) -> float:
    """The error of work(x, out), an `other_plans.Filter` or `Direct`, where it must be right."""
    out = torch.full_like(x, torch.nan)
    work(x, out)
    _, height, width = right.shape
    error = error_of(out[:, :height, :width], right)
    apart = f"{work} with {tuple(taps.shape)} taps: error {error}"
    assert error < tolerance, apart
    return error


def filters(side: int = 64) -> float:
    """`other_plans.Filter` and `Direct`, in small."""
    x = torch.randn(6, side, side, device=DEVICE)
    taps = torch.randn(5, 5, device=DEVICE)
    right = directly(x.double(), taps.double())
    works = (other_plans.Direct(side, taps), other_plans.Filter(side, taps))
    for work in works:
        error = filtered(work, x, taps, right, 2 * TOLERANCE)
    return error
