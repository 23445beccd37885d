"""Firefox without a window, for tests that a second browser must pass, too.

Playwright drives a Firefox of its own, which is no package of a system; the system's Firefox speaks
WebDriver BiDi, of which this needs three commands (https://w3c.github.io/webdriver-bidi).
"""

import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
import time

import pytest
import websocket

from tests.browser import PATIENCE, end, free_port, on_ci

COMMANDS = "firefox", "firefox-esr"
MISSING = "no Firefox for this test: `sudo apt install firefox-esr` (Debian), `firefox` (Ubuntu)"


class Firefox:
    """A tab of Firefox."""

    def __init__(self, port):
        address = f"ws://127.0.0.1:{port}/session"
        self.socket = connected(address)
        self.numbers = itertools.count(1)
        self.send("session.new", capabilities={})
        made = self.send("browsingContext.create", type="tab")
        self.tab = made["context"]

    def send(self, method, **parameters):
        """What the browser answers to a command. RuntimeError where it refuses."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            said = json.loads(self.socket.recv())
            if said.get("id") != number:  # an event
                continue
            if said["type"] == "error":
                raise RuntimeError(f"{method}: {said['message']}")
            return said["result"]

    def open(self, url):
        """Open a page, and wait until it is there."""
        self.send("browsingContext.navigate", context=self.tab, url=url, wait="complete")

    def value(self, expression):
        """The value of an expression of JavaScript in the page, a text or a number, once there."""
        said = self.send(
            "script.evaluate",
            expression=expression,
            target={"context": self.tab},
            awaitPromise=True,
        )
        if said["type"] == "exception":
            raise RuntimeError(said["exceptionDetails"]["text"])
        return said["result"].get("value")

    def wait_for(self, expression):
        """Wait until an expression of JavaScript is true."""
        while not self.value(f"Boolean({expression})"):
            time.sleep(0.2)


def connected(address):
    """A connection to a browser that may still be starting."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            # Firefox refuses a connection that names an origin
            return websocket.create_connection(address, suppress_origin=True)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@contextlib.contextmanager
def started():
    """A Firefox with a profile of its own; the test is skipped where there is none."""
    path = next(filter(None, map(shutil.which, COMMANDS)), None)
    if path is None:
        (pytest.fail if on_ci() else pytest.skip)(MISSING)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        port = free_port()
        command = [path, "--headless", "--profile", profile, f"--remote-debugging-port={port}"]
        firefox = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield Firefox(port)
        finally:
            end(firefox)
