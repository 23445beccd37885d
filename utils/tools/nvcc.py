"""Compile and run CUDA C++: ``%nvcc FILE.cu [flags] [--run [args]]``, or from a shell.

In a shell: ``python -m utils.tools.nvcc ...``.

With a GPU this calls NVIDIA's nvcc for exactly this GPU. Without one the same file is built by the
machine's C++ compiler against the CPU runtime in ``utils.cpu.cuda_c``. A file that does not
compile, a program that crashes, hangs or exits with a non-zero status raises, so that a cell is
green only if what it shows really ran.
"""

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.cpu.cuda_c import cache
from utils.cpu.cuda_c.options import is_plain
from utils.engine import gpu, run_arch, target_arch
from utils.tools import plain_cpp, process, yours
from utils.tools.diagnostics import LearnerError, annotate
from utils.tools.toolkit import find_nvcc

USAGE = """usage: nvcc FILE.cu [nvcc flags] [--cpu] [--check] [--seed N] [--devices N]
            [--timeout SECONDS] [--run [arguments]]

  --run       run the program after compiling; what stands behind it (and behind --cpu, --check)
              are its own arguments
  --cpu       build for the CPU even where there is a GPU
  --check     CPU: also find out-of-bounds accesses, races and uninitialised memory (slower)
  --seed N    CPU: run the threads in a shuffled order drawn from N
  --devices N CPU: play N GPUs (without it: one)
  --timeout   stop the program after so many seconds (default 60)
Other flags go to nvcc as they are; without -o the program is written beside the source, without
its ending. A .c, .cc or .cpp file that includes nothing of CUDA goes straight to the C++ compiler,
where nvcc would send it too.
"""


class NvccError(LearnerError):
    """nvcc is missing, the source does not compile, or the program failed."""


@dataclass
class Request:
    """One call, taken apart."""

    source: Path
    flags: list[str] = field(default_factory=list)
    output: Path | None = None
    cpu: bool = False
    check: bool = False
    seed: int | None = None
    devices: int | None = None
    timeout: float = 60.0
    run: bool = False
    arguments: list[str] = field(default_factory=list)


def parse(words: list[str]) -> Request:
    """Take the words of a call apart. NvccError with the usage for one without sense."""
    request = Request(Path())
    words = list(words)
    sources = []
    while words:
        word = words.pop(0)
        if word == "--run":
            # FILE.cu --run --cpu reads well, so it means what it says
            while words and words[0] in ("--cpu", "--check"):
                setattr(request, words.pop(0)[2:], True)
            request.run = True
            request.arguments = words
            words = []
        elif word in ("--cpu", "--check"):
            setattr(request, word[2:], True)
        elif word in ("--timeout", "--seed", "--devices", "-o"):
            if not words:
                raise NvccError(f"{word} needs a value\n\n{USAGE}")
            value = words.pop(0)
            kind = {"--timeout": float, "--seed": int, "--devices": int, "-o": Path}[word]
            try:
                number = kind(value)
                if word == "--timeout" and not 0 < number < float("inf"):
                    raise NvccError(f"--timeout takes a positive number of seconds, got {value}")
                setattr(request, "output" if word == "-o" else word[2:], number)
            except ValueError:
                raise NvccError(f"{word} takes a number, got {value!r}\n\n{USAGE}") from None
        elif not word.startswith("-") and word.endswith((".cu", ".cpp", ".c", ".cc")):
            sources.append(word)
        else:
            request.flags.append(word)
    if len(sources) != 1:
        several = f", not {len(sources)}: {', '.join(sources)}" if sources else ""
        raise NvccError(f"name one source file{several}\n\n{USAGE}")
    request.source = yours.current(sources[0])
    if not request.source.exists():
        raise NvccError(
            f"{request.source} does not exist. In a notebook the cell above that begins with "
            f"%%writefile {request.source} writes it: run that cell first"
        )
    return request


@functools.cache
def nvcc_version() -> str | None:
    """nvcc's release, such as ``13.0``, or None."""
    path = find_nvcc()
    if not path:
        return None
    try:
        text = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=120
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    release = re.search(r"release (\d+\.\d+)", text)
    return release.group(1) if release else None


