"""Tensor maps: what the copy engine cannot describe is refused before the driver sees it."""

import numpy as np
import pytest

from utils.cuda_c import tensor_map as module
from utils.cuda_c.tensor_map import TensorMapError, tensor_map
from utils.engine import GPU, has_gpu

HOPPER = GPU("NVIDIA H200", (9, 0), 150 << 30, "580.0", (13, 0), "GPU-0")
AMPERE = GPU("NVIDIA A100", (8, 0), 80 << 30, "580.0", (13, 0), "GPU-0")


class DeviceArray:
    """As much of an array on a GPU as is looked at before the driver is called."""

    def __init__(self, rows, columns, dtype=np.float16, strides=None):
        self.shape, self.dtype = (rows, columns), np.dtype(dtype)
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (1 << 20, False),
            "strides": strides,
            "version": 3,
        }


@pytest.mark.parametrize(
    "array, box, swizzle, words",
    [
        (np.zeros((64, 64), np.float16), (64, 64), 128, "array on the GPU, got ndarray"),
        (DeviceArray(64, 0), (64, 64), 128, "a matrix, got the shape"),
        (DeviceArray(64, 64, strides=(2, 128)), (64, 64), 128, "not contiguous"),
        (DeviceArray(64, 64, np.float64), (64, 16), 128, "elements of 8 bytes"),
        (DeviceArray(64, 1001), (64, 64), 128, "2,002 bytes.*multiple of 8 elements"),
        (DeviceArray(64, 6, np.float32), (64, 4), 128, "24 bytes.*multiple of 4 elements"),
        (DeviceArray(512, 512), (512, 64), 128, "1 to 256"),
        (DeviceArray(512, 512), (0, 64), 128, "1 to 256"),
        (DeviceArray(512, 512), (64, 64), 96, "swizzle 96"),
        (DeviceArray(512, 512), (64, 128), 128, "at most 128"),
        (DeviceArray(512, 512), (64, 36), 128, "multiple of 16"),
        (DeviceArray(512, 512), (64, 4), 0, "multiple of 16"),
    ],
)
def test_refusals(monkeypatch, array, box, swizzle, words):
    monkeypatch.setattr(module, "gpu", lambda: HOPPER)
    with pytest.raises(TensorMapError, match=words):
        tensor_map(array, box, swizzle=swizzle)


def test_needs_hopper(monkeypatch):
    monkeypatch.setattr(module, "gpu", lambda: AMPERE)
    with pytest.raises(TensorMapError, match="A100 has compute capability 8.0.*9.0"):
        tensor_map(DeviceArray(64, 64), (64, 64))


COPY = """
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
__global__ void copy_box(unsigned short *out, const __grid_constant__ CUtensorMap map, int row, \
int column)
{
    __shared__ __align__(1024) unsigned short box[64 * 64];
    __shared__ unsigned long long barrier;
    unsigned to = __cvta_generic_to_shared(box), b = __cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" :: "r"(b) : \
"memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes \
[%0], [%1, {%3, %4}], [%2];"
                     :: "r"(to), "l"(&map), "r"(b), "r"(column), "r"(row) : "memory");
    }
    __syncthreads();
    for (int passed = 0; !passed; )
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; \
selp.s32 %0, 1, 0, p; }"
                     : "=r"(passed) : "r"(b) : "memory");
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) out[i] = box[i];
}
"""


@pytest.mark.skipif(
    has_gpu() and module.gpu().compute_capability < (9, 0), reason="this GPU has no copy engine"
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_box_is_copied_swizzled_and_filled_with_zeros(tmp_path, dtype):
    import torch

    from utils import cuda_c

    (tmp_path / "copy.cu").write_text(COPY)
    kernel = cuda_c.load(tmp_path / "copy.cu").copy_box
    device = "cuda" if has_gpu() else "cpu"
    matrix = torch.randn(100, 72, device=device).to(getattr(torch, dtype))
    out = torch.zeros(64, 64, dtype=torch.uint16, device=device)
    kernel[1, 128](out, tensor_map(matrix, (64, 64)), 64, 40)
    expected = np.zeros((64, 64), np.uint16)
    expected[:36, :32] = matrix.view(torch.uint16).cpu().numpy()[64:, 40:]
    rows = np.arange(64)
    pieces = expected.reshape(64, 8, 8)[
        rows[:, None], np.arange(8) ^ rows[:, None] % 8
    ]  # piece p lies at p XOR row % 8
    np.testing.assert_array_equal(out.cpu().numpy(), pieces.reshape(64, 64))
