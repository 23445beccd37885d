"""What a request gets when nobody else is there, and a runner that watches who writes where."""

from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.runner import ChecksumRunner
from course.kernels.language_model.serving.scheduler import Scheduler

ENOUGH = 64  # blocks for any request of these tests


def alone(runner, prompt, most: int) -> list[int]:
    """The tokens of a request that has a runner for itself, with nothing shared."""
    engine = Engine(runner, Scheduler(runner.blocks, budget=ENOUGH * 16, sharing=False))
    engine.add(Request(prompt, most))
    return [drawn.token for drawn in everything(engine)]


def by_checksum(prompt, most: int) -> list[int]:
    """The same of the model that is none."""
    return alone(ChecksumRunner(ENOUGH), prompt, most)


def everything(engine, most_steps: int = 5000) -> list:
    """What is drawn until all requests have ended."""
    drawn = []
    for _ in range(most_steps):
        if not engine.busy:
            return drawn
        drawn += engine.step()
    raise AssertionError(f"still busy after {most_steps} steps")


def crowded(engine, requests) -> dict:
    """{(request, choice): its tokens} of requests for which there are too few blocks."""
    for request in requests:
        engine.add(request)
    tokens, preempted = {}, 0
    while engine.busy:
        for drawn in engine.step():
            tokens.setdefault((drawn.request, drawn.choice), []).append(drawn.token)
        preempted += len(engine.plan.preempted)
    assert preempted
    return tokens


class Guarded(ChecksumRunner):
    """Refuses to write into a block that more than one sequence has, or whose prefix is promised.

    scheduler: whose blocks they are; set it before the first step.
    """

    scheduler = None

    def step(self, tokens, positions, tables, wanted):
        """See Runner."""
        logits = super().step(tokens, positions, tables, wanted)
        pool = self.scheduler.pool
        for block, row, _ in self.writes:
            assert pool.users[block] == 1, f"{pool.users[block]} sequences have block {block}"
            assert block not in pool.held, f"block {block}, row {row} is written, and was full"
        return logits
