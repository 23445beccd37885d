"""The engine beside a web server: requests come and go while a step is computed.

The engine works in a thread of its own, one step at a time. Who comes and who goes is written down,
and told to the engine between two steps, so that nothing of it is changed while it computes.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from course.kernels.language_model.serving.asking import Refused
from course.kernels.language_model.serving.engine import Engine, Request

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)  # to tell waits apart


class Service:
    """An engine, and everybody who waits for its tokens. queue: sequences that wait at most."""

    def __init__(self, engine: Engine, queue: int):
        self.engine, self.queue = engine, queue
        self.draining = False  # no new requests are taken
        self.metrics = Metrics(self)
        self._listeners = {}  # request -> queue of what was drawn for it
        self._arrivals, self._departures = [], []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "engine")

    def submit(self, request: Request) -> asyncio.Queue:
        """A queue of what will be drawn: lists of Drawn, or the Refused that ends them.

        Raises Refused where too many wait, or the server is about to end.
        """
        if self.draining:
            raise Refused(503, "the server is shutting down")
        waiting = len(self.engine.scheduler.waiting) + len(self._arrivals)
        if waiting >= self.queue:
            raise Refused(429, f"{waiting} requests wait already: try again in a second")
        self._listeners[request] = listener = asyncio.Queue()
        self._arrivals.append(request)
        self._wake.set()
        return listener

    def leave(self, request: Request, choice: int | None = None) -> None:
        """Nobody reads a request, or one of its choices, any more."""
        if choice is None:
            self._listeners.pop(request, None)
        self._departures.append((request, choice))
        self._wake.set()

    async def run(self) -> None:
        """Step after step, for ever; sleeps while there is nothing to do."""
        try:
            while True:
                self._let_in_and_out()
                if not self.engine.busy:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                await self._step()
        finally:
            self._thread.shutdown()

    async def idle(self, patience: float) -> bool:
        """Whether all requests have ended within so many seconds."""
        end = time.monotonic() + patience
        while self._listeners and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return not self._listeners

    def _let_in_and_out(self) -> None:
        arrivals, self._arrivals = self._arrivals, []
        departures, self._departures = self._departures, []
        for request in arrivals:
            try:
                self.engine.add(request)
            except ValueError as error:
                self._tell(request, Refused(400, str(error), "max_tokens"))
        for request, choice in departures:
            self.engine.cancel(request, choice)

    async def _step(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            drawn = await loop.run_in_executor(self._thread, self.engine.step)
        except Exception as error:  # the model's: all who wait are told, the server stays
            kind = type(error).__name__
            for request in list(self._listeners):
                self._tell(request, Refused(500, f"the model failed: {kind}: {error}"))
                self.engine.cancel(request)
            return
        by_request = {}
        for each in drawn:
            by_request.setdefault(each.request, []).append(each)
        self.metrics.tokens.inc(len(drawn))
        for request, tokens in by_request.items():
            self._tell(request, tokens)

    def _tell(self, request: Request, what) -> None:
        if request in self._listeners:
            self._listeners[request].put_nowait(what)


class Metrics:
    """What /metrics says."""

    def __init__(self, service: Service):
        self.registry = CollectorRegistry()
        here = {"registry": self.registry, "namespace": "serving"}
        scheduler = service.engine.scheduler
        self.tokens = Counter("tokens", "Tokens that were drawn", **here)
        self.requests = Counter("requests", "Requests by HTTP's status", ["status"], **here)
        self.gone = Counter("clients_gone", "Clients that left before the end", **here)
        self.first = Histogram(
            "first_token_seconds", "From a request to its first token", buckets=SECONDS, **here
        )
        gauges = {
            "running": ("Sequences that run", lambda: len(scheduler.running)),
            "waiting": ("Sequences that wait", lambda: len(scheduler.waiting)),
            "blocks": ("Blocks of the cache", lambda: len(scheduler.pool.users)),
            "blocks_free": ("Blocks that nobody has", lambda: len(scheduler.pool.free)),
        }
        for name, (what, value) in gauges.items():
            Gauge(name, what, **here).set_function(value)
