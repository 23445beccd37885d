"""What each choice in the fast kernels brings: the kernels with one thing changed."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from course.kernels.row_kernels.fast import KERNELS

HINTED = "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
PLAIN = "ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
PAST_L1 = "ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
FIRST_READ = "ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
STORE = "__stcg(reinterpret_cast<Pack*>(to), bits);"
STORE_EVICT_FIRST = """asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;"
        ::"l"(to), "f"(bits.x), "f"(bits.y), "f"(bits.z), "f"(bits.w), "l"(evict_first())
        : "memory");"""
INCLUDE = '#include "elements.cuh"\n'


@dataclass(frozen=True)
class Variant:
    """A text in a file and what stands there instead. ring: with it, without it, or both (None)."""

    file: str
    old: str
    new: str
    ring: bool | None = None


VARIANTS = {
    "loads: L2 as it likes": Variant("elements.cuh", HINTED, PLAIN, ring=False),
    "loads: past L1, without a hint": Variant("elements.cuh", HINTED, PAST_L1, ring=False),
    "loads: L2 evicts first": Variant(
        "elements.cuh", '"l"(evict_last())', '"l"(evict_first())', False
    ),
    "loads: through L1": Variant(
        "elements.cuh", HINTED, HINTED.replace("L1::no_allocate.", ""), False
    ),
    "reads: L2 as it likes": Variant("two_reads.cuh", '"l"(evict_last())', '"l"(evict_normal())'),
    "reads: L1 as it likes": Variant(
        "two_reads.cuh", FIRST_READ, FIRST_READ.replace("L1::evict_last.", "")
    ),
    "reads: L2 keeps the second, too": Variant(
        "two_reads.cuh", '"l"(evict_first())', '"l"(evict_last())'
    ),
    "stores: L2 evicts first": Variant("fast.cuh", STORE, STORE_EVICT_FIRST),
    "stores: no hint": Variant(
        "fast.cuh", INCLUDE, INCLUDE + "#define __stcg(p, v) (*(p) = (v))\n"
    ),
    "fast exponentials": Variant("fast.cuh", INCLUDE, INCLUDE + "#define expf __expf\n"),
}


def folder(name: str) -> Path:
    """A copy of the kernels' folder with one change, made anew in the temporary folder.

    Raises ValueError if the text to change is not there.
    """
    change = VARIANTS[name]
    place = "".join(c if c.isalnum() else "_" for c in name)
    copy = Path(tempfile.gettempdir()) / "row_kernels" / place
    copy.mkdir(parents=True, exist_ok=True)
    for source in KERNELS.iterdir():
        text = source.read_text()
        if source.name == change.file:
            if change.old not in text:
                raise ValueError(f"{change.file} has no {change.old!r} any more")
            text = text.replace(change.old, change.new)
        (copy / source.name).write_text(text)
    return copy
