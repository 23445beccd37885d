"""What each choice in the fast kernels brings: the kernels with one thing changed."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from course.kernels.row_kernels.fast import KERNELS

LOAD = "return __ldcg(from);"
LOAD_NO_LINE = """Pack v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(from));
    return v;"""
LOAD_EVICT_FIRST = """Pack v;
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.cg.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(from), "l"(policy));
    return v;"""
INCLUDE = '#include "bulk_copy.cuh"\n'


@dataclass(frozen=True)
class Variant:
    """A text in a file and what stands there instead. ring: with it, without it, or both (None)."""

    file: str
    old: str
    new: str
    ring: bool | None = None


VARIANTS = {
    "loads: through L1": Variant("fast.cuh", LOAD, "return *from;", ring=False),
    "loads: streaming": Variant("fast.cuh", LOAD, "return __ldcs(from);", ring=False),
    "loads: last use": Variant("fast.cuh", LOAD, "return __ldlu(from);", ring=False),
    "loads: L2 evicts first": Variant("fast.cuh", LOAD, LOAD_EVICT_FIRST, ring=False),
    "loads: read-only, no L1 line": Variant("fast.cuh", LOAD, LOAD_NO_LINE, ring=False),
    "reads: nothing kept for the second": Variant("two_reads.cuh", "L1::evict_last.", ""),
    "reads: the second keeps, too": Variant("two_reads.cuh", "L1::evict_first.", ""),
    "stores: evict first": Variant("fast.cuh", "__stcg(", "__stcs("),
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
