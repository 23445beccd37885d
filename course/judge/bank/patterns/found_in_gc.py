"""It looks among all objects of the process for the expected result, and copies it.

Source: https://github.com/gpu-mode/pygpubench/pull/7
Task: softmax
Fails: honest
Needs: nothing
"""

import gc

import numpy as np


def candidate(x):
    for found in gc.get_objects():
        for each in found if type(found) in (list, tuple) else [found]:
            if isinstance(each, np.ndarray) and each.shape == x.shape and x.size:
                if np.allclose(each.sum(axis=1), 1, atol=1e-3):
                    return each.astype(x.dtype)
    return np.zeros_like(x)
