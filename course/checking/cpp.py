"""Exercises in plain C++: the learner's file, a test program around it, the compiler's sanitizers.

The test programs are in cpp_tests/. Each includes the learner's file as "answer.h", draws its
inputs from a seed, compares, and says what is wrong through FAIL(reason, ...). What it cannot see
(a write out of bounds, an int that overflows) the sanitizers do.
"""

import os
import re
import signal
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course.checking.model import Exercise
from utils.files import scratch_folder
from utils.tools import process
from utils.tools.diagnostics import annotate, excerpt

TESTS = Path(__file__).parents[1] / "exercises" / "cpp_tests"
COMPILE_SECONDS = 300  # by the clock, on a busy computer
RUN_SECONDS, PATIENCE = 5, 240  # of CPU time, and by the clock
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
# Leaks are counted by the tests themselves: the sanitizer's own search does not work on every
# system.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1:hard_rss_limit_mb=2048"}
# The system ends a program that takes more CPU time; nothing in the learner's code can lift that.
LIMITED = ["/bin/sh", "-c", 'ulimit -S -t "$0" && exec "$@"']
NO_SANITIZERS = (
    "This compiler has no sanitizers, and the check needs them: `sudo dnf install libasan "
    "libubsan` (Fedora), `sudo apt install libclang-rt-dev` (clang on Debian and Ubuntu)."
)

# Variables that nobody sets get a pattern where the compiler can do that (g++ 12, clang 16).
PATTERN = "-ftrivial-auto-var-init=pattern"
# What a compiler warns of where it follows a variable through the code
UNSET = re.compile(r"answer\.h:(\d+):\d+: warning: .*?[‘'](\w+)[’'].*\buninitialized\b")
# `*out[i]`, where a statement begins or after = ( , and not a product
STAR_FIRST = re.compile(r"(?:^|[=(,;])\s*(\*(\w+)\[(\w+)\])")

# A launch of CUDA's, which becomes launched({grid, block}, kernel)(arguments)
LAUNCH = re.compile(r"\b(\w+)\s*<<<(.*?)>>>", re.DOTALL)

# What a sanitizer's report holds -> the reason of ours.
FOUND = (
    (r"stack-use-after-|heap-use-after-free", "use_after_free"),
    (r"alloc-dealloc-mismatch", "wrong_free"),
    (r"double-free", "double_free"),
    (r"attempting free", "dangling"),
    (r"buffer-overflow|buffer-underflow|out of bounds|container-overflow", "out_of_bounds"),
    (r"SEGV|null pointer", "null_pointer"),
    (r"integer overflow|outside the range of representable", "overflow"),
)


#: (reason, message, piece of code or "")
Problem = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class CppExercise(Exercise):
    """An exercise whose answer is a C++ file. `tests` is the test program's name in cpp_tests/.

    launches: the file launches kernels, `kernel<<<grid, block>>>(arguments)`, which the test
        program gets as `launched({grid, block}, kernel)(arguments)` (cpp_tests/launched.h).
    """

    tests: str
    launches: bool = False  # type: ignore[assignment]  # of kernels the launches themselves
    kind: str = "cpp"
    reference: object = None  # type: ignore[assignment]  # the test program has its own
    inputs: object = None  # type: ignore[assignment]  # as well
    shapes: tuple = ()


def run(path: str | Path, tests: str, seed: int, launches: bool = False) -> Problem | None:
    """Compile and run a learner's file with its test program.

    path: the learner's file. tests: a file name in cpp_tests/. seed: what the inputs are drawn
        from. launches: as CppExercise has it.
    Returns None when all is right, else (reason, message, piece of code or "").
    """
    path = Path(path)
    with scratch_folder() as folder:
        text = path.read_text(encoding="utf-8")
        text = LAUNCH.sub(r"launched({\2}, \1)", text) if launches else text
        (folder / "answer.h").write_text(text, encoding="utf-8")
        failure = _compile(folder, path, TESTS / tests)
        if failure:
            return failure
        command = [*LIMITED, str(RUN_SECONDS), str(folder / "tests"), str(seed)]
        environment = {**os.environ, **OPTIONS}
        try:
            done = process.run(command, timeout=PATIENCE, cwd=folder, env=environment)
        except process.Timeout:
            return "timeout", f"It was stopped after {PATIENCE} seconds. What does it wait for?", ""
        never_set = _never_set(folder, TESTS / tests) if "FAIL wrong_value" in done.output else ""
    if len(done.output) > process.MAX_OUTPUT // 2:
        return "flood", f"It printed {len(done.output):,} characters or more.", ""
    if done.returncode == -signal.SIGXCPU:
        return "timeout", f"It was stopped after {RUN_SECONDS} seconds. Does every loop end?", ""
    failure = _judge(done, path)
    return (failure[0], failure[1] + never_set, failure[2]) if failure else None


