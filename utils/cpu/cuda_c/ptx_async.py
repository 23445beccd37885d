"""Inline PTX in C++: barriers, asynchronous copies, clusters and tensor cores.

Source: PTX ISA, "Instruction Set". See `ptx_to_cpp.py`.
"""

from .ptx import Address, PtxError
from .ptx_to_cpp import HERE, P, Translator, instruction, kind

SHARED = r"(?:\.shared(?:::cta|::cluster)?)?"
ORDER = r"(?:\.(?:release|acquire|relaxed))?(?:\.(?:cta|cluster))?"


# ---- mbarrier


@instruction(rf"mbarrier\.init{SHARED}\.b64")
def barrier_init(t, match, barrier, arrivals):
    return f"{P}mbarrier_init({t.number_of(barrier)}, {t.value(arrivals, 'u32')}, {HERE});"


@instruction(rf"mbarrier\.inval{SHARED}\.b64")
def barrier_inval(t, match, barrier):
    return f"{P}mbarrier_inval({t.number_of(barrier)}, {HERE});"


@instruction(
    rf"mbarrier\.arrive(?P<drop>_drop)?(?P<expect>\.expect_tx)?(?:\.noComplete)?"
    rf"{ORDER}{SHARED}\.b64"
)
def barrier_arrive(t, match, *operands):
    operands = list(operands)
    state = "_" if isinstance(operands[0], Address) else operands.pop(0)
    barrier, *number = operands
    value = t.value(number[0], "u32") if number else "1"
    count, announced = ("1", value) if match["expect"] else (value, "0")
    drop = "true" if match["drop"] else "false"
    call = f"{P}mbarrier_arrive({t.number_of(barrier)}, {count}, {announced}, {drop}, {HERE})"
    return t.set(state, "u64", call)


@instruction(rf"mbarrier\.expect_tx{ORDER}{SHARED}\.b64")
def barrier_expect(t, match, barrier, announced):
    return f"{P}mbarrier_expect({t.number_of(barrier)}, {t.value(announced, 'u32')}, {HERE});"


@instruction(rf"mbarrier\.complete_tx{ORDER}{SHARED}\.b64")
def barrier_complete(t, match, barrier, announced):
    return f"{P}mbarrier_complete({t.number_of(barrier)}, {t.value(announced, 'u32')}, {HERE});"


@instruction(rf"mbarrier\.(?P<op>test|try)_wait(?P<parity>\.parity)?{ORDER}{SHARED}\.b64")
def barrier_wait(t, match, p, barrier, which, limit=None):
    parity = "true" if match["parity"] else "false"
    waits = "true" if match["op"] == "try" else "false"
    bits = "u32" if match["parity"] else "u64"
    values = f"{t.number_of(barrier)}, {t.value(which, bits)}, {parity}, {waits}, {HERE}"
    return t.set(p, "pred", f"{P}mbarrier_wait({values})")


@instruction(r"mbarrier\.pending_count\.b64")
def barrier_pending(t, match, d, state):
    return t.set(d, "u32", f"{P}mbarrier_pending({t.value(state, 'u64')})")


# ---- cp.async


@instruction(r"cp\.async\.(?:ca|cg)\.shared(?:::cta)?\.global"
             r"(?P<hint>\.L2::cache_hint)?(?:\.L2::\d+B)?")  # fmt: skip
def copy(t, match, to, source, count, *more):
    whole = t.value(count, "u32")
    given = more[:-1] if match["hint"] else more  # the last is the policy then
    inside = t.value(given[0], "u32") if given else whole
    return f"{P}cp_async({t.number_of(to)}, {t.number_of(source)}, {whole}, {inside}, {HERE});"


@instruction(r"cp\.async\.commit_group")
def copy_commit(t, match):
    return f"{P}cp_async_commit();"


@instruction(r"cp\.async\.wait_group")
def copy_wait(t, match, pending):
    return f"{P}cp_async_wait({t.value(pending, 'u32')});"


