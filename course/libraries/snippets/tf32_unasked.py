"""The trap: a float32 convolution that multiplies with 10 bits, because nobody said no."""

import torch

x = torch.randn(4, 64, 32, 32, device="cuda")
w = torch.randn(64, 64, 3, 3, device="cuda")
exact = torch.nn.functional.conv2d(x.double(), w.double())


def error():
    return (torch.nn.functional.conv2d(x, w) - exact).abs().max().item()


print("as PyTorch begins:", torch.backends.cudnn.allow_tf32, f"largest error {error():.0e}")
torch.backends.cudnn.allow_tf32 = False
print("TF32 switched off: largest error", f"{error():.0e}")
print("matrix products:", torch.backends.cuda.matmul.allow_tf32)
