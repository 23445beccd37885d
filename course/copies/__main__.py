"""``python -m course.copies``: make and renew the learner's copies; see `course.copies`."""

import argparse
import sys
from pathlib import Path

from course.copies import answers, update, workspace


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course.copies")
    parser.add_argument("folder", nargs="?", type=Path, default=workspace.MINE)
    parser.add_argument("--update", action="store_true", help="fetch the newest course first")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write your answers to a file")
    parser.add_argument("--restore", type=Path, metavar="FILE", help="take answers from a file")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    try:
        for line in _do(options, folder):
            print(line, flush=True)
    except (OSError, ValueError, update.Trouble) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _do(options, folder):
    """Do what was asked for; lines that tell of it."""
    if options.update:
        yield from update.adopt(folder)
        yield update.pull()
        return  # what was just fetched renews the copies: another Python
    yield from workspace.refresh(folder)
    if options.restore:
        yield from answers.restore(options.restore, folder)
    if options.export:
        count = answers.export(options.export, folder)
        yield f"{count} cells of yours are in {options.export}"


if __name__ == "__main__":
    sys.exit(main())
