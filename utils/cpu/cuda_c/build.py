"""Builds CUDA C++ for the CPU with the machine's own C++ compiler.

Three steps: the compiler preprocesses the source (`preprocess.py`), `rewrite.py` turns it into
ordinary C++, the compiler makes a program or a library of it and of the runtime (compiled once for
each compiler). Everything is kept in the user's cache folder (or CUDA_COURSE_CACHE) under a hash of
what it was made from, so nothing is compiled twice (`cache.py`).
"""

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from . import device_only
from .architecture import Architecture, architecture
from .cache import (
    MAKING,
    RUNTIME,
    atomically,
    cache_folder,
    fingerprint,
    forget_old,
    hash_of,
    in_use,
    own_hash,
    remove_unfinished,
    runtime_changed,
    runtime_hash,
    trouble,
    unchanged,
)
from .compiler import (
    NO_COMPILER,
    BuildError,
    checked,
    compiled,
    compiler,
    compiler_version,
    environment_flags,
    is_gcc,
)
from .options import FOR_BOTH, RELAXED, may_launch, split_flags
from .preprocess import preprocess, preprocess_plain, user_files
from .rewrite import rewrite
from .tokens import RewriteError

__all__ = ["NO_COMPILER", "BuildError", "build", "build_program", "cache_folder", "compiler"]

#: The runtime's sources, by what is compiled in one go: what they include is then read once
TOGETHER = {
    "threads": "scheduler meetings blocks grids stacks fiber shared report",
    "work": "api errors launches streams graphs graph_nodes graph_edges order",
    "memory": "memory owners copies devices textures arrays",
    "collectives": "lines collectives collectives_numbers collectives_work",
    "asynchronous": "window mbarrier copy_engine tensor_copy clusters warp_matrices warp_groups",
    "checks": """checks checks_quick checks_hooks checks_races checks_messages checks_unwritten
        checks_operations checks_counts checks_record checks_async checks_clusters""",
}
GOLD = "-fuse-ld=gold"
EDITED = "its sources have changed since this process began; run it again"
NO_FILE = "there is no such file"
BEGIN_C = "struct cuda_cpu_begin_c;"  # where a C source begins, see include/detail/c.h
ASM = re.compile(rb"\basm\b|\b__asm")
#: Options that mean the same in every folder
ANYWHERE = re.compile(r"-(I|L|isystem|include)/.*|-[DUOWfgmlsw][^/]*|-pthread|--param|-?tsan-[^/]*")
ASKS_FOR_DEVICE = re.compile(rb"__CUDA_ARCH|__CUDACC_RTC__")
#: malloc, free, and the operators new and delete: runtime/device_heap.cpp has others in their place
HEAP = "malloc free _Znwm _Znam _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm".split()


def runtime_objects(program: bool, check: bool) -> list[Path]:
    """The runtime's object files for this compiler, compiled if they are not there yet."""
    command = compiler()
    flags = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden"]
    digest = hash_of(compiler_version(tuple(command)), runtime_hash(), *command, *flags)
    folder = cache_folder() / f"runtime-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    parts = _runtime_parts(program, check)
    with FileLock(folder / "lock"):  # several processes want it at the same time
        missing = [part for part in parts if not (folder / f"{part}.o").exists()]
        remove_unfinished(folder)
        _compile_runtime(missing, [*command, *flags], folder)
    return [folder / f"{part}.o" for part in parts]


def _runtime_parts(program: bool, check: bool) -> list[str]:
    """What of the runtime goes into a program (or a library): of TOGETHER, or single sources."""
    parts = [part for part in TOGETHER if part != "checks"]
    parts.append("start" if program else "library")
    if not check:
        return [*parts, "unchecked"]
    return [*parts, "checks", "host_heap" if program else "device_heap"]


