"""Builds and runs the programs in ``cuda/``: by nvcc on a GPU machine, else for the CPU.

    run("gemm")                 prints the command and what the program says
    run("traps", "tf32")        with an argument
    tried("gemm", 3, 3, 3)      the same, and a program that fails is no error

A program of which a cell of the chapter changed a part (``%%cuda libraries/gemm.cu multiply``) is
built as the learner left it.

Which libraries a program needs is seen from the headers that it includes. A toolkit may lie in one
folder, or in pip's packages (``nvidia-cublas`` ...): both are looked through.
"""

import functools
import re
import sys
from pathlib import Path

from utils.cpu.cuda_c import build as cpu_build
from utils.engine import has_gpu
from utils.tools import nvcc, process, yours

FOLDER = Path(__file__).parent / "cuda"
#: What a header needs to be linked with; the runtime that nvcc links anyway is not listed.
LIBRARY_OF = {
    "cublas_v2.h": "cublas",
    "cublasXt.h": "cublas",
    "cublasLt.h": "cublasLt",
    "curand.h": "curand",
    "curand_kernel.h": "",
    "cufft.h": "cufft",
    "cusparse.h": "cusparse",
    "cusparseLt.h": "cusparseLt",
    "cudnn.h": "cudnn",
    "cutlass/cutlass.h": "",
}
#: A header that needs more of nvcc than its folder.
MORE_FLAGS = {"cutlass/cutlass.h": ["-arch=sm_90a", "-DNDEBUG", "--expt-relaxed-constexpr"]}
RUN_SECONDS = 120
LEAK = "[leak]"  # of the CPU runtime: memory that was not freed
SYSTEM = Path("/usr/include")  # where a distribution's packages put headers; compilers look there


class MissingLibrary(nvcc.NvccError):
    """A library's header is nowhere on this machine."""


def headers_of(source: Path) -> list[str]:
    """The libraries' headers that a program includes, in the order in which they stand there."""
    included = re.findall(r"#include <([\w./]+)>", source.read_text(encoding="utf-8"))
    return [header for header in included if header in LIBRARY_OF]


def link_flags(source: Path) -> list[str]:
    """What a learner writes behind nvcc's name for this program, such as ["-lcublas"]."""
    return [f"-l{LIBRARY_OF[header]}" for header in headers_of(source) if LIBRARY_OF[header]]


@functools.cache
def _include_folders() -> tuple[Path, ...]:
    """The toolkit's headers, then those of pip's packages."""
    compiler = nvcc.find_nvcc()
    toolkit = [Path(compiler).resolve().parent.parent / "include"] if compiler else []
    pip = [*_pip_folders("nvidia/*/include"), *_pip_folders("cutlass_library/source/include")]
    return (*toolkit, *pip, SYSTEM)


def _pip_folders(pattern: str) -> list[Path]:
    """Folders that pip has installed, wherever this Python finds packages."""
    return [path for place in sys.path for path in sorted(Path(place or ".").glob(pattern))]


def _found_flags(header: str) -> list[str]:
    """nvcc's flags for a header and its library, wherever they are."""
    for folder in _include_folders():
        if not (folder / header).is_file():
            continue
        flags = [f"-I{folder}"] if folder != SYSTEM else []
        flags += MORE_FLAGS.get(header, ())
        if header.startswith("cutlass/"):
            flags.append(f"-I{folder.parent / 'tools' / 'util' / 'include'}")
        name = LIBRARY_OF[header]
        for place in (folder.parent / "lib", folder.parent / "lib64"):
            libraries = sorted(place.glob(f"lib{name}.so*"), key=lambda path: len(path.name))
            if name and libraries:
                flags += [f"-L{place}", f"-l:{libraries[0].name}"]
                return [*flags, f"-Xlinker=-rpath={place}"]
        return flags + ([f"-l{name}"] if name else [])
    raise MissingLibrary(
        f"{header} was not found: `pip install 'cuda-course[libraries]'` brings NVIDIA's libraries"
    )


