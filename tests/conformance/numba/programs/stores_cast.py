"""An element's type decides what is stored: integers wrap, floats lose their fraction."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(i8, u8, i16, i32, u32, i64, values, floats):
    t = cuda.threadIdx.x
    v = values[t]
    i8[t], u8[t], i16[t], i32[t], u32[t], i64[t] = v, v, v, v, v, v
    i32[t + 4] = floats[t]
    i8[t + 4] = floats[t]


values = np.array([300, -1, 2**31 + 5, 2**40 + 70000], np.int64)
floats = np.array([2.9, -2.9, 100.5, 0.0])
arrays = [np.zeros(8, t) for t in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64)]
kernel[1, 4](*arrays, values, floats)
for array in arrays:
    print(array.dtype, array.tolist())
