"""The engine: requests in, tokens out, one step of the whole batch at a time.

engine = Engine(runner, Scheduler(runner.blocks))
engine.add(Request([1, 2, 3], most=20))
while engine.busy:
    for drawn in engine.step():
        print(drawn.request, drawn.choice, drawn.token)
"""

import random
from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field, replace

import torch

from course.kernels.language_model.serving import sampling
from course.kernels.language_model.serving.runner import Runner, rows_of, to_come
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


@dataclass(frozen=True)
class Late:
    """Tokens that were drawn where the model is, and may still be on their way.

    places: for each, its sequence, its position there, and what is told of it once it has come.
    """

    tokens: torch.Tensor
    places: list[tuple[Sequence, int, Drawn]]
    event: torch.cuda.Event | None = None

    @staticmethod
    def of(tokens, places) -> "Late":
        """Send tokens on their way to the CPU."""
        if tokens.device.type == "cpu":
            return Late(tokens, places)
        here = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
        here.copy_(tokens, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return Late(here, places, event)

    def arrived(self) -> list[Drawn]:
        """Wait for them, and put them in their places."""
        if self.event is not None:
            self.event.synchronize()
        drawn = []
        for token, (sequence, place, told) in zip(self.tokens.tolist(), self.places, strict=True):
            sequence.tokens[place] = token
            drawn.append(replace(told, token=token))
        return drawn


class Engine:
    """A runner and a scheduler, which share the runner's blocks.

    ahead: plan and launch each step while the one before computes. Its tokens come a step later;
    until then `to_come(n)` stands for the n-th of them, which the runner finds in `runner.drawn`.
    """

    def __init__(self, runner: Runner, scheduler: Scheduler, ahead: bool = False):
        self.runner, self.scheduler, self.ahead = runner, scheduler, ahead
        self.plan = Plan()  # the latest step
        self._requests = {}  # sequence -> request
        self._chances = {}  # sequence -> its random numbers
        self._late = None  # what the latest step has drawn, until it has come

    @property
    def busy(self) -> bool:
        """Whether anybody still waits for tokens."""
        return bool(self._requests) or self._late is not None

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
        """Compute one step; returns what it has drawn, or, ahead, what the one before has."""
        self.plan = plan = self.scheduler.plan()
        if not plan.chunks:
            if self._requests:
                raise RuntimeError("nobody can go on: the scheduler has lost blocks")
            return self._arrived()
        self.runner.copy(plan.copies)
        logits = self.runner.step(*rows_of(plan))
        drawn = self._arrived()
        self.scheduler.computed(plan)
        rows, sequences = [], []
        for row, sequence in enumerate(each.sequence for each in plan.chunks if each.is_last):
            twins = [sequence, *self._twins(sequence)]
            sequences += twins
            rows += [row] * len(twins)
        if len(rows) > len(logits):  # twins draw from the same row
            logits = logits[rows]
        self.runner.drawn = tokens = self._draw(sequences, logits)
        places = [self._append(*each) for each in enumerate(sequences)]
        self._late = Late.of(tokens, places)
        return drawn if self.ahead else self._arrived()

    def _arrived(self) -> list[Drawn]:
        late, self._late = self._late, None
        return late.arrived() if late else []

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

    def _draw(self, sequences, logits) -> torch.Tensor:
        """A token for each sequence, all that are drawn in the same way at once."""
        by_way = {}
        for row, sequence in enumerate(sequences):
            by_way.setdefault(self._requests[sequence].sampling, []).append(row)
        if len(by_way) == 1:
            return self._sample(sequences, logits, *by_way)
        tokens = torch.empty(len(sequences), dtype=torch.int64, device=logits.device)
        for way, rows in by_way.items():
            tokens[rows] = self._sample([sequences[row] for row in rows], logits[rows], way)
        return tokens

    def _sample(self, sequences, logits, way: Sampling) -> torch.Tensor:
        if way.greedy:
            return sampling.sample(logits, way, None)
        chances = [self._chances[sequence].random() for sequence in sequences]
        there = torch.tensor(chances, dtype=torch.float64).to(logits.device, non_blocking=True)
        return sampling.sample(logits, way, there)

    def _append(self, number: int, sequence) -> tuple[Sequence, int, Drawn]:
        """Leave a place for the step's n-th token; (sequence, position, what is told of it)."""
        place, request = len(sequence.tokens), self._requests[sequence]
        self.scheduler.append(sequence, to_come(number))
        is_last = place + 1 == sequence.longest
        told = Drawn(request, request.running[sequence], to_come(number), is_last)
        if is_last:
            self._end(sequence)
        return sequence, place, told
