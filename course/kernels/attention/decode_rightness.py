"""Are the decoding rungs right? Against float64, in batches of odd lengths, in shuffled pages."""

from dataclasses import dataclass

import torch

from course.kernels.attention import reference, rightness
from course.kernels.attention.decode import DECODING, Cache, Rung
from course.kernels.attention.rightness import HALF_STEP, IN_FLOAT32
from utils.occupancy import ceil_div


@dataclass(frozen=True)
class Case:
    """A batch of sequences of these lengths. page: keys of a page, 0 without pages."""

    lengths: tuple[int, ...]
    heads: int = 32
    key_heads: int = 8
    dim: int = 128
    page: int = 0
    spread: float = 1.0  # of q, and so of all scores

    def inputs(self, seed: int = 0) -> tuple[torch.Tensor, Cache]:
        """q [batch, 1, heads, dim] and a cache; what lies behind a sequence's end is NaN."""
        generator = torch.Generator(reference.DEVICE).manual_seed(seed)

        def draw(*shape):
            numbers = torch.randn(shape, generator=generator, device=reference.DEVICE)
            return numbers.bfloat16()

        batch = len(self.lengths)
        longest = max(self.lengths)
        q = self.spread * draw(batch, 1, self.heads, self.dim)
        # memory as most models have it: [batch, key heads, capacity, dim]
        shape = batch, self.key_heads, longest, self.dim
        keys, values = (draw(*shape).transpose(1, 2) for _ in "kv")
        for sequence, length in enumerate(self.lengths):
            keys[sequence, length:] = torch.nan
            values[sequence, length:] = torch.nan
        if not self.page:
            return q, Cache(keys, values, self.lengths)
        table = shuffled_table(batch, ceil_div(longest, self.page), generator)
        paged = [in_pages(tensor, table, self.page) for tensor in (keys, values)]
        return q, Cache(*paged, self.lengths, table)


def shuffled_table(batch: int, pages: int, generator) -> torch.Tensor:
    """Pages of each sequence, all in an order of chance; page 0 is nobody's."""
    order = torch.randperm(batch * pages, generator=generator, device=reference.DEVICE)
    return (order + 1).reshape(batch, pages).int()


def in_pages(tensor, table, page: int) -> torch.Tensor:
    """[pages, page, heads, dim]: a cache's rows where the table says; NaN elsewhere."""
    batch, capacity, heads, dim = tensor.shape
    result = tensor.new_full((table.numel() + 1, page, heads, dim), torch.nan)
    for sequence in range(batch):
        for i, number in enumerate(table[sequence].tolist()):
            rows = tensor[sequence, i * page : (i + 1) * page]
            result[number, : len(rows)] = rows
    return result


def rows_of(tensor, cache: Cache, sequence: int) -> torch.Tensor:
    """A sequence's keys or values [1, length, key heads, dim]."""
    length = cache.lengths[sequence]
    if cache.table is None:
        return tensor[sequence : sequence + 1, :length]
    pages = tensor[cache.table[sequence].long()]
    return pages.flatten(0, 1)[None, :length]


def error_of(rung: Rung, q, cache: Cache) -> float:
    """The largest error, as a share of what roundings explain: at most 1 where it is right."""
    out = torch.full_like(q, torch.nan)
    lse = torch.full((*q.shape[::2], 1), torch.nan, device=q.device)
    rung.run(q, cache, out=out, lse=lse)
    worst = q.new_zeros((), dtype=torch.float64)
    for sequence in range(len(q)):
        own = q[sequence : sequence + 1]
        k = rows_of(cache.keys, cache, sequence)
        v = rows_of(cache.values, cache, sequence)
        exact, exact_lse = reference.attention(own, k, v)
        # |out| would be this if nothing cancelled: roundings of weights are shares of it
        without_signs, _ = reference.attention(own, k, v.abs())
        largest = 1 + reference.largest_score(own, k)
        share = 3 * HALF_STEP[torch.bfloat16] + IN_FLOAT32 * largest
        apart = (out[sequence] - exact[0]).abs() / (share * without_signs[0] + 2**-30)
        apart_lse = (lse[sequence] - exact_lse[0]).abs() / (IN_FLOAT32 * largest)
        worst = torch.stack([worst, apart.max(), apart_lse.max()]).max()  # NaN stays NaN
    return worst.item()


#: One key, one more than a part, ends within a page and a tile, other groups, large scores
CASES = (
    Case((1, 77, 300, 128)),
    Case((1000, 3), heads=6, key_heads=2, dim=64),
    Case((129, 16, 1), heads=8, key_heads=8, dim=64, page=16),
    Case((333,), heads=12, key_heads=1, page=64),
    Case((90, 17), heads=4, key_heads=2, spread=3000.0),
)


def error_in(rung: Rung, case: Case) -> float:
    """The same of a case, whose inputs its lengths draw."""
    return error_of(rung, *case.inputs(seed=sum(case.lengths)))


def prove(name: str, rung: Rung, cases=CASES) -> float:
    """The largest error over some cases; AssertionError where roundings do not explain it."""
    return rightness.prove(name, rung, cases, error_in)


def check(name: str) -> float:
    """The largest error of a rung."""
    return prove(name, DECODING[name])
