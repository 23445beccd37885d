"""What another process is asked: it runs one file of ours, and answers each line with a line.

Compilers are asked there that would find another Numba or Triton in this process.
"""

import ast
import atexit
import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from utils.tools.process import python_environment


class CannotAsk(Exception):
    """The kernel uses something that cannot be told to another process."""


class NoAnswer(Exception):
    """The process ended while it was to answer, twice."""


class Asked:
    """A process that runs `file`, started when it is first wanted and again where it has ended.

    Requests and answers are JSON, one a line; null is answered with null. Copies of this process
    (by os.fork) ask the same one.
    """

    def __init__(self, file: Path, **variables: str):
        self.file = file
        self.variables = variables
        self.process: subprocess.Popen[str] | None = None
        self.cannot_start = False

    def ready(self) -> bool:
        """Whether the process can be asked; it is started where it does not run."""
        if self.cannot_start:
            return False
        if self.process is not None and self.line_for("null"):
            return True
        self.forget()
        self.start()
        self.cannot_start = not self.line_for("null")
        return not self.cannot_start

    def start(self) -> None:
        process = self.process = subprocess.Popen(
            [sys.executable, "-P", str(self.file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=python_environment(**self.variables),
            start_new_session=True,
            text=True,
        )
        atexit.register(process.kill)

    def forget(self) -> None:
        """End the process: whoever asked it may have left before its answer came.

        By its number: a copy of this process ends it, too, though it is not the copy's child.
        """
        process, self.process = self.process, None
        if process is not None:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            atexit.unregister(process.kill)

    def ask(self, request: str) -> Any:
        """The answer to a request in JSON, or None where the process does not start. NoAnswer."""
        for _ in range(2):  # somebody may have ended it
            if not self.ready():
                return None
            answer = self.line_for(request)
            if answer:
                return json.loads(answer)
        raise NoAnswer

    def line_for(self, request: str) -> str:
        """The line that the process answers with; empty where it has ended."""
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            return ""
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
            return process.stdout.readline()
        except OSError:
            return ""
        except BaseException:  # an interrupt, the end of its time
            self.forget()
            raise


def describe(function: FunctionType, functions: dict, described: Callable[[Any, dict], Any]) -> str:
    """Add a function, and those that it calls, to `functions`; the key of its entry there.

    An entry is its name, its source at the lines of its file, the file's name, and what it uses
    from outside, by name, as `described(value, functions)` tells it.
    """
    key = f"{function.__name__} {id(function)}"
    if key in functions:
        return key
    text, source = source_of(function)
    names: dict[str, Any] = {}
    functions[key] = function.__name__, source, function.__code__.co_filename, names
    for name, value in used_by(function, text).items():
        names[name] = described(value, functions)
    return key


def used_by(function: FunctionType, text: str) -> dict:
    """What a function takes from outside, by name: also in functions inside it, in annotations and
    in defaults. text: its source.
    """
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    written = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    outside = written.difference(function.__code__.co_varnames)
    return {name: known[name] for name in sorted(outside) if name in known}


def source_of(function: FunctionType) -> tuple[str, str]:
    """(a function's text without decorators, the same at the lines where its file has it)."""
    lines, first = inspect.getsourcelines(function)
    start = next((n for n, line in enumerate(lines) if line.lstrip().startswith("def ")), None)
    if start is None:  # a lambda
        raise CannotAsk
    text = textwrap.dedent("".join(lines[start:]))
    return text, "\n" * (max(first, 1) + start - 1) + text
