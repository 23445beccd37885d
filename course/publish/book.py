"""The course as a book: all chapters in one PDF with an outline, to print or to read offline.

    python -m course.publish.book [FILE]          (`make book`, into build/book.pdf)

Sphinx makes one page of the website's pages, and Chromium or Chrome prints it, in the style that
the website's pages are printed in.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from course.publish import browsers, site
from utils.files import ROOT

MINUTES = 30  # for a browser to lay out so long a page


def printing(browser: str, folder: Path) -> list[str]:
    """The command with which a browser prints a folder's index.html into its book.pdf."""
    return [
        browser,
        "--headless",
        "--no-sandbox",  # it opens nothing but our own page, also as root in a container
        "--disable-gpu",
        f"--user-data-dir={folder / 'browser'}",  # one that is open keeps the reader's own
        "--generate-pdf-document-outline",
        "--no-pdf-header-footer",
        f"--print-to-pdf={folder / 'book.pdf'}",
        (folder / "index.html").as_uri(),
    ]


def write(file: Path) -> None:
    """Print the course into a PDF. ValueError for problems of the pages, or of the browser."""
    browser = browsers.installed()
    if browser is None:
        raise ValueError(f"no browser that prints: install one of {', '.join(browsers.COMMANDS)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    build = ROOT / "build"  # a Chromium that is a snap does not see /tmp
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="book-", dir=build, ignore_cleanup_errors=True
    ) as folder:
        site.build(Path(folder), builder="singlehtml")
        shutil.move(printed(browser, Path(folder)), file)


def printed(browser: str, folder: Path) -> Path:
    """The PDF that a browser has printed of a folder's index.html; ValueError without one."""
    try:
        done = subprocess.run(
            printing(browser, folder),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60 * MINUTES,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{browser} had not printed after {MINUTES} minutes") from None
    book = folder / "book.pdf"
    if done.returncode or not book.is_file():
        raise ValueError(f"{browser} printed nothing:\n{done.stderr[-2000:]}")
    return book


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course.publish.book", description=__doc__.splitlines()[0]
    )
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / "build" / "book.pdf")
    file = parser.parse_args().file
    try:
        write(file)
    except ValueError as error:
        sys.exit(f"error: {error}")
    print(file)


if __name__ == "__main__":
    main()