def _compile_runtime(parts: Sequence[str], command: Sequence[str], folder: Path) -> None:
    """Compile these parts of the runtime into `folder`, as many at a time as there are cores.

    More would be no faster, and each takes 200 MB of memory.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=MAKING) as temporary:

        def compile_one(part: str) -> None:
            unit = Path(temporary) / f"{part}.cpp"
            sources = TOGETHER.get(part, part).split()
            unit.write_text("".join(f'#include "{RUNTIME / name}.cpp"\n' for name in sources))
            out = unit.with_suffix(".o")
            made = [*command, "-c", unit, "-o", out]
            checked(made)
            if runtime_changed():  # else objects of two states would lie under one hash for good
                raise BuildError(EDITED, made)
            os.replace(out, folder / f"{part}.o")

        pool = ThreadPoolExecutor(os.cpu_count())
        try:
            for compiled in [pool.submit(compile_one, part) for part in parts]:
                compiled.result()
        except BuildError as error:
            log = f"the CPU runtime itself did not compile:\n{error.log}"
            raise BuildError(log, error.command) from None
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Wanted:
    """What is to be built, with nvcc's options sorted. headers: see `Library`."""

    sources: list[str]
    flags: list[str]  # for compiling
    linking: list[str]
    gpu: Architecture
    relaxed: bool  # device code may call what is constexpr
    check: bool
    shared: bool
    extra: str
    headers: Path | None
    host_only: list[str]  # sources that nvcc would not take for CUDA C++

    def request(self) -> str:
        """A hash of all that it is made from but the sources' text."""
        command = compiler()
        asked = {**vars(self), "gpu": str(self.gpu), "headers": str(self.headers)}
        text = json.dumps([asked, self.folder(), command])
        return hash_of(text, own_hash(), compiler_version(tuple(command)))

    def folder(self) -> str:
        """This folder where a source or an option is meant as seen from it; else "": what a chapter
        has built of the course's own files, tests and other folders need not build again.
        """
        from_here = [source for source in self.sources if not Path(source).is_absolute()]
        words = [*self.flags, *self.linking]
        from_here += [word for word in words if not ANYWHERE.fullmatch(word)]
        return os.getcwd() if from_here else ""


def _wanted(
    sources: Sequence[str], flags: Sequence[str], check: bool, shared: bool, extra: str, headers
) -> Wanted:
    compiling, linking, more = split_flags(flags)
    sources = [*sources, *more]
    command = compiler()
    own = [*environment_flags(compiling, check), *compiling]
    # of two libraries in one process each keeps its own static variables, those of templates too
    if shared:
        own.append("-fPIC")
        if is_gcc(command) and sys.platform == "linux":
            own.append("-fno-gnu-unique")
    # then messages, too, name files as seen from this folder
    if not any(Path(source).is_absolute() for source in sources):
        own.append(f"-fdebug-prefix-map={os.getcwd()}=.")
    linking = [flag for flag in compiling if flag in FOR_BOTH] + linking
    relaxed = not RELAXED.isdisjoint(flags)
    gpu = architecture(flags)
    # NVRTC, which has headers of its own, takes any text for CUDA C++, whatever its file is called
    plain = [] if headers else [source for source in sources if not may_launch(source, flags)]
    return Wanted(sources, own, linking, gpu, relaxed, check, shared, extra, headers, plain)


@trouble()
@in_use()
def build(
    sources: Sequence[str],
    flags: Sequence[str],
    *,
    check: bool,
    shared: bool,
    extra: str = "",
    headers: Path | None = None,
) -> tuple[Path, dict]:
    """A program (or shared library) of the sources, cached, and what is known about it.

    headers: see `Library`.
    """
    wanted = _wanted(sources, flags, check, shared, extra, headers)
    request = wanted.request()
    folder = cache_folder() / "builds"
    record = folder / f"{request}.json"
    facts = _kept(record)
    if facts:
        return Path(facts["output"]), facts
    folder.mkdir(parents=True, exist_ok=True)
    units, kernels, files = rewritten(
        wanted.sources,
        wanted.flags,
        wanted.gpu,
        headers,
        relaxed=wanted.relaxed,
        host_only=wanted.host_only,
    )
    units[0] += extra
    name = Path(wanted.sources[0]).stem.replace(" ", "_")
    output = folder / f"{name}-{hash_of(request, *units)}{'.so' if shared else ''}"
    warnings = _make(output, units, wanted)
    files = [fingerprint(file) for file in sorted(files)]
    facts = {"output": str(output), "kernels": kernels, "files": files, "warnings": warnings}
    atomically(record, lambda fresh: fresh.write_text(json.dumps(facts)))
    forget_old(cache_folder())
    return output, facts