@instruction(r"cp\.async\.wait_all")
def copy_wait_all(t, match):
    return f"{P}cp_async_wait(~0u);"


@instruction(rf"cp\.async\.mbarrier\.arrive(?P<fixed>\.noinc)?{SHARED}\.b64")
def copy_arrive(t, match, barrier):
    fixed = "true" if match["fixed"] else "false"
    return f"{P}cp_async_arrive({t.number_of(barrier)}, {fixed}, {HERE});"


# ---- bulk copies

REDUCE = r"(?:\.(?P<how>add|min|max|inc|dec|and|or|xor))?"
ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")


def reduction(match) -> str:
    how = match["how"]
    if not how:
        return f"{P}Reduce::none"
    return f"{P}Reduce::" + (f"bit_{how}" if how in ("and", "or", "xor") else how)


@instruction(r"cp\.async\.bulk\.shared::(?:cluster|cta)\.global\.mbarrier::complete_tx::bytes"
             r"(?P<many>\.multicast::cluster)?(?P<hint>\.L2::cache_hint)?")  # fmt: skip
def bulk_load(t, match, to, source, count, barrier, *more):
    many = "true" if match["many"] else "false"
    blocks = t.value(more[0], "u32") if match["many"] else "0"
    return (
        f"{P}bulk_load({t.number_of(to)}, {t.number_of(source)}, {t.value(count, 'u32')}, "
        f"{t.number_of(barrier)}, {blocks}, {many}, {HERE});"
    )


@instruction(r"cp\.async\.bulk\.shared::cluster\.shared::cta\.mbarrier::complete_tx::bytes")
def bulk_between(t, match, to, source, count, barrier):
    return (
        f"{P}bulk_between({t.number_of(to)}, {t.number_of(source)}, {t.value(count, 'u32')}, "
        f"{t.number_of(barrier)}, {HERE});"
    )


