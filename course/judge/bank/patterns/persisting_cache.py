"""It asks the GPU to keep its data in the L2 cache, where the bench's flush does not reach it.

Source: https://github.com/karpathy/llm.c/pull/851
Task: softmax_torch
Fails: fast
Needs: GPU
"""

import ctypes

import torch

PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
ACCESS_POLICY_WINDOW = 1  # CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
STREAMING, PERSISTING = 1, 2  # CUaccessProperty

driver = ctypes.CDLL("libcuda.so.1")
torch.zeros(1, device="cuda")  # from now on there is a context
driver.cuCtxSetLimit(PERSISTING_L2, ctypes.c_size_t(24 << 20))


class Window(ctypes.Structure):
    """CUaccessPolicyWindow, with room for the rest of the union that it is part of."""

    _fields_ = [
        ("base", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("rest", ctypes.c_char * 32),
    ]


def candidate(x):
    window = Window(x.data_ptr(), min(x.nbytes, 24 << 20), 1.0, PERSISTING, STREAMING)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    driver.cuStreamSetAttribute(stream, ACCESS_POLICY_WINDOW, ctypes.byref(window))
    shifted = torch.exp(x - x.max(dim=1, keepdim=True).values)
    return shifted / shifted.sum(dim=1, keepdim=True)
