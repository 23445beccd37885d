"""Mutants of CUDA C and C++: one small change each, token by token."""

import re

#: Token -> what it may become. Longer tokens first, so that `<<=` is not taken for `<`.
OTHERS = {
    "__syncthreads()": ("__syncwarp()",),
    "__threadfence()": ("__threadfence_block()",),
    "0xffffffff": ("0x0000ffff",),
    "threadIdx.x": ("threadIdx.y",),
    "threadIdx.y": ("threadIdx.x",),
    "blockIdx.x": ("blockIdx.y",),
    "blockIdx.y": ("blockIdx.x",),
    "blockDim.x": ("blockDim.y", "gridDim.x"),
    "gridDim.x": ("blockDim.x",),
    "<<=": (),
    ">>=": (),
    "<<": (),
    ">>": (),
    "->": (),
    "<=": ("<",),
    ">=": (">",),
    "==": ("!=",),
    "!=": ("==",),
    "+=": ("-=", "="),
    "-=": ("+=",),
    "*=": ("/=",),
    "/=": ("*=",),
    "&&": ("||",),
    "||": ("&&",),
    "++": (),
    "--": (),
    " < ": (" <= ", " > "),
    " > ": (" >= ", " < "),
    " + ": (" - ",),
    " - ": (" + ",),
    " * ": (" + ", " / "),
    " / ": (" * ", " % "),
    " % ": (" / ",),
    "min(": ("max(",),
    "max(": ("min(",),
}
TOKEN = re.compile("|".join(map(re.escape, sorted(OTHERS, key=len, reverse=True))))
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
ASIDE = re.compile(r"//[^\n]*|/\*.*?\*/|#include[^\n]*|\"[^\"\n]*\"", re.S)
STATEMENT = re.compile(
    r"^[ \t]+(?!return\b|float\b|int\b|const\b|unsigned\b)[\w*&(][^;{}\n]*;[ \t]*$", re.M
)


def mutants(source):
    """(what was changed, the whole source with that change), for each mutant of a file."""
    aside = [match.span() for match in ASIDE.finditer(source)]
    seen = {source}
    for start, end, new in changes(source):
        if any(a < end and start < b for a, b in aside):
            continue
        text = source[:start] + new + source[end:]
        if text not in seen:
            seen.add(text)
            line = source.count("\n", 0, start) + 1
            yield f"line {line}: {source[start:end].strip()} -> {new.strip() or 'nothing'}", text


def changes(source):
    """(start, end, new text) of each change."""
    for match in TOKEN.finditer(source):
        for other in OTHERS[match[0]]:
            yield *match.span(), other
    for match in NUMBER.finditer(source):
        for step in (1, -1):
            yield *match.span(), str(int(match[0]) + step)
    for match in STATEMENT.finditer(source):
        yield *match.span(), ""
    for match in re.finditer(r"\bif \(((?:[^()]|\([^()]*\))*)\)", source):
        yield *match.span(1), "true"
        yield *match.span(1), "false"