@instruction(r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?")
def bulk_store(t, match, to, source, count, policy=None):
    values = f"{t.number_of(to)}, {t.number_of(source)}, {t.value(count, 'u32')}"
    return f"{P}bulk_store({values}, {P}Reduce::none, {P}ElementType::u8, {HERE});"


@instruction(r"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?"
             rf"{REDUCE}(?:\.noftz)?\.(?P<type>[usf]\d+|b32|b64|bf16)")  # fmt: skip
def bulk_reduce(t, match, to, source, count, policy=None):
    element = match["type"].replace("b32", "u32").replace("b64", "u64")
    values = f"{t.number_of(to)}, {t.number_of(source)}, {t.value(count, 'u32')}"
    return f"{P}bulk_store({values}, {reduction(match)}, {P}ElementType::{element}, {HERE});"


@instruction(r"cp\.async\.bulk\.commit_group")
def bulk_commit(t, match):
    return f"{P}bulk_commit();"


@instruction(r"cp\.async\.bulk\.wait_group(?P<read>\.read)?")
def bulk_wait(t, match, pending):
    read = "true" if match["read"] else "false"
    return f"{P}bulk_wait({t.value(pending, 'u32')}, {read});"


@instruction(r"st\.async(?:\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes"
             r"(?:\.v(?P<many>[24]))?\.(?P<type>[busf](?:32|64))")  # fmt: skip
def store_async(t, match, to, value, barrier):
    values = value if isinstance(value, list) else [value]
    bits = match["type"]
    held = ", ".join(t.value(v, bits) for v in values)
    return (
        f"{kind(bits)} cuda_cpu_v[] = {{{held}}}; {P}store_async({t.number_of(to)}, "
        f"{t.number_of(barrier)}, cuda_cpu_v, sizeof cuda_cpu_v, {HERE});"
    )


# ---- tensor copies


def place(t: Translator, address: Address, offsets=()) -> str:
    if not isinstance(address, Address) or not address.coordinates:
        raise PtxError("a tensor copy without coordinates")
    coordinates = ", ".join(t.value(c, "s32") for c in address.coordinates)
    moved = ", ".join(t.value(o, "u16") for o in offsets)
    return f"{P}Place{{{{{coordinates}}}, {{{moved}}}}}"


def dimensions(match, address) -> int:
    rank = int(match["rank"])
    if not isinstance(address, Address) or len(address.coordinates) != rank:
        raise PtxError(f"'{match[0]}' with another number of coordinates")
    return rank


HINT = r"(?P<hint>\.L2::cache_hint)?"
COUNTED = r"\.mbarrier::complete_tx::bytes"


@instruction(
    r"cp\.async\.bulk\.tensor\.(?P<rank>[1-5])d\.shared::(?:cluster|cta)\.global"
    rf"(?P<mode>\.tile|\.im2col)?{COUNTED}(?P<many>\.multicast::cluster)?{HINT}"
)
def tensor_load(t, match, to, tensor, barrier, *more):
    more = list(more)
    pixels = match["mode"] == ".im2col"
    rank = dimensions(match, tensor)
    offsets = more.pop(0) if pixels else ()
    blocks = t.value(more.pop(0), "u32") if match["many"] else "0"
    base = t.value(tensor.base, "u64")
    many = "true" if match["many"] else "false"
    return (
        f"{P}tensor_load({t.number_of(to)}, {base}, {place(t, tensor, offsets)}, {rank}, "
        f"{'true' if pixels else 'false'}, {t.number_of(barrier)}, {blocks}, {many}, {HERE});"
    )


@instruction(r"cp(?P<reduce>\.reduce)?\.async\.bulk\.tensor\.(?P<rank>[1-5])d\.global\.shared::cta"
             rf"{REDUCE}(?P<mode>\.tile|\.im2col(?:_no_offs)?)?\.bulk_group{HINT}")  # fmt: skip
def tensor_store(t, match, tensor, source, policy=None):
    rank = dimensions(match, tensor)
    pixels = "true" if "im2col" in (match["mode"] or "") else "false"
    base = t.value(tensor.base, "u64")
    return (
        f"{P}tensor_store({base}, {place(t, tensor)}, {rank}, {t.number_of(source)}, "
        f"{reduction(match)}, {pixels}, {HERE});"
    )


@instruction(
    r"fence\.proxy\.(?:async(?:\.(?:global|shared::(?:cta|cluster)))?|alias)"
    r"|fence\.proxy\.async::generic\..*"
)
def proxy_fence(t, match):
    return f"{P}fence_proxy_async();"


@instruction(r"fence\.mbarrier_init\.release\.cluster|griddepcontrol\.(?:wait|launch_dependents)")
def in_order_anyway(t, match):
    return ""


# ---- meetings


@instruction(r"(?:bar|barrier)(?:\.cta)?\.(?P<op>sync|arrive)(?:\.aligned)?")
def named_barrier(t, match, number, threads="0"):
    waits = "true" if match["op"] == "sync" else "false"
    values = f"{t.value(number, 'u32')}, {t.value(threads, 'u32')}"
    return f"{P}named_barrier({values}, {waits}, {HERE});"


@instruction(
    r"(?:bar|barrier)(?:\.cta)?\.red\.(?P<op>popc|and|or)(?:\.aligned)?\.(?P<type>u32|pred)"
)
def barrier_with_vote(t, match, d, number, p):
    if number != "0":
        raise PtxError(f"'{match[0]}' with a number")
    name = {"popc": "count", "and": "and", "or": "or"}[match["op"]]
    return t.set(d, match["type"], f"::__syncthreads_{name}({t.value(p, 'pred')})")


@instruction(
    r"barrier\.cluster\.(?P<op>arrive|wait)(?:\.(?:release|relaxed|acquire))?(?:\.aligned)?"
)
def cluster_barrier(t, match):
    return f"{P}cluster_{match['op']}({HERE});"


@instruction(r"setmaxnreg\.(?P<way>inc|dec)\.sync\.aligned\.u32")
def registers(t, match, count):
    more = "true" if match["way"] == "inc" else "false"
    return f"{P}keep_registers({t.value(count, 'u32')}, {more}, {HERE});"
