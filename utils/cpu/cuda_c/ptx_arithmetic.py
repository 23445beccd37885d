"""Inline PTX in C++: arithmetic, comparisons, moves and conversions.

Source: PTX ISA, "Instruction Set". See `ptx_to_cpp.py`.
"""

import re

from .ptx import PtxError
from .ptx_to_cpp import HERE, ROUND, TYPE, P, instruction, kind


def flush(text: str, match) -> str:
    return f"{P}flushed({text})" if ".ftz" in match["how"] and match["type"] == "f32" else text


def finish(text: str, match) -> str:
    text = flush(text, match)
    return f"{P}saturated({text})" if ".sat" in match["how"] else text


def rounding(match) -> str:
    found = re.search(r"\.r([nzmpa])i?\b", match["how"])
    return f"{P}Round::{ROUND[found[1]] if found else 'nearest'}"


TWO = {
    "add": "add",
    "sub": "sub",
    "div": "div",
    "rem": "rem",
    "min": "smaller",
    "max": "larger",
}


@instruction(
    rf"(?P<op>add|sub|div|rem|min|max)(?P<how>(?:\.(?:rn|full|approx|ftz|sat|NaN))*)\.{TYPE}"
)
def two_operands(t, match, d, a, b):
    bits = match["type"]
    if ".NaN" in match["how"] or ".sat" in match["how"] and bits == "s32":
        raise PtxError(f"'{match[0]}'")
    values = [flush(t.value(x, bits), match) for x in (a, b)]
    return t.set(
        d, bits, finish(f"{P}{TWO[match['op']]}<{kind(bits)}>({', '.join(values)})", match)
    )


DIRECTED = {"add": "__{}add_r{}", "sub": "__{}sub_r{}", "mul": "__{}mul_r{}", "div": "__{}div_r{}"}


@instruction(r"(?P<op>add|sub|mul|div)\.r(?P<to>[zmp])\.(?P<type>f32|f64)")
def directed(t, match, d, a, b):
    letter = "f" if match["type"] == "f32" else "d"
    name = DIRECTED[match["op"]].format(letter, {"z": "z", "m": "d", "p": "u"}[match["to"]])
    values = f"{t.value(a, match['type'])}, {t.value(b, match['type'])}"
    return t.set(d, match["type"], f"::{name}({values})")


@instruction(r"fma\.r(?P<to>[zmp])\.(?P<type>f32|f64)")
def directed_fma(t, match, d, a, b, c):
    name = "__fmaf_r" if match["type"] == "f32" else "__fma_r"
    name += {"z": "z", "m": "d", "p": "u"}[match["to"]]
    values = ", ".join(t.value(x, match["type"]) for x in (a, b, c))
    return t.set(d, match["type"], f"::{name}({values})")


@instruction(r"(?P<op>add|sub)(?P<carry>c?)(?P<cc>\.cc)?\.(?P<type>[us](?:32|64))")
def with_carry(t, match, d, a, b):
    bits = "u" + match["type"][1:]
    used = "cuda_cpu_carry" if match["carry"] else "false"
    call = (
        f"{P}{match['op']}_carry({t.value(a, bits)}, {t.value(b, bits)}, {used}, cuda_cpu_carry, "
        f"{'true' if match['cc'] else 'false'})"
    )
    return t.set(d, bits, call)


@instruction(rf"mul(?P<part>\.lo|\.hi|\.wide)?(?P<how>(?:\.(?:rn|ftz|sat))*)\.{TYPE}")
def product(t, match, d, a, b):
    bits = match["type"]
    values = f"{t.value(a, bits)}, {t.value(b, bits)}"
    if match["part"] == ".hi":
        return t.set(d, bits, f"{P}mul_hi<{kind(bits)}>({values})")
    if match["part"] == ".wide":
        wide = bits[0] + str(2 * int(bits[1:]))
        return t.set(d, wide, f"{P}mul_wide<{kind(wide)}, {kind(bits)}>({values})")
    return t.set(d, bits, finish(f"{P}mul_lo<{kind(bits)}>({values})", match))


@instruction(r"mad(?P<part>\.lo|\.hi|\.wide)\.(?P<type>[us](?:16|32|64))")
def product_and_sum(t, match, d, a, b, c):
    bits = match["type"]
    values = f"{t.value(a, bits)}, {t.value(b, bits)}"
    wide = bits[0] + str(2 * int(bits[1:])) if match["part"] == ".wide" else bits
    call = {
        ".lo": f"{P}mul_lo<{kind(bits)}>({values})",
        ".hi": f"{P}mul_hi<{kind(bits)}>({values})",
        ".wide": f"{P}mul_wide<{kind(wide)}, {kind(bits)}>({values})",
    }[match["part"]]
    return t.set(d, wide, f"{P}add<{kind(wide)}>({call}, {t.value(c, wide)})")


@instruction(rf"(?:fma|mad)(?P<how>(?:\.(?:rn|ftz|sat))*)\.{TYPE}")
def fused(t, match, d, a, b, c):
    bits = match["type"]
    values = ", ".join(flush(t.value(x, bits), match) for x in (a, b, c))
    return t.set(d, bits, finish(f"{P}fma<{kind(bits)}>({values})", match))


