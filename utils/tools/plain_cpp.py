"""Plain C and C++ programs for ``%nvcc``: straight to the C++ compiler, where nvcc sends them."""

from pathlib import Path


def command(source: Path, flags: list[str], output: Path) -> list[str]:
    """The compiler's line for a plain source.

    What is behind -Xcompiler is handed on; -arch is dropped.

    Raises utils.cpu.cuda_c.build.BuildError, which says how to get a compiler, where there is none.
    """
    from utils.cpu.cuda_c.build import compiler

    passed = []
    rest = list(flags)
    while rest:
        flag = rest.pop(0)
        if flag in ("-Xcompiler", "--compiler-options"):
            passed += rest.pop(0).split(",") if rest else []
        elif flag.startswith("-Xcompiler="):
            passed += flag.split("=", 1)[1].split(",")
        elif not flag.startswith(("-arch", "-gencode")):
            passed.append(flag)
    standard = (
        [] if source.suffix == ".c" or any(f.startswith("-std") for f in passed) else ["-std=c++17"]
    )
    first, *more = compiler()
    return [first, *more, *standard, *passed, str(source), "-o", str(output)]
