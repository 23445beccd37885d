import torch
from numba import cuda

where = "cuda" if torch.cuda.is_available() else "cpu"


@cuda.jit
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


a = torch.arange(10, dtype=torch.float32, device=where)
out = torch.zeros_like(a)
add[1, 16](out, a, a)
print(out.tolist())
view = cuda.as_cuda_array(out)
add[1, 16](view, view, a)
torch.cuda.synchronize() if where == "cuda" else None
print(out.tolist(), view.copy_to_host().sum())
