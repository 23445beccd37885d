"""The radix sort sorts, in any length, with many equal keys and with the largest ones."""

import numpy as np
import pytest
import torch

from course.kernels.reductions import kernels, sorts

SIZES = [0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 9_001]
SHAPES = [sorts.Shape(256, 2, 1), sorts.Shape(320, 3, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("largest", [1, 7, 1 << 31, (1 << 32) - 1])
def test_sorts(shape, largest):
    random = np.random.default_rng(largest)
    for n in SIZES:
        keys = random.integers(0, largest, n, dtype=np.uint32, endpoint=True)
        on_device = torch.from_numpy(keys).to(kernels.device())
        out = torch.from_numpy(np.full(n, 77, np.uint32)).to(kernels.device())
        sorts.Sort(n, shape)(on_device, out)
        np.testing.assert_array_equal(out.cpu().numpy(), np.sort(keys))
        np.testing.assert_array_equal(on_device.cpu().numpy(), keys)
