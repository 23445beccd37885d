"""CUDA C++, Numba and Triton kernels without a GPU: run, checked, traced.

    import kernelcpu

    kernelcpu.install()                 # from here on numba.cuda and triton run on the CPU
    kernelcpu.run("vector_add.cu")      # a CUDA C++ program, unchanged
    kernelcpu.check(kernel, grid, block, *arguments)     # races, bounds, barriers: a list of texts
    kernelcpu.trace(kernel, grid, block, *arguments)     # every access, counted and drawn

This module is all that others need to know of the engines. `pip install ./utils/cpu` in a clone
installs it under the name kernelcpu; within the course it is `utils.kernelcpu`. The README there
shows each of these with what it prints.
"""

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import engine
from .cpu import numba_cuda, triton
from .cpu.cuda_c.build import build_program
from .cpu.cuda_c.compiler import BuildError
from .cpu.numba_cuda import (
    BarrierError,
    KernelError,
    KernelIndexError,
    KernelTimeout,
    UninitializedError,
    cpu_jit,
    schedule,
    time_limit,
)
from .cpu.triton import KernelMistake, taking_turns, tensor_core_dots
from .cuda_c import LaunchError, load
from .cuda_c.device_code import CompileError
from .tools.diagnostics import annotate
from .tracer import TooManyEvents, Trace, TraceError, play, trace

__version__ = "0.1.0"

__all__ = [
    "BarrierError",
    "BuildError",
    "CompileError",
    "KernelError",
    "KernelIndexError",
    "KernelMistake",
    "KernelTimeout",
    "LaunchError",
    "TooManyEvents",
    "Trace",
    "TraceError",
    "UninitializedError",
    "build",
    "check",
    "cpu_jit",
    "install",
    "load",
    "main",
    "play",
    "run",
    "schedule",
    "taking_turns",
    "tensor_core_dots",
    "time_limit",
    "trace",
]

USAGE = """kernelcpu run FILE.cu [nvcc flags] [--check] [--seed N] [--devices N]
                     [--timeout SECONDS] [-- the program's own arguments]
       kernelcpu build FILE.cu -o PROGRAM [nvcc flags] [--check]
       kernelcpu nvcc ...                    as nvcc is called: make NVCC="kernelcpu nvcc"
       kernelcpu --version

--check finds accesses out of bounds, races and memory that nobody wrote; --seed runs the threads
in a shuffled order drawn from N; --devices plays N GPUs. Other options go to the compiler."""


def install(*, even_with_gpu: bool = False) -> None:
    """Run the kernels of `numba.cuda` and `triton` on the CPU from here on.

    Call it before either is imported: a warning names what came too early. On a machine with a GPU
    that NVIDIA's management library sees (the package nvidia-ml-py), nothing is changed unless
    `even_with_gpu` asks for it; then `load` runs CUDA C++ on the CPU, too.
    """
    if even_with_gpu:
        os.environ[engine.FORCE_CPU] = "1"
        engine.has_gpu.cache_clear()
    if engine.has_gpu():
        return
    early = [name for name in ("numba.cuda", "triton") if name in sys.modules]
    if early and not _is_installed():
        warnings.warn(
            f"{' and '.join(early)} was imported before kernelcpu.install(): what has taken names "
            "from there still has the GPU's. Call it first.",
            stacklevel=2,
        )
    numba_cuda.install()
    triton.install()


def _is_installed() -> bool:
    """Whether `import numba.cuda` already gives the engine."""
    ours = numba_cuda.__name__
    return any(type(finder).__module__.startswith(ours) for finder in sys.meta_path)


def build(
    source: str | Path,
    flags: Sequence[str] = (),
    *,
    output: str | Path | None = None,
    check: bool = False,
) -> Path:
    """Build a CUDA C++ program for this computer's processor, and give the executable's path.

    source: a .cu file with `main`. flags: nvcc's; what means nothing on a CPU is dropped.
    output: where the program goes; without it, it stays in the user's cache.
    check: with the slow checks. Raises BuildError, with the compiler's `log`.
    """
    target = None if output is None else Path(output)
    return build_program(source, flags, output=target, check=check)


def run(
    source: str | Path,
    *arguments: object,
    flags: Sequence[str] = (),
    check: bool = False,
    seed: int | None = None,
    devices: int | None = None,
    timeout: float | None = None,
    capture_output: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Build a CUDA C++ program and run it with these arguments.

    source, flags, check: as `build` takes them. With `check` the program names the first mistake
        of each kernel on its standard error and ends with a status that is not 0.
    seed: run the threads in a shuffled order drawn from this number.
    devices: play so many GPUs. timeout: in seconds, then subprocess.TimeoutExpired.
    capture_output: keep what it prints in the result's `stdout` and `stderr`.
    """
    program = build(source, flags, check=check)
    environment = dict(os.environ)
    if seed is not None:
        environment["CUDA_CPU_SEED"] = str(seed)
    if devices is not None:
        environment["CUDA_CPU_DEVICES"] = str(devices)
    return subprocess.run(
        [str(program), *map(str, arguments)],
        env=environment,
        timeout=timeout,
        capture_output=capture_output,
        text=True,
    )


def check(kernel: Any, grid: Any, block: Any, *arguments: Any, **options: Any) -> list[str]:
    """What is wrong with a launch: races, skipped barriers, wrong indices, reads of nothing.

    The kernel runs once, on copies of its arguments: a @cuda.jit function, or, on a machine without
    a GPU, a kernel of `load` or of Triton. Each text says which lines and which threads; an empty
    list says that this launch, with these arguments, showed none. options: as `trace` takes them.
    """
    return trace(kernel, grid, block, *arguments, **options).problems


# ---- the command line


def main(words: Sequence[str] | None = None) -> int:
    """Do what a command line says (`USAGE`), and give the exit status."""
    given = list(sys.argv[1:] if words is None else words)
    if given[:1] == ["nvcc"]:
        from .cpu.cuda_c.driver import main as as_nvcc

        return as_nvcc(given[1:])
    own, arguments = _parted(given)
    options, flags = _parser().parse_known_args(own)
    try:
        if options.command == "build":
            build(options.source, flags, output=options.output, check=options.check)
            return 0
        done = run(
            options.source,
            *arguments,
            flags=flags,
            check=options.check,
            seed=options.seed,
            devices=options.devices,
            timeout=options.timeout,
        )
    except BuildError as error:
        source = Path(options.source)
        print(annotate(error.log, {source.name: source}), file=sys.stderr)
        return 1
    except subprocess.TimeoutExpired:
        print(f"{options.source}: stopped after {options.timeout:g} s", file=sys.stderr)
        return 1
    return done.returncode if done.returncode >= 0 else 1


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """(what is before the first "--", what is behind it)."""
    if "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelcpu", usage=USAGE)
    parser.add_argument("--version", action="version", version=f"kernelcpu {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "build"):
        command = commands.add_parser(name, usage=USAGE, allow_abbrev=False)
        command.add_argument("source")
        command.add_argument("--check", action="store_true")
        if name == "build":
            command.add_argument("-o", "--output", required=True)
            continue
        command.add_argument("--seed", type=int)
        command.add_argument("--devices", type=int)
        command.add_argument("--timeout", type=float)
    return parser


if __name__ == "__main__":
    sys.exit(main())
