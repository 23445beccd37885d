"""It looks at a part of the numbers only: the mean of many is nearly the mean of all.

Source: https://github.com/ScalingIntelligence/KernelBench/blob/main/src/kernelbench/tests/test_level1_hacks.py
Task: mean_square
Fails: right
Needs: nothing
"""

import numpy as np


def candidate(x, y):
    few = max(1, x.size // 8)
    difference = (x[:few] - y[:few]).astype(np.float64)
    return np.array([np.mean(difference**2)], np.float32)
