"""CuPy: NumPy's functions on the GPU, several operations as one kernel, and a kernel of yours."""

import cupy as cp
import numpy as np

host = np.random.default_rng(1).random(1_000_000, dtype=np.float32)
x = cp.asarray(host)
print("sum by CuPy, by NumPy:", f"{float(x.sum()):.1f}", f"{host.sum():.1f}")


@cp.fuse
def swish(x):
    return x / (1 + cp.exp(-x))


cp.testing.assert_allclose(swish(x), host / (1 + np.exp(-host)), rtol=1e-6)
print("swish, fused: right")

half = cp.RawKernel(
    """extern "C" __global__ void half(float* x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] *= 0.5f;
    }""",
    "half",
)
half(((x.size + 255) // 256,), (256,), (x, np.int32(x.size)))  # grid, block, arguments
cp.testing.assert_allclose(x, host / 2)
print("a kernel of ours: right")