def _request(source: Path) -> nvcc.Request:
    flags = ["-O3", "-w"]
    for header in headers_of(source):
        flags += [flag for flag in _found_flags(header) if flag not in flags]
    return nvcc.Request(source, flags)


def build(name: str) -> Path:
    """The compiled program ``cuda/<name>.cu``, made where it is not there yet.

    Raises utils.tools.nvcc.NvccError with the lines that do not compile.
    """
    if not has_gpu():
        return build_for_cpu(name)
    source = yours.current(FOLDER / f"{name}.cu")
    return nvcc.build_once(_request(source), name, [source, *source.parent.glob("*.cuh")])


def build_for_cpu(name: str) -> Path:
    """The program for this computer's processor, with stand-ins for the libraries."""
    source = yours.current(FOLDER / f"{name}.cu")
    try:
        return cpu_build.build_program(source)
    except cpu_build.BuildError as error:
        raise nvcc.compile_error(source, error.log) from None


def output_of(name: str, *arguments, timeout: float = RUN_SECONDS) -> str:
    """What a program prints. RuntimeError with its last lines where it fails."""
    return _output(build(name), arguments, timeout)


def _output(program: Path, arguments, timeout: float) -> str:
    done = process.run([str(program), *map(str, arguments)], timeout=timeout)
    text = without_folders(done.output)
    if done.returncode:
        raise RuntimeError(f"{program.name} failed: {text.strip()[-1000:]}")
    return text


def without_folders(text: str) -> str:
    """A program's output, in which files of ``cuda/`` and their copies have their names alone."""
    files = "|".join(file.name for file in FOLDER.iterdir())
    return re.sub(rf"[^\s:]*[/\\]({files})\b", r"\1", text.replace("\r\n", "\n"))


def run(name: str, *arguments) -> None:
    """Build a program, run it, and print both commands and what it says.

    On a GPU machine without the library it runs on the CPU, and says why. Raises NvccError if it
    does not compile, RuntimeError if it says that something is wrong.
    """
    note = yours.note(FOLDER / f"{name}.cu")
    if note:
        print(f"[{note}]")
    program, how = _built(name)
    print(how)
    text = _output(program, arguments, RUN_SECONDS)
    print("$", f"./{name}", *arguments)
    print(text.rstrip())


def tried(name: str, *arguments) -> None:
    """Build a program as its cells stand now, and print what it says, be it right or wrong.

    A program that does not compile, or that ends with an error, is no error here: its words are
    what a learner has changed a line to see.
    """
    note = yours.note(FOLDER / f"{name}.cu")
    if note:
        print(f"[{note}]")
    try:
        program = _built(name)[0]
    except nvcc.NvccError as error:
        print(error)
        return
    print("$", f"./{name}", *arguments)
    done = process.run([str(program), *map(str, arguments)], timeout=RUN_SECONDS)
    lines = without_folders(done.output).splitlines()
    print("\n".join(line for line in lines if LEAK not in line))  # it ended too early to free


def _built(name: str) -> tuple[Path, str]:
    """The compiled program, and a line that says how it was made."""
    why = "no GPU here"
    if has_gpu():
        try:
            flags = link_flags(FOLDER / f"{name}.cu")
            return build(name), " ".join(["$ nvcc", f"{name}.cu", "-o", name, *flags])
        except MissingLibrary as error:
            why = str(error).splitlines()[0]
    by_hand = f"{name}.cu is built by the C++ compiler and runs on the CPU"
    return build_for_cpu(name), f"[{why}: {by_hand}]"


def times_of(text: str) -> dict[str, tuple[float, float]]:
    """{name: (median, spread)} in ms, of what a program printed with the word "time"."""
    rows = re.findall(r"^TIME (\S+) (\S+) (\S+)$", text, re.M)
    return {name: (float(middle), float(spread)) for name, middle, spread in rows}