@instruction(rf"(?P<op>neg|abs)(?P<how>(?:\.ftz)?)\.{TYPE}")
def sign(t, match, d, a):
    bits = match["type"]
    name = "neg" if match["op"] == "neg" else "absolute"
    return t.set(d, bits, flush(f"{P}{name}<{kind(bits)}>({t.value(a, bits)})", match))


APPROXIMATE = {
    "rcp": "1 / {}",
    "sqrt": "std::sqrt({})",
    "rsqrt": "1 / std::sqrt({})",
    "sin": "std::sin({})",
    "cos": "std::cos({})",
    "ex2": "std::exp2({})",
    "lg2": "std::log2({})",
    "tanh": "std::tanh({})",
}


@instruction(
    rf"(?P<op>rcp|sqrt|rsqrt|sin|cos|ex2|lg2|tanh)(?P<how>(?:\.(?:approx|rn|ftz))*)\.{TYPE}"
)
def function_of_one(t, match, d, a):
    bits = match["type"]
    body = APPROXIMATE[match["op"]].format("x")
    call = f"{P}each<{kind(bits)}>([](auto x) -> decltype(x) {{ return {body}; }}, "
    return t.set(
        d,
        bits,
        flush(call + flush(t.value(a, bits), match) + ")", match),
    )


@instruction(r"(?P<op>and|or|xor)\.(?P<type>b16|b32|b64|pred)")
def bitwise(t, match, d, a, b):
    bits = match["type"]
    symbol = {"and": "&", "or": "|", "xor": "^"}[match["op"]]
    return t.set(d, bits, f"{t.value(a, bits)} {symbol} {t.value(b, bits)}")


@instruction(r"not\.(?P<type>b16|b32|b64|pred)")
def negation(t, match, d, a):
    symbol = "!" if match["type"] == "pred" else "~"
    return t.set(d, match["type"], f"{symbol}{t.value(a, match['type'])}")


@instruction(r"(?P<op>shl|shr)\.(?P<type>[bus](?:16|32|64))")
def shift(t, match, d, a, n):
    bits = match["type"]
    return t.set(
        d, bits, f"{P}{match['op']}<{kind(bits)}>({t.value(a, bits)}, {t.value(n, 'u32')})"
    )


@instruction(r"shf\.(?P<way>[lr])\.(?P<how>clamp|wrap)\.b32")
def funnel_shift(t, match, d, a, b, n):
    values = ", ".join(t.value(x, "u32") for x in (a, b, n))
    left = "true" if match["way"] == "l" else "false"
    clamp = "true" if match["how"] == "clamp" else "false"
    return t.set(d, "u32", f"{P}funnel({values}, {left}, {clamp})")


@instruction(r"lop3\.b32")
def three_bits(t, match, d, a, b, c, table):
    values = ", ".join(t.value(x, "u32") for x in (a, b, c, table))
    return t.set(d, "u32", f"{P}lop3({values})")


@instruction(r"prmt\.b32")
def bytes_chosen(t, match, d, a, b, c):
    return t.set(d, "u32", f"{P}permute({', '.join(t.value(x, 'u32') for x in (a, b, c))})")


@instruction(r"(?P<op>popc|clz|brev)\.(?P<type>b32|b64)")
def counted(t, match, d, a):
    name = {"popc": "count_bits", "clz": "leading_zeros", "brev": "reversed"}[match["op"]]
    bits = match["type"] if match["op"] == "brev" else "u32"
    return t.set(d, bits, f"{P}{name}({t.value(a, match['type'])})")


@instruction(r"bfind(?P<amount>\.shiftamt)?\.(?P<type>[us](?:32|64))")
def highest_bit(t, match, d, a):
    amount = "true" if match["amount"] else "false"
    return t.set(d, "u32", f"{P}find_bit({t.value(a, match['type'])}, {amount})")


@instruction(r"bfe\.(?P<type>[us](?:32|64))")
def bits_taken(t, match, d, a, start, length):
    values = f"{t.value(a, match['type'])}, {t.value(start, 'u32')}, {t.value(length, 'u32')}"
    return t.set(d, match["type"], f"{P}extract({values})")


@instruction(r"bfi\.(?P<type>b32|b64)")
def bits_put(t, match, d, a, b, start, length):
    bits = match["type"]
    values = f"{t.value(a, bits)}, {t.value(b, bits)}, {t.value(start, 'u32')}, "
    return t.set(d, bits, f"{P}insert({values}{t.value(length, 'u32')})")


@instruction(r"dp4a\.(?P<a>[us])32\.(?P<b>[us])32")
def dot_of_four(t, match, d, a, b, c):
    result = "s32" if "s" in match["a"] + match["b"] else "u32"
    values = f"{t.value(a, 'u32')}, {t.value(b, 'u32')}, {t.value(c, 'u32')}"
    parts = f"{P}{match['a']}8, {P}{match['b']}8"
    return t.set(d, result, f"{P}dot4<{parts}>({values})")


# ---- comparisons, moves, conversions

