"""What is said once a Hub answers: what is limited, where it is, and how one logs in.

JupyterHub's own process says it, from a thread: an address that is told before somebody answers
there shows an error, and what is told before the Hub's warnings scrolls away.
"""

import os
import ssl
import sys
import threading
import time
import urllib.request

from course.hub import limits
from course.hub.settings import Settings
from utils.gpu_queue import sharing

SAY = "CUDA_COURSE_HUB_SAYS"  # set where somebody sits who reads what the Hub says
PATIENCE = 120  # seconds after which it is said that nothing answers
HUB, BOARD = "hub/health", "services/board/static/live.js"  # what needs no log-in
PAUSE = 0.5  # seconds between two questions


def say_when_ready(hub: Settings, password: str, host: str = "") -> None:
    """Print `first_steps` once Hub and board answer; returns at once.

    password: the first one of accounts that are made now; host: by which the Hub's proxy knows it.
    """

    def wait():
        began = time.monotonic()
        while not answers(hub, host):
            if time.monotonic() - began > PATIENCE:
                print(f"Nothing has answered at {hub.told} for {PATIENCE} s: see above", flush=True)
                break
            time.sleep(PAUSE)
        print(first_steps(hub, password), flush=True)

    threading.Thread(target=wait, daemon=True, name="ready").start()


def answers(hub: Settings, host: str = "") -> bool:
    """Whether the Hub and, where they share an address, its board answer by the proxy."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is this machine
    # First behind the proxy, which would tell of each request that it cannot pass on
    asked = [f"http://127.0.0.1:{hub.hub_port}/{HUB}", f"http://127.0.0.1:{hub.board_port}/{BOARD}"]
    asked += [f"{hub.address}/{path}" for path in ((HUB,) if host else (HUB, BOARD))]
    for address in asked:
        request = urllib.request.Request(address, headers={"Host": host} if host else {})
        try:
            urllib.request.urlopen(request, timeout=5, context=context).close()
        except (OSError, ValueError):
            return False
    return True


def first_steps(hub: Settings, password: str) -> str:
    """What is limited, and last where the Hub is and what to do there."""
    let_in = "" if hub.open else f"; let them in at {hub.told}/hub/authorize"
    limited, unlimited = limits.in_words(hub, limits.has_systemd())
    lines = [
        "\nLimited: " + "; ".join(limited),
        "Not limited: " + "; ".join(unlimited),
        "GPU: " + " ".join(sharing.lines(hub.learners)),
        f"Your institution's accounts (OAuth) and other settings: {hub.own}",
        "Ctrl-C ends the Hub and leaves notebooks at work: `make hub` finds them again, and "
        f"`{sys.executable} -m course.hub stop` ends them",
        f"\nThe Hub: {hub.told}{'' if hub.cert else '  (this machine alone)'}",
        f"  1. {log_in(hub, password)}",
        f"  2. Learners open the address and choose Sign up{let_in}",
        f"  3. The board, on which you land: {hub.told}/services/board/ (it links to the wall)\n",
    ]
    return "\n".join(lines)


def log_in(hub: Settings, password: str) -> str:
    """How whoever teaches logs in. A first password that is told is kept, too: it scrolls away."""
    names = " or ".join(hub.instructors)
    try:
        kept = hub.first_passwords.read_text().split()
    except OSError:
        return f"Log in as {names}"
    if password and password in kept:
        pairs = zip(kept[::2], kept[1::2], strict=True)
        new = " or ".join(name for name, first in pairs if first == password)
        return (
            f"Log in as {new}, password {password}: it is kept in {hub.first_passwords}; "
            f"change it at {hub.told}/hub/change-password"
        )
    return f"Log in as {names}; who has not changed the first password: {hub.first_passwords}"


def is_wanted() -> bool:
    """Whether somebody reads what the Hub says."""
    return bool(os.environ.pop(SAY, ""))
