"""The board as the Hub starts it: ``python -m course.hub.board FILE``, FILE being its SQLite file.

Address, names and secrets come from the Hub, in variables. It ends with the Hub, however that ends:
the next Hub starts another.
"""

import asyncio
import ctypes
import logging
import os
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

from course.hub.board import app
from course.hub.board.store import Store

PR_SET_PDEATHSIG = 1  # as <sys/prctl.h> numbers it


async def serve(file: Path) -> None:
    """Serve until the process ends."""
    from jupyterhub.services.auth import HubOAuthCallbackHandler, HubOAuthenticated

    address = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    store = Store(file)
    application = app.application(
        store,
        HubOAuthenticated,
        prefix,
        more=[(prefix + "oauth_callback", HubOAuthCallbackHandler)],
        cookie_secret=store.cookie_secret(),
        xsrf_cookies=True,
    )
    application.listen(address.port, address.hostname, max_buffer_size=app.LARGEST)
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # of which the Hub sends the first
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    await over.wait()
    logging.disable()  # pages that are cut off now would each be told
    store.close()


def main(arguments: list[str]) -> int:
    """Command line; returns the exit status."""
    hub = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != hub:  # it ended meanwhile
        return 1
    # A line for each page that is opened would hide what the Hub says where somebody teaches
    logging.basicConfig(level=logging.ERROR)
    (file,) = arguments
    asyncio.run(serve(Path(file)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
