"""Conversions that nobody wrote follow PTX's rules, too: `int n = x;` of a float.

    int n = x;             ->  int n = ::cuda_cpu::Stored<int>::of((x));
    a[i] = x;              ->  a[i] = ::cuda_cpu::Stored<decltype(a[i])>::of((x));
    n += x;                ->  n += ::cuda_cpu::by += x;
    return x;              ->  return ::cuda_cpu::Stored<int>::of((x));
    f(x)                   ->  f(::cuda_cpu::Stored<int>::of((x)))

Nothing is parsed as C++: declarations of integers are found by their words, and what is put around
an expression does nothing where no float becomes an integer. Not seen are arguments of overloaded
functions and members, and what a class converts.
"""

from itertools import pairwise

from .arithmetic import ALIASES, INTEGERS
from .tokens import CLOSE, OPEN, Token, Tokens, angle_end, closing, made, opening, triples

QUALIFIERS = {"const", "volatile", "static", "__shared__", "register", "constexpr", "extern"}
OF_POINTERS = {"*", "&", "const", "__restrict__", "__restrict", "volatile"}
#: Before a name these words say no type
NO_TYPES = """
    return else case goto new delete throw typename struct class union enum using typedef template
    operator public private protected do if while for switch default sizeof namespace
""".split()
ENDS_DECLARATOR = {"=", ";", ",", ")", "[", "(", "{", ":"}
INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "sizeof"}
#: A name after these is a member, one of a namespace, or a declaration
BEFORE_NO_CALL = {".", ":", ">", "*", "&", "::", "->"}
PLAIN_OPERATORS = set("+-*/%&|^~()[].<>=!?:")
ASSIGNING = {"+", "-", "*", "/"}
#: Before one of these a `>` compares nothing but ends template arguments: `is_same_v<T, int>;`
AFTER_TEMPLATE = {"(", "::", "{", ")", "]", "}", ";", ",", "?", ":", ".", "/", "%", "|", "^"}
#: Before `=` these make a comparison, or an assignment that takes integers only
NOT_ASSIGNING = {"=", "!", "<", ">", "%", "&", "|", "^"}


class Names:
    """What the tokens of a source declare: `integers` (their types), `others`, and so on."""

    def __init__(self, tokens: Tokens):
        self.tokens = tokens
        self.sure = INTEGERS | ALIASES | _aliases(tokens)
        self.words = self.sure | _template_parameters(tokens)
        self.bit_fields = _bit_fields(tokens)
        self.integers, _ = self.declared(0, len(tokens))

    def declared(self, start: int, end: int) -> tuple[set[str], set[str]]:
        """(names of what may be an integer, a pointer to one or an array; of what may not)."""
        integers = set()
        others = set()
        tokens = self.tokens
        for i in range(start, end - 2):
            word = tokens[i]
            if word.kind != "name" or word.text in NO_TYPES:
                continue
            after = tokens[i + 1]
            if after.kind != "name" and after.text not in OF_POINTERS:  # quickly said of most
                continue
            at = _after_pointers(tokens, i + 1)
            if not _declares(tokens, at):
                continue
            name = tokens[at].text
            qualified = tokens[i - 1].text == "::"
            kind = "::" if qualified else word.text
            if kind in self.words:
                integers.add(name)
            if kind not in self.sure:
                others.add(name)
        return integers, others


def _bit_fields(tokens: Tokens) -> set[str]:
    """Names before a colon and a number: `unsigned flags : 3`."""
    found = set()
    for name, colon, width in triples(tokens):
        if colon.text != ":" or width.kind != "number":
            continue
        if name.kind == "name":
            found.add(name.text)
    return found


def _aliases(tokens: Tokens) -> set[str]:
    """Names that typedef and using give to integers."""
    found = set()
    for i, t in enumerate(tokens):
        if t.kind != "name":
            continue
        if t.text == "typedef":
            j = i + 1
            while tokens[j].text in INTEGERS:
                j += 1
            name = tokens[j]
            if j == i + 1 or name.kind != "name":
                continue
            if tokens[j + 1].text == ";":
                found.add(name.text)
        elif t.text == "using" and tokens[i + 2].text == "=":
            if tokens[i + 3].text in INTEGERS:
                found.add(tokens[i + 1].text)
    return found


def _template_parameters(tokens: Tokens) -> set[str]:
    """Names of types in templates: each may stand for an integer."""
    found: set[str] = set()
    for i, t in enumerate(tokens):
        if t.text == "template" and tokens[i + 1].text == "<":
            close = angle_end(tokens, i + 1)
            found |= _type_parameters(tokens[i + 1 : close + 1])
    return found


def _type_parameters(parameters: Tokens) -> set[str]:
    return {
        b.text
        for a, b in pairwise(parameters)
        if a.text in ("class", "typename") and b.kind == "name"
    }


def _after_pointers(tokens: Tokens, i: int) -> int:
    while i < len(tokens) and tokens[i].text in OF_POINTERS:
        i += 1
    return i


