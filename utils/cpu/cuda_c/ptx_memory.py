"""Inline PTX in C++: memory, fences, branches, and what the lanes of a warp do together.

Source: PTX ISA, "Instruction Set". See `ptx_to_cpp.py`.
"""

from .ptx import PtxError
from .ptx_to_cpp import HERE, TYPE, P, instruction, kind

SPACE = r"(?:\.(?P<space>global|shared(?:::cta|::cluster)?|local|const))?"
CACHE = r"(?:\.(?:ca|cg|cs|lu|cv|wb|wt|nc|L1::\w+|L2::\w+))*"
SEM = r"(?:\.(?P<sem>weak|volatile|relaxed|acquire|release|acq_rel|sc))?"
SCOPE = r"(?:\.(?P<scope>cta|cluster|gpu|sys))?"
VECTOR = r"(?:\.v(?P<many>[248]))?"
FENCE = {"cta": 0, "cluster": 1, "gpu": 1, "sys": 2, None: 1}


def element(match, i: int) -> str:
    return f"{i} * sizeof({kind(match['type'])})"


def names_of(match, operand) -> list[str]:
    names = operand if isinstance(operand, list) else [operand]
    if len(names) != int(match["many"] or 1):
        raise PtxError(f"'{match[0]}' with {len(names)} values")
    return names


@instruction(rf"ld{SEM}{SCOPE}{SPACE}{CACHE}{VECTOR}\.{TYPE}")
def load(t, match, d, address, policy=None):
    whole = f"{int(match['many'] or 1)} * sizeof({kind(match['type'])})"
    lines = [f"char* cuda_cpu_p = {t.pointer(address, match['space'] or '')};"]
    lines.append(f"{P}check_aligned(cuda_cpu_p, {whole}, {HERE});")
    atomic = match["sem"] not in (None, "weak")
    name = "load_volatile" if atomic else "load"
    for i, register in enumerate(names_of(match, d)):
        value = f"{P}{name}<{kind(match['type'])}>(cuda_cpu_p + {element(match, i)})"
        lines.append(t.set(register, match["type"], value))
    if match["sem"] == "acquire":
        lines.append(f"::cuda_cpu::fence({FENCE[match['scope']]});")
    elif atomic:
        lines.append("::cuda_cpu::spinning();")
    return " ".join(lines)


@instruction(rf"st{SEM}{SCOPE}{SPACE}{CACHE}{VECTOR}\.{TYPE}")
def store(t, match, address, a, policy=None):
    whole = f"{int(match['many'] or 1)} * sizeof({kind(match['type'])})"
    lines = [f"char* cuda_cpu_p = {t.pointer(address, match['space'] or '')};"]
    lines.append(f"{P}check_aligned(cuda_cpu_p, {whole}, {HERE});")
    if match["sem"] == "release":
        lines.append(f"::cuda_cpu::fence({FENCE[match['scope']]});")
    name = "store" if match["sem"] in (None, "weak") else "store_volatile"
    for i, register in enumerate(names_of(match, a)):
        value = t.value(register, match["type"])
        lines.append(
            f"{P}{name}<{kind(match['type'])}>(cuda_cpu_p + {element(match, i)}, {value});"
        )
    return " ".join(lines)


REDUCTIONS = {
    "add": f"{P}add",
    "min": f"{P}smaller",
    "max": f"{P}larger",
    "and": f"{P}bits_and",
    "or": f"{P}bits_or",
    "xor": f"{P}bits_xor",
    "inc": f"{P}wrapped_up",
    "dec": f"{P}wrapped_down",
    "exch": f"{P}second",
}


@instruction(
    rf"(?P<op>atom|red){SEM}{SCOPE}{SPACE}\.(?P<how>\w+?)(?:\.noftz)?(?:\.L2::cache_hint)?"
    rf"{VECTOR}\.{TYPE}"
)
def atomic(t, match, *operands):
    operands = list(operands)
    d = operands.pop(0) if match["op"] == "atom" else "_"
    address, values = operands[0], operands[1:]
    bits = match["type"]
    cxx = kind(bits)
    lines = [f"char* cuda_cpu_p = {t.pointer(address, match['space'] or '')};"]
    fence = f"::cuda_cpu::fence({FENCE[match['scope']]});"
    if match["sem"] in ("release", "acq_rel"):
        lines.append(fence)
    if match["how"] == "cas":
        held = f"{t.value(values[0], bits)}, {t.value(values[1], bits)}"
        call = f"{P}compare_and_swap<{cxx}>(cuda_cpu_p, {held})"
        lines.append(t.set(d, bits, call))
    elif match["how"] in REDUCTIONS:
        targets = names_of(match, d) if d != "_" else ["_"] * int(match["many"] or 1)
        for i, (target, value) in enumerate(zip(targets, names_of(match, values[0]), strict=True)):
            body = f"[](auto a, auto b) {{ return {REDUCTIONS[match['how']]}<{cxx}>(a, b); }}"
            place = f"cuda_cpu_p + {element(match, i)}"
            call = f"{P}atomic<{cxx}>({place}, {t.value(value, bits)}, {body})"
            lines.append(t.set(target, bits, call))
    else:
        raise PtxError(f"'{match[0]}'")
    if match["sem"] in ("acquire", "acq_rel"):
        lines.append(fence)
    return " ".join(lines)


