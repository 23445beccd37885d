"""Runs each fast kernel once or twice, for a profiler to look at.

ncu -k regex:fft_ --csv --metrics dram__bytes_read.sum,dram__bytes_write.sum \\
    python -m course.kernels.fft.once
"""

import torch

from course.kernels.fft import plans
from course.kernels.fft.rightness import random_complex
from utils import pick

PICTURES, SIDE, LONG = pick(
    gpu=(64, 1024, 1 << 16),
    cpu=(2, 32, 1 << 10),
)


def main() -> None:
    x = random_complex(PICTURES, SIDE, SIDE)
    out = torch.empty_like(x)
    between = torch.empty_like(x)
    plans.Rows(SIDE)(x, out)
    pictures = plans.Pictures(SIDE)
    long = plans.Long(LONG)
    pictures(x, out)
    pictures.two_launches(x, out)
    long(x, out)
    long.two_launches(x, out, between)


if __name__ == "__main__":
    main()
