"""A load test: clients that ask much, ask nonsense, and go away in the middle.

    python -m course.kernels.language_model.serving.load --requests 10000

It starts a server of its own, asks it everything that people ask, looks at every answer, and says
what is left afterwards: blocks of the cache, memory, open files. Exits with 1 where anything is
left, or an answer is not what it should be.
"""

import argparse
import asyncio
import collections
import contextlib
import functools
import json
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

import psutil
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse

from course.kernels.language_model.serving.asking import Limits
from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.models import MODELS
from course.kernels.language_model.serving.scheduler import Scheduler
from course.kernels.language_model.serving.text import Writing
from utils.tools.process import python_environment

COMMAND = "course.kernels.language_model.serving"
AT_ONCE = 48  # clients
WARM = 200  # requests: then memory has grown to what it needs
MOST_GROWTH = 12 << 20  # bytes that memory may grow after that
SETTLING = 10.0  # seconds for the last blocks to come back
TRIES = 200  # of a client that is told to come again
PATIENCE = 120.0  # seconds that a client waits for an answer
LENGTHS = (5, 40, 96, 200)  # letters of a prompt, at most
MOST = (1, 8, 16, 40)  # tokens that are asked for

#: Bodies that are refused: what, and HTTP's status
NONSENSE = (
    (b"", 400),
    (b"{", 400),
    (b"[]", 400),
    (b'"Once"', 400),
    (b"\xff\xfe", 400),
    (b"[" * 5000, 400),
    (b'{"prompt": "a", "temperature": NaN}', 400),
    (b'{"prompt": "a", "temperature": 1e999}', 400),
    (b'{"prompt": "a", "max_tokens": 0}', 400),
    (b'{"prompt": "a", "max_tokens": 1000000}', 400),
    (b'{"prompt": "a", "n": "2"}', 400),
    (b'{"prompt": "a", "stop": [""]}', 400),
    (b'{"prompt": ["a", 1]}', 400),
    (b'{"prompt": [-1]}', 400),
    (b'{"prompt": "a", "model": "another"}', 404),
    (b'{"prompt": "a", "surprise": 1}', 400),
    (b'{"prompt": "\\ud800"}', 400),
)


@dataclass
class Found:
    """What a load test has seen. kinds: clients by what they did; wrong: what was not right."""

    kinds: collections.Counter = field(default_factory=collections.Counter)
    statuses: collections.Counter = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # seconds to the first token of a stream
    seconds: float = 0.0
    tokens: float = 0.0
    left: dict = field(default_factory=dict)

    def __str__(self):
        lines = [f"{count:6,} {kind}" for kind, count in sorted(self.kinds.items())]
        lines += [f"{count:6,} answers {status}" for status, count in sorted(self.statuses.items())]
        rate = self.tokens / self.seconds
        lines.append(f"{self.tokens:,.0f} tokens in {self.seconds:.1f} s, {rate:,.0f} per second")
        if self.first:
            median = statistics.median(self.first)
            lines.append(f"time to first token: {1e3 * median:.0f} ms (median)")
        lines += [f"left: {what} {value:,}" for what, value in self.left.items()]
        lines += [f"WRONG: {what}" for what in self.wrong[:20]]
        return "\n".join(lines)


