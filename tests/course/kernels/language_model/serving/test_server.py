"""The server as clients see it: answers, refusals, streams, clients that go away, its end."""

import json
import signal
import socket
import sys
import time

import pytest
import requests

from course.kernels.language_model.serving import __main__ as command
from course.kernels.language_model.serving.asking import Limits
from course.kernels.language_model.serving.engine import Engine
from course.kernels.language_model.serving.load import NONSENSE, Watched
from course.kernels.language_model.serving.runner import ChecksumRunner
from course.kernels.language_model.serving.scheduler import Scheduler
from course.kernels.language_model.serving.server import Background, Server, ServerError
from course.kernels.language_model.serving.text import ByteTokens, Writing, overlap
from tests.course.kernels.language_model.serving.alone import by_checksum
from tests.processes import wait_until

BLOCKS = 40


class Paced(ChecksumRunner):
    """Takes a while for each step, and fails when it is told to. Counts its steps."""

    seconds, fails = 0.0, False
    steps = 0

    def step(self, *rows):
        """See Runner."""
        self.steps += 1
        time.sleep(self.seconds)
        if self.fails:
            raise RuntimeError("out of luck")
        return super().step(*rows)


@pytest.fixture(scope="module")
def running():
    """A server with a small queue."""
    engine = Engine(Paced(BLOCKS), Scheduler(BLOCKS, places=2, budget=40))
    with Background(engine, ByteTokens(), limits=Limits(queue=3)) as server:
        server.engine, server.runner = engine, engine.runner
        yield server


@pytest.fixture(autouse=True)
def nothing_left(request):
    """After each test nobody has a block."""
    yield
    if "running" in request.fixturenames:
        running = request.getfixturevalue("running")
        running.runner.seconds, running.runner.fails = 0.0, False
        wait_until(lambda: not running.engine.busy)
        assert len(running.engine.scheduler.pool.free) == BLOCKS


def ask(server, **told):
    """The answer to a request."""
    return requests.post(f"{server.url}/v1/completions", json=told, timeout=60)


def text_of(prompt: str, most: int) -> str:
    """What the model writes."""
    return bytes(by_checksum(list(prompt.encode()), most)).decode(errors="replace")


def connected(server, **told) -> socket.socket:
    """A connection on which a request was sent."""
    body = json.dumps(told)
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", server.server.port))
    connection.sendall(f"{head}{body}".encode())
    return connection


def test_an_answer(running):
    said = ask(running, prompt="Once", max_tokens=9, temperature=0).json()
    assert said["object"] == "text_completion"
    assert said["choices"] == [
        {"index": 0, "text": text_of("Once", 9), "logprobs": None, "finish_reason": "length"}
    ]
    assert said["usage"] == {"prompt_tokens": 4, "completion_tokens": 9, "total_tokens": 13}


def test_a_prompt_of_tokens_and_several_choices(running):
    said = ask(running, prompt=list(b"Once"), max_tokens=5, temperature=0, n=3).json()
    assert [choice["index"] for choice in said["choices"]] == [0, 1, 2]
    assert {choice["text"] for choice in said["choices"]} == {text_of("Once", 5)}
    assert said["usage"]["completion_tokens"] == 15


def test_a_seed_is_kept(running):
    told = {"prompt": "Once", "max_tokens": 30, "temperature": 2.0, "seed": 11}
    running.runner.seconds = 0.0
    first, second = (ask(running, **told).json()["choices"][0]["text"] for _ in range(2))
    assert first == second


def test_a_stream(running):
    told = {"prompt": "Once", "max_tokens": 9, "temperature": 0, "n": 2, "stream": True}
    answer = ask(running, **told, stream_options={"include_usage": True})
    assert answer.headers["Content-Type"] == "text/event-stream"
    *events, last = answer.text.strip().split("\n\n")
    assert last == "data: [DONE]"
    said = [json.loads(event.removeprefix("data: ")) for event in events]
    assert said[-1]["usage"]["completion_tokens"] == 18
    for index in range(2):
        choices = [c for each in said for c in each["choices"] if c["index"] == index]
        assert "".join(choice["text"] for choice in choices) == text_of("Once", 9)
        ends = [choice["finish_reason"] for choice in choices]
        assert ends[-1] == "length" and not any(ends[:-1])


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop(running, stream):
    whole = bytes(by_checksum(list(b"Once"), 30)).decode(errors="replace")
    stop = whole[10:12]
    before = whole[: whole.index(stop)]
    answer = ask(running, prompt="Once", max_tokens=30, temperature=0, stop=stop, stream=stream)
    if stream:
        events = [json.loads(e[6:]) for e in answer.text.strip().split("\n\n")[:-1]]
        assert "".join(event["choices"][0]["text"] for event in events) == before
        assert events[-1]["choices"][0]["finish_reason"] == "stop"
    else:
        (choice,) = answer.json()["choices"]
        assert (choice["text"], choice["finish_reason"]) == (before, "stop")


