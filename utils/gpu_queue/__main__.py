"""``python -m utils.gpu_queue``: how this machine's GPUs are shared; see `utils.gpu_queue`."""

import argparse
import sys
from pathlib import Path

from utils.gpu_queue import FOLDER, sharing
from utils.gpu_queue.tickets import make_folder


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m utils.gpu_queue")
    parser.add_argument("--learners", type=int, default=30, help="of the class")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="make the queue's folder")
    options = parser.parse_args(arguments)
    if options.make:
        try:
            make_folder(options.make)
        except OSError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        print(f"learners' servers need this variable: {FOLDER}={options.make.resolve()}")
    for line in sharing.lines(options.learners):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
