import numpy as np
from numba import cuda

host = np.arange(12, dtype=np.int32).reshape(3, 4)
device = cuda.to_device(host)
host[0, 0] = 99
print(
    device.copy_to_host()[0].tolist(),
    device.shape,
    device.dtype,
    device.ndim,
    device.size,
    device.nbytes,
)
print(device[1, 2], device[1].copy_to_host().tolist(), device[:2, 1:3].shape, len(device))
device[0] = 7
device[1, 1] = -1
print(device.copy_to_host().tolist())
print(device.reshape(4, 3).copy_to_host()[1].tolist(), device.ravel().copy_to_host()[4:7].tolist())
print(device.T.copy_to_host()[0].tolist(), np.asarray(device).sum())
again = cuda.device_array_like(host)
again.copy_to_device(host)
print(
    again.copy_to_host().tolist() == host.tolist(),
    again.is_c_contiguous(),
    cuda.is_cuda_array(again),
)
into = np.zeros((3, 4), np.int32)
again.copy_to_host(into)
print(into[0].tolist(), [part.size for part in cuda.to_device(np.arange(10)).split(4)])
