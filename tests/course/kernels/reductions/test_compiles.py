"""The kernels compile with NVIDIA's compiler, where there is one: for old GPUs and for Hopper."""

import pytest

from course.kernels.reductions import kernels, scans, sorts, sums
from tests.compiling import compiled, instances, needs_nvcc

FAST = sums.Shape()
SUMMED = "const float*, long long, double*, unsigned*, float*"
REDUCED = "const float*, const float*, long long, double*, unsigned*, double*"
SCANNED = "const float*, float*, long long, Word*"
SORTED = "const unsigned*, unsigned*, long long, int, const unsigned long long*, {0}*, unsigned*"

#: file -> the templates that are used of it, with their parameters
TEMPLATES = {
    "sum_ladder.cu": [],
    "sum_precise.cu": [],
    "sum_fast.cu": [f"sum_fast<{FAST.threads}, {FAST.loads}>({SUMMED})"],
    "reduce.cu": [f"reduce<{o.name}, 512, 4>({REDUCED})" for o in sums.OPERATIONS.values()],
    "scan_ladder.cu": [],
    "scan_uses.cu": [],
    "scan_lookback.cu": [f"{scans.Lookback().expression('float')}({SCANNED})"],
    "scan_persistent.cu": [f"{scans.Persistent().expression('float')}({SCANNED})"],
    "radix_sort.cu": [
        "sort_by_digit<{0}, {1.threads}, {1.items}, {1.blocks}>({2})".format(
            word, sorts.Shape(), SORTED.format(word)
        )
        for word in ("unsigned", "unsigned long long")
    ],
}
FOR_HOPPER = {
    "sum_cluster.cu": [],
    "scan_ring.cu": [f"{scans.Ring().expression('float')}({SCANNED})"],
}
OTHERS = pytest.mark.nightly("by day one of the folder's files; all compile for the CPU")
BY_DAY = "scan_lookback.cu", "sm_90"
CASES = [(file, "sm_90") for file in (*TEMPLATES, *FOR_HOPPER)]
CASES += [(file, "sm_75") for file in TEMPLATES]


@needs_nvcc
@pytest.mark.parametrize(
    "file, arch",
    [pytest.param(*case, marks=[] if case == BY_DAY else [OTHERS]) for case in CASES],
)
def test_compiles(file, arch, tmp_path):
    templates = {**TEMPLATES, **FOR_HOPPER}[file]
    compiled(instances(kernels.FOLDER / file, templates, tmp_path), tmp_path, arch)
