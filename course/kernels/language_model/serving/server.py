"""The HTTP server: /v1/completions, /v1/models, /health, /metrics.

    python -m course.kernels.language_model.serving --port 8000
    curl localhost:8000/v1/completions -d '{"prompt": "Once", "max_tokens": 20}'

In a notebook:

    with server.Background(engine, tokens) as running:
        requests.post(f"{running.url}/v1/completions", json={"prompt": "Once"}).json()
"""

import asyncio
import errno
import json
import random
import secrets
import signal
import threading
import time

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from course.kernels.language_model.serving.asking import Asked, Limits, Refused, asked
from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.service import Service
from course.kernels.language_model.serving.text import Tokens, Writing
from utils.tools.diagnostics import LearnerError

NAME = "course"  # of the model, unless told otherwise
DRAINED = 64  # times the limit: so much of a body is read and dropped before a connection is cut
PATIENCE = 10.0  # seconds for requests to end when the server does
SLOW = 30.0  # seconds for a body to come, and for a connection without a request


class ServerError(LearnerError):
    """The server cannot begin."""


class Handler(RequestHandler):
    """What all pages share: errors as JSON."""

    def initialize(self, service: Service, tokens: Tokens, limits: Limits, name: str):
        """Called by tornado before each request."""
        self.service, self.tokens, self.limits, self.model = service, tokens, limits, name

    def refuse(self, refused: Refused) -> None:
        """Answer with an error."""
        self.set_status(refused.status)
        if refused.status == 429:
            self.set_header("Retry-After", "1")
        self.finish(refused.as_json())

    def write_error(self, status_code: int, **told):
        """Called by tornado for what went wrong elsewhere."""
        _, error, _ = told.get("exc_info", (None, None, None))
        message = error.reason if isinstance(error, HTTPError) else None
        self.refuse(Refused(status_code, message or self._reason))

    def on_finish(self) -> None:
        """Called by tornado after each request."""
        self.service.metrics.requests.labels(self.get_status()).inc()


class Missing(Handler):
    """Whatever has another address."""

    def prepare(self):
        """Called by tornado for every method."""
        self.refuse(Refused(404, f"there is nothing at {self.request.path:.100}"))


class Models(Handler):
    """The list of the one model."""

    def get(self):
        """Called by tornado."""
        model = {"id": self.model, "object": "model", "created": 0, "owned_by": "you"}
        self.finish({"object": "list", "data": [model]})


class Health(Handler):
    """Whether requests are taken."""

    def get(self):
        """Called by tornado."""
        if self.service.draining:
            self.refuse(Refused(503, "the server is shutting down"))
        else:
            self.finish({"status": "ok"})


class Numbers(Handler):
    """Counters in Prometheus' form."""

    def get(self):
        """Called by tornado."""
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.finish(generate_latest(self.service.metrics.registry))


@stream_request_body
class Completions(Handler):
    """Continuations of a prompt, whole or as a stream of events."""

    def prepare(self):
        """Called by tornado before the body comes."""
        self.body, self.size = [], 0
        self.asked_at = time.monotonic()
        self.running = None  # the request, once it is the service's
        self.request.connection.set_max_body_size(DRAINED * self.limits.body)
        self.request.connection.set_body_timeout(SLOW)

    def data_received(self, chunk: bytes):
        """Called by tornado: what is too long is read, so that the client hears why, not kept."""
        self.size += len(chunk)
        if self.size <= self.limits.body:
            self.body.append(chunk)
        else:
            self.body = []

    async def post(self):
        """Called by tornado when the body has come."""
        try:
            if self.size > self.limits.body:
                told = f"the body has {self.size:,} bytes; at most {self.limits.body:,} are taken"
                raise Refused(413, told)
            wanted = asked(b"".join(self.body), self.limits, self.tokens, self.model)
            await self._answer(wanted)
        except Refused as refused:
            if self._headers_written:  # a stream has begun: it ends with the error
                self.write(event(refused.as_json()))
                self.finish()
            else:
                self.refuse(refused)
        except StreamClosedError:
            pass  # the client has gone, which on_connection_close hears, too

    def on_connection_close(self):
        """Called by tornado when the client goes away before the end."""
        if self.running is not None:
            self.service.metrics.gone.inc()
            self._leave()

    def _leave(self) -> None:
        running, self.running = self.running, None
        if running is not None:
            self.service.leave(running)
            self.drawn.put_nowait(None)

    async def _answer(self, wanted: Asked) -> None:
        seed = random.getrandbits(63) if wanted.seed is None else wanted.seed
        self.running = Request(
            wanted.prompt,
            wanted.most,
            wanted.sampling,
            wanted.choices,
            seed,
        )
        try:
            self.drawn = self.service.submit(self.running)
        except Refused:
            self.running = None
            raise
        head = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": self.model,
        }
        try:
            answer = self._streamed if wanted.stream else self._whole
            await answer(head, wanted)
        finally:
            self._leave()

    async def _whole(self, head: dict, wanted: Asked) -> None:
        texts, ends = [""] * wanted.choices, [None] * wanted.choices
        count = 0
        async for choice, piece, end, tokens in self._pieces(wanted):
            texts[choice] += piece
            ends[choice] = end
            count += tokens
        if self.running is None:
            return
        choices = [choice_of(i, *each) for i, each in enumerate(zip(texts, ends, strict=True))]
        self.finish({**head, "choices": choices, "usage": usage(wanted, count)})

    async def _streamed(self, head: dict, wanted: Asked) -> None:
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        count = 0
        async for choice, piece, end, tokens in self._pieces(wanted):
            count += tokens
            if piece or end:
                self.write(event({**head, "choices": [choice_of(choice, piece, end)]}))
                await self.flush()
        if self.running is None:
            return
        if wanted.counts:
            self.write(event({**head, "choices": [], "usage": usage(wanted, count)}))
        self.write("data: [DONE]\n\n")
        self.finish()

    async def _pieces(self, wanted: Asked):
        """(choice, text, why it ends or None, tokens), as they come; ends when the client goes."""
        writings = {i: Writing(self.tokens, wanted.stops) for i in range(wanted.choices)}
        is_first = True
        while writings:
            drawn = await self.drawn.get()
            if drawn is None:
                return
            if isinstance(drawn, Refused):
                raise drawn
            if is_first:
                self.service.metrics.first.observe(time.monotonic() - self.asked_at)
                is_first = False
            for each in drawn:
                if each.choice in writings:
                    piece, end = self._piece(writings[each.choice], each)
                    if end:
                        del writings[each.choice]
                    yield each.choice, piece, end, 1

    def _piece(self, writing: Writing, drawn) -> tuple[str, str | None]:
        """(what can be shown after a token, why it ends or None)."""
        piece = writing.add(drawn.token)
        if drawn.is_last:
            piece += writing.rest()
        if not writing.has_stopped:
            return piece, "length" if drawn.is_last else None
        if not drawn.is_last:
            self.service.leave(drawn.request, drawn.choice)
        return piece, "stop"