def nvcc_command(request: Request, output: Path) -> list[str]:
    """The nvcc line for a request: for this GPU's real architecture unless the flags name one.

    Raises NvccError when nvcc or the C++ compiler that it needs is missing, or nvcc does not fit
    the driver or the GPU.
    """
    found = find_nvcc()
    _refuse_what_cannot_work(found)
    path = str(found)  # refused if there is none
    command = [path, str(request.source), "-o", str(output)]
    if not any(
        re.match(r"-(arch|gencode)|--gpu-(arch|code)|--generate-code", flag)
        for flag in request.flags
    ):
        # Machine code for exactly this GPU: nothing is left for the driver to translate, so a
        # toolkit newer than the driver (of the same major version) still works. sm_90 where there
        # is no GPU to ask.
        arch = run_arch() if _for_running(request) else target_arch()
        command.append(f"-arch={arch}")
    if not any(flag.startswith(("-std", "--std")) for flag in request.flags):
        command.append("-std=c++17")
    return command + _pip_toolkit_flags(path) + request.flags


def _refuse_what_cannot_work(path: str | None) -> None:
    this_gpu = gpu()
    if path is None:
        if this_gpu and this_gpu.cuda < (13, 0):
            raise NvccError(
                f"nvcc was not found, and driver {this_gpu.driver} runs CUDA {this_gpu.cuda[0]}, "
                "for which pip has no nvcc. Update the driver to 580 or newer and run `make lab` "
                "again (it then installs nvcc), or install the CUDA 12 toolkit, or build for the "
                "CPU with --cpu"
            )
        raise NvccError(
            "nvcc was not found. `make lab` installs it where there is an NVIDIA driver; by hand: "
            "pip install 'cuda-toolkit[nvcc,cudart,cccl]==13.0.*'. --cpu builds for the CPU instead"
        )
    if not shutil.which("g++") and not shutil.which("clang++"):
        raise NvccError(
            "nvcc needs a C++ compiler beside it and there is none: sudo apt install g++ (Debian, "
            "Ubuntu, WSL2) or sudo dnf install gcc-c++ (Fedora)"
        )
    version = nvcc_version()
    if not this_gpu or not version:
        return
    major = int(version.split(".")[0])
    if major > this_gpu.cuda[0]:
        newest = "{}.{}".format(*this_gpu.cuda)
        raise NvccError(
            f"nvcc {version} is newer than what driver {this_gpu.driver} runs (CUDA {newest}): its "
            "programs would not start. Update the driver, or put an older nvcc first on the PATH"
        )
    if major >= 13 and this_gpu.compute_capability < (7, 5):
        capability = "{}.{}".format(*this_gpu.compute_capability)
        raise NvccError(
            f"{this_gpu.name} has compute capability {capability}; nvcc {version} builds for 7.5 "
            "and newer. Install the CUDA 12 toolkit, or build for the CPU with --cpu"
        )


def _pip_toolkit_flags(nvcc: str) -> list[str]:
    """pip's nvcc does not know where pip put the runtime library; name the folder."""
    root = Path(nvcc).resolve().parent.parent
    site = Path(sysconfig.get_paths()["purelib"]).resolve()
    if site not in root.parents or not (root / "lib").is_dir():
        return []
    return [f"-L{root / 'lib'}"]


def compile_error(source: Path, log: str) -> NvccError:
    """The error for a source that a compiler refused, with the lines that its log speaks of."""
    message = yours.named(annotate(log, {source.name: source}))
    return NvccError(f"{source} does not compile\n{message}")


def build(request: Request) -> Path:
    """Compile for GPU or CPU, as asked or as there is; prints the command, returns the output.

    Raises NvccError with each error shown in its source line.
    """
    engine_asked = request.check or request.seed is not None or request.devices is not None
    plain = not engine_asked and is_plain(request.source)
    if not plain and (request.cpu or engine_asked or (gpu() is None and _for_running(request))):
        return _build_cpu(request)
    output = request.output or _default_output(request)
    command = _plain_command(request, output) if plain else nvcc_command(request, output)
    print("$", shlex.join([Path(command[0]).name, *command[1:]]))
    try:
        done = process.run(command, timeout=300)
    except process.Timeout as error:
        raise NvccError(f"{error} (the compiler)") from None
    if done.returncode:
        raise compile_error(request.source, done.output)
    if done.output.strip():
        print(done.output.strip())
    return output


