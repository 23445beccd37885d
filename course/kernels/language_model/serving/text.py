"""Between text and tokens, piece by piece: letters that are split, words at which to stop."""

import codecs
from typing import Protocol


class Tokens(Protocol):
    """What a server needs of a vocabulary, such as `language_model.tokens.Tokens`.

    pieces: the bytes of each token; letters of several bytes may be split between tokens.
    """

    pieces: list[bytes]

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""


class ByteTokens:
    """A token for each byte of UTF-8."""

    pieces = [bytes([value]) for value in range(256)]

    def encode(self, text: str) -> list[int]:
        """See Tokens."""
        return list(text.encode())


class Writing:
    """A text that grows by tokens, and stops before the first of some words."""

    def __init__(self, tokens: Tokens, stops: tuple[str, ...] = ()):
        self._tokens, self._stops = tokens, stops
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # what may be the beginning of a stop
        self.has_stopped = False

    def add(self, token: int) -> str:
        """What can be shown now: no half of a letter, and nothing that may belong to a stop."""
        return self._shown(self._decoder.decode(self._tokens.pieces[token]))

    def rest(self) -> str:
        """What was held back, at the end."""
        return self._shown(self._decoder.decode(b"", final=True), is_end=True)

    def _shown(self, piece: str, is_end: bool = False) -> str:
        if self.has_stopped:
            return ""
        text = self._held + piece
        ends = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if ends:
            self.has_stopped = True
            return text[: min(ends)]
        held = 0 if is_end else max((overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


def overlap(text: str, stop: str) -> int:
    """How many of a text's last letters are the first letters of a stop, but not all of it."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
