import numpy as np
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


pinned, mapped, managed = (
    cuda.pinned_array(8, np.int32),
    cuda.mapped_array(8, np.int32),
    cuda.managed_array(8, np.int32),
)
for array in (pinned, mapped, managed):
    array[:] = np.arange(8)
    double[1, 8](array)
    cuda.synchronize()
    print(array.tolist(), array.sum())
plain = np.arange(4.0)
with cuda.pinned(plain):
    device = cuda.to_device(plain)
double[1, 4](device)
print(device.copy_to_host().tolist(), plain.tolist())
