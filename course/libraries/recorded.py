"""What the snippets and the programs that need a GPU printed on one: shown, and brought in.

    show("cupy_arrays")     runs the snippet where it can run, else shows what was recorded

On the machine that writes the course: ``python -m course.libraries.recorded FILE``, where FILE is
what `course.libraries.bench` wrote on a GPU.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from course.libraries import programs
from utils.engine import gpu, has_gpu
from utils.files import ASSETS, write_whole
from utils.tools.source import Listing

SNIPPETS = Path(__file__).parent / "snippets"
FILE = ASSETS / "recorded" / "libraries.json"
SECONDS = 120


def code(name: str, start: str = "", end: str = "") -> Listing:
    """The snippet's source, without the description in its first line.

    start: from the line that holds this text on. end: up to the line that holds this, without it.
    ValueError where there is no such line.
    """
    text = (SNIPPETS / f"{name}.py").read_text(encoding="utf-8")
    lines = text.partition('"""\n\n')[2].rstrip().splitlines()
    first = _line_with(lines, start)
    last = first + _line_with(lines[first:], end) if end else len(lines)
    return Listing("\n".join(lines[first:last]).rstrip())


def _line_with(lines: list[str], text: str) -> int:
    for number, line in enumerate(lines):
        if text in line:
            return number
    raise ValueError(f"no line holds {text!r}")


def run_snippet(name: str) -> subprocess.CompletedProcess:
    """Run a snippet in a Python of its own."""
    path = SNIPPETS / f"{name}.py"
    command = [sys.executable, "-W", "ignore", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


def show(name: str) -> None:
    """Print what a snippet says: now, on a GPU with its packages, or as it was recorded."""
    if has_gpu() and (SNIPPETS / f"{name}.py").exists():
        done = run_snippet(name)
        if done.returncode == 0:
            print(done.stdout.rstrip())
            return
        print(f"not here: {done.stderr.strip().splitlines()[-1]}")
    print(recorded_text(name))


def show_program(name: str, *arguments, only: tuple[int, int] | None = None) -> None:
    """Run a program of ``cuda/`` that only a GPU can run, or print what was recorded of it.

    only: the one compute capability that it is written for, where it is for one.
    """
    if has_gpu() and only in (None, gpu().compute_capability):
        try:
            programs.run(name, *arguments)
            return
        except (programs.nvcc.NvccError, RuntimeError) as error:
            lines = programs.without_folders(str(error)).splitlines()
            # the compiler's own line names the header that is missing
            print("not here:", next((line for line in lines if "error:" in line), lines[0]))
    print(recorded_text(name))


def recorded_text(name: str, file: Path = FILE) -> str:
    """The recorded output with GPU and date above it, or that there is none yet."""
    record = load(file)
    entry = record["outputs"].get(name)
    if entry is None:
        return f"{name}: not recorded yet; it needs a GPU"
    head = f"[recorded on {entry['gpu']}, {entry['date'][:10]}]"
    return f"{head}\n{entry['text'].rstrip()}"


def load(file: Path = FILE) -> dict:
    """{"outputs": {name: {"gpu", "driver", "date", "versions", "text"}}}; empty without a file."""
    if not file.exists():
        return {"outputs": {}}
    return json.loads(file.read_text(encoding="utf-8"))


def add(outputs: dict, file: Path = FILE) -> Path:
    """Keep recorded outputs; one of the same name replaces the older one."""
    record = load(file)
    record["outputs"] |= outputs
    record["outputs"] = dict(sorted(record["outputs"].items()))
    write_whole(file, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="what course.libraries.bench wrote")
    content = json.loads(parser.parse_args().file.read_text(encoding="utf-8"))
    print(add(content["outputs"]))


if __name__ == "__main__":
    main()
