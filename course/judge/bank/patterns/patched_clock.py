"""It computes as it should, and puts a slower clock in the place of the one that times it.

Source: https://github.com/gpu-mode/reference-kernels/issues/162
Task: softmax
Fails: honest
Needs: nothing
"""

import time

import numpy as np

true = time.perf_counter
time.perf_counter = lambda: true() / 100


def candidate(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
