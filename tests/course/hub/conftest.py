"""A board in this process, on a real port, for tests that talk to it by HTTP."""

import asyncio
import threading

import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import RequestHandler

from course.hub.board import app
from course.hub.board.store import Store


class KnowsByToken:
    """In place of the Hub: the token is the account's name, and "teacher" teaches."""

    def get_current_user(self):
        name = self.request.headers.get("Authorization", "").removeprefix("token ")
        if not name:
            return None
        return {"name": name, "scopes": [app.INSTRUCT] if name == "teacher" else []}

    def check_xsrf_cookie(self):
        RequestHandler.check_xsrf_cookie(self)


class Board:
    """A board that can be started and stopped, as the Hub does it."""

    def __init__(self, folder):
        self.file = folder / "board" / "class.sqlite"
        (probe,) = bind_sockets(0, "127.0.0.1")
        self.port = probe.getsockname()[1]
        probe.close()
        self.address = f"http://127.0.0.1:{self.port}/services/board/"
        self._thread = None

    def start(self):
        """Answer from now on."""
        up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(up)), daemon=True)
        self._thread.start()
        assert up.wait(30)

    def stop(self):
        """Answer no more; who asks is refused at once."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()
            self._thread = None

    async def _serve(self, up):
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        store = Store(self.file)
        made = app.application(
            store, KnowsByToken, "/services/board/", cookie_secret="of no use", xsrf_cookies=True
        )
        server = HTTPServer(made)
        server.listen(self.port, "127.0.0.1")
        up.set()
        await self._over.wait()
        server.stop()
        await server.close_all_connections()
        store.close()


@pytest.fixture
def board(tmp_path):
    """A board that runs."""
    made = Board(tmp_path)
    made.start()
    yield made
    made.stop()
