"""The board's pages and what learners' notebooks talk to: a Tornado application.

Who somebody is, only the Hub says. `guard` is a mixin for handlers: its `get_current_user` returns
the Hub's model of a user, {"name", "scopes"}, or None. The service takes the Hub's own; see
`course.hub.board.__main__`.
"""

import asyncio
import json
from pathlib import Path

from tornado import web
from tornado.iostream import StreamClosedError

from course.hub.board import catalogue, events, summary
from course.hub.board.store import Store

STATIC = Path(__file__).with_name("static")
INSTRUCT = "custom:board:instruct"  # the scope of the Hub that an instructor's role has
TOGETHER = 0.2  # seconds for which news are collected before pages are told
STILL_THERE = 20  # seconds after which a page is told that the board is there
LARGEST = 1_000_000  # bytes of a request
PAGES = {"": "board.html", "wall": "wall.html"}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class News:
    """Wakes all pages that wait for something new."""

    def __init__(self):
        self._changed = asyncio.Condition()
        self.number = 0

    async def tell(self):
        async with self._changed:
            self.number += 1
            self._changed.notify_all()

    async def after(self, number: int) -> int:
        """The number of the newest news, once there are newer ones than `number`."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.number > number)
            return self.number


def application(store: Store, guard: type, prefix: str = "/", more=(), **settings):
    """The board as a Tornado application. more: further handlers, such as the Hub's call-back."""
    shared = {"store": store, "news": News()}
    kinds = {
        "api/events": Events,
        "api/join": Join,
        "api/leave": Leave,
        "api/board": BoardLive,
        "api/wall": WallLive,
        "api/show": Show,
        "api/reveal": Reveal,
        "api/heard": Heard,
    }
    routes = [(prefix + path, guarded(kind, guard), shared) for path, kind in kinds.items()]
    routes += [
        (prefix + path, guarded(Page, guard), {**shared, "file": file})
        for path, file in PAGES.items()
    ]
    routes += [(prefix + "static/(.*)", web.StaticFileHandler, {"path": STATIC})]
    return web.Application([*routes, *more], **settings)


def guarded(kind: type, guard: type) -> type:
    """A handler with the Hub's idea of who is who.

    A notebook sends a token, which no page of another site has, and so needs no cookie against
    forged requests. Whoever sends no token does.
    """

    def check_xsrf_cookie(self):
        if not self.request.headers.get("Authorization", "").startswith("token "):
            super(handler, self).check_xsrf_cookie()

    handler = type(kind.__name__, (guard, kind), {"check_xsrf_cookie": check_xsrf_cookie})
    return handler


class Handler(web.RequestHandler):
    """What all handlers have in common."""

    def initialize(self, store, news, file=""):
        self.store, self.news, self.file = store, news, file

    def set_default_headers(self):
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code, **kwargs):
        self.finish(f"{status_code}: {self._reason}")

    def account(self) -> str:
        """Whose request this is. 403 for who the Hub does not know."""
        user = self.current_user
        if not user:
            raise web.HTTPError(403, reason="The Hub does not know who asks")
        if user.get("kind", "user") != "user":
            raise web.HTTPError(403, reason="Only people have a place here")
        return user["name"]

    def instructor(self) -> None:
        """403 for who does not teach."""
        self.account()
        if INSTRUCT not in self.current_user.get("scopes", ()):
            raise web.HTTPError(403, reason="The board is for those who teach this class")

    def content(self) -> dict:
        """The JSON of the request. 400 where it is none."""
        try:
            content = json.loads(self.request.body)
        except (ValueError, RecursionError):
            raise web.HTTPError(400, reason="JSON is expected") from None
        if not isinstance(content, dict):
            raise web.HTTPError(400, reason="An object is expected")
        return content

    async def done(self):
        """Nothing to say but that it is done; pages hear of it."""
        self.set_status(204)
        await self.finish()
        await self.news.tell()


