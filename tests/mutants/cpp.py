"""Mutants of CUDA C and C++: one small change each, token by token.

Besides the usual ones (operators, numbers, conditions, statements) those of Zhu and Zaidman,
"Massively Parallel, Highly Efficient, but What About the Test Suite Quality? Applying Mutation
Testing to GPU Programs" (ICST 2020): indices of threads and blocks, shared memory, barriers,
atomics. Ours too: fences, masks, scopes, types. Tools for C++ (mull, dextool) change what clang
compiles for the host, and the rules of universalmutator know no CUDA.
"""

import collections
import re

#: Token -> what it may become. Longer tokens first, so that `<<=` is not taken for `<`.
OTHERS = {
    "__syncthreads()": ("__syncwarp()",),
    "__threadfence()": ("__threadfence_block()",),
    "0xffffffff": ("0x0000ffff", "0xfffffffe", "__activemask()"),
    "threadIdx.x": ("threadIdx.y", "(threadIdx.x + 1)", "(threadIdx.x - 1)"),
    "threadIdx.y": ("threadIdx.x", "(threadIdx.y + 1)", "(threadIdx.y - 1)"),
    "blockIdx.x": ("blockIdx.y", "(blockIdx.x + 1)", "(blockIdx.x - 1)"),
    "blockIdx.y": ("blockIdx.x", "(blockIdx.y + 1)", "(blockIdx.y - 1)"),
    "blockDim.x": ("blockDim.y", "gridDim.x", "(blockDim.x + 1)", "(blockDim.x - 1)"),
    "blockDim.y": ("blockDim.x", "gridDim.y", "(blockDim.y + 1)", "(blockDim.y - 1)"),
    "gridDim.x": ("blockDim.x", "(gridDim.x + 1)"),
    "__shfl_down_sync(": ("__shfl_up_sync(", "__shfl_xor_sync("),
    "__shfl_up_sync(": ("__shfl_down_sync(",),
    "__shfl_xor_sync(": ("__shfl_down_sync(",),
    "__shared__ ": ("",),
    "volatile ": ("",),
    "thread_scope_device": ("thread_scope_block",),
    "memory_order_acquire": ("memory_order_relaxed",),
    "memory_order_release": ("memory_order_relaxed",),
    "atomicAdd(": ("atomicSub(", "atomicMax("),
    "atomicInc(": ("atomicAdd(", "atomicDec("),
    "row_major": ("col_major",),
    "matrix_a": ("matrix_b",),
    "fmaxf(": ("fminf(",),
    "fminf(": ("fmaxf(",),
    "long long": ("int",),
    "unsigned ": ("int ", "unsigned char "),
    "double ": ("float ",),
    "float4": ("float2",),
    "<<=": (),
    ">>=": (),
    "<<": (">>",),
    ">>": ("<<",),
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
    " & ": (" | ",),
    " | ": (" & ",),
    " ^ ": (" & ",),
    " + ": (" - ",),
    " - ": (" + ",),
    " * ": (" + ", " / "),
    " / ": (" * ", " % "),
    " % ": (" / ",),
    "min(": ("max(",),
    "max(": ("min(",),
    "return;": (";",),
    "break;": (";",),
    "continue;": (";",),
}
TOKEN = re.compile("|".join(map(re.escape, sorted(OTHERS, key=len, reverse=True))))
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
FRACTION = re.compile(r"(?<![\w.])(\d+\.\d*)(?=f?\b|f)")
ASIDE = re.compile(r"//[^\n]*|/\*.*?\*/|#include[^\n]*|\"[^\"\n]*\"", re.S)
STATEMENT = re.compile(
    r"^[ \t]+(?!return\b|float\b|int\b|const\b|unsigned\b)[\w*&(][^;{}\n]*;[ \t]*$", re.M
)
#: Two lines that follow one another, each one statement, none of them the body of an `if`.
PAIR = re.compile(r"(?<=[;{}]\n)([ \t]+)([\w*&(][^;{}\n]*;)\n(?=\1([\w*&(][^;{}\n]*;)\n)")
CHOICE = re.compile(r"(= |return )([^;?=]+)\?([^;:]+):([^;:]+);")
CONDITION = re.compile(r"\bif \(((?:[^()]|\([^()]*\))*)\)")
ATOMIC = re.compile(r"\batomic(Add|Sub|Inc|Max|Min)\(")
#: What makes a new variable; its name.
NEW = re.compile(r"(?:__shared__ )?(?:const )?[\w:<> ,]*\w[ *&]+(\w+)(?: = |;|\[)")
#: Types of variables -> narrower ones.
NARROW = {"int": "signed char", "float": "int", "unsigned": "unsigned char"}
VARIABLE = re.compile(r"\b(int|float|unsigned)(?= \w+(?:\[\w+\])* (?:=|\+=))")


