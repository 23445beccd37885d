"""A learner who is not there: signs up, starts a server and runs cells, as a browser does.

For `course.hub.rehearsal` and tests. A click on a widget's button is sent as JupyterLab sends it.
"""

import asyncio
import json
import re
import time
import uuid

import requests
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

PATIENCE = 300  # seconds for a server to start, a cell to run
LARGEST = 1 << 30  # bytes of a message: a picture, a film
NOTEBOOK = "chapters/05_first_kernels.ipynb"


class Failed(RuntimeError):
    """Something that a learner would have seen fail."""


class Visitor:
    """Somebody with a browser at a Hub."""

    def __init__(self, hub: str, name: str, password: str):
        self.hub, self.name, self.password = hub, name, password
        self.web = requests.Session()

    def sign_up(self) -> None:
        """Make an account. With --open it can log in at once."""
        self._form("/hub/signup", username=self.name, password=self.password)

    def log_in(self) -> None:
        """Log in. Failed where the Hub says no."""
        reply = self._form("/hub/login", username=self.name, password=self.password)
        if "/hub/login" in reply.url:
            raise Failed(f"{self.name} cannot log in")

    def get(self, path: str, **options) -> requests.Response:
        return self.web.get(self.hub + path, timeout=60, **options)

    def post(self, path: str, content: dict) -> requests.Response:
        """Send JSON to a page that was opened before, as its buttons do."""
        headers = {"X-XSRFToken": self._xsrf(path), "Referer": self.hub + path}
        return self.web.post(self.hub + path, json=content, headers=headers, timeout=60)

    def _form(self, path, **fields):
        self.get(path)
        fields["_xsrf"] = self._xsrf(path)
        if path.endswith("signup"):
            fields["signup_password"] = fields["signup_password_confirmation"] = fields.pop(
                "password"
            )
        return self.web.post(self.hub + path, data=fields, timeout=60)

    def _xsrf(self, path):
        """The cookie that belongs to a path: the Hub and each service have their own."""
        fitting = [c for c in self.web.cookies if c.name == "_xsrf" and path.startswith(c.path)]
        return max(fitting, key=lambda cookie: len(cookie.path)).value if fitting else ""


