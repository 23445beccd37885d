"""Sorting 32-bit keys: `Sort` launches cuda/radix_sort.cu.

    sort = sorts.Sort(n)
    sort(keys, out)                  # out: the keys, smallest first

A `Sort` keeps a second array of n keys, and what its tiles tell one another.
"""

from dataclasses import dataclass

import torch

from course.kernels.reductions import kernels
from utils.occupancy import ceil_div

WARP = 32
DIGITS = 256
PASSES = 4
#: Of the counting kernel
COUNT_THREADS = 512
COUNT_BLOCKS = 4  # a multiprocessor
MOST_FOR_32_BITS = 1 << 30  # a 32-bit word has 30 bits for a count


@dataclass(frozen=True)
class Shape:
    """How a pass is launched: what is best depends on the GPU."""

    threads: int = 256
    items: int = 28  # keys a thread
    blocks: int = 3  # a multiprocessor


class Sort:
    """Sorts n unsigned 32-bit keys; keeps the temporary memory, 4 n bytes and a little."""

    def __init__(self, n: int, shape: Shape | None = None):
        self.n = n
        self.shape = shape or Shape()
        self._tiles = ceil_div(n, self.shape.threads * self.shape.items)
        long = n >= MOST_FOR_32_BITS
        module = kernels.load("radix_sort.cu")
        self._count = module.count_digits
        self._scan = module.scan_digits
        word = "unsigned long long" if long else "unsigned"
        sizes = f"{self.shape.threads}, {self.shape.items}, {self.shape.blocks}"
        self._sort = module[f"sort_by_digit<{word}, {sizes}>"]

        def room(*shape, dtype=torch.int32):
            return torch.empty(shape, dtype=dtype, device=kernels.device())

        self._between = room(n).view(torch.uint32)
        # One piece of zeros, so that one call clears it: what the tiles tell, counts, tickets.
        word_type = torch.int64 if long else torch.int32
        self._told = room(PASSES, self._tiles * DIGITS, dtype=word_type)
        self._counts = room(PASSES * DIGITS, dtype=torch.int64)
        self._drawn = room(PASSES)
        self._told_type = torch.uint64 if long else torch.uint32

    def __call__(self, keys, out) -> None:
        """out: the n keys in ascending order; keys stays as it is. uint32, at multiples of 16."""
        if self.n == 0:
            return
        for zeros in (self._told, self._counts, self._drawn):
            zeros.zero_()
        counts = self._counts.view(torch.uint64)
        most = COUNT_BLOCKS * kernels.multiprocessors()
        blocks = min(most, ceil_div(self.n, COUNT_THREADS * 4))
        self._count[blocks, COUNT_THREADS](keys, self.n, counts)
        self._scan[PASSES, DIGITS](counts)
        source = keys
        for number in range(PASSES):
            target = out if number % 2 else self._between
            self._pass(source, target, number, counts)
            source = target

    def _pass(self, source, target, number: int, counts) -> None:
        shape = self.shape
        counts_of_warps = shape.threads // WARP * DIGITS
        shared_bytes = 4 * (shape.threads * shape.items + counts_of_warps)
        launch = self._sort[self._tiles, shape.threads, shared_bytes]
        told = self._told[number].view(self._told_type)
        drawn = self._drawn[number : number + 1].view(torch.uint32)
        launch(source, target, self.n, number, counts, told, drawn)
