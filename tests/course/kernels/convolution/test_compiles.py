"""The kernels compile with NVIDIA's compiler, where there is one: for old GPUs and for Hopper."""

import pytest

from course.kernels.convolution import hopper
from tests.compiling import compiled, needs_nvcc

#: (file, architecture, flags); of a file's ways the first one by day
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


ANOTHER_WAY = pytest.mark.nightly("the file compiles, by day in one of its ways")


def cases():
    """CASES, marked after the first one of each file."""
    files = set()
    for case in CASES:
        yield pytest.param(*case, marks=[ANOTHER_WAY] if case[0] in files else [])
        files.add(case[0])


@needs_nvcc
@pytest.mark.parametrize("file, arch, flags", cases())
def test_compiles(file, arch, flags, tmp_path):
    compiled(hopper.KERNELS / file, tmp_path, arch, "-Werror", "all-warnings", *flags)
