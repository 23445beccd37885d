"""An institution's accounts by two lines, by an OAuth server on loopback. At night, as root."""

import json
import secrets
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from traitlets.config import Config

from course.hub import config, rehearsal
from course.hub.settings import Settings, Unsafe
from course.hub.simulated import Failed, Visitor
from tests.course.hub.test_class import pytestmark as of_a_class

TWO_LINES = """
c.JupyterHub.authenticator_class = "github"
c.OAuthenticator.allowed_users = {"ann", "bob"}
"""


class Institution(BaseHTTPRequestHandler):
    """Says of whoever asks that they are `server.who`, as GitHub does it."""

    def do_GET(self):
        asked = urlsplit(self.path)
        words = {name: values[0] for name, values in parse_qs(asked.query).items()}
        if asked.path == "/login/oauth/authorize":
            code = secrets.token_hex(8)
            self.server.codes[code] = self.server.who
            self.send_response(302)
            told = urlencode({"code": code, "state": words["state"]})
            self.send_header("Location", f"{words['redirect_uri']}?{told}")
            self.end_headers()
        elif asked.path.endswith("/user"):
            who = self.headers["Authorization"].split()[1].removeprefix("of-")
            self.says({"login": who, "id": 1, "name": who, "email": f"{who}@example.org"})
        else:
            self.says([])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        words = {name: values[0] for name, values in parse_qs(body).items()}
        if words.get("client_secret") != "of-the-application":
            self.send_error(401)
            return
        who = self.server.codes.pop(words["code"])
        self.says({"access_token": f"of-{who}", "token_type": "bearer", "scope": ""})

    def says(self, content):
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def institution():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Institution)
    server.who, server.codes = "", {}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def logged_in(hub, institution, who):
    """Somebody at the Hub after the way to the institution and back; Failed where it says no."""
    institution.who = who
    visitor = Visitor(hub.settings.address, who, "")
    reply = visitor.get("/hub/oauth_login?next=/hub/home")
    if reply.status_code != 200 or "/hub/oauth" in reply.url or "/hub/login" in reply.url:
        raise Failed(f"{who}: {reply.status_code} {reply.url}")
    return visitor


@pytest.mark.nightly("starts a Hub: seconds")
@of_a_class[1]
def test_two_lines_let_in_whom_they_name(institution, monkeypatch):
    with tempfile.TemporaryDirectory(prefix="cuda-course-oauth-") as folder:
        Path(folder).chmod(0o755)
        hub = rehearsal.Hub(Path(folder))
        hub.settings.own.write_text(TWO_LINES)
        address = f"http://127.0.0.1:{institution.server_port}"
        monkeypatch.setenv("GITHUB_URL", address)
        monkeypatch.setenv("GITHUB_API", address)
        monkeypatch.setenv("OAUTH_CLIENT_ID", "an-application")
        monkeypatch.setenv("OAUTH_CLIENT_SECRET", "of-the-application")
        back = f"{hub.settings.address}/hub/oauth_callback"
        monkeypatch.setenv("OAUTH_CALLBACK_URL", back)
        try:
            hub.start()
            ann = logged_in(hub, institution, "ann")
            assert ann.get("/services/board/").status_code == 403
            teacher = logged_in(hub, institution, rehearsal.TEACHER)
            assert teacher.get("/services/board/").status_code == 200
            assert teacher.get("/hub/admin").status_code == 200
            for stranger in ("mallory", "instructor"):
                with pytest.raises(Failed):
                    logged_in(hub, institution, stranger)
        finally:
            hub.end()


def test_who_teaches_has_to_be_said_where_accounts_are_an_institutions():
    """Else whoever is called "instructor" there would."""
    c = Config()
    c.JupyterHub.authenticator_class = "github"
    with pytest.raises(Unsafe, match="--instructor"):
        config.refuse_unknown_teachers(c, Settings())
    config.refuse_unknown_teachers(c, Settings(instructors=("ann@example.org",)))