def event(told: dict) -> str:
    """A server-sent event."""
    return f"data: {json.dumps(told)}\n\n"


def choice_of(index: int, text: str, end: str | None) -> dict:
    """A choice in the usual shape."""
    return {"index": index, "text": text, "logprobs": None, "finish_reason": end}


def usage(wanted: Asked, count: int) -> dict:
    """How many tokens a request took, in the usual shape."""
    prompt = len(wanted.prompt)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": count,
        "total_tokens": prompt + count,
    }


class Server:
    """A server that runs in the event loop of whoever starts it. port 0: any free one."""

    def __init__(
        self,
        engine: Engine,
        tokens: Tokens,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: Limits | None = None,
        name: str = NAME,
    ):
        limits = limits or Limits()
        self.service = Service(engine, limits.queue)
        told = {"service": self.service, "tokens": tokens, "limits": limits, "name": name}
        pages = {
            "/v1/completions": Completions,
            "/v1/models": Models,
            "/health": Health,
            "/metrics": Numbers,
        }
        application = Application(
            [(address, page, told) for address, page in pages.items()],
            default_handler_class=Missing,
            default_handler_args=told,
            log_function=lambda handler: None,
        )
        self._http = HTTPServer(
            application, idle_connection_timeout=SLOW, body_timeout=SLOW, max_body_size=limits.body
        )
        self._sockets = sockets_at(host, port)
        self.port = self._sockets[0].getsockname()[1]
        self.url = f"http://{host}:{self.port}"

    async def run(self, ending: asyncio.Event, patience: float = PATIENCE) -> None:
        """Serve until `ending` is set; then let what runs end, for at most so many seconds."""
        self._http.add_sockets(self._sockets)
        work = asyncio.create_task(self.service.run())
        await ending.wait()
        self.service.draining = True
        self._http.stop()
        await self.service.idle(patience)
        work.cancel()
        await asyncio.wait([work])
        await self._http.close_all_connections()


def sockets_at(host: str, port: int) -> list:
    """Listening sockets. Raises ServerError where the port is taken or not ours to take."""
    try:
        return bind_sockets(port, host)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            told = f"port {port} is in use: end what uses it, or choose another with --port"
        elif error.errno == errno.EACCES:
            told = f"port {port} is not for everybody: choose one from 1024 to 65535 with --port"
        else:
            told = f"cannot listen at {host}, port {port}: {error.strerror}"
        raise ServerError(told) from None


async def until_signal(server: Server) -> None:
    """Run a server until Ctrl+C or SIGTERM, and end it kindly; at a second one at once."""
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    task = asyncio.current_task()

    def end():
        if ending.is_set():
            task.cancel()
        ending.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    await server.run(ending)


class Background:
    """A server in a thread of its own, for notebooks and tests: `with Background(...) as running`.

    url: where it is. Arguments as for Server.
    """

    def __init__(self, *arguments, **how):
        self._arguments, self._how = arguments, how
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error = None

    def start(self) -> "Background":
        """Begin; returns when requests are taken. Raises ServerError where that cannot be."""
        self._thread.start()
        self._started.wait()
        if self._error:
            raise self._error
        return self

    def stop(self) -> None:
        """End; what runs has a second to do so."""
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def _run(self):
        asyncio.run(self._serve())

    async def _serve(self):
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        try:
            self.server = Server(*self._arguments, **self._how)
        except ServerError as error:
            self._error = error
            return
        finally:
            self._started.set()
        await self.server.run(self._ending, patience=1.0)

    @property
    def url(self) -> str:
        """Where the server is."""
        return self.server.url

    @property
    def blocks_taken(self) -> int:
        """Blocks of the cache that somebody has."""
        pool = self.server.service.engine.scheduler.pool
        return len(pool.users) - len(pool.free)
