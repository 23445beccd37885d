"""The pointer chase of *Memory*, walked again and again."""

import numpy as np
from numba import cuda

from utils import pick


def cycles_a_load(kernel, threads: int, *arguments) -> list[float]:
    """Cycles that one load takes, in each of nine walks of 4,096 loads (on the CPU: one of 64).

    kernel: takes `arguments`, then the number of loads, then where it leaves the cycles (int64) and
    where it ended (int32). threads: of its one block.
    """
    loads = pick(gpu=4096, cpu=64)
    cycles = cuda.to_device(np.zeros(1, np.int64))
    end = cuda.to_device(np.zeros(1, np.int32))
    samples = []
    for _ in range(pick(gpu=9, cpu=1)):
        kernel[1, threads](*arguments, loads, cycles, end)
        samples.append(cycles.copy_to_host()[0] / loads)
    return samples
