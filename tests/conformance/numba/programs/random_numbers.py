"""The uniform numbers of xoroshiro128+, bit for bit."""

import numpy as np
from numba import cuda
from numba.cuda.random import (
    create_xoroshiro128p_states,
    xoroshiro128p_next,
    xoroshiro128p_uniform_float32,
    xoroshiro128p_uniform_float64,
)


@cuda.jit
def kernel(states, words, singles, doubles):
    i = cuda.grid(1)
    if i < words.size:
        words[i] = xoroshiro128p_next(states, i)
        singles[i] = xoroshiro128p_uniform_float32(states, i)
        doubles[i] = xoroshiro128p_uniform_float64(states, i)


words, singles, doubles = np.zeros(5, np.uint64), np.zeros(5, np.float32), np.zeros(5, np.float64)
kernel[1, 8](create_xoroshiro128p_states(5, seed=2024), words, singles, doubles)
print(words.tolist(), singles.tolist(), doubles.tolist())
kernel[1, 8](
    create_xoroshiro128p_states(5, seed=2024, subsequence_start=3), words, singles, doubles
)
print(words.tolist())
