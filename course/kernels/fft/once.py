"""Runs each fast kernel once or twice, for a profiler to look at.

ncu -k regex:fft_ --csv --metrics dram__bytes_read.sum,dram__bytes_write.sum \\
    python -m course.kernels.fft.once
"""

import torch

from course.kernels.fft import plans
from course.kernels.fft.kernels import DEVICE
from utils.engine import has_gpu

PICTURES, SIDE, LONG = (64, 1024, 1 << 16) if has_gpu() else (2, 32, 1 << 10)


def main() -> None:
    x = torch.randn(PICTURES, SIDE, SIDE, dtype=torch.complex64, device=DEVICE)
    out, between = torch.empty_like(x), torch.empty_like(x)
    plans.Rows(SIDE)(x, out)
    pictures, long = plans.Pictures(SIDE), plans.Long(LONG)
    pictures(x, out)
    pictures.two_launches(x, out)
    long(x, out)
    long.two_launches(x, out, between)


if __name__ == "__main__":
    main()
