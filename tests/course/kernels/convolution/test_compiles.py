"""The kernels compile with NVIDIA's compiler, where there is one: for old GPUs and for Hopper."""

import pytest

from course.kernels.convolution import hopper
from tests.compiling import compiled, needs_nvcc

#: (file, architecture, flags); the first one by day
CASES = [
    ("classic.cu", "sm_75", ()),
    ("depthwise.cu", "sm_80", ("-DSIDE=7",)),
    ("winograd.cu", "sm_75", ()),
    ("winograd.cu", "sm_80", ("-DNUMBER=__nv_bfloat16",)),
    ("implicit.cu", "sm_90", ()),
    ("implicit.cu", "sm_75", ("-DHALF",)),
    ("depthwise_hopper.cu", "sm_90a", ("-DSIDE=7",)),
    ("halo.cu", "sm_90a", ("-DTURNED=1",)),
    ("halo_weights.cu", "sm_90a", ()),
    *(
        ("hopper.cu", "sm_90a", (*tile.flags, f"-DTURNED={turned}"))
        for tile in (hopper.WIDE, hopper.NARROW)
        for turned in (0, 1)
    ),
    *(
        ("hopper_weights.cu", "sm_90a", tile.flags)
        for tile in (hopper.WeightsTile(), hopper.FEW_FILTERS)
    ),
]


OTHERS = pytest.mark.nightly("by day one of the folder's files; all compile for the CPU")
BY_DAY, *AT_NIGHT = CASES


@needs_nvcc
@pytest.mark.parametrize(
    "file, arch, flags", [BY_DAY, *(pytest.param(*case, marks=OTHERS) for case in AT_NIGHT)]
)
def test_compiles(file, arch, flags, tmp_path):
    compiled(hopper.KERNELS / file, tmp_path, arch, "-Werror", "all-warnings", *flags)