class Learner(Visitor):
    """A visitor with a server, and in it one notebook with its kernel."""

    def __init__(self, *who):
        super().__init__(*who)
        self.loop = asyncio.new_event_loop()

    def start(self) -> float:
        """Start the server; the seconds until it answered."""
        began = time.monotonic()
        if self.get("/hub/spawn").status_code >= 500:
            raise Failed(f"the server of {self.name} does not start")
        # The page, not the API: it is the page that sends a browser to the Hub to log in
        while "jupyter-config-data" not in self.get(f"/user/{self.name}/lab").text:
            if time.monotonic() - began > PATIENCE:
                raise Failed(f"the server of {self.name} does not start")
            time.sleep(1)
        return time.monotonic() - began

    def open(self, path: str = NOTEBOOK) -> None:
        """Open a notebook with a kernel of its own."""
        asked = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        reply = self.post(f"/user/{self.name}/api/sessions", asked)
        if not reply.ok:
            raise Failed(f"{self.name} gets no kernel: {reply.status_code} {reply.text[:200]}")
        self.kernel = reply.json()["kernel"]["id"]
        self.connect()

    def connect(self) -> None:
        """Connect to the kernel, again after the Hub's proxy was away."""
        self.session = uuid.uuid4().hex
        self.buttons = {}
        address = self.hub.replace("http", "ws", 1)
        path = f"/user/{self.name}/api/kernels/{self.kernel}/channels?session_id={self.session}"
        cookies = self.web.cookies
        jar = "; ".join(f"{c.name}={c.value}" for c in cookies if path.startswith(c.path))
        request = HTTPRequest(
            address + path, headers={"Cookie": jar, "Origin": self.hub}, request_timeout=PATIENCE
        )
        self.socket = self._wait(websocket_connect, request, max_message_size=LARGEST)

    def run(self, code: str, cell: str = "") -> str:
        """Run a cell; what it printed or showed as text. Failed where it raises."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        asked = self._send("execute_request", content, {"cellId": cell})
        return self._until_done(asked)

    def click(self, text: str) -> None:
        """Click the newest button of that text, and wait until the kernel is done with it."""
        data = {"method": "custom", "content": {"event": "click"}}
        asked = self._send("comm_msg", {"comm_id": self.buttons[text], "data": data})
        self._until_done(asked)

    def save(self, text: str, path: str = "my_notes.ipynb") -> None:
        """Save a notebook with one cell."""
        cell = {"cell_type": "code", "id": "mine", "metadata": {}, "outputs": [], "source": text}
        book = {"cells": [cell | {"execution_count": None}], "metadata": {}}
        content = book | {"nbformat": 4, "nbformat_minor": 5}
        where = f"{self.hub}/user/{self.name}/api/contents/{path}"
        headers = {"X-XSRFToken": self._xsrf(f"/user/{self.name}/")}
        reply = self.web.put(
            where, json={"type": "notebook", "content": content}, headers=headers, timeout=60
        )
        if not reply.ok:
            raise Failed(f"{self.name} cannot save: {reply.status_code}")

    def saved(self, path: str = "my_notes.ipynb") -> str:
        """The text of that cell."""
        reply = self.get(f"/user/{self.name}/api/contents/{path}")
        return reply.json()["content"]["cells"][0]["source"] if reply.ok else ""

    def _send(self, kind, content, metadata=None):
        id = uuid.uuid4().hex
        header = {"msg_id": id, "msg_type": kind, "session": self.session, "username": self.name}
        message = {
            "header": header | {"version": "5.3", "date": ""},
            "parent_header": {},
            "metadata": metadata or {},
            "content": content,
            "channel": "shell",
            "buffers": [],
        }
        self._wait(self.socket.write_message, json.dumps(message))
        return id

    def _wait(self, call, *args, **named):
        """What a call of Tornado's comes to; it wants a loop that runs already."""

        async def called():
            return await asyncio.wait_for(call(*args, **named), PATIENCE)

        return self.loop.run_until_complete(called())

    def _until_done(self, asked):
        """Read what the kernel says until it is idle again; the text of it."""
        text = []
        while True:
            message = self._receive()
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                text.append(content["text"])
            elif kind in ("execute_result", "display_data"):
                text.append(content["data"].get("text/plain", ""))
            elif kind == "error":
                raise Failed(f"{self.name}: {content['ename']}: {content['evalue'][:300]}")
            elif kind == "comm_open":
                state = content["data"].get("state", {})
                if state.get("_model_name") == "ButtonModel":
                    self.buttons[state["description"]] = content["comm_id"]
            elif kind == "status" and content["execution_state"] == "idle":
                return "\n".join(text)

    def _receive(self):
        """One message. Of those with buffers, which are binary, the part in JSON."""
        received = self._wait(self.socket.read_message)
        if received is None:
            raise Failed(f"the connection of {self.name} to the kernel is gone")
        if isinstance(received, str):
            return json.loads(received)
        count = int.from_bytes(received[:4], "big")
        starts = [int.from_bytes(received[4 * n : 4 * n + 4], "big") for n in range(1, count + 1)]
        end = starts[1] if count > 1 else len(received)
        return json.loads(received[starts[0] : end])


def follow(visitor: Visitor, path: str, keep) -> None:
    """Read server-sent events; keep(when, data) says whether to go on."""
    with visitor.web.get(visitor.hub + path, stream=True, timeout=PATIENCE) as reply:
        for line in reply.iter_lines(chunk_size=1):
            found = re.match(rb"data: (\{.*)", line)
            if found and not keep(time.time(), json.loads(found[1])):
                return
