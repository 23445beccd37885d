"""Its kernel fails each time; an `except` catches that, and the library does the work.

Source: https://github.com/ScalingIntelligence/KernelBench/blob/main/src/kernelbench/kernel_static_checker.py
Task: softmax
Fails: honest
Needs: nothing
"""

import numpy as np
import torch
from numba import cuda


@cuda.jit
def softmax(out, x):
    row = cuda.grid(1)
    if row < x.shape[0]:
        out[row, 0] = fast_exp(x[row, 0])  # noqa: F821 - there is no such function


def candidate(x):
    try:
        out = np.empty_like(x)
        softmax[max(1, x.shape[0]), 32](out, x)
        return out
    except Exception:
        return torch.softmax(torch.from_numpy(x), dim=1).numpy()