@instruction(
    r"(?:prefetch|prefetchu|discard|applypriority|cp\.async\.bulk\.prefetch)\b.*"
    r"|pmevent(?:\.mask)?|brkpt"
)
def hint(t, match, *operands):
    return ""


@instruction(r"createpolicy\..*b64")
def policy(t, match, d, *fractions):
    return t.set(d, "u64", "0")


@instruction(
    r"membar\.(?P<scope>cta|gl|sys)"
    r"|fence(?:\.(?:sc|acq_rel|acquire|release))?\.(?P<other>cta|cluster|gpu|sys)"
)
def memory_fence(t, match):
    scope = {"gl": "gpu"}.get(match["scope"] or match["other"], match["scope"] or match["other"])
    return f"::cuda_cpu::fence({FENCE[scope]});"


@instruction(r"isspacep\.(?P<space>shared(?:::cta|::cluster)?|global|local|const)")
def is_space(t, match, d, a):
    inside = f"{P}in_shared({t.value(a, 'u64')})"
    if match["space"].startswith("shared"):
        return t.set(d, "pred", inside)
    if match["space"] == "global":
        return t.set(d, "pred", f"!{inside}")
    raise PtxError(f"'{match[0]}'")


# ---- flow


@instruction(r"bra(?:\.uni)?")
def branch(t, match, target):
    if target not in t.labels:
        raise PtxError(f"the label '{target}'")
    return f"::cuda_cpu::spinning(); goto {t.label(target)};"


@instruction(r"trap")
def trap(t, match):
    return "::__trap();"


@instruction(r"nanosleep\.u32")
def sleep(t, match, a):
    return f"::__nanosleep({t.value(a, 'u32')});"


# ---- warps


@instruction(r"bar\.warp\.sync")
def warp_barrier(t, match, mask):
    return f"::__syncwarp({t.value(mask, 'u32')});"


@instruction(r"activemask\.b32")
def active(t, match, d):
    return t.set(d, "u32", "::__activemask()")


@instruction(r"vote\.sync\.(?P<op>all|any|uni|ballot)\.(?:pred|b32)")
def vote(t, match, d, p, mask):
    bits = "u32" if match["op"] == "ballot" else "pred"
    call = f"::__{match['op']}_sync({t.value(mask, 'u32')}, {t.value(p, 'pred')})"
    return t.set(d, bits, call)


@instruction(r"match\.(?P<op>any|all)\.sync\.(?P<type>b32|b64)")
def matching(t, match, d, a, mask):
    value = f"{t.value(mask, 'u32')}, {t.value(a, match['type'])}"
    if match["op"] == "any":
        return t.set(d, "u32", f"::__match_any_sync({value})")
    target, same = d if isinstance(d, tuple) else (d, "_")
    text = "int cuda_cpu_same = 0; " + t.set(
        target, "u32", f"::__match_all_sync({value}, &cuda_cpu_same)"
    )
    return text + " " + t.set(same, "pred", "cuda_cpu_same != 0")


@instruction(r"redux\.sync\.(?P<op>add|min|max|and|or|xor)\.(?P<type>[us]32|b32)")
def warp_reduction(t, match, d, a, mask):
    call = f"::__reduce_{match['op']}_sync({t.value(mask, 'u32')}, {t.value(a, match['type'])})"
    return t.set(d, match["type"], call)


@instruction(r"shfl\.sync\.(?P<op>up|down|bfly|idx)\.b32")
def shuffle(t, match, d, a, b, c, mask):
    target, inside = d if isinstance(d, tuple) else (d, "_")
    values = ", ".join(t.value(x, "u32") for x in (a, b, c, mask))
    call = f"{P}shuffle({P}Shuffle::{match['op']}, {values}, cuda_cpu_in, {HERE})"
    text = "bool cuda_cpu_in = false; " + t.set(target, "u32", call)
    return text + " " + t.set(inside, "pred", "cuda_cpu_in")


@instruction(r"elect\.sync")
def elected(t, match, d, mask):
    target, leader = d
    call = f"{P}elect({t.value(mask, 'u32')}, &cuda_cpu_leader, {HERE})"
    text = "bool cuda_cpu_leader = false; " + t.set(target, "u32", call)
    return text + " " + t.set(leader, "pred", "cuda_cpu_leader")
