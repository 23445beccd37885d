"""Shifts and conversions of device code get PTX's rules: see include/detail/arithmetic.h.

    a << n           ->  a << ::cuda_cpu::by << n
    a >>= n          ->  a >>= ::cuda_cpu::by >>= n
    (int)x           ->  (int)(::cuda_cpu::Cast<int>)x
    int(x)           ->  int(::cuda_cpu::Cast<int>(x))
    static_cast<int>(x) likewise

Conversions that nobody wrote (`int i = x;`) are found in implicit.py.
"""

from .tokens import Tokens, angle_end, closing, made, opening

INTEGERS = {"char", "short", "int", "long", "unsigned", "signed"} | {
    f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
#: Types of one word whose meaning is the host's: size_t, and CUDA's short names of unsigned types
ALIASES = {"size_t", "uint", "uchar", "ushort", "ulong"}
#: A cast may follow these words; after any other name a parenthesis is a call or a declaration
STATEMENT_WORDS = {"return", "else", "do", "case", "co_return", "throw"}
OPERATORS = set("=(,+-*/%<>&|^!~?:[{;")
#: Where a search backwards for the `<` of template arguments stops
ENDS_SEARCH = {"(", "[", "{", ";", "&", "|", "?", "="}
BEGINS_OPERAND = {"(", "-", "+", "~", "!", "*", "&"}


def rewrite_arithmetic(tokens: Tokens, start: int, end: int) -> None:
    """Rewrites the body of a device function, tokens[start:end], in place."""
    i = end - 1
    while i > start:
        if tokens[i].text in "<>" and tokens[i].kind == "operator":
            i = _shift(tokens, start, i)
        elif tokens[i].text == "(":
            _cast(tokens, i)
        i -= 1


def _shift(tokens: Tokens, start: int, i: int) -> int:
    """If a shift ends at `i`, rewrites it; the index from where to go on."""
    sign = tokens[i].text
    first = i - 1
    if tokens[first].text != sign or tokens[first].kind != "operator":
        return i
    if tokens[i].space:
        return i
    after = tokens[i + 1]
    assigns = after.text == "=" and not after.space
    if tokens[first - 1].text == "operator":
        return first
    if tokens[first - 1].text == sign and not tokens[first].space:
        return first - 1  # the end of a launch: >>>
    if sign == ">" and not assigns and _closes_arguments(tokens, start, first):
        return first
    if assigns:
        tokens.insert(i + 2, made(f"::cuda_cpu::by {sign}{sign}=", after))
    else:
        tokens.insert(i + 1, made(f"::cuda_cpu::by {sign}{sign}", after))
    return first


def _closes_arguments(tokens: Tokens, start: int, i: int) -> bool:
    """Whether `>>` at `i` ends two lists of template arguments: two `<` before it are open."""
    waiting = 0
    j = i - 1
    while j > start:
        text = tokens[j].text
        if text in (")", "]", "}"):
            j = opening(tokens, j)
        elif text in ENDS_SEARCH and _really_ends(tokens, j):
            return False
        elif text == ">" and tokens[j - 1].text != "-":
            waiting -= 1
        elif text == "<" and tokens[j - 1].kind == "name":
            waiting += 1
            if waiting == 2:
                return True
        j -= 1
    return False


def _really_ends(tokens: Tokens, j: int) -> bool:
    """A single `&` may belong to a type in a list of template arguments."""
    text = tokens[j].text
    return text not in ("&", "|") or tokens[j - 1].text == text


def _cast(tokens: Tokens, i: int) -> None:
    """If the parenthesis at `i` begins a cast to an integer, puts Cast into it."""
    close = closing(tokens, i)
    inside = tokens[i + 1 : close]
    if _is_integer(inside) and _has_operand(tokens, i, close):
        name = " ".join(t.text for t in inside)
        tokens.insert(close + 1, made(f"(::cuda_cpu::Cast<{name}>)", tokens[i]))
        return
    target = _named_target(tokens, i)
    if target and inside:
        tokens.insert(close, made("))", tokens[close]))
        tokens.insert(i + 1, made(f"::cuda_cpu::Cast<{target}>((", tokens[i]))


def _is_integer(words: Tokens) -> bool:
    texts = [t.text for t in words]
    if len(texts) == 1 and texts[0] in ALIASES:
        return True
    return bool(texts) and all(text in INTEGERS for text in texts)


def _may_begin_operand(tokens: Tokens, i: int) -> bool:
    """Whether an expression may begin at `i`, judged by what stands before."""
    before = tokens[i - 1]
    if before.kind == "name":
        return before.text in STATEMENT_WORDS
    if before.text == ")":
        first = opening(tokens, i - 1)
        inside = tokens[first + 1 : i - 1]
        return _is_type(inside) and tokens[first - 1].kind != "name"
    return before.text in OPERATORS or before.kind == "made"


def _is_type(words: Tokens) -> bool:
    known = INTEGERS | ALIASES | {"float", "double", "bool", "const"}
    return bool(words) and all(t.text in known for t in words)


def _has_operand(tokens: Tokens, i: int, close: int) -> bool:
    """Whether the parentheses from `i` to `close` stand where a cast may, before an operand."""
    return _may_begin_operand(tokens, i) and _is_operand(tokens, close + 1)


def _is_operand(tokens: Tokens, i: int) -> bool:
    t = tokens[i]
    if t.kind in ("name", "number", "made"):
        return True
    return t.text in BEGINS_OPERAND


def _named_target(tokens: Tokens, i: int) -> str | None:
    """`int` in `int(x)` and `static_cast<int>(x)`, for the parenthesis at `i`."""
    before = tokens[i - 1]
    if before.text == ">":
        first = i - 2
        while first > 0 and (tokens[first].text in INTEGERS | ALIASES):
            first -= 1
        words = tokens[first + 1 : i - 1]
        named = tokens[first].text == "<" and tokens[first - 1].text == "static_cast"
        if named and _is_integer(words) and angle_end(tokens, first) == i - 1:
            return " ".join(t.text for t in words)
        return None
    if not _is_integer([before]) or tokens[i + 1].text in ("*", "&"):
        return None
    outer = tokens[i - 2]
    begins = outer.text in OPERATORS - {";", "{"} or outer.text in STATEMENT_WORDS
    return before.text if begins or outer.kind == "made" else None
