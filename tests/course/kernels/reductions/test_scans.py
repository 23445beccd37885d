"""Every scan gives the running sums, in any length and any order of the threads."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numba import cuda

from course.kernels.reductions import kernels, scan_ladder, scan_lookback, scans
from tests.needs import without_gpu
from utils import cuda_c
from utils.occupancy import limits

SIZES = [1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 257, 511, 513, 1023, 1024, 1025, 9_001]
METHODS = [scans.Lookback(64, 2), scans.Lookback(96, 1), scans.Persistent(64, 2, 1)]
RING = scans.Ring(2, 512, 3, 1), scans.Ring(4, 1024, 5, 3)


def values(n: int, dtype: str) -> np.ndarray:
    random = np.random.default_rng(n)
    if dtype == "int32":
        return random.integers(-1000, 1000, n).astype(np.int32)
    return random.uniform(0, 1, n).astype(np.float32)


def check(out: np.ndarray, x: np.ndarray) -> None:
    wanted = np.cumsum(x, dtype=np.int32 if x.dtype == np.int32 else np.float64)
    np.testing.assert_allclose(out, wanted, rtol=0 if x.dtype == np.int32 else 2e-6)


@pytest.mark.parametrize("language", ["numba", "cuda_c"])
@pytest.mark.parametrize("rung", scan_ladder.RUNGS)
def test_ladder(rung, language):
    run = getattr(scan_ladder.RUNGS[rung], language)
    for n in [0, *SIZES]:
        x = values(n, "float32")
        out = cuda.to_device(np.full(n, -7, np.float32))
        run(cuda.to_device(x), out)
        check(out.copy_to_host(), x)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_one_pass(method, dtype):
    for n in [0, *SIZES]:
        x = torch.from_numpy(values(n, dtype)).to(kernels.device())
        out = torch.full_like(x, -7)
        scan = scans.Scan(n, dtype, method)
        for _ in range(2):  # the second time with what the first has left behind
            scan(x, out)
            check(out.cpu().numpy(), x.cpu().numpy())


@pytest.fixture(scope="module")
def ring():
    """cuda/scan_ring.cu on the CPU runtime's copy engine."""
    return cuda_c.load(kernels.FOLDER / "scan_ring.cu")


@without_gpu("the bench checks the ring where there is a GPU")
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("method", RING, ids=str)
def test_ring(ring, method, dtype):
    kernel = ring[method.expression(scans.C_TYPES[dtype])]
    state = np.zeros(2 + 1000, np.uint64)
    for n in SIZES:
        x = values(n, dtype)
        tiles = -(-n // method.tile)
        for blocks in {min(tiles, most) for most in (1, 3, 7)}:
            out = np.full_like(x, -7)
            kernel[blocks, method.threads, method.shared_bytes](x, out, n, state)
            check(out, x)


@pytest.mark.parametrize(
    "capability, method",
    [
        ((7, 5), scans.Lookback),
        ((9, 0), scans.Ring),
        ((10, 0), scans.Ring),
        ((12, 0), scans.Lookback),  # bulk copies, but 99 KB a block
    ],
)
def test_the_fastest_fits_the_gpu(monkeypatch, capability, method):
    this = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(scans, "has_gpu", lambda: True)
    monkeypatch.setattr(scans, "gpu", lambda: this)
    monkeypatch.setattr(scans, "shared_limit", lambda: limits(capability).shared_block)
    assert isinstance(scans.fastest(), method)


def test_infinities_and_nan():
    x = torch.ones(3000)
    x[1000], x[2000] = np.inf, -np.inf
    for method in METHODS:
        on_device = x.to(kernels.device())
        out = torch.empty_like(on_device)
        scans.Scan(3000, "float32", method)(on_device, out)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(out.cpu().numpy(), np.cumsum(x.numpy()))


def test_look_back_in_numba():
    for n in [0, *SIZES, 3839, 3840, 3841]:
        x = values(n, "float32")
        out = cuda.to_device(np.full(n, -7, np.float32))
        for _ in range(2):
            scan_lookback.scan(cuda.to_device(x), out)
            check(out.copy_to_host(), x)
