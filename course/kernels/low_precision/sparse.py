"""2:4 sparsity: of every four neighbours in a row two are kept, with 2 bits each for their places.

Source: Mishra et al., "Accelerating sparse deep neural networks", 2021.
"""

import functools
from pathlib import Path

import torch

from utils import cuda_c, machine
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
FOUR = 4  # neighbours, of which two are kept
CHAINS = 8  # of kernels/sparse.cu
THREADS = 256
TILE = 16 * 8 * 16  # multiplications that mma.m16n8k16 does


def prune(weights: torch.Tensor) -> torch.Tensor:
    """The weights with the two smaller magnitudes of every four neighbours set to zero."""
    fours = weights.reshape(-1, FOUR)
    kept = fours.abs().topk(2, dim=1).indices
    mask = torch.zeros_like(fours, dtype=torch.bool)
    mask.scatter_(1, kept, True)
    return (fours * mask).reshape(weights.shape)


def compress(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(values, places): half of each row, and where it stood among its four.

    weights: [rows, columns], at most two of every four not zero. places: uint8, ascending.
    Raises ValueError where there are more.
    """
    rows, columns = weights.shape
    fours = weights.reshape(rows, columns // FOUR, FOUR)
    used = fours != 0
    if (used.sum(-1) > 2).any():
        raise ValueError("more than two of four neighbours are not zero: prune the matrix first")
    # zeros that must fill up come last among equals, then places in ascending order
    order = used.int().argsort(
        dim=-1,
        descending=True,
        stable=True,
    )
    places = order[..., :2].sort(-1).values
    values = fours.gather(-1, places)
    return values.flatten(1), places.flatten(1).byte()


def expand(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The matrix that `compress` was given."""
    rows, half = values.shape
    fours = values.new_zeros(rows, half // 2, FOUR)
    pairs = (rows, half // 2, 2)
    at = places.long().reshape(pairs)
    fours.scatter_(-1, at, values.reshape(pairs))
    return fours.flatten(1)


@yours.cache
def module():
    """kernels/sparse.cu; needs compute capability 8.0."""
    return cuda_c.load(KERNELS / "sparse.cu")


def multiply_tile(values, places, b) -> torch.Tensor:
    """d (16 × 8) by one mma.sp. values and places: [16, 16]; b: bfloat16 [8, 32], as columns."""
    d = torch.full((16, 8), torch.nan, device=b.device)
    module().sparse_tile[1, 32](d, values, places, b)
    return d


def rate_run(sparse: bool, rounds: int = 4096):
    """(run, operations): products from registers on all SMs; a zero that mma.sp skips counts."""
    blocks = machine().sms * 8
    out = torch.empty(blocks * THREADS, device="cuda")
    name = f"rate<{str(sparse).lower()}>"
    kernel = module()[name][blocks, THREADS]
    warps = blocks * (THREADS // 32)
    products = warps * CHAINS * rounds
    operations = 2 * TILE * (1 + sparse) * products
    return functools.partial(kernel, out, rounds), operations
