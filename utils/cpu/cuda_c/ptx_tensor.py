"""Inline PTX in C++: matrices of a warp (ldmatrix, stmatrix, mma) and of a warp group (wgmma).

Source: PTX ISA, "Warp Level Matrix Instructions", "Asynchronous Warpgroup Level Matrix
Instructions". See `ptx_to_cpp.py`.
"""

from .ptx import PtxError
from .ptx_to_cpp import HERE, P, instruction, kind


def listed(operand) -> list[str]:
    return operand if isinstance(operand, list) else [operand]


@instruction(
    r"ldmatrix\.sync\.aligned\.m8n8\.x(?P<many>[124])(?P<turned>\.trans)?"
    r"(?:\.shared(?:::cta)?)?\.b16"
)
def load_matrices(t, match, d, address):
    names = listed(d)
    if len(names) != int(match["many"]):
        raise PtxError(f"'{match[0]}' with {len(names)} registers")
    turned = "true" if match["turned"] else "false"
    text = (
        f"{P}u32 cuda_cpu_m[4]; {P}load_matrices({t.number_of(address)}, cuda_cpu_m, {len(names)}, "
        f"{turned}, {HERE}); "
    )
    return text + " ".join(t.set(n, "u32", f"cuda_cpu_m[{i}]") for i, n in enumerate(names))


@instruction(
    r"stmatrix\.sync\.aligned\.m8n8\.x(?P<many>[124])(?P<turned>\.trans)?"
    r"(?:\.shared(?:::cta)?)?\.b16"
)
def store_matrices(t, match, address, d):
    names = listed(d)
    if len(names) != int(match["many"]):
        raise PtxError(f"'{match[0]}' with {len(names)} registers")
    turned = "true" if match["turned"] else "false"
    values = ", ".join(t.value(n, "u32") for n in names)
    return (
        f"{P}u32 cuda_cpu_m[4] = {{{values}}}; "
        f"{P}store_matrices({t.number_of(address)}, cuda_cpu_m, {len(names)}, {turned}, {HERE});"
    )


