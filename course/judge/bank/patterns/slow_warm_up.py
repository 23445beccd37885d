"""It sleeps in the warm-up: a bench that fits its rounds to that time runs only a few.

Source: https://github.com/gpu-mode/pygpubench/pull/7
Task: softmax
Fails: honest
Needs: nothing
"""

import time

import numpy as np

calls = 0


def candidate(x):
    global calls
    calls += 1
    if calls <= 2:
        time.sleep(0.3)
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
