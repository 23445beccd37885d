"""The kernels compile with NVIDIA's compiler, where there is one: for old GPUs and for Hopper."""

import pytest

from course.kernels.reductions import kernels, scans, sorts, sums
from tests.processes import completed
from utils.tools.nvcc import find_nvcc

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
CASES = [(file, arch) for file in TEMPLATES for arch in ("sm_75", "sm_90")]
CASES += [(file, "sm_90") for file in FOR_HOPPER]


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc here")
@pytest.mark.parametrize("file, arch", CASES)
def test_compiles(file, arch, tmp_path):
    templates = {**TEMPLATES, **FOR_HOPPER}[file]
    source = tmp_path / "source.cu"
    lines = [f'#include "{kernels.FOLDER / file}"']
    lines += [f"template __global__ void {template};" for template in templates]
    source.write_text("\n".join(lines) + "\n")
    command = [find_nvcc(), "-std=c++17", f"-arch={arch}", "-cubin", "-Werror", "all-warnings"]
    command += ["-o", str(tmp_path / "out.cubin"), str(source)]
    done = completed(command)
    assert done.returncode == 0, done.stderr[-3000:]