def _kept(record: Path) -> dict | None:
    """What is known of an earlier build; None if there is none or one of its files has changed."""
    try:
        facts = json.loads(record.read_text())
        if not Path(facts["output"]).exists() or not unchanged(facts["files"]):
            return None
    except (OSError, ValueError, KeyError):
        return None
    with contextlib.suppress(OSError):  # in use: the cache keeps them
        os.utime(facts["output"])
        os.utime(record)
    return facts


def rewritten(
    sources: Sequence[str],
    flags: Sequence[str],
    gpu: Architecture,
    headers: Path | None = None,
    *,
    relaxed: bool = False,
    host_only: Sequence[str] = (),
) -> tuple[list[str], list[str], set]:
    """(each source as ordinary C++, the kernels' names, all files that went into it).

    host_only: in these sources kernels and launches are refused, as nvcc does in a file that is
        not .cu.
    """
    units = []
    kernels = []
    files = set(sources)
    for source in sources:
        if not Path(source).is_file():
            raise BuildError(f"{source}: {NO_FILE}\n")
        plain = source in host_only and preprocess_plain(source, flags)
        if plain:
            units.append(plain)
            files |= user_files(plain)
            continue
        tokens = None
        look = _preprocess_program if headers is None else _preprocess_for_nvrtc
        preprocessed, for_device, included = look(source, flags, gpu)
        files |= included
        try:
            if headers is not None:
                tokens = device_only.check(preprocessed, headers)
                preprocessed = device_only.without_includes(preprocessed)
            unit, names = rewrite(
                preprocessed,
                for_device,
                gpu,
                tokens=tokens,
                relaxed=relaxed,
                is_program=headers is None,
                host_only=source in host_only,
            )
        except RewriteError as error:
            raise BuildError(f"{error}\n", [*compiler(), source]) from None
        if source.endswith(".c"):  # its functions keep the names that C gives them
            unit = unit.replace(BEGIN_C, 'extern "C" {') + "\n}\n"
        units.append(unit)
        kernels += names
    return units, kernels, files


def _preprocess_program(
    source: str, flags: Sequence[str], gpu: Architecture
) -> tuple[str, str | None, set]:
    """(the text for the host, the one for the device where it may be another, files)."""
    ptx = _has(ASM, {source})
    text = preprocess(source, flags, ptx=ptx)
    files = {source, *user_files(text)}
    if not ptx and _has(ASM, files):
        ptx = True
        text = preprocess(source, flags, ptx=True)
    for_device = None
    if _has(ASKS_FOR_DEVICE, files):
        for_device = preprocess(source, [*flags, *gpu.macros()], ptx=ptx)
    return text, for_device, files


def _preprocess_for_nvrtc(
    source: str, flags: Sequence[str], gpu: Architecture
) -> tuple[str, None, set]:
    """(the one text that NVRTC sees, with its #include lines; None; files)."""
    ptx, asks = _has(ASM, {source}), _has(ASKS_FOR_DEVICE, {source})
    macros = [*flags, *gpu.macros(), device_only.MACRO]
    text = preprocess(source, macros if asks else flags, ptx=ptx, includes=True)
    files = {source, *user_files(text)}
    if (not ptx and _has(ASM, files)) or (not asks and _has(ASKS_FOR_DEVICE, files)):
        text = preprocess(source, macros, ptx=_has(ASM, files), includes=True)
    return text, None, files


def _has(pattern: re.Pattern, files: Iterable[str]) -> bool:
    return any(pattern.search(Path(file).read_bytes()) for file in files)


def _make(output: Path, units: Sequence[str], wanted: Wanted) -> list[str]:
    """Compile the units and link them with the runtime, if it has not been done; the warnings."""
    told = output.with_name(f"{output.name}.warnings")
    if output.exists() and told.exists():
        return json.loads(told.read_text())
    command = compiler()
    check, shared = wanted.check, wanted.shared
    runtime = runtime_objects(program=not shared, check=check)
    on_linux = sys.platform == "linux"
    libraries = system_libraries(on_linux, wraps_heap=check and not shared)
    kind = ["-shared"] if shared else []
    if shared and on_linux:  # else a kernel called `step` would be the C library's function
        kind.append("-Wl,-Bsymbolic")
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=MAKING) as temporary:
        objects = []
        warnings = []
        for number, text in enumerate(units):
            objects.append(Path(temporary) / f"{number}.o")
            make = _compile if len(units) == 1 else _compile_or_take
            warnings += make(text, objects[-1], wanted)
        linked = [*command, *kind, *objects, *runtime, *wanted.linking, *libraries]
        atomically(output, lambda fresh: checked([*linked, "-o", fresh]))
    atomically(told, lambda fresh: fresh.write_text(json.dumps(warnings)))
    return warnings