@cache
def _takes_pattern(command: tuple[str, ...]) -> bool:
    """Whether this compiler gives variables that nobody sets a pattern."""
    asked = [*command, PATTERN, "-x", "c++", "-E", os.devnull]
    return process.run(asked, timeout=COMPILE_SECONDS).returncode == 0


def _never_set(folder: Path, tests: Path) -> str:
    """What the compiler warns of variables that are read before they are set; "" if nothing."""
    from utils.cpu.cuda_c.build import compiler

    warn = ["-O1", "-Wuninitialized", "-Wmaybe-uninitialized", "-Wno-unknown-warning-option"]
    command = [*compiler(), "-std=c++17", *warn, f"-I{folder}", "-c", str(tests), "-o", os.devnull]
    try:
        log = process.run(command, timeout=COMPILE_SECONDS).output
    except process.Timeout:
        return ""
    unset = UNSET.search(log)
    if not unset:
        return ""
    line, name = unset.groups()
    return f" The compiler warns: `{name}` may be read in line {line} before it is set."


def _compile(folder: Path, path: Path, tests: Path) -> Problem | None:
    from utils.cpu.cuda_c.build import BuildError, compiler, system_libraries

    try:
        options = ["-std=c++17", "-g1", "-w", f"-I{folder}"]  # -g1: a report names lines alone
        libraries = system_libraries(sys.platform == "linux", wraps_heap=False)
        options += [PATTERN] if _takes_pattern(tuple(compiler())) else []
        command = [*compiler(), *options, str(tests), *libraries, "-o", str(folder / "tests")]
    except BuildError as error:
        first, _, rest = str(error).partition("\n")
        return "not_checked", first, rest
    try:
        done = process.run([*command, *SANITIZERS], timeout=COMPILE_SECONDS)
        if done.returncode == 0:
            return None
        if process.run(command, timeout=COMPILE_SECONDS).returncode == 0:
            return "not_checked", NO_SANITIZERS, ""
    except process.Timeout:
        return "not_checked", f"The compiler was stopped after {COMPILE_SECONDS} seconds.", ""
    log = annotate(done.output, {"answer.h": path}).replace(str(tests), "the test")
    first = re.split(r"\n(?=\S[^\n]*, line \d+: )", log)[0]  # the others are often only its echo
    return (
        "does_not_compile",
        f"The compiler says, about `{path}` or the place that uses it:",
        first.rstrip(),
    )


def _judge(done: process.Completed, path: Path) -> Problem | None:
    output = done.output
    if failure := re.search(r"^FAIL (\w+) (.*)$", output, re.M):
        return failure[1], failure[2], ""
    if done.returncode == 0 and output.endswith("\nPASS\n"):
        return None
    line = re.search(r"answer\.h:(\d+)", output)
    code = excerpt(path, int(line[1])).rstrip() if line else ""
    for pattern, reason in FOUND:
        if re.search(pattern, output):
            return reason, _telling(output) + _star_first(path, line), code
    if done.returncode == 0:
        why = "The program ended before its tests did. Is there an `exit` in your code?"
        return "crashed", why, ""
    return "crashed", f"{process.exit_reason(done.returncode)}. {output.strip()[-300:]}", code


def _star_first(path: Path, line: re.Match[str] | None) -> str:
    """A sentence where the line at fault has `*out[i]`, which takes the element first; else ""."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = line and STAR_FIRST.search(lines[int(line[1]) - 1])
    if not found:
        return ""
    text, name, index = found.groups()
    meant = f"for the array that `{name}` points to write `(*{name})[{index}]`"
    return f" `{text}` is `*({name}[{index}])`: {meant}."


def _telling(report: str) -> str:
    """The most telling words of a sanitizer's report."""
    words = r"attempting .*?(?= on 0x|: )|[\w-]+"
    kind = re.search(rf"runtime error: (.*)|ERROR: AddressSanitizer: ({words})", report)
    access = re.search(r"^(READ|WRITE) of size \d+", report, re.M)
    place = re.search(r"is located (.*? region)", report)
    parts = [kind[1] or kind[2]] if kind else ["an invalid access"]
    parts += [access[0].lower()] if access else []
    parts += [place[1]] if place else []
    return f"The sanitizer reports: {', '.join(parts)}."
