"""Rows of several columns, grouped by equal values; in NumPy, for up to millions of them."""

import numpy as np


def group(*columns):
    """(number of each row's group, first row of each group): equal columns are a group."""
    if not len(columns[0]):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.lexsort(columns[::-1])
    new = np.ones(len(order), bool)
    new[1:] = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in columns])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers, order[new]  # lexsort is stable: the first row of each group


def per_group(numbers, *keys):
    """How many distinct `keys` each group in `numbers` holds (one count for each group number)."""
    _, first = group(numbers, *keys)
    return np.bincount(numbers[first], minlength=int(numbers.max(initial=-1)) + 1)


def rank_among(*columns):
    """For each row, the number of earlier rows with the same columns."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    order = np.lexsort(columns[::-1])
    new = np.ones(len(order), bool)
    new[1:] = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in columns])
    starts = np.flatnonzero(new)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return rank
