# diagnosis: index 4 is outside 'states' of shape (4,)
import numpy as np
from numba import cuda
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32


@cuda.jit
def kernel(states, out):
    i = cuda.grid(1)
    out[i] = xoroshiro128p_uniform_float32(states, i)  # here


kernel[1, 8](create_xoroshiro128p_states(4, seed=1), np.zeros(8))
