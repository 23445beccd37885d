"""Sizes know what they would be on a GPU; launches are noted with them."""

import copy
import json
import operator
import pickle

import numpy as np
import pytest
from numba import cuda

from utils import sizes
from utils.sizes import MOST_STEPS, Size, picked, value_at

OPERATIONS = [getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod")]


@cuda.jit
def count_to(out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = i


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_computed_from_sizes_is_what_it_would_be_on_a_gpu(operation, seed):
    rng = np.random.default_rng(seed)
    here, there, other, its, plain = map(int, rng.integers(1, 1000, 5))
    one, two = picked(there, here), picked(its, other)
    for left, right in ((one, two), (one, plain), (plain, two)):
        made = operation(left, right)
        assert made == operation(int(left), int(right))
        assert made.gpu == operation(value_at(left, None), value_at(right, None))
        thrice = operation(value_at(left, 3), value_at(right, 3))
        assert made.at(3) == thrice


def test_a_grid_knows_its_blocks_and_which_sizes_it_came_from():
    n, other = picked(1 << 25, 5_000), picked(1 << 24, 5_000)
    grid = (n + 255) // 256
    assert (grid, grid.gpu) == (20, 131_072)
    assert [one is n for one in grid.picks] == [True]
    assert (-(-n // 256)).gpu == 131_072
    both = (n + other).picks  # equal here, and not the same
    assert len(both) == 2 and {one.gpu for one in both} == {1 << 25, 1 << 24}


def test_what_is_no_calculation_of_whole_numbers_is_a_plain_number():
    n = picked(1000, 10)
    for value in (n / 4, n * 2.5, abs(n), int(n), np.int32(n), n + np.int64(1), n == 10, n**2):
        assert not isinstance(value, Size)


def test_pairs_of_numbers_are_sizes_and_all_else_is_as_it_is_here():
    rows, columns, same = picked((8192, 4096, 5), (61, 83, 5))
    assert (rows.gpu, columns.gpu, type(same)) == (8192, 4096, int)
    for gpu, cpu in (("cuda", "cpu"), (True, False), (1.5, 2), (None, 2), ((1, 2), (3,))):
        assert picked(gpu, cpu) is cpu


def test_elsewhere_a_size_is_a_number():
    n = picked(1000, 10)
    assert json.dumps([n]) == "[10]" and f"{n:,}" == "10" and {10: "ten"}[n] == "ten"
    assert type(pickle.loads(pickle.dumps(n))) is type(copy.deepcopy(n)) is int
    assert np.zeros((n, 2)).shape == (10, 2) and list(range(n))[-1] == 9


def test_a_loop_that_goes_on_with_its_result_keeps_no_chain():
    total = picked(1000, 10)
    for _ in range(MOST_STEPS + 1):
        total = total + 1
    assert type(total) is int and total == 10 + MOST_STEPS + 1


def test_kernels_see_plain_numbers_and_launches_are_noted_with_sizes():
    n = picked(1 << 20, 70)
    out = cuda.to_device(np.zeros(70, np.int64))
    with sizes.noted() as launches:
        count_to[(n + 31) // 32, 32](out, n)
    count_to[3, 32](out, 70)  # nobody asks
    (launch,) = launches
    assert launch.kernel is count_to and launch.block == (32, 1, 1)
    assert launch.grid[0].gpu == 1 << 15 and launch.args[1].gpu == 1 << 20
    assert out.copy_to_host().tolist() == list(range(70))
