"""A real browser for the tests: Chromium or Chrome without a window, driven by Playwright, and
JupyterLab to open in it.

`browser` and `page` are fixtures, known to every test. Where no browser is installed they skip the
test, and the run's last lines say how to get one. On a CI server (CI=true) they fail: there the
tests must run, and `.ci/browser` installs one.
"""

import contextlib
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from course.publish import browsers
from utils.files import ROOT
from utils.setup import lab
from utils.setup.install import LAB_ADDITIONS, LAB_SETTINGS

SCREENSHOTS = ROOT / "build" / "screenshots"
VIEWPORT = {"width": 1280, "height": 720}
PATIENCE = 240  # seconds for whatever a test waits for: a busy machine is ten times slower
MISSING = (
    "no browser for this test: `sudo apt install chromium` (Debian, Ubuntu), Google Chrome, "
    "or `.venv/bin/playwright install chromium`"
)


def installed_chromium():
    """The path of a Chromium or Chrome on this machine, Playwright's own download included, or
    None.
    """
    if found := browsers.installed():
        return found
    with playwright() as driver:
        own = Path(driver.chromium.executable_path)
    return str(own) if own.is_file() else None


def on_ci():
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def playwright():
    """Playwright, for a `with` block."""
    from playwright.sync_api import sync_playwright

    return sync_playwright()


# No longer than a module: until it ends, nothing else in this process can run an event loop
@pytest.fixture(scope="module")
def browser():
    """A Chromium without a window (Playwright's `Browser`), one a test module."""
    path = installed_chromium()
    if path is None:
        (pytest.fail if on_ci() else pytest.skip)(MISSING)
    from playwright.sync_api import expect

    expect.set_options(timeout=1000 * PATIENCE)
    with playwright() as driver:
        # Containers give Chromium neither a sandbox of its own nor much shared memory.
        started = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def shared_page(browser):
    """To open a page costs a third of a second of a core: the tests of a module share one."""
    with new_page(browser) as page:
        yield page


@pytest.fixture
def page(shared_page, request):
    """A page of 1280 × 720 with nothing in its storage, to open something in it (Playwright's
    `Page`). A test that fails keeps what it saw last.
    """
    with kept_if_one_fails(shared_page, request):
        yield shared_page
    reset(shared_page)


@contextlib.contextmanager
def new_page(browser, **options):
    """A page with storage of its own. options: more of its context's, as Playwright names them."""
    context = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce", **options)
    context.set_default_timeout(1000 * PATIENCE)
    yield context.new_page()
    context.close()


@contextlib.contextmanager
def kept_if_one_fails(page, request):
    """A picture of what a test, or the last one of a module, saw, when any has failed meanwhile."""
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        keep(page, f"failed_{request.node.name}")


def reset(page):
    """What a test may have changed is as it was: only what is open stays."""
    page.evaluate("try { localStorage.clear() } catch {}")
    page.context.clear_cookies()
    page.context.set_offline(False)
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(media="null", color_scheme="null", reduced_motion="reduce")
    page.mouse.move(0, 0)


def keep(page, name, **options):
    """Keep a screenshot as build/screenshots/NAME.png, to look at after the test."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", **options)


# ---- JupyterLab

JUPYTER_FOLDERS = "CONFIG", "DATA", "RUNTIME"
LAB_FOLDERS = "SETTINGS", "WORKSPACES"


@contextlib.contextmanager
def jupyterlab(folder, settings=None, **environment):
    """JupyterLab for the notebooks in `folder`, with the course's settings and none of the user's
    own: yields its address with the token, such as http://127.0.0.1:8899/lab?token=1a2b. All that
    it started is gone at the end.

    settings: more of them, {plugin: {name: value}}, such as
        {"@jupyterlab/notebook-extension:tracker": {…}}.
    environment: more variables for the server and its kernels.
    """
    # A kernel that outlives its server for a moment may write while the folder is removed
    with tempfile.TemporaryDirectory(
        prefix="cuda-course-lab-", ignore_cleanup_errors=True
    ) as scratch:
        write_settings(Path(scratch, "lab", "settings"), {**LAB_SETTINGS, **(settings or {})})
        token = secrets.token_hex(8)
        port = free_port()
        log = Path(scratch, "log")
        with open(log, "wb") as out:
            server = subprocess.Popen(
                server_command(folder, port, token),
                cwd=folder,
                env={**os.environ, **places(scratch), **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_for(f"http://127.0.0.1:{port}/api?token={token}", server, log)
            yield f"http://127.0.0.1:{port}/lab?token={token}"
        finally:
            end(server)


def places(scratch):
    """The variables by which all that JupyterLab keeps lies in one folder."""
    own = {f"JUPYTER_{kind}_DIR": f"{scratch}/{kind.lower()}" for kind in JUPYTER_FOLDERS}
    own |= {f"JUPYTERLAB_{kind}_DIR": f"{scratch}/lab/{kind.lower()}" for kind in LAB_FOLDERS}
    return {**own, "IPYTHONDIR": f"{scratch}/ipython", "JUPYTER_PATH": str(LAB_ADDITIONS)}


def write_settings(folder, settings):
    """Write JupyterLab's settings, {plugin: {name: value}}, as a user's."""
    for plugin, values in settings.items():
        path, name = plugin.split(":")
        file = folder / path / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))


def server_command(folder, port, token):
    """The command that starts JupyterLab as `make lab` does, without a browser of its own."""
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        *lab.flags(root=False, container=False),
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        f"--notebook-dir={folder}",
    ]


def free_port():
    """A free port below those that systems give to whoever asks for any: until the server takes it,
    seconds later, no other process comes by it.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_for(url, server, log, seconds=PATIENCE):
    """Wait until the address answers; a server that ends or is silent for too long is an error with
    its last words.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=seconds):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError("JupyterLab did not start:\n" + log.read_text(errors="replace")[-2000:])


def end(server):
    """End the server, which ends its kernels, and then whatever is left of its process group."""
    server.terminate()
    try:
        server.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