class Client:
    """Asks one server. expected(prompt, most) -> the greedy text that must come."""

    def __init__(self, url: str, expected, seed: int):
        self.url, self.expected = url, expected
        self.host, port = url.removeprefix("http://").split(":")
        self.port = int(port)
        self.chance = random.Random(seed)
        self.found = Found()
        self._http = AsyncHTTPClient(force_instance=True, max_clients=AT_ONCE)
        begins = ["Once upon a time, " * 5 + word for word in ("there", "we", "it", "a")]
        self._prompts = [words[:length] for words in begins for length in LENGTHS]
        for prompt in self._prompts:
            expected(prompt, 1)  # found now, since nobody is asked meanwhile
        self.kinds = {
            self.asks: 40,
            self.asks_for_choices: 5,
            self.reads_a_stream: 20,
            self.talks_nonsense: 10,
            self.asks_too_much: 5,
            self.sends_too_much: 1,
            self.leaves_at_once: 8,
            self.leaves_a_stream: 8,
            self.sends_half: 5,
        }

    async def one(self) -> None:
        """A client of any kind, which writes down what is wrong."""
        kind = self.chance.choices(list(self.kinds), self.kinds.values())[0]
        self.found.kinds[kind.__name__] += 1
        try:
            await asyncio.wait_for(kind(), PATIENCE)
        except Exception as error:
            self.found.wrong.append(f"{kind.__name__}: {type(error).__name__}: {error}")

    def prompt(self) -> tuple[str, int]:
        """(a prompt, how many tokens to write): few different ones, so prefixes are shared."""
        return self.chance.choice(self._prompts), self.chance.choice(MOST)

    async def ask(self, body: bytes, chunks: list | None = None) -> HTTPResponse:
        """The answer to a body; asks again while too many wait.

        chunks: gets (seconds since it was asked, bytes) of each piece of the answer.
        """
        how = {}
        for _ in range(TRIES):
            if chunks is not None:
                chunks.clear()
                how["streaming_callback"] = clocked(chunks)
            request = HTTPRequest(
                f"{self.url}/v1/completions",
                "POST",
                body=body,
                connect_timeout=PATIENCE,
                request_timeout=PATIENCE,
                **how,
            )
            answer = await self._http.fetch(request, raise_error=False)
            if isinstance(answer.error, Exception) and not isinstance(
                answer.error, HTTPClientError
            ):
                raise answer.error
            self.found.statuses[answer.code] += 1
            if answer.code != 429:
                return answer
            assert answer.headers["Retry-After"], "429 does not say when to come again"
            await asyncio.sleep(0.05 + 0.1 * self.chance.random())
        raise TimeoutError("the queue was always full")

    # ---- kinds of clients

    async def asks(self, choices: int = 1) -> None:
        """Asks for tokens without chance, and gets those that it would get alone."""
        prompt, most = self.prompt()
        told = {"prompt": prompt, "max_tokens": most, "temperature": 0, "n": choices}
        answer = await self.ask(json.dumps(told).encode())
        assert answer.code == 200, answer.body
        said = json.loads(answer.body)
        texts = [choice["text"] for choice in said["choices"]]
        assert texts == choices * [self.expected(prompt, most)], f"{prompt!r}: {texts}"
        assert said["usage"]["completion_tokens"] == choices * most, said["usage"]

    async def asks_for_choices(self) -> None:
        """Wants three of it."""
        await self.asks(3)

    async def reads_a_stream(self) -> None:
        """Reads events to the end."""
        prompt, most = self.prompt()
        told = {"prompt": prompt, "max_tokens": most, "temperature": 0, "stream": True}
        chunks = []
        answer = await self.ask(json.dumps(told).encode(), chunks)
        assert answer.code == 200, chunks
        self.found.first.append(chunks[0][0])
        lines = b"".join(chunk for _, chunk in chunks).decode().strip().split("\n\n")
        assert lines[-1] == "data: [DONE]", lines[-1]
        told = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
        text = "".join(each["choices"][0]["text"] for each in told)
        assert text == self.expected(prompt, most), f"{prompt!r}: {text!r}"

    async def talks_nonsense(self) -> None:
        """Is refused, and told why."""
        body, status = self.chance.choice(NONSENSE)
        answer = await self.ask(body)
        message = json.loads(answer.body)["error"]["message"]
        assert answer.code == status and message, f"{body[:40]}: {answer.code} {message}"

    async def asks_too_much(self) -> None:
        """Has a prompt that is too long."""
        answer = await self.ask(json.dumps({"prompt": "a" * (Limits().prompt + 1)}).encode())
        assert answer.code == 400, answer.code
        assert "tokens; at most" in json.loads(answer.body)["error"]["message"]

    async def sends_too_much(self) -> None:
        """Has a body that is too long."""
        answer = await self.ask(b" " * (Limits().body + 1))
        assert answer.code == 413, answer.code

    async def leaves_at_once(self) -> None:
        """Asks, and does not wait for the answer."""
        async with self._connection() as (_, writer):
            writer.write(self._request(stream=False))
            await writer.drain()

    async def leaves_a_stream(self) -> None:
        """Reads the beginning."""
        async with self._connection() as (reader, writer):
            writer.write(self._request(stream=True))
            await reader.read(self.chance.choice((1, 100, 1000)))

    async def sends_half(self) -> None:
        """Goes away while it asks."""
        async with self._connection() as (_, writer):
            request = self._request(stream=True)
            writer.write(request[: self.chance.randrange(len(request))])
            await writer.drain()

    @contextlib.asynccontextmanager
    async def _connection(self):
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()  # as when a cable is pulled, and not a kind goodbye

    def _request(self, stream: bool) -> bytes:
        told = {"prompt": self.prompt()[0], "max_tokens": Limits().most // 4, "stream": stream}
        body = json.dumps(told)
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {self.host}\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def clocked(chunks: list):
    """A function that appends (seconds from now on, what it is called with)."""
    begun = time.monotonic()
    return lambda chunk: chunks.append((time.monotonic() - begun, chunk))


class Watched:
    """A server in a process of its own, and what it holds."""

    def __init__(self, model: str, *arguments: str):
        command = [sys.executable, "-m", COMMAND, "--port", "0", "--model", model, *arguments]
        self._process = subprocess.Popen(
            command,
            env=python_environment(PYTHONUNBUFFERED="1", OMP_NUM_THREADS="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        line = self._process.stdout.readline()
        if " is served at " not in line:
            raise RuntimeError(line + self._process.stdout.read())
        self.url = line.split(" is served at ")[1].split(";")[0]
        self._told = psutil.Process(self._process.pid)

    def memory(self) -> int:
        """Bytes that are resident."""
        return self._told.memory_info().rss

    def files(self) -> int:
        """Open files and connections."""
        return self._told.num_fds()

    async def metrics(self) -> dict[str, float]:
        """What /metrics says, by name."""
        answer = await AsyncHTTPClient().fetch(f"{self.url}/metrics")
        lines = answer.body.decode().splitlines()
        pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name: float(value) for name, value in pairs}

    def end(self) -> str:
        """End it as systems do. What it printed; RuntimeError where it did not end well."""
        self._process.send_signal(signal.SIGTERM)
        printed, _ = self._process.communicate(timeout=60)
        if self._process.returncode:
            raise RuntimeError(f"the server ended with {self._process.returncode}: {printed}")
        return printed

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


async def bombard(server: Watched, expected, requests: int, seed: int = 0) -> Found:
    """Send so many clients, AT_ONCE at a time; what was found, and what is left at the end."""
    client = Client(server.url, expected, seed)
    found, todo = client.found, iter(range(requests))
    begun, files = time.monotonic(), server.files()
    memory = {}

    async def clients():
        for number in todo:
            if number >= min(WARM, requests - 1):
                memory.setdefault("warm", server.memory())
            await client.one()

    await asyncio.gather(*(clients() for _ in range(AT_ONCE)))
    found.seconds = time.monotonic() - begun
    numbers = await settled(server)
    found.tokens = numbers["serving_tokens_total"]
    found.left = {
        "blocks": int(numbers["serving_blocks"] - numbers["serving_blocks_free"]),
        "sequences": int(numbers["serving_running"] + numbers["serving_waiting"]),
        "bytes more than when warm": server.memory() - memory["warm"],
        "files more than before": server.files() - files - 1,  # the one that asks
    }
    limits = dict.fromkeys(found.left, 0) | {"bytes more than when warm": MOST_GROWTH}
    found.wrong += [f"left: {what}" for what, most in limits.items() if found.left[what] > most]
    return found


async def settled(server: Watched) -> dict[str, float]:
    """The metrics, once nothing runs any more, or after a while."""
    end = time.monotonic() + SETTLING
    while True:
        numbers = await server.metrics()
        is_idle = numbers["serving_blocks"] == numbers["serving_blocks_free"]
        if is_idle or time.monotonic() > end:
            await asyncio.sleep(0.3)  # connections that are being closed
            return await server.metrics()
        await asyncio.sleep(0.1)


def alone(model: str):
    """expected(prompt, most): the text that a model writes when nobody else is there."""
    blocks = 64
    runner, tokens = MODELS[model](blocks)

    @functools.cache
    def written(prompt: str) -> list[int]:
        engine = Engine(runner, Scheduler(blocks, sharing=False))
        engine.add(Request(tokens.encode(prompt), max(MOST)))
        found = []
        while engine.busy:
            found += [drawn.token for drawn in engine.step()]
        return found

    def expected(prompt: str, most: int) -> str:
        writing = Writing(tokens)
        return "".join(map(writing.add, written(prompt)[:most])) + writing.rest()

    return expected


def run(model: str, requests: int, seed: int = 0, *arguments: str) -> Found:
    """A whole load test of a server with these arguments."""
    server = Watched(model, *arguments)
    try:
        found = asyncio.run(bombard(server, alone(model), requests, seed))
        printed = server.end()
        if printed.strip() != "all requests have ended":
            found.wrong.append(f"the server printed {printed[-500:]!r}")
        return found
    finally:
        server.kill()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--model", default="checksum")
    parser.add_argument("--seed", type=int, default=0)
    options, others = parser.parse_known_args()
    found = run(options.model, options.requests, options.seed, *others)
    print(found)
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
