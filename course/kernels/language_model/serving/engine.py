"""The engine: requests in, tokens out, one step of the whole batch at a time.

engine = Engine(runner, Scheduler(runner.blocks))
engine.add(Request([1, 2, 3], most=20))
while engine.busy:
    for drawn in engine.step():
        print(drawn.request, drawn.choice, drawn.token)
"""

import random
from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field

import torch

from course.kernels.language_model.serving import sampling
from course.kernels.language_model.serving.runner import Runner, rows_of
from course.kernels.language_model.serving.sampling import Sampling
from course.kernels.language_model.serving.scheduler import Plan, Scheduler, Sequence


@dataclass(eq=False)
class Request:
    """What somebody asks for: `choices` continuations of a prompt, each of at most `most` tokens.

    seed: of its chance, so that what is drawn does not depend on who else is there.
    """

    prompt: Tokens[int]
    most: int = 16
    sampling: Sampling = Sampling(temperature=0)
    choices: int = 1
    seed: int = 0
    running: dict[Sequence, int] = field(default_factory=dict)  # which choice each sequence is


@dataclass(frozen=True)
class Drawn:
    """A token of a request's choice. is_last: it has written as many as were asked for."""

    request: Request
    choice: int
    token: int
    is_last: bool


class Engine:
    """A runner and a scheduler, which share the runner's blocks."""

    def __init__(self, runner: Runner, scheduler: Scheduler):
        self.runner, self.scheduler = runner, scheduler
        self.plan = Plan()  # the latest step
        self._requests = {}  # sequence -> request
        self._chances = {}  # sequence -> its random numbers

    @property
    def busy(self) -> bool:
        """Whether anybody still waits for tokens."""
        return bool(self._requests)

    def add(self, request: Request) -> None:
        """Let a request wait for its turn. ValueError where the cache is too small for it."""
        sequence = Sequence(list(request.prompt), request.most)
        self.scheduler.add(sequence)
        self._begin(request, sequence, 0)

    def cancel(self, request: Request, choice: int | None = None) -> None:
        """Nobody wants a choice any more, or none of them: all of its blocks are free at once."""
        for sequence, number in list(request.running.items()):
            if choice in (None, number):
                self._end(sequence)

    def step(self) -> list[Drawn]:
        """Compute one step, and draw the tokens that it makes possible."""
        self.plan = plan = self.scheduler.plan()
        if not plan.chunks:
            if self.busy:
                raise RuntimeError("nobody can go on: the scheduler has lost blocks")
            return []
        self.runner.copy(plan.copies)
        logits = self.runner.step(*rows_of(plan))
        self.scheduler.computed(plan)
        rows, sequences = [], []
        for row, sequence in enumerate(each.sequence for each in plan.chunks if each.is_last):
            twins = [sequence, *self._twins(sequence)]
            sequences += twins
            rows += [row] * len(twins)
        tokens = self._draw(sequences, logits[rows])
        return [self._append(*pair) for pair in zip(sequences, tokens, strict=True)]

    def _begin(self, request, sequence, choice) -> None:
        request.running[sequence] = choice
        self._requests[sequence] = request
        self._chances[sequence] = random.Random(f"{request.seed} {choice}")

    def _end(self, sequence) -> None:
        self.scheduler.remove(sequence)
        request = self._requests.pop(sequence)
        del self._chances[sequence], request.running[sequence]

    def _twins(self, sequence) -> list[Sequence]:
        """The request's other choices, which begin where the prompt ends."""
        request = self._requests[sequence]
        if len(sequence.tokens) > len(request.prompt):
            return []
        twins = []
        for choice in range(1, request.choices):
            twins.append(self.scheduler.fork(sequence))
            self._begin(request, twins[-1], choice)
        return twins

    def _draw(self, sequences, logits) -> list[int]:
        """A token for each sequence, all that are drawn in the same way at once."""
        by_way = {}
        for row, sequence in enumerate(sequences):
            by_way.setdefault(self._requests[sequence].sampling, []).append(row)
        tokens = [0] * len(sequences)
        for way, rows in by_way.items():
            chances = [self._chances[sequences[row]].random() for row in rows]
            chances = torch.tensor(chances, dtype=torch.float64, device=logits.device)
            found = sampling.sample(logits[rows], way, chances)
            for row, token in zip(rows, found.tolist(), strict=True):
                tokens[row] = token
        return tokens

    def _append(self, sequence, token: int) -> Drawn:
        self.scheduler.append(sequence, token)
        request = self._requests[sequence]
        is_last = len(sequence.tokens) == sequence.longest
        drawn = Drawn(request, request.running[sequence], token, is_last)
        if is_last:
            self._end(sequence)
        return drawn
