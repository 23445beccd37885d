"""Does every CUDA C program compile for every GPU that learners have?

    python -m tests.architectures [--jobs N] [--only TEXT] [7.5 8.6 ...]

nvcc compiles each program that a chapter writes, and each file in course/kernels, for each compute
capability; no GPU is needed. A file that needs more may refuse, if its #error says so. Minutes for
one capability, so no test calls it for all files.
"""

import argparse
import os
import re
import shlex
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from course.chapters import CHAPTERS
from tests import hygiene
from tests.processes import completed
from utils.files import ROOT
from utils.tools.nvcc import find_nvcc

CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
FILE = re.compile(r"%%writefile (?:-a )?(build/\S+\.(?:cu|cuh|h))\n")
CALL = re.compile(r"^%nvcc (build/\S+\.cu)(.*)$", re.MULTILINE)
INCLUDED = re.compile(r'#include "(\w+\.cu)"')  # by another program, so none itself
NEEDS = re.compile(r"#error(?: directive:)?\s+(.*)|(nccl\.h: No such file)")
HALF = re.compile(r"^#ifdef HALF\b", re.MULTILINE)  # a file that takes fp16 in place of bf16
WANTED = ("-I", "-D", "-rdc")  # flags of a chapter's %nvcc that matter here
#: Its files are compiled for one shape each, which Python gives: its own tests compile them
APART = "row_kernels"
SECONDS = 300


@dataclass(frozen=True)
class Program:
    """A file to compile. folder: where from. newest: with all that only this very GPU has, as what
    Python loads is compiled.
    """

    name: str
    file: Path
    folder: Path
    flags: tuple[str, ...] = ()
    newest: bool = False


def of_chapter(chapter, folder: Path) -> list[Program]:
    """The programs that a chapter writes, written to `folder`/chapters/build."""
    place = folder / "chapters"
    (place / "build").mkdir(parents=True, exist_ok=True)
    if not (folder / "course").exists():
        (folder / "course").symlink_to(ROOT / "course")
    written, flags, apart = [], {}, set()
    for cell in hygiene.read(chapter.path).cells:
        match = FILE.match(cell.source)
        if cell.cell_type == "code" and match:
            (place / match[1]).write_text(cell.source[match.end() :], encoding="utf-8")
            written.append(match[1])
        for file, rest in CALL.findall(cell.source):
            own = shlex.split(rest.split("--run")[0])
            flags[file] = tuple(word for word in own if word.startswith(WANTED))
            if "raises-exception" in cell.metadata.get("tags", []):
                apart.add(file)
    texts = "".join(path.read_text(encoding="utf-8") for path in place.glob("build/*.cu"))
    apart |= {f"build/{name}" for name in INCLUDED.findall(texts)}
    files = [file for file in dict.fromkeys(written) if file.endswith(".cu") and file not in apart]
    name = chapter.path.stem[:2]
    return [Program(f"{name} {f[6:]}", place / f, place, flags.get(f, ())) for f in files]


def of_kernels() -> list[Program]:
    """The files of course/kernels."""
    kernels = ROOT / "course" / "kernels"
    found = []
    for file in sorted(kernels.glob("*/*/*.cu")):
        name = str(file.relative_to(kernels))
        if name.startswith(APART):
            continue
        found.append(Program(name, file, file.parent, newest=True))
    return found


def compiled(program: Program, capability: str) -> str:
    """ "ok", what the file says that it needs, or nvcc's first error."""
    level = tuple(map(int, capability.split(".")))
    own = "a" if program.newest and level >= (9, 0) else ""
    arch = "sm_{}{}".format(*level) + own
    flags = [*program.flags]
    if level < (8, 0):  # what the course passes there
        takes_half = HALF.search(program.file.read_text(encoding="utf-8"))
        flags.append("-DHALF" if takes_half else "-DFP16")
    command = [find_nvcc(), "-cubin", f"-arch={arch}", "-std=c++17", *flags, str(program.file)]
    done = completed([*command, "-o", os.devnull], cwd=program.folder, timeout=SECONDS)
    if done.returncode == 0:
        return "ok"
    text = done.stdout + done.stderr
    needs = NEEDS.search(text)
    if needs:
        return f"says: {(needs[1] or needs[2]).strip()}"
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    return f"FAILED {errors[0][-160:] if errors else text[-160:]}"


def main(arguments: list[str] | None = None) -> int:
    """Command line; the exit status is 1 if a program failed without saying what it needs."""
    parser = argparse.ArgumentParser(prog="python -m tests.architectures", description=__doc__)
    parser.add_argument("capabilities", nargs="*", default=CAPABILITIES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args(arguments)
    counts = {"ok": 0, "says": 0, "FAILED": 0}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        programs = of_kernels()
        for chapter in CHAPTERS:
            if chapter.written:
                programs += of_chapter(chapter, Path(folder) / chapter.path.stem)
        asked = [
            (program, capability)
            for capability in options.capabilities
            for program in programs
            if options.only in program.name
        ]
        for (program, capability), said in zip(
            asked, pool.map(lambda pair: compiled(*pair), asked), strict=True
        ):
            counts[said.split()[0].rstrip(":")] += 1
            if said != "ok":
                print(f"{capability:5} {program.name}: {said}", flush=True)
    print(*(f"{count} {what}" for what, count in counts.items()), sep=", ")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
