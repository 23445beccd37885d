"""The kernels compile with NVIDIA's compiler, where there is one: for old GPUs and for Hopper."""

import pytest

from course.kernels.fft import other_plans, plans
from course.kernels.fft.kernels import FOLDER
from tests.processes import completed
from utils.tools.nvcc import find_nvcc

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


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc here")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("file", CODES)
def test_compiles(file, arch, tmp_path):
    source = tmp_path / "source.cu"
    lines = [f'#include "{FOLDER / file}"']
    lines += [f"template __global__ void {code[-1]}({PARAMETERS[file]});" for code in CODES[file]]
    source.write_text("\n".join(lines) + "\n")
    command = [find_nvcc(), "-std=c++17", f"-arch={arch}", "-cubin"]
    command += ["-o", str(tmp_path / "out.cubin"), str(source)]
    done = completed(command)
    assert done.returncode == 0, done.stderr[-3000:]
