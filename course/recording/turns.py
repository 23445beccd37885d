"""Who runs when: several at a time, but alone where a time is measured."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field


class Turns:
    """Work that bears company runs together, work that does not runs alone.

    Who waits to be alone goes first: else the others, always some at work, would never let it in.
    """

    def __init__(self):
        self._changed = asyncio.Condition()
        self._together = 0
        self._alone = False
        self._waiting = 0

    @asynccontextmanager
    async def together(self):
        """At the same time as others, unless one of them is alone or waits to be."""
        async with self._changed:
            await self._changed.wait_for(lambda: not (self._alone or self._waiting))
            self._together += 1
        try:
            yield
        finally:
            async with self._changed:
                self._together -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def alone(self):
        """While no other works."""
        async with self._changed:
            self._waiting += 1
            try:
                await self._changed.wait_for(lambda: not (self._alone or self._together))
                self._alone = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            async with self._changed:
                self._alone = False
                self._changed.notify_all()


@dataclass(frozen=True)
class Job:
    """One thing to run. needs: what no two may use at once, such as files that both write."""

    name: str
    work: Callable[[], Awaitable[None]]
    needs: frozenset[str] = field(default=frozenset())


async def run(jobs: Iterable[Job], at_once: int, left: Callable[[], float]) -> dict[str, str]:
    """Run all jobs, `at_once` at a time, in their order; {name: what went wrong} of the others.

    left: seconds until no further job is begun. One that fails does not stop the others.
    """
    places = asyncio.Semaphore(at_once)
    locks: dict[str, asyncio.Lock] = {}
    failures: dict[str, str] = {}

    async def one(job: Job) -> None:
        async with AsyncExitStack() as held:
            for need in sorted(job.needs):  # in one order, so that no two wait for each other
                await held.enter_async_context(locks.setdefault(need, asyncio.Lock()))
            await held.enter_async_context(places)
            if left() <= 0:
                failures[job.name] = "not run, the time was used up"
                return
            try:
                await job.work()
            except Exception as error:
                failures[job.name] = str(error)

    jobs = list(jobs)
    await asyncio.gather(*map(one, jobs))
    return {job.name: failures[job.name] for job in jobs if job.name in failures}