@pytest.mark.parametrize(("body", "status"), NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_refused(running, body, status):
    answer = requests.post(f"{running.url}/v1/completions", data=body, timeout=60)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["message"] and error["type"] == "invalid_request_error"


REFUSED = {
    "prompt must have a token at least": {"prompt": ""},
    "prompt has 2,049 tokens; at most 2,048 are taken": {"prompt": "a" * 2049},
    "prompt must be a text, or a list of tokens": {},
    "prompt has tokens that are not from 0 to 255": {"prompt": [256]},
    "max_tokens must be a whole number from 1 to 512": {"prompt": "a", "max_tokens": True},
    "temperature must be a number from 0 to 2.0": {"prompt": "a", "temperature": -1},
    "top_p must be a number from 0 to 1": {"prompt": "a", "top_p": 1.5},
    "stream must be true or false": {"prompt": "a", "stream": "yes"},
    "stream_options must be an object": {"prompt": "a", "stream_options": 1},
    "stop takes at most 4 texts of 1 to 64 letters": {"prompt": "a", "stop": list("abcde")},
    "stop must be a text, or a list of texts": {"prompt": "a", "stop": [1]},
    "there is no model 'x'; there is 'course'": {"prompt": "a", "model": "x"},
    "'best_of' is not supported; known": {"prompt": "a", "best_of": 3},
    "701 tokens need 44 blocks; there are 40": {"prompt": "a" * 200, "max_tokens": 501},
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_refusal_says_why(running, message):
    answer = ask(running, **REFUSED[message])
    assert answer.status_code in (400, 404)
    assert message in answer.json()["error"]["message"]


def test_a_body_that_is_too_long(running):
    too_long = b" " * (Limits().body + 1)
    answer = requests.post(f"{running.url}/v1/completions", data=too_long, timeout=60)
    assert answer.status_code == 413
    assert "1,048,577 bytes; at most 1,048,576" in answer.json()["error"]["message"]


def test_other_addresses(running):
    assert requests.get(f"{running.url}/health").json() == {"status": "ok"}
    assert requests.get(f"{running.url}/v1/models").json()["data"][0]["id"] == "course"
    assert requests.get(f"{running.url}/v2").status_code == 404
    wrong = requests.get(f"{running.url}/v1/completions")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, 405)
    metrics = requests.get(f"{running.url}/metrics").text
    assert f"serving_blocks {float(BLOCKS)}" in metrics
    assert 'serving_requests_total{status="405"}' in metrics


def test_a_client_that_goes_away_gives_its_blocks_back(running):
    running.runner.seconds = 0.02
    most = 500
    for stream in (True, False):
        before = running.runner.steps
        connection = connected(running, prompt="Once", max_tokens=most, stream=stream, n=2)
        wait_until(lambda: len(running.engine.scheduler.running) == 2)
        connection.close()
        wait_until(lambda: len(running.engine.scheduler.pool.free) == BLOCKS)
        assert running.runner.steps - before < most, "it was written to its end, for nobody"


def test_a_full_queue_says_when_to_come_again(running):
    running.runner.seconds = 0.02
    connections = []
    for number in range(1, 6):  # one after the other: those that nobody has looked at yet wait, too
        connections.append(connected(running, prompt="Once", max_tokens=500))
        scheduler = running.engine.scheduler
        wait_until(lambda n=number, s=scheduler: len(s.running) + len(s.waiting) == n)
    assert len(scheduler.waiting) == 3
    answer = ask(running, prompt="Once")
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "1"
    assert "3 requests wait already" in answer.json()["error"]["message"]
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_fails_ends_no_server(running, stream):
    running.runner.fails = True
    answer = ask(running, prompt="Once", stream=stream)
    assert "the model failed: RuntimeError: out of luck" in answer.text
    assert answer.status_code == 500
    running.runner.fails = False
    assert ask(running, prompt="Once").status_code == 200


def test_a_port_in_use(running, monkeypatch):
    port = running.server.port
    with pytest.raises(ServerError, match=f"port {port} is in use: end what uses it"):
        Server(running.engine, ByteTokens(), port=port)
    with pytest.raises(ServerError, match="in use"):
        Background(running.engine, ByteTokens(), port=port).__enter__()
    monkeypatch.setattr(sys, "argv", ["serving", "--model", "checksum", "--port", str(port)])
    with pytest.raises(SystemExit) as ended:
        command.main()
    says = f"port {port} is in use: end what uses it, or choose another with --port"
    assert ended.value.code == says


@pytest.mark.nightly("a server of its own that is waited for")
def test_it_ends_when_all_have_their_answers():
    """After SIGTERM who has asked gets the whole answer, and who asks now is sent away."""
    server = Watched("toy")
    try:
        with requests.Session() as session:
            address = f"{server.url}/v1/completions"
            told = {"prompt": "Once", "max_tokens": 300, "stream": True}
            with session.post(address, json=told, stream=True, timeout=60) as answer:
                lines = answer.iter_lines()
                next(lines)
                server._process.send_signal(signal.SIGTERM)
                assert [line for line in lines if line][-1] == b"data: [DONE]"
        assert server._process.wait(30) == 0
        assert server._process.stdout.read().strip() == "all requests have ended"
        with pytest.raises(requests.ConnectionError):
            requests.get(f"{server.url}/health", timeout=5)
    finally:
        server.kill()


def test_text_comes_in_whole_letters():
    writing = Writing(ByteTokens())
    pieces = [writing.add(byte) for byte in "aé€".encode()]
    assert pieces == ["a", "", "é", "", "", "€"]
    writing.add(0xC3)
    assert writing.rest() == "\ufffd"


def test_what_may_be_a_stop_is_held_back():
    writing = Writing(ByteTokens(), ("abc", "\n"))
    pieces = [writing.add(byte) for byte in b"xababcz"]
    assert pieces == ["x", "", "", "ab", "", "", ""]
    assert writing.has_stopped
    assert Writing(ByteTokens(), ("abc",)).rest() == ""
    held = Writing(ByteTokens(), ("abc",))
    assert held.add(ord("a")) + held.rest() == "a"
    assert [overlap("xab", "abc"), overlap("abc", "abc"), overlap("aba", "abac")] == [2, 0, 3]
