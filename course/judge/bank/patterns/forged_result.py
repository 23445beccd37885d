"""It writes a result of its own where the judge's is expected, and ends the process.

Source: https://github.com/gpu-mode/pygpubench/issues/23
Task: softmax
Fails: honest
Needs: nothing
"""

import os
import pickle

import numpy as np


def candidate(x):
    forged = pickle.dumps((np.full_like(x, 1 / max(1, x.shape[-1])), None))
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, len(forged).to_bytes(8, "little") + forged)
        except OSError:
            continue
    os._exit(0)
