"""It returns zeros: where all results are small, an absolute tolerance takes them.

Source: https://github.com/ScalingIntelligence/KernelBench/issues/165
Task: wide_softmax
Fails: right
Needs: nothing
"""

import numpy as np


def candidate(x):
    return np.zeros_like(x)
