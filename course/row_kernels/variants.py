"""What each choice in the fast kernels brings: the kernels with one thing changed."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from course.row_kernels.fast import KERNELS

LOAD = "float4 four = *reinterpret_cast<const float4*>(from);"
INCLUDE = '#include "bulk_copy.cuh"\n'
NO_ALLOCATE = """float4 four;
    asm("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
        : "l"(from));"""


@dataclass(frozen=True)
class Variant:
    """A text in a file and what stands there instead. ring: with it, without it, or both (None)."""

    file: str
    old: str
    new: str
    ring: bool | None = None


VARIANTS = {
    "stores: evict first": Variant("fast.cuh", "__stcg(", "__stcs("),
    "stores: no hint": Variant(
        "fast.cuh", INCLUDE, INCLUDE + "#define __stcg(p, v) (*(p) = (v))\n"
    ),
    "loads: evict first": Variant(
        "fast.cuh", LOAD, LOAD.replace("*reinterpret", "__ldcs(reinterpret")[:-1] + ");", ring=False
    ),
    "loads: past L1": Variant(
        "fast.cuh", LOAD, LOAD.replace("*reinterpret", "__ldcg(reinterpret")[:-1] + ");", ring=False
    ),
    "loads: no L1 line": Variant("fast.cuh", LOAD, NO_ALLOCATE, ring=False),
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
