"""Rows of several columns, grouped by equal values; in NumPy, for up to millions of them."""

import numpy as np


def group(*columns):
    """(number of each row's group, first row of each group): equal columns are a group."""
    if not len(columns[0]):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order, new = _sorted(columns)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers, order[new]  # lexsort is stable: the first row of each group


def _sorted(columns):
    """(the rows in order, whether each is the first of its group in this order)."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), bool)
    new[0] = True
    for column in columns:
        values = column[order]
        new[1:] |= values[1:] != values[:-1]
    return order, new


def per_group(numbers, *keys):
    """How many distinct `keys` each group in `numbers` holds (one count for each group number)."""
    _, first = group(numbers, *keys)
    groups = int(numbers.max(initial=-1)) + 1
    return np.bincount(numbers[first], minlength=groups)


def rank_among(*columns):
    """For each row, the number of earlier rows with the same columns."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    order, new = _sorted(columns)
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=len(order))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return rank
