"""Inline PTX, read: the template of an `asm` statement as instructions with their operands.

What the instructions mean in C++ stands in `ptx_to_cpp.py`. Source of the syntax: PTX ISA,
"Syntax", and CUDA's "Inline PTX Assembly in CUDA". Registers of a template live in its braces; a
label is known in the whole template.
"""

import re
from dataclasses import dataclass, field

ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "0": "\0",
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
LABEL = re.compile(r"\s*([A-Za-z_$%][\w$%=]*)\s*:(?!:)")
GUARD = re.compile(r"@(!?)\s*([\w%$]+)\s+")
WORD = re.compile(r"[\w.:%$]+")
REGISTERS = re.compile(r"([\w$%]+)(?:<(\d+)>)?$")
OPENING = "{[("
CLOSING = "}])"


class PtxError(Exception):
    """A template that is not understood; the message says what of it."""


@dataclass(frozen=True)
class Address:
    """[base + offset], or [base, {coordinates}] of a tensor map."""

    base: str
    offset: int = 0
    coordinates: tuple[str, ...] = ()


@dataclass
class Instruction:
    """One instruction: `opcode` with its modifiers, its operands as they stand.

    An operand is a name (of a register, an operand `%3` or a constant), an Address, a list of
    names in braces, or a pair `p|q`. guard: the predicate and whether it is negated, or None.
    """

    opcode: str
    operands: list = field(default_factory=list)
    guard: tuple[str, bool] | None = None

    @property
    def words(self) -> list[str]:
        """The opcode's parts: mbarrier, try_wait, parity, shared::cta, b64."""
        return self.opcode.split(".")


@dataclass
class Label:
    """A place that a branch goes to."""

    name: str


@dataclass
class Template:
    """What a template does, in its order, and its registers: name in C++ -> PTX type."""

    body: list
    registers: dict[str, str]


def unescaped(literals: list[str]) -> str:
    """The text of adjacent string literals of C++."""
    text = ""
    for literal in literals:
        raw = re.fullmatch(r'R"([^()\\\s]*)\((.*)\)\1"', literal, re.DOTALL)
        if raw:
            text += raw[2]
            continue
        inside = literal[literal.index('"') + 1 : -1]
        text += re.sub(
            r"\\(.)",
            lambda m: ESCAPES.get(m[1], m[1]),
            inside,
            flags=re.DOTALL,
        )
    return text


def split_operands(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts = []
    depth = 0
    part = ""
    for character in text:
        depth += (character in OPENING) - (character in CLOSING)
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return [*parts, part.strip()] if part.strip() or parts else []


def operand(text: str):
    """An operand as Instruction has it."""
    if text.startswith("{"):
        if not text.endswith("}"):
            raise PtxError(f"the operand '{text}' is not understood")
        return split_operands(text[1:-1])
    if text.startswith("["):
        return address(text)
    if "|" in text:
        return tuple(part.strip() for part in text.split("|"))
    return text


def address(text: str) -> Address:
    """[base], [base + 16] or [map, {x, y}]."""
    if not text.endswith("]"):
        raise PtxError(f"the address '{text}' is not understood")
    parts = split_operands(text[1:-1])
    match = re.fullmatch(r"([\w%$]+)\s*(?:([+-])\s*(?:-\s*)?(\w+))?", parts[0])
    if not match or len(parts) > 2:
        raise PtxError(f"the address '{text}' is not understood")
    offset = int(match[3], 0) if match[3] else 0
    if match[2] == "-" or match[2] == "+" and re.search(r"\+\s*-", parts[0]):
        offset = -offset
    coordinates = tuple(split_operands(parts[1].strip("{} "))) if len(parts) == 2 else ()
    return Address(match[1], offset, coordinates)


class Reader:
    """Reads one template. `read` gives its Template."""

    def __init__(self, text: str):
        # one percent sign may stand where two belong: nvcc takes both
        self.text = COMMENT.sub(" ", text).replace("%%", "%").replace("%=", "")
        self.scopes: list[dict[str, str]] = [{}]
        self.registers: dict[str, str] = {}
        self.body: list = []

    def read(self) -> Template:
        at = 0
        while True:
            at += len(self.text[at:]) - len(self.text[at:].lstrip())
            if at >= len(self.text):
                break
            at = self.statement(at)
        if len(self.scopes) != 1:
            raise PtxError("a '{' of this template is never closed")
        return Template(self.body, self.registers)

    def statement(self, at: int) -> int:
        """Reads what begins at `at`; where the next one begins."""
        character = self.text[at]
        if character == "{":
            self.scopes.append({})
            return at + 1
        if character == "}":
            if len(self.scopes) == 1:
                raise PtxError("a '}' of this template was never opened")
            self.scopes.pop()
            return at + 1
        if character == ";":
            return at + 1
        label = LABEL.match(self.text, at)
        if label:
            self.body.append(Label(label[1]))
            return label.end()
        end = self.text.find(";", at)
        end = len(self.text) if end < 0 else end
        text = self.text[at:end].strip()
        if text.startswith("."):
            self.directive(text)
        else:
            self.body.append(self.instruction(text))
        return end + 1

    def directive(self, text: str) -> None:
        words = text.split(None, 2)
        if words[0] == ".pragma" or words[0] == ".loc":
            return
        if words[0] != ".reg" or len(words) < 3:
            raise PtxError(f"the directive '{text}'")
        for name in split_operands(words[2]):
            match = REGISTERS.match(name)
            if not match:
                raise PtxError(f"the directive '{text}'")
            names = [match[1]]
            if match[2]:
                names = [f"{match[1]}{i}" for i in range(int(match[2]))]
            for one in names:
                self.declare(one, words[1].lstrip("."))

    def declare(self, name: str, kind: str) -> None:
        plain = re.sub(r"\W", "_", name)
        known = f"cuda_cpu_r{len(self.registers)}_{plain}"
        self.scopes[-1][name] = known
        self.registers[known] = kind

    def instruction(self, text: str) -> Instruction:
        guard = None
        match = GUARD.match(text)
        if match:
            guard = self.named(match[2]), match[1] == "!"
            text = text[match.end() :]
        word = WORD.match(text)
        if not word:
            raise PtxError(f"'{text}' is not understood")
        operands = [self.resolved(operand(o)) for o in split_operands(text[word.end() :])]
        return Instruction(word[0], operands, guard)

    def named(self, name: str) -> str:
        """A register by its name in C++; anything else as it is."""
        negative = name.startswith("!")
        bare = name.lstrip("!").strip()
        for scope in reversed(self.scopes):
            if bare in scope:
                return ("!" if negative else "") + scope[bare]
        return name

    def resolved(self, what):
        if isinstance(what, list):
            return [self.resolved(part) if part[:1] in "{[" else self.named(part) for part in what]
        if isinstance(what, tuple):
            return tuple(map(self.named, what))
        if isinstance(what, Address):
            coordinates = tuple(map(self.named, what.coordinates))
            return Address(self.named(what.base), what.offset, coordinates)
        return self.named(what)


def parse(text: str) -> Template:
    """The instructions of a template's text. Raises PtxError."""
    return Reader(text).read()
