"""The declarations of a file, told by their first words and brackets; no body is looked into."""

from collections.abc import Iterator
from typing import NamedTuple

from .tokens import OPEN, Token, Tokens, angle_end, angle_start, closing, made, triples

CLASSES = {"struct", "class", "union", "enum"}
#: Words of what declares no variable
NO_VARIABLE = set("using typedef static_assert template friend namespace concept asm".split())
NO_CODE = {"raw", "pragma"}  # kinds of tokens
ACCESS = {"public", "private", "protected"}
#: What is followed by a bracket and is no function
ATTRIBUTES = set(
    "__attribute__ __align__ alignas decltype noexcept explicit requires __declspec "
    "__launch_bounds__ __cluster_dims__ __maxnreg__ __block_size__".split()
)
BEFORE_A_VALUE = set("= ( , { : ? return".split())
#: What may stand before a call; another name there makes it a declaration
BEFORE_A_CALL = set("return else do case and or not co_return throw".split())
#: What a variable's name is followed by where it is declared
AFTER_A_NAME = set("= ; , ) [ : {".split())
BEFORE_A_NAME = set("* & > , [ ...".split())


class Scope(NamedTuple):
    """Where a declaration stands: in a "namespace", a "class" or an "enum", and how that began.

    is_template: whether it, or a class around it, is made for each of a template's arguments.
    """

    kind: str
    head: Tokens
    is_template: bool = False


class Declaration(NamedTuple):
    """One declaration.

    head: its words up to the body, without `template <...>`.
    scope: what it stands in.
    body: first and last token of a function's body, None where there is none.
    of_class: the head of the class whose variables it declares, as in `struct S {...} s;`.
    is_template: whether a `template <...>` came before.
    """

    head: Tokens
    scope: Scope
    body: tuple[int, int] | None = None
    of_class: Tokens = []
    is_template: bool = False


def declarations(tokens: Tokens, known: set[str] = frozenset()) -> Iterator[Declaration]:
    """All declarations of a file outside the bodies of functions, in their order.

    known: names of variables, which the caller may add to meanwhile: in `const int n(m);` the
        brackets hold a value then.
    """
    scopes = [Scope("namespace", [])]
    head: Tokens = []
    closed: Tokens = []  # the class that has just ended
    i = 0
    while i < len(tokens):
        t = tokens[i]
        i += 1
        is_access = t.text == ":" and _is_access(head)
        if is_access or t.kind in NO_CODE:
            head, closed = [], []
        elif t.text == "}":
            ended = scopes.pop() if scopes[1:] else scopes[0]
            closed = ended.head if ended.kind == "class" else []
            head = []
        elif t.text == ";" or t.text == "{" and _opens_body(head, tokens, i - 1, known):
            kind = _scope_of(head, known) if t.text == "{" else ""
            end = closing(tokens, i - 1) if t.text == "{" else i - 1
            if kind == "enum":
                closed, head, i = head, [], end + 1
                continue
            if kind:
                scopes.append(_inner(scopes[-1], kind, head))
            else:
                plain = without_template(head)
                body = (i - 1, end) if t.text == "{" else None
                yield Declaration(plain, scopes[-1], body, closed, plain is not head)
                i = end + 1
            head, closed = [], []
        elif t.text in OPEN:
            end = closing(tokens, i - 1)
            head += tokens[i - 1 : end + 1]
            i = end + 1
        else:
            head.append(t)


def _inner(around: Scope, kind: str, head: Tokens) -> Scope:
    is_template = around.is_template or without_template(head) is not head
    return Scope(kind, head, is_template)


def _is_access(head: Tokens) -> bool:
    return len(head) == 1 and head[0].text in ACCESS


def without_template(head: Tokens) -> Tokens:
    """A declaration behind its `template <...>`; nothing of an explicit instantiation."""
    while head and head[0].text == "template":
        end = angle_end(head, 1) if len(head) > 1 and head[1].text == "<" else -1
        if end < 0:
            return []
        head = head[end + 1 :]
    return head


def _scope_of(head: Tokens, known: set[str]) -> str:
    """What the brace behind `head` opens: a namespace, a class, an enum, or "" (a function)."""
    words = [t.text for t in without_template(head)]
    if "namespace" in words or len(words) == 2 and words[0] == "extern":
        return "namespace"
    if function_name(head, known):
        return ""
    kinds = [word for word in words if word in CLASSES]
    if not kinds:
        return ""
    return "enum" if "enum" in kinds else "class"


def _opens_body(head: Tokens, tokens: Tokens, brace: int, known: set[str]) -> bool:
    """Whether this brace is no initializer: of a variable, or of a member before a constructor."""
    words = [t.text for t in head]
    assigned = "=" in _outside_of_brackets(head)  # not a parameter's default
    if assigned and "operator" not in words and "template" not in words:
        return False
    if _scope_of(head, known) or not function_name(head, known):
        return bool(_scope_of(head, known))
    if ":" not in words:
        return True
    after = closing(tokens, brace) + 1
    return not (head[-1].kind == "name" and tokens[after : after + 1]
                and tokens[after].text in (",", "{"))  # fmt: skip


def _outside_of_brackets(head: Tokens) -> list[str]:
    words = []
    i = 0
    while i < len(head):
        if head[i].text in OPEN:
            i = closing(head, i)
        words.append(head[i].text)
        i += 1
    return words


