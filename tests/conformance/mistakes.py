"""The bank of broken CUDA C programs: what each must be told, and whether it is.

    python -m tests.conformance.mistakes [name ...]

builds and runs them on the CPU engine, shows each diagnosis and prints the score. The first line of
every program says what is expected,

    // expect: WORDS; line N [or M]; mode: fast|check[; devices: D]

a message with these words at that line (0: at no line), with the fast checks or only with the slow
ones, on D devices instead of one.

A program of ../asynchronous/ holds many mistakes, each in a kernel of its own, and takes the name
of one. Its first lines say

    // expect WORDS [/ OTHER WORDS]; line N [or M]; case NAME
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from utils.cpu.cuda_c.build import BuildError, build_program

FOLDER = Path(__file__).with_name("broken")
ASYNCHRONOUS = Path(__file__).with_name("asynchronous")


def run(executable, *arguments, **environment):
    """Runs a program of the engine, with no other of the engine's settings than those given."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_CPU_")}
    return subprocess.run(
        [str(executable), *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        env={**clean, **environment},
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
        said = "ran for more than 60 s"
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
        report_asynchronous()


def report_asynchronous():
    for source in sorted(ASYNCHRONOUS.glob("*.cu")):
        not_told = missed(source, build_program(source, check=True))
        for name, said in not_told.items():
            print(f"MISSED {source.stem} {name}\n{said}")
        print(f"asynchronous, {source.stem}: {len(not_told)} of {len(cases(source))} missed")


if __name__ == "__main__":
    main()
