"""The pointer chase's repeats: what a kernel reports is divided by its loads."""

import numpy as np
from numba import cuda

from course.kernels.pointer_chase import cycles_a_load
from utils import pick


@cuda.jit
def seven_cycles_a_load(table, loads, cycles, end):
    if cuda.grid(1) == 0:
        cycles[0] = 7 * loads + table[0]
        end[0] = 0


def test_cycles_of_one_load():
    table = cuda.to_device(np.zeros(1, np.int32))
    samples = cycles_a_load(seven_cycles_a_load, 32, table)
    assert samples == [7.0] * pick(gpu=9, cpu=1)
