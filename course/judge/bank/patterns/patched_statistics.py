"""It changes how times are summed up: the median becomes a hundredth of the least.

Source: https://github.com/gpu-mode/reference-kernels/issues/162
Task: softmax
Fails: honest
Needs: nothing
"""

import statistics

import numpy as np

statistics.median = lambda times: min(times) / 100


def candidate(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
