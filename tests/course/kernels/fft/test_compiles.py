"""The kernels compile with NVIDIA's compiler, where there is one: for old GPUs and for Hopper."""

import pytest

from course.kernels.fft import other_plans, plans
from course.kernels.fft.kernels import FOLDER
from tests.compiling import compiled, instances, needs_nvcc

POINTS = "const float2*, float2*"
PARAMETERS = {
    "one_pass.cu": f"{POINTS}, long long",
    "real.cu": f"{POINTS}, long long",
    "any_length.cu": f"{POINTS}, int, const float2*, const float2*",
}
CODES = {
    "one_pass.cu": [plans.rows_code(n, False, deal) for n, deal in plans.DEALS.items()],
    "real.cu": [other_plans.real_code(n, deal) for n, deal in other_plans.REAL_DEALS.items()],
    "any_length.cu": [other_plans.AnyLength(1009).code],
    "by_hand.cu": [],
}
OTHERS = pytest.mark.nightly("by day one of the folder's files; all compile for the CPU")
BY_DAY = "by_hand.cu", "sm_90"
CASES = [(file, arch) for file in CODES for arch in ("sm_90", "sm_75")]


@needs_nvcc
@pytest.mark.parametrize(
    "file, arch",
    [pytest.param(*case, marks=[] if case == BY_DAY else [OTHERS]) for case in CASES],
)
def test_compiles(file, arch, tmp_path):
    templates = [f"{code[-1]}({PARAMETERS[file]})" for code in CODES[file]]
    compiled(instances(FOLDER / file, templates, tmp_path), tmp_path, arch)