SIZES = {
    "f64": 8,
    "tf32": 4,
    "f16": 2,
    "bf16": 2,
    "s8": 1,
    "u8": 1,
    "e4m3": 1,
    "e5m2": 1,
}
#: (m, k) of m..n8k.. for each type
SHAPES = {
    "f16": {(16, 8), (16, 16)},
    "bf16": {(16, 8), (16, 16)},
    "tf32": {(16, 4), (16, 8)},
    "s8": {(8, 16), (16, 16), (16, 32)},
    "u8": {(8, 16), (16, 16), (16, 32)},
    "e4m3": {(16, 16), (16, 32)},
    "e5m2": {(16, 16), (16, 32)},
    "f64": {(8, 4), (16, 4), (16, 8), (16, 16)},
}
SUMS = {
    "f16": ("f16", "f32"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "f64": ("f64",),
    "s8": ("s32",),
    "u8": ("s32",),
    "e4m3": ("f16", "f32"),
    "e5m2": ("f16", "f32"),
}


MMA = (
    r"mma(?P<sparse>\.sp(?:::ordered_metadata)?)?\.sync\.aligned"
    r"\.m(?P<m>\d+)n8k(?P<k>\d+)\.row\.col(?P<saturate>\.satfinite)?"
    r"\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>\w+)"
)


def refuse_unknown(match, places) -> None:
    """Raises PtxError for a product of shapes and types that no GPU has."""
    m = int(match["m"])
    k = int(match["k"])
    kind_of_a = match["a"]
    kind_of_b = match["b"]
    sparse = bool(match["sparse"])
    stored = k // 2 if sparse else k
    known = (m, stored) in SHAPES.get(kind_of_a, ())
    may_be_sparse = kind_of_a in ("f16", "bf16") and k == 32
    if not known or (sparse and not may_be_sparse):
        raise PtxError(f"'{match[0]}'")
    if match["d"] not in SUMS[kind_of_a] or match["c"] != match["d"]:
        raise PtxError(f"'{match[0]}'")
    if SIZES.get(kind_of_b) != SIZES[kind_of_a]:
        raise PtxError(f"'{match[0]}'")
    if bool(places) != sparse:
        raise PtxError(f"'{match[0]}'")


@instruction(MMA)
def warp_product(t, match, d, a, b, c, places=None, selector="0"):
    refuse_unknown(match, places)
    m = int(match["m"])
    k = int(match["k"])
    kinds = match["a"], match["b"]
    stored = k // 2 if match["sparse"] else k
    size = SIZES[kinds[0]]
    word = max(size, 4)
    wanted = [m * stored * size // 32 // word, k * 8 * size // 32 // word]
    sums = m * 8 // 32 // (2 if match["d"] == "f16" else 1)
    given = [len(listed(x)) for x in (a, b, c, d)]
    if given != [*wanted, sums, sums]:
        raise PtxError(f"'{match[0]}' with {given} registers")
    bits = {"f64": "f64", "s32": "u32", "f16": "u32", "f32": "f32"}
    operand = "f64" if kinds[0] == "f64" else "u32"
    arrays = [
        f"{kind(how)} cuda_cpu_{name}[] = {{{', '.join(t.value(x, how) for x in listed(values))}}};"
        for name, values, how in (("a", a, operand), ("b", b, operand), ("c", c, bits[match["d"]]))
    ]
    of = f"{P}Number::"
    total = {"f16": "f32"}.get(match["d"], match["d"])
    flags = [
        match["d"] == "f16",
        bool(match["saturate"]),
        bool(match["sparse"]),
    ]
    shape = (
        f"{{{m}, 8, {k}, {of}{kinds[0]}, {of}{kinds[1]}, {of}{total}, "
        + ", ".join(str(f).lower() for f in flags)
        + "}"
    )
    where = t.value(places, "u32") if places else "0"
    call = (
        f"{kind(bits[match['d']])} cuda_cpu_d[{sums}]; {P}mma({shape}, cuda_cpu_d, cuda_cpu_a, "
        f"cuda_cpu_b, cuda_cpu_c, {where}, {t.value(selector, 'u32')}, {HERE});"
    )
    results = [t.set(n, bits[match["d"]], f"cuda_cpu_d[{i}]") for i, n in enumerate(listed(d))]
    return " ".join([*arrays, call, *results])


# ---- wgmma


@instruction(r"wgmma\.fence\.sync\.aligned")
def group_fence(t, match):
    return f"{P}wgmma_fence();"


@instruction(r"wgmma\.commit_group\.sync\.aligned")
def group_commit(t, match):
    return f"{P}wgmma_commit();"


@instruction(r"wgmma\.wait_group\.sync\.aligned")
def group_wait(t, match, pending):
    return f"{P}wgmma_wait({t.value(pending, 'u32')}, {HERE});"


@instruction(r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>\d+)\.(?P<d>f16|f32|s32)"
             r"\.(?P<a>\w+)\.(?P<b>\w+)(?P<saturate>\.satfinite)?")  # fmt: skip
def group_product(t, match, d, a, b, add="1", *more):
    n, k = int(match["n"]), int(match["k"])
    kinds = match["a"], match["b"]
    size = SIZES.get(kinds[0], 0)
    if n % 8 or not 8 <= n <= 256 or size not in (1, 2, 4) or k * size != 32:
        raise PtxError(f"'{match[0]}'")
    if match["d"] not in SUMS[kinds[0]] or SIZES.get(kinds[1]) != size:
        raise PtxError(f"'{match[0]}'")
    names = listed(d)
    wanted = n // 4 if match["d"] == "f16" else n // 2
    if len(names) != wanted:
        raise PtxError(f"'{match[0]}' with {len(names)} sums: a thread holds {wanted}")
    from_registers = isinstance(a, list)
    values = [t.value(x, "s32") for x in more]
    signs = values[:2] if match["d"] != "s32" and values else ["1", "1"]
    turns = values[2:] if size == 2 else []
    left = turns.pop(0) if turns and not from_registers else "0"
    right = turns.pop(0) if turns else "0"
    of = f"{P}Number::"
    flags = [
        match["d"] == "f16",
        match["d"] == "s32",
        bool(match["saturate"]),
        from_registers,
    ]
    shape = (
        f"{{{n}, {k}, {of}{kinds[0]}, {of}{kinds[1]}, "
        + ", ".join(str(f).lower() for f in flags)
        + f", ({left}) != 0, ({right}) != 0, ({signs[0]}) < 0, ({signs[1]}) < 0}}"
    )
    sums = ", ".join(f"&{t.name(x)}" for x in names)
    held = ", ".join(t.value(x, "u32") for x in a) if from_registers else "0"
    tile = "0" if from_registers else t.value(a, "u64")
    return (
        f"void* const cuda_cpu_s[] = {{{sums}}}; {P}u32 cuda_cpu_a[] = {{{held}}}; "
        f"{P}wgmma({shape}, cuda_cpu_s, cuda_cpu_a, {tile}, {t.value(b, 'u64')}, "
        f"{t.value(add, 'pred')}, {HERE});"
    )
