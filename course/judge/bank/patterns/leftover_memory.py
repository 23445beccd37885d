"""It returns memory that it never wrote, which may still hold the reference's result.

Source: https://github.com/ScalingIntelligence/KernelBench/pull/82
Task: softmax
Fails: right
Needs: nothing
"""

import numpy as np


def candidate(x):
    return np.empty_like(x)
