"""Model runners: tokens, positions and block tables in, logits out.

A row is one token. Rows of one step may be tokens of different sequences, or neighbours in one
prompt: a token's keys and values are written before anybody of the step looks, and nobody looks
beyond the own position. So a runner knows nothing of sequences, prompts or requests.
"""

from typing import Protocol

import numpy as np
import torch

from course.kernels.language_model import reference
from course.kernels.language_model.problem import Cache, Config
from course.kernels.language_model.serving.scheduler import BLOCK, Plan
from utils.tools.torch_threads import one_thread


class Runner(Protocol):
    """What an engine needs of a model. blocks: of its cache, each of BLOCK tokens.

    drawn: the tokens that were drawn after the latest step, for an engine that goes ahead: its rows
    may have `to_come(n)` in place of the n-th of them.
    """

    blocks: int
    vocabulary: int
    drawn: torch.Tensor

    def copy(self, copies: list[tuple[int, int]]) -> None:
        """Copy blocks of the cache in all layers: (from, to), one after the other."""

    def step(self, tokens, positions, tables, wanted) -> torch.Tensor:
        """Logits [wanted, vocabulary] of some rows; all rows' keys and values go into the cache.

        tokens, positions: int64 [rows]. tables: int32 [rows, most blocks]. wanted: int64, rows.
        """


def to_come(number: int) -> int:
    """What stands for the n-th token that was drawn after the latest step, until it has come."""
    return -1 - number


def come(tokens, drawn) -> torch.Tensor:
    """Tokens, with those that were still to come."""
    if not len(drawn):
        return tokens
    return torch.where(tokens < 0, drawn[(-1 - tokens).clamp(min=0)], tokens)


class PyTorchRunner:
    """The reference model, in whatever type its weights have, where they are."""

    def __init__(self, config: Config, weights: dict, blocks: int):
        self.config, self.weights, self.blocks = config, weights, blocks
        self.vocabulary = config.vocabulary
        like = weights["embedding"]
        shape = config.layers, blocks, BLOCK, config.kv_heads, config.head
        self.k = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self.v = torch.zeros_like(self.k)
        self.drawn = torch.zeros(1, dtype=torch.int64, device=like.device)

    def copy(self, copies) -> None:
        """See Runner."""
        for source, target in copies:
            self.k[:, target] = self.k[:, source]
            self.v[:, target] = self.v[:, source]

    @torch.no_grad()
    def step(self, tokens, positions, tables, wanted):
        """See Runner."""
        tokens, positions, tables = (x.to(self.k.device) for x in (tokens, positions, tables))
        tokens, cache = come(tokens, self.drawn), Cache(self.k, self.v, tables)
        with one_thread():
            logits = reference.decode(self.config, self.weights, cache, tokens, positions)
        return logits[wanted.to(logits.device)]


class ChecksumRunner:
    """No model: what follows is a checksum of all tokens that the block table leads to.

    Its cache holds the tokens themselves. One wrong block, one stale row, and everything after it
    is another text: as strict as a model with random weights, and thousands of steps per second.
    """

    FACTOR = 6364136223846793005  # Knuth's, for MMIX

    def __init__(self, blocks: int, vocabulary: int = 256):
        self.blocks, self.vocabulary = blocks, vocabulary
        self.cache = np.full((blocks, BLOCK), -1, np.int64)
        self.writes = []  # (block, row, token) of the latest step
        self.drawn = torch.zeros(1, dtype=torch.int64)

    def copy(self, copies) -> None:
        """See Runner."""
        for source, target in copies:
            self.cache[target] = self.cache[source]

    def step(self, tokens, positions, tables, wanted):
        """See Runner."""
        tokens = come(tokens, self.drawn)
        tokens, positions, tables = (x.numpy() for x in (tokens, positions, tables))
        blocks = np.take_along_axis(tables, positions[:, None] // BLOCK, 1)[:, 0]
        self.cache[blocks, positions % BLOCK] = tokens
        self.writes = list(zip(blocks, positions % BLOCK, tokens, strict=True))
        logits = torch.zeros(len(wanted), self.vocabulary)
        for place, row in enumerate(wanted.tolist()):
            seen = self.cache[tables[row]].ravel()[: positions[row] + 1].astype(np.uint64)
            logits[place, self.follows(seen)] = 9.0
        return logits

    def follows(self, tokens) -> int:
        """The token after some tokens: uint64, none of them -1."""
        powers = np.cumprod(np.full(len(tokens), self.FACTOR, np.uint64), dtype=np.uint64)
        total = np.sum((tokens + np.uint64(1)) * powers, dtype=np.uint64)
        return int((total ^ (total >> np.uint64(29))) % np.uint64(self.vocabulary))


def rows_of(plan: Plan) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """(tokens, positions, tables, wanted): a plan as a runner takes it.

    wanted: the last row of each chunk that is its sequence's last.
    """
    tokens, positions, wanted = [], [], []
    rows = sum(chunk.count for chunk in plan.chunks)
    most = max(len(chunk.sequence.table) for chunk in plan.chunks)
    tables = np.zeros((rows, most), np.int32)
    for chunk in plan.chunks:
        sequence, ends = chunk.sequence, chunk.first + chunk.count
        first = len(tokens)
        tokens += sequence.tokens[chunk.first : ends]
        positions += range(chunk.first, ends)
        tables[first : len(tokens), : len(sequence.table)] = sequence.table
        if chunk.is_last:
            wanted.append(len(tokens) - 1)
    return (
        torch.tensor(tokens),
        torch.tensor(positions),
        torch.from_numpy(tables),
        torch.tensor(wanted, dtype=torch.int64),
    )