def mutants(source):
    """(what was changed, the whole source with that change), for each mutant of a file."""
    aside = [match.span() for match in ASIDE.finditer(source)]
    seen, names = {source}, collections.Counter()
    for start, end, new in changes(source):
        if any(a < end and start < b for a, b in aside):
            continue
        text = source[:start] + new + source[end:]
        if text not in seen:
            seen.add(text)
            line = source.count("\n", 0, start) + 1
            name = f"line {line}: {source[start:end].strip()} -> {new.strip() or 'nothing'}"
            names[name] += 1
            yield name if names[name] == 1 else f"{name} #{names[name]}", text


def changes(source):
    """(start, end, new text) of each change."""
    for match in TOKEN.finditer(source):
        for other in OTHERS[match[0]]:
            yield *match.span(), other
    yield from numbers(source)
    for match in STATEMENT.finditer(source):
        yield *match.span(), ""
    for match in PAIR.finditer(source):
        if depend(match[2], match[3]):
            yield match.start(2), match.end(3), f"{match[3]}\n{match[1]}{match[2]}"
    for match in CONDITION.finditer(source):
        yield *match.span(1), "true"
        yield *match.span(1), "false"
    for match in CHOICE.finditer(source):
        for side in (3, 4):
            yield *match.span(), f"{match[1]}{match[side].strip()};"
    for match in VARIABLE.finditer(source):
        yield *match.span(), NARROW[match[1]]
    yield from plain_updates(source)


def depend(first, second):
    """Whether the order of two statements can matter: not where both only make a new variable."""
    new = [NEW.match(text) for text in (first, second)]
    if not all(new):
        return True
    words = [set(re.findall(r"\w+", text)) for text in (first, second)]
    return new[0][1] in words[1] or new[1][1] in words[0]


def numbers(source):
    """Each number one larger and one smaller, each fraction another."""
    for match in NUMBER.finditer(source):
        for step in (1, -1):
            yield *match.span(), str(int(match[0]) + step)
    for match in FRACTION.finditer(source):
        yield *match.span(), f"{float(match[0]) + 0.5}"


def plain_updates(source):
    """Each atomic operation as reading, changing and writing."""
    for match in ATOMIC.finditer(source):
        end, (place, value, *_) = arguments(source, match.end())
        target = f"*({place})"
        forms = {
            "Add": f"({target} += {value})",
            "Sub": f"({target} -= {value})",
            "Inc": f"({target} = {target} >= {value} ? 0 : {target} + 1)",
            "Max": f"({target} = max({target}, {value}))",
            "Min": f"({target} = min({target}, {value}))",
        }
        yield match.start(), end, forms[match[1]]


def arguments(source, start):
    """(where a call that begins at start ends, its arguments)."""
    depth, begin, parts = 0, start, []
    for place in range(start, len(source)):
        letter = source[place]
        if depth == 0 and letter in ",)":
            parts.append(source[begin:place].strip())
            begin = place + 1
            if letter == ")":
                return place + 1, parts
        depth += (letter in "([") - (letter in ")]")
    raise ValueError("the call does not end")
