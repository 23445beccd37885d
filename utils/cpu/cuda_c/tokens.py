"""Tokens of preprocessed CUDA C++: the lexical half of the rewrite."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OWN_HEADERS = str(Path(__file__).parent / "include")
TOKEN = re.compile(
    r"""(?P<space>[ \t\f\v\r]+)
      | (?P<newline>\n)
      | (?P<string>(?:u8|u|U|L)?R"(?P<delimiter>[^()\\\s]*)\((?:.|\n)*?\)(?P=delimiter)"
          | (?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*" | (?:u8|u|U|L)?'(?:[^'\\\n]|\\.)*')
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.]|'\w)*)
      | (?P<name>[A-Za-z_$]\w*)
      | (?P<operator><<[ ]?<|::|->|\.\.\.|.)""",
    re.VERBOSE,
)
MARKER = re.compile(r'#(?:line)? (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)')
ENTERING = re.compile(r'^(# \d+ "(?:[^"\\]|\\.)*") [12]((?: \d)*)$', re.MULTILINE)


class RewriteError(Exception):
    """Something that the CPU runtime does not have; `str()` is "file:line: error: ..."."""


@dataclass(slots=True)
class Token:
    kind: str  # name, number, string, operator, raw (text of system headers), pragma
    text: str
    line: int
    file: str
    space: bool  # white space before it
    column: int = 0


Tokens = list[Token]
Findings = Iterator[tuple[Token, str]]  # where, and what nvcc says


def tokenize(preprocessed: str) -> Tokens:
    """Tokens of the learner's lines; each stretch of system text is one `raw` token."""
    tokens: Tokens = []
    file = ""
    line = 1
    own = False
    own_files: set[str] = set()
    chunk: list[str] = []
    start = 1

    def end_chunk():
        nonlocal chunk
        if chunk:
            if own:
                split("\n".join(chunk) + "\n", file, start, tokens)
            else:
                text = ENTERING.sub(r"\1\2", "\n".join(chunk) + "\n")
                tokens.append(Token("raw", text, start, file, False))
        chunk = []

    for text in preprocessed.split("\n"):
        if text.startswith("#"):
            marker = MARKER.match(text)
            if marker:
                # A macro of a system header has its lines marked as system text inside the
                # learner's file too.
                is_own = ("3" not in marker[3].split() or marker[2] in own_files) and not marker[
                    2
                ].startswith("<")
                if is_own:
                    own_files.add(marker[2])
                if is_own or own:
                    end_chunk()
                    file = re.sub(r"\\(.)", r"\1", marker[2])
                    start = int(marker[1])
                    own = is_own
                    line = start
                    if not own:
                        chunk.append(text)
                else:
                    chunk.append(text)
                continue
            if own and text.startswith("#pragma"):
                end_chunk()
                tokens.append(Token("pragma", text, line, file, False))
                line += 1
                start = line
                continue
        chunk.append(text)
        line += 1
    end_chunk()
    return tokens


def split(text: str, file: str, line: int, tokens: Tokens) -> None:
    space, line_start = False, 0
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            space = True
        elif kind == "newline":
            line += 1
            line_start = match.end()
            space = True
        else:
            word = match[0]
            column = match.start() - line_start
            if kind == "delimiter":
                kind = "string"
            elif word == "<< <":
                word = "<<<"
            tokens.append(Token(kind, word, line, file, space, column))
            if kind == "string":
                line += word.count("\n")
            space = False


def triples(tokens: Tokens) -> Iterator[tuple[Token, Token, Token]]:
    """Each token but the first and the last, with its neighbours."""
    return zip(tokens, tokens[1:], tokens[2:], strict=False)


@functools.cache
def is_own(file: str) -> bool:
    """Whether a file is the learner's: neither a header of this engine nor made by a compiler."""
    return not file.startswith((OWN_HEADERS, "<"))


#: How many tokens ahead the rewrite looks without asking whether the file has them
AHEAD = 4
OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = {")": "(", "]": "[", "}": "{"}


def closing(tokens: Tokens, i: int) -> int:
    """Index of the bracket that closes the one at `i`."""
    depth = 0
    for j in range(i, len(tokens)):
        t = tokens[j].text
        if t in OPEN:
            depth += 1
        elif t in CLOSE:
            depth -= 1
            if depth == 0:
                return j
    if tokens[i].text not in OPEN:
        raise error(tokens[i], "a bracket is missing here")
    raise error(tokens[i], f"this '{tokens[i].text}' is never closed")


def opening(tokens: Tokens, i: int) -> int:
    """Index of the bracket that opens the one at `i`."""
    depth = 0
    for j in range(i, -1, -1):
        t = tokens[j].text
        if t in CLOSE:
            depth += 1
        elif t in OPEN:
            depth -= 1
            if depth == 0:
                return j
    return 0


def angle_end(tokens: Tokens, i: int) -> int:
    """Index of the '>' that closes the template arguments opened at `i`, or -1."""
    depth, j = 0, i
    while j < len(tokens):
        t = tokens[j].text
        if t in ("(", "[", "{"):
            j = closing(tokens, j)
        elif t == "<":
            depth += 1
        elif t == ">":
            depth -= 1
            if depth == 0:
                return j
        elif t in (";", ")", "]", "}"):
            return -1
        j += 1
    return -1


def angle_start(tokens: Tokens, i: int) -> int:
    """Index of the '<' that opens the template arguments closed at `i`, or -1."""
    depth, j = 0, i
    while j >= 0:
        t = tokens[j].text
        if t in CLOSE:
            j = opening(tokens, j)
        elif t == ">":
            depth += 1
        elif t == "<":
            depth -= 1
            if depth == 0:
                return j
        elif t in (";", "(", "[", "{"):
            return -1
        j -= 1
    return -1


def split_commas(tokens: Tokens) -> list[Tokens]:
    """Splits at the commas that are outside of brackets and template arguments."""
    parts = []
    part = []
    i = 0
    while i < len(tokens):
        t = tokens[i]
        if t.text in OPEN:
            j = closing(tokens, i)
            part += tokens[i : j + 1]
            i = j + 1
            continue
        if t.text == "<" and i and tokens[i - 1].kind == "name":
            j = angle_end(tokens, i)
            if j > 0:
                part += tokens[i : j + 1]
                i = j + 1
                continue
        if t.text == ",":
            parts.append(part)
            part = []
        else:
            part.append(t)
        i += 1
    return parts + [part] if part or parts else []


def text_of(tokens: Tokens) -> str:
    """The text of some tokens with the spaces that stand between them: `1 << n` stays a shift."""
    return "".join(" " * bool(t.space) + t.text for t in tokens).strip()


def made(text: str, near: Token) -> Token:
    return Token("made", text, near.line, near.file, True, near.column)


def the_end(tokens: Tokens) -> Tokens:
    """Empty tokens for behind the last one, so that whoever looks ahead finds something there."""
    if not tokens:
        return []
    last = tokens[-1]
    return [Token("made", "", last.line, last.file, False, last.column) for _ in range(AHEAD)]


def error(token: Token, message: str) -> RewriteError:
    return RewriteError(f"{token.file}:{token.line}: error: {message}")


def quoted(text: str) -> str:
    """As a string literal of C++."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
