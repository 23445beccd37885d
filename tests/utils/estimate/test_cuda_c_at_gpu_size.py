"""A CUDA C kernel that a cell launched without a GPU, estimated at a GPU's size."""

import numpy as np
import pytest
from numba import cuda

from tests.needs import cpp_compiler, without_gpu
from utils import cuda_c, sizes
from utils.estimate import Unknown
from utils.estimate.at_gpu_size import DEPENDS, Unclear, said
from utils.sizes import picked


@without_gpu("launches are noted by the CPU runtime")
def test_cuda_c_is_estimated_too(tmp_path):
    cpp_compiler()
    path = tmp_path / "add.cu"
    path.write_text(
        "__global__ void add(float* out, const float* a, int n) {"
        " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = a[i] + 1; }"
    )
    kernel = cuda_c.load(path).add
    n = picked(1 << 25, 2_000)
    out, a = (cuda.to_device(np.zeros(n, np.float32)) for _ in "ab")
    kernel[8, 256](out, a, 2_000)  # a launch of the same numbers, which are plain
    with sizes.noted() as launches:
        kernel[(n + 255) // 256, 256](out, a, n)
    found = said(launches)
    assert found.launch() == "131,072 blocks of 256 threads"
    assert found.seconds > 8 * (1 << 25) / 4.8e12


@without_gpu("launches are noted by the CPU runtime")
def test_an_array_that_must_grow_unseen_is_no_error_of_the_kernel(tmp_path):
    cpp_compiler()
    path = tmp_path / "blocks.cu"
    path.write_text(
        "__global__ void blocks(float* sums, const float* a, int n) {"
        " if (threadIdx.x == 0) sums[blockIdx.x] = a[blockIdx.x * blockDim.x]; }"
    )
    n = picked(1 << 25, 200)
    sums, a = cuda.to_device(np.zeros(1, np.float32)), cuda.to_device(np.zeros(n, np.float32))
    with sizes.noted() as launches:
        cuda_c.load(path).blocks[(n + 255) // 256, 256](sums, a, n)
    with pytest.raises(Unclear):
        said(launches)


@without_gpu("launches are noted by the CPU runtime")
def test_what_cannot_be_launched_twice_depends_on_data(tmp_path):
    cpp_compiler()
    path = tmp_path / "draw.cu"
    path.write_text(
        "__global__ void draw(float* out, int* drawn, int n) {"
        " if (blockIdx.x * blockDim.x + threadIdx.x < n) out[atomicAdd(drawn, 1)] = 1; }"
    )
    n = picked(1 << 25, 200)
    out, drawn = cuda.to_device(np.zeros(n, np.float32)), cuda.to_device(np.zeros(1, np.int32))
    with sizes.noted() as launches:
        cuda_c.load(path).draw[(n + 255) // 256, 256](out, drawn, n)
    with pytest.raises(Unknown, match=DEPENDS):
        said(launches)