def _compile(text: str, object_file: Path, wanted: Wanted) -> list[str]:
    """Compile a unit; the warnings."""
    unit = object_file.with_suffix(".ii")
    unit.write_text(text)
    warnings = compiled([*compiler(), *wanted.flags, "-c", unit, "-o", object_file])
    on_linux = sys.platform == "linux"
    if wanted.check and wanted.shared and on_linux and shutil.which("objcopy"):
        renamed = [f"--redefine-sym={name}=cuda_cpu_heap_{name}" for name in HEAP]
        checked(["objcopy", *renamed, object_file])
    return warnings


def _compile_or_take(text: str, object_file: Path, wanted: Wanted) -> list[str]:
    """The same for one of several units, which is kept: who has changed another waits for that."""
    command = compiler()
    flags = [flag for flag in wanted.flags if not flag.startswith("-I")]  # nothing is included now
    made_from = [*command, *flags, str(wanted.check), str(wanted.shared), text]
    digest = hash_of(compiler_version(tuple(command)), own_hash(), *made_from)
    kept = cache_folder() / "builds" / f"{digest}.o"
    told = kept.with_name(f"{kept.name}.warnings")
    with contextlib.suppress(OSError, ValueError):
        warnings = json.loads(told.read_text())
        shutil.copyfile(kept, object_file)
        os.utime(kept)  # in use: the cache keeps it
        return warnings
    warnings = _compile(text, object_file, wanted)
    atomically(kept, lambda fresh: shutil.copyfile(object_file, fresh))
    atomically(told, lambda fresh: fresh.write_text(json.dumps(warnings)))
    return warnings


def system_libraries(on_linux: bool, *, wraps_heap: bool) -> list[str]:
    """What every program is linked with; `wraps_heap`: see runtime/host_heap.cpp."""
    if not on_linux:
        return ["-lpthread"]
    libraries = ["-lpthread", "-ldl", *linker()]
    if wraps_heap:
        libraries += [f"-Wl,--wrap={f}" for f in ("malloc", "calloc", "realloc", "free")]
    return libraries


def linker() -> list[str]:
    """The option for gold, half of the other linker's time, if this compiler can use it.

    A compiler that was moved to its place finds its libraries itself; gold may not. So it is tried
    once, and what came of it is kept.
    """
    command, gold = compiler(), shutil.which("ld.gold")
    if not gold or not is_gcc(command):
        return []
    kept = cache_folder() / f"linker-{hash_of(compiler_version(tuple(command)), *command, gold)}"
    with contextlib.suppress(OSError):  # not known yet
        return kept.read_text().split()
    found = _tried([*command, GOLD])
    with contextlib.suppress(OSError):  # a full disk: it is tried again the next time
        atomically(kept, lambda fresh: fresh.write_text(found))
    return found.split()


def _tried(command: Sequence[str]) -> str:
    """The last word of a command if an empty program can be made with it, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.cpp"
        empty.write_text("int main() {}\n")
        try:
            checked([*command, empty, "-o", empty.with_suffix("")])
        except BuildError:
            return ""
    return command[-1]


def build_program(
    source: str | Path,
    flags: Sequence[str] = (),
    *,
    output: Path | None = None,
    check: bool = False,
) -> Path:
    """Builds `source` (a .cu file) for the CPU and gives the path of the executable.

    `flags` are nvcc's: what means nothing on a CPU is dropped, the rest is passed on. `output` is
    where a copy goes; without it the program stays in the cache. `check` adds the slow checks.
    Raises BuildError.
    """
    if not Path(source).is_file():
        raise BuildError(f"{source}: {NO_FILE}\n")
    program, facts = build([str(source)], flags, check=check, shared=False)
    for warning in facts["warnings"]:
        print(warning, file=sys.stderr)
    if output is None:
        return program
    return atomically(Path(output), lambda fresh: shutil.copy2(program, fresh))
