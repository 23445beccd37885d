"""It waits for the end of the process, and writes a better result over the judge's.

Source: https://github.com/gpu-mode/pygpubench/pull/15
Task: softmax
Fails: honest
Needs: nothing
"""

import atexit
import os

import numpy as np


def better():
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'{"right": "yes", "fast": "yes", "honest": "yes"}')
        except OSError:
            continue


atexit.register(better)


def candidate(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