def _declares(tokens: Tokens, name: int) -> bool:
    """Whether the token at `name` is a name that is declared there, judged by what follows."""
    if name + 1 >= len(tokens):
        return False
    word = tokens[name]
    if word.kind != "name" or word.text in NO_TYPES:
        return False
    return tokens[name + 1].text in ENDS_DECLARATOR


def end_of_expression(tokens: Tokens, i: int) -> int:
    """Index of the comma, semicolon or bracket that ends the expression at `i`."""
    while i < len(tokens):
        t = tokens[i]
        if t.text in OPEN:
            i = closing(tokens, i)
        elif t.text in CLOSE or t.text in (",", ";"):
            return i
        elif t.kind in ("raw", "pragma"):
            return i
        elif t.text == "<" and tokens[i - 1].kind == "name":
            close = angle_end(tokens, i)
            if close > 0 and _ends_template(tokens, close):
                i = close
        i += 1
    return i


def _ends_template(tokens: Tokens, close: int) -> bool:
    after = tokens[close + 1].text
    doubled = after in ("&", "=") and tokens[close + 2].text == after
    return doubled or after in AFTER_TEMPLATE


class Implicit:
    """Puts PTX's conversions into the device functions of a source."""

    def __init__(self, tokens: Tokens):
        self.tokens = tokens
        self.names = Names(tokens)
        self.insertions: list[tuple[int, Token]] = []
        self.functions = self.signatures()
        self.local: set[str] = set()

    def rewrite(self, start: int, end: int) -> None:
        """Notes what is to be inserted into the function whose body is tokens[start:end]."""
        head = _parameters(self.tokens, start)
        maybe, others = self.names.declared(head, end)
        self.local = maybe - others
        self.integers = (self.names.integers - others) | maybe
        i = start
        while i < end:
            t = self.tokens[i]
            if t.text == "=" and t.kind == "operator":
                self.assignment(i)
            elif t.kind == "name" and self.tokens[i + 1].text == "(":
                self.call(i)
            i += 1
        self.returns(start, end)

    def insert(self) -> None:
        """Inserts all that was noted."""
        for at, token in sorted(self.insertions, key=lambda pair: pair[0], reverse=True):
            self.tokens.insert(at, token)

    def wrap(self, start: int, kind: str) -> None:
        """Puts the conversion to `kind` around the expression that begins at `start`."""
        end = end_of_expression(self.tokens, start)
        if not self.may_be_float(start, end):
            return
        first = self.tokens[start]
        last = self.tokens[end - 1]
        opens = made(f"::cuda_cpu::Stored<{kind}>::of((", first)
        closes = made("))", last)
        self.insertions.append((end, closes))
        self.insertions.append((start, opens))

    def may_be_float(self, start: int, end: int) -> bool:
        """False where all names are of integers and no number has a point."""
        words = self.tokens[start:end]
        if not words or words[0].text == "{" or words[0].kind == "string":
            return False
        if len(words) == 1 and words[0].text in ("NULL", "nullptr", "__null"):
            return False
        for i in range(start, end):
            if self.unsure(self.tokens[i], self.tokens[i - 2]):
                return True
        return False

    def unsure(self, word: Token, before: Token) -> bool:
        """`before` is the token before the point, if there is one."""
        if word.kind == "name":
            if word.text in ("x", "y", "z") and before.text in INDICES:
                return False
            return word.text not in self.local | INDICES | INTEGERS
        if word.kind == "number":
            hexadecimal = word.text.lower().startswith("0x")
            marks_of_float = set(".eEfF") & set(word.text)
            return bool(marks_of_float) and not hexadecimal
        return word.text not in PLAIN_OPERATORS

    # ---- = and its like
    def assignment(self, i: int) -> None:
        tokens = self.tokens
        before = tokens[i - 1]
        if tokens[i + 1].text == "=" or before.text in NOT_ASSIGNING or self.of_enum(i):
            return
        compound = before.text in ASSIGNING and not tokens[i].space
        last = i - 2 if compound else i - 1
        first = self.left_side(last)
        if first is None:
            return
        kind = self.declared_type(first, last)
        if kind and not compound:
            self.wrap(i + 1, kind)
        elif kind is None and self.is_integer(last):
            if not compound:
                target = tokens[first : last + 1]
                left = "".join(" " * t.space + t.text for t in target)
                self.wrap(i + 1, f"decltype({left.strip()})")
            elif self.may_be_float(i + 1, end_of_expression(tokens, i + 1)):
                text = f"::cuda_cpu::by {before.text}="
                operator = made(text, tokens[i + 1])
                self.insertions.append((i + 1, operator))

    def of_enum(self, i: int) -> bool:
        """Whether this "=" gives an enumerator its value."""
        tokens = self.tokens
        i -= 2
        while tokens[i].text not in ("{", "}", ";"):
            i = opening(tokens, i) - 1 if tokens[i].text in CLOSE else i - 1
        return tokens[i].text == "{" and "enum" in (t.text for t in tokens[max(i - 5, 0) : i])

    def left_side(self, last: int) -> int | None:
        """Where the name, element or member that ends at `last` begins; None if it is none."""
        tokens = self.tokens
        i = last
        while True:
            while tokens[i].text == "]":
                i = opening(tokens, i) - 1
            if tokens[i].kind != "name":
                return None
            if tokens[i - 1].text == ".":
                i -= 2
            elif tokens[i - 1].text == ">" and tokens[i - 2].text == "-":
                i -= 3
            elif tokens[i - 1].text == "->":
                i -= 2
            else:
                break
        while tokens[i - 1].text == "*" and not _is_value(tokens[i - 2]):
            i -= 1
        return i

    def declared_type(self, first: int, last: int) -> str | None:
        """The integer type that is declared there, "" for another declaration, None for none."""
        tokens = self.tokens
        i = first - 1
        if tokens[i].text == ",":
            i = self.first_declarator(i)
        if tokens[i].text in OF_POINTERS and _is_value(tokens[i - 1]):
            return ""
        if tokens[i].kind != "name" or tokens[i].text in ("else", "do", "return"):
            return None
        known = self.names.words | QUALIFIERS
        if tokens[first].text in ("*", "&") or tokens[i].text not in known:
            return ""
        words = []
        while tokens[i].kind == "name" and tokens[i].text in known:
            words.insert(0, tokens[i].text)
            i -= 1
        if tokens[i].text == "::":
            return ""
        return " ".join(word for word in words if word not in QUALIFIERS)

    def first_declarator(self, comma: int) -> int:
        """Index of the type's last word in `int a = 1, b`, for the comma; else of the comma."""
        tokens = self.tokens
        i = comma
        while tokens[i].text not in (";", "{", "}", "("):
            if tokens[i].text in CLOSE:
                i = opening(tokens, i)
            if tokens[i].text in self.names.words and tokens[i + 1].kind == "name":
                return i
            i -= 1
        return comma

    def is_integer(self, last: int) -> bool:
        """Whether what ends at `last` may be an integer: by its own name, or that of the array."""
        tokens = self.tokens
        while tokens[last].text == "]":
            last = opening(tokens, last) - 1
        name = tokens[last].text
        return name in self.integers and name not in self.names.bit_fields

    # ---- return
    def returns(self, start: int, end: int) -> None:
        kind = self.returned(start)
        if not kind:
            return
        i = start + 1
        while i < end:
            t = self.tokens[i]
            if t.text == "{" and _begins_lambda(self.tokens, i):
                i = closing(self.tokens, i)
            elif t.text == "return" and self.tokens[i + 1].text != ";":
                self.wrap(i + 1, kind)
            i += 1

    def returned(self, start: int) -> str:
        """The integer that the function with this body returns, or ""."""
        name = _parameters(self.tokens, start) - 1
        i = name - 1
        words = []
        while self.tokens[i].kind == "name" and self.tokens[i].text in self.names.words:
            words.insert(0, self.tokens[i].text)
            i -= 1
        return "" if self.tokens[i].text == "::" else " ".join(words)

    # ---- arguments
    def signatures(self) -> dict[str, list[str]]:
        """Of functions that are defined once: the integers that they take, "" for other types."""
        found: dict[str, list[str]] = {}
        twice = set()
        for i, t in enumerate(self.tokens):
            if t.text != "{" or t.kind != "operator":
                continue
            if self.tokens[i - 1].text != ")":
                continue
            first = opening(self.tokens, i - 1)
            name = self.tokens[first - 1]
            if name.kind != "name" or name.text in ("if", "for", "while", "switch"):
                continue
            if name.text in found:
                twice.add(name.text)
            found[name.text] = self.parameters(first, i - 1)
        return {name: types for name, types in found.items() if name not in twice}

    def parameters(self, first: int, last: int) -> list[str]:
        types = []
        words: list[str] = []
        concrete = INTEGERS | ALIASES
        for t in self.tokens[first + 1 : last + 1]:
            if t.text == "," or t is self.tokens[last]:
                plain = [word for word in words if word != "const"]
                kind = plain[:-1]
                is_known = set(kind) <= concrete
                types.append(" ".join(kind) if is_known else "")
                words = []
            else:
                words.append(t.text)
        return types

    def call(self, i: int) -> None:
        """Wraps the arguments of a call by name where the function takes integers."""
        tokens = self.tokens
        types = self.functions.get(tokens[i].text)
        before = tokens[i - 1]
        if not types or before.text in BEFORE_NO_CALL:
            return
        if before.kind == "name" and before.text not in ("return", "else"):
            return
        at = i + 2
        for kind in types:
            end = end_of_expression(tokens, at)
            if kind and end > at:
                self.wrap(at, kind)
            if tokens[end].text != ",":
                return
            at = end + 1


def _is_value(token: Token) -> bool:
    return token.kind in ("name", "number") or token.text in (")", "]")


def _parameters(tokens: Tokens, brace: int) -> int:
    """Index of the '(' of the parameters of the function whose body begins at `brace`."""
    i = brace - 1
    while i > 0 and tokens[i].text != ")":
        i -= 1
    return opening(tokens, i)


def _begins_lambda(tokens: Tokens, brace: int) -> bool:
    if tokens[brace - 1].text == "]":
        return True
    if tokens[brace - 1].text != ")":
        return False
    return tokens[opening(tokens, brace - 1) - 1].text == "]"
