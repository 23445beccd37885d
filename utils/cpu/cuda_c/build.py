"""Builds CUDA C++ for the CPU with the machine's own C++ compiler.

Three steps: the compiler preprocesses the source (`-E`), `rewrite.py` turns it into ordinary C++,
the compiler makes a program or a library of it and of the runtime (compiled once for each
compiler). Everything is kept in the user's cache folder (or CUDA_COURSE_CACHE) under a hash of what
it was made from, so nothing is compiled twice, and within MOST_BYTES.
"""

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from utils.files import keep_within

from .rewrite import rewrite
from .tokens import RewriteError

#: Of all builds that are kept; what was used longest ago goes first
MOST_BYTES = 1_000_000_000
HERE = Path(__file__).parent
INCLUDE = HERE / "include"
RUNTIME = HERE / "runtime"
NO_COMPILER = """no C++ compiler was found. To run CUDA C on this computer, install one:
  Debian, Ubuntu, Colab:  sudo apt install g++
  Fedora:                 sudo dnf install gcc-c++
  macOS:                  xcode-select --install
  anywhere, with pip:     pip install ziglang
or name one in the environment variable CXX"""

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
#: What nvcc defines where it compiles for Hopper
DEVICE_PASS = ["-D__CUDA_ARCH__=900", "-D__CUDA_ARCH_FEAT_SM90_ALL=1"]
PASSED_WITH_VALUE = {"-D", "-I", "-L", "-l", "-isystem", "-include", "-U"}


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
def _compiler_version(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    return done.stdout + platform.machine()


@functools.cache
def cache_folder() -> Path:
    """Where builds are kept: CUDA_COURSE_CACHE, the user's cache folder, or a temporary one."""
    candidates = [os.environ.get("CUDA_COURSE_CACHE"), platformdirs.user_cache_dir("cuda-course")]
    for folder in [c for c in candidates if c]:
        path = Path(folder) / "cuda_c"
        try:
            path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                return path
        except OSError:
            continue
    path = Path(tempfile.gettempdir()) / f"cuda-course-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        path = Path(tempfile.mkdtemp(prefix="cuda-course-"))
    return path


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def _own_files() -> list[Path]:
    paths = [*INCLUDE.rglob("*"), *RUNTIME.rglob("*")]
    return [*sorted(path for path in paths if path.is_file()), *sorted(HERE.glob("*.py"))]


@functools.cache
def _own_hash() -> str:
    parts = []
    for path in _own_files():
        parts += [str(path.relative_to(HERE)), path.read_bytes()]
    return _hash(*parts)


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


def _run(command: Sequence[str | Path], cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, errors="replace", cwd=cwd
    )


def _checked(command: Sequence[str | Path]) -> str:
    done = _run(command)
    if done.returncode:
        raise BuildError(tidy(done.stderr), [str(c) for c in command])
    return done.stdout


def tidy(log: str) -> str:
    """The compiler's text without the lines that speak of what the rewrite made."""
    lines = [
        line
        for line in log.split("\n")
        if "In file included from <command-line>" not in line
        and not line.endswith("In lambda function:")
    ]
    return "\n".join(lines).strip() + "\n"


def split_flags(flags: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """nvcc's options as (for compiling, for linking, further sources)."""
    compiling = []
    linking = []
    sources = []
    rest = list(flags)
    while rest:
        flag = rest.pop(0)
        name = flag.split("=", 1)[0]
        if flag in ("-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options"):
            values = rest.pop(0).split(",") if rest else []
            (linking if "inker" in flag else compiling).extend(v for v in values if v)
        elif flag.startswith(("-Xcompiler=", "--compiler-options=")):
            compiling += flag.split("=", 1)[1].split(",")
        elif name in DROPPED:
            if name in TAKES_VALUE and "=" not in flag and rest:
                rest.pop(0)
        elif flag.startswith("-gencode") or flag.startswith("-arch"):
            continue
        elif flag in ("-o", "--output-file", "-x", "--x"):
            rest[:1] = []
        elif flag in PASSED_WITH_VALUE and rest:
            value = rest.pop(0)
            words = [flag, value] if flag == "-isystem" else [flag + value]
            (linking if flag in ("-L", "-l") else compiling).extend(words)
        elif flag.startswith(("-l", "-L", "-Wl,")):
            linking.append(flag)
        elif flag.startswith(("-std=", "--std=")):
            standard = flag.split("=", 1)[1]
            if standard not in ("c++03", "c++98", "c++11", "c++14", "c++17"):
                compiling.append("-std=" + standard)
        elif flag.startswith("-I") and (Path(flag[2:]) / "cuda_runtime.h").exists():
            continue
        elif not flag.startswith("-") and Path(flag).suffix in (".cu", ".cpp", ".cc", ".cxx", ".c"):
            sources.append(flag)
        elif flag.startswith("-O") or flag in ("--optimize",):
            compiling.append("-O2" if flag in ("-O0",) else flag)
        else:
            compiling.append(flag)
    return compiling, linking, sources


def _environment_flags(compiling: list[str], check: bool) -> list[str]:
    command = compiler()
    flags = [] if any(f.startswith("-std=") for f in compiling) else ["-std=c++17"]
    if check:
        flags += ["-O1", "-g1", *CHECK_FLAGS, *_volatile_flags(command)]
    else:
        flags += ["-O2"] if not any(f.startswith("-O") for f in compiling) else []
        flags += ["-g1"]
    flags += ["-fno-strict-aliasing", "-fwrapv", *_target_flags(tuple(command))]
    if not any(f.startswith("-W") for f in compiling):
        flags.append("-w")
    if _is_gcc(command):
        flags.append("-fpermissive")
    return flags


def _is_gcc(command: list[str]) -> bool:
    return "g++" in Path(command[0]).name and "clang" not in command[0]


def _volatile_flags(command: list[str]) -> list[str]:
    if "clang" in Path(command[0]).name or "ziglang" in command or sys.platform == "darwin":
        return [
            "-mllvm",
            "-tsan-distinguish-volatile=1",
            "-mllvm",
            "-tsan-compound-read-before-write=1",
        ]
    return ["--param", "tsan-distinguish-volatile=1"]


# The checks' own functions take the place of the sanitizers' libraries: see runtime/checks.cpp.
CHECK_FLAGS = [
    "-fsanitize=thread,bounds,alignment,integer-divide-by-zero",
    "-fsanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-fno-builtin-memset",
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
]


def _atomically(target: Path, make) -> Path:
    """Lets `make(path)` write a file next to `target`, then gives it its name in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as folder:
        fresh = Path(folder) / target.name
        make(fresh)
        os.replace(fresh, target)
    return target


def runtime_objects(program: bool, check: bool) -> list[Path]:
    """The runtime's object files for this compiler, compiled if they are not there yet."""
    command = compiler()
    flags = ["-std=c++17", "-O2", "-g1", "-fPIC", "-fvisibility=hidden"]
    digest = _hash(_compiler_version(tuple(command)), _own_hash(), *command, *flags)
    folder = cache_folder() / f"runtime-{digest}"
    parts = ["scheduler", "memory", "devices", "order", "collectives"]
    parts += ["collectives_work", "api", "report"]
    parts += ["window", "mbarrier", "copy_engine", "tensor_copy", "clusters"]
    parts += ["warp_matrices", "warp_groups"]
    parts.append("checks" if check else "unchecked")
    parts.append("start" if program else "library")
    if check:
        parts.append("checks_async")
    if check and program:
        parts.append("host_heap")
    missing = [part for part in parts if not (folder / f"{part}.o").exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as temporary:
        running = []
        for part in missing:
            out = Path(temporary) / f"{part}.o"
            line = [*command, *flags, "-c", str(RUNTIME / f"{part}.cpp"), "-o", str(out)]
            process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
            running.append((part, out, line, process))
        for part, out, line, process in running:
            _, log = process.communicate()
            if process.returncode:
                raise BuildError(f"the CPU runtime itself did not compile:\n{log}", line)
            os.replace(out, folder / f"{part}.o")
    return [folder / f"{p}.o" for p in parts]


@functools.cache  # once a process
def _forget_old(folder: Path) -> None:
    """Keep all that is built within MOST_BYTES: what was used longest ago goes."""
    beside = [path for path in folder.iterdir() if path.name != "builds"]
    keep_within([*folder.glob("builds/*"), *beside], MOST_BYTES)


# ---- what a source includes
def _fingerprint(path: str) -> list:
    stat = os.stat(path)
    return [path, stat.st_mtime_ns, stat.st_size, _hash(Path(path).read_bytes())]


def _unchanged(files: list) -> bool:
    for path, modified, size, digest in files:
        try:
            stat = os.stat(path)
            if stat.st_size != size:
                return False
            if stat.st_mtime_ns != modified and _hash(Path(path).read_bytes()) != digest:
                return False
        except OSError:
            return False
    return True


def _user_files(preprocessed: str) -> set[str]:
    """The files that a preprocessed source names, without the runtime's own and the system's."""
    markers = re.findall(r'^# \d+ "((?:[^"\\]|\\.)+)"', preprocessed, re.MULTILINE)
    names = {re.sub(r"\\(.)", r"\1", marker) for marker in markers if not marker.startswith("<")}
    foreign = (str(HERE), "/usr/", "/Library/")
    return {name for name in names if not name.startswith(foreign) and Path(name).is_file()}


def _directive(flag: str) -> str:
    """-DN=3 as ``#define N 3``, -DN as ``#define N 1``, -UN as ``#undef N``."""
    macro = flag[2:]
    if flag[1] == "U":
        return f"#undef {macro}"
    name, is_given, value = macro.partition("=")
    return f"#define {name} {value if is_given else 1}"


def _defines(flags: Sequence[str]) -> Path:
    """A header with what the flags -D and -U say."""
    text = "\n".join(map(_directive, flags)) + "\n"
    header = cache_folder() / f"macros-{_hash(text)}.h"
    return header if header.exists() else _atomically(header, lambda fresh: fresh.write_text(text))


def _preprocess(source: str, flags: Sequence[str], *, ptx: bool = False) -> str:
    """The source behind `include/cuda_runtime.h`, and with `ptx` behind what inline PTX needs.

    The program's own macros (-DN=3) are defined between the two, so that they cannot change a word
    of that header; those meant for the system's headers (-D_GNU_SOURCE, -DNDEBUG) come first.
    """
    own = [f for f in flags if re.match(r"-[DU](?!_|NDEBUG\b)", f)]
    others = [f for f in flags if f not in own]
    macros = ["-include", _defines(own)] if own else []
    folders = ["-isystem", INCLUDE, "-I", INCLUDE / "lib"]
    command = [*compiler(), "-E", "-x", "c++", "-include", INCLUDE / "cuda_runtime.h"]
    if ptx:
        command += ["-include", INCLUDE / "detail" / "ptx.h"]
    return _checked([*command, *macros, *others, *folders, source])


def build(
    sources: Sequence[str], flags: Sequence[str], *, check: bool, shared: bool, extra: str = ""
) -> tuple[Path, dict]:
    """A program (or shared library) of the sources, cached, and what is known about it."""
    compiling, linking, more = split_flags(flags)
    sources = [*sources, *more]
    command = compiler()
    flags = [*_environment_flags(compiling, check), *compiling]
    # of two libraries in one process each keeps its own static variables, those of templates too
    if shared:
        flags.append("-fPIC")
        if _is_gcc(command) and sys.platform == "linux":
            flags.append("-fno-gnu-unique")
    # then messages, too, name files as seen from this folder
    if not any(Path(source).is_absolute() for source in sources):
        flags.append(f"-fdebug-prefix-map={os.getcwd()}=.")
    asked = [sources, flags, linking, check, shared, extra, os.getcwd(), *command]
    request = _hash(json.dumps(asked), _own_hash(), _compiler_version(tuple(command)))
    folder = cache_folder() / "builds"
    record = folder / f"{request}.json"
    facts = _kept(record)
    if facts:
        return Path(facts["output"]), facts
    folder.mkdir(parents=True, exist_ok=True)
    units, kernels, files = _rewritten(sources, flags)
    units[0] += extra
    name = Path(sources[0]).stem.replace(" ", "_")
    output = folder / f"{name}-{_hash(request, *units)}{'.so' if shared else ''}"
    if not output.exists():
        # these options mean something to the linker too
        linking = [f for f in compiling if f in ("-fopenmp", "-pthread", "-static")] + linking
        _make(output, units, flags, linking, check=check, shared=shared)
    files = [_fingerprint(file) for file in sorted(files)]
    facts = {"output": str(output), "kernels": kernels, "files": files}
    _atomically(record, lambda fresh: fresh.write_text(json.dumps(facts)))
    _forget_old(cache_folder())
    return output, facts


def _kept(record: Path) -> dict | None:
    """What is known of an earlier build; None if there is none or one of its files has changed."""
    try:
        facts = json.loads(record.read_text())
        if not Path(facts["output"]).exists() or not _unchanged(facts["files"]):
            return None
        os.utime(facts["output"])
        os.utime(record)
    except (OSError, ValueError, KeyError):
        return None
    return facts


def _rewritten(sources: Sequence[str], flags: Sequence[str]) -> tuple[list[str], list[str], set]:
    """(each source as ordinary C++, the kernels' names, all files that went into it)."""
    units = []
    kernels = []
    files = set(sources)
    for source in sources:
        preprocessed = _preprocess(source, flags)
        included = _user_files(preprocessed)
        files |= included
        for_device = None
        texts = [Path(f).read_bytes() for f in {source, *included}]
        ptx = any(re.search(rb"\basm\b|\b__asm", text) for text in texts)
        if ptx:
            preprocessed = _preprocess(source, flags, ptx=True)
        if any(b"__CUDA_ARCH" in text for text in texts):
            for_device = _preprocess(source, [*flags, *DEVICE_PASS], ptx=ptx)
        try:
            unit, names = rewrite(preprocessed, for_device)
        except RewriteError as error:
            raise BuildError(f"{error}\n", [*compiler(), source]) from None
        units.append(unit)
        kernels += names
    return units, kernels, files


def _make(
    output: Path,
    units,
    flags,
    linking,
    *,
    check: bool,
    shared: bool,
) -> None:
    """Compile the units and link them with the runtime."""
    command = compiler()
    runtime = runtime_objects(program=not shared, check=check)
    on_linux = sys.platform == "linux"
    libraries = ["-lpthread"]
    if on_linux:
        libraries.append("-ldl")
    if check and not shared and on_linux:  # see runtime/host_heap.cpp
        libraries += [f"-Wl,--wrap={f}" for f in ("malloc", "calloc", "realloc", "free")]
    kind = ["-shared"] if shared else []
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".making-") as temporary:
        objects = []
        for number, text in enumerate(units):
            unit = Path(temporary) / f"{number}.ii"
            unit.write_text(text)
            objects.append(unit.with_suffix(".o"))
            _checked([*command, *flags, "-c", unit, "-o", objects[-1]])
        linked = [*command, *kind, *objects, *runtime, *linking, *libraries]
        _atomically(output, lambda fresh: _checked([*linked, "-o", fresh]))


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
        raise BuildError(f"{source}: there is no such file\n")
    program, _ = build([str(source)], flags, check=check, shared=False)
    if output is None:
        return program
    return _atomically(Path(output), lambda fresh: shutil.copy2(program, fresh))
