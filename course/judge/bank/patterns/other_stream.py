"""It works on a stream of its own, for which the clock's events do not wait.

Source: https://github.com/ScalingIntelligence/KernelBench/pull/82
Task: softmax_torch
Fails: fast
Needs: GPU
"""

import torch


def candidate(x):
    out = torch.empty_like(x)
    with torch.cuda.stream(torch.cuda.Stream()):
        shifted = torch.exp(x - x.max(dim=1, keepdim=True).values)
        torch.div(shifted, shifted.sum(dim=1, keepdim=True), out=out)
    return out
