"""`make lab` as others on the network meet it, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from tests.processes import alive, completed, wait_until
from utils.files import ROOT
from utils.setup import lab


def test_this_machine_alone_outside_a_container():
    told = lab.flags(root=False, container=False)
    assert not [flag for flag in told if flag.startswith(("--ip", "--allow-root"))]


def test_root_only_where_it_is_the_only_user():
    with pytest.raises(ValueError, match="without sudo"):
        lab.flags(root=True, container=False)
    assert "--allow-root" in lab.flags(root=True, container=True)
    assert "--allow-root" not in lab.flags(root=False, container=True)


@pytest.mark.parametrize("container", [False, True])
def test_nothing_takes_the_token_away(container):
    told = " ".join(lab.flags(root=False, container=container))
    assert not re.search(r"token|password|allow_remote|origin|disable_check", told)


def test_the_learners_own_start_page_opens_where_there_is_one(tmp_path):
    assert lab.start_page(tmp_path) == "course/index.ipynb"
    own = tmp_path / "my" / "course" / "index.ipynb"
    own.parent.mkdir(parents=True)
    own.touch()
    assert lab.start_page(tmp_path) == "my/course/index.ipynb"


def test_jupyter_gets_folders_where_the_home_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "home").write_text("a file, in which even root makes no folder")
    for kind in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{kind}_DIR", str(tmp_path / kind))
    assert lab.jupyters_folders() == {}
    modes = {kind: (tmp_path / kind).stat().st_mode & 0o777 for kind in ("CONFIG", "RUNTIME")}
    assert modes == {"CONFIG": 0o700, "RUNTIME": 0o700}, "what opens the server lies there"
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "home" / "runtime"))
    names = {"JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"}
    assert lab.jupyters_folders().keys() == names
    assert "cannot be written" in capsys.readouterr().err


# ---- a real one

START = "from utils.setup import lab; lab.in_container = lambda: {container}; lab.main({arguments})"


class Server:
    """JupyterLab as `make lab` starts it, below a shell that plays make.

    The npm on the PATH hangs, as one does whose home cannot be reached: nobody may wait for it.
    """

    def __init__(self, folder, container, port):
        npm = folder / "bin" / "npm"
        npm.parent.mkdir()
        npm.write_text("#!/bin/sh\nexec sleep 300\n")
        npm.chmod(0o755)
        arguments = ["--no-browser"] + ["--allow-root"] * (os.geteuid() == 0)
        code = START.format(container=container, arguments=arguments)
        environment = {
            **os.environ,
            "JUPYTER_PORT": str(port),
            "PATH": f"{npm.parent}:{os.environ['PATH']}",
            **{f"JUPYTER_{kind}_DIR": str(folder) for kind in ("CONFIG", "DATA", "RUNTIME")},
        }
        self.make = subprocess.Popen(
            ["/bin/sh", "-c", '"$0" -c "$1"; true', sys.executable, code],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.facts = self._wait(folder)

    def _wait(self, folder):
        """What the server says of itself in Jupyter's folder, once it answers."""
        while self.make.poll() is None:
            for path in folder.glob("jpserver-*.json"):
                try:
                    facts = json.loads(path.read_text())
                    urllib.request.urlopen(f"http://127.0.0.1:{facts['port']}/api", timeout=600)
                    return facts
                except (ValueError, OSError):
                    pass
            time.sleep(0.1)
        raise AssertionError("JupyterLab did not start")

    def ask(self, path, token=None, method="GET"):
        """The HTTP status of a request."""
        url = f"http://127.0.0.1:{self.facts['port']}{path}"
        headers = {"Authorization": f"token {token}"} if token else {}
        request = urllib.request.Request(url, method=method, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=600).status
        except urllib.error.HTTPError as error:
            return error.code

    def gone(self):
        """Wait for the server's end, however long: the test's own time limit ends it."""
        wait_until(lambda: not alive(self.facts["pid"]))

    def kill(self):
        try:
            os.killpg(self.make.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.make.wait()


@pytest.fixture(params=[False, True], ids=["this machine", "container"])
def server(request, tmp_path):
    """A server in each mode; the port that it would take first is another's."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        started = Server(tmp_path, request.param, taken.getsockname()[1])
        started.container = request.param
        started.taken = taken.getsockname()[1]
        yield started
        started.kill()


def test_nobody_gets_in_without_the_token(server):
    """And it is found on another port, listens where it should, and ends with `make`."""
    token = server.facts["token"]
    assert len(token) >= 32
    assert server.facts["port"] != server.taken
    for path in ("/api/contents", "/api/kernels", "/api/terminals", "/api/sessions"):
        assert server.ask(path) == 403, path
        assert server.ask(path, token="0" * len(token)) == 403, path
        assert server.ask(path, token=token) == 200, path
    for path in ("/api/kernels", "/api/terminals"):
        assert server.ask(path, method="POST") == 403, path
    if sys.platform == "linux":  # 127.0.0.2 is this machine, too, but not "localhost"
        assert reached("127.0.0.2", server.facts["port"]) == server.container
        os.kill(server.make.pid, signal.SIGKILL)
        server.gone()


def reached(address, port):
    """Whether somebody listens there."""
    try:
        socket.create_connection((address, port), timeout=600).close()
    except ConnectionRefusedError:
        return False
    return True


def test_make_lab_opens_the_copies_and_becomes_the_server():
    """`exec`: a signal that ends `make` must not leave a shell between it and the server."""
    command = ["make", "--no-print-directory", "-n", "lab"]
    dry = completed(command, cwd=ROOT, check=True)
    *_, copies, start = dry.stdout.strip().splitlines()
    assert copies == ".venv/bin/python -m course.copies"
    assert start.strip() == "exec .venv/bin/python -m utils.setup.lab"
