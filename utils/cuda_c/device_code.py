"""Kernels' source to machine code with NVRTC, CUDA's compiler as a library; needs no GPU.

NVRTC compiles device code alone and brings no header of the C++ library. What device code can use
of these lies in `nvrtc` beside this file; what it refuses, the CPU engine refuses with the same
words (`utils.cpu.cuda_c.device_only`).
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..cpu.cuda_c import device_only
from ..tools import replaced
from ..tools.diagnostics import LearnerError, annotate
from ..tools.toolkit import find_nvcc

#: Headers of the C++ library, and two of CUDA's without the host's part
HEADERS = Path(__file__).parent / "nvrtc"

#: What NVRTC says, and what the CPU engine says of the same
_IN_OTHER_WORDS = (
    (r"A function without execution space annotations.*", device_only.HOST_FUNCTION),
    (r"A function explicitly marked as a __host__ function.*", device_only.HOST_FUNCTION),
    (r"A namespace scope variable without memory space.*", device_only.HOST_VARIABLE),
    (r'namespace "std" has no member(?: template)? "(\w+)"', device_only.NO_NAME),
    (r'cannot open source file "([^".]+(?:\.h)?)"', device_only.NO_HEADER),
    (r"The execution space for the lambda closure.*", device_only.LAMBDA),
    (r"A class static data member with non-const type.*", device_only.STATIC_MEMBER),
    (r"device-side kernel launch could not.*", device_only.LAUNCH),
)


class CompileError(LearnerError):
    """The source does not compile; the message shows the lines."""


def compile_device_code(
    path: Path,
    arch: str,
    expressions: Sequence[str],
    *,
    flags: Sequence[str] = (),
    kind: str = "cubin",
) -> Any:
    """The kernels of a file as cuda-core's ObjectCode.

    arch: such as "sm_90a". expressions: names of the kernels, of templates with their arguments.
    flags: nvcc's -D and --use_fast_math; others mean nothing here. kind: "cubin" or "ptx".
    Raises CompileError with the source lines marked.
    """
    from cuda.core import Program, ProgramOptions

    is_fast = "--use_fast_math" in flags or "-use_fast_math" in flags
    folders = [path.resolve().parent, HEADERS, *toolkit_headers()]
    options = ProgramOptions(
        name=path.name,
        arch=arch,
        std="c++17",
        lineinfo=True,
        include_path=[str(folder) for folder in folders],
        pre_include=device_only.PRELUDE,
        define_macro=[flag[2:] for flag in flags if flag.startswith("-D")] or None,
        use_fast_math=is_fast or None,
        device_int128=sys.platform == "linux" or None,  # as nvcc has it unasked
    )
    try:
        program = Program(path.read_text(), "c++", options)
        return program.compile(kind, name_expressions=list(expressions))
    except Exception as error:
        # cuda-core raises NVRTCError, whose text ends with the compiler's log
        _, marker, log = str(error).partition("compilation log:")
        if not marker:
            raise
        message = annotate(in_plain_words(log), {path.name: path})
        raise CompileError(replaced.named(message)) from None


def in_plain_words(log: str) -> str:
    """NVRTC's log; what it says of code that is not the device's, as the CPU engine says it."""
    for says, plain in _IN_OTHER_WORDS:
        log = re.sub(says, plain.format(r"\1"), log)
    return log


def toolkit_headers() -> list[str]:
    """Where cuda_fp16.h and its like are, from the toolkit or from pip's packages."""
    from cuda.pathfinder import find_nvidia_header_directory

    folders = [find_nvidia_header_directory(name) for name in ("cudart", "cccl")]
    compiler = find_nvcc()  # what <mma.h> includes comes with nvcc
    if compiler:
        folders.append(str(Path(compiler).resolve().parent.parent / "include"))
    return [folder for folder in folders if folder]
