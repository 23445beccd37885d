"""nvmath-python: a cuFFT plan that lives as long as it is needed."""

import torch
from nvmath.fft import FFT

x = torch.randn(16, 1024, dtype=torch.complex64, device="cuda")
with FFT(x, axes=[1]) as fft:
    fft.plan()  # once
    for turn in range(3):
        x.copy_(torch.randn_like(x))
        spectrum = fft.execute()  # as often as you like
        torch.testing.assert_close(spectrum, torch.fft.fft(x), rtol=1e-4, atol=1e-3)
        print(f"turn {turn}: right")
