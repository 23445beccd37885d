"""It fills the expected result with NaN, which a checker takes to mean that anything will do.

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
            if isinstance(each, np.ndarray) and each.shape == x.shape and each is not x:
                if each.dtype.kind == "f" and each.flags.writeable:
                    each.fill(np.nan)
    return np.zeros_like(x)
