"""The preprocessor's part of a build.

Every source stands behind `include/cuda_runtime.h`. Where the compiler is GCC that header is read
from a precompiled copy, so neither the rewrite nor the compiler sees its text again: a third of a
build's time stays.
"""

import contextlib
import functools
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from ...files import DAY
from .cache import (
    HERE,
    INCLUDE,
    atomically,
    cache_folder,
    hash_of,
    remove_unfinished,
    runtime_hash,
)
from .compiler import BuildError, checked, compiler, compiler_version, is_gcc

PRELUDE = (INCLUDE / "cuda_runtime.h",)
PRELUDE_WITH_PTX = (*PRELUDE, INCLUDE / "detail" / "ptx.h")
COMPILED = "prelude.h.gch"
#: Beside a header that the compiler refused lies a file of this name: it is not tried again today
REFUSED = "refused"
#: How a compiler says that it was hindered, and would do it another time
HINDERED = re.compile(r"No space left|quota exceeded|Killed|terminated|memory exhausted")
FOLDERS = ("-isystem", INCLUDE, "-I", INCLUDE / "lib")
#: Options that leave a precompiled header as it is
OF_ONE_SOURCE = ("-D", "-U", "-I", "-i", "-L", "-fdebug-prefix-map")


def user_files(preprocessed: str) -> set[str]:
    """The files that a preprocessed source names, without the runtime's own and the system's."""
    markers = re.findall(r'^# \d+ "((?:[^"\\]|\\.)+)"', preprocessed, re.MULTILINE)
    names = {re.sub(r"\\(.)", r"\1", marker) for marker in markers if not marker.startswith("<")}
    made_here = (str(cache_folder() / "prelude-"), str(cache_folder() / "macros-"))
    foreign = (str(HERE), "/usr/", "/Library/", *made_here)
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
    header = cache_folder() / f"macros-{hash_of(text)}.h"
    return header if header.exists() else atomically(header, lambda fresh: fresh.write_text(text))


def preprocess(
    source: str,
    flags: Sequence[str],
    *,
    ptx: bool = False,
    includes: bool = False,
) -> str:
    """The source behind `include/cuda_runtime.h`, and with `ptx` behind what inline PTX needs.

    With `includes` the #include lines stay in the text, each before what it includes.

    The program's own macros (-DN=3) are defined between the two, so that they cannot change a word
    of that header; those meant for the system's headers (-D_GNU_SOURCE, -DNDEBUG) come first.
    """
    own = [f for f in flags if re.match(r"-[DU](?!_|NDEBUG\b)", f)]
    others = [f for f in flags if f not in own]
    included = [*_prelude(others, PRELUDE_WITH_PTX if ptx else PRELUDE)]
    if own:
        included.append(_defines(own))
    if source.endswith(".c"):
        included.append(INCLUDE / "detail" / "c.h")
    command = [*compiler(), "-E", "-x", "c++", *(["-fpch-preprocess"] if _precompiles() else [])]
    if includes:
        command.append("-dI")
    for header in included:
        command += ["-include", header]
    return checked([*command, *others, *FOLDERS, source])


def preprocess_plain(source: str, flags: Sequence[str]) -> str:
    """A C++ source without CUDA as it is; "" where it includes a header of CUDA, or is C.

    nvcc hands it to the host's compiler, with nothing in front: its own `umin` is welcome.
    """
    if source.endswith(".c"):
        return ""
    text = checked([*compiler(), "-E", "-x", "c++", *flags, *FOLDERS, source])
    return "" if f'"{INCLUDE}' in text else text


def _precompiles() -> bool:
    """Whether the compiler is GCC, whose precompiled headers survive -E."""
    command = compiler()
    return is_gcc(command) and "Free Software" in compiler_version(tuple(command))


def _prelude(flags: Sequence[str], headers: tuple[Path, ...]) -> tuple[Path, ...]:
    """What to include first: one header that is compiled already, or those that are given.

    The compiler looks for the precompiled one by itself, and takes the text where it does not suit
    (macros of the command line may change what it says).
    """
    if not _precompiles():
        return headers
    compiling = tuple(flag for flag in flags if not flag.startswith(OF_ONE_SOURCE))
    header = _header_for(compiling, headers)
    if not header.with_name(COMPILED).exists():
        if _was_refused(header) or not _precompile(header, compiling, headers):
            return headers
    with contextlib.suppress(OSError):
        os.utime(header)  # in use: the cache keeps it
    return (header,)


def _was_refused(header: Path) -> bool:
    """Whether the compiler has refused this header within the last day."""
    try:
        return time.time() - header.with_name(REFUSED).stat().st_mtime < DAY
    except OSError:
        return False


@functools.cache
def _header_for(flags: tuple[str, ...], headers: tuple[Path, ...]) -> Path:
    """Where the header lies that stands for `headers`, beside it the same compiled."""
    command = compiler()
    digest = hash_of(
        _includes(headers),
        compiler_version(tuple(command)),
        runtime_hash(),
        *command,
        *flags,
    )
    return cache_folder() / f"prelude-{digest}" / "prelude.h"


def _includes(headers: tuple[Path, ...]) -> str:
    return "".join(f'#include "{path}"\n' for path in headers)


def _precompile(header: Path, flags: tuple[str, ...], headers: tuple[Path, ...]) -> bool:
    """Write and compile the header that stands for `headers`; whether that went well."""
    compiled = header.with_name(COMPILED)
    header.parent.mkdir(parents=True, exist_ok=True)
    line = [*compiler(), *flags, *FOLDERS, "-x", "c++-header", header, "-o"]
    with FileLock(header.with_name("lock")):
        remove_unfinished(header.parent)
        try:
            if not compiled.exists():
                header.write_text(_includes(headers))
                atomically(compiled, lambda fresh: checked([*line, fresh]))
        except BuildError as error:  # the build itself says better what is wrong
            if not HINDERED.search(error.log):
                header.with_name(REFUSED).touch()
            return False
    return True
