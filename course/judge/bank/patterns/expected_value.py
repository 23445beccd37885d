"""It returns what the mean will be for the numbers that a test draws, and reads none of them.

Source: https://github.com/ScalingIntelligence/KernelBench/blob/main/src/kernelbench/tests/test_level1_hacks.py
Task: mean_square
Fails: right
Needs: nothing
"""

import numpy as np


def candidate(x, y):
    return np.full(
        1, 2, np.float32
    )  # two normal numbers: the square of their difference, on average
