"""Sending to the board, in a thread of its own: no cell waits for it, and none sees it fail."""

import json
import os
import threading
import urllib.error
import urllib.request

from course.classroom import membership, outbox

TIMEOUT = 5  # seconds for one request
FIRST_PAUSE, LONGEST_PAUSE = 1, 30  # seconds between attempts while the board is away
DONE = (204, 400, 413)  # the board has it, or cannot read it, and will not later
NOT_JOINED = 409  # the board knows nothing of this learner
OVER = 410  # the board has forgotten the class that they joined

_something_to_send = threading.Event()
_starting = threading.Lock()
_thread = None


def join(named: bool) -> bool:
    """Tell the board that the learner joins; whether it heard."""
    status, reply = _request("api/join", {"named": named})
    if status == 200:
        membership.join(named, str(reply.get("class", "")), str(reply.get("label", "")))
    return status == 200


def leave() -> bool:
    """Tell the board to delete what it keeps of the learner; whether it heard."""
    return _request("api/leave", {})[0] in DONE


def hurry() -> None:
    """Send what waits, soon. Returns at once."""
    global _thread
    _something_to_send.set()
    with _starting:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_send_for_ever, daemon=True, name="to the board")
            _thread.start()


def send_all() -> bool:
    """Send what waits, batch after batch; whether nothing is left.

    A learner who joined while the board was away joins now. Who joined a class that is over, or
    left it in another way, is no more in one: nobody is taken into the next class unasked.
    """
    while membership.joined():
        events = outbox.waiting()
        if not events:
            return True
        known = membership.class_id()
        status, _ = _request("api/events", {"class": known, "events": events})
        if status == OVER or (status == NOT_JOINED and known):
            membership.leave()
            outbox.empty()
        elif status == NOT_JOINED and join(membership.named()):
            continue
        elif status not in DONE:
            return False
        outbox.sent(events)
    return True


def _send_for_ever() -> None:
    pause = FIRST_PAUSE
    while True:
        _something_to_send.wait()
        _something_to_send.clear()
        while not send_all():
            # News may come meanwhile: it does not make the board answer any sooner
            threading.Event().wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        pause = FIRST_PAUSE


def _request(path: str, content: dict) -> tuple[int, dict]:
    """Send content as JSON; (status, JSON of the reply), 0 where none came."""
    request = urllib.request.Request(
        membership.board() + path,
        data=json.dumps(content).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": f"token {os.environ.get(membership.TOKEN, '')}",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
            return reply.status, json.loads(reply.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, {}
    except (OSError, ValueError):
        return 0, {}