def build_once(request: Request, name: str, files: Iterable[Path]) -> Path:
    """What nvcc makes of a request, kept for its content in the cache folder under a name.

    files: all of the course's that nvcc may read. The same ones elsewhere are the same program.
    Raises NvccError with each error shown in its source line.
    """
    words = nvcc_command(request, Path(name))
    words.remove(str(request.source))
    content = hashlib.sha256("\0".join([*words, nvcc_version() or ""]).encode())
    for file in sorted(files):
        content.update(file.read_bytes())
    stem, _, suffix = name.partition(".")
    output = cache.cache_folder() / f"{stem}-{content.hexdigest()[:32]}.{suffix}".rstrip(".")
    if not output.exists():
        cache.atomically(output, functools.partial(_compile, request))
    return output


def _compile(request: Request, output: Path) -> None:
    done = process.run(nvcc_command(request, output), timeout=300)
    if done.returncode:
        raise compile_error(request.source, done.output)


def _plain_command(request: Request, output: Path) -> list[str]:
    from utils.cpu.cuda_c.build import BuildError

    try:
        return plain_cpp.command(request.source, request.flags, output)
    except BuildError as error:
        raise NvccError(str(error)) from None


def _for_running(request: Request) -> bool:
    """False for a call that wants what only nvcc makes (PTX, cubin ...) or names a GPU's sm."""
    only_nvcc = (
        "-ptx",
        "--ptx",
        "-cubin",
        "--cubin",
        "-c",
        "--dryrun",
        "-dryrun",
        "-keep",
        "--keep",
        "-arch",
        "-gencode",
    )
    return request.run or not any(flag.startswith(only_nvcc) for flag in request.flags)


def _default_output(request: Request) -> Path:
    for flag, suffix in (
        ("-ptx", ".ptx"),
        ("--ptx", ".ptx"),
        ("-cubin", ".cubin"),
        ("--cubin", ".cubin"),
        ("-c", ".o"),
    ):
        if flag in request.flags:
            return request.source.with_suffix(suffix)
    return request.source.with_suffix("")


def _build_cpu(request: Request) -> Path:
    from utils.cpu.cuda_c.build import BuildError, build_program

    why = "no GPU here" if gpu() is None else "as asked"
    language = ", as C++" if request.source.suffix == ".c" else ""
    print(f"[{why}: built by the C++ compiler{language}, runs on the CPU]")
    try:
        return build_program(
            request.source,
            request.flags,
            output=request.output or _default_output(request),
            check=request.check,
        )
    except BuildError as error:
        if not error.command:  # it was not the compiler who complained
            raise NvccError(error.log.strip()) from None
        raise compile_error(request.source, error.log) from None


def run(program: Path, request: Request) -> process.Completed:
    """Run a compiled program, printing its output as it comes.

    Raises NvccError when it crashes, runs past the time-out, or exits with a non-zero status.
    """
    env = dict(os.environ)
    if request.seed is not None:
        env["CUDA_CPU_SEED"] = str(request.seed)
    if request.devices is not None:
        env["CUDA_CPU_DEVICES"] = str(request.devices)
    print("$", shlex.join([str(program), *request.arguments]))
    command = [str(program.resolve()), *request.arguments]
    try:
        done = process.run(
            command, timeout=request.timeout, env=env, echo=process.print_now, as_terminal=True
        )
    except process.Timeout as error:
        raise NvccError(
            f"{error}. An endless loop, or a wait that never ends? (--timeout gives it longer)"
        ) from None
    if done.output and not done.output.endswith("\n"):
        print()
    if done.returncode:
        raise NvccError(f"{program} failed: {process.exit_reason(done.returncode)}")
    return done


def main(words: list[str]) -> None:
    """Compile and, with --run, run. Raises NvccError."""
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return
    request = parse(words)
    output = build(request)
    if request.run:
        run(output, request)


def register_magic(shell: Any) -> None:
    """Give an IPython shell the %nvcc line magic; let ``%%writefile build/...`` make its folder."""
    shell.register_magic_function(lambda line: main(shlex.split(line)), "line", "nvcc")

    def make_build_folder(info: Any) -> None:
        if info.raw_cell and re.match(r"%%writefile\s+(-a\s+)?build/", info.raw_cell):
            Path("build").mkdir(exist_ok=True)

    shell.events.register("pre_run_cell", make_build_folder)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NvccError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
