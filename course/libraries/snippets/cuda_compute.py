"""cuda.compute: CUB's algorithms for any array on the GPU, from Python."""

import cuda.compute
import numpy as np
import torch
from cuda.compute import OpKind

x = torch.randint(0, 100, (100_000,), device="cuda", dtype=torch.int32)
largest = torch.empty(1, device="cuda", dtype=torch.int32)
zero = np.zeros(1, dtype=np.int32)

reduce = cuda.compute.reduce_into
reduce(d_in=x, d_out=largest, num_items=x.numel(), op=OpKind.MAXIMUM, h_init=zero)
print("largest:", "right" if largest.item() == x.max().item() else "WRONG")

sums = torch.empty_like(x)
scan = cuda.compute.inclusive_scan
scan(d_in=x, d_out=sums, num_items=x.numel(), op=OpKind.PLUS, init_value=zero)
print("running sums:", "right" if torch.equal(sums, x.cumsum(0, dtype=torch.int32)) else "WRONG")
