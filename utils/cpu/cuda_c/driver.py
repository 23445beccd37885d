"""A stand-in for nvcc where there is no GPU: `make NVCC=utils/cpu/cuda_c/bin/nvcc`.

It takes nvcc's command line (`-c`, `-dc`, `-dlink`, `-o`, `-M`, several sources and objects) and
makes programs and object files for this computer's processor. What only a GPU's compiler makes, PTX
and machine code, is refused by name. `--check` adds the slow checks, when compiling and linking.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...files import scratch_folder
from .architecture import architecture
from .build import NO_FILE, BuildError, rewritten, runtime_objects, system_libraries
from .compiler import checked, compiled, compiler, environment_flags
from .options import FOR_BOTH, RELAXED, is_plain, may_launch, split_flags
from .preprocess import FOLDERS

VERSION = """nvcc: NVIDIA (R) Cuda compiler driver, played by this course's CPU runtime
Cuda compilation tools, release 13.0, V13.0.0"""
TO_OBJECT = {"-c", "--compile", "-dc", "--device-c", "-dw", "--device-w"}
ONLY_GPU = {"-ptx", "--ptx", "-cubin", "--cubin", "-fatbin", "--fatbin", "-optix-ir", "--optix-ir"}
DEPENDENCIES = {"-M", "-MM", "--generate-dependencies", "--generate-nonsystem-dependencies"}
DEPENDENCY_NAMES = {"-MF", "-MT", "-MQ"}
ALONGSIDE = {"-MD", "-MMD", "-MP"}
OBJECTS = (".o", ".a", ".so", ".obj")
SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")


@dataclass
class Command:
    """One call: what to make, of what, and all other words as they stand."""

    output: str = ""
    mode: str = "link"
    check: bool = False
    sources: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    dependencies: list[str] = field(default_factory=list)


def take_apart(words: Sequence[str]) -> Command:
    """The words of a command line. Raises BuildError for what only a GPU's compiler makes."""
    command = Command()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ONLY_GPU:
            raise BuildError(f"nvcc for the CPU makes no code for GPUs ('{word}')\n")
        if word in TO_OBJECT:
            command.mode = "object"
        elif word in ("-dlink", "--device-link"):
            command.mode = "device link"
        elif word in DEPENDENCIES:
            command.mode = "dependencies"
            command.dependencies.append("-MM")
        elif word in ("-o", "--output-file") and rest:
            command.output = rest.pop(0)
        elif word in DEPENDENCY_NAMES and rest:
            command.dependencies += [word, rest.pop(0)]
        elif word in ALONGSIDE:
            command.dependencies.append(word)
        elif word == "--check":
            command.check = True
        elif not word.startswith("-") and word.endswith(OBJECTS):
            command.objects.append(word)
        elif not word.startswith("-") and word.endswith(SOURCES):
            command.sources.append(word)
        else:
            command.flags.append(word)
    return command


def compile_one(source: str, command: Command, output: Path) -> None:
    """An object file of a source. C goes to the C compiler, as with nvcc, unless it calls CUDA."""
    compiling, _, _ = split_flags(command.flags)
    if source.endswith(".c") and is_plain(Path(source)):
        for_c = _for_c(compiling)
        checked([*compiler(), "-x", "c", *for_c, *FOLDERS, "-c", source, "-o", output])
        return
    flags = [*environment_flags(compiling, command.check), *compiling]
    relaxed = not RELAXED.isdisjoint(command.flags)
    gpu = architecture(command.flags)
    plain = [] if may_launch(source, command.flags) else [source]
    units, _, _ = rewritten([source], flags, gpu, relaxed=relaxed, host_only=plain)
    with scratch_folder() as folder:
        unit = folder / "unit.ii"
        unit.write_text(units[0])
        for warning in compiled([*compiler(), *flags, "-c", unit, "-o", output]):
            print(warning, file=sys.stderr)


def _for_c(flags: list[str]) -> list[str]:
    return [flag for flag in flags if not flag.startswith("-std=c++")]


def make_objects(command: Command) -> None:
    """`-c`: an object file beside each source's name in this folder, or under `-o`."""
    for source in command.sources:
        output = Path(command.output or Path(source).with_suffix(".o").name)
        compile_one(source, command, output)
        if command.dependencies:
            write_dependencies(source, command, output)


def write_dependencies(source: str, command: Command, output: Path) -> None:
    """What make wants to know of a source's headers: `-MD` and its like beside the object."""
    compiling, _, _ = split_flags(command.flags)
    words = [word for word in command.dependencies if word not in ("-MD", "-MMD")]
    if "-MF" not in words:
        words += ["-MF", str(output.with_suffix(".d"))]
    if "-MT" not in words:
        words += ["-MT", str(output)]
    checked([*compiler(), "-x", "c++", *compiling, *FOLDERS, "-MM", *words, source])


def show_dependencies(command: Command) -> None:
    """`-M`: the rule for make, on the output or under `-o`."""
    compiling, _, _ = split_flags(command.flags)
    for source in command.sources:
        words = [*compiler(), "-x", "c++", *compiling, *FOLDERS, *command.dependencies, source]
        rule = checked(words)
        if command.output:
            Path(command.output).write_text(rule)
        else:
            print(rule, end="")


def link(command: Command) -> None:
    """A program of all sources and objects, or with `-shared` a library."""
    compiling, linking, _ = split_flags(command.flags)
    output = Path(command.output or "a.out")
    kept = [flag for flag in compiling if flag in (*FOR_BOTH, "-shared")]
    shared = "-shared" in kept
    runtime = runtime_objects(program=not shared, check=command.check)
    with scratch_folder() as folder:
        made = []
        for number, source in enumerate(command.sources):
            made.append(folder / f"{number}.o")
            compile_one(source, command, made[-1])
        wraps_heap = command.check and not shared
        libraries = system_libraries(sys.platform == "linux", wraps_heap=wraps_heap)
        objects = [*made, *command.objects]
        checked([*compiler(), *kept, *objects, *runtime, *linking, *libraries, "-o", output])


def device_link(command: Command) -> None:
    """`-dlink`: there is no separate device code to link, so the object is empty."""
    output = Path(command.output or "a_dlink.o")
    with scratch_folder() as folder:
        empty = folder / "empty.cpp"
        empty.write_text("")
        checked([*compiler(), "-c", empty, "-o", output])


def main(words: Sequence[str]) -> int:
    """Does what the command line asks for; the exit status."""
    if {"--version", "-V"} & set(words):
        print(VERSION)
        return 0
    try:
        command = take_apart(words)
        if not command.sources and not command.objects:
            raise BuildError("nvcc for the CPU: no source or object file is named\n")
        for name in (*command.sources, *command.objects):
            if not Path(name).is_file():
                raise BuildError(f"{name}: {NO_FILE}\n")
        makers = {
            "object": make_objects,
            "device link": device_link,
            "dependencies": show_dependencies,
            "link": link,
        }
        makers[command.mode](command)
    except BuildError as error:
        print(error.log, end="", file=sys.stderr)
        return 1
    except subprocess.TimeoutExpired as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
