"""The float32 rungs: whole files that compile without spills, to the instructions that the chapter
promises.
"""

import pytest

from course.kernels.matmul import search
from course.kernels.matmul.ladder import KERNELS
from tests.compiling import needs_nvcc, sass, unspilled

TUNED = search.flags(search.EVERY["128 × 256, warps 64 × 64", "BK 32, 3 stages"])
PROMISED = {
    "naive": ("FFMA",),
    "coalesced": ("FFMA",),
    "tile": ("STS", "LDS"),
    "tile_1d": ("STS", "LDS"),
    "tile_2d": ("STS", "LDS"),
    "vector": ("LDG.E.128", "LDS.128", "STG.E.128"),
    "banks": ("LDS.128", "STS.128"),
    "cp_async": ("LDGSTS", "LDS.128"),
    "cp_async_wide": ("LDGSTS", "LDG.E.128", "LDS.128"),
    "warp_tile": ("LDGSTS", "LDS.128"),
    "tuned": ("LDGSTS", "LDS.128", "STG.E.128"),
    "split_k": ("LDGSTS", "RED"),
    "l2_order": ("LDGSTS", "LDS.128"),
    "stream_k": ("LDGSTS", "MEMBAR"),
}


#: The first with wide accesses, with copies that do not wait, and with blocks that share a tile
BY_DAY = "vector", "cp_async", "stream_k"
OTHERS = pytest.mark.nightly("by day three compile, and the chapter builds and runs them all")


@needs_nvcc
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in BY_DAY else [OTHERS]) for name in PROMISED]
)
def test_compiles_to_the_promised_instructions(name, tmp_path):
    flags = TUNED if name in ("tuned", "split_k", "l2_order", "stream_k") else ()
    code = sass(unspilled(KERNELS / f"{name}.cu", tmp_path, "sm_90a", *flags))
    assert [each for each in PROMISED[name] if each not in code] == []


@pytest.mark.nightly("by day the kernel compiles without spills as it stands")
@needs_nvcc
@pytest.mark.parametrize("switches", [("-DAHEAD=0",), ("-DTO_AND_FRO=0",)], ids=str)
def test_each_switch_compiles_without_spills(switches, tmp_path):
    unspilled(KERNELS / "tuned.cu", tmp_path, "sm_90a", *TUNED, *switches)
