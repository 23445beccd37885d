"""Speculative decoding without Python: draft, step and acceptance of a turn are one CUDA graph.

    writer = Writer(config, weights, Averages.of(config, weights, text, 0.7), prompt, ahead=4)
    writer.write(turns=100)
    writer.text(), writer.counts()

The draft is a table: the model's own probabilities after each two tokens, averaged over a text. To
look something up takes no time beside a step of the model, however small. The text's model is the
plain form, whose rows are the last token and those that were drafted behind it.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from course.kernels.attention.problem import stream
from course.kernels.language_model import problem, reference
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.problem import Config
from utils import cuda_c, has_gpu
from utils.tools import yours

FILE = Path(__file__).parent / "kernels" / "speculative.cu"
THREADS = 256
PIECE = 256  # tokens of a text that the model reads at once
PIECES = 32  # of them in one call


@yours.cache
def kernels(vocabulary: int, ahead: int):
    """kernels/speculative.cu, for a vocabulary of a multiple of THREADS tokens."""
    return cuda_c.load(FILE, flags=(f"-DVOCABULARY={vocabulary}", f"-DAHEAD={ahead}"))


@dataclass(frozen=True)
class Averages:
    """What a model says after each two tokens, on average.

    rows: int32 [vocabulary, vocabulary], which row of p stands for two tokens. p: float32 [rows,
    vocabulary]; its first rows, one for each token, stand for pairs that the text does not have.
    """

    rows: torch.Tensor
    p: torch.Tensor

    @staticmethod
    @torch.no_grad()
    def of(config: Config, weights: dict, text, temperature: float) -> "Averages":
        """Let a model read a text: a tensor of tokens, of PIECE at least."""
        size, device = config.vocabulary, weights["embedding"].device
        pieces = text[: len(text) // PIECE * PIECE].reshape(-1, PIECE).to(device)
        pairs = (pieces[:, :-1] * size + pieces[:, 1:]).flatten()
        known, number = pairs.unique(return_inverse=True)
        number = number.reshape(len(pieces), -1)
        p = torch.zeros(size + len(known), size, device=device)
        for first in range(0, len(pieces), PIECES):
            some = slice(first, first + PIECES)
            logits = reference.forward(config, weights, pieces[some])[:, 1:]
            said = (logits.float() / temperature).softmax(-1).flatten(0, 1)
            p.index_add_(0, number[some].flatten() + size, said)
            p.index_add_(0, pieces[some, 1:].flatten(), said)
        p[p.sum(1) == 0] = 1.0  # tokens that the text does not have
        p /= p.sum(1, keepdim=True)
        rows = torch.arange(size, device=device).repeat(size, 1).int()
        rows.view(-1)[known] = torch.arange(size, len(p), device=device).int()
        return Averages(rows, p)

    def __call__(self, tokens: list[int]) -> torch.Tensor:
        """As `speculative.turn` calls a draft: after at least two tokens."""
        return self.p[self.rows[tokens[-2], tokens[-1]]].double()


class Writer:
    """Writes one text. ahead: tokens that are drafted per turn; 0: none, the model alone.

    prompt: at least two tokens. most: of the text; turns beyond it must not be asked for.
    """

    def __init__(
        self,
        config: Config,
        weights: dict,
        draft: Averages,
        prompt: list[int],
        *,
        ahead: int,
        temperature: float,
        most: int = 1024,
        seed: int = 0,
    ):
        device = weights["embedding"].device
        rows = ahead + 1
        self.draft, self.temperature, self.ahead = draft, temperature, ahead
        self.kernels = kernels(config.vocabulary, ahead)
        whole = {"dtype": torch.int32, "device": device}
        cache = problem.cache(config, 1, most + rows, weights["qkv"].dtype, device)
        self._cache = replace(cache, table=cache.table.repeat(rows, 1))
        self._token, self._position = torch.zeros(rows, **whole), torch.zeros(rows, **whole)
        self._plain = Plain(config, weights, self._cache, self._token, self._position)
        self._prompt = len(prompt)
        self._text = torch.zeros(most + rows, **whole)
        self._text[: len(prompt)] = torch.tensor(prompt)
        self._length = torch.full((1,), len(prompt), **whole)
        self._turn = torch.zeros(1, **whole)
        self._counts = torch.zeros(most, **whole)
        self._drafted = torch.zeros(max(ahead, 1), **whole)
        generator = torch.Generator().manual_seed(seed)
        self.chances = torch.rand(most, 2 * ahead + 1, generator=generator).to(device)
        self._read(config, weights, prompt[:-1])
        self._graph = None

    @torch.no_grad()
    def _read(self, config, weights, tokens) -> None:
        """Put the prompt's keys and values into the cache, but those of its last token."""
        positions = torch.arange(len(tokens))
        table = self._cache.table[:1].expand(len(tokens), -1)
        own = replace(self._cache, table=table)
        device = table.device
        told = torch.tensor(tokens, device=device), positions.to(device)
        reference.decode(config, weights, own, *told)

    def turn(self) -> None:
        """Queue a turn's kernels."""
        where = [self._text, self._length, self._turn]
        of_draft = [self.draft.rows, self.draft.p, self.chances]
        on = 1, THREADS, 0, stream()
        draft = self.kernels.draft_ahead[on]
        draft(self._token, self._position, self._drafted, *where, *of_draft)
        self._plain.step()
        accept = self.kernels.accept[on]
        given = self._drafted, self._plain.logits
        accept(*where, self._counts, *given, *of_draft, self.temperature)

    def capture(self) -> None:
        """Make one CUDA graph of a turn; it writes some turns."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.turn()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.turn()

    def write(self, turns: int) -> None:
        """Queue so many turns."""
        if has_gpu() and self._graph is None:
            self.capture()
        run = self._graph.replay if self._graph else self.turn
        for _ in range(turns):
            run()

    def text(self) -> list[int]:
        """What was written after the prompt."""
        return self._text[self._prompt : int(self._length)].tolist()

    def counts(self) -> list[int]:
        """Tokens of each turn."""
        return self._counts[: int(self._turn)].tolist()
