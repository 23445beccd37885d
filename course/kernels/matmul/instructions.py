"""What a compiler made of a rung, counted: how many of its instructions multiply and add."""

from course.kernels.matmul.ladder import KERNELS
from utils.tools import machine_code, yours
from utils.tools.machine_code import MachineCode

COUNTED = ("FFMA", "LDS", "LDS.128")


def between_barriers(code: MachineCode) -> list[str]:
    """The instructions from the first barrier to the last: the arithmetic of a step."""
    sass = [text for _, text in code.sass]
    barriers = [place for place, text in enumerate(sass) if "BAR.SYNC" in text]
    return sass[barriers[0] + 1 : barriers[-1]]


def describe(name: str, code: MachineCode | None = None) -> None:
    """Print how many instructions a rung has between its barriers, where its arithmetic is.

    name: of a rung's file, as the learner left it. code: instead of what nvcc makes of that file.
    """
    code = code or machine_code.nvcc(yours.current(KERNELS / f"{name}.cu"), "matmul")
    if "not as it is now" in code.note:  # a listing of another file
        print(f"{name}: nvcc is missing, so there is no machine code to count")
        return
    heart = between_barriers(code)
    count = {what: sum(what in text for text in heart) for what in COUNTED}
    each = f"{len(heart) / count['FFMA']:.2f} each"
    print(f"{name}: {len(heart)} instructions for {count['FFMA']} multiply-adds, {each};")
    loads = f"{count['LDS']} loads from shared memory, {count['LDS.128']} of them of 16 bytes"
    print(f"    {loads}; {len(code.sass)} instructions in the whole kernel")