class Events(Handler):
    """Events of one learner."""

    async def post(self):
        number = self.store.number(self.account())
        content = self.content()
        if content.get("class") not in ("", self.store.class_id()):
            raise web.HTTPError(410, reason="That class is over")
        if number is None:
            raise web.HTTPError(409, reason="Join first")
        try:
            taken = events.read(content)
        except events.Refused as no:
            raise web.HTTPError(400, reason=str(no)) from None
        self.store.add(number, taken)
        await self.done()


class Join(Handler):
    """A learner joins, as a number or under their account's name."""

    async def post(self):
        account, named = self.account(), self.content().get("named") is True
        number = self.store.join(account, named)
        label = summary.label(number, account if named else "")
        await self.finish({"class": self.store.class_id(), "label": label})
        await self.news.tell()


class Leave(Handler):
    """A learner leaves, and what was kept of them is deleted."""

    async def post(self):
        self.store.leave(self.account())
        await self.done()


class Page(Handler):
    """A page for who teaches; who is not logged in is sent to the Hub's log-in."""

    @web.authenticated
    def get(self):
        self.instructor()
        self.xsrf_token  # noqa: B018  sets the cookie that the page's buttons send back
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish((STATIC / self.file).read_bytes())


class Live(Handler):
    """Server-sent events: what a page shows, whenever it changed."""

    ages = False  # whether what it shows changes by the clock alone

    async def get(self):
        self.instructor()
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("X-Accel-Buffering", "no")
        number = -1
        try:
            while True:
                has_news = True
                try:
                    async with asyncio.timeout(STILL_THERE):
                        number = await self.news.after(number)
                except TimeoutError:
                    has_news = self.ages
                if has_news:
                    self.write(f"data: {json.dumps(await self.shown())}\n\n")
                else:
                    self.write("event: still\ndata: there\n\n")
                await self.flush()
                await asyncio.sleep(TOGETHER)
        except StreamClosedError:
            pass

    async def shown(self) -> dict:
        """What the page shows now."""
        raise NotImplementedError


class BoardLive(Live):
    """The instructor's page."""

    ages = True  # who does nothing for long is not counted as being anywhere

    async def shown(self):
        return summary.board(self.store.learners(), self.store.events(), self.store.wall())


class WallLive(Live):
    """The page for the projector."""

    async def shown(self):
        chapter, subject, shown = self.store.wall()
        found = catalogue.contents(chapter) if chapter else None
        if found is None:
            return {}
        joined = len(self.store.learners())
        if subject in found.questions:
            told = self.store.events("predict", subject)
            return summary.hands(found, found.questions[subject], told, shown, joined)
        if subject in found.quizzes:
            quiz = await asyncio.to_thread(_quiz, subject)
            told = self.store.events("quiz", subject)
            return summary.quiz_hands(found, quiz, told, shown, joined)
        return {}


class Show(Handler):
    """Puts a question on the wall, or takes it away."""

    async def post(self):
        self.instructor()
        content = self.content()
        chapter, subject = str(content.get("chapter", "")), str(content.get("subject", ""))
        found = catalogue.contents(chapter)
        if subject and not (found and (subject in found.questions or subject in found.quizzes)):
            raise web.HTTPError(400, reason="There is no such question")
        self.store.show(chapter, subject)
        await self.done()


class Reveal(Handler):
    """Shows the answer to what is on the wall, or hides it."""

    async def post(self):
        self.instructor()
        self.store.reveal(self.content().get("shown") is True)
        await self.done()


class Heard(Handler):
    """The instructor has been with somebody who asked for help."""

    async def post(self):
        self.instructor()
        number = self.content().get("number")
        if number not in self.store.learners():
            raise web.HTTPError(400, reason="There is no such learner")
        self.store.heard(number)
        await self.done()


def _quiz(id):
    """A quiz by its id. Its chapter's module may take seconds to load."""
    from course.exercises import QUIZZES

    return QUIZZES[id]
