"""Text for learners: Markdown that a notebook renders and a terminal prints, and code in HTML."""

import html
import re
from collections.abc import Callable

#: Words between two pairs of stars, as Markdown sets them off
STRONG = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^*]+)(?<=[^\s*])\*\*(?![\w*])")
#: Words between two stars; no product of two things
EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+)(?<=[^\s*])\*(?![\w*])")

#: Of C and CUDA C
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

#: What a check offers who is stuck, of an exercise and a seed; a page that runs says it otherwise
STUCK = 'Stuck? exercises.hint("{}")'
AGAIN = "The same inputs again: check(..., seed={})"


class Note:
    """Markdown text; its repr is the text itself."""

    def __init__(self, markdown: str):
        self.markdown = markdown

    def __repr__(self) -> str:
        return self.markdown

    def _repr_markdown_(self) -> str:
        return self.markdown


def shown(value: object, how: Callable[[object], str] = repr) -> str:
    """A value of an answer's as text; words on it where Python cannot write it, or its class."""
    try:
        return how(value)
    except Exception:
        return f"something of type {type(value).__name__} that cannot be shown"


def marked_up(text: str) -> str:
    """Escaped HTML in which `code` is set as code, *words* are emphasized, **words** strong."""
    parts = html.escape(text).split("`")
    parts[1::2] = (f"<code>{part}</code>" for part in parts[1::2])
    parts[::2] = (STRONG.sub(r"<strong>\1</strong>", part) for part in parts[::2])
    parts[::2] = (EMPHASIS.sub(r"<em>\1</em>", part) for part in parts[::2])
    return "".join(parts)
