"""The transforms give what NumPy gives in float64, in every length, back and forth."""

import numpy as np
import pytest
import torch

from course.kernels.fft import by_hand, other_plans, plans
from course.kernels.fft.kernels import DEVICE
from course.kernels.fft.plans import Deal, TwoPass

ERROR = 4e-7  # in the 2-norm; float32 keeps 6e-8 of each number
ROW_ERROR = 2e-7  # of one pass over memory: its twiddles are precise
DIRECTIONS = {False: np.fft.fft, True: np.fft.ifft}
OTHERS = pytest.mark.nightly("by day a short and a long one, and there and back in one length")


def ways(lengths, there, both):
    """pytest.param(n, inverse) of lengths, by day of those of `there`, and in `both` back, too."""
    for n in lengths:
        yield pytest.param(n, False, marks=[] if n in (*there, both) else [OTHERS])
        yield pytest.param(n, True, marks=[] if n == both else [OTHERS])


def some(lengths, by_day):
    """pytest.param(n) of lengths, marked but for those."""
    return [pytest.param(n, marks=[] if n in by_day else [OTHERS]) for n in lengths]


def random_points(*shape):
    random = np.random.default_rng(shape)
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(np.complex64)


def error(work, x, right, like=None):
    """The error of what work(x, out) writes into an output that was NaN."""
    out = np.full(right.shape, np.nan, np.complex64 if like is None else like)
    x, out = (torch.from_numpy(a).to(DEVICE) for a in (x, out))
    work(x, out)
    return np.linalg.norm(out.cpu().numpy() - right) / np.linalg.norm(right)


DEALS = {
    2: None,
    16: Deal(16, 3, 1),
    32: Deal(16, 2, 1),
    64: Deal(8, 2, 1),
    128: Deal(2, 1, 1),
    256: Deal(16, 2, 1),
    1024: Deal(32, 1, 1),
    2048: None,
}


@pytest.mark.parametrize("n, inverse", list(ways(DEALS, there=(2, 64, 2048), both=256)))
def test_rows(n, inverse):
    deal = DEALS[n]
    x = random_points(5, n)  # no whole number of blocks
    right = DIRECTIONS[inverse](x.astype(complex))
    assert error(plans.Rows(n, inverse, deal), x, right) < ROW_ERROR


def test_no_rows_and_wrong_lengths():
    plans.Rows(256)(random_points(0, 256), random_points(0, 256))
    for n in (0, 1, 100, 3 * 256, 1 << 14):
        with pytest.raises(ValueError, match="power of two"):
            plans.Rows(n)
    for n in (64, 2048):
        with pytest.raises(ValueError, match="square"):
            plans.Long(n)


@pytest.mark.parametrize("items, lag", [(1, 1), (7, 1), (7, 6), (9, 50)])
def test_long_ones_in_one_launch_and_in_two(items, lag):
    x = random_points(items, 1024)
    right = np.fft.fft(x.astype(complex))
    work = plans.Long(1024, deal=TwoPass(8, 8, 1, lag))
    between = torch.empty(x.shape, dtype=torch.complex64, device=DEVICE)
    for _ in range(2):  # the second time with what the first has left behind
        assert error(work, x, right) < ERROR
    assert error(lambda x, out: work.two_launches(x, out, between), x, right) < ERROR


@pytest.mark.parametrize("inverse", [pytest.param(False, marks=OTHERS), True])
def test_pictures_in_one_launch_and_in_two(inverse):
    x = random_points(3, 32, 32)
    right = (np.fft.ifft2 if inverse else np.fft.fft2)(x.astype(complex))
    work = plans.Pictures(32, inverse, TwoPass(8, 8, 1, 1))
    for run in (work, work, work.two_launches):
        assert error(run, x, right) < ERROR


@pytest.mark.parametrize("n", some([4, 64, 512, 4096], by_day=(4, 4096)))
def test_real_rows(n):
    x = np.random.default_rng(n).standard_normal((5, n)).astype(np.float32)
    assert error(other_plans.Real(n), x, np.fft.rfft(x.astype(float))) < ERROR


@pytest.mark.parametrize("n, inverse", list(ways([1, 2, 3, 61, 97, 127], there=(1, 127), both=97)))
def test_any_length(n, inverse):
    x = random_points(3, n)
    right = DIRECTIONS[inverse](x.astype(complex))
    assert error(other_plans.AnyLength(n, inverse), x, right) < ERROR


@pytest.mark.parametrize("height, width", [(5, 5), pytest.param(5, 3, marks=OTHERS)])
def test_filters(height, width):
    random = torch.Generator().manual_seed(height)
    x = torch.randn(4, 32, 32, generator=random)
    taps = torch.randn(height, width, generator=random)
    right = torch.nn.functional.conv2d(x[:, None].double(), taps[None, None].double())[:, 0]
    ways = [other_plans.Filter(32, taps, Deal(8, 2, 1), Deal(8, 4, 1))]
    if height == width:
        ways.append(other_plans.Direct(32, taps))
    for way in ways:
        out = torch.full_like(x, torch.nan).to(DEVICE)
        way(x.to(DEVICE), out)
        kept = out.cpu()[:, : 33 - height, : 33 - width]
        assert (kept - right).norm() / right.norm() < ERROR


def test_by_hand():
    for n, whole in ((32, by_hand.warp), (256, by_hand.block)):
        x = random_points(3, n)
        right = np.fft.fft(x.astype(complex))
        spare = torch.empty(x.shape, dtype=torch.complex64, device=DEVICE)
        assert error(whole, x, right) < ERROR
        assert error(by_hand.dft, x, right) < ERROR
        assert error(lambda x, out, spare=spare: by_hand.passes(x, out, spare), x, right) < ERROR


def test_sums_of_any_length():
    x = random_points(2, 37)
    assert error(by_hand.dft, x, np.fft.fft(x.astype(complex))) < ERROR
