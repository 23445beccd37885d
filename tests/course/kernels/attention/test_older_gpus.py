"""What NVIDIA's compiler makes of attention's kernels for GPUs before Hopper."""

import pytest
import torch

from course.kernels.attention import backward, classic
from tests.compiling import needs_nvcc, unspilled

OLD = [
    ("mma.cu", "sm_75", classic.SMALL.flags(128, torch.float16)),
    ("mma.cu", "sm_80", ("-DDIM=64",)),
    ("naive.cu", "sm_75", ()),
    ("online.cu", "sm_75", ()),
    ("backward_mma.cu", "sm_75", backward.SMALL.flags(128, torch.float16)),
    ("backward_mma.cu", "sm_80", ("-DDIM=64",)),
    ("backward_mma.cu", "sm_80", ()),
    ("backward_plain.cu", "sm_75", ()),
]


@pytest.mark.nightly("by day the Hopper rungs compile, and the CPU runtime builds these")
@needs_nvcc
@pytest.mark.parametrize("file, arch, flags", OLD)
def test_rungs_compile_without_spills(file, arch, flags, tmp_path):
    unspilled(classic.KERNELS / file, tmp_path, arch, *flags)
