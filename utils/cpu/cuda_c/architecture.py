"""The GPU that a program is built for: what `__CUDA_ARCH__` is, and which PTX there is.

Source of the table: PTX ISA, "Target ISA Notes" of each instruction.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

NAMED_BY = ("-arch", "-gencode", "-code", "--gpu-architecture", "--generate-code", "--gpu-code")
NAME = re.compile(r"\b(?:sm|compute|lto)_(\d{2,3})([af]?)")
HOPPER = 90
#: Instructions by the first architecture that has them; the first pattern that fits counts
SINCE = tuple(
    (re.compile(pattern), since)
    for pattern, since in (
        (r"cp\.async\.bulk|cp\.reduce\.async|st\.async|red\.async|multimem\.", 90),
        (r"barrier\.cluster|mapa\.|getctarank|elect\.sync|stmatrix\.", 90),
        (r"mbarrier\.(try_wait|expect_tx|complete_tx|arrive(_drop)?\.expect_tx)", 90),
        (r"fence\.(proxy\.async|mbarrier_init)|griddepcontrol", 90),
        (r"mma\.\S*\.(e4m3|e5m2)|cvt\.\S*(e4m3|e5m2)", 89),
        (r"cp\.async\.|mbarrier\.|redux\.sync|mma\.sp|createpolicy", 80),
        (r"mma\.sync\.aligned\.m(16n8k(4|16|32|64)|8n8k4\.row\.col\.f64)", 80),
        (r"mma\.sync\S*\.(bf16|tf32)|cvt\.\S*(bf16x2|tf32)", 80),
    )
)
#: Of Hopper alone, under the name sm_90a
ONLY_HOPPER = re.compile(r"wgmma\.|setmaxnreg\.")


@dataclass(frozen=True)
class Architecture:
    """number: 90 for sm_90. suffix: "a" or "f", or "" for what later GPUs have too."""

    number: int = HOPPER
    suffix: str = "a"

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"

    def macros(self) -> list[str]:
        """What nvcc defines where it compiles for this GPU."""
        macros = [f"-D__CUDA_ARCH__={self.number * 10}"]
        if self.suffix == "a":
            macros.append(f"-D__CUDA_ARCH_FEAT_SM{self.number}_ALL=1")
        if self.suffix:
            macros.append(f"-D__CUDA_ARCH_SPECIFIC__={self.number * 10}")
        return macros

    def lacks(self, opcode: str) -> str:
        """Why this GPU does not have the instruction, or ""."""
        if ONLY_HOPPER.match(opcode) and (self.number, self.suffix) != (HOPPER, "a"):
            return f"'{opcode}' for {self}: it requires .target sm_{HOPPER}a"
        since = next((since for pattern, since in SINCE if pattern.match(opcode)), 0)
        if self.number < since:
            return f"'{opcode}' for {self}: it requires .target sm_{since} or higher"
        return ""


def architecture(flags: Sequence[str]) -> Architecture:
    """The newest architecture that nvcc's options name; Hopper where they name none."""
    named = []
    before = ""
    for flag in flags:
        if flag.startswith(NAMED_BY) or before in NAMED_BY:
            named += NAME.findall(flag)
        before = flag
    if not named:
        return Architecture()
    number, suffix = max(named, key=lambda name: (int(name[0]), name[1]))
    return Architecture(int(number), suffix)
