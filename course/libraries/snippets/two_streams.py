"""The trap: PyTorch works in one stream, a library in another."""

import cupy as cp
import torch

side = torch.cuda.Stream()
x = torch.zeros(1_000_000, device="cuda")
torch.cuda.synchronize()


def sum_by_cupy(stream):
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)  # cycles: PyTorch's stream is busy
        x.fill_(1)
    with stream:
        return float(cp.asarray(x).sum())


theirs = cp.cuda.Stream(non_blocking=True)
sum_by_cupy(theirs)  # once before: CuPy compiles its sum
torch.cuda.synchronize()
x.zero_()
torch.cuda.synchronize()
print("CuPy in a stream of its own:", sum_by_cupy(theirs), "of", x.numel())
torch.cuda.synchronize()
x.zero_()
torch.cuda.synchronize()
same = cp.cuda.ExternalStream(side.cuda_stream)
print("CuPy in PyTorch's stream:", sum_by_cupy(same), "of", x.numel())
