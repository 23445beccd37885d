"""Where a Chromium or Chrome may be: to print the book, and for the tests' browser."""

import shutil
from pathlib import Path

COMMANDS = "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"
MAC_APPS = [
    Path("/Applications") / f"{name}.app/Contents/MacOS/{name}"
    for name in ("Chromium", "Google Chrome")
]


def installed() -> str | None:
    """The path of the first one that this machine has, or None."""
    for command in COMMANDS:
        if found := shutil.which(command):
            return found
    return next((str(path) for path in MAC_APPS if path.is_file()), None)
