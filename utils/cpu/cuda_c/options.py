"""nvcc's options as a C++ compiler's."""

import re
from collections.abc import Sequence
from pathlib import Path

# nvcc's options that mean nothing on a CPU. Those of the second kind are followed by a value.
DROPPED = """
    -arch -gencode -code -lineinfo -rdc -Xptxas -Xfatbin -Xnvlink -Xcudafe -ccbin
    --gpu-architecture --generate-code --gpu-code --generate-line-info --relocatable-device-code
    --ptxas-options --use_fast_math -use_fast_math --expt-relaxed-constexpr --extended-lambda
    -expt-relaxed-constexpr -extended-lambda --expt-extended-lambda -expt-extended-lambda
    -maxrregcount --maxrregcount -dc -dlink -G --device-debug -restrict --restrict -lcuda
    -lcudart -lcudadevrt -lcublas -lcufft -lcurand -lcudart_static -lnvToolsExt -t --threads
    -cudart --cudart -res-usage --resource-usage -diag-suppress --diag-suppress -fmad --fmad
    -ftz --ftz -prec-div --prec-div -prec-sqrt --prec-sqrt -keep --keep -v --verbose -w -m64
    -forward-unknown-to-host-compiler --compile -dopt --dopt -lcusparse -lcusolver -lm
    -lcublasLt -lcudnn -lnccl
    -default-stream --default-stream
""".split()
TAKES_VALUE = """
    -arch -gencode -code -Xptxas -Xfatbin -Xnvlink -Xcudafe -ccbin -maxrregcount
    --gpu-architecture --generate-code --gpu-code --ptxas-options --maxrregcount -t --threads
    -cudart --cudart -diag-suppress --diag-suppress -dopt --dopt -default-stream
    --default-stream
""".split()
PASSED_WITH_VALUE = {"-D", "-I", "-L", "-l", "-isystem", "-include", "-U"}
FOR_COMPILER = ("-Xcompiler", "--compiler-options")
FOR_LINKER = ("-Xlinker", "--linker-options")
#: The compiler's, which mean something to the linker too
FOR_BOTH = ("-fopenmp", "-pthread", "-static")
#: Lets device code call functions of the host that are constexpr
RELAXED = {"--expt-relaxed-constexpr", "-expt-relaxed-constexpr"}
#: C++17, which is the default here, and what is older
OLD_STANDARDS = {"c++03", "c++98", "c++11", "c++14", "c++17"}
SOURCES = {".cu", ".cpp", ".cc", ".cxx", ".c"}
_CUDA_HEADER = re.compile(
    r'^\s*#\s*include\s*[<"]'
    r"(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|cooperative_groups|cub/|thrust/|nccl|nv)",
    re.M,
)


def is_plain(source: Path) -> bool:
    """Whether a source is C or C++ without CUDA, by its ending and by what it includes."""
    return source.suffix in (".c", ".cc", ".cpp") and not _CUDA_HEADER.search(
        source.read_text(errors="replace")
    )


def may_launch(source: str, flags: Sequence[str]) -> bool:
    """Whether nvcc takes a source for CUDA C++, by its ending or by -x cu."""
    return source.endswith(".cu") or bool(re.search(r"(^| )--?x[ =]cu( |$)", " ".join(flags)))


def split_flags(flags: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """nvcc's options as (for compiling, for linking, further sources)."""
    compiling = []
    linking = []
    sources = []
    rest = list(flags)
    while rest:
        flag = rest.pop(0)
        name = flag.split("=", 1)[0]
        if flag in FOR_COMPILER or flag in FOR_LINKER:
            values = rest.pop(0).split(",") if rest else []
            into = linking if flag in FOR_LINKER else compiling
            into.extend(value for value in values if value)
        elif flag.startswith(("-Xcompiler=", "--compiler-options=")):
            compiling += flag.split("=", 1)[1].split(",")
        elif name in DROPPED:
            if name in TAKES_VALUE and "=" not in flag and rest:
                rest.pop(0)
        elif flag.startswith(("-gencode", "-arch")):
            continue
        elif flag in ("-o", "--output-file", "-x", "--x"):
            rest[:1] = []
        elif name in ("-x", "--x"):
            continue
        elif flag in PASSED_WITH_VALUE and rest:
            value = rest.pop(0)
            words = [flag, value] if flag == "-isystem" else [flag + value]
            into = linking if flag in ("-L", "-l") else compiling
            into.extend(words)
        elif flag.startswith(("-l", "-L", "-Wl,")):
            linking.append(flag)
        elif flag.startswith(("-std=", "--std=")):
            standard = flag.split("=", 1)[1]
            if standard not in OLD_STANDARDS:
                compiling.append("-std=" + standard)
        elif flag.startswith("-I") and (Path(flag[2:]) / "cuda_runtime.h").exists():
            continue
        elif not flag.startswith("-") and Path(flag).suffix in SOURCES:
            sources.append(flag)
        elif flag == "-O0":
            compiling.append("-O2")
        else:
            compiling.append(flag)
    return compiling, linking, sources