def function_name(head: Tokens, known: set[str] = frozenset()) -> Token | None:
    """The name before a function's parameters; None if `head` declares something else."""
    head = without_template(head)
    i = angles = 0
    while i < len(head):
        t = head[i]
        if t.text == "operator":
            return t
        if t.text == "=":
            return None
        if t.text == "<":
            angles += 1
        elif t.text in (">", ">>"):
            angles -= len(t.text)
        elif t.text in OPEN and angles > 0:  # of template arguments: enable_if_t<!(a && b)> f()
            i = closing(head, i)
        elif t.text in OPEN:
            name = _before_bracket(head, i)
            if name is None:
                return None
            if name.text not in ATTRIBUTES:
                return None if _is_value(head[i + 1], known) else name
            i = closing(head, i)
        i += 1
    return None


def _before_bracket(head: Tokens, bracket: int) -> Token | None:
    """The name that a round bracket follows, perhaps with template arguments between them."""
    i = bracket - 1
    if head[bracket].text != "(" or i < 0:
        return None
    if head[i].text == ">":
        i = angle_start(head, i) - 1
    return head[i] if i >= 0 and head[i].kind == "name" else None


def _is_value(first: Token, known: set[str]) -> bool:
    """Whether brackets that begin with this hold a value, or make a pointer to a function."""
    return (
        first.kind in ("number", "string")
        or first.text in ("*", "-", "{", "&")
        or first.text in known
    )


def class_name(head: Tokens) -> str:
    """The name of the class that begins with `head`, "" where it has none."""
    words = without_template(head)
    i = 0
    begun = False
    while i < len(words):
        t = words[i]
        if t.text in ATTRIBUTES:
            i = closing(words, i + 1)
        elif t.text in OPEN:
            i = closing(words, i)
        elif t.text in CLASSES:
            begun = True
        elif begun and t.kind == "name":
            return t.text
        i += 1
    return ""


def is_defaulted(head: Tokens) -> bool:
    words = [t.text for t in head]
    return words[-2:] in (["=", "default"], ["=", "delete"])


def is_deduction_guide(head: Tokens, name: Token) -> bool:
    """Whether it is `Box(T) -> Box<T>;`, which is nobody's code."""
    if head[0].text == "explicit":
        head = head[1:]
    if head[0] is not name:
        return False
    after = closing(head, 1) + 1
    return after < len(head) and head[after].text == "->"


def is_variable(head: Tokens, known: set[str] = frozenset()) -> bool:
    """Whether a declaration without a body is that of a variable: of a type, and then a name."""
    if not head or head[0].text in CLASSES:
        return False
    if function_name(head, known):
        return False
    if not NO_VARIABLE.isdisjoint(t.text for t in head):
        return False
    return variable_name(head) is not head[0]


def variable_name(head: Tokens) -> Token:
    """The last name before the initializer or the size."""
    names = []
    for t in head:
        if t.text in ("=", *OPEN):
            break
        if t.kind == "name":
            names.append(t)
    return names[-1] if names else head[0]


def declared_names(tokens: Tokens) -> set[str]:
    """Names that stand where something is declared: behind a type, or where one may have ended.

    It takes some more for declared, such as the second factor of a product.
    """
    result = set()
    for before, t, after in triples(tokens):
        if t.kind != "name":
            continue
        is_typed = before.kind == "name" and before.text not in BEFORE_A_CALL
        ends = after.text in AFTER_A_NAME
        is_pointed = ends and before.text in BEFORE_A_NAME
        if is_pointed or is_typed and (ends or after.text == "("):
            result.add(t.text)
    return result


def names_of_members(head: Tokens) -> set[str]:
    """What a declaration without a body, of one variable or of several, declares."""
    return declared_names([*head, made(";", head[-1])])


def enumerators(tokens: Tokens) -> set[str]:
    """The values of all enumerations of a file."""
    result = set()
    last = len(tokens) - 1
    for i, t in enumerate(tokens):
        if t.text != "enum":
            continue
        end = i
        while end < last and tokens[end].text not in ("{", ";", ")"):
            end += 1
        if tokens[end].text != "{":
            continue
        inside = tokens[end : closing(tokens, end)]
        result |= {each.text for each in inside if each.kind == "name"}
    return result


def template_parameters(tokens: Tokens) -> set[str]:
    """Names of the parameters of all templates of a file."""
    result = set()
    for begin in range(1, len(tokens)):
        if tokens[begin - 1].text != "template" or tokens[begin].text != "<":
            continue
        end = angle_end(tokens, begin)
        inside = tokens[begin : end + 1]
        for _, t, after in triples(inside):
            if t.kind == "name" and after.text in (",", "=", ">"):
                result.add(t.text)
    return result


def end_of_statement(tokens: Tokens, i: int) -> int:
    """Index of the last token of the statement that begins at `i`, with all its branches."""
    last = len(tokens) - 1
    word = tokens[i].text
    if word in ("if", "for", "while", "switch"):
        while i < last and tokens[i].text != "(":
            i += 1
        i = end_of_statement(tokens, min(closing(tokens, i) + 1, last))
        if word == "if" and i < last and tokens[i + 1].text == "else":
            i = end_of_statement(tokens, min(i + 2, last))
        return i
    if word == "{":
        return closing(tokens, i)
    while i < last and tokens[i].text != ";":
        i = closing(tokens, i) + 1 if tokens[i].text in OPEN else i + 1
    return min(i, last)


def is_constant(head: Tokens) -> bool:
    """Whether a variable is constant itself, and not only what it points to."""
    words = [t.text for t in head]
    if "constexpr" in words:
        return True
    is_const = False
    for word in words:
        if word == "=":
            break
        if word in ("const", "*"):
            is_const = word == "const"
    return is_const


def lambda_in(head: Tokens) -> Token | None:
    """The bracket that opens a lambda in a variable's initializer."""
    is_value = False
    before = ""
    for t in head:
        if is_value and t.text == "[" and before in BEFORE_A_VALUE:
            return t
        before = t.text
        is_value = is_value or before == "="
    return None
