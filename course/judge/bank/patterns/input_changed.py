"""It sets its input to zero, and returns what is right for zeros: a later reference agrees.

Source: https://github.com/ScalingIntelligence/KernelBench/pull/82
Task: product
Fails: right
Needs: nothing
"""

import numpy as np


def candidate(a, b):
    a[:] = 0
    return np.zeros((a.shape[0], b.shape[1]), a.dtype)
