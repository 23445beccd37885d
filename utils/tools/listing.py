"""What the compiler made of a kernel: its PTX and its machine code (SASS), cut down to the kernel
itself.

Needs nvcc and, for SASS, cuobjdump (part of the CUDA toolkit; Triton's package carries one too),
but no GPU. Where they are missing the listing recorded in ``assets/listings`` is shown and says so.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from utils.engine import gpu
from utils.files import ASSETS
from utils.tools import nvcc, process

RECORDED = ASSETS / "listings"


class Listing(str):
    """Text that a notebook shows as it is."""

    def __repr__(self):
        return str(self)


def ptx(source: str | Path, kernel: str) -> Listing:
    """PTX of one kernel in a .cu file, without directives that only debuggers read.

    PTX is the virtual instruction set that nvcc compiles to first. Raises
    utils.tools.nvcc.NvccError for a source that does
    not compile, and LookupError when it has no such kernel.
    """
    return _listing(Path(source), kernel, "ptx")


def sass(source: str | Path, kernel: str) -> Listing:
    """Machine code of one kernel for this GPU (sm_90 where there is none), without the encoding
    column.

    Raises as `ptx` does.
    """
    return _listing(Path(source), kernel, "sass")


def _listing(source: Path, kernel: str, kind: str) -> Listing:
    if not nvcc.find_nvcc() or kind == "sass" and not _cuobjdump():
        return _recorded(source, kernel, kind)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / f"out.{'ptx' if kind == 'ptx' else 'cubin'}"
        request = nvcc.Request(source, ["-ptx" if kind == "ptx" else "-cubin"], output)
        command = nvcc.nvcc_command(request, output)
        done = process.run(command, timeout=120)
        if done.returncode:
            raise nvcc.compile_error(source, done.output)
        if kind == "ptx":
            body = _ptx_of(output.read_text(), kernel)
        else:
            body = _sass_of(
                process.run([_cuobjdump(), "--dump-sass", str(output)], timeout=120).output, kernel
            )
    if not body:
        raise LookupError(f"{source} has no kernel named {kernel}")
    arch = gpu().arch if gpu() else "sm_90"
    return Listing(f"// {kernel} in {source.name}, nvcc {nvcc.nvcc_version()}, {arch}\n{body}")


def _cuobjdump() -> str | None:
    found = shutil.which("cuobjdump")
    if found:
        return found
    try:
        import triton
    except ImportError:
        return None
    bundled = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return str(bundled) if bundled.exists() else None


def _ptx_of(text: str, kernel: str) -> str:
    for entry in re.split(r"(?=^\.(?:visible|weak) \.entry )", text, flags=re.M)[1:]:
        name = re.match(r"\S+ \.entry (\w+)\(", entry).group(1)
        if _is_named(name, kernel):
            lines = entry[: entry.index("\n}") + 2].splitlines()
            return "\n".join(
                line
                for line in lines
                if line.strip() and not re.match(r"\s*\.(loc|file|pragma)\b", line)
            )
    return ""


def _sass_of(text: str, kernel: str) -> str:
    for function in text.split("Function : ")[1:]:
        if _is_named(function.split()[0], kernel):
            instructions = re.findall(r"^\s*(/\*[0-9a-f]{4}\*/)\s+(.*?);", function, flags=re.M)
            # The tail is a jump to itself and padding, which never runs.
            kept = [f"{address} {' '.join(code.split())}" for address, code in instructions]
            while kept and kept[-1].endswith(" NOP"):
                kept.pop()
            return "\n".join(kept)
    return ""


def _is_named(symbol: str, kernel: str) -> bool:
    """Whether a symbol is this kernel, with or without C++ name mangling (_Z10vector_addPfPKf)."""
    return symbol == kernel or re.match(rf"_Z{len(kernel)}{kernel}(?!\w*_Z)", symbol) is not None


def _recorded(source: Path, kernel: str, kind: str) -> Listing:
    path = RECORDED / f"{source.stem}.{kernel}.{kind}"
    if not path.exists():
        raise nvcc.NvccError(
            f"this machine has no {'nvcc' if kind == 'ptx' else 'cuobjdump'} to make the "
            f"{kind.upper()} of {source} with, and none is recorded"
        )
    return Listing(
        "// recorded: this machine has no compiler for GPU code; this is the chapter's kernel as "
        "built elsewhere\n" + path.read_text().rstrip("\n")
    )


def record(source: str | Path, kernel: str) -> None:
    """Keep both listings of a kernel in ``assets/listings``."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    for kind, listing in (("ptx", ptx), ("sass", sass)):
        (RECORDED / f"{Path(source).stem}.{kernel}.{kind}").write_text(
            listing(source, kernel) + "\n"
        )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(
            "usage: python -m utils.tools.listing FILE.cu KERNEL     records its PTX and SASS in "
            "assets/listings"
        )
    record(sys.argv[1], sys.argv[2])