SYMBOLS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@instruction(rf"setp\.(?P<op>[a-z]{{2,3}})(?P<join>\.(?:and|or|xor))?(?P<how>(?:\.ftz)?)\.{TYPE}")
def comparison(t, match, d, a, b, c=None):
    bits = match["type"]
    operation = SYMBOLS.get(match["op"], match["op"])
    values = f"{t.value(a, bits)}, {t.value(b, bits)}"
    holds = f"{P}holds({P}Compare::{operation}, {values})"
    targets = d if isinstance(d, tuple) else (d,)
    results = [holds, f"!{holds}"]
    if match["join"]:
        symbol = {".and": "&&", ".or": "||", ".xor": "!="}[match["join"]]
        results = [f"({r}) {symbol} {t.value(c, 'pred')}" for r in results]
    return " ".join(
        t.set(target, "pred", result) for target, result in zip(targets, results, strict=False)
    )


@instruction(rf"selp\.{TYPE}")
def choice(t, match, d, a, b, p):
    bits = match["type"]
    values = f"{t.value(a, bits)} : {t.value(b, bits)}"
    return t.set(d, bits, f"{t.value(p, 'pred')} ? {values}")


@instruction(rf"mov\.{TYPE}")
def move(t, match, d, a):
    bits = match["type"]
    if isinstance(d, list):
        part = f"b{int(bits[1:]) // len(d)}"
        whole = t.value(a, "u" + bits[1:])
        lines = [f"auto cuda_cpu_all = {whole};"]
        for i, name in enumerate(d):
            shifted = f"cuda_cpu_all >> {i * int(part[1:])}"
            lines.append(t.set(name, part, shifted))
        return " ".join(lines)
    if isinstance(a, list):
        whole = "u" + bits[1:]
        width = int(bits[1:]) // len(a)
        parts = [
            f"({kind(whole)}({t.value(x, f'b{width}')}) << {i * width})" for i, x in enumerate(a)
        ]
        return t.set(d, whole, " | ".join(parts))
    return t.set(d, bits, t.value(a, bits))


SMALL = "e4m3x2|e5m2x2|f16x2|bf16x2"


@instruction(
    rf"cvt(?P<how>(?:\.(?:r[nzmp]i?|rna|ftz|sat|satfinite|relu))*)"
    rf"\.(?P<to>{SMALL}|tf32|bf16|[usf]\d+)\.(?P<type>{SMALL}|bf16|[usf]\d+)"
)
def conversion(t, match, d, a, b=None):
    to, bits = match["to"], match["type"]
    if ".relu" in match["how"]:
        raise PtxError(f"'{match[0]}'")
    how = f"{P}Round::away" if ".rna" in match["how"] else rounding(match)
    saturate = "true" if ".sat" in match["how"] else "false"
    if to == "tf32":
        return t.set(d, "u32", f"{P}to_tf32({t.value(a, 'f32')}, {how})")
    if b is not None:
        values = f"{t.value(a, 'f32')}, {t.value(b, 'f32')}"
        return t.set(d, to, f"{P}convert_two<{kind(to)}>({values}, {how}, {saturate})")
    source = flush(t.value(a, bits), match)
    if (
        re.match(r"[us]", to)
        and not re.match(r"[us]", bits)
        and not re.search(r"\.r", match["how"])
    ):
        raise PtxError(f"'{match[0]}' without a rounding")
    call = f"{P}convert<{kind(to)}>({source}, {how}, {saturate})"
    return t.set(d, to, flush_float(call, match, to))


def flush_float(text: str, match, to: str) -> str:
    return f"{P}flushed({text})" if ".ftz" in match["how"] and to == "f32" else text


@instruction(
    r"cvta(?P<to>\.to)?\.(?P<space>shared(?:::cta|::cluster)?|global|local|const)"
    r"\.(?P<type>u32|u64)"
)
def address_space(t, match, d, a):
    bits = match["type"]
    if not match["space"].startswith("shared"):
        return t.set(d, bits, t.value(a, bits))
    if match["to"]:
        pointer = f"reinterpret_cast<const void*>({t.value(a, 'u64')})"
        return t.set(d, "u32", f"{P}shared_address({pointer}, {HERE})")
    pointer = f"{P}shared_pointer({t.value(a, 'u64')}, {HERE})"
    return t.set(d, "u64", f"reinterpret_cast<{P}u64>({pointer})")


@instruction(r"mapa(?P<space>\.shared::cluster)?\.(?P<type>u32|u64)")
def address_in_cluster(t, match, d, a, rank):
    if match["space"]:
        values = f"{t.value(a, 'u64')}, {t.value(rank, 'u32')}"
        return t.set(d, match["type"], f"{P}map_address({values}, {HERE})")
    pointer = f"reinterpret_cast<const void*>({t.value(a, 'u64')})"
    address = f"{P}shared_address({pointer}, {HERE})"
    there = f"{P}map_address({address}, {t.value(rank, 'u32')}, {HERE})"
    return t.set(d, "u64", f"reinterpret_cast<{P}u64>({P}shared_pointer({there}, {HERE}))")
