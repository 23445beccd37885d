"""A kernel's mistake, named with its line and the program that made it."""

import linecache
import sys
from pathlib import Path
from types import FrameType

import numpy as np

_OURS = str(Path(__file__).parent), str(Path(__file__).parents[2] / "tracer")
_THEIRS = ("/triton/runtime/", "/triton/language/", "/numpy/", "/contextlib.py")


class KernelMistake(Exception):
    """What a Triton kernel did that a GPU would do wrong without a word.

    kind: "outside", "undefined", "race", "overflow", "assertion", "deadlock". line: of the file or
    cell. program: its place in the grid, (x, y, z).
    """

    def __init__(
        self,
        kind: str,
        what: str,
        line: int | None,
        program: tuple | None,
    ):
        super().__init__(what)
        self.kind = kind
        self.line = line
        self.program = program


class Place:
    """A line of a kernel: where the interpreter is now."""

    def __init__(self, line: int | None = None, text: str = "", file: str = "", code: int = 0):
        """code: which of the instructions of the line."""
        self.line = line
        self.text = text
        self.file = file
        self.code = code

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else "an unknown line"


def here() -> Place:
    """The innermost line that is the kernel's own, neither Triton's nor ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS) and not any(part in file for part in _THEIRS):
            text = linecache.getline(file, frame.f_lineno).strip()
            return Place(frame.f_lineno, text, file, frame.f_lasti)
        frame = frame.f_back
    return Place()


def named(program: tuple) -> str:
    """program 3, or program (3, 1) in a grid of more dimensions."""
    used = program
    while len(used) > 1 and used[-1] == 0:
        used = used[:-1]
    return f"program {used[0]}" if len(used) == 1 else f"program {used}"


def mistake(
    kind: str, what: str, program: tuple | None, place: Place | None = None
) -> KernelMistake:
    """A mistake of this place, or of the line that the interpreter is at."""
    place = place or here()
    who = named(program) if program else "the kernel"
    return KernelMistake(kind, f"{who}, {place}\n{what}", place.line, program)


def count_of(flags: np.ndarray, what: str) -> str:
    """3 elements, 1 element."""
    count = int(np.count_nonzero(flags))
    return f"{count} {what}" + ("" if count == 1 else "s")
