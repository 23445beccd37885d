"""What a bench found, kept in a file from the first result on, errors among it."""

import argparse
import json
import time
import traceback
from pathlib import Path

from utils import results
from utils.engine import gpu, has_gpu


class Log:
    """The results so far, in a file and on the screen; knows how much time is left.

    path: of the file, JSON, written again after each entry. budget: seconds. more: empty lists and
    dicts that the file has beside `results`, `errors` and `lines`.
    """

    def __init__(self, path: Path, budget: float, **more):
        self._path = path
        self._end = time.monotonic() + budget
        self.content = {
            "results": [],
            "errors": [],
            "lines": [],
            **more,
        }

    def left(self) -> float:
        """Seconds left of the budget."""
        return self._end - time.monotonic()

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        spread: float = 0.0,
    ) -> None:
        """Keep a result, and hand it to the recording command, if one is running."""
        entry = {
            "name": name,
            "value": float(value),
            "unit": unit,
            "spread": float(spread),
            **stamp(),
        }
        self.content["results"].append(entry)
        results.append(entry)
        self.write()

    def say(self, line: str) -> None:
        """Print a line, and keep it."""
        print(line, flush=True)
        self.content["lines"].append(line)
        self.write()

    def attempt(self, what: str, function, *arguments):
        """function's result, or None after an error, which is written down."""
        try:
            return function(*arguments)
        except Exception:
            text = traceback.format_exc()
            self.content["errors"].append(
                {
                    "what": what,
                    "error": text[-6000:],
                }
            )
            last_line = text.strip().splitlines()[-1]
            self.say(f"FAILED {what}: {last_line[:300]}")
            return None

    def write(self) -> None:
        """Write all of it to the file."""
        self._path.write_text(json.dumps(self.content, indent=1))


def command_line(doc: str, budget: float) -> argparse.ArgumentParser:
    """A bench's command line, without the options of its own. doc: its module's."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=budget, help="seconds")
    return parser


def stamp() -> dict:
    """On which GPU, with what and when a result was measured; nothing without a GPU."""
    if not has_gpu():
        return {}
    return {
        "gpu": gpu().name,
        "driver": gpu().driver,
        "date": results.now(),
        "versions": results.versions(),
    }
