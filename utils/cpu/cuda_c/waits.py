"""Loops that wait for another thread, and warps that stay in step on volatile memory."""

from itertools import pairwise

from .declarations import function_bodies
from .tokens import OPEN, Tokens, closing, made, opening, triples


def rewrite_waits(tokens: Tokens) -> None:
    """`while (flag == 0);` of a device function lets others run."""
    for start, end, _ in reversed(function_bodies(tokens).values()):
        for i in range(end - 1, start, -1):
            if tokens[i].text != "while" or tokens[i].kind != "name" or ends_do(tokens, i):
                continue
            close = closing(tokens, i + 1)
            last = close + 1 if tokens[close + 1].text == ";" else close + 2
            condition = tokens[i + 2 : close]
            if last == close + 2 and [t.text for t in tokens[close + 1 : last + 1]] != [
                "{",
                "}",
            ]:
                continue
            if changes_something(condition):
                continue
            calls = any(a.kind == "name" and b.text == "(" for a, b in pairwise(condition))
            again = f";) cuda_cpu_wait_.again({'true' if calls else 'false'});"
            tokens[i : last + 1] = [
                made("for (::cuda_cpu::WaitLoop cuda_cpu_wait_;", tokens[i]),
                *condition,
                made(again, tokens[close]),
            ]


def rewrite_steps(tokens: Tokens) -> None:
    """`s[i] += s[i + 16];` on volatile memory: the warp's lanes stay in step after it."""
    if "volatile" not in {t.text for t in tokens}:
        return
    for start, end, qualifiers in reversed(function_bodies(tokens).values()):
        head = start
        while (
            head
            and tokens[head - 1].text not in (";", "}")
            and tokens[head - 1].kind not in ("raw", "pragma")
        ):
            head -= 1
        # A kernel's own parameters are global memory: of those nobody expects it.
        names = volatile_names(
            tokens[start:end] if "__global__" in qualifiers else tokens[head:end]
        )
        i = end - 1
        while i > start:
            t = tokens[i]
            if t.text in names and t.kind == "name" and tokens[i + 1].text == "[":
                before = tokens[i - 1].text
                stop = i + 1
                while tokens[stop].text == "[":
                    stop = closing(tokens, stop) + 1
                stores = tokens[stop].text in ("=", "+", "-", "*", "/", "|", "&", "^") and (
                    tokens[stop].text == "="
                    and tokens[stop + 1].text != "="
                    or tokens[stop + 1].text == "="
                )
                in_for = before == ";" and not balanced(tokens[start:i])
                if stores and before in (";", "{", "}", ")", "else", ":") and not in_for:
                    while tokens[stop].text != ";":
                        stop = closing(tokens, stop) + 1 if tokens[stop].text in OPEN else stop + 1
                    tokens[stop + 1 : stop + 1] = [
                        made("::cuda_cpu::in_step();", tokens[stop]),
                        made("}", tokens[stop]),
                    ]
                    tokens[i:i] = [made("{", t)]
            i -= 1


def volatile_names(tokens: Tokens) -> set[str]:
    """Names of volatile pointers and shared arrays that are declared in these tokens."""
    names = set()
    for i, t in enumerate(tokens):
        if t.text != "volatile" or t.kind != "name":
            continue
        around = [x.text for x in tokens[max(0, i - 3) : i + 2]]
        pointer = False
        shared = "__shared__" in around
        j = i + 1
        while j + 1 < len(tokens) and (
            tokens[j].kind == "name" or tokens[j].text in ("*", "::", "<", ">")
        ):
            pointer |= tokens[j].text == "*"
            if tokens[j].kind == "name" and (pointer or shared and tokens[j + 1].text == "["):
                names.add(tokens[j].text)
            j += 1
    return names - {"__restrict__", "const", "__shared__"}


def ends_do(tokens: Tokens, i: int) -> bool:
    """Does the `while` at `i` end a do-while loop?"""
    if tokens[i - 1].text == "}":
        return tokens[opening(tokens, i - 1) - 1].text == "do"
    start = i - 1
    while start and tokens[start - 1].text not in (";", "{", "}"):
        start -= 1
    return tokens[start].text == "do"


def changes_something(expression: Tokens) -> bool:
    """Does it have ++, -- or an assignment?"""
    words = ["", *(t.text for t in expression), ""]
    for before, word, after in triples(words):
        if (
            word in ("+", "-")
            and after == word
            or word == "="
            and after != "="
            and before not in ("=", "!", "<", ">")
        ):
            return True
    return False


def balanced(tokens: Tokens) -> bool:
    """Is every parenthesis that is opened here closed again?"""
    return sum((t.text == "(") - (t.text == ")") for t in tokens) == 0
