"""What happened when: a scheduler's steps, kept to be looked at and counted."""

from dataclasses import dataclass, field

from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.runner import ChecksumRunner
from course.kernels.language_model.serving.scheduler import Scheduler

NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST_STEPS = 400

#: A request of the timeline: in which step it comes, its prompt's tokens, how many it writes
ARRIVALS = (
    (0, 40, 12),
    (0, 8, 30),
    (2, 8, 10),
    (3, 70, 8),
    (5, 8, 26),
    (6, 24, 6),
    (9, 8, 16),
    (12, 40, 10),
)


@dataclass(frozen=True)
class Moment:
    """A step. doing: what each request did: "waits", "prompt", "writes" or "preempted".

    tokens: how many of each were computed. owners: of each block, the names of those who have it.
    written: how many tokens each has written by the end of the step.
    """

    doing: dict[str, str]
    tokens: dict[str, int]
    owners: tuple[str, ...]
    written: dict[str, int]


@dataclass
class Timeline:
    """All steps. came, first, last: in which step each came, had its first token, and ended."""

    moments: list[Moment] = field(default_factory=list)
    came: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)

    @property
    def tokens_per_step(self) -> float:
        """Of those that were written."""
        return sum(self.moments[-1].written.values()) / len(self.moments)

    @property
    def computed(self) -> list[int]:
        """How many tokens each step computes, of all together."""
        return [sum(moment.tokens.values()) for moment in self.moments]

    @property
    def wait(self) -> float:
        """Steps until the first token, of all on average: the step in which it comes counts."""
        return sum(self.first[name] - self.came[name] + 1 for name in self.came) / len(self.came)

    @property
    def preempted(self) -> int:
        """How often somebody was."""
        return sum(list(m.doing.values()).count("preempted") for m in self.moments)

    def __str__(self):
        return (
            f"{len(self.moments)} steps, {self.tokens_per_step:.1f} tokens written per step; "
            f"{sum(self.computed)} computed, {max(self.computed)} in the longest step; the first "
            f"token came after {self.wait:.1f} steps on average; {self.preempted} preempted"
        )


def timeline(
    arrivals=ARRIVALS, *, blocks: int = 12, budget: int = 16, places: int = 8, **how
) -> Timeline:
    """Serve some requests with a scheduler, and keep every step.

    how: as for Scheduler. Raises RuntimeError where the requests never end.
    """
    engine = Engine(ChecksumRunner(blocks), Scheduler(blocks, budget, places, **how))
    requests = {}
    for number, (_, prompt, most) in enumerate(arrivals):
        tokens = [7] * (prompt - 1) + [number]  # all begin alike
        requests[NAMES[number]] = Request(tokens, most)
    told = Timeline(came={name: arrivals[i][0] for i, name in enumerate(requests)})
    written = dict.fromkeys(requests, 0)
    names = {request: name for name, request in requests.items()}
    while len(told.last) < len(requests):
        step = len(told.moments)
        if step == MOST_STEPS:
            raise RuntimeError(f"after {step} steps {sorted(requests - told.last.keys())} go on")
        for name, request in requests.items():
            if told.came[name] == step:
                engine.add(request)
        there = {s: names[r] for r in names for s in r.running}
        drawn = engine.step()
        for each in drawn:
            name = names[each.request]
            written[name] += 1
            told.first.setdefault(name, step)
            if each.is_last:
                told.last[name] = step
        told.moments.append(moment(engine, there, dict(written)))
    return told


def moment(engine: Engine, there: dict, written: dict[str, int]) -> Moment:
    """What a step was. there: sequence -> name, of all who had come and not ended before it."""
    plan = engine.plan
    tokens = {there[chunk.sequence]: chunk.count for chunk in plan.chunks}
    doing = dict.fromkeys(there.values(), "waits")
    for chunk in plan.chunks:
        is_prompt = chunk.first + chunk.count <= prompt_of(chunk.sequence)
        doing[there[chunk.sequence]] = "prompt" if is_prompt else "writes"
    for sequence in plan.preempted:
        doing[there[sequence]] = "preempted"
    owners = [""] * len(engine.scheduler.pool.users)
    for sequence in engine.scheduler.running:
        for block in sequence.table:
            owners[block] += there[sequence]
    return Moment(doing, tokens, tuple(owners), written)


def prompt_of(sequence) -> int:
    """How many tokens its prompt has."""
    return sequence.longest - sequence.most
