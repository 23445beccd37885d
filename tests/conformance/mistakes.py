"""The bank of broken CUDA C programs: what each must be told, and whether it is.

    python -m tests.conformance.mistakes [name ...]

builds and runs them on the CPU engine, shows each diagnosis and prints the score. The first line of
every program says what is expected,

    // expect: WORDS; line N [or M]; mode: fast|check[; devices: D]

a message with these words at that line (0: at no line), with the fast checks or only with the slow
ones, on D devices instead of one.

A program of ../asynchronous/ or ../unordered/ holds many mistakes, each in a kernel or function of
its own, and takes the name of one. Its first lines say

    // expect WORDS [/ OTHER WORDS]; line N [or M]; case NAME
    // right: NAME ...

The names after `right` are cases without a mistake, of which nothing must be said.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.processes import completed
from utils.cpu.cuda_c.build import BuildError, build_program

FOLDER = Path(__file__).with_name("broken")
#: Folders of programs that hold many mistakes each: what copies and barriers in shared memory
#: leave undone; memory nobody has written, races, blocks of a cluster, streams, graphs
OF_MANY = [Path(__file__).with_name(name) for name in ("asynchronous", "unordered")]


def run(executable, *arguments, **environment):
    """Runs a program of the engine, with no other of the engine's settings than those given."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_CPU_")}
    return completed(
        [str(executable), *arguments], errors="replace", timeout=300, env={**clean, **environment}
    )


def expectation(source):
    """(words, lines, mode) from the first line of a broken program."""
    first = source.read_text().split("\n", 1)[0]
    words, lines, mode = re.fullmatch(
        r"// expect: (.+?); line (.+); mode: (fast|check)(?:; devices: \d+)?", first
    ).groups()
    return words, [int(line) for line in lines.split(" or ")], mode


def devices(source):
    """The engine's setting for a program that wants several devices, from its first line."""
    wanted = re.search(r"; devices: (\d+)", source.read_text().split("\n", 1)[0])
    return {"CUDA_CPU_DEVICES": wanted[1]} if wanted else {}


def diagnosis(source):
    """(whether the mistake was found by name and line, what the engine said)."""
    words, lines, mode = expectation(source)
    try:
        said = run(build_program(source, check=mode == "check"), **devices(source)).stderr
    except BuildError as error:
        said = error.log
    except subprocess.TimeoutExpired:
        said = "ran for more than 600 s"
    places = [f"{source.name}:{line}:" for line in lines if line]
    found = [line for line in said.splitlines() if words in line]
    return any(not places or any(place in line for place in places) for line in found), said


def cases(source):
    """{name: (words, lines)} of a program with many mistakes."""
    found = re.findall(r"// expect (.+); line (.+); case (\w+)\n", source.read_text())
    return {
        name: (words.split(" / "), [int(line) for line in lines.split(" or ")])
        for words, lines, name in found
    }


def of_many():
    """The programs that hold many mistakes each."""
    return sorted(path for folder in OF_MANY for path in folder.glob("*.cu"))


def right_cases(source):
    """Names of the cases of such a program that are right."""
    lines = re.findall(r"// right: (.+)\n", source.read_text())
    return [name for line in lines for name in line.split()]


def alarms(source, executable, **environment):
    """{name: what was said} of right cases of which something was said, or that failed."""
    result = {}
    for name in right_cases(source):
        done = run(executable, name, **environment)
        if done.stderr or done.returncode:
            result[name] = done.stderr
    return result


def missed(source, executable, **environment):
    """{name: what was said} of the cases that are not told with their words and line."""
    result = {}
    for name, (words, lines) in cases(source).items():
        said = run(executable, name, **environment).stderr
        told = any(w in said for w in words)
        if not told or not any(f"{source.name}:{line}:" in said for line in lines):
            result[name] = said
    return result


def main():
    sources = [s for s in sorted(FOLDER.glob("*.cu")) if not sys.argv[1:] or s.stem in sys.argv[1:]]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(diagnosis, sources))
    for source, (found, said) in zip(sources, results, strict=True):
        words, lines, mode = expectation(source)
        print(f"{'found ' if found else 'MISSED'} {source.stem} ({mode}): {words}, line {lines}")
        for line in said.splitlines()[: 2 if found else 8]:
            print("       ", line)
    found = sum(found for found, _ in results)
    print(f"score: {found} of {len(results)} planted mistakes found by name and line")
    if not sys.argv[1:]:
        report_of_many()


def report_of_many():
    for source in of_many():
        executable = build_program(source, check=True)
        not_told = missed(source, executable)
        for name, said in not_told.items():
            print(f"MISSED {source.stem} {name}\n{said}")
        for name, said in alarms(source, executable).items():
            print(f"FALSE ALARM {source.stem} {name}\n{said}")
        folder = source.parent.name
        print(f"{folder}, {source.stem}: {len(not_told)} of {len(cases(source))} missed")


if __name__ == "__main__":
    main()
