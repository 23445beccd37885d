"""The chapter's kernels as a learner left them in their cells: right, or what is wrong is said."""

import numpy as np
import torch
from numba import cuda

from course.kernels.fft import by_hand, other_plans, plans
from course.kernels.fft.kernels import DEVICE, load
from course.kernels.trying import tried
from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools.diagnostics import LearnerError

BYTES = 8  # of a point
THREADS = 64


def points(*shape) -> np.ndarray:
    """Random complex64 numbers, always the same."""
    rng = np.random.default_rng(5)
    parts = rng.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


def unwritten(x) -> np.ndarray:
    """An array like x, of NaN."""
    return np.full_like(x, np.nan)


def exactly(x) -> np.ndarray:
    """The transforms of all rows, in float64."""
    return np.fft.fft(x.astype(complex))


def rows(count: int) -> None:
    """Say whether rows of so many points are right, as `plans.Rows` deals them out."""
    x = points(3, count)

    def compute():
        out = unwritten(x)
        plans.Rows(count)(x, out)
        return out

    tried(compute, exactly(x), load)


def warp() -> None:
    """Say whether a warp transforms its 32 points rightly, and which result came to which place."""
    x = points(2, 32)
    exact = exactly(x)

    def compute():
        out = unwritten(x)
        by_hand.warp(x, out)
        apart = abs(out[0][:, None] - exact[0])
        nearest = apart.argmin(axis=1)
        order = nearest if apart.min(axis=1).max() < 1e-3 else "none of them"
        print("places 0, 1, 2 ... hold results", *np.atleast_1d(order)[:10], "...")
        return out

    tried(compute, exact, load)


def by_fours(file: str, count: int) -> None:
    """Transform with the kernel `pass_4` of a file, pass after pass; print what that moves."""
    now = cuda.to_device(plans.floats(points(count)))
    then = cuda.to_device(np.full((count, 2), np.nan, np.float32).ravel())
    exact = exactly(points(count))
    launch = cuda_c.load(file, check=True).pass_4[ceil_div(count // 4, THREADS), THREADS]
    done, launches = 1, 0
    try:
        while done < count:
            launch(then, now, count, done)
            now, then = then, now
            done *= 4
            launches += 1
    except LearnerError as mistake:
        print(mistake)
        return
    found = now.copy_to_host().view(np.complex64)
    if not np.allclose(found, exact, atol=1e-4 * abs(exact).max()):
        print("not a transform yet: solve the exercise, then run this cell again")
        return
    moved = 2 * launches * count * BYTES
    print(f"your pass of radix 4: {launches} launches, {moved:,} bytes to and from memory")
    print(f"the pass of radix 2: {2 * launches} launches, {2 * moved:,} bytes")


def filtered(side: int = 64, size: int = 7) -> None:
    """Say whether pictures filtered through the transform are as torch filters them directly."""
    rng = np.random.default_rng(5)
    scenes = torch.from_numpy(rng.standard_normal((2, side, side))).to(DEVICE, torch.float32)
    taps = torch.from_numpy(rng.standard_normal((size, size))).to(DEVICE, torch.float32)
    inner = side - size + 1

    def compute():
        out = torch.full_like(scenes, torch.nan)
        other_plans.Filter(side, taps)(scenes, out)
        return out[:, :inner, :inner]

    exact = torch.nn.functional.conv2d(scenes[:, None].double(), taps[None, None].double())[:, 0]
    tried(compute, exact, load, slow_checks=False)
