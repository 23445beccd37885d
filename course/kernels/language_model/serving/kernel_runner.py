"""A runner by the plain form's kernels: float32 or bfloat16, on a GPU or the CPU runtime.

Each row reads all weights for itself, so it is for few rows; `batch` is for many.
"""

from dataclasses import replace

import torch

from course.kernels.language_model import problem
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.problem import Config
from course.kernels.language_model.serving.batch import SIZES
from course.kernels.language_model.serving.runner import come
from course.kernels.language_model.serving.scheduler import BLOCK
from utils.occupancy import ceil_div


class KernelRunner:
    """See serving.runner.Runner. longest: tokens of a sequence at most."""

    def __init__(self, config: Config, weights: dict, blocks: int, longest: int = 512):
        self.config, self.weights, self.blocks = config, weights, blocks
        self.vocabulary = config.vocabulary
        like = weights["embedding"]
        positions = (blocks + 1) * BLOCK  # a block more, for rows that fill a step up
        self.cache = problem.cache(config, 1, positions, like.dtype, like.device)
        self._table_length = ceil_div(longest, BLOCK)
        self.drawn = torch.zeros(1, dtype=torch.int64, device=like.device)
        self._plains = {}

    def copy(self, copies) -> None:
        """See Runner."""
        for source, target in copies:
            self.cache.k[:, target] = self.cache.k[:, source]
            self.cache.v[:, target] = self.cache.v[:, source]

    def step(self, tokens, positions, tables, wanted):
        """See Runner."""
        count = len(tokens)
        plain = self._plain(next(size for size in SIZES if size >= count))
        table = torch.full((plain.batch, self._table_length), self.blocks, dtype=torch.int32)
        table[:count, : tables.shape[1]] = tables
        plain.cache.table.copy_(table)
        plain.token.zero_()
        plain.position.zero_()
        plain.token[:count] = come(tokens.to(plain.token.device), self.drawn).int()
        plain.position[:count] = positions.int().to(plain.token.device)
        plain.step()
        return plain.logits[wanted.to(plain.logits.device)]

    def _plain(self, size: int) -> Plain:
        """The kernels' step of so many rows, made when it is first asked for."""
        if size not in self._plains:
            device = self.cache.k.device
            numbers = {"dtype": torch.int32, "device": device}
            table = torch.zeros(size, self._table_length, **numbers)
            cache = replace(self.cache, table=table)
            place = torch.zeros(size, **numbers), torch.zeros(size, **numbers)
            self._plains[size] = Plain(self.config, self.weights, cache, *place)
        return self._plains[size]
