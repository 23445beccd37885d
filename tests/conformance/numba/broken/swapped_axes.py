# diagnosis: index (0, 4) is outside 'a' of shape (6, 4) (axis 1 has 4)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(a):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        a[x, y] = 1  # here


kernel[(1, 2), (4, 4)](np.zeros((6, 4)))
