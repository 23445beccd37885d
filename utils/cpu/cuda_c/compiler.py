"""The machine's own C++ compiler: which one, what it can do, and how it is called."""

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .unset_variables import CLANG_FLAGS, GCC_FLAGS, warnings_in

NO_COMPILER = """no C++ compiler was found. To run CUDA C on this computer, install one:
  Debian, Ubuntu, Colab:  sudo apt install g++
  Fedora:                 sudo dnf install gcc-c++
  macOS:                  xcode-select --install
  anywhere, with pip:     pip install ziglang
or name one in the environment variable CXX"""
# The same program whatever a distribution has made its compiler's defaults: what is wrong with a
# stack, the runtime tells better than they do.
PLAIN_FLAGS = [
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
]
#: Names another level than -O2: a test run by day builds hundreds of kernels, each for a moment
OPTIMIZE = "CUDA_COURSE_OPTIMIZE"
# For messages that name lines. DWARF 5 numbers files from 0, and addr2line of binutils 2.40 names
# the wrong one where a unit's first code is of an included file.
LINES = ["-gdwarf-4", "-g1"]
# The checks' own functions take the place of the sanitizers' libraries: see runtime/checks.cpp.
CHECK_FLAGS = [
    "-fsanitize=thread,bounds,alignment,integer-divide-by-zero",
    "-fsanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-fno-builtin-memset",
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
]
#: An error about a name or header that looks like CUDA's own
LACKING = re.compile(
    r"^.*error:(?=.*\b(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|CU[A-Z]+_|nccl|nvrtc|nvtx|"
    r"thrust|cub\b|cooperative_groups|cg\b|experimental))"
    r".*(not (been )?declared|undeclared|not a member|no member named|not a namespace-name|"
    r"No such file|file not found).*",
    re.MULTILINE,
)
LACKS = " (if CUDA has it, this program needs a GPU: the CPU engine does not have it)"


class BuildError(Exception):
    """A build that failed.

    log: the compiler's text, which names the learner's file and line; command: the command.
    """

    def __init__(self, log: str, command: Sequence[str] = ()):
        super().__init__(log)
        self.log = log
        self.command = list(command)


@functools.cache
def compiler() -> list[str]:
    """The command of a C++ compiler: CXX, g++, clang++, c++ or ziglang.

    Raises BuildError saying how to get one.
    """
    if os.environ.get("CXX"):
        return os.environ["CXX"].split()
    for name in ("g++", "clang++", "c++"):
        path = shutil.which(name)
        if path and _runs([path]):
            return [path]
    zig = [sys.executable, "-m", "ziglang", "c++"]
    if _runs(zig):
        return zig
    raise BuildError(NO_COMPILER)


def _runs(command: list[str]) -> bool:
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@functools.cache
def compiler_version(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    return done.stdout + platform.machine()


@functools.cache
def _target_flags(command: tuple[str, ...]) -> tuple[str, ...]:
    """Fused multiply-add where the processor has it.

    A GPU uses it too, so the last digits agree more often.
    """
    if platform.machine().lower() not in ("x86_64", "amd64") or "ziglang" in command:
        return ()
    try:
        features = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    if not all(f" {feature} " in features for feature in ("avx2", "fma", "bmi2")):
        return ()
    return ("-mavx2", "-mfma", "-mbmi2", "-mpopcnt")


def _run(command: Sequence[str | Path]) -> subprocess.CompletedProcess:
    """Run a compiler. What it leaves when it is killed lies where its output would, and goes with
    that.
    """
    words = [str(word) for word in command]
    environment = dict(os.environ)
    if "-o" in words:
        environment["TMPDIR"] = str(Path(words[words.index("-o") + 1]).parent)
    return subprocess.run(words, capture_output=True, text=True, errors="replace", env=environment)


def checked(command: Sequence[str | Path]) -> str:
    return _done(command).stdout


def compiled(command: Sequence[str | Path]) -> list[str]:
    """Compile a unit; what nvcc would warn of, a line each."""
    return warnings_in(_done(command).stderr)


def _done(command: Sequence[str | Path]) -> subprocess.CompletedProcess:
    done = _run(command)
    if done.returncode:
        raise BuildError(tidy(done.stderr), [str(c) for c in command])
    return done


def tidy(log: str) -> str:
    """The compiler's text without the lines that speak of what the rewrite made.

    Where a name or header of CUDA may be what is missing, it says so.
    """
    lines = [
        line
        for line in log.split("\n")
        if "In file included from <command-line>" not in line
        and not line.endswith("In lambda function:")
    ]
    text = "\n".join(lines).strip() + "\n"
    return LACKING.sub(rf"\g<0>{LACKS}", text)


def environment_flags(compiling: list[str], check: bool) -> list[str]:
    command = compiler()
    flags = [] if any(f.startswith("-std=") for f in compiling) else ["-std=c++17"]
    if check:
        flags += ["-O1", *LINES, *CHECK_FLAGS, *_volatile_flags(command)]
    else:
        own = any(f.startswith("-O") for f in compiling)
        flags += [] if own else [os.environ.get(OPTIMIZE, "-O2")]
        flags += LINES
    flags += [*PLAIN_FLAGS, *_target_flags(tuple(command))]
    if not any(f.startswith("-W") for f in compiling):
        flags += GCC_FLAGS if is_gcc(command) else CLANG_FLAGS
        flags += ["-Wno-maybe-uninitialized"] if check and is_gcc(command) else []
    if is_gcc(command):
        flags.append("-fpermissive")
    return flags


def is_gcc(command: list[str]) -> bool:
    return "g++" in Path(command[0]).name and "clang" not in command[0]


def _volatile_flags(command: list[str]) -> list[str]:
    if "clang" in Path(command[0]).name or "ziglang" in command or sys.platform == "darwin":
        return [
            "-mllvm",
            "-tsan-distinguish-volatile=1",
            "-mllvm",
            "-tsan-compound-read-before-write=1",
        ]
    # a float4 in a variable is still stored at once, as nvcc does it, and not by its parts
    return ["--param", "tsan-distinguish-volatile=1", "-fno-tree-sra"]
