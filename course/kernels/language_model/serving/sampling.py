"""From logits to a token: temperature, top-k, top-p, and one number by chance.

    p = probabilities(logits, Sampling(temperature=0.8, top_p=0.95))
    token = draw(p, chance)               # chance: a number from 0 to 1

Both filters are a threshold: a token is kept if it is at least as likely as the last one of them.
So it is enough to sort the probabilities alone, without the tokens that they belong to;
`KernelSampler` does it with the radix sort and the scan of the chapter on reductions.
Source of top-p: Holtzman et al., The Curious Case of Neural Text Degeneration (2020).
"""

from dataclasses import dataclass

import torch

from course.kernels.reductions import scans, sorts
from course.kernels.reductions.kernels import device

COLDEST = 1e-5  # divided by less, logits are no numbers any more


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn. temperature 0: always the likeliest. top_k 0 and top_p 1: from all."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    @property
    def greedy(self) -> bool:
        """Whether chance has no part in it; so cold that the likeliest has it all, too."""
        return self.temperature < COLDEST


def probabilities(logits, sampling: Sampling) -> torch.Tensor:
    """What is drawn from, float64 [..., vocabulary]: first top-k, then top-p of what that left.

    Tokens as likely as the last one that is kept are kept, too.
    """
    logits = logits.double()
    if sampling.greedy:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()
    p = (logits / sampling.temperature).softmax(-1)
    if 0 < sampling.top_k < p.shape[-1]:
        least = p.topk(sampling.top_k).values[..., -1:]
        p = kept(p, least)
    if sampling.top_p < 1:
        p = kept(p, least_of_top_p(p, sampling.top_p))
    return p


def kept(p, least) -> torch.Tensor:
    """The probabilities of tokens at least so likely, their sum made 1 again."""
    p = torch.where(p >= least, p, 0)
    return p / p.sum(-1, keepdim=True)


def least_of_top_p(p, top_p: float) -> torch.Tensor:
    """[..., 1]: the least likely of the fewest tokens that have at least top_p together."""
    falling = p.sort(-1, descending=True).values
    before = falling.cumsum(-1) - falling  # of all that are likelier
    count = (before < top_p).sum(-1, keepdim=True)  # the one that reaches top_p is among them
    return falling.gather(-1, (count - 1).clamp(min=0))


def draw(p, chance) -> torch.Tensor:
    """[...]: for each row of p the first token whose running sum exceeds chance times the whole.

    chance: float64 [...], at least 0 and less than 1.
    """
    sums = p.cumsum(-1)
    aim = chance[..., None] * sums[..., -1:]
    return (sums <= aim).sum(-1).clamp(max=p.shape[-1] - 1)


def sample(logits, sampling: Sampling, chance) -> torch.Tensor:
    """[...]: a token for each row of logits [..., vocabulary]; chance as for `draw`."""
    if sampling.greedy:
        return logits.argmax(-1)
    return draw(probabilities(logits, sampling), chance)


class KernelSampler:
    """The same by kernels of the course, for one row of logits at a time; it keeps its memory.

    Of float32: where two sums are closer than its rounding, the neighbouring token may be drawn.
    """

    def __init__(self, vocabulary: int):
        self.vocabulary = vocabulary
        self._sort = sorts.Sort(vocabulary)
        self._scan = scans.Scan(vocabulary, "float32", scans.fastest())
        like = {"dtype": torch.float32, "device": device()}
        self._p, self._rising, self._sums = (torch.empty(vocabulary, **like) for _ in range(3))

    def __call__(self, logits, sampling: Sampling, chance: float) -> int:
        """The token that is drawn. logits: [vocabulary]; chance: at least 0 and less than 1."""
        if sampling.greedy:
            return int(logits.argmax())
        p = self._p
        p.copy_((logits.float() / sampling.temperature).softmax(-1))
        if 0 < sampling.top_k < self.vocabulary or sampling.top_p < 1:
            self._filter(p, sampling)
        self._scan(p, self._sums)
        aim = chance * self._sums[-1]
        place = int(torch.searchsorted(self._sums, aim, right=True))
        return min(place, int(p.nonzero()[-1]))

    def _filter(self, p, sampling: Sampling) -> None:
        """Set to 0 what is not drawn from: sort, find the least that is kept, compare."""
        bits = [x.view(torch.uint32) for x in (p, self._rising)]
        self._sort(*bits)  # floats that are not negative sort as their bits do
        falling = self._rising.flip(0)
        least = falling[min(sampling.top_k, self.vocabulary) - 1]  # of top_k 0: the least of all
        falling = torch.where(falling >= least, falling, 0)
        self._scan(falling, self._sums)
        before = self._sums - falling
        count = int((before < sampling.top_p * self._sums[-1]).sum())
        p[p < torch.maximum(least, falling[count - 1])] = 0
