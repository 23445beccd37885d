"""What each trick of the ring kernels brings: the kernels with one thing changed."""

import tempfile
from pathlib import Path

from course.row_kernels.ring import KERNELS

HEADER = '#include "bulk_copy.cuh"\n'
COPY = """    bulk_copy(to, tiles.from[input] + row * columns + rank() * part, bytes, &full[stage],
                  tiles.policy);
"""
COPY_IN_PIECES = """    const Element* from = tiles.from[input] + row * columns + rank() * part;
        constexpr unsigned piece = 8192 / sizeof(Element);
        for (unsigned at = 0; at < rows * part; at += piece) {
            unsigned left = (rows * part - at) * sizeof(Element);
            bulk_copy(to + at, from + at, left < 8192 ? left : 8192, &full[stage], tiles.policy);
        }
"""
#: name: (file, text, what stands there instead)
VARIANTS = {
    "stores that the caches keep": (
        "ring.cuh",
        HEADER,
        HEADER + "#define __stcs(p, v) (*(p) = (v))\n",
    ),
    "stores past L1 only": ("ring.cuh", HEADER, HEADER + "#define __stcs __stcg\n"),
    "loads that L2 keeps": ("bulk_copy.cuh", "L2::evict_first.b64", "L2::evict_normal.b64"),
    "copies in pieces of 8 KB": ("ring.cuh", COPY, COPY_IN_PIECES),
    "fast exponentials": ("ring.cuh", HEADER, HEADER + "#define expf __expf\n"),
}


def folder(name: str) -> Path:
    """A copy of the kernels' folder with one change, made anew in the temporary folder."""
    changed, old, new = VARIANTS[name]
    copy = Path(tempfile.gettempdir()) / "row_kernels" / name.replace(" ", "_").replace(",", "")
    copy.mkdir(parents=True, exist_ok=True)
    for source in KERNELS.iterdir():
        text = source.read_text()
        if source.name == changed:
            if old not in text:
                raise ValueError(f"{changed} has no {old!r} any more")
            text = text.replace(old, new)
        (copy / source.name).write_text(text)
    return copy
